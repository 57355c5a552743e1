"""Reads the parts of a reply, over RESP2 and over RESP3. Knows no command.

Replies are read without decoding: strings and status lines are bytes. A map is a dict in RESP3 and a flat list in RESP2; a
number is an int or a float in RESP3 and may be bytes in RESP2.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import TypeAlias, TypeVar, Union

from .errors import ReplyError

T = TypeVar("T")

Reply: TypeAlias = Union[None, bool, int, float, bytes, str, Exception, list["Reply"], dict["Reply", "Reply"]]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_INTEGER = re.compile(rb"-?[0-9]+\Z")


def raw(reply: Reply) -> bytes:
    if isinstance(reply, str):
        return reply.encode()
    if not isinstance(reply, bytes):
        raise _unexpected("a string", reply)
    return reply


def text(reply: Reply) -> str:
    """Text. Bytes that are no UTF-8 are an error: two different values must not become the same one."""
    if isinstance(reply, str):
        return reply
    data = raw(reply)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ReplyError(f"a text is not UTF-8: {data!r}") from error


def name(reply: Reply) -> str:
    """A key or another name. A byte that is no UTF-8 becomes what `words.word` makes the same byte of, so that different names stay
    different and one strange name does not end a scan."""
    return reply if isinstance(reply, str) else raw(reply).decode(errors="surrogateescape")


def integer(reply: Reply) -> int:
    if isinstance(reply, int) and not isinstance(reply, bool):
        return reply
    if isinstance(reply, bytes) and _INTEGER.match(reply):
        return int(reply)
    raise _unexpected("an integer", reply)


def double(reply: Reply) -> float:
    if isinstance(reply, (int, float)) and not isinstance(reply, bool):
        return float(reply)
    try:
        return float(raw(reply))
    except ValueError as error:
        raise _unexpected("a number", reply) from error


def flag(reply: Reply) -> bool:
    return reply if isinstance(reply, bool) else integer(reply) != 0


def items(reply: Reply) -> list[Reply]:
    if not isinstance(reply, list):
        raise _unexpected("a list", reply)
    return reply


def row(reply: Reply, length: int) -> list[Reply]:
    """A list of so many parts."""
    parts = items(reply)
    if len(parts) != length:
        raise _unexpected(f"{length} parts", reply)
    return parts


def pairs(reply: Reply) -> list[tuple[Reply, Reply]]:
    if isinstance(reply, dict):
        return list(reply.items())
    flat = items(reply)
    if len(flat) % 2 != 0:
        raise _unexpected("a map", reply)
    return list(zip(flat[::2], flat[1::2]))


def named(reply: Reply) -> dict[str, Reply]:
    """A map whose keys are names. A name that it does not have reads as nil with `get`."""
    return {name(each): value for each, value in pairs(reply)}


def optional(reply: Reply, read: Callable[[Reply], T]) -> T | None:
    """Reads what may be absent."""
    return None if reply is None else read(reply)


def time(reply: Reply) -> datetime:
    """Unix milliseconds."""
    try:
        return _EPOCH + timedelta(milliseconds=integer(reply))
    except OverflowError as error:
        raise _unexpected("a time", reply) from error


def ok(_reply: Reply) -> None:
    """A reply that says nothing but that the command was executed."""


def _unexpected(what: str, reply: Reply) -> ReplyError:
    return ReplyError(f"the reply should have {what}, and has {reply!r:.200}")
