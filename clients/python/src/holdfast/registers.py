"""State that takes each update once: registers under a prefix, and checkpoints of all of them. Their commands, and what comes back.
Knows no connection, and refuses to know what a value means and where versions come from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

from .codec import Codec
from .errors import ReplyError
from .replies import Reply, flag, integer, items, optional, raw, row, text
from .request import Request
from .words import Value, Word, whole, word

T = TypeVar("T")

#: What became of an update. `applied`: now. `duplicate`: before. `mismatch`: another update was applied, or waits, with this version;
#: this one was not. `stale`: a newer version was applied before; this one was not, or long ago. `buffered`: it waits until all
#: versions before it have come.
Applied: TypeAlias = Literal["applied", "duplicate", "mismatch", "stale", "buffered"]


class StateVersion(NamedTuple):
    """The version of an update: a round of an epoch. A number is a round of epoch 0; the epoch counts first."""

    epoch: int
    round: int


#: As it is given: a number, or an epoch and a round.
AnyVersion: TypeAlias = int | tuple[int, int]

_APPLIED: Mapping[str, Applied] = {
    "APPLIED": "applied",
    "DUPLICATE": "duplicate",
    "MISMATCH": "mismatch",
    "STALE": "stale",
    "BUFFERED": "buffered",
}


@dataclass(frozen=True)
class StateRequests(Generic[T]):
    """The commands of the state under one prefix."""

    prefix: str
    codec: Codec[T]

    def put(self, key: str, value: T, version: AnyVersion) -> Request[Applied]:
        return Request([b"REG.PUT", self._key(key), _version_word(version), self.codec.encode(value)], _read_applied)

    def put_ordered(self, key: str, value: T, version: int) -> Request[Applied]:
        words = [b"REG.PUT", self._key(key), whole(version, "version"), self.codec.encode(value), b"ORDERED"]
        return Request(words, _read_applied)

    def add(self, key: str, version: AnyVersion, number: int) -> Request[Applied]:
        return Request([b"REG.INCRBY", self._key(key), _version_word(version), whole(number, "number")], _read_applied)

    def add_ordered(self, key: str, version: int, number: int) -> Request[Applied]:
        words = [b"REG.INCRBY", self._key(key), whole(version, "version"), whole(number, "number"), b"ORDERED"]
        return Request(words, _read_applied)

    def get(self, key: str) -> Request[tuple[T, StateVersion] | None]:
        return Request([b"REG.GET", self._key(key)], self._read_held)

    def mget(self, keys: Sequence[str]) -> Request[list[tuple[T, StateVersion] | None]]:
        return Request([b"REG.MGET", *map(self._key, keys)], lambda reply: [self._read_held(each) for each in items(reply)])

    def seal(self, key: str, version: int) -> Request[int]:
        return Request([b"REG.SEAL", self._key(key), whole(version, "version")], integer)

    def snapshot(self, position: Value | None) -> Request[bytes]:
        return Request(self._snapshot(position), raw)

    def checkpoint(self, key: str, position: Value | None) -> Request[int]:
        return Request([*self._snapshot(position), b"STORE", word(key)], integer)

    def _snapshot(self, position: Value | None) -> list[Word]:
        return [b"REG.SNAPSHOT", b"PREFIX", word(self.prefix), *([] if position is None else [b"POSITION", word(position)])]

    def _key(self, key: str) -> Word:
        return word(self.prefix + key)

    def _read_held(self, reply: Reply) -> tuple[T, StateVersion] | None:
        if reply is None:
            return None
        value, version = row(reply, 2)
        decode: Callable[[bytes], T] = self.codec.decode
        return decode(raw(value)), _read_version(version)


def restore(snapshot: bytes, *policy: Word) -> Request[bytes | None]:
    """FROM is a word of the command's own: no blob is that short."""
    if not isinstance(snapshot, (bytes, bytearray, memoryview)):
        raise TypeError(f"a snapshot is bytes, and no {type(snapshot).__name__}")
    return Request([b"REG.RESTORE", bytes(snapshot), *policy], _read_position)


def restore_checkpoint(key: str, *policy: Word) -> Request[bytes | None]:
    return Request([b"REG.RESTORE", b"FROM", word(key), *policy], _read_position)


def has_checkpoint(key: str) -> Request[bool]:
    return Request([b"EXISTS", word(key)], flag)


def _read_position(reply: Reply) -> bytes | None:
    _, position = row(reply, 2)
    return optional(position, raw)


def _read_applied(reply: Reply) -> Applied:
    applied = _APPLIED.get(text(reply))
    if applied is None:
        raise ReplyError(f"the reply should have the fate of an update, and has {reply!r:.200}")
    return applied


def _version_word(version: AnyVersion) -> Word:
    if not isinstance(version, tuple):
        return whole(version, "version")
    epoch, round_ = version
    return b"%b.%b" % (whole(epoch, "epoch"), whole(round_, "round"))


def _read_version(reply: Reply) -> StateVersion:
    epoch, dot, round_ = raw(reply).rpartition(b".")
    return StateVersion(integer(epoch) if dot else 0, integer(round_))
