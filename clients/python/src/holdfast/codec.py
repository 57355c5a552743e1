"""How the values of cells and the data of events become bytes, and bytes become them again. Knows no command."""

import json as _json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from . import replies
from .errors import ReplyError
from .words import Word, whole

T = TypeVar("T")


@dataclass(frozen=True)
class Codec(Generic[T]):
    encode: Callable[[T], Word]
    decode: Callable[[bytes], T]


def _encode_json(data: Any) -> Word:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    return _json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _decode_json(data: bytes) -> Any:
    return parsed(data, data)


def parsed(data: bytes | str, otherwise: Any) -> Any:
    """What JSON says, or something else if it is none."""
    try:
        return _json.loads(data if isinstance(data, str) else data.decode())
    except ValueError:
        return otherwise


def _encode_raw(data: bytes) -> Word:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data is bytes here, and no {type(data).__name__}")
    return bytes(data)


def _encode_text(data: str) -> Word:
    if not isinstance(data, str):
        raise TypeError(f"a value is text here, and no {type(data).__name__}")
    return data.encode()


def _decode_integer(data: bytes) -> int:
    try:
        return replies.integer(data)
    except ReplyError:
        raise ReplyError(f"{data!r} is no whole number") from None


#: JSON. Bytes are sent as they are, and data that is no JSON comes back as bytes. Bytes that happen to be JSON come back parsed:
#: a program that stores other formats uses `raw`.
json: Codec[Any] = Codec(_encode_json, _decode_json)

#: Bytes in, bytes out.
raw: Codec[bytes] = Codec(_encode_raw, bytes)

#: Text, as UTF-8. Bytes that are none are a ReplyError.
text: Codec[str] = Codec(_encode_text, replies.text)

#: Whole numbers, in decimal.
integer: Codec[int] = Codec(lambda value: whole(value, "the value"), _decode_integer)
