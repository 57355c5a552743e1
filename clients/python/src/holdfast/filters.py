"""Conditions on a field of a record, with the meaning that HFIND and IDX.RANGE give them. Knows no server: over a plain Redis the
package decides by itself whether a record passes."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from .words import Value, Word, counted_list, word

_Operator: TypeAlias = Callable[[int], bool]

#: Each by what it says of the order of a field and a value.
_OPERATORS: Mapping[str, _Operator] = {
    "eq": lambda order: order == 0,
    "ne": lambda order: order == 0,  # and then the opposite
    "lt": lambda order: order < 0,
    "le": lambda order: order <= 0,
    "gt": lambda order: order > 0,
    "ge": lambda order: order >= 0,
    "in": lambda order: order == 0,
    "notin": lambda order: order == 0,
}

_WHOLE = re.compile(rb"(0|-?[1-9][0-9]*)\Z")
_DECIMAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")


class Filter:
    """A condition on one field. Two numbers compare as numbers, anything else as bytes. A record without the field passes only
    `ne` and `not_in`."""

    __slots__ = ("_field", "_op", "_values")

    def __init__(self, field: str, op: str, values: Sequence[Word]) -> None:
        self._field, self._op, self._values = field, op, values

    @staticmethod
    def eq(field: str, value: Value) -> "Filter":
        """The field is equal to a value."""
        return Filter(field, "eq", [word(value)])

    @staticmethod
    def ne(field: str, value: Value) -> "Filter":
        """The field differs from a value, or is absent."""
        return Filter(field, "ne", [word(value)])

    @staticmethod
    def lt(field: str, value: Value) -> "Filter":
        """The field is less than a value."""
        return Filter(field, "lt", [word(value)])

    @staticmethod
    def le(field: str, value: Value) -> "Filter":
        """The field is less than a value or equal to it."""
        return Filter(field, "le", [word(value)])

    @staticmethod
    def gt(field: str, value: Value) -> "Filter":
        """The field is greater than a value."""
        return Filter(field, "gt", [word(value)])

    @staticmethod
    def ge(field: str, value: Value) -> "Filter":
        """The field is greater than a value or equal to it."""
        return Filter(field, "ge", [word(value)])

    @staticmethod
    def is_in(field: str, values: Sequence[Value]) -> "Filter":
        """The field is equal to one of some values."""
        return Filter(field, "in", counted_list(values)[1:])

    @staticmethod
    def not_in(field: str, values: Sequence[Value]) -> "Filter":
        """The field is equal to none of some values, or is absent."""
        return Filter(field, "notin", counted_list(values)[1:])

    @property
    def words(self) -> list[Word]:
        """`FILTER field op value`, as a command has it."""
        count = [b"%d" % len(self._values)] if self._op in ("in", "notin") else []
        return [b"FILTER", word(self._field), word(self._op), *count, *self._values]

    def passes(self, fields: Mapping[str, bytes]) -> bool:
        """Whether a record with these fields passes."""
        held = fields.get(self._field)
        any_holds = held is not None and any(_OPERATORS[self._op](_order(held, value)) for value in self._values)
        return not any_holds if self._op in ("ne", "notin") else any_holds


def _order(a: bytes, b: bytes) -> int:
    """Less than 0 if the first is less, 0 if they are equal, more than 0 if it is greater."""
    numbers = (_whole(a), _whole(b))
    if numbers[0] is not None and numbers[1] is not None:
        return _compare(numbers[0], numbers[1])
    doubles = (_double(a), _double(b))
    if doubles[0] is not None and doubles[1] is not None:
        return _compare(doubles[0], doubles[1])
    return _compare(a, b)


def _compare(a: int | float | bytes, b: int | float | bytes) -> int:
    return (a > b) - (a < b)  # type: ignore[operator]


def _whole(text: bytes) -> int | None:
    """A number of 64 bits, exactly: identifiers do not fit a double."""
    number = int(text) if len(text) <= 20 and _WHOLE.match(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _double(text: bytes) -> float | None:
    number = float(text) if _DECIMAL.match(text) else None
    return number if number is not None and abs(number) != float("inf") else None
