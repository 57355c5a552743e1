"""State that takes each update once: registers under a prefix, and checkpoints of all of them. Their commands, and what comes back.
Knows no connection, and refuses to know what a value means and where versions come from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

from .codec import Codec
from .errors import ReplyError
from .replies import Reply, flag, integer, items, optional, raw, row, text
from .request import Request
from .words import Key, Value, Word, key_word, name_of, whole, word

T = TypeVar("T")

#: What became of an update. `applied`: now. `duplicate`: before. `mismatch`: another update was applied, or waits, with this version;
#: this one was not. `stale`: a newer version was applied before; this one was not, or long ago. `buffered`: it waits until all
#: versions before it have come.
Applied: TypeAlias = Literal["applied", "duplicate", "mismatch", "stale", "buffered"]


class StateVersion(NamedTuple):
    """The version of an update: a round of an epoch. A number is a round of epoch 0; the epoch counts first."""

    epoch: int
    round: int


    def __str__(self) -> str:
        """The shorter form, as replies have it: without an epoch where it is 0."""
        return f"{self.epoch}.{self.round}" if self.epoch else f"{self.round}"


#: As it is given: a number, or an epoch and a round.
AnyVersion: TypeAlias = int | tuple[int, int]


def state_version(version: AnyVersion) -> StateVersion:
    """A version as it is compared. A number is a round of epoch 0."""
    version_word(version)  # which refuses what is none
    return StateVersion(*version) if isinstance(version, tuple) else StateVersion(0, version)


@dataclass(frozen=True)
class Restored:
    """What a restore or a merge has done."""

    #: How many keys were set.
    registers: int
    #: The input position that the snapshot has, if it has one.
    position: bytes | None


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

    prefix: Key
    codec: Codec[T]

    @property
    def prefix_name(self) -> str:
        return name_of(self.prefix)

    def put(self, key: Key, value: T, version: AnyVersion) -> Request[Applied]:
        return Request([b"REG.PUT", self._key(key), version_word(version), self.codec.encode(value)], _read_applied)

    def put_ordered(self, key: Key, value: T, version: AnyVersion) -> Request[Applied]:
        words = [b"REG.PUT", self._key(key), version_word(version), self.codec.encode(value), b"ORDERED"]
        return Request(words, _read_applied)

    def add(self, key: Key, version: AnyVersion, number: int) -> Request[Applied]:
        return Request([b"REG.INCRBY", self._key(key), version_word(version), whole(number, "number")], _read_applied)

    def add_ordered(self, key: Key, version: AnyVersion, number: int) -> Request[Applied]:
        words = [b"REG.INCRBY", self._key(key), version_word(version), whole(number, "number"), b"ORDERED"]
        return Request(words, _read_applied)

    def get(self, key: Key) -> Request[tuple[T, StateVersion] | None]:
        return Request([b"REG.GET", self._key(key)], self._read_held)

    def mget(self, keys: Sequence[Key]) -> Request[list[tuple[T, StateVersion] | None]]:
        return Request([b"REG.MGET", *map(self._key, keys)], lambda reply: [self._read_held(each) for each in items(reply)])

    def seal(self, key: Key, version: AnyVersion) -> Request[int]:
        return Request([b"REG.SEAL", self._key(key), version_word(version)], integer)

    def snapshot(self, position: Value | None) -> Request[bytes]:
        return Request(self._snapshot(position), raw)

    def checkpoint(self, key: Key, position: Value | None) -> Request[int]:
        return Request([*self._snapshot(position), b"STORE", key_word(key)], integer)

    def restore(self, snapshot: bytes, *policy: Word) -> Request[Restored]:
        check_snapshot(snapshot)
        # FROM is a word of the command's own: no blob is that short.
        return self._restore(bytes(snapshot), *policy)

    def restore_checkpoint(self, key: Key, *policy: Word) -> Request[Restored]:
        return self._restore(b"FROM", key_word(key), *policy)

    def _restore(self, *words: Word) -> Request[Restored]:
        """IMPORTANT: always INTO this state's own prefix. Without it, a snapshot of another state would set that one back."""
        return Request([b"REG.RESTORE", *words, b"INTO", key_word(self.prefix)], _read_restored)

    def _snapshot(self, position: Value | None) -> list[Word]:
        return [b"REG.SNAPSHOT", b"PREFIX", key_word(self.prefix), *([] if position is None else [b"POSITION", word(position)])]

    def _key(self, key: Key) -> Word:
        return key_word(self.prefix) + key_word(key)

    def _read_held(self, reply: Reply) -> tuple[T, StateVersion] | None:
        if reply is None:
            return None
        value, version = row(reply, 2)
        decode: Callable[[bytes], T] = self.codec.decode
        return decode(raw(value)), _read_version(version)


def check_snapshot(snapshot: bytes) -> None:
    if not isinstance(snapshot, (bytes, bytearray, memoryview)):
        raise TypeError(f"a snapshot is bytes, and no {type(snapshot).__name__}")


def has_checkpoint(key: Key) -> Request[bool]:
    return Request([b"EXISTS", key_word(key)], flag, is_holdfast_only=True)


def _read_restored(reply: Reply) -> Restored:
    registers, position = row(reply, 2)
    return Restored(integer(registers), optional(position, raw))


def _read_applied(reply: Reply) -> Applied:
    applied = _APPLIED.get(text(reply))
    if applied is None:
        raise ReplyError(f"the reply should have the fate of an update, and has {reply!r:.200}")
    return applied


def version_word(version: AnyVersion) -> Word:
    if not isinstance(version, tuple):
        return whole(version, "version")
    epoch, round_ = version
    return b"%b.%b" % (whole(epoch, "epoch"), whole(round_, "round"))


def _read_version(reply: Reply) -> StateVersion:
    epoch, dot, round_ = raw(reply).rpartition(b".")
    return StateVersion(integer(epoch) if dot else 0, integer(round_))
