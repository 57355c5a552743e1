"""The connections of a program to a server, or to the one of several that writes: those that requests share, and those that a request or a transaction has to itself
for as long as it lasts. Knows redis-py, and refuses to know what is asked.

A request that waits holds up no other one. A request that was sent and whose answer is lost is never sent again.
"""

import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError
from redis.maint_notifications import MaintNotificationsConfig

from ..addresses import split_url
from ..errors import ClosedError, HoldfastError, ServerError, UnavailableError, as_holdfast_error, refused_by_follower
from ..patience import PAUSE_S, UNBLOCK_PAUSE_S, Deadline, pause_before_search_s
from ..replies import Reply, flag, integer
from ..request import Request
from .runtime import Flag, drop, read_reply, read_to_end, see_through, sleep, take, to_end
from .taking import Taking
from .writer import WriterConnection, lead_to_writer

T = TypeVar("T")

#: More than there will ever be: redis-py wants a bound.
_CONNECTIONS_MAX = 2**31 - 1


class Connections:
    def __init__(
        self,
        url: str,
        addresses: Sequence[str] | None,
        response_timeout_ms: int,
        writer_timeout_ms: int,
        connections_max: int,
        options: dict[str, Any],
    ) -> None:
        url, servers = split_url(url, addresses)
        #: The program has named several servers, of which one writes.
        self._has_several = bool(servers)
        self.response_timeout_ms = response_timeout_ms
        #: How long a server that is away is waited for, at least.
        self.patience_ms = max(response_timeout_ms, writer_timeout_ms) if servers else response_timeout_ms
        seconds = response_timeout_ms / 1000
        timeouts = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
        ours = {
            "protocol": 3,
            # Retries of redis-py send again what was sent.
            "retry": Retry(NoBackoff(), 0),
            # With these on, redis-py's pool does not see that the server has closed an idle connection. Holdfast sends none.
            "maint_notifications_config": MaintNotificationsConfig(enabled=False),
        }
        given = {**ours, **options, **timeouts}
        self._shared: redis.ConnectionPool = redis.BlockingConnectionPool.from_url(
            url, max_connections=connections_max, timeout=seconds, **given
        )
        self.own = redis.ConnectionPool.from_url(url, max_connections=_CONNECTIONS_MAX, **given)
        #: For those that take what the server sends by itself, which RESP2 has no way for.
        self.attached = redis.ConnectionPool.from_url(url, max_connections=_CONNECTIONS_MAX, **given)
        self.attached.connection_kwargs["protocol"] = 3
        if servers:
            lead_to_writer(servers, [self._shared, self.own, self.attached])
        self.client = redis.Redis(connection_pool=self._shared)
        #: The server is a plain Redis, or is treated as one.
        self.is_plain = False
        #: Each ends work in the background.
        self.background: weakref.WeakSet[Flag] = weakref.WeakSet()
        #: The requests that take something, with the connections on which they are under way. Their waits are ended before the connections are.
        self._takings: dict[Taking, redis.Connection] = {}
        #: No new requests are taken.
        self._is_closing = False
        self._closed = False

    async def ask(self, request: Request[T], patience_ms: int | None = None) -> T:
        """Sends a command and reads its reply. If the server is not there, still reads its data, or is not the writer, tries for as
        long as the request may take, or as `patience_ms` says. If the caller of a request that takes something is cancelled, ends its wait
        and gives back what it has taken."""
        if self._is_closing:
            raise ClosedError("the store is closed")
        if request.give_back is None:
            return await self._ask(request, patience_ms, None)
        taking = Taking()
        try:
            result = await see_through(taking, partial(self._ask, request, patience_ms, taking), partial(self._end_taking, taking))
            if taking.interruption is None and not self._is_closing:
                return result
            await to_end(partial(self._give_back, request.give_back(result)))
            raise taking.interruption or ClosedError("the store is closed")
        finally:
            self._takings.pop(taking, None)

    async def _ask(self, request: Request[T], patience_ms: int | None, taking: Taking | None) -> T:
        if self.is_plain:
            request = request.on_plain_redis()
        pool = self.own if request.wait_ms > 0 else self._shared
        if patience_ms is None:
            patience_ms = max(request.wait_ms, self.patience_ms) if self._has_several else request.wait_ms or self.patience_ms
        deadline, tried = Deadline(patience_ms), 0
        while True:
            if taking is not None and taking.interruption is not None:
                raise taking.interruption
            try:
                connection = await self.take(pool)
            except HoldfastError as error:
                if not error.is_temporary or deadline.has_passed():
                    raise
            else:
                try:
                    reply = await self._send(pool, connection, request, taking)
                except ServerError as error:
                    if not error.is_temporary or deadline.has_passed():
                        raise
                    if taking is not None:
                        # Nothing was executed. The next try may go over another connection.
                        taking.can_be_cancelled, taking.client_id = True, None
                else:
                    return request.read(reply)
            await self.pause(tried)
            tried += 1

    async def reach(self) -> None:
        """Connects once, so that a wrong address is an error at once. One of several servers is looked for by each request."""
        if self._has_several:
            return
        try:
            connection = await self.take(self._shared)
        except HoldfastError as error:
            # redis-py says "connecting to" and the address if it was not connected. Other temporary errors are of a server that exists.
            if not error.is_temporary or "connecting to" in str(error):
                raise
        else:
            await self._shared.release(connection)

    async def pause(self, tried: int) -> None:
        """Between two tries to reach a server."""
        await sleep(pause_before_search_s(tried) if self._has_several else PAUSE_S)

    async def take(self, pool: redis.ConnectionPool) -> redis.Connection:
        """A connection that is made, for the caller alone."""
        if self._closed:
            raise ClosedError("the store is closed")
        try:
            return await take(pool)
        except Exception as error:
            raise self.failure(error) from error

    async def talk(self, connection: redis.Connection, request: Request[T], check_health: bool = True) -> Reply:
        """Sends a command on a connection of the caller's. After any error but a ResponseError the connection is of no use."""
        await connection.send_command(*request.words, check_health=check_health)
        return await read_reply(connection, request.wait_ms, self.response_timeout_ms)

    def failure(self, error: Exception) -> Exception:
        return ClosedError("the store is closed") if self._closed else self.refusal(as_holdfast_error(error))

    def refusal(self, error: Exception) -> Exception:
        """An error of the server. What a follower refuses can be asked of the writer, if there are several servers."""
        return self._has_several and refused_by_follower(error) or error

    async def close(self) -> None:
        """Ends all connections, and the requests on them. First ends waits, and what they have taken is given back."""
        self._is_closing = True
        deadline = Deadline(self.response_timeout_ms)
        for taking, connection in list(self._takings.items()):
            try:
                while taking in self._takings and not deadline.has_passed():
                    await self._end_wait(connection, taking)
                    await sleep(UNBLOCK_PAUSE_S)
            except HoldfastError:
                break  # the server is away
        self._closed = True
        for each in list(self.background):
            each.set()
        await self.own.disconnect()
        await self.attached.disconnect()
        await self._shared.disconnect()

    async def _take_something(self, connection: redis.Connection, request: Request[T], taking: Taking) -> Reply:
        """Like `talk`, for a request whose wait can be ended."""
        # In this order: who interrupts it in another thread looks at the two in the other order.
        taking.can_be_cancelled = False
        if taking.interruption is not None or self._is_closing:
            raise taking.interruption or ClosedError("the store is closed")
        self._takings[taking] = connection
        words = [(b"CLIENT", b"ID")] if request.wait_ms > 0 else []
        await connection.send_packed_command(connection.pack_commands([*words, request.words]))

        async def read_id() -> None:
            if words and taking.client_id is None:
                try:
                    taking.client_id = integer(await read_reply(connection, 0, self.response_timeout_ms))
                except ResponseError:
                    taking.client_id = 0

        async def read() -> Reply:
            await read_id()
            return await read_reply(connection, request.wait_ms, self.response_timeout_ms)

        async def end_wait() -> bool:
            await read_id()
            return not words or await self._end_wait(connection, taking)

        return await read_to_end(taking, read, end_wait)

    async def _end_taking(self, taking: Taking) -> None:
        """Ends the wait of a request, or its connection if the server does not let the user end waits."""
        connection = self._takings.get(taking)
        if connection is None:
            return
        try:
            await self._end_wait(connection, taking)
        except HoldfastError:
            await drop(connection)

    async def _end_wait(self, connection: redis.Connection, taking: Taking) -> bool:
        """Asks the server to end the wait of another connection. Whether it has."""
        if taking.client_id is None:
            return False  # its number is still under way
        if taking.client_id == 0:
            raise UnavailableError("the wait cannot be ended: the user has no right to CLIENT ID")
        other = await self.take(self._shared)
        if isinstance(connection, WriterConnection) and not connection.leads_where(other):
            await self._shared.release(other)  # the number would be that of another client
            return False
        unblock = Request([b"CLIENT", b"UNBLOCK", b"%d" % taking.client_id], flag)
        return unblock.read(await self._send(self._shared, other, unblock, None))

    async def _give_back(self, requests: Sequence[Request[Any]]) -> None:
        for request in requests:
            try:
                await self._ask(request, self.response_timeout_ms, None)
            except HoldfastError:
                pass  # its lease ends

    async def _send(
        self, pool: redis.ConnectionPool, connection: redis.Connection, request: Request[T], taking: Taking | None
    ) -> Reply:
        answered = False
        try:
            reply = await (self.talk(connection, request) if taking is None else self._take_something(connection, request, taking))
            answered = True
            return reply
        except ResponseError as error:
            answered = True
            raise self.refusal(as_holdfast_error(error)) from error
        except Exception as error:
            if isinstance(connection, WriterConnection):
                connection.forget()
            raise self.failure(error) from error
        finally:
            if not answered or self._closed:
                await drop(connection)
            await pool.release(connection)
