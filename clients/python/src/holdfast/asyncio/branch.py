"""A branch: cells whose keys have a common prefix, to be copied and removed together. Knows how a branch and its cells are named."""

from collections.abc import AsyncIterator
from typing import Any, TypeVar, overload

from .. import codec
from ..cells import BranchRequests
from ..codec import Codec
from ..words import Key, name_of
from .asker import Ask
from .cell import Cell

T = TypeVar("T")


class Branch:
    """The cells of a branch: the key of one is `branch/name`. The name of a branch has no `/`, no `:` and no NUL."""

    def __init__(self, ask: Ask, name: Key) -> None:
        self._ask = ask
        self._requests = BranchRequests(name_of(name))

    @property
    def name(self) -> str:
        return self._requests.branch

    @overload
    def cell(self, name: Key) -> Cell[str]: ...
    @overload
    def cell(self, name: Key, codec: Codec[T]) -> Cell[T]: ...
    def cell(self, name: Key, codec: Codec[Any] = codec.text) -> Cell[Any]:
        """The cell of this name in the branch. A name has 1 to 1,024 bytes, no NUL, and does not begin with `_strata/`: others are a
        ValueError. Asks the server nothing."""
        return Cell(self._ask, self._requests.key(name_of(name)), codec)

    async def cells(self) -> AsyncIterator[str]:
        """The names of its cells, without that of the branch, page by page, with SCAN's guarantee."""
        cursor = b"0"
        while True:
            cursor, names = await self._ask(self._requests.cells(cursor))
            for name in names:
                yield name
            if cursor == b"0":
                return

    async def fork(self, name: Key) -> int:
        """Copies all cells, as they are at one instant, to a new branch of this name: with versions, history and time to live. Returns
        how many they are. A branch that has cells already is a ServerError."""
        return await self._ask(self._requests.fork(BranchRequests(name_of(name))))

    async def drop_cells(self) -> int:
        """Removes all its cells with their history. Returns how many they were."""
        return await self._ask(self._requests.drop_cells())
