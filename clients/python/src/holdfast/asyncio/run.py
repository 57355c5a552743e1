"""A run: an append-only log of events, with a snapshot that the server keeps. Knows what can be asked of one, refuses to know
what an event means."""

from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar, overload

from ..codec import Codec
from ..errors import HoldfastError
from ..patience import PAUSE_S, STOPPABLE_WAIT_MS, WAIT_MS
from ..runs import (
    PAGE,
    AppendResult,
    Behind,
    Event,
    Lag,
    NewEvent,
    RunInfo,
    RunRequests,
    RunSnapshot,
    check_page_size,
    successor,
)
from ..words import Key, name_of
from .asker import Ask
from .runtime import Flag, sleep

D = TypeVar("D")
S = TypeVar("S")


class Run(Generic[D]):
    """A log of events under a name of its own. The server numbers them 1, 2, 3 … without gaps."""

    def __init__(self, ask: Ask, name: Key, codec: Codec[D]) -> None:
        self._ask = ask
        self._requests = RunRequests(name_of(name), codec)

    @property
    def name(self) -> str:
        return self._requests.name

    @overload
    async def append(self, event: NewEvent[D]) -> AppendResult: ...
    @overload
    async def append(self, event: NewEvent[D], *, if_last: int) -> AppendResult | Behind: ...
    async def append(self, event: NewEvent[D], *, if_last: int | None = None) -> AppendResult | Behind:
        """Appends an event, once for its idempotency key. After an UnavailableError append the same event again: it is stored
        once.

        `if_last`: only if that is the run's last run_seq (0: a new run), so that two engines cannot both go on. A key that is
        known is a duplicate all the same."""
        return await self._ask(self._requests.append(event, if_last))

    async def events(self, after: int = 0, limit: int = PAGE, wait_ms: int = 0) -> list[Event[D]]:
        """Events behind this one in the order of their run_seq. If there is none, waits so long for the next. An `after` beyond
        the last event of the run is a ServerError: it was made anew."""
        return await self._ask(self._requests.events(after, limit, wait_ms))

    def follow(
        self,
        after: int = 0,
        *,
        page_size: int = PAGE,
        stop: Flag | None = None,
        on_retry: Callable[[HoldfastError], None] | None = None,
        on_lag: Callable[[Lag], None] | None = None,
    ) -> AsyncIterator[Event[D]]:
        """The events of a run, those that are there and then each new one as it comes: every event once and in order. Goes on
        when the server is back after it was away, of which `on_retry` is told. Also follows a run that does not exist yet. `on_lag` is
        told after each page how far the reader is behind, and after each wait in which nothing came: a metric.

        It ends with its task, or within half a second after `stop`, an asyncio.Event, is set. A run that was deleted and made anew
        with fewer events is a ServerError."""
        check_page_size(page_size)
        wait_ms = WAIT_MS if stop is None else STOPPABLE_WAIT_MS
        return self._follow(after, page_size, stop or Flag(), wait_ms, on_retry, on_lag)

    async def _follow(
        self,
        watermark: int,
        page_size: int,
        stop: Flag,
        wait_ms: int,
        on_retry: Callable[[HoldfastError], None] | None,
        on_lag: Callable[[Lag], None] | None,
    ) -> AsyncIterator[Event[D]]:
        has_page = False
        while not stop.is_set():
            try:
                if has_page and on_lag is not None:
                    on_lag(await self.lag(watermark))
                has_page = False
                events = await self.events(watermark, page_size, wait_ms)
                has_page = True
            except HoldfastError as error:
                if not error.is_temporary:
                    raise
                if on_retry is not None:
                    on_retry(error)
                await sleep(PAUSE_S)
                continue
            for event in events:
                watermark = successor(watermark, event)
                yield event
                if stop.is_set():
                    return

    async def snapshot(self) -> RunSnapshot[D] | None:
        """The snapshot that the server keeps, which is never behind; None if there is no such run."""
        return await self._ask(self._requests.snapshot())

    async def project(self, up_to: int | None = None) -> RunSnapshot[D]:
        """The snapshot as of an event, or of the last one, replayed by the server from the first."""
        return await self._ask(self._requests.project(up_to))

    async def fold(self, state: S, reducer: Callable[[S, Event[D]], S], up_to: int | None = None) -> S:
        """A projection of one's own: what a reducer makes of the events, which are read in pages. `snapshot_reducer` is the
        server's own."""
        watermark = 0
        while up_to is None or watermark < up_to:
            limit = PAGE if up_to is None else min(PAGE, up_to - watermark)
            events = await self.events(watermark, limit)
            for event in events:
                watermark = successor(watermark, event)
                state = reducer(state, event)
            if len(events) < limit:
                break
        return state

    async def lag(self, position: int) -> Lag:
        """How far a reader that has got to this run_seq is behind: how many events come after it, and how long ago the first of them
        was stored. A position beyond the last event of the run is a ServerError: it was made anew."""
        return await self._ask(self._requests.lag(position))

    async def info(self) -> RunInfo | None:
        """Facts about it; None if there is no such run."""
        return await self._ask(self._requests.info())

    async def delete(self) -> bool:
        """Removes it with all its events; False if there was none. No single event can be removed."""
        return await self._ask(self._requests.delete())
