"""A cell: a value with a version, a history and a watch. Knows what can be asked of one, refuses to know what a value means."""

from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

from ..cells import CellRequests, Swap, Version
from ..codec import Codec
from ..errors import HoldfastError
from ..patience import PAUSE_S, STOPPABLE_WAIT_MS, WAIT_MS
from ..words import Key, name_of
from .asker import Ask
from .runtime import Flag, sleep

T = TypeVar("T")

#: Versions that one request for those that were missed returns at most.
_PAGE = 1000


class Cell(Generic[T]):
    """A value with a version that grows by one with every write, under a name of its own. A cell that does not exist has no
    version."""

    def __init__(self, ask: Ask, name: Key, codec: Codec[T]) -> None:
        self._ask = ask
        self._requests = CellRequests(name_of(name), codec)

    @property
    def name(self) -> str:
        return self._requests.name

    async def init(self, value: T) -> int:
        """Writes the value unless there is one. Returns the version that it then has."""
        return await self._ask(self._requests.init(value))

    async def get(self) -> Version[T] | None:
        """What it holds now."""
        return await self._ask(self._requests.get())

    async def get_version(self, version: int) -> Version[T] | None:
        """What it held in this version, if that is kept."""
        return await self._ask(self._requests.get_version(version))

    async def get_as_of(self, time_us: int) -> Version[T] | None:
        """What it held at this time, in microseconds, if that is kept."""
        return await self._ask(self._requests.get_as_of(time_us))

    async def wait_after(self, version: int, wait_ms: int) -> Version[T] | None:
        """Waits until it has a later version than this, and returns what it holds then. None when it is gone, or when the wait is
        over. After 0 it waits for the cell to come."""
        return await self._ask(self._requests.wait_after(version, wait_ms))

    def watch(
        self,
        after: int | None = None,
        *,
        stop: Flag | None = None,
        on_retry: Callable[[HoldfastError], None] | None = None,
    ) -> AsyncIterator[Version[T] | None]:
        """Every change of the cell from now on: each new version in order, and None when the cell is removed. With `after`, the versions
        behind that one, so that 0 begins with what is there. A version that is not kept any more when its turn comes is left out; the last
        one never is. Goes on when the server is back after it was away, of which `on_retry` is told.

        It ends with its task, or within half a second after `stop`, an asyncio.Event, is set. A cell that is removed and made anew while
        the watch is between two waits shows after up to ten seconds."""
        return self._watch(after, stop or Flag(), WAIT_MS if stop is None else STOPPABLE_WAIT_MS, on_retry)

    async def _watch(
        self, seen: int | None, stop: Flag, wait_ms: int, on_retry: Callable[[HoldfastError], None] | None
    ) -> AsyncIterator[Version[T] | None]:
        seen_at_us: int | None = None
        while not stop.is_set():
            try:
                if seen is None:
                    now = await self.get()
                    seen, seen_at_us = (now.version, now.updated_at_us) if now is not None else (0, None)
                changes = await self._changes(seen, seen_at_us, wait_ms)
            except HoldfastError as error:
                if not error.is_temporary:
                    raise
                if on_retry is not None:
                    on_retry(error)
                await sleep(PAUSE_S)
                continue
            for change in changes:
                seen, seen_at_us = (change.version, change.updated_at_us) if change is not None else (0, None)
                yield change
                if stop.is_set():
                    return

    async def _changes(self, seen: int, seen_at_us: int | None, wait_ms: int) -> "list[Version[T] | None]":
        """Waits for the changes behind a version. None of them when the wait is over."""
        now = await self.wait_after(seen, wait_ms) or await self.get()
        # A cell that was made anew begins at 1, and has another time if it has got to the same version.
        if now is None or now.version < seen or now.version == seen and seen_at_us not in (None, now.updated_at_us):
            return [None] if seen > 0 else []
        between = now.version - seen - 1
        if between <= 0:
            return [now] if between == 0 else []
        missed = await self.history(now.version, min(between, _PAGE))
        return [*(each for each in reversed(missed) if each.version > seen), now]

    async def set(self, value: T) -> int:
        """Writes the value, whatever was there, and returns its version."""
        return await self._ask(self._requests.set(value))

    async def set_for(self, value: T, ttl_ms: int) -> int:
        """The same, and the cell goes after this time unless it is written again."""
        return await self._ask(self._requests.set_for(value, ttl_ms))

    async def cas(self, expected: int, value: T) -> Swap[T]:
        """Writes the value if the cell has this version; 0 is that of a cell that does not exist. Of any number of clients that
        expect the same version one writes. After an UnavailableError it may have been this one: what a repeated call is
        refused with shows it."""
        return await self._ask(self._requests.cas(expected, value))

    async def cas_for(self, expected: int, value: T, ttl_ms: int) -> Swap[T]:
        """The same, and the cell goes after this time unless it is written again: a lease."""
        return await self._ask(self._requests.cas_for(expected, value, ttl_ms))

    async def history(self, before: int | None = None, limit: int = 1000) -> list[Version[T]]:
        """The versions that are kept, the newest first, at most so many of those before `before`."""
        return await self._ask(self._requests.history(before, limit))

    async def delete(self) -> bool:
        """Removes it with its history; False if there was none."""
        return await self._ask(self._requests.delete())

    async def delete_if(self, version: int) -> bool:
        """Removes it if it still has this version."""
        return await self._ask(self._requests.delete_if(version))
