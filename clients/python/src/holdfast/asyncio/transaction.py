"""Interactive transactions: commands that answer at once, read their own writes, and take effect together or not at all. Knows
how a transaction begins, ends and is tried again; refuses to know what its commands do."""

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar

import redis.asyncio as redis
from redis.exceptions import ConnectionError, RedisError, ResponseError

from .. import replies
from ..errors import ClosedError, ConflictError, HoldfastError, NotWriterError, UnavailableError, as_holdfast_error
from ..patience import Deadline, pause_after_conflict_s
from ..request import Request
from .connections import Connections
from .operations import CellOperations, Operations
from .runtime import Lock, drop, sleep

T = TypeVar("T")
X = TypeVar("X")


class Transaction(Operations):
    """A transaction that is under way. Only commands whose keys are all arguments can be part of it; others are refused, and the
    transaction goes on. Nothing waits in it. Once it has ended, its commands are a ClosedError, and nothing is sent."""

    def __init__(self, link: "_Link") -> None:
        self._link = link
        self._client = _Client(link)

    @property
    def client(self) -> redis.Redis:
        """redis-py's commands, as part of the transaction."""
        return self._client

    async def ask(self, request: Request[T]) -> T:
        return await self._link.ask(request)


class ReadTransaction(CellOperations):
    """A transaction that reads cells as they all were when it began, whatever others write meanwhile. Writes, and other commands than
    those that read cells, are refused, and the transaction goes on."""

    def __init__(self, link: "_Link") -> None:
        self._link = link

    async def ask(self, request: Request[T]) -> T:
        return await self._link.ask(request)


async def transaction(connections: Connections, tries: int, body: Callable[[Transaction], Awaitable[T]]) -> T:
    deadline, tried = Deadline(connections.patience_ms), 0
    while tried < tries:
        if tried > 0:
            await sleep(pause_after_conflict_s(tried))
        link = await _begin(connections)
        done = await _attempt(link, Transaction(link), body)
        if done is not None:
            return done[0]
        # What another server has to run, because this one has ceased to be the writer, is not counted.
        if link.moved is None:
            tried += 1
        elif deadline.has_passed():
            raise link.moved
    raise ConflictError("CONFLICT", f"other clients changed what the transaction read, each of the {tries} times it was tried")


async def read_transaction(connections: Connections, body: Callable[[ReadTransaction], Awaitable[T]]) -> T:
    deadline = Deadline(connections.patience_ms)
    while True:
        link = await _begin(connections, b"READONLY")
        done = await _attempt(link, ReadTransaction(link), body)
        if done is not None:
            return done[0]
        if link.conflict is not None and link.moved is None:
            raise link.conflict
        if link.moved is not None and deadline.has_passed():
            raise link.moved


async def _attempt(link: "_Link", txn: X, body: Callable[[X], Awaitable[T]]) -> tuple[T] | None:
    """Runs a body once, and commits. None if nothing of it can take effect, because of a conflict or because another server writes."""
    try:
        try:
            result = await body(txn)
            # A body may have caught the error that has said it.
            if not link.is_over:
                await link.commit()
                return (result,)
        except Exception as error:
            if not link.is_over:
                await link.roll_back()
                if link.lost and isinstance(error, RedisError):
                    raise UnavailableError(f"the transaction's connection was lost: {error}") from error
                raise
        await link.roll_back()
        return None
    finally:
        await link.release()


async def _begin(connections: Connections, *options: bytes) -> "_Link":
    deadline, tried = Deadline(connections.patience_ms), 0
    while True:
        try:
            link = _Link(connections, await connections.take(connections.own))
            try:
                await link.say(b"TXN.BEGIN", *options)
                return link
            except BaseException:
                await link.release()
                raise
        except HoldfastError as error:
            # A transaction that has perhaps begun has ended with its connection.
            if not error.is_temporary or deadline.has_passed():
                raise
        await connections.pause(tried)
        tried += 1


