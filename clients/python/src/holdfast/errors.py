"""What can go wrong, sorted by what the caller can do about it. Knows no command.

A wrong argument is a TypeError or a ValueError, and nothing was sent.
"""

from asyncio import TimeoutError  # which is the built-in one from Python 3.11 on
from typing import Any, Protocol

from redis.exceptions import ConnectionError, DataError, RedisError, ResponseError


class HoldfastError(Exception):
    """Every error that this package makes by itself."""

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed a little later: the server is away, or still reads its data."""
        return False


class UnavailableError(HoldfastError):
    """No answer: the server is away, or too slow. A write may have been made or not.

    Repeat it: an append with an idempotency key is applied once, and an exchange or a compare-and-swap shows by its result what
    became of the first one.
    """

    @property
    def is_temporary(self) -> bool:
        return True


class NoWriterError(UnavailableError, ConnectionError):
    """None of the servers of a list of addresses is the writer, for as long as the store has looked. Nothing was sent. It is also a
    ConnectionError of redis-py, for those who use `store.client`."""

    #: What each address has answered.
    answers: dict[str, str]

    def __init__(self, answers: dict[str, str]) -> None:
        super().__init__("none of the servers writes: " + ", ".join(f"{address} {says}" for address, says in answers.items()))
        self.answers = answers


class RetryableRequest(Protocol):
    """A request of a session that can be sent again: a `PreparedRequest` of either face."""

    @property
    def id(self) -> int:
        """Its number in the session."""

    @property
    def words(self) -> tuple[bytes, ...]:
        """The command and its arguments."""

    def send(self) -> Any:
        """Sends the same words under the same id. Of the asyncio face: to be awaited."""

    def forget(self) -> None:
        """Gives it up."""


class UnansweredError(UnavailableError):
    """A request of a session got no answer for as long as it was tried. It may have run or not.

    `error.request.send()` tells, and runs it at most once. Until then, or until `error.request.forget()`, the server keeps the
    replies of all later requests of the session, too.
    """

    #: The request that got no answer, whichever call has made it: with its id and its words.
    request: RetryableRequest

    def __init__(self, request: RetryableRequest, message: str) -> None:
        super().__init__(message)
        self.request = request


class SessionLostError(HoldfastError):
    """The session is gone: it has expired, was closed or was deleted. Open another one.

    Nothing is sent again in another session, because it might run twice: what became of the request has to be found out by
    looking at what it changes.
    """

    session_id: str
    #: The number of the request; None if it was none of those that a session numbers.
    request_id: int | None
    #: Whether the request may have run. False: it was sent only to a session that was gone, and has not.
    maybe_applied: bool

    def __init__(self, session_id: str, request_id: int | None, maybe_applied: bool) -> None:
        super().__init__(f"the session {session_id} is gone" + _fate(request_id, maybe_applied))
        self.session_id = session_id
        self.request_id = request_id
        self.maybe_applied = maybe_applied


def _fate(request_id: int | None, maybe_applied: bool) -> str:
    if request_id is None:
        return ""
    return f"; its request {request_id} " + ("may have run, or not" if maybe_applied else "has not run")


class ClosedError(HoldfastError):
    """The store, or the session, was closed."""


class ReplyError(HoldfastError):
    """A reply does not fit the request."""


class ServerError(HoldfastError):
    """The server refused the request; nothing was changed. The message is the server's, without the code."""

    #: The first word of the reply: `ERR`, `NOAUTH`, `NOPERM`, `OOM`, `MISCONF`, `LOADING`…
    code: str

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_temporary(self) -> bool:
        return self.code == "LOADING"


class WrongTypeError(ServerError):
    """The key holds a value of another type."""


class NeedsHoldfastError(ServerError):
    """The server does not know the command, which is one of Holdfast's own: it is a plain Redis."""


class ConflictError(ServerError):
    """Another client has changed what a transaction has read or written. Nothing was changed."""


class NotWriterError(ServerError):
    """A server of a list of addresses follows another one, and no server has become the writer for as long as the store has tried. Nothing
    was changed."""

    @property
    def is_temporary(self) -> bool:
        return True


class NoSessionError(ServerError):
    """There is no session of that name."""


class MismatchError(ServerError):
    """A request's number was used for another request of the session before: two programs number requests in one session."""


class EvictedError(ServerError):
    """The reply of a request was dropped, because the session has said that it has it. The request was not run again."""


def as_holdfast_error(error: Exception) -> Exception:
    """What redis-py raises, as one of the errors above. A wrong argument, or a bug, stays what it is."""
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, RedisError):
        # redis-py keeps the codes that it knows apart from the message.
        if error.status_code is not None:
            return _refusal(error.status_code, str(error))
        if isinstance(error, ResponseError):
            code, _, message = str(error).partition(" ")
            return _refusal(code, message) if code.isupper() else _refusal("ERR", str(error))
    if isinstance(error, (RedisError, OSError, TimeoutError)) and not isinstance(error, DataError):
        return UnavailableError(f"no answer from the server: {str(error) or type(error).__name__}")
    return error


def refused_by_follower(error: Exception) -> NotWriterError | None:
    """The error of a server that is not the writer, or has just ceased to be, if this is one. The request was not executed."""
    if isinstance(error, ServerError):
        if error.code in ("READONLY", "MASTERDOWN") or error.code == "UNBLOCKED" and "instance state changed" in str(error):
            return NotWriterError(error.code, str(error))
    return None


def _refusal(code: str, message: str) -> HoldfastError:
    if code == "FENCED":
        # Another server has taken over. What was asked for last may have been done or not.
        return UnavailableError(f"no answer from the server: {code} {message}")
    if code in _KINDS:
        return _KINDS[code](code, message)
    if code == "ERR" and message.startswith("unknown command"):
        return NeedsHoldfastError(code, message)
    return ServerError(code, message)


_KINDS: dict[str, type[ServerError]] = {
    "WRONGTYPE": WrongTypeError,
    "CONFLICT": ConflictError,
    "NOSESSION": NoSessionError,
    "MISMATCH": MismatchError,
    "EVICTED": EvictedError,
}
