"""The one of several servers that writes, and connections that go to it wherever it is. Knows redis-py and ROLE, and refuses to know what is
asked.

A connection of a pool is looked at before each use. One to a server that has ceased to be the writer is made anew, so `store.client` and
everything else that takes connections of the pools finds the writer again.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, cast

import redis.asyncio as redis
from redis.exceptions import RedisError

from ..addresses import Address, Answer, Known, no_writer, read_failure, read_role
from ..errors import HoldfastError, as_holdfast_error, refused_by_follower
from ..patience import ROLE_CHECK_S, ROLE_S
from .runtime import Lock, ask_all, drop, read_reply


class Writer:
    def __init__(self, addresses: list[Address], make: Callable[[Address], redis.Connection]) -> None:
        """`make` makes a connection to one address that is not connected."""
        self._known = Known(addresses)
        self._make = make
        #: The writer's address, and the epoch for which it was found; in another one, it is to be found again.
        self._found: tuple[Address, int] | None = None
        #: Grows when the writer is to be found again. Connections of another epoch are not used any more.
        self.epoch = 0
        #: Held for a moment, in which nothing is awaited.
        self._forgetting = threading.Lock()
        self._checked_at = 0.0
        #: One search at a time; those that come meanwhile share its result.
        self._turn = Lock()
        self._searches = 0
        self._failure: HoldfastError | None = None

    async def find(self) -> tuple[Address, int]:
        """The writer's address and the epoch. If it is not known, asks all servers once, at the same time."""
        before = self._searches
        async with self._turn:
            found = self._found
            if found is not None and found[1] == self.epoch:
                return found
            if self._searches != before and self._failure is not None:
                raise self._failure
            return await self._search()

    def forget(self, epoch: int) -> None:
        """A connection of this epoch was lost, or its server is not the writer."""
        # Of threads that lose connections of one epoch at the same time, one begins the next.
        with self._forgetting:
            if epoch == self.epoch:
                self.epoch += 1

    def is_check_due(self) -> bool:
        """Whether the server is to be asked again for its role. True for one caller."""
        now = time.monotonic()
        if now - self._checked_at < ROLE_CHECK_S:
            return False
        self._checked_at = now
        return True

    async def is_writer(self, connection: redis.Connection, address: Address) -> bool:
        """Asks the server of a connection that is not used otherwise. One that cannot say it, because a long script holds it up, is still
        the writer."""
        answer = await self._ask(connection, address)
        if answer.has_role:
            self._known.learn(answer)
        return answer.is_writer or answer.has_spoken and not answer.has_role

    async def _search(self) -> tuple[Address, int]:
        epoch, known = self.epoch, self._known.all()
        try:
            answers = await ask_all(self._ask_address, known, lambda answer: answer.is_writer)
            for answer in answers:
                self._known.learn(answer)
            answers.sort(key=lambda answer: known.index(answer.address))
            writer = next((answer.address for answer in answers if answer.is_writer), None)
            self._checked_at = time.monotonic()
            if writer is None:
                self._failure = no_writer(answers)
                raise self._failure
            self._found, self._failure = (writer, epoch), None
            return writer, epoch
        finally:
            self._searches += 1

    async def _ask_address(self, address: Address) -> Answer:
        connection = self._make(address)
        try:
            await connection.connect()
        except Exception as error:
            return read_failure(address, as_holdfast_error(error))
        try:
            return await self._ask(connection, address)
        finally:
            await drop(connection)

    async def _ask(self, connection: redis.Connection, address: Address) -> Answer:
        try:
            await connection.send_command(b"ROLE", check_health=False)
            # As a wait, whatever the connection's own timeout is: one of a pool has the time of a request.
            return read_role(address, await read_reply(connection, int(ROLE_S * 1000), 0))
        except Exception as error:
            return read_failure(address, as_holdfast_error(error))


class WriterConnection(redis.Connection):
    """A connection of a pool to the server that writes."""

    def __init__(self, *, found_by: Writer, **options: Any) -> None:
        self._found_by, self._epoch = found_by, -1
        cast(Any, super()).__init__(**options)

    async def connect(self) -> None:
        if self.is_connected and not await self._is_current():
            self.forget()
            await drop(self)
        if not self.is_connected:
            (self.host, self.port), self._epoch = await self._found_by.find()
        try:
            await cast(Any, super()).connect()
        except (RedisError, OSError):
            self.forget()
            raise

    async def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().read_response(*args, **options)
        except (RedisError, OSError) as error:
            failure = as_holdfast_error(error)
            if isinstance(failure, HoldfastError) and (failure.is_temporary or refused_by_follower(failure)):
                self.forget()
            raise

    def leads_where(self, other: redis.Connection) -> bool:
        """Whether another connection leads to the same server."""
        return isinstance(other, WriterConnection) and other._epoch == self._epoch

    def forget(self) -> None:
        """The connection is lost, or its server follows another one: the writer is to be found again."""
        self._found_by.forget(self._epoch)

    async def _is_current(self) -> bool:
        if self._epoch != self._found_by.epoch:
            return False
        return not self._found_by.is_check_due() or await self._found_by.is_writer(self, Address(self.host, self.port))


class WriterSSLConnection(WriterConnection, redis.SSLConnection):
    """The same with TLS."""


def lead_to_writer(addresses: list[Address], pools: list[redis.ConnectionPool]) -> None:
    """Makes the connections of these pools, none of which is made yet, go to the one of the servers that writes."""
    plain = cast(type[redis.Connection], pools[0].connection_class)
    options = {**pools[0].connection_kwargs, "socket_timeout": ROLE_S, "socket_connect_timeout": ROLE_S}

    def make(address: Address) -> redis.Connection:
        return plain(**{**options, "host": address.host, "port": address.port})

    writer = Writer(addresses, make)
    for pool in pools:
        pool.connection_class = WriterSSLConnection if issubclass(plain, redis.SSLConnection) else WriterConnection
        pool.connection_kwargs["found_by"] = writer
