"""A store with several addresses: it finds the server that writes, and finds it again while writers are replaced, killed and paused."""

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis.asyncio
from conftest import eventually
from faces import Face
from pair import Node, Pair

import holdfast.asyncio.writer
import holdfast.sync.writer
from holdfast import (
    Claim,
    IndexDefinition,
    NewEvent,
    NotWriterError,
    NoWriterError,
    PushedRequest,
    ServerError,
    UnavailableError,
)
from holdfast.addresses import Address, Known, no_writer, read_failure, read_role, split_url

pytestmark = pytest.mark.skipif(
    "redis-server" in os.environ["HOLDFAST_BIN"] or "valkey" in os.environ["HOLDFAST_BIN"], reason="these servers follow a log"
)


@pytest.fixture(params=[3], ids=["resp3"])
def protocol(request: pytest.FixtureRequest) -> int:
    protocol: int = request.param
    return protocol


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.end()


@pytest.fixture
def redis_pair() -> Iterator[Pair]:
    if (binary := shutil.which("redis-server")) is None:
        pytest.skip("there is no redis-server")
    pair = Pair(binary)
    yield pair
    pair.end()


@pytest.fixture
def open_store(
    loop: asyncio.AbstractEventLoop, face: Face, protocol: int
) -> Iterator[Callable[..., Any]]:
    """Opens stores with a list of addresses."""
    opened: list[Any] = []

    async def start(addresses: list[str], **options: Any) -> Any:
        url = f"redis://{','.join(addresses)}"
        opened.append(await face.connect(url, protocol=protocol, **options))
        return opened[-1]

    yield start
    for store in opened:
        loop.run_until_complete(store.close())


#: An address at which there is no server: a free port might be taken by another test.
DEAD = "127.0.0.1:1"


async def port_of(store: Any, face: Face) -> int:
    [(_, port)] = (await face.command(store.client, "CONFIG GET", "port")).items()
    return int(port)


async def test_the_writer_is_found_behind_a_dead_address_and_behind_a_follower(pair: Pair, open_store: Any, face: Face) -> None:
    for addresses in ([DEAD, *pair.addresses()], [pair.follower.address, pair.writer.address], [pair.follower.address, DEAD]):
        store = await open_store(addresses)
        await store.put("r", {"a": 1})
        assert await port_of(store, face) == pair.writer.port
    # A list in the place of the URL's host.
    store = await face.connect("holdfast://nowhere.example:1/0", addresses=[pair.follower.address, pair.writer.address])
    assert (await store.get("r")).to_dict() == {"a": "1"}
    await store.close()


async def test_without_a_writer_the_error_names_what_each_address_said(pair: Pair, open_store: Any) -> None:
    await eventually(lambda: pair.writer.port in _role(pair.follower))
    pair.writer.kill()
    with pytest.raises(NoWriterError) as caught:
        await open_store([DEAD, pair.follower.address], writer_timeout_ms=300, response_timeout_ms=100)
    assert caught.value.is_temporary
    # What the follower has named may be in it, too.
    assert {DEAD, pair.follower.address} <= set(caught.value.answers) <= {DEAD, *pair.addresses()}
    assert "does not answer" in caught.value.answers[DEAD]
    assert caught.value.answers[pair.follower.address] == f"follows {pair.writer.address}"
    assert all(text in str(caught.value) for text in (DEAD, f"{pair.follower.address} follows {pair.writer.address}"))


async def test_a_wrong_password_is_said_at_once(pair: Pair, open_store: Any) -> None:
    pair.writer.ask("CONFIG", "SET", "requirepass", "secret")
    pair.follower.ask("CONFIG", "SET", "requirepass", "secret")
    with pytest.raises(ServerError) as caught:
        await open_store([DEAD, *pair.addresses()], password="wrong", writer_timeout_ms=3_600_000)
    assert caught.value.code == "WRONGPASS"
    store = await open_store(pair.addresses(), password="secret")
    await store.put("r", {"a": 1})


