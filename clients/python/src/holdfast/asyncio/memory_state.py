"""Exactly-once state in the process, for tests of programs that use it: the same answers as the server's, without a server. Knows where
it is kept; the rules are those of `MemoryRegisters`."""

from collections.abc import MutableMapping, Sequence
from typing import Any, Generic, TypeVar, overload

from .. import codec
from ..codec import Codec
from ..memory import MemoryRegisters
from ..registers import AnyVersion, Applied, Restored, StateVersion, check_snapshot
from ..words import Key, Value, key_word, whole, word

T = TypeVar("T")


class MemoryState(Generic[T]):
    """A `StateBackend` that lives as long as the object. Its values are text unless a codec says otherwise. `checkpoints` is where it keeps
    its checkpoints: two states that share it can take up each other's, as after a restart of the program."""

    @overload
    def __init__(self: "MemoryState[str]", *, checkpoints: MutableMapping[bytes, bytes] | None = None) -> None: ...
    @overload
    def __init__(self, codec: Codec[T], checkpoints: MutableMapping[bytes, bytes] | None = None) -> None: ...
    def __init__(self, codec: Codec[Any] = codec.text, checkpoints: MutableMapping[bytes, bytes] | None = None) -> None:
        self._codec = codec
        self._registers = MemoryRegisters()
        self._checkpoints = checkpoints if checkpoints is not None else {}

    async def put(self, key: Key, value: T, version: AnyVersion) -> Applied:
        """Puts a value, unless a version as new was applied before."""
        return self._registers.update(key_word(key), version, self._codec.encode(value), False)

    async def put_ordered(self, key: Key, value: T, version: AnyVersion) -> Applied:
        """Puts a value when all versions before it, from 1 on, have come. One with an epoch waits until `seal`."""
        return self._registers.update(key_word(key), version, self._codec.encode(value), True)

    async def get(self, key: Key) -> tuple[T, StateVersion] | None:
        """What a key holds, and by which version."""
        return self._get(key)

    async def mget(self, keys: Sequence[Key]) -> list[tuple[T, StateVersion] | None]:
        """What several keys hold, in their order."""
        return [self._get(key) for key in keys]

    async def add(self, key: Key, version: AnyVersion, number: int) -> Applied:
        """Adds to a number, once for this version. A version that comes after a newer one is lost."""
        return self._registers.update(key_word(key), version, int(whole(number, "number")), False)

    async def add_ordered(self, key: Key, version: AnyVersion, number: int) -> Applied:
        """Adds to a number when all versions before this one, from 1 on, have come. One with an epoch waits until `seal`."""
        return self._registers.update(key_word(key), version, int(whole(number, "number")), True)

    async def seal(self, key: Key, version: AnyVersion) -> int:
        """Says that no version below this one is still to come, and applies what has waited. Returns how many that were."""
        return self._registers.seal(key_word(key), version)

    async def snapshot(self, position: Value | None = None) -> bytes:
        """All of the state as one blob, with the input position that it belongs to. Only a state in memory can read it."""
        return self._snapshot(position)[0]

    async def restore(self, snapshot: bytes) -> Restored:
        """Makes the state what it was when the blob was made."""
        check_snapshot(snapshot)
        return self._registers.restore(bytes(snapshot), False)

    async def merge(self, snapshot: bytes) -> Restored:
        """Takes from the blob what is newer than what there is."""
        check_snapshot(snapshot)
        return self._registers.restore(bytes(snapshot), True)

    async def checkpoint(self, key: Key, position: Value | None = None) -> int:
        """Keeps a snapshot under this key. Returns how many keys are in it."""
        snapshot, registers = self._snapshot(position)
        self._checkpoints[key_word(key)] = snapshot
        return registers

    async def restore_checkpoint(self, key: Key) -> Restored | None:
        """Makes the state what it was at a checkpoint. None if there is none, and nothing is changed."""
        return self._from_checkpoint(key, False)

    async def merge_checkpoint(self, key: Key) -> Restored | None:
        """Takes from a checkpoint what is newer than what there is. None if there is none, and nothing is changed."""
        return self._from_checkpoint(key, True)

    def _get(self, key: Key) -> tuple[T, StateVersion] | None:
        held = self._registers.get(key_word(key))
        return None if held is None else (self._codec.decode(held[0]), held[1])

    def _snapshot(self, position: Value | None) -> tuple[bytes, int]:
        return self._registers.snapshot(None if position is None else word(position))

    def _from_checkpoint(self, key: Key, merge: bool) -> Restored | None:
        snapshot = self._checkpoints.get(key_word(key))
        return None if snapshot is None else self._registers.restore(snapshot, merge)
