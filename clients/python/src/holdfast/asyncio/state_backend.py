"""What a stateful node needs of the state that it keeps: the face of `ExactlyOnceState`, which is on the server, and of `MemoryState`, which
is in the process. Knows what can be asked, and nothing of where it is kept."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from ..registers import AnyVersion, Applied, Restored, StateVersion
from ..words import Key, Value

T = TypeVar("T")


class StateBackend(Protocol[T]):
    """Keyed state in which every update has a version, and an update that is sent again changes nothing."""

    async def put(self, key: Key, value: T, version: AnyVersion) -> Applied:
        """Puts a value, unless a version as new was applied before."""

    async def put_ordered(self, key: Key, value: T, version: AnyVersion) -> Applied:
        """Puts a value in its turn."""

    async def get(self, key: Key) -> tuple[T, StateVersion] | None:
        """What a key holds, and by which version."""

    async def mget(self, keys: Sequence[Key]) -> list[tuple[T, StateVersion] | None]:
        """What several keys hold, in their order."""

    async def add(self, key: Key, version: AnyVersion, number: int) -> Applied:
        """Adds to a number, once for this version."""

    async def add_ordered(self, key: Key, version: AnyVersion, number: int) -> Applied:
        """Adds to a number in its turn."""

    async def seal(self, key: Key, version: AnyVersion) -> int:
        """Says that no version below this one is still to come."""

    async def snapshot(self, position: Value | None = None) -> bytes:
        """All of the state as one blob."""

    async def restore(self, snapshot: bytes) -> Restored:
        """Makes the state what it was when the blob was made."""

    async def merge(self, snapshot: bytes) -> Restored:
        """Takes from the blob what is newer."""

    async def checkpoint(self, key: Key, position: Value | None = None) -> int:
        """Keeps a snapshot under a key."""

    async def restore_checkpoint(self, key: Key) -> Restored | None:
        """Makes the state what it was at a checkpoint; None if there is none."""

    async def merge_checkpoint(self, key: Key) -> Restored | None:
        """Takes from a checkpoint what is newer; None if there is none."""
