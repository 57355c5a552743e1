"""Records over a plain Redis, and over Holdfast with only the commands that a plain Redis has: the same results as over Holdfast. Everything
else says that it needs Holdfast."""

import asyncio
import random
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import collect
from faces import Face
from server import Server

from holdfast import (
    Claim,
    Exchange,
    Filter,
    IndexDefinition,
    Lifetime,
    NeedsHoldfastError,
    NewEvent,
    QueueConfig,
    ServerError,
    Sweep,
    WrongTypeError,
)

EVERY_BYTE = bytes(range(256))


@pytest.fixture(scope="module")
def redis_server() -> Iterator[Server]:
    if (binary := shutil.which("redis-server")) is None:
        pytest.skip("there is no redis-server")
    server = Server(binary, "--save", "")
    yield server
    server.end()


@pytest.fixture(params=["redis", "holdfast"])
def plain(request: pytest.FixtureRequest, open_empty: Callable[[str], Any]) -> Any:
    """A store that uses no command of Holdfast's, on an empty server."""
    return open_empty(request.param)


@pytest.fixture(params=["redis", "holdfast", "holdfast's own commands"])
def anywhere(request: pytest.FixtureRequest, open_empty: Callable[[str], Any]) -> Any:
    """The same, or one that uses Holdfast's."""
    return open_empty(request.param)


@pytest.fixture
def open_empty(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop, connect: Callable[..., Any], face: Face) -> Callable[[str], Any]:
    async def empty(kind: str) -> Any:
        if kind == "redis":
            store = await connect(url=request.getfixturevalue("redis_server").url)
        else:
            store = await connect(plain=kind == "holdfast")
        await face.command(store.client, "FLUSHALL")
        return store

    return lambda kind: loop.run_until_complete(empty(kind))


async def test_it_knows_its_server(plain: Any, store: Any) -> None:
    assert (plain.is_holdfast, store.is_holdfast) == (False, True)
    assert await plain.ping() is True


async def test_records(anywhere: Any, face: Face) -> None:
    assert await anywhere.get("r") is None
    await anywhere.put("r", {"a": 1, "bytes": EVERY_BYTE, "gone": None})
    await anywhere.put("r", {"b": "x"}, 60_000)
    record = await anywhere.get("r")
    assert dict(record) == {"a": b"1", "bytes": EVERY_BYTE, "b": b"x"} and 0 < record.ttl_ms <= 60_000
    await anywhere.put("r", {"b": None, "c": 2}, lifetime=Lifetime(persist=True), stamp={"at": -1000})
    record = await anywhere.get("r")
    assert set(record) == {"a", "bytes", "c", "at"} and record.ttl_ms is None and record.integer("at") > 1_700_000_000_000
    await anywhere.put("r", {"d": 1, "a": None}, replace=True, lifetime=Lifetime(until_ms=4_102_444_800_000))
    assert (await anywhere.get("r")).to_dict() == {"d": "1"}
    assert await face.command(anywhere.client, "PEXPIRETIME", "r") == 4_102_444_800_000
    await anywhere.set_field("r", "e", 1)
    await anywhere.set_fields("r", {"e": None, "f": 1})
    assert [await anywhere.get_field("r", "f"), await anywhere.get_field("r", "e")] == [b"1", None]
    assert await anywhere.delete("r") is True
    assert await anywhere.delete("r") is False


async def test_compare_and_swap_has_one_winner(anywhere: Any) -> None:
    await anywhere.put("r", {"state": "pending"})
    won = await asyncio.gather(*(anywhere.compare_and_swap("r", "state", "pending", f"w-{i}") for i in range(20)))
    assert won.count(True) == 1
    assert (await anywhere.get("r")).text("state") == f"w-{won.index(True)}"
    assert await anywhere.compare_and_swap("none", "state", "pending", "x") is False