class _Link:
    """The connection of a transaction, and what is known of it."""

    def __init__(self, connections: Connections, connection: redis.Connection) -> None:
        self.connections = connections
        self._connection = connection
        #: The server has said that it cannot be committed any more.
        self.conflict: ConflictError | None = None
        #: The server follows another one by now, and nothing of the transaction can take effect.
        self.moved: NotWriterError | None = None
        #: There was no answer. The server rolls back when it sees the end of the connection.
        self.lost = False
        #: It is committed or rolled back, or about to be.
        self._ended = False
        #: The connection has no transaction.
        self._is_clean = False
        #: Tasks that share the transaction take turns.
        self._turn = Lock()
        connection.register_connect_callback(self._refuse_to_connect)

    @property
    def is_over(self) -> bool:
        """Whether nothing of it can take effect any more."""
        return self.conflict is not None or self.moved is not None

    async def ask(self, request: Request[T]) -> T:
        try:
            reply = await self.run(lambda connection: self._talk(connection, request))
        except RedisError as error:
            raise self.connections.refusal(as_holdfast_error(error)) from error
        return request.read(reply)

    async def run(self, talk: Callable[[redis.Connection], Awaitable[T]]) -> T:
        # Nothing is sent behind the end, or on a connection that redis-py would make anew: it would run outside the transaction.
        async with self._turn:
            if self._ended or self.lost:
                raise ClosedError("the transaction has ended")
            return await self._run(talk)

    async def commit(self) -> None:
        self._ended = True
        try:
            await self.say(b"TXN.COMMIT")
        except ConflictError:
            self._is_clean = True
            raise
        self._is_clean = True

    async def roll_back(self) -> None:
        self._ended = True
        if self.lost or self._is_clean:
            return
        try:
            await self.say(b"TXN.ROLLBACK")
            self._is_clean = True
        except HoldfastError:
            pass  # its connection ends, and the transaction with it

    async def say(self, *words: bytes) -> None:
        """Sends a command of the transaction's own."""
        request = Request(words, replies.ok)
        if self.connections.is_plain:
            request.on_plain_redis()
        try:
            async with self._turn:
                await self._run(lambda connection: self._talk(connection, request))
        except Exception as error:
            raise self.connections.failure(error) from error

    async def release(self) -> None:
        self._ended = True
        self._connection.deregister_connect_callback(self._refuse_to_connect)
        if not self._is_clean:
            await drop(self._connection)
        await self.connections.own.release(self._connection)

    def _refuse_to_connect(self, _connection: redis.Connection) -> None:
        """IMPORTANT: redis-py connects again by itself, when it finds the connection gone before it sends. The command would then run
        outside the transaction, and be applied at once."""
        raise ConnectionError("the transaction's connection was lost")

    async def _talk(self, connection: redis.Connection, request: Request[Any]) -> replies.Reply:
        # A check of the connection's health would be a PING in the transaction.
        return await self.connections.talk(connection, request, check_health=False)

    async def _run(self, talk: Callable[[redis.Connection], Awaitable[T]]) -> T:
        try:
            return await talk(self._connection)
        except ResponseError as error:
            failure = self.connections.refusal(as_holdfast_error(error))
            if isinstance(failure, ConflictError):
                self.conflict = failure
            if isinstance(failure, NotWriterError):
                self.moved = failure
            self.lost |= isinstance(failure, UnavailableError)
            raise
        except BaseException:
            self.lost = True
            raise


class _Client(redis.Redis):
    """redis-py's commands on the connection of a transaction."""

    def __init__(self, link: _Link) -> None:
        super().__init__(connection_pool=link.connections.own)
        self._link = link

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        async def talk(connection: redis.Connection) -> Any:
            await connection.send_command(*args, check_health=False)
            return await redis.Redis.parse_response(self, connection, args[0], **options)

        return await self._link.run(talk)

    # These would take other connections, and so be no part of the transaction.

    def pipeline(self, transaction: Any = True, shard_hint: Any = None) -> NoReturn:
        raise TypeError("a transaction has no pipelines")

    def pubsub(self, **kwargs: Any) -> NoReturn:
        raise TypeError("a transaction has no subscriptions")

    def monitor(self) -> NoReturn:
        raise TypeError("a transaction has no MONITOR")

    def client(self) -> NoReturn:
        raise TypeError("a transaction has one connection")
