"""Sessions: requests that each run once, and requests from the server to a client. Their commands, the numbers of requests, and when
a request is sent again. Knows no connection, and refuses to know what a request does."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Literal, TypeAlias, TypeVar

from .errors import HoldfastError, RetryableRequest, ServerError, UnansweredError, UnavailableError
from .patience import Deadline, pause_after_loss_s
from .records import block
from .replies import Reply, flag, integer, items, name, named, ok, optional, pairs, raw, row, time
from .request import Request
from .words import Value, Word, flat, whole, word

T = TypeVar("T")

#: How long the server keeps a session that asks nothing; the client of an open session asks three times in it.
TTL_MS = 90_000
#: How long a request is sent again whose answer was lost.
RETRY_FOR_MS = 60_000
#: How long nothing may come on an attached connection before the client asks whether the server is there.
SILENCE_S = 10.0

Hook: TypeAlias = Literal["created", "expired"]


@dataclass(frozen=True)
class PushedRequest:
    """A request from the server, or from another client, to a session."""

    #: 1, 2, 3 … in its session, never used twice.
    id: int
    payload: bytes


@dataclass(frozen=True)
class PendingRequest(PushedRequest):
    #: When it was pushed, delivered or marked as sent last.
    last_sent: datetime


@dataclass(frozen=True)
class RetriedRequest(PushedRequest):
    session_id: str
    #: When it was pushed, delivered or marked as sent last, before this retry.
    last_sent: datetime


@dataclass(frozen=True, kw_only=True)
class SessionInfo:
    id: str
    created_at: datetime
    ttl_ms: int
    #: The server has dropped the replies of the requests below it.
    low: int
    #: How many replies are kept, and their bytes.
    replies: int
    reply_bytes: int
    #: How many pushed requests are not acknowledged.
    pending: int
    #: The last pushed request.
    last_id: int
    #: Whether a connection is attached.
    attached: bool
    capabilities: Mapping[str, str]


def new_session_id() -> str:
    """A name that no other session has. The client makes it, so that opening can be repeated."""
    return f"session:{secrets.token_hex(16)}"


class RequestNumbers:
    """The numbers of a session's requests. One is open until its reply has come; LOW is the lowest open one. Threads may share it."""

    def __init__(self, following: int) -> None:
        #: From here on the numbers are those that this program gives.
        self._first = following
        self._following = following
        self._open: set[int] = set()
        self._lock = Lock()

    @property
    def following(self) -> int:
        """The number that the next request gets."""
        return self._following

    def begin(self) -> int:
        with self._lock:
            number = self._following
            self._following += 1
            self._open.add(number)
            return number

    def begin_as(self, number: int) -> None:
        """Takes the number that a request had in an earlier program. One that this program has given is a ValueError: its request has
        it, and can be sent again."""
        with self._lock:
            if number < 1:
                raise ValueError(f"{number} is no number of a request: they begin at 1")
            if self._first <= number < self._following or number in self._open:
                raise ValueError(f"{number} is the number of a request of this session, which is sent again with its own send()")
            self._begin_again(number)

    def begin_again(self, number: int) -> None:
        with self._lock:
            self._begin_again(number)

    def _begin_again(self, number: int) -> None:
        self._open.add(number)
        self._following = max(self._following, number + 1)

    def end(self, number: int) -> None:
        with self._lock:
            self._open.discard(number)

    def low(self) -> int:
        """The client has the replies of all requests below it."""
        with self._lock:
            return min(self._open, default=self._following)


class Insistence:
    """The tries of one request: whether it is sent again, and what is known of it."""

    def __init__(self, retry_for_ms: int) -> None:
        self._deadline = Deadline(retry_for_ms)
        self._tried = 0
        #: An answer was lost.
        self.maybe_applied = False

    def pause_s(self, error: HoldfastError) -> float | None:
        """How long to wait before the next try; None if there is none."""
        self.maybe_applied |= isinstance(error, UnavailableError)
        if not error.is_temporary or self._deadline.has_passed():
            return None
        self._tried += 1
        return pause_after_loss_s(self._tried)

    def failure(self, request: RetryableRequest, error: HoldfastError) -> HoldfastError:
        """The last error as the caller is told it. A server that does not let the client in has said nothing of a try before."""
        refused = isinstance(error, ServerError) and error.code in _NOT_LET_IN
        if error.is_temporary or refused and self.maybe_applied:
            return UnansweredError(request, f"request {request.id}: {error}")
        return error


_NOT_LET_IN = ("NOAUTH", "WRONGPASS", "NOPERM")


