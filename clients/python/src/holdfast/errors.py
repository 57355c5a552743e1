"""What can go wrong, sorted by what the caller can do about it. Knows no command.

A wrong argument is a TypeError or a ValueError, and nothing was sent.
"""

from asyncio import TimeoutError  # which is the built-in one from Python 3.11 on

from redis.exceptions import DataError, RedisError, ResponseError


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


class ClosedError(HoldfastError):
    """The store was closed."""


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


def as_holdfast_error(error: Exception) -> Exception:
    """What redis-py raises, as one of the errors above. A wrong argument, or a bug, stays what it is."""
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


def _refusal(code: str, message: str) -> ServerError:
    if code == "WRONGTYPE":
        return WrongTypeError(code, message)
    if code == "CONFLICT":
        return ConflictError(code, message)
    if code == "ERR" and message.startswith("unknown command"):
        return NeedsHoldfastError(code, message)
    return ServerError(code, message)