async def test_an_exchange(anywhere: Any) -> None:
    new = Exchange(absent=["state"], set={"state": "pending", "note": "x"}, stamp={"at": 0})
    assert [(await anywhere.exchange("r", new)).applied for _ in range(2)] == [True, False]
    move = Exchange(expected={"state": "pending"}, set={"state": "running"}, remove=["note"], lifetime=Lifetime(ms=60_000))
    moved = await anywhere.exchange("r", move)
    assert moved.applied and moved.current.to_dict() == {"state": "running"}
    refused = await anywhere.exchange("r", Exchange(expected={"none": 1, "state": "pending"}, set={"state": "lost"}))
    assert not refused.applied and refused.current.to_dict() == {"state": "running"}
    with pytest.raises(ServerError, match="STAMP"):
        await anywhere.exchange("r", Exchange(set={"at": 1}, stamp={"at": 1}))


async def test_a_lifetime_that_is_over_is_refused(anywhere: Any) -> None:
    await anywhere.put("r", {"a": 1})
    for lifetime in (Lifetime(ms=0), Lifetime(ms=-5), Lifetime(until_ms=0)):
        for request in (
            anywhere.put("r", {"a": 2}, lifetime=lifetime), anywhere.put("r", {"a": 2}, lifetime=lifetime, replace=True),
            anywhere.exchange("r", Exchange(set={"a": 2}, lifetime=lifetime)),
            anywhere.exchange("r", Exchange(expected={"a": 9}, set={"a": 2}, lifetime=lifetime)),
        ):  # fmt: skip
            with pytest.raises(ServerError):
                await request
    record = await anywhere.get("r")
    assert (record.to_dict(), record.ttl_ms) == ({"a": "1"}, None)


async def test_a_key_of_another_type_is_left_alone(anywhere: Any, face: Face) -> None:
    await face.command(anywhere.client, "SET", "s", "x")
    for request in (
        anywhere.get("s"), anywhere.get_field("s", "a"), anywhere.put("s", {"a": 1}, 60_000), anywhere.set_fields("s", {"a": 1, "b": None}),
        anywhere.compare_and_swap("s", "a", "b", "c"), anywhere.exchange("s", Exchange(set={"a": 1})),
    ):  # fmt: skip
        with pytest.raises(WrongTypeError):
            await request
    assert await face.command(anywhere.client, "GET", "s") == b"x"
    assert await face.command(anywhere.client, "PTTL", "s") == -1


async def test_a_scan_finds_what_passes_the_filters(anywhere: Any, face: Face) -> None:
    await asyncio.gather(*(anywhere.put(f"job[*]:{i}", {"n": i, "kind": "b" if i % 3 else "a"}) for i in range(1200)))
    await anywhere.put("job[*]:5", {"n": 5}, 60_000)
    await anywhere.put("jobx:1", {"n": 1})
    await anywhere.put(b"job[*]:\xff", {"n": 5000})
    await face.command(anywhere.client, "SET", "job[*]:string", "no record")
    found = {each.key: each for each in await collect(anywhere.scan("job[*]:"))}
    assert set(found) == {"job[*]:\udcff", *(f"job[*]:{i}" for i in range(1200))}
    assert found["job[*]:5"].ttl_ms > 0 and found["job[*]:6"].ttl_ms is None
    some = await collect(anywhere.scan("job[*]:", filters=[Filter.lt("n", 100), Filter.is_in("kind", ["a", "c"])], fields=["n", "x"]))
    assert sorted({each.fields.integer("n") for each in some}) == list(range(0, 100, 3))
    assert all(set(each.fields) == {"n"} for each in some)
    assert len(await collect(anywhere.scan("job[*]:", limit=700))) == 700
    assert await collect(anywhere.scan("job[*]:", limit=0)) == []
    assert len({each.key for each in await collect(anywhere.scan())}) == 1202


