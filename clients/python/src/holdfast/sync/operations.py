"""What a store, a session and a transaction have in common: records, cells, runs and exactly-once state by name. Knows the faces of the requests, refuses to
know how they are sent."""

from abc import ABC, abstractmethod
from typing import Any, TypeVar, overload

from .. import codec, records
from ..codec import Codec
from ..fields import Fields
from ..records import Exchange, Lifetime, Outcome, Stamps
from ..request import Request
from ..words import Value, Values
from .cell import Cell
from .exactly_once import ExactlyOnceState
from .run import Run

T = TypeVar("T")


class Operations(ABC):
    @abstractmethod
    def ask(self, request: Request[T]) -> T:
        """Sends a command and reads its reply."""

    def get(self, key: str) -> Fields | None:
        """The fields of a record; None if there is none."""
        return self.ask(records.get(key))

    def put(
        self, key: str, values: Values, *, replace: bool = False, lifetime: Lifetime | None = None, stamp: Stamps | None = None
    ) -> int:
        """Writes fields, and the record's lifetime if one is given, in one step. `replace` drops the fields that are not named.
        Returns how many fields are new."""
        return self.ask(records.put(key, values, replace, lifetime, stamp or {}))

    def delete(self, key: str) -> bool:
        """Removes a record; whether there was one."""
        return self.ask(records.delete(key))

    def compare_and_swap(self, key: str, field: str, expected: Value, value: Value) -> bool:
        """Writes a field if it holds `expected`; whether it did. Of several that expect the same value, one is told True."""
        return self.ask(records.compare_and_swap(key, field, expected, value))

    def exchange(self, key: str, exchange: Exchange) -> Outcome:
        """Changes a record if it holds what is expected, in one step."""
        return self.ask(records.exchange(key, exchange))

    @overload
    def cell(self, name: str) -> Cell[str]: ...
    @overload
    def cell(self, name: str, codec: Codec[T]) -> Cell[T]: ...
    def cell(self, name: str, codec: Codec[Any] = codec.text) -> Cell[Any]:
        """The cell of this name, whose values are text unless a codec says otherwise. Asks the server nothing."""
        return Cell(self.ask, name, codec)

    @overload
    def run(self, name: str) -> Run[Any]: ...
    @overload
    def run(self, name: str, codec: Codec[T]) -> Run[T]: ...
    def run(self, name: str, codec: Codec[Any] = codec.json) -> Run[Any]:
        """The run of this name, whose data is JSON unless a codec says otherwise. Asks the server nothing."""
        return Run(self.ask, name, codec)

    @overload
    def exactly_once_state(self, prefix: str) -> ExactlyOnceState[str]: ...
    @overload
    def exactly_once_state(self, prefix: str, codec: Codec[T]) -> ExactlyOnceState[T]: ...
    def exactly_once_state(self, prefix: str, codec: Codec[Any] = codec.text) -> ExactlyOnceState[Any]:
        """The state under this prefix, whose values are text unless a codec says otherwise. Asks the server nothing."""
        return ExactlyOnceState(self.ask, prefix, codec)