@pytest.mark.parametrize("ending", ["handed over", "killed", "paused"])
async def test_every_acknowledged_write_is_there_after_a_take_over(pair: Pair, open_store: Any, face: Face, ending: str) -> None:
    store = await open_store(pair.addresses(), response_timeout_ms=3000)
    session = await store.sessions.open()
    acknowledged: list[int] = []
    unknown = 0
    stop = asyncio.Event()

    async def count_in_session() -> int:
        """Sees no error: each request runs once."""
        n = 0
        while not stop.is_set():
            n += 1
            assert await session.call("INCR", "in-session") == n
        return n

    async def put() -> None:
        """A request whose answer is lost with its connection is an error, and is repeated by the program. What a follower refuses is not."""
        nonlocal unknown
        n = 0
        while not stop.is_set():
            n += 1
            try:
                await store.put(f"r:{n}", {"n": n})
                acknowledged.append(n)
            except UnavailableError:
                unknown += 1

    async def transfer() -> int:
        done = 0

        async def body(txn: Any) -> None:
            cell = txn.cell("counter")
            held = await cell.get()
            await cell.set(str(int(held.value) + 1 if held else 1))

        while not stop.is_set():
            try:
                await store.transaction(1, body)
                done += 1
            except UnavailableError:
                pass
        return done

    counting, transferring, putting = asyncio.ensure_future(count_in_session()), asyncio.ensure_future(transfer()), asyncio.ensure_future(put())
    await eventually(lambda: len(acknowledged) >= 20)
    if ending == "killed":
        pair.writer.kill()
    elif ending == "paused":
        os.kill(pair.writer._process.pid, signal.SIGSTOP)
    await asyncio.to_thread(pair.follower.promote)
    before = len(acknowledged)
    await eventually(lambda: len(acknowledged) >= before + 20)
    if ending == "handed over":
        pair.writer.kill()
        before = len(acknowledged)
        await eventually(lambda: len(acknowledged) >= before + 20)
        assert unknown == 0, "what a follower refuses is sent to the writer"
    stop.set()
    await putting
    counted, transferred = await counting, await transferring

    assert await port_of(store, face) == pair.follower.port
    assert int(str(pair.follower.ask("GET", "in-session"))) == counted
    for n in acknowledged:
        assert (await store.get(f"r:{n}")).to_dict() == {"n": str(n)}
    held = await store.cell("counter").get()
    assert int(held.value) >= transferred > 0
    await session.close()


@pytest.mark.parametrize("ending", ["a kill", "a hand-over"])
async def test_waits_and_readers_move_to_the_new_writer(pair: Pair, open_store: Any, face: Face, ending: str) -> None:
    store = await open_store(pair.addresses())
    await store.create_index("due", IndexDefinition(prefixes=["job:"], field="run_at", only=("state", ["pending"])))
    run, cell = store.run("r"), store.cell("c")
    session = await store.sessions.open()
    pushed: list[bytes] = []
    stop = face.flag()

    async def handle(request: PushedRequest) -> None:
        pushed.append(request.payload)

    async def first(items: Any) -> Any:
        async for item in items:
            return item

    claimed = asyncio.ensure_future(store.claim(Claim(indexes=["due"], set={"state": "running"}, wait_ms=30_000)))
    followed, watched = asyncio.ensure_future(first(run.follow())), asyncio.ensure_future(first(cell.watch(after=0)))
    serving = asyncio.ensure_future(session.serve(handle, stop=stop))

    async def blocked() -> bool:
        return "blocked_clients:3" in str(await asyncio.to_thread(pair.writer.ask, "INFO", "clients")).replace("'", "").replace(" ", "")

    await eventually(blocked)
    if ending == "a kill":
        await asyncio.to_thread(pair.follower.promote)
        pair.writer.kill()
    else:
        await asyncio.to_thread(pair.writer.ask, "FAILOVER")
    await store.put("job:1", {"state": "pending", "run_at": 1})
    await run.append(NewEvent("Began", None))
    await cell.set("new")
    await store.sessions.push(session.id, "hello")
    assert [each.key for each in await claimed] == ["job:1"]
    assert (await followed).event_type == "Began"
    assert (await watched).value == "new"
    await eventually(lambda: pushed == [b"hello"])
    stop.set()
    await serving
    await session.close()


