"""A command, how long it waits, and how its reply is read: what the blocking and the asyncio face share. Knows no connection."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from .replies import Reply
from .words import Word

T = TypeVar("T")


@dataclass(frozen=True)
class Request(Generic[T]):
    words: Sequence[Word]
    read: Callable[[Reply], T]
    #: How long it may wait at the server. One that waits needs a connection of its own.
    wait_ms: int = 0
