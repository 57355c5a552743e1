"""Sessions: requests that run once, what becomes of them when connections or the session are lost, and requests to a client."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from conftest import eventually
from faces import Face, awaited
from proxy import Proxy
from server import Server

from holdfast import (
    ClosedError,
    EvictedError,
    Exchange,
    HoldfastError,
    MismatchError,
    NoSessionError,
    PushedRequest,
    ServerError,
    SessionLostError,
    UnansweredError,
    UnavailableError,
    WrongTypeError,
    codec,
)
from holdfast.sessions import Insistence, RequestNumbers


def test_low_is_the_lowest_request_without_a_reply() -> None:
    numbers = RequestNumbers(1)
    assert (numbers.low(), numbers.following) == (1, 1)
    assert [numbers.begin() for _ in range(4)] == [1, 2, 3, 4]
    assert numbers.low() == 1
    numbers.end(2)
    assert numbers.low() == 1
    numbers.end(1)
    assert numbers.low() == 3
    numbers.end(4)
    numbers.end(3)
    assert (numbers.low(), numbers.begin()) == (5, 5)
    numbers.begin_again(9)
    assert (numbers.low(), numbers.following) == (5, 10)
    resumed = RequestNumbers(5)
    resumed.begin_as(3)
    resumed.begin_as(7)
    assert (resumed.low(), resumed.begin()) == (3, 8)
    for taken in (3, 5, 6, 7, 8):
        with pytest.raises(ValueError, match="its own send"):
            resumed.begin_as(taken)


def test_of_threads_that_share_a_session_each_has_its_own_numbers() -> None:
    numbers, begun, lock = RequestNumbers(1), [], threading.Lock()

    def work() -> None:
        for _ in range(500):
            number = numbers.begin()
            assert numbers.low() <= number
            with lock:
                begun.append(number)
            numbers.end(number)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(begun) == list(range(1, 4001))
    assert numbers.low() == 4001


def test_when_a_request_is_sent_again() -> None:
    insistence = Insistence(60_000)
    loading = ServerError("LOADING", "reads its data")
    assert insistence.pause_s(loading) is not None and not insistence.maybe_applied
    pauses = [insistence.pause_s(UnavailableError("gone")) for _ in range(12)]
    assert all(pause is not None and 0.005 <= pause <= 1.3 for pause in pauses) and insistence.maybe_applied
    assert insistence.pause_s(ServerError("OOM", "no memory")) is None
    late = Insistence(0)
    gone = UnavailableError("gone")
    assert late.pause_s(gone) is None
    request = _Request(7)
    failure = late.failure(request, gone)
    assert isinstance(failure, UnansweredError) and failure.request is request and failure.is_temporary
    # A server that does not let the client in says nothing of what was sent before.
    assert isinstance(late.failure(request, ServerError("NOAUTH", "who?")), UnansweredError)
    refused = ServerError("OOM", "no memory")
    assert late.failure(request, refused) is refused
    assert Insistence(0).failure(request, ServerError("NOPERM", "no")).is_temporary is False


@dataclass
class _Request:
    """A request that is never sent."""

    id: int
    words: tuple[bytes, ...] = ()

    def send(self) -> None: ...
    def forget(self) -> None: ...


@pytest.fixture
def sessions(store: Any, server: Server) -> Any:
    if missing := server.lacks("session.open", "session.call", "session.push"):
        pytest.skip(f"the server has no {missing[0]}")
    return store.sessions


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    proxy = Proxy(server.port)
    yield proxy
    proxy.end()


async def test_requests_are_numbered_and_their_replies_dropped(sessions: Any) -> None:
    session = await sessions.open(capabilities={"kind": "worker"})
    assert session.id.startswith("session:")
    assert [await session.call("INCR", "n") for _ in range(3)] == [1, 2, 3]
    assert session.next_request_id == 4
    info = await session.info()
    assert (info.id, info.low, info.replies, info.ttl_ms, info.attached) == (session.id, 3, 1, 90_000, False)
    assert info.capabilities == {"kind": "worker"}
    assert [each async for each in sessions.ids()] == [session.id]
    assert await asyncio.gather(*(session.call("INCR", "n") for _ in range(20)))
    assert await session.call("GET", "n") == b"23"
    assert await session.close() is True
    assert await session.close() is False
    assert await sessions.info(session.id) is None
    with pytest.raises(ClosedError):
        await session.call("INCR", "n")


async def test_errors_are_replies_too(sessions: Any) -> None:
    session = await sessions.open()
    await session.call("HSET", "h", "f", "1")
    with pytest.raises(WrongTypeError):
        await session.call("INCR", "h")
    with pytest.raises(ValueError):
        session.prepare("INCR", "g", request_id=2)
    again = await sessions.resume(session.id, session.next_request_id)
    with pytest.raises(WrongTypeError):
        await again.prepare("INCR", "h", request_id=2).send()
    with pytest.raises(MismatchError):
        await again.prepare("INCR", "g", request_id=2).send()
    with pytest.raises(ServerError):
        await again.call("NOSUCHCOMMAND")
    refused = again.prepare("INCR", "h")
    for _ in range(2):
        with pytest.raises(WrongTypeError):
            await refused.send()
        assert await again.call("HGET", "h", "f") == b"1"  # which says that the reply has come
    with pytest.raises(EvictedError):
        await again.prepare("HSET", "h", "f", "1", request_id=1).send()


async def test_records_cells_and_runs_through_a_session(sessions: Any, store: Any) -> None:
    session = await sessions.open()
    await session.put("r", {"a": 1})
    assert (await session.exchange("r", Exchange(expected={"a": 1}, set={"a": 2}))).applied
    assert await session.cell("c", codec.integer).set(7) == 1
    assert await session.exactly_once_state("s/").put("k", "v", 1) == "applied"
    assert (await store.get("r")).to_dict() == {"a": "2"}
    assert session.next_request_id == 5


async def test_a_lost_answer_is_asked_for_again(sessions: Any, connect: Any, proxy: Proxy) -> None:
    through = (await connect(url=proxy.url)).sessions
    session = await through.open()
    for n in range(1, 21):
        proxy.cut_after(replies=n % 4)  # the server has run it, and its reply does not come, or a part of it
        assert await session.call("INCR", "n") == n
    for n in range(21, 31):
        proxy.cut_after(requests=n)  # a part of the request comes
        assert await session.call("INCR", "n") == n


async def test_a_request_without_an_answer_can_be_sent_again(sessions: Any, connect: Any, proxy: Proxy) -> None:
    session = await (await connect(url=proxy.url, response_timeout_ms=1000)).sessions.open(retry_for_ms=100)
    assert await session.call("INCR", "n") == 1
    proxy.cut_after(replies=0)
    proxy.refuse()
    with pytest.raises(UnansweredError) as caught:
        await session.call("INCR", "n")
    request = awaited(caught.value.request)
    assert (request.id, request.words) == (2, (b"INCR", b"n"))
    proxy.accept()
    assert await session.call("INCR", "other") == 1
    assert (await session.info()).low == 2  # its reply is kept
    assert await request.send() == 2
    assert await request.send() == 2  # which asks nothing
    await session.call("INCR", "other")
    assert (await session.info()).low == 4
    proxy.refuse()
    proxy.cut()
    with pytest.raises(UnansweredError) as caught:
        await session.call("INCR", "n")
    proxy.accept()
    awaited(caught.value.request).forget()
    await session.call("INCR", "other")
    assert (await session.info()).low == 6


async def test_what_is_sent_again_is_the_request_that_failed(sessions: Any, connect: Any, proxy: Proxy, store: Any) -> None:
    """Whichever of several calls got no answer, its error has it: nothing else is sent under its number."""
    session = await (await connect(url=proxy.url, response_timeout_ms=1000)).sessions.open(retry_for_ms=100)
    await session.call("INCR", "visits")
    proxy.cut_after(replies=0)  # the server has run the put
    proxy.refuse()
    try:
        await session.put("order:7", {"state": "paid"})
        await session.call("INCR", "visits")
        raise AssertionError("the put has no answer")
    except UnansweredError as error:
        request = awaited(error.request)
    assert b"order:7" in request.words and b"visits" not in request.words
    proxy.accept()
    assert await request.send() is None
    assert await session.call("INCR", "visits") == 2
    assert (await store.get("order:7")).to_dict() == {"state": "paid"}


async def test_a_request_that_was_prepared_is_made_again_after_a_restart(sessions: Any, connect: Any, store: Any) -> None:
    session = await sessions.open()
    request = session.prepare("INCR", "n")
    later = session.prepare("INCR", "m")
    assert (request.id, later.id, session.next_request_id, request.words) == (1, 2, 3, (b"INCR", b"n"))
    stored = (session.id, request.id, request.words)
    assert await later.send() == 1
    assert await request.send() == 1

    again = await (await connect()).sessions.resume(stored[0], session.next_request_id)
    repeated = again.prepare(*stored[2], request_id=stored[1])
    assert await repeated.send() == 1  # the reply that it had
    assert await again.call("INCR", "n") == 2
    for taken in (3, 0):
        with pytest.raises(ValueError):
            again.prepare("INCR", "other", request_id=taken)
    for wrong in ("1", True):
        with pytest.raises(TypeError):
            again.prepare("INCR", "n", request_id=wrong)
    with pytest.raises(TypeError):
        again.prepare()

    # One that is never sent holds the server's replies, until it is forgotten.
    unsent = again.prepare("INCR", "n")
    await again.call("INCR", "m")
    await again.call("INCR", "m")
    assert (await again.info()).low == unsent.id
    unsent.forget()
    await again.call("INCR", "m")
    assert (await again.info()).low > unsent.id


async def test_a_session_is_resumed_with_the_number_of_its_next_new_request(sessions: Any) -> None:
    session = await sessions.open()
    await session.call("INCR", "n")
    request = session.prepare("INCR", "n")
    stored = (session.id, request.id, request.words)  # before it is sent
    assert await request.send() == 2

    again = await sessions.resume(stored[0], stored[1] + 1)
    assert again.next_request_id == 3
    repeated = again.prepare(*stored[2], request_id=stored[1])
    with pytest.raises(ValueError):
        again.prepare("INCR", "m", request_id=stored[1])
    assert await again.call("INCR", "n") == 3  # under the number 3; the reply of 2 is kept
    assert await repeated.send() == 2  # it had run

    # With the number of the stored request itself it is the same, as long as that is prepared first.
    same = await sessions.resume(stored[0], stored[1])
    assert same.next_request_id == 2
    assert await same.prepare(*stored[2], request_id=stored[1]).send() == 2
    assert same.next_request_id == 3

    # Another request under that number, or one whose reply was dropped, does not run.
    other = await sessions.resume(stored[0], 9)
    with pytest.raises(MismatchError):
        await other.prepare("INCR", "m", request_id=stored[1]).send()
    await again.call("INCR", "n")
    with pytest.raises(EvictedError):
        await other.prepare("INCR", "n", request_id=stored[1]).send()
    assert await sessions.info(stored[0]) is not None
    assert await again.call("GET", "n") == b"4"


@pytest.mark.parametrize("face", [Face(is_async=True)], ids=["asyncio"])  # a thread cannot be given up
async def test_a_prepared_request_that_is_cancelled_can_be_sent_again(sessions: Any, connect: Any, proxy: Proxy, face: Face) -> None:
    session = await (await connect(url=proxy.url, response_timeout_ms=500)).sessions.open()
    request = session.prepare("INCR", "n")
    proxy.freeze()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(request.send(), 0.1)
    assert await session.call("INCR", "other") == 1
    assert (await session.info()).low == request.id
    assert list(await asyncio.gather(request.send(), request.send())) == [1, 1]
    await session.call("INCR", "other")
    assert (await session.info()).low == session.next_request_id - 1


async def test_a_request_goes_another_way_when_its_connection_has_silently_died(sessions: Any, connect: Any, proxy: Proxy) -> None:
    session = await (await connect(url=proxy.url, response_timeout_ms=500)).sessions.open()
    assert await session.call("INCR", "n") == 1
    proxy.freeze()
    assert await session.call("INCR", "n") == 2
    proxy.freeze()
    assert await session.call("INCR", "n") == 3


async def test_a_session_that_is_gone_is_an_error_that_says_so(sessions: Any, connect: Any, proxy: Proxy) -> None:
    session = await sessions.open()
    await sessions.close(session.id)
    with pytest.raises(SessionLostError, match="its request 1 has not run") as caught:
        await session.call("INCR", "n")
    assert (caught.value.session_id, caught.value.request_id, caught.value.maybe_applied) == (session.id, 1, False)
    for request in (session.call("INCR", "n"), session.ack(1), session.pending(), session.serve(_never)):
        with pytest.raises(SessionLostError):
            await request

    # The request ran, its answer was lost, and so was the session: nobody knows.
    through = await (await connect(url=proxy.url)).sessions.open()
    proxy.cut_after(replies=0)
    proxy.refuse()
    asking = asyncio.ensure_future(through.call("INCR", "m"))
    await eventually(lambda: proxy.cuts == 1)
    await sessions.close(through.id)
    proxy.accept()
    with pytest.raises(SessionLostError, match="its request 1 may have run, or not") as caught:
        await asking
    assert caught.value.maybe_applied
    assert not caught.value.is_temporary


async def _never(_request: PushedRequest) -> None:
    raise AssertionError("nothing was pushed")


async def test_what_another_session_is_missing_is_no_loss_of_this_one(sessions: Any) -> None:
    session, other = await sessions.open(), await sessions.open()
    assert await session.push(other.id, "work") == 1
    with pytest.raises(NoSessionError):
        await session.push("session:none", "work")
    with pytest.raises(NoSessionError):
        await sessions.push("session:none", "work")
    assert await session.call("INCR", "n") == 1
    assert [each.payload for each in await sessions.pending(other.id)] == [b"work"]


async def test_a_session_is_kept_alive_while_it_asks_nothing(sessions: Any) -> None:
    session, dropped = await sessions.open(ttl_ms=600), await sessions.open(ttl_ms=600)
    dropped_id = dropped.id
    del dropped
    await eventually(lambda: _is_gone(sessions, dropped_id))
    await asyncio.sleep(0.7)
    assert await session.call("INCR", "n") == 1


async def _is_gone(sessions: Any, session_id: str) -> bool:
    return await sessions.info(session_id) is None


async def test_pushed_requests_are_served_in_order_and_acknowledged(sessions: Any) -> None:
    session = await sessions.open()
    for n in (1, 2, 3):
        assert await sessions.push(session.id, f"{n}") == n
    assert [(each.id, each.payload) for each in await session.pending(after=1, limit=1)] == [(2, b"2")]
    seen: list[PushedRequest] = []

    async def handle(request: PushedRequest) -> None:
        seen.append(request)

    serving = asyncio.ensure_future(session.serve(handle))
    await eventually(lambda: len(seen) == 3)
    for n in (4, 5):
        await sessions.push(session.id, f"{n}")
    await eventually(lambda: len(seen) == 5)
    await eventually(lambda: _has_pending(sessions, session, 0))
    await _end(serving)
    assert seen == [PushedRequest(n, b"%d" % n) for n in (1, 2, 3, 4, 5)]
    assert await session.ack(5) == 0


async def test_serving_ends_with_its_flag(sessions: Any, face: Face) -> None:
    session, stop = await sessions.open(), face.flag()
    seen: list[int] = []

    async def handle(request: PushedRequest) -> None:
        seen.append(request.id)

    serving = asyncio.ensure_future(session.serve(handle, stop=stop))
    await sessions.push(session.id, "1")
    await eventually(lambda: seen == [1])
    stop.set()
    await serving
    await sessions.push(session.id, "2")
    await session.serve(handle, stop=stop)
    assert seen == [1]


async def _has_pending(sessions: Any, session: Any, count: int) -> bool:
    return bool((await sessions.info(session.id)).pending == count)


async def _end(serving: "asyncio.Future[None]") -> None:
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


async def test_a_request_whose_handler_fails_comes_again(sessions: Any) -> None:
    session = await sessions.open()
    for n in (1, 2):
        await sessions.push(session.id, f"{n}")
    seen: list[int] = []

    async def fail(request: PushedRequest) -> None:
        seen.append(request.id)
        if len(seen) == 2:
            raise UnavailableError("the handler's own")

    with pytest.raises(UnavailableError, match="the handler's own"):
        await session.serve(fail)
    assert [each.id for each in await session.pending()] == [2]
    serving = asyncio.ensure_future(session.serve(fail))
    await eventually(lambda: _has_pending(sessions, session, 0))
    await _end(serving)
    assert seen == [1, 2, 2]


async def test_requests_are_served_once_over_lost_connections_and_kill_9(sessions: Any, connect: Any, proxy: Proxy, server: Server) -> None:
    session = await (await connect(url=proxy.url)).sessions.open()
    seen: list[int] = []
    lost: list[HoldfastError] = []

    async def handle(request: PushedRequest) -> None:
        seen.append(request.id)

    serving = asyncio.ensure_future(session.serve(handle, on_retry=lost.append))
    pusher = await sessions.open()
    for n in range(1, 101):
        assert await pusher.push(session.id, f"{n}") == n
        if n % 10 == 0:
            proxy.cut()
        if n == 55:
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.run)
    await eventually(lambda: _has_pending(sessions, session, 0))

    def is_told() -> bool:
        proxy.cut()
        return bool(lost)

    await eventually(is_told)  # it waits now, and not for an acknowledgement
    await pusher.push(session.id, "101")
    await eventually(lambda: _has_pending(sessions, session, 0))
    await _end(serving)
    assert seen == list(range(1, 102))
    assert all(isinstance(error, UnavailableError) for error in lost)


async def test_requests_that_were_not_acknowledged_are_found(sessions: Any) -> None:
    one, other = await sessions.open(), await sessions.open()
    await sessions.push(one.id, "a")
    await sessions.push(other.id, "b")
    assert await sessions.has_retry(1) is False
    later = (await one.pending())[0].last_sent.timestamp() * 1000 + 60_000
    assert await sessions.has_retry(int(later)) is True
    first = await sessions.retry(int(later), limit=1)
    assert [(each.session_id, each.id, each.payload) for each in first] in ([(one.id, 1, b"a")], [(other.id, 1, b"b")])
    assert {each.session_id for each in [*first, *await sessions.retry(int(later))]} == {one.id, other.id}


async def test_hooks(sessions: Any, store: Any, face: Face) -> None:
    library = """#!lua name=hooks
redis.register_function('expired', function(keys, args) redis.call('SET', 'expired', keys[1]) end)"""
    await face.command(store.client, "FUNCTION LOAD", "REPLACE", library)
    assert [await sessions.hook("created"), await sessions.hook("expired")] == [None, None]
    await sessions.set_hook("expired", "expired")
    try:
        assert [await sessions.hook("created"), await sessions.hook("expired")] == [None, "expired"]
        session = await sessions.open()
        await session.close()
        assert await face.command(store.client, "GET", "expired") == session.id.encode()
    finally:
        await sessions.set_hook("expired", None)
    assert await sessions.hook("expired") is None
