"""Interactive transactions: they read their own writes, are tried again after a conflict, and end with their connection."""

import asyncio
import inspect
from typing import Any

import pytest
import redis
from faces import Face
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry
from server import Server

from holdfast import ClosedError, ConflictError, Done, Exchange, NewEvent, ServerError, UnavailableError, codec


async def test_all_of_it_or_nothing(store: Any, face: Face) -> None:
    async def all_of_it(txn: Any) -> str:
        await txn.put("record", {"state": "new", "step": 1})
        assert (await txn.get("record")).to_dict() == {"state": "new", "step": "1"}
        assert (await txn.exchange("record", Exchange(expected={"step": 1}, set={"step": 2}))).applied
        assert await txn.compare_and_swap("record", "state", "new", "old")
        assert await txn.cell("cell").cas(0, "x") == Done(1)
        assert (await txn.run("run").append(NewEvent("RunStarted", {}))).run_seq == 1
        assert await face.command(txn.client, "INCRBY", "n", 5) == 5
        assert await store.get("record") is None  # nobody else sees it
        return "done"

    assert await store.transaction(1, all_of_it) == "done"
    assert (await store.get("record")).to_dict() == {"state": "old", "step": "2"}
    assert (await store.cell("cell").get()).value == "x"
    assert (await store.run("run").snapshot()).status == "running"

    async def nothing(txn: Any) -> None:
        await txn.put("record", {"state": "lost"})
        raise KeyError("the body's own")

    with pytest.raises(KeyError):
        await store.transaction(5, nothing)
    assert (await store.get("record")).text("state") == "old"


async def test_a_conflict_is_tried_again_wherever_it_shows(store: Any, face: Face) -> None:
    async def conflict(tries: int, interfere: int, where: str) -> int:
        """How often the body ran, if another client interferes so often."""
        ran = 0

        async def body(txn: Any) -> int:
            nonlocal ran
            ran += 1
            await txn.get("r")
            if ran <= interfere:
                await store.put("r", {"n": ran})
            if where == "in a command":
                await txn.put("r", {"m": ran})
            if where == "in a command of redis-py":
                await face.command(txn.client, "HSET", "r", "m", ran)
            if where == "in a command whose error is ignored":
                try:
                    await txn.put("s", {"m": ran})
                except ConflictError:
                    pass
            return ran

        returned: int = await store.transaction(tries, body)
        assert returned == ran
        return ran

    for where in ("at the end", "in a command", "in a command of redis-py", "in a command whose error is ignored"):
        assert await conflict(5, 2, where) == 3
        with pytest.raises(ConflictError, match="each of the 3 times") as caught:
            await conflict(3, 3, where)
        assert caught.value.code == "CONFLICT"


async def test_a_refused_command_ends_nothing(store: Any, face: Face) -> None:
    async def body(txn: Any) -> None:
        await txn.put("r", {"a": 1})
        with pytest.raises(ServerError, match="(?i)transaction"):
            await txn.ask(_keys())
        await txn.put("r", {"b": 2})

    await store.transaction(1, body)
    assert (await store.get("r")).to_dict() == {"a": "1", "b": "2"}


def _keys() -> Any:
    from holdfast.records import indexes

    return indexes()


async def test_nothing_is_sent_behind_the_end(store: Any, face: Face) -> None:
    kept: list[Any] = []

    async def body(txn: Any) -> None:
        kept.append(txn)
        await txn.put("r", {"a": 1})

    await store.transaction(1, body)
    with pytest.raises(ClosedError, match="transaction has ended"):
        await kept[0].put("r", {"a": 2})
    with pytest.raises(ClosedError, match="transaction has ended"):
        await face.command(kept[0].client, "HSET", "r", "a", "2")
    assert (await store.get("r")).to_dict() == {"a": "1"}
    for method in ("pipeline", "pubsub", "monitor", "client"):
        with pytest.raises(TypeError):
            getattr(kept[0].client, method)()


async def test_a_connection_that_is_lost_rolls_back(store: Any, face: Face, server: Server) -> None:
    async def body(by_client: bool, txn: Any) -> None:
        await txn.put("r", {"a": 1})
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.run)
        # redis-py would connect again, and send this outside the transaction.
        for _ in range(2):
            try:
                await (face.command(txn.client, "HSET", "r", "b", 2) if by_client else txn.put("r", {"b": 2}))
            except ClosedError:
                pass
        raise AssertionError("the loss is an error")

    for by_client in (False, True):
        with pytest.raises(UnavailableError):
            await store.transaction(1, lambda txn, by_client=by_client: body(by_client, txn))
        assert await store.get("r") is None
    await store.transaction(1, lambda txn: txn.put("r", {"c": 3}))  # not on one of the old connections
    assert (await store.get("r")).to_dict() == {"c": "3"}


