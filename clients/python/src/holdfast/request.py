"""A command, how long it waits, and how its reply is read: what the blocking and the asyncio face share. Knows no connection."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from .errors import NeedsHoldfastError
from .replies import Reply
from .words import Word

T = TypeVar("T")


@dataclass(frozen=True)
class Request(Generic[T]):
    words: Sequence[Word]
    read: Callable[[Reply], T]
    #: How long it may wait at the server. One that waits needs a connection of its own.
    wait_ms: int = 0
    #: The command that does the same on a plain Redis, with a reply of the same form.
    plain: Sequence[Word] | None = None
    #: Has no meaning on a plain Redis, although that may know the command.
    is_holdfast_only: bool = False
    #: Of a request that takes something: the requests that give back what it took, if its caller is cancelled before it gets the reply.
    #: None of them is sent twice.
    give_back: "Callable[[T], Sequence[Request[Any]]] | None" = None

    def on_plain_redis(self) -> "Request[T]":
        """The request as a plain Redis takes it."""
        if self.plain is not None:
            return replace(self, words=self.plain, plain=None)
        if self.is_holdfast_only or is_own_command(self.words[0]):
            command = self.words[0].decode()
            raise NeedsHoldfastError("ERR", f"{command} needs Holdfast: this server has not all of its commands")
        return self


def is_own_command(command: Word) -> bool:
    """Whether a command is one of Holdfast's own. Families have a dot in their names; records have not."""
    return b"." in command or command in (b"HCAS", b"HPUT", b"HFIND", b"CLAIM", b"SWEEP")
