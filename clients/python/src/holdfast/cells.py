"""Cells: values with a version, a history and a watch. Their commands, and what comes back. Knows no connection, and refuses to
know what a value means."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from .codec import Codec
from .records import block
from .replies import Reply, flag, integer, items, name, optional, raw, row
from .request import Request
from .words import Word, whole, word

T = TypeVar("T")


@dataclass(frozen=True)
class Version(Generic[T]):
    """A value of a cell, and which of its versions it is."""

    value: T
    #: 1 is the first. It only grows, so it serves as a fencing token.
    version: int
    #: When it was written, in microseconds by the server's clock. Of two versions of a cell the later has the later time.
    updated_at_us: int


@dataclass(frozen=True)
class Done:
    """The value was written, in this version."""

    version: int


@dataclass(frozen=True)
class Refused(Generic[T]):
    """The version was another; nothing was written."""

    #: The value that the cell holds and its version, unless there is no cell.
    current: tuple[T, int] | None


#: What became of a compare-and-swap.
Swap: TypeAlias = Done | Refused[T]


@dataclass(frozen=True)
class CellRequests(Generic[T]):
    """The commands of one cell. Its name is text, as `Key` says."""

    name: str
    codec: Codec[T]

    def init(self, value: T) -> Request[int]:
        return Request([b"CELL.INIT", word(self.name), self.codec.encode(value)], integer)

    def get(self, *options: Word, wait_ms: int = 0) -> Request[Version[T] | None]:
        return Request([b"CELL.GETV", word(self.name), *options], self._optional_version, wait_ms)

    def get_version(self, version: int) -> Request[Version[T] | None]:
        return self.get(b"VERSION", whole(version, "version"))

    def get_as_of(self, time_us: int) -> Request[Version[T] | None]:
        return self.get(b"ASOF", whole(time_us, "time_us"))

    def wait_after(self, version: int, wait_ms: int) -> Request[Version[T] | None]:
        return self.get(b"AFTER", whole(version, "version"), *block(wait_ms), wait_ms=wait_ms)

    def set(self, value: T, *options: Word) -> Request[int]:
        return Request([b"CELL.SET", word(self.name), self.codec.encode(value), *options], integer)

    def set_for(self, value: T, ttl_ms: int) -> Request[int]:
        return self.set(value, b"PX", whole(ttl_ms, "ttl_ms"))

    def cas(self, expected: int, value: T, *options: Word) -> Request[Swap[T]]:
        words = [b"CELL.CAS", word(self.name), whole(expected, "expected"), self.codec.encode(value), *options]
        return Request([*words, b"WITHCURRENT"], self._swap)

    def cas_for(self, expected: int, value: T, ttl_ms: int) -> Request[Swap[T]]:
        return self.cas(expected, value, b"PX", whole(ttl_ms, "ttl_ms"))

    def history(self, before: int | None, limit: int) -> Request[list[Version[T]]]:
        words = [b"CELL.HISTORY", word(self.name), b"LIMIT", whole(limit, "limit")]
        if before is not None:
            words += [b"BEFORE", whole(before, "before")]
        return Request(words, lambda reply: [self._version(each) for each in items(reply)])

    def delete(self) -> Request[bool]:
        return Request([b"CELL.DEL", word(self.name)], flag)

    def delete_if(self, version: int) -> Request[bool]:
        return Request([b"CELL.DEL", word(self.name), b"IF", whole(version, "version")], flag)

    def _version(self, reply: Reply) -> Version[T]:
        value, version, updated_at_us = row(reply, 3)
        return Version(self._decode(value), integer(version), integer(updated_at_us))

    def _optional_version(self, reply: Reply) -> Version[T] | None:
        return optional(reply, self._version)

    def _swap(self, reply: Reply) -> Swap[T]:
        done, value, version = row(reply, 3)
        if done is not None:
            return Done(integer(done))
        return Refused(None if version is None else (self._decode(value), integer(version)))

    def _decode(self, reply: Reply) -> T:
        decode: Callable[[bytes], T] = self.codec.decode
        return decode(raw(reply))


def get_cells(names: Sequence[str], codec: Codec[T]) -> Request[list[Version[T] | None]]:
    """Several cells as they are at one instant."""
    reader = CellRequests("", codec)
    words = [b"CELL.MGET", *map(word, names)]
    return Request(words, lambda reply: [reader._optional_version(each) for each in items(reply)])


#: What the name of a cell has at most within its branch.
CELL_NAME_BYTES_MAX = 1024
_RESERVED = "_strata/"


def check_branch_name(branch: str) -> None:
    if not branch:
        raise ValueError("the name of a branch is empty")
    if wrong := [each for each in "/:\0" if each in branch]:
        raise ValueError(f"the name of a branch has no {wrong[0]!r}: {branch!r}")


def check_cell_name(cell: str) -> None:
    if not 1 <= len(word(cell)) <= CELL_NAME_BYTES_MAX:
        raise ValueError(f"the name of a cell in a branch has 1 to {CELL_NAME_BYTES_MAX} bytes, and not {len(word(cell))}")
    if "\0" in cell:
        raise ValueError(f"the name of a cell has no NUL: {cell!r}")
    if cell.startswith(_RESERVED):
        raise ValueError(f"a name that begins with {_RESERVED} is reserved: {cell!r}")


@dataclass(frozen=True)
class BranchRequests:
    """The commands of one branch: a cell's key is `branch/name`."""

    branch: str

    def __post_init__(self) -> None:
        check_branch_name(self.branch)

    @property
    def prefix(self) -> str:
        return f"{self.branch}/"

    def key(self, cell: str) -> str:
        check_cell_name(cell)
        return self.prefix + cell

    def cells(self, cursor: Word) -> Request[tuple[Word, list[str]]]:
        """A page: the next cursor, which is `0` behind the last one, and its names, without the branch."""
        skipped = len(word(self.prefix))

        def read(reply: Reply) -> tuple[Word, list[str]]:
            following, names = row(reply, 2)
            return raw(following), [name(raw(each)[skipped:]) for each in items(names)]

        return Request([b"CELL.LIST", b"PREFIX", word(self.prefix), b"CURSOR", cursor], read)

    def fork(self, to: "BranchRequests") -> Request[int]:
        return Request([b"CELL.FORK", word(self.prefix), word(to.prefix)], integer)

    def drop_cells(self) -> Request[int]:
        return Request([b"CELL.DROP", word(self.prefix)], integer)
