"""The arguments of a command, from the values of a program. Knows no command and no reply."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

#: One argument as it is sent.
Word: TypeAlias = bytes

#: A value of a field. Text is sent as UTF-8, numbers in decimal, bytes as they are.
Value: TypeAlias = str | bytes | bytearray | memoryview | int | float

#: Values by name.
Values: TypeAlias = Mapping[str, Value]

#: Fields to write, by name. None removes a field.
Changes: TypeAlias = Mapping[str, Value | None]

#: A key, a prefix or another name. Names are any bytes; in text they are UTF-8, and a byte that is not part of any UTF-8 is
#: written as Python does in the names of files (`surrogateescape`). So each name that is read as text is sent as what it was.
Key: TypeAlias = str | bytes


def word(value: Value) -> Word:
    match value:
        case bool():  # which is an int
            raise TypeError("a value is text, bytes or a number, and no bool: say what it is to be written as")
        case str():
            return value.encode(errors="surrogateescape")
        case bytes():
            return value
        case bytearray() | memoryview():
            return bytes(value)
        case int():
            return b"%d" % value
        case float():
            if not math.isfinite(value):
                raise ValueError(f"{value} is no value: a number has to be finite")
            return repr(value).encode()
        case _:
            raise TypeError(f"a value is text, bytes or a number, and no {type(value).__name__}")


def key_word(key: Key) -> Word:
    """A key, a prefix or another name."""
    if not isinstance(key, (str, bytes)):
        raise TypeError(f"a name is text or bytes, and no {type(key).__name__}")
    return word(key)


def name_of(key: Key) -> str:
    """A name as text."""
    return key_word(key).decode(errors="surrogateescape")


def whole(value: int, name: str) -> Word:
    """A whole number. Whether it is in range is the server's to say."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is {value!r}, and has to be a whole number")
    return b"%d" % value


def counted_values(values: Values) -> list[Word]:
    """`n field value …`"""
    return [b"%d" % len(values), *(each for name, value in values.items() for each in (word(name), word(value)))]


def counted_list(items: Sequence[Value]) -> list[Word]:
    """`n item …`"""
    if isinstance(items, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"a list of values is wanted, and {items!r} is one value")
    return [b"%d" % len(items), *map(word, items)]


def flat(groups: Iterable[Iterable[Word]]) -> list[Word]:
    return [each for group in groups for each in group]
