"""State that takes each update once, with checkpoints. Knows what can be asked of it, refuses to know what a value means and where
versions come from."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from .. import registers
from ..codec import Codec
from ..errors import ServerError
from ..registers import AnyVersion, Applied, Restored, StateRequests, StateVersion
from ..words import Key, Value
from .asker import Ask

T = TypeVar("T")


class ExactlyOnceState(Generic[T]):
    """Keyed state in which every update has a version: an update that is sent again, or comes too late, changes nothing. So input
    can be replayed from the last checkpoint, and no count is wrong afterwards."""

    def __init__(self, ask: Ask, prefix: Key, codec: Codec[T]) -> None:
        self._ask = ask
        self._requests = StateRequests(prefix, codec)

    @property
    def prefix(self) -> str:
        return self._requests.prefix_name

    async def put(self, key: Key, value: T, version: AnyVersion) -> Applied:
        """Puts a value, unless a version as new was applied before."""
        return await self._ask(self._requests.put(key, value, version))

    async def put_ordered(self, key: Key, value: T, version: AnyVersion) -> Applied:
        """Puts a value when all versions before it, from 1 on, have come. A version with an epoch, which has no next one, waits until
        `seal`; a key has versions of one of the two kinds."""
        return await self._ask(self._requests.put_ordered(key, value, version))

    async def get(self, key: Key) -> tuple[T, StateVersion] | None:
        """What a key holds, and by which version."""
        return await self._ask(self._requests.get(key))

    async def mget(self, keys: Sequence[Key]) -> list[tuple[T, StateVersion] | None]:
        """The same of several keys, in their order."""
        return await self._ask(self._requests.mget(keys)) if keys else []

    async def add(self, key: Key, version: AnyVersion, number: int) -> Applied:
        """Adds to a number, once for this version. A version that comes after a newer one is lost: where that can happen, use
        `add_ordered`."""
        return await self._ask(self._requests.add(key, version, number))

    async def add_ordered(self, key: Key, version: AnyVersion, number: int) -> Applied:
        """Adds to a number when all versions before this one, from 1 on, have come. A version with an epoch waits until `seal`."""
        return await self._ask(self._requests.add_ordered(key, version, number))

    async def seal(self, key: Key, version: AnyVersion) -> int:
        """Says that no version below this one is still to come, and applies what has waited. Returns how many that were."""
        return await self._ask(self._requests.seal(key, version))

    async def snapshot(self, position: Value | None = None) -> bytes:
        """All of the state as one blob, with the input position that it belongs to."""
        return await self._ask(self._requests.snapshot(position))

    async def restore(self, snapshot: bytes) -> Restored:
        """Makes this state what the blob has, whichever state that is of, and returns the position that it has."""
        return await self._ask(self._requests.restore(snapshot))

    async def merge(self, snapshot: bytes) -> Restored:
        """Takes from the blob what is newer than what there is, and returns the position that it has."""
        return await self._ask(self._requests.restore(snapshot, b"MERGE"))

    async def checkpoint(self, key: Key, position: Value | None = None) -> int:
        """Keeps a snapshot at the server, as a string under this key. Returns how many registers are in it."""
        return await self._ask(self._requests.checkpoint(key, position))

    async def restore_checkpoint(self, key: Key) -> Restored | None:
        """Makes this state what it was at a checkpoint. None if there is no checkpoint, and nothing is changed; a checkpoint without
        a position is a `Restored` without one."""
        return await self._from_checkpoint(key)

    async def merge_checkpoint(self, key: Key) -> Restored | None:
        """Takes from a checkpoint what is newer than what there is. None if there is no checkpoint, and nothing is changed."""
        return await self._from_checkpoint(key, b"MERGE")

    async def _from_checkpoint(self, key: Key, *policy: bytes) -> Restored | None:
        try:
            return await self._ask(self._requests.restore_checkpoint(key, *policy))
        except ServerError as error:
            # Asked only now, so that a checkpoint that is there takes one request.
            if error.code != "ERR" or await self._ask(registers.has_checkpoint(key)):
                raise
            return None