def _connections(store: Any) -> Any:
    """What is behind a store of either face."""
    return getattr(store, "_twin", store)._connections


async def _call(function: Any) -> None:
    """Of either face."""
    if inspect.isawaitable(done := function()):
        await done


@pytest.mark.parametrize("by_client", [False, True], ids=["by package", "by redis-py"])
async def test_a_command_never_leaves_its_transaction(store: Any, connect: Any, face: Face, by_client: bool) -> None:
    """redis-py connects again by itself when it finds that a connection is gone, with retries of its own if it is told so, and sends the command
    there: outside the transaction, where it would be applied at once."""
    retry = AsyncRetry(NoBackoff(), 5) if face.is_async else Retry(NoBackoff(), 5)
    eager = await connect(retry=retry, health_check_interval=1)

    async def cut() -> None:
        await _call(_connections(eager).own.disconnect)

    async def close() -> None:
        await eager.close()

    async def kill() -> None:
        await face.command(store.client, "CLIENT KILL", "TYPE", "normal", "SKIPME", "yes")

    for lose in (cut, kill, close):

        async def body(txn: Any, lose: Any = lose) -> None:
            await txn.put("r", {"a": 1})
            await lose()
            for _ in range(3):
                try:
                    await (face.command(txn.client, "HSET", "r", "b", 2) if by_client else txn.put("r", {"b": 2}))
                except (ClosedError, UnavailableError, redis.ConnectionError):
                    pass
            raise KeyError("the end")

        with pytest.raises(KeyError):
            await eager.transaction(1, body)
        assert await store.get("r") is None
        if lose is not close:  # the connection serves again, outside
            await eager.transaction(1, lambda txn: txn.put("s", {"c": 3}))
    assert (await store.get("s")).to_dict() == {"c": "3"}


async def test_a_transaction_that_only_reads_sees_one_instant(store: Any, server: Server) -> None:
    if server.answer("TXN.BEGIN", "READONLY") != "b'OK'":
        pytest.skip("the server has no TXN.BEGIN READONLY")
    names = [f"n{i}" for i in range(10)]
    for name in names:
        await store.cell(name, codec.integer).set(100)
    await store.branch("b").cell("x").set("old")
    done = False

    async def write() -> None:
        number = 0
        while not done:
            number += 1

            async def move(txn: Any, number: int = number) -> None:
                one, other = (txn.cell(names[(number * step) % 10], codec.integer) for step in (3, 7))
                if one.name != other.name:
                    await one.set((await one.get()).value - 1)
                    await other.set((await other.get()).value + 1)

            await store.transaction(100, move)

    async def total(txn: Any) -> int:
        some = await txn.get_cells(names[:5], codec.integer)
        others = [await txn.cell(name, codec.integer).get() for name in names[5:]]
        return sum(each.value for each in [*some, *others])

    writing = asyncio.ensure_future(write())
    try:
        totals = [await store.read_transaction(total) for _ in range(100)]
    finally:
        done = True
        await writing
    assert totals == [1000] * 100

    async def refused(txn: Any) -> list[str]:
        cell = txn.branch("b").cell("x")
        with pytest.raises(ServerError):
            await cell.set("new")
        await store.branch("b").cell("x").set("new")
        assert (await cell.get()).value == "old"  # it goes on
        return [each async for each in txn.branch("b").cells()]

    assert await store.read_transaction(refused) == ["x"]
    with pytest.raises(KeyError):
        await store.read_transaction(_fail)


async def _fail(_txn: Any) -> None:
    raise KeyError("the body's own")


async def test_commands_of_several_tasks_take_turns(store: Any) -> None:
    async def body(txn: Any) -> list[int]:
        return list(await asyncio.gather(*(txn.put("r", {f"f{i}": i}) for i in range(20))))

    assert await store.transaction(1, body) == [None] * 20
    assert len(await store.get("r")) == 20


async def test_one_connection_serves_transactions_one_after_the_other(store: Any, face: Face) -> None:
    async def body(txn: Any) -> None:
        await txn.put("r", {"a": 1})

    async def fails(txn: Any) -> None:
        raise KeyError

    async def clients() -> int:
        return len(await face.command(store.client, "CLIENT LIST"))

    await store.transaction(1, body)
    before = await clients()
    for _ in range(5):
        await store.transaction(1, body)
        with pytest.raises(KeyError):
            await store.transaction(1, fails)
    assert await clients() == before
