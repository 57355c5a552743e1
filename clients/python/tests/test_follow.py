"""Following a run: every event once and in order, also while the server is killed and started again."""

import asyncio
from typing import Any

import pytest
from conftest import eventually
from faces import Face
from server import Server

from holdfast import ClosedError, HoldfastError, Lag, NewEvent, ServerError, UnavailableError


async def append(run: Any, number: int) -> None:
    await run.append(NewEvent("Counted", number, idempotency_key=f"{number}"))


async def seen(run: Any, count: int, **options: Any) -> list[Any]:
    """Follows until so many events were seen."""
    data: list[Any] = []
    async for event in run.follow(**options):
        data.append(event.event_data)
        if len(data) == count:
            break
    return data


async def test_what_is_there_then_what_comes(store: Any, blocked: Any) -> None:
    run = store.run("r")
    for number in (1, 2, 3):
        await append(run, number)
    readers = [seen(run, 5), seen(run, 3, after=2), seen(run, 5, page_size=2)]
    following = asyncio.gather(*readers)
    await eventually(lambda: blocked(3))
    await append(run, 4)
    await append(run, 5)
    assert await following == [[1, 2, 3, 4, 5], [3, 4, 5], [1, 2, 3, 4, 5]]
    with pytest.raises(ValueError):
        run.follow(page_size=0)


async def test_a_run_that_does_not_exist_yet(store: Any, blocked: Any) -> None:
    first = asyncio.ensure_future(seen(store.run("r"), 1))
    await eventually(lambda: blocked(1))
    await append(store.run("r"), 1)
    assert await first == [1]


async def test_a_reader_is_stopped(store: Any, face: Face, blocked: Any) -> None:
    """By its flag, or, with asyncio, with its task. The server does not keep a wait that is over."""
    run = store.run("r")
    await append(run, 1)
    stop = face.flag()
    following = asyncio.ensure_future(seen(run, 7, stop=stop))
    await eventually(lambda: blocked(1))
    stop.set()
    assert await following == [1]
    assert await seen(run, 7, stop=stop) == []
    await eventually(lambda: blocked(0))
    if face.is_async:
        following = asyncio.ensure_future(seen(run, 7))
        await eventually(lambda: blocked(1))
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await following
        await eventually(lambda: blocked(0))


async def test_a_run_that_was_made_anew_is_an_error(store: Any, blocked: Any) -> None:
    run = store.run("r")
    for number in (1, 2, 3):
        await append(run, number)
    following = asyncio.ensure_future(seen(run, 4))
    await eventually(lambda: blocked(1))
    await run.delete()
    await append(run, 1)
    with pytest.raises(ServerError):
        await following


async def test_it_ends_when_the_store_is_closed(store: Any, connect: Any, blocked: Any) -> None:
    other = await connect()
    following = asyncio.ensure_future(seen(other.run("r"), 1))
    await eventually(lambda: blocked(1))
    await other.close()
    with pytest.raises(ClosedError):
        await following
    await eventually(lambda: blocked(0))


async def test_every_event_is_seen_once_and_in_order_across_kill_9(store: Any, server: Server) -> None:
    writers, each = 6, 100
    run = store.run("r")
    events: list[Any] = []
    away: list[HoldfastError] = []
    acknowledged: dict[str, int] = {}

    async def follow() -> None:
        async for event in run.follow(page_size=7, on_retry=away.append):
            events.append(event)
            if len(events) == writers * each:
                return

    async def insist(event: NewEvent[int]) -> int:
        """Appends until there is an answer: the key makes it safe."""
        while True:
            try:
                run_seq: int = (await run.append(event)).run_seq
                return run_seq
            except UnavailableError:
                pass

    async def write(writer: int) -> None:
        for number in range(each):
            event = NewEvent("Counted", number, idempotency_key=f"{writer}:{number}")
            acknowledged[f"{writer}:{number}"] = run_seq = await insist(event)
            if number % 3 == 0:
                assert await insist(event) == run_seq, "a duplicate has the number of the first"

    async def kill() -> None:
        for at in (100, 250, 400):
            while len(acknowledged) < at or len(events) <= at / 2:
                await asyncio.sleep(0.001)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.run)

    await asyncio.gather(follow(), kill(), *(write(writer) for writer in range(writers)))
    assert [event.run_seq for event in events] == list(range(1, writers * each + 1))
    assert [acknowledged[event.idempotency_key] for event in events] == [event.run_seq for event in events]
    assert all(isinstance(error, UnavailableError) for error in away)


async def test_it_says_that_the_server_is_away_and_goes_on_when_it_is_back(store: Any, server: Server, blocked: Any) -> None:
    run = store.run("r")
    await append(run, 1)
    away: list[HoldfastError] = []
    following = asyncio.ensure_future(seen(run, 2, on_retry=away.append))
    await eventually(lambda: blocked(1))
    await asyncio.to_thread(server.kill)
    await eventually(lambda: away)
    await asyncio.to_thread(server.run)
    await append(run, 2)
    assert await following == [1, 2]
    assert all(isinstance(error, UnavailableError) for error in away)


async def test_its_lag_is_told_after_each_page(store: Any, face: Face) -> None:
    run, stop, lags = store.run("r"), face.flag(), list[Lag]()
    for number in range(1, 6):
        await append(run, number)
    following = asyncio.ensure_future(seen(run, 9, stop=stop, page_size=2, on_lag=lags.append))
    await eventually(lambda: len(lags) >= 3)
    stop.set()
    assert await following == [1, 2, 3, 4, 5]
    assert [lag.events for lag in lags[:3]] == [3, 1, 0] and lags[2].age_ms == 0