async def test_a_program_that_only_reads_moves_too(pair: Pair, open_store: Any, face: Face) -> None:
    store = await open_store(pair.addresses())
    assert await port_of(store, face) == pair.writer.port
    await asyncio.to_thread(pair.follower.promote)  # the old writer answers reads, and follows

    async def has_moved() -> bool:
        await store.get("r")
        return await port_of(store, face) == pair.follower.port

    await eventually(has_moved)


@pytest.mark.parametrize("moment", ["between reads", "between reads, unnoticed", "before the commit"])
async def test_a_read_transaction_runs_again_at_the_new_writer(pair: Pair, open_store: Any, face: Face, moment: str) -> None:
    for node in (pair.writer, pair.follower):
        node.ask("CONFIG", "SET", "follower-reads", "no")
    store = await open_store(pair.addresses())
    await store.cell("a").set("1")
    await store.cell("b").set("2")
    runs = 0

    async def body(txn: Any) -> str:
        nonlocal runs
        runs += 1
        is_first = runs == 1
        a = (await txn.cell("a").get()).value
        if is_first and moment != "before the commit":
            await asyncio.to_thread(pair.follower.promote)
        try:
            b = (await txn.cell("b").get()).value
        except NotWriterError:
            if moment != "between reads, unnoticed":
                raise
            b = "nothing"
        if is_first and moment == "before the commit":
            await asyncio.to_thread(pair.follower.promote)
        return str(a + b)

    assert await store.read_transaction(body) == "12"
    assert runs == 2
    assert await port_of(store, face) == pair.follower.port


async def test_an_error_of_a_body_is_raised_although_the_writer_has_handed_over(pair: Pair, open_store: Any) -> None:
    for node in (pair.writer, pair.follower):
        node.ask("CONFIG", "SET", "follower-reads", "no")
    store = await open_store(pair.addresses())
    runs = 0

    async def body(txn: Any) -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            await asyncio.to_thread(pair.follower.promote)
        raise LookupError("of the test's own")

    with pytest.raises(LookupError, match="of the test's own"):
        await store.read_transaction(body)
    assert runs == 1


