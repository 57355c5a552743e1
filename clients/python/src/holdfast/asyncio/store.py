"""A store: a server with its records, indexes, cells, runs, sessions and transactions, for asyncio. Knows what can be asked,
decides nothing about what a record means."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar

import redis.asyncio as redis

from .. import records, runs
from ..errors import ServerError
from ..records import PAGE, Claim, Filter, Found, IndexDefinition, Indexed, Score, Sweep, Swept
from ..replies import ok
from ..request import Request
from ..runs import RunStatus
from .connections import Connections
from .operations import Operations
from .session import Sessions
from .transaction import Transaction, transaction

T = TypeVar("T")


class Store(Operations):
    """Tasks of one event loop may share a store: requests take connections of a pool, which reconnect by themselves, and a request that waits
    holds up no other.

    A request that is made while the server is away waits for it, for as long as a request may take. One that was sent and whose
    answer is lost is an UnavailableError; it is never sent twice.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @classmethod
    async def connect(
        cls,
        url: str = "redis://127.0.0.1:6379",
        *,
        response_timeout_ms: int = 10_000,
        connections_max: int = 50,
        **options: Any,
    ) -> "Store":
        """Connects. If the server is not up, tries for as long as a request may take, which is `response_timeout_ms` beside the
        wait that it asks for. At most `connections_max` requests that do not wait are under way at a time; others wait for their
        turn. Further options are those of redis-py's connections: `protocol` is 3, or 2."""
        store = cls(Connections(url, response_timeout_ms, connections_max, options))
        try:
            await store.ask(Request([b"PING"], ok))
        except BaseException:
            await store.close()
            raise
        return store

    @property
    def client(self) -> redis.Redis:
        """redis-py's client, for every other command. What it raises is redis-py's."""
        return self._connections.client

    @property
    def sessions(self) -> Sessions:
        """The sessions of the server: `sessions.open` opens one."""
        return Sessions(self._connections)

    async def ask(self, request: Request[T]) -> T:
        return await self._connections.ask(request)

    async def close(self) -> None:
        """Ends all connections. Requests that wait, and later ones, are a ClosedError."""
        await self._connections.close()

    async def __aenter__(self) -> "Store":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def find(
        self, prefix: str, *, filters: Sequence[Filter] = (), limit: int | None = None, fields: Sequence[str] | None = None
    ) -> AsyncIterator[Found]:
        """The records under a prefix that pass all filters, page by page. One that is there all the time is found; one that comes
        or goes meanwhile may be, and one may be found twice."""
        left, cursor = limit, b"0"
        while True:
            most = PAGE if left is None else min(left, PAGE)
            cursor, page = await self.ask(records.find(prefix, cursor, most, filters, fields))
            for found in page if left is None else page[:left]:
                yield found
            if left is not None:
                left -= min(left, len(page))
            if cursor == b"0" or left == 0:
                return

    async def create_index(self, name: str, index: IndexDefinition) -> bool:
        """Makes an index, once existing records are in it. If there is one of that name, it is left as it is: False."""
        try:
            await self.ask(records.create_index(name, index))
            return True
        except ServerError:
            # Asked only now, so that of two programs that start at once both succeed.
            if name in await self.indexes():
                return False
            raise

    async def drop_index(self, name: str) -> bool:
        """Removes an index, not its records; whether there was one."""
        return await self.ask(records.drop_index(name))

    async def indexes(self) -> list[str]:
        """The names of all indexes."""
        return await self.ask(records.indexes())

    async def range(
        self,
        index: str,
        min: Score,
        max: Score,
        *,
        reverse: bool = False,
        filters: Sequence[Filter] = (),
        limit: int | None = None,
        fields: Sequence[str] | None = None,
    ) -> list[Indexed]:
        """Records of an index with a score from `min` to `max`, lowest first. The limit counts those that pass the filters."""
        return await self.ask(records.range_(index, min, max, reverse, filters, limit, fields))

    async def claim(self, claim: Claim) -> list[Indexed]:
        """Takes the first records of an index that qualify: each goes to exactly one client, changed as the claim says. Returns
        them as they are now.

        A claim that waits has a connection to itself. When its answer is lost it may have taken records, which then stay as it
        has written them: a queue finds them again when their lease ends."""
        return await self.ask(records.claim(claim))

    async def sweep(self, sweep: Sweep) -> list[Swept]:
        """Gives overdue records back; which ones, and what became of each."""
        return await self.ask(records.sweep(sweep))

    async def runs(self, prefix: str = "", statuses: Sequence[RunStatus] = ()) -> AsyncIterator[str]:
        """The names of the runs under a prefix that have one of these statuses; of any status, if none is named. With SCAN's
        guarantee: one that is there all the time is listed, and may be twice."""
        cursor = b"0"
        while True:
            cursor, names = await self.ask(runs.runs(prefix, statuses, cursor))
            for name in names:
                yield name
            if cursor == b"0":
                return

    async def transaction(self, tries: int, body: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs the commands of `body` as one transaction, and commits it. If another client changes a key that it has read or
        written before that, nothing is applied and `body` runs again, in all at most `tries` times; then it is a ConflictError.
        An error of `body` rolls back, and is raised.

        `body` should have no other effects than its commands: it may run several times. After an UnavailableError the
        transaction may have been committed."""
        return await transaction(self._connections, tries, body)
