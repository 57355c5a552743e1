"""The connections of a program to a server, or to the one of several that writes: those that requests share, and those that a request or a transaction has to itself
for as long as it lasts. Knows redis-py, and refuses to know what is asked.

A request that waits holds up no other one. A request that was sent and whose answer is lost is never sent again.
"""

import weakref
from collections.abc import Sequence
from typing import Any, TypeVar

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError
from redis.maint_notifications import MaintNotificationsConfig

from ..addresses import split_url
from ..errors import ClosedError, HoldfastError, ServerError, as_holdfast_error, refused_by_follower
from ..patience import PAUSE_S, Deadline, pause_before_search_s
from ..replies import Reply
from ..request import Request
from .runtime import Flag, drop, read_reply, sleep, take
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
        self._closed = False

    async def ask(self, request: Request[T], patience_ms: int | None = None) -> T:
        """Sends a command and reads its reply. If the server is not there, still reads its data, or is not the writer, tries for as
        long as the request may take, or as `patience_ms` says."""
        if self.is_plain:
            request = request.on_plain_redis()
        pool = self.own if request.wait_ms > 0 else self._shared
        if patience_ms is None:
            patience_ms = max(request.wait_ms, self.patience_ms) if self._has_several else request.wait_ms or self.patience_ms
        deadline, tried = Deadline(patience_ms), 0
        while True:
            try:
                connection = await self.take(pool)
            except HoldfastError as error:
                if not error.is_temporary or deadline.has_passed():
                    raise
            else:
                try:
                    reply = await self._send(pool, connection, request)
                except ServerError as error:
                    if not error.is_temporary or deadline.has_passed():
                        raise
                else:
                    return request.read(reply)
            await self.pause(tried)
            tried += 1

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
        """Ends all connections, and the requests on them."""
        self._closed = True
        for each in list(self.background):
            each.set()
        await self.own.disconnect()
        await self.attached.disconnect()
        await self._shared.disconnect()

    async def _send(self, pool: redis.ConnectionPool, connection: redis.Connection, request: Request[T]) -> Reply:
        answered = False
        try:
            reply = await self.talk(connection, request)
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