async def test_the_rest_needs_holdfast(plain: Any, face: Face) -> None:
    async def body(_txn: Any) -> None:
        raise AssertionError("it does not begin")

    await face.command(plain.client, "SET", "run", "no run")
    state, run, cell = plain.exactly_once_state("s/"), plain.run("run"), plain.cell("c")
    index = IndexDefinition(prefixes=["job:"], field="at")
    for request in (
        plain.create_index("i", index), plain.indexes(), plain.drop_index("i"), plain.range("i", 1, 2),
        plain.claim(Claim(indexes=["i"], set={"a": 1})), plain.sweep(Sweep(index="i", before=1, set={"a": 1})),
        face.queue(plain, QueueConfig(indexes=["i"])).next("w", 1),
        cell.init("1"), cell.get(), cell.wait_after(0, 1), cell.delete(), collect(cell.watch()), plain.get_cells(["c"]),
        plain.branch("b").fork("d"), plain.branch("b").drop_cells(), collect(plain.branch("b").cells()),
        plain.transaction(1, body), plain.read_transaction(body),
        run.append(NewEvent("X", None)), run.events(), collect(run.follow()), run.snapshot(), run.lag(0), run.info(), run.delete(),
        collect(plain.runs()), state.put("k", "v", 1), state.get("k"), state.seal("k", 1), state.snapshot(),
        state.restore_checkpoint("c"), state.checkpoint("c"), plain.sessions.open(), plain.sessions.resume("s", 1),
        plain.sessions.push("s", "x"), plain.sessions.has_retry(1), plain.sessions.hook("created"), collect(plain.sessions.ids()),
    ):  # fmt: skip
        with pytest.raises(NeedsHoldfastError):
            await request
    assert await face.command(plain.client, "GET", "run") == b"no run"


async def test_the_same_history_has_the_same_results(plain: Any, store: Any, connect: Any) -> None:
    """Also between the two forms of a filter: the server's, and that of the package."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    choice = random.Random(seed)
    fields = ["a", "b", "\udcff"]
    numbers = ["0", "-0", "7", "+7", "07", "7.0", "7e0", ".5", "5.", "1e400", "9223372036854775807", "9223372036854775808", "1_0", " 7"]
    values: list[Any] = [*numbers, "", "x", "nan", "inf", b"\xff", 7, -1, 0.5, 2**53, 2**53 + 1]

    def change() -> dict[str, Any]:
        return {choice.choice(fields): choice.choice([*values, None]) for _ in range(choice.randrange(1, 4))}

    def without_none(changes: dict[str, Any]) -> dict[str, Any]:
        return {field: value for field, value in changes.items() if value is not None}

    async def on_both(ask: Callable[[Any], Any]) -> None:
        results = []
        for each in (plain, store):
            try:
                results.append(await ask(each))
            except (ServerError, ValueError) as error:
                results.append(type(error))
        assert results[0] == results[1]

    prefix = {plain: "p:", store: "s:"}
    for _ in range(300):
        key, changes, field = choice.choice("xyz"), change(), choice.choice(fields)
        expected, value = choice.choice(values), choice.choice(values)
        wanted = Exchange(
            expected=without_none(change()) if choice.random() < 0.7 else {},
            absent=[choice.choice(fields)] if choice.random() < 0.3 else [],
            set=changes,
            lifetime=choice.choice([None, None, Lifetime(ms=10**9), Lifetime(persist=True)]),
        )
        replace, ttl_ms = choice.random() < 0.3, choice.choice([None, 10**9])
        step = choice.choice([
            lambda each: each.put(prefix[each] + key, changes, ttl_ms, replace=replace),
            lambda each: each.set_fields(prefix[each] + key, changes),
            lambda each: each.set_field(prefix[each] + key, field, changes.get(field)),
            lambda each: each.compare_and_swap(prefix[each] + key, field, expected, value),
            lambda each: each.exchange(prefix[each] + key, wanted),
            lambda each: each.delete(prefix[each] + key),
        ])  # fmt: skip
        await on_both(step)
        records = [[await each.get(prefix[each] + key) for key in "xyz"] for each in (plain, store)]
        assert records[0] == records[1]
        assert [record and record.ttl_ms is None for record in records[0]] == [record and record.ttl_ms is None for record in records[1]]
        make = choice.choice([Filter.eq, Filter.ne, Filter.lt, Filter.le, Filter.gt, Filter.ge])
        one_of = choice.choice([Filter.is_in, Filter.not_in])
        filters = [make(field, value), one_of(field, choice.choices(values, k=choice.randrange(4)))][: choice.randrange(3)]
        found = [await collect(each.scan(prefix[each], filters=filters)) for each in (plain, store)]
        keys = [sorted({each.key[2:] for each in rows}) for rows in found]
        assert keys[0] == keys[1], (filters[0].words if filters else None, records[0])