@dataclass(frozen=True)
class SessionRequests:
    """The commands of one session."""

    id: str

    def open(self, ttl_ms: int, capabilities: Mapping[str, str]) -> Request[str]:
        words = [b"SESSION.OPEN", b"ID", word(self.id), b"TTL", whole(ttl_ms, "ttl_ms")]
        if capabilities:
            words += [b"CAP", b"%d" % len(capabilities), *flat((word(each), word(value)) for each, value in capabilities.items())]
        return Request(words, name)

    def call(self, request_id: int, low: int, request: Request[T]) -> Request[T]:
        head = [b"SESSION.CALL", word(self.id), b"%d" % request_id, b"LOW", b"%d" % low]
        return Request([*head, *request.words], request.read)

    def alive(self) -> Request[bool]:
        return Request([b"SESSION.ALIVE", word(self.id)], flag)

    def info(self) -> Request[SessionInfo | None]:
        return Request([b"SESSION.INFO", word(self.id)], lambda reply: optional(reply, self._read_info))

    def close(self) -> Request[bool]:
        return Request([b"SESSION.CLOSE", word(self.id)], flag)

    def push(self, payload: Value) -> Request[int]:
        return Request([b"SESSION.PUSH", word(self.id), word(payload)], integer)

    def pending(self, after: int, limit: int, wait_ms: int) -> Request[list[PendingRequest]]:
        words = [b"SESSION.PENDING", word(self.id), b"AFTER", whole(after, "after"), b"LIMIT", whole(limit, "limit")]
        return Request([*words, *block(wait_ms)], lambda reply: [_read_pending(each) for each in items(reply)], wait_ms)

    def ack(self, request_id: int) -> Request[int]:
        return Request([b"SESSION.ACK", word(self.id), whole(request_id, "request_id")], integer)

    def attach(self) -> Request[None]:
        return Request([b"SESSION.ATTACH", word(self.id)], ok)

    def pushed(self, message: Reply) -> PushedRequest | None:
        """The request that a message of an attached connection has; None if the message is something else."""
        if not isinstance(message, list) or len(message) != 4 or message[0] != b"session" or message[1] != word(self.id):
            return None
        return PushedRequest(integer(message[2]), raw(message[3]))

    def _read_info(self, reply: Reply) -> SessionInfo:
        parts = named(reply)
        return SessionInfo(
            id=self.id,
            created_at=time(parts.get("created_at")),
            ttl_ms=integer(parts.get("ttl_ms")),
            low=integer(parts.get("low")),
            replies=integer(parts.get("replies")),
            reply_bytes=integer(parts.get("reply_bytes")),
            pending=integer(parts.get("pending")),
            last_id=integer(parts.get("last_id")),
            attached=flag(parts.get("attached")),
            capabilities={name(each): name(value) for each, value in pairs(parts.get("capabilities"))},
        )


def command(words: Sequence[Value]) -> Request[Reply]:
    """Any command, with its reply as it comes."""
    if not words:
        raise TypeError("a command has at least its name")
    return Request([word(each) for each in words], _as_it_comes)


def retry(before_ms: int, limit: int | None) -> Request[list[RetriedRequest]]:
    words = [b"SESSION.RETRY", whole(before_ms, "before_ms")]
    if limit is not None:
        words += [b"LIMIT", whole(limit, "limit")]
    return Request(words, lambda reply: [_read_retried(each) for each in items(reply)])


def has_retry(before_ms: int) -> Request[bool]:
    return Request([b"SESSION.HASRETRY", whole(before_ms, "before_ms")], flag)


def hooks() -> Request[dict[Hook, str | None]]:
    return Request([b"SESSION.HOOK"], _read_hooks)


def set_hook(hook: Hook, function: str | None) -> Request[None]:
    return Request([b"SESSION.HOOK", word(hook.upper()), b"NONE" if function is None else word(function)], ok)


def ids(cursor: Word) -> Request[tuple[Word, list[str]]]:
    """A page: the next cursor, which is `0` behind the last one, and its names."""

    def read(reply: Reply) -> tuple[Word, list[str]]:
        following, names = row(reply, 2)
        return raw(following), [name(each) for each in items(names)]

    return Request([b"SESSION.LIST", b"CURSOR", cursor], read)


def _as_it_comes(reply: Reply) -> Reply:
    return reply


def _read_pending(reply: Reply) -> PendingRequest:
    id_, payload, last_sent = row(reply, 3)
    return PendingRequest(integer(id_), raw(payload), time(last_sent))


def _read_retried(reply: Reply) -> RetriedRequest:
    session_id, id_, payload, last_sent = row(reply, 4)
    return RetriedRequest(integer(id_), raw(payload), name(session_id), time(last_sent))


def _read_hooks(reply: Reply) -> dict[Hook, str | None]:
    functions = named(reply)
    return {"created": optional(functions.get("created"), name), "expired": optional(functions.get("expired"), name)}