async def test_a_writer_that_hangs_is_left_however_long_a_request_may_take(
    pair: Pair, open_store: Any, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (holdfast.asyncio.writer, holdfast.sync.writer):
        monkeypatch.setattr(module, "ROLE_CHECK_S", 0.0)  # its role is asked before each request
    store = await open_store(pair.addresses(), response_timeout_ms=60_000)
    await store.put("r", {"a": 1})
    os.kill(pair.writer._process.pid, signal.SIGSTOP)
    await asyncio.to_thread(pair.follower.promote)
    # Long after the time for a role, and long before that for a request.
    assert (await asyncio.wait_for(store.get("r"), 30)).to_dict() == {"a": "1"}
    assert await port_of(store, face) == pair.follower.port


@pytest.mark.usefixtures("loop")
async def test_a_writer_that_is_lost_while_it_is_searched_is_searched_again(pair: Pair, face: Face) -> None:
    asked = 0

    def make(address: Address) -> Any:
        nonlocal asked
        asked += 1
        if asked == 1:
            writer.forget(writer.epoch)
        connection = redis.asyncio.Connection if face.is_async else redis.Connection
        return connection(host=address.host, port=address.port)

    async def find() -> Any:
        return await writer.find() if face.is_async else await asyncio.to_thread(writer.find)

    where = Address("127.0.0.1", pair.writer.port)
    writer: Any = (holdfast.asyncio if face.is_async else holdfast.sync).writer.Writer([where], make)
    assert await find() == (where, 0), "for the epoch in which the search began"
    before = asked
    assert await find() == (where, 1)
    assert asked > before
    before = asked
    assert await find() == (where, 1)
    assert asked == before, "it is known"


async def test_a_follower_that_joins_later_is_found(pair: Pair, open_store: Any, face: Face) -> None:
    store = await open_store([DEAD, pair.writer.address])
    third = pair.add_follower()
    await eventually(lambda: third.address in _followers(pair))
    asked = _roles_asked(pair)

    async def has_asked_again() -> bool:
        await store.get("r")
        return _roles_asked(pair) > asked

    await eventually(has_asked_again)
    pair.writer.kill()
    await asyncio.to_thread(third.promote)
    await store.put("r", {"a": 1})
    assert await port_of(store, face) == third.port


def _followers(pair: Pair) -> list[str]:
    return [f"{host}:{port}" for host, port, _ in _role(pair.writer)[2]]


def _role(node: Node) -> list[Any]:
    role = node.ask("ROLE")
    assert isinstance(role, list)
    return role


def _roles_asked(pair: Pair) -> int:
    stats = pair.writer.ask("INFO", "commandstats")
    assert isinstance(stats, dict)
    return int(stats["cmdstat_role"]["calls"])


async def test_the_same_over_a_plain_redis(redis_pair: Pair, open_store: Any, face: Face) -> None:
    for addresses in ([redis_pair.follower.address, redis_pair.writer.address], [redis_pair.follower.address, DEAD]):
        store = await open_store(addresses)
        assert not store.is_holdfast
        await store.put("r", {"a": 1})
        assert await port_of(store, face) == redis_pair.writer.port
    redis_pair.follower.promote()
    redis_pair.writer.ask("REPLICAOF", "127.0.0.1", str(redis_pair.follower.port))
    await store.put("s", {"a": 1})  # which the old one refuses
    assert await port_of(store, face) == redis_pair.follower.port
    redis_pair.writer.kill()
    await store.put("s", {"a": 2})
    redis_pair.follower.kill()
    with pytest.raises(UnavailableError):
        await (await open_store([redis_pair.follower.address, DEAD], writer_timeout_ms=100, response_timeout_ms=100)).ping()


async def test_with_one_address_what_a_follower_refuses_is_the_answer(pair: Pair, open_store: Any) -> None:
    store = await open_store([pair.follower.address])
    with pytest.raises(ServerError) as caught:
        await store.put("r", {"a": 1})
    assert caught.value.code == "READONLY" and not isinstance(caught.value, NotWriterError) and not caught.value.is_temporary


def test_addresses() -> None:
    a, b = Address("a", 1), Address("::1", 6379)
    assert split_url("redis://a:1", None) == ("redis://a:1", [])
    assert split_url("holdfast://u:p%2C@a:1,[::1],a:1/3?protocol=2", None) == ("redis://u:p%2C@a:1/3?protocol=2", [a, b])
    assert split_url("holdfasts://u@c:7/3", ["a:1", "[::1]:6379"]) == ("rediss://u@a:1/3", [a, b])
    assert (str(a), str(b)) == ("a:1", "[::1]:6379")
    for wrong in ("a:1,", "::1,a", "a:0,b", "a:x,b", "a:70000,b"):
        with pytest.raises(ValueError):
            split_url(f"redis://{wrong}", None)
    with pytest.raises(ValueError):
        split_url("redis://a", [])
    with pytest.raises(ValueError):
        split_url("redis://a", "a:1")
    with pytest.raises(ValueError):
        split_url("unix:///tmp/socket", ["a:1"])


def test_what_servers_name() -> None:
    far = Address("db.example", 1)
    writer = read_role(far, [b"master", 7, [[b"10.0.0.2", b"2", b"7"], [b"127.0.0.1", b"3", b"7"], [b"?", b"0", b"0"]]])
    # The loopback of a server is its machine, and not that of the client.
    assert writer.is_writer and writer.named == (Address("10.0.0.2", 2), Address("db.example", 3))
    assert read_role(far, [b"slave", b"10.0.0.9", 9, b"connected", 7]).named == (Address("10.0.0.9", 9),)
    assert not read_role(far, [b"sentinel", [b"main"]]).is_writer
    known = Known([far])
    known.learn(read_role(far, [b"slave", b"10.0.0.9", 9, b"connected", 7]))
    assert known.all() == [far, Address("10.0.0.9", 9)]
    known.learn(writer)
    assert known.all() == [far, Address("10.0.0.2", 2), Address("db.example", 3)]


def test_only_if_all_refuse_is_it_the_refusal() -> None:
    one, two = Address("a", 1), Address("b", 2)
    refused, away = read_failure(one, ServerError("NOPERM", "no")), read_failure(two, UnavailableError("no answer"))
    follows = read_role(two, [b"slave", b"10.0.0.9", 9, b"connected", 7])
    assert isinstance(no_writer([refused, away]), ServerError)
    assert isinstance(no_writer([refused, follows]), NoWriterError)
    assert isinstance(no_writer([away]), NoWriterError)
