"""How this half of the package waits: each request holds up its thread. `holdfast.asyncio` has a module with the same names, for tasks; these
two are what is written by hand, and the rest of `holdfast.sync` is generated. Knows redis-py, and refuses to know what is asked."""

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Event as Flag
from threading import Lock, Thread, current_thread, main_thread
from time import sleep
from typing import Any, TypeVar, cast

import redis

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
Work = Thread


def is_set_within(flag: Flag, seconds: float) -> bool:
    """Waits for a flag."""
    return flag.wait(seconds)


def start(work: Callable[..., None], *args: Any) -> Work:
    """Begins work in the background. It does not keep the program running."""
    thread = Thread(target=work, args=args, daemon=True)
    thread.start()
    return thread


def ask_all(ask: Callable[[I], A], items: Sequence[I], is_enough: Callable[[A], bool]) -> list[A]:
    """Asks for all items at the same time. Returns the answers that have come when one is enough, or else all. `ask` raises nothing, and
    ends soon."""
    came: SimpleQueue[A] = SimpleQueue()
    for item in items:
        start(lambda each: came.put(ask(each)), item)
    answers: list[A] = []
    while len(answers) < len(items) and not any(map(is_enough, answers)):
        answers.append(came.get())
    return answers


def take(pool: redis.ConnectionPool) -> redis.Connection:
    """A connection of a pool that is connected."""
    return pool.get_connection()


def drop(connection: redis.Connection) -> None:
    """Ends a connection, whatever is under way on it."""
    connection.disconnect()


def read_reply(connection: redis.Connection, wait_ms: int, response_timeout_ms: int) -> Reply:
    """The reply to a command that waits so long. After an interruption it can be read on."""
    timeout = (wait_ms + response_timeout_ms) / 1000
    return cast(Reply, connection.read_response(disable_decoding=True, timeout=timeout, disconnect_on_error=False))


def see_through(taking: Taking, work: Callable[[], T], end_wait: Callable[[], None]) -> T:
    """Does work. If the caller is interrupted meanwhile, ends its wait and returns the result all the same: the caller looks at
    `taking.interruption`.

    Signals interrupt the main thread alone (KeyboardInterrupt, or the SystemExit of a handler), between any two instructions: also when bytes
    were read from the socket and not kept yet. So the work of the main thread is done in another one."""
    if current_thread() is not main_thread():
        return work()
    outcome: list[tuple[T, None] | tuple[None, BaseException]] = []
    ended: SimpleQueue[None] = SimpleQueue()

    def do() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))
        ended.put(None)

    try:
        start(do)
        ended.get()
    except BaseException as interruption:
        taking.interruption = interruption
        # As long as nothing was sent, the work finds the interruption and sends nothing.
        while not outcome and not taking.can_be_cancelled:
            end_wait()
            sleep(UNBLOCK_PAUSE_S)
        if not outcome:
            raise
    result, error = outcome[0]
    if error is not None:
        raise taking.interruption or error
    return cast(T, result)


def to_end(work: Callable[[], None]) -> None:
    """Does work."""
    work()


def read_to_end(taking: Taking, read: Callable[[], Reply], end_wait: Callable[[], bool]) -> Reply:
    """Reads the reply of a request that takes something. Nothing interrupts it: `see_through` ends its wait."""
    return read()


class Messages:
    """What the server sends by itself on a connection."""

    def __init__(self, connection: redis.Connection) -> None:
        self._connection = connection

    def has_one_within(self, seconds: float) -> bool:
        """Waits for a message."""
        return self._connection.can_read(seconds)

    def read(self) -> Reply:
        """The message that `has_one_within` has found."""
        return cast(Reply, self._connection.read_response(disable_decoding=True, push_request=True))

    def close(self) -> None:
        """Reads no more."""
