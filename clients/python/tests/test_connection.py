"""What a store does when the server is away, silent, refuses, or is not needed any more."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import eventually
from faces import Face
from server import Server, free_port

from holdfast import Claim, ClosedError, HoldfastError, IndexDefinition, NeedsHoldfastError, ServerError, UnavailableError
from holdfast.replies import integer
from holdfast.request import Request

CLAIM = Claim(indexes=["due"], set={"state": "running"}, wait_ms=30_000)
BRIEF = Claim(indexes=["due"], set={"state": "running"}, wait_ms=1)


@pytest.fixture
def due(store: Any, loop: asyncio.AbstractEventLoop) -> Any:
    """A store with an index."""
    index = IndexDefinition(prefixes=["job:"], field="run_at", only=("state", ["pending"]))
    loop.run_until_complete(store.create_index("due", index))
    return store


async def test_it_says_that_no_server_is_there(connect: Any) -> None:
    port = free_port()
    for host in ("127.0.0.1", "localhost"):
        with pytest.raises(UnavailableError, match=f"{host}:{port}") as caught:
            await connect(url=f"redis://{host}:{port}", response_timeout_ms=3_600_000)
        assert caught.value.is_temporary


async def test_it_says_at_once_that_a_password_is_wrong(connect: Any, due: Any, face: Face, server: Server) -> None:
    await face.command(due.client, "CONFIG SET", "requirepass", "secret")
    try:
        with pytest.raises(ServerError) as caught:
            await connect(password="wrong", response_timeout_ms=3_600_000)
        assert caught.value.code == "WRONGPASS"
        with pytest.raises(ServerError) as caught:
            await connect(response_timeout_ms=3_600_000)
        assert caught.value.code == "NOAUTH"
        right = await connect(url=f"redis://:secret@127.0.0.1:{server.port}")
        assert await right.claim(BRIEF) == []
    finally:
        await face.command(due.client, "CONFIG SET", "requirepass", "")


async def test_a_request_that_is_made_while_the_server_is_away_is_answered_when_it_is_back(due: Any, server: Server) -> None:
    await due.put("r", {"a": 1})
    await asyncio.to_thread(server.kill)
    put, claimed = asyncio.ensure_future(due.put("r", {"b": 2})), asyncio.ensure_future(due.claim(CLAIM))
    await asyncio.sleep(0.1)
    await asyncio.to_thread(server.run)
    await put
    await due.put("job:1", {"state": "pending", "run_at": 1})
    assert [each.key for each in await claimed] == ["job:1"]
    assert (await due.get("r")).to_dict() == {"a": "1", "b": "2"}


async def test_a_request_that_was_sent_and_got_no_answer_is_not_sent_again(due: Any, server: Server, blocked: Any) -> None:
    waiting = asyncio.ensure_future(due.claim(CLAIM))
    await eventually(lambda: blocked(1))
    await asyncio.to_thread(server.kill)
    with pytest.raises(UnavailableError):
        await waiting
    await asyncio.to_thread(server.run)
    await due.put("job:1", {"state": "pending", "run_at": 1})
    assert await blocked(0)
    assert (await due.get("job:1")).text("state") == "pending"


async def test_a_server_that_is_silent_is_unavailable(connect: Any, due: Any, server: Server) -> None:
    hasty = await connect(response_timeout_ms=500)
    assert await hasty.claim(BRIEF) == []
    server.pause()
    try:
        for request in (hasty.put("r", {"a": 1}), hasty.claim(BRIEF), hasty.claim(BRIEF)):  # the last on a new connection
            with pytest.raises(UnavailableError):
                await request
    finally:
        server.resume()
    await hasty.put("r", {"a": 2})
    assert await hasty.claim(BRIEF) == []


@pytest.mark.parametrize("face", [Face(is_async=True)], ids=["asyncio"])  # a thread cannot be given up
async def test_a_wait_that_is_given_up_takes_nothing(due: Any, face: Face, blocked: Any) -> None:
    waiting = asyncio.ensure_future(due.claim(CLAIM))
    await eventually(lambda: blocked(1))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await eventually(lambda: blocked(0))
    await due.put("job:1", {"state": "pending", "run_at": 1})
    assert (await due.get("job:1")).text("state") == "pending"
    # A request that is cancelled leaves no reply behind for the next one.
    for _ in range(20):
        asking = asyncio.ensure_future(due.get("job:1"))
        await asyncio.sleep(0)
        asking.cancel()
        assert await due.delete("none") is False


async def test_requests_share_connections_and_those_that_wait_have_their_own(due: Any, face: Face, connect: Any) -> None:
    async def clients() -> int:
        return len(await face.command(due.client, "CLIENT LIST"))

    for _ in range(5):
        await due.claim(BRIEF)
    before = await clients()
    waits = [asyncio.ensure_future(due.claim(Claim(indexes=["due"], set={"s": 1}, wait_ms=200))) for _ in range(5)]
    await asyncio.gather(*waits)
    assert await clients() <= before + 4
    few = await connect(connections_max=2)
    await asyncio.gather(*(few.put(f"r{i}", {"a": 1}) for i in range(40)))
    assert await clients() <= before + 4 + 2


async def test_close_ends_what_waits(connect: Any, due: Any, blocked: Any) -> None:
    other = await connect()
    waiting = asyncio.ensure_future(other.claim(CLAIM))
    await eventually(lambda: blocked(1))
    await other.close()
    with pytest.raises(ClosedError):
        await waiting
    for request in (other.put("r", {"a": 1}), other.claim(CLAIM), other.transaction(1, _nothing)):
        with pytest.raises(ClosedError):
            await request
    await other.close()
    await eventually(lambda: blocked(0))


async def _nothing(_txn: Any) -> None:
    raise AssertionError("it does not begin")


async def test_large_integers(due: Any) -> None:
    assert await due.ask(Request([b"INCRBY", b"n", b"9223372036854775807"], integer)) == 2**63 - 1


async def test_a_plain_redis_has_no_such_command(due: Any) -> None:
    with pytest.raises(NeedsHoldfastError) as caught:
        await due.ask(Request([b"HNOSUCH", b"n"], integer))
    assert caught.value.code == "ERR"


LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"


@pytest.fixture
def scripted(face: Face, loop: asyncio.AbstractEventLoop) -> Iterator[Callable[..., Any]]:
    """A store on a server that gives one answer to each request, in turn; the last one again and again."""
    ends: list[Callable[[], None]] = []

    async def start(answers: list[bytes], response_timeout_ms: int) -> tuple[Any, list[bytes]]:
        listener = socket.create_server(("127.0.0.1", 0))
        requests: list[bytes] = []

        def serve(connection: socket.socket) -> None:
            with connection:
                while words := _request(connection):
                    if words[0] == b"PING":
                        connection.sendall(b"+PONG\r\n")
                    elif words[0] == b"CLIENT":
                        connection.sendall(b"+OK\r\n")
                    elif words[0] == b"COMMAND":
                        connection.sendall(b"-NOPERM this user may not ask\r\n")
                    else:
                        requests.append(words[0])
                        connection.sendall(answers[min(len(requests), len(answers)) - 1])

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=[connection], daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        url = f"redis://127.0.0.1:{listener.getsockname()[1]}"
        store = await face.connect(url, protocol=2, response_timeout_ms=response_timeout_ms)
        ends.append(lambda: loop.run_until_complete(store.close()))
        ends.append(lambda: listener.shutdown(socket.SHUT_RDWR))
        ends.append(listener.close)
        return store, requests

    yield start
    for end in ends:
        end()


def _request(connection: socket.socket) -> list[bytes]:
    """The words of a request; none when there are no more."""

    def line() -> bytes:
        read = b""
        while not read.endswith(b"\r\n"):
            if not (byte := connection.recv(1)):
                return b""
            read += byte
        return read[:-2]

    try:
        return [(line(), line())[1] for _ in range(int(line()[1:] or 0))]
    except OSError:
        return []


DEL = Request([b"DEL", b"x"], integer)
WAIT = Request([b"CLAIM", b"x"], integer, wait_ms=30_000)


async def test_a_request_waits_until_the_server_has_read_its_data(scripted: Any) -> None:
    for request in (DEL, WAIT):
        store, requests = await scripted([LOADING, LOADING, b":1\r\n"], 30_000)
        assert await store.ask(request) == 1
        assert len(requests) == 3


async def test_a_server_that_does_not_end_reading_is_an_error_at_last(scripted: Any) -> None:
    store, requests = await scripted([LOADING], 300)
    for request in (DEL, Request([b"CLAIM", b"x"], integer, wait_ms=300)):
        with pytest.raises(HoldfastError) as caught:
            await store.ask(request)
        assert caught.value.is_temporary
    assert len(requests) >= 2


async def test_other_refusals_are_not_tried_again(scripted: Any) -> None:
    for code in ("OOM", "NOPERM", "MISCONF", "BUSY", "READONLY", "NOSCRIPT", "EXECABORT", "ERR"):
        store, requests = await scripted([f"-{code} command not allowed\r\n".encode()], 30_000)
        for request in (DEL, WAIT):
            with pytest.raises(ServerError) as caught:
                await store.ask(request)
            assert (caught.value.code, str(caught.value), caught.value.is_temporary) == (code, "command not allowed", False)
        assert len(requests) == 2


async def test_what_a_fenced_server_was_asked_for_may_have_been_done(scripted: Any) -> None:
    store, requests = await scripted([b"-FENCED a writer of epoch 5 has taken the journal over\r\n"], 30_000)
    for request in (DEL, WAIT):
        with pytest.raises(UnavailableError, match="FENCED"):
            await store.ask(request)
    assert len(requests) == 2


async def test_an_answer_that_does_not_fit_is_an_error(scripted: Any) -> None:
    store, _ = await scripted([b"+what\r\n"], 30_000)
    for request in (store.delete("x"), store.get("x"), store.cell("x").get(), store.run("x").events(), store.claim(CLAIM)):
        with pytest.raises(HoldfastError, match="the reply should have"):
            await request
