"""A cell: a value with a version, a history and a watch. Knows what can be asked of one, refuses to know what a value means."""

from typing import Generic, TypeVar

from ..cells import CellRequests, Swap, Version
from ..codec import Codec
from .asker import Ask

T = TypeVar("T")


class Cell(Generic[T]):
    """A value with a version that grows by one with every write, under a name of its own. A cell that does not exist has no
    version."""

    def __init__(self, ask: Ask, name: str, codec: Codec[T]) -> None:
        self._ask = ask
        self._requests = CellRequests(name, codec)

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
