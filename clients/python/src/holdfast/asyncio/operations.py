"""What a store, a session and a transaction have in common: records, cells, branches, runs and exactly-once state by name. Knows the faces of
the requests, refuses to know how they are sent."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar, overload

from .. import cells, codec, records
from ..cells import Version
from ..codec import Codec
from ..fields import Record
from ..records import Exchange, Lifetime, Outcome, Stamps
from ..request import Request
from ..words import Changes, Key, Value, name_of
from .branch import Branch
from .cell import Cell
from .exactly_once import ExactlyOnceState
from .run import Run

T = TypeVar("T")


class CellOperations(ABC):
    @abstractmethod
    async def ask(self, request: Request[T]) -> T:
        """Sends a command and reads its reply."""

    @overload
    def cell(self, name: Key) -> Cell[str]: ...
    @overload
    def cell(self, name: Key, codec: Codec[T]) -> Cell[T]: ...
    def cell(self, name: Key, codec: Codec[Any] = codec.text) -> Cell[Any]:
        """The cell of this name, whose values are text unless a codec says otherwise. Asks the server nothing."""
        return Cell(self.ask, name, codec)

    def branch(self, name: Key) -> Branch:
        """The branch of this name. Asks the server nothing."""
        return Branch(self.ask, name)

    @overload
    async def get_cells(self, names: Sequence[Key]) -> list[Version[str] | None]: ...
    @overload
    async def get_cells(self, names: Sequence[Key], codec: Codec[T]) -> list[Version[T] | None]: ...
    async def get_cells(self, names: Sequence[Key], codec: Codec[Any] = codec.text) -> list[Version[Any] | None]:
        """What several cells hold, all at one instant, in the order of their names."""
        return await self.ask(cells.get_cells([name_of(name) for name in names], codec)) if names else []


class Operations(CellOperations):
    async def get(self, key: Key) -> Record | None:
        """A record with its time to live, both of one instant; None if there is none."""
        return await self.ask(records.get(key))

    async def put(
        self,
        key: Key,
        values: Changes,
        ttl_ms: int | None = None,
        *,
        replace: bool = False,
        lifetime: Lifetime | None = None,
        stamp: Stamps | None = None,
    ) -> None:
        """Writes fields, and the record's time to live if one is given, in one step. A field whose value is None is removed. `replace`
        drops the fields that are not named. `lifetime` is for other ends than so many milliseconds from now."""
        if ttl_ms is not None:
            if lifetime is not None:
                raise ValueError("a record has one lifetime: ttl_ms or lifetime")
            lifetime = Lifetime(ms=ttl_ms)
        await self.ask(records.put(key, values, replace, lifetime, stamp or {}))

    async def delete(self, key: Key) -> bool:
        """Removes a record; whether there was one."""
        return await self.ask(records.delete(key))

    async def get_field(self, key: Key, field: str) -> bytes | None:
        """One field of a record; None if it is not there."""
        return await self.ask(records.get_field(key, field))

    async def set_field(self, key: Key, field: str, value: Value | None) -> None:
        """Writes one field of a record; None removes it."""
        await self.ask(records.set_fields(key, {field: value}))

    async def set_fields(self, key: Key, values: Changes) -> None:
        """Writes some fields of a record in one step; a field whose value is None is removed."""
        await self.ask(records.set_fields(key, values))

    async def compare_and_swap(self, key: Key, field: str, expected: Value, value: Value) -> bool:
        """Writes a field if it holds `expected`; whether it did. Of several that expect the same value, one is told True."""
        return await self.ask(records.compare_and_swap(key, field, expected, value))

    async def exchange(self, key: Key, exchange: Exchange) -> Outcome:
        """Changes a record if it holds what is expected, in one step."""
        return await self.ask(records.exchange(key, exchange))

    @overload
    def run(self, name: Key) -> Run[Any]: ...
    @overload
    def run(self, name: Key, codec: Codec[T]) -> Run[T]: ...
    def run(self, name: Key, codec: Codec[Any] = codec.json) -> Run[Any]:
        """The run of this name, whose data is JSON unless a codec says otherwise. Asks the server nothing."""
        return Run(self.ask, name, codec)

    @overload
    def exactly_once_state(self, prefix: Key) -> ExactlyOnceState[str]: ...
    @overload
    def exactly_once_state(self, prefix: Key, codec: Codec[T]) -> ExactlyOnceState[T]: ...
    def exactly_once_state(self, prefix: Key, codec: Codec[Any] = codec.text) -> ExactlyOnceState[Any]:
        """The state under this prefix, whose values are text unless a codec says otherwise. Asks the server nothing."""
        return ExactlyOnceState(self.ask, prefix, codec)
