"""A store: a server with its records, indexes, cells, runs, sessions and transactions, for asyncio. Knows what can be asked,
decides nothing about what a record means."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar

import redis.asyncio as redis

from .. import indexes as indexes_of, limits as limits_of, plain, records, runs
from ..errors import HoldfastError, NeedsHoldfastError, ServerError
from ..filters import Filter
from ..indexes import DefinitionWords, IndexDiffersError, OnDifference
from ..limits import GroupState, Limits, NoLimit, Rate, Scope
from ..records import PAGE, Claim, Found, IndexDefinition, Indexed, Score, Sweep, Swept
from ..replies import Reply, items, ok
from ..request import Request
from ..runs import RunStatus
from ..words import Key
from .connections import Connections
from .operations import Operations
from .session import Sessions
from .transaction import ReadTransaction, Transaction, read_transaction, transaction

T = TypeVar("T")

#: A server that has these has all of Holdfast's commands.
_OWN = (b"HCAS", b"HPUT", b"HFIND", b"CLAIM", b"CELL.CAS", b"RUN.APPEND", b"REG.PUT", b"SESSION.CALL", b"TXN.BEGIN")


class Store(Operations):
    """Tasks of one event loop may share a store: requests take connections of a pool, which reconnect by themselves, and a request that waits
    holds up no other.

    A request that is made while the server is away waits for it, for as long as a request may take. One that was sent and whose
    answer is lost is an UnavailableError; it is never sent twice.

    Over a plain Redis or Valkey, records work by scripts and SCAN; what needs a command of Holdfast's is a NeedsHoldfastError.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @classmethod
    async def connect(
        cls,
        url: str = "redis://127.0.0.1:6379",
        *,
        addresses: Sequence[str] | None = None,
        response_timeout_ms: int = 10_000,
        writer_timeout_ms: int = 30_000,
        connections_max: int = 50,
        plain: bool = False,
        **options: Any,
    ) -> "Store":
        """Connects, and asks the server whether it has Holdfast's commands. If there is no server, or it is not trusted, that is an
        UnavailableError at once, with the address; later, requests wait for a server that is away for as long as a request may take, which is
        `response_timeout_ms` beside the wait that it asks for. At most `connections_max` requests that do not wait are under way at a time; others wait for their
        turn. `plain` uses only commands that every Redis has.

        With several hosts in the URL (`redis://a:6379,b:6379/0`), or with `addresses`, which are in the place of the URL's host, the store
        finds the server that writes, and finds it again when another one has taken over. A request waits for a writer for up to
        `writer_timeout_ms`; then it is a NoWriterError. Further options are those of redis-py's connections: `protocol` is 3, or 2."""
        store = cls(Connections(url, addresses, response_timeout_ms, writer_timeout_ms, connections_max, options))
        try:
            await store._connections.reach()
            await store.ask(Request([b"PING"], ok))
            store._connections.is_plain = plain or not await store._has_own_commands()
        except BaseException:
            await store.close()
            raise
        return store

    @property
    def is_holdfast(self) -> bool:
        """Whether the server has Holdfast's commands, and they are used."""
        return not self._connections.is_plain

    async def _has_own_commands(self) -> bool:
        def read(reply: Reply) -> bool:
            return all(items(reply))  # a row is nil if the command is not known

        try:
            return await self.ask(Request([b"COMMAND", b"INFO", *_OWN], read))
        except ServerError:
            return True  # the user may not ask: then each command says it

    async def ping(self) -> bool:
        """Whether the server answers now. Does not wait for one that is away or still reads its data."""
        try:
            await self._connections.ask(Request([b"PING"], ok), patience_ms=0)
            return True
        except HoldfastError:
            return False

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

    async def scan(
        self, prefix: Key = "", *, filters: Sequence[Filter] = (), limit: int | None = None, fields: Sequence[str] | None = None
    ) -> AsyncIterator[Found]:
        """The records under a prefix that pass all filters, page by page. One that is there all the time is found; one that comes
        or goes meanwhile may be, and one may be found twice."""
        records.check_limit(limit)
        left, cursor = limit, b"0"
        while left != 0:
            if self._connections.is_plain:
                cursor, page = await self._page_by_scan(prefix, cursor, filters, fields)
            else:
                most = PAGE if left is None else min(left, PAGE)
                cursor, page = await self.ask(records.scan(prefix, cursor, most, filters, fields))
            for found in page if left is None else page[:left]:
                yield found
            if left is not None:
                left -= min(left, len(page))
            if cursor == b"0":
                return

    async def _page_by_scan(
        self, prefix: Key, cursor: bytes, filters: Sequence[Filter], fields: Sequence[str] | None
    ) -> tuple[bytes, list[Found]]:
        cursor, keys = await self.ask(plain.scan_keys(prefix, cursor, PAGE))
        read = await self.ask(plain.get_all(keys)) if keys else []
        # A record that has gone since SCAN named it is passed over.
        pairs = ((key, record) for key, record in zip(keys, read) if record is not None)
        found = (records.found_by_scan(key, record, filters, fields) for key, record in pairs)
        return cursor, [each for each in found if each is not None]

    async def create_index(self, name: str, index: IndexDefinition, *, on_difference: OnDifference = "raise") -> bool:
        """Makes an index, and returns when existing records are in it. Returns False if there is one of that name with this definition.
        One with another definition is an IndexDiffersError; `on_difference="keep"` leaves it as it is, and `"replace"` puts the new one in
        its place in one step, during which the server does nothing else."""
        indexes_of.check_choice(on_difference)
        try:
            return await self.ask(indexes_of.create_if_absent(name, index))
        except ServerError as error:
            if error.code != "ERR":
                raise
        # There is another definition, or the server does not know IFABSENT.
        there = await self.definition(name)
        if there is None:
            try:
                await self.ask(records.create_index(name, index))
                return True
            except ServerError:
                there = await self.definition(name)  # which another program has made meanwhile
                if there is None:
                    raise
        wanted = DefinitionWords.of(index)
        differences = there.differences(wanted)
        if not differences or on_difference == "keep":
            return False
        if on_difference == "raise":
            raise IndexDiffersError(name, differences)
        limits = await self.limits(name) if there.keeps_limits(wanted) else []
        set_again = [limits_of.limit(name, each.scope, each.held, each.rate, each.weight, each.pause).words for each in limits]
        return await self.ask(indexes_of.replace(name, there, wanted, set_again))

    async def definition(self, name: str) -> DefinitionWords | None:
        """The definition of an index in the words of its command; None if there is no such index."""
        try:
            return await self.ask(indexes_of.definition(name))
        except NeedsHoldfastError:
            raise
        except ServerError as error:
            if error.code != "ERR":
                raise
            return None

    async def drop_index(self, name: str) -> bool:
        """Removes an index, not its records; whether there was one."""
        return await self.ask(records.drop_index(name))

    async def indexes(self) -> list[str]:
        """The names of all indexes."""
        return await self.ask(records.indexes())

    async def limit(
        self,
        index: str,
        scope: Scope,
        *,
        held: int | NoLimit | None = None,
        rate: Rate | NoLimit | None = None,
        weight: float | None = None,
        pause: bool | None = None,
    ) -> None:
        """Limits what claims may take from one group of an index, from each group that has no value of its own, or from all records
        together: how many may be held at a time, how fast they are taken, the share of the turns (0.01 to 1000), a pause. What is not
        given stays as it is; `"none"` is no limit, whatever is set for each group, and `"default"` takes a value back."""
        await self.ask(limits_of.limit(index, scope, held, rate, weight, pause))

    async def reset_limits(self, index: str, scope: Scope | None = None) -> None:
        """Takes back all limits of a scope; without one, all limits of the index."""
        await self.ask(limits_of.reset_limits(index, scope))

    async def limits(self, index: str) -> list[Limits]:
        """The limits of an index that were set."""
        return await self.ask(limits_of.limits(index))

    async def groups(self, index: str) -> AsyncIterator[GroupState]:
        """The groups of an index, page by page, in no order. One that is there all the time is listed."""
        cursor = b"0"
        while True:
            cursor, page = await self.ask(limits_of.groups(index, cursor))
            for group in page:
                yield group
            if cursor == b"0":
                return

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

    async def runs(self, prefix: Key = "", statuses: Sequence[RunStatus] = ()) -> AsyncIterator[str]:
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

    async def read_transaction(self, body: Callable[[ReadTransaction], Awaitable[T]]) -> T:
        """Runs `body`, which reads cells as they all are at one instant. It does not conflict with writers and runs once, however much
        others write meanwhile; with several servers, it runs again if another one becomes the writer and the old one refuses to read.
        What cannot be kept for it within the server's `txn-max-bytes` is a ConflictError."""
        return await read_transaction(self._connections, body)
