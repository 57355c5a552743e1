"""How this half of the package waits: with tasks of an event loop. `holdfast.sync` has a module with the same names, for threads; these
two are what is written by hand, and the rest of `holdfast.sync` is generated. Knows redis-py, and refuses to know what is asked."""

import asyncio
import math
from asyncio import Event as Flag
from asyncio import Lock
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast

import redis.asyncio as redis

from ..patience import UNBLOCK_PAUSE_S
from ..replies import Reply
from .taking import Taking

__all__ = [
    "Flag", "Lock", "Messages", "Work", "ask_all", "drop", "is_set_within", "read_reply", "read_to_end", "see_through", "sleep", "start",
    "take", "to_end",
]  # fmt: skip

A = TypeVar("A")
I = TypeVar("I")
T = TypeVar("T")

#: What goes on in the background.
Work = asyncio.Task[None]


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def is_set_within(flag: Flag, seconds: float) -> bool:
    """Waits for a flag."""
    try:
        return await asyncio.wait_for(flag.wait(), seconds)
    except asyncio.TimeoutError:
        return False


def start(work: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> Work:
    """Begins work in the background. The caller keeps what it returns: the event loop does not."""
    return asyncio.ensure_future(work(*args))


async def ask_all(ask: Callable[[I], Coroutine[Any, Any, A]], items: Sequence[I], is_enough: Callable[[A], bool]) -> list[A]:
    """Asks for all items at the same time. Returns the answers that have come when one is enough, or else all."""
    pending = {asyncio.ensure_future(ask(item)) for item in items}
    answers: list[A] = []
    try:
        while pending and not any(map(is_enough, answers)):
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            answers += [each.result() for each in done]
        return answers
    finally:
        for each in pending:
            each.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


async def take(pool: redis.ConnectionPool) -> redis.Connection:
    """A connection of a pool that is connected."""
    return cast(redis.Connection, await pool.get_connection())


async def drop(connection: redis.Connection) -> None:
    """Ends a connection, whatever is under way on it."""
    await connection.disconnect(nowait=True)


async def read_reply(connection: redis.Connection, wait_ms: int, response_timeout_ms: int) -> Reply:
    """The reply to a command that waits so long. After a cancellation it can be read on."""
    if wait_ms == 0:
        return cast(Reply, await connection.read_response(disable_decoding=True, disconnect_on_error=False))
    # redis-py's own timeout for one read ends in None, as if that were the reply.
    reply = connection.read_response(disable_decoding=True, timeout=math.inf, disconnect_on_error=False)
    return cast(Reply, await asyncio.wait_for(reply, (wait_ms + response_timeout_ms) / 1000))


async def see_through(
    taking: Taking, work: Callable[[], Coroutine[Any, Any, T]], end_wait: Callable[[], Coroutine[Any, Any, None]]
) -> T:
    """Does work in a task of its own. If the caller is cancelled, ends its wait and returns the result all the same: the caller looks at
    `taking.interruption`. The work ends its wait itself, in `read_to_end`."""
    working = asyncio.ensure_future(work())
    while not working.done():
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError as error:
            if taking.interruption is None:
                taking.interruption = error
                # Otherwise the work sees the interruption itself.
                if taking.can_be_cancelled:
                    working.cancel()
    if taking.interruption is not None and (working.cancelled() or working.exception() is not None):
        raise taking.interruption
    return working.result()


async def to_end(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Does work in a task of its own. A cancellation does not reach it."""
    working = asyncio.ensure_future(work())
    while not working.done():
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError:
            pass  # the caller is about to raise the first one
    working.result()


async def read_to_end(
    taking: Taking, read: Callable[[], Coroutine[Any, Any, Reply]], end_wait: Callable[[], Coroutine[Any, Any, bool]]
) -> Reply:
    """Reads the reply of a request that takes something. If the caller is cancelled meanwhile, has the server end the wait, and reads on. `read`
    can be called again after it was cancelled."""
    if taking.interruption is None:
        taking.can_be_cancelled = True
        try:
            return await read()
        except asyncio.CancelledError as error:
            # Cancelled by `see_through`, or together with all tasks of a loop that ends.
            taking.interruption = taking.interruption or error
        finally:
            taking.can_be_cancelled = False
    ended = await end_wait()
    reading = asyncio.ensure_future(read())
    try:
        # The server may not have seen the request yet.
        while not ended and not (await asyncio.wait([reading], timeout=UNBLOCK_PAUSE_S))[0]:
            ended = await end_wait()
        return await reading
    finally:
        reading.cancel()


class Messages:
    """What the server sends by itself on a connection."""

    def __init__(self, connection: redis.Connection) -> None:
        self._connection = connection
        #: A read that is under way; it goes on from one wait to the next.
        self._reading: asyncio.Future[Reply] | None = None

    async def has_one_within(self, seconds: float) -> bool:
        """Waits for a message."""
        if self._reading is None:
            read = self._connection.read_response(disable_decoding=True, timeout=math.inf, push_request=True)
            self._reading = asyncio.ensure_future(read)
        done, _ = await asyncio.wait([self._reading], timeout=seconds)
        return bool(done)

    async def read(self) -> Reply:
        """The message that `has_one_within` has found."""
        reading, self._reading = self._reading, None
        assert reading is not None
        return await reading

    async def close(self) -> None:
        """Reads no more."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
