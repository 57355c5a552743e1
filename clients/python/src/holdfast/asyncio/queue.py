"""A queue of jobs: how they are added, the claims that workers make, and what a worker does with a job that it holds."""

from collections.abc import AsyncIterator
from dataclasses import replace

from .. import records
from ..fields import Fields
from ..jobs import Hold, LostError, QueueConfig
from ..limits import GroupState, Limits, NoLimit, Rate, Scope
from ..records import Claim, Exchange, Fate, Indexed, Outcome
from ..words import Changes, Key, Value
from .store import Store


class Job:
    """A job that this worker has claimed, until its lease ends. Every method writes only if the job is still this worker's, and is
    a LostError otherwise. After an UnavailableError any of them may be called again: if the first call was made after all, the
    second one finds the job as it would leave it, and succeeds.

    A job that is dropped is claimed by another worker when its lease ends.
    """

    key: str
    #: When it became due, in unix milliseconds.
    score: float
    #: Its fields as they were when it was claimed.
    fields: Fields
    #: How often it was claimed, this time included. It only grows: other services can refuse a lower one than they have seen.
    token: int

    def __init__(self, store: Store, claimed: Indexed, hold: Hold) -> None:
        self.key, self.score, self.fields, self.token = claimed.key, claimed.score, claimed.fields, hold.token
        self._store = store
        self._hold = hold

    async def renew(self, lease_ms: int) -> None:
        """Makes the lease end so long from now."""
        await self.update(self._hold.renewal(lease_ms))

    async def complete(self, values: Changes | None = None) -> None:
        """Ends the job: it is done, with these fields as its result."""
        await self._leave(self._hold.completion(values or {}))

    async def fail(self, values: Changes | None = None) -> None:
        """Ends the job: it cannot be done, and becomes a dead letter with these fields, such as the error."""
        await self._leave(self._hold.failure(values or {}))

    async def retry(self, after_ms: int, values: Changes | None = None) -> Fate:
        """Gives the job back, to be claimed again so long from now. If this was the last attempt, it becomes a dead letter."""
        exchange, fate = self._hold.retry(after_ms, values or {})
        await self._leave(exchange)
        return fate

    async def update(self, exchange: Exchange) -> Outcome:
        """Changes the record if the job is still this worker's and the exchange's own conditions hold. The outcome says whether
        those did."""
        return self._hold.check(await self._store.exchange(self.key, self._hold.update(exchange)))

    async def _leave(self, exchange: Exchange) -> None:
        try:
            await self.update(exchange)
        except LostError as lost:
            if not self._hold.was_left(lost, exchange):
                raise


class Queue:
    """Jobs in a store: a job is a record that is indexed by the time at which it may be claimed. A claim makes that time the end of
    the lease, so a job whose worker dies becomes due again by itself. It also counts the attempt, which every later write of the
    worker has as a condition."""

    def __init__(self, store: Store, config: QueueConfig) -> None:
        self._store = store
        self._config = config

    async def create_index(self, index: str, prefix: Key) -> None:
        """Makes an index over the open jobs whose keys begin so. If there is an index of that name, it is left as it is; a queue with
        groups needs one that keeps them, and any other is a NoGroupsError."""
        if not await self._store.create_index(index, self._config.index(prefix)) and self._config.group_by is not None:
            self._config.check_groups(index, await self._store.ask(records.index_groups(index)))

    async def add(self, key: Key, values: Changes, delay_ms: int = 0, *, group: Value | None = None) -> bool:
        """Adds a job, to be claimed when a delay has passed. Whether it is new: one that is there is left alone, so this may be
        repeated. Give its key the prefix of the index that should have it. In a queue with `group_by`, `group` is the value of that
        field; a job without one is in the group of the empty name."""
        outcome = await self._store.exchange(key, self._config.new_job(values, delay_ms, group))
        return outcome.applied

    async def next(self, worker: str, wait_ms: int) -> Job | None:
        """The next job that is due, most urgent index first, then by time. Waits so long if there is none; 0 does not wait."""
        jobs = await self.claim(replace(self.request(worker), wait_ms=wait_ms))
        return jobs[0] if jobs else None

    def request(self, worker: str) -> Claim:
        """What a worker asks for: one job that is due, without waiting. More can be added before it goes to `claim`."""
        return self._config.request(worker)

    async def claim(self, request: Claim) -> list[Job]:
        """Claims jobs."""
        claimed = await self._store.claim(self._config.with_token(request))
        tokens = ((each, each.fields.integer(self._config.names.attempt)) for each in claimed)
        # One without the counter has expired in the step in which it was claimed.
        return [Job(self._store, each, Hold(each.key, token, self._config)) for each, token in tokens if token is not None]

    async def limit(
        self,
        scope: Scope,
        *,
        held: int | NoLimit | None = None,
        rate: Rate | NoLimit | None = None,
        weight: float | None = None,
        pause: bool | None = None,
    ) -> None:
        """Limits what workers may take from the jobs of one group, of each group, or of all: how many run at a time, how fast they are
        taken, the share of the turns, a pause. What is not given stays as it is. Limits are those of one index: a queue with several
        has `Store.limit`."""
        await self._store.limit(self._config.only_index(), scope, held=held, rate=rate, weight=weight, pause=pause)

    async def reset_limits(self, scope: Scope | None = None) -> None:
        """Takes back all limits of a scope; without one, of all scopes."""
        await self._store.reset_limits(self._config.only_index(), scope)

    async def limits(self) -> list[Limits]:
        """The limits that were set."""
        return await self._store.limits(self._config.only_index())

    async def groups(self) -> AsyncIterator[GroupState]:
        """The groups of the queue, page by page: how many jobs are open and how many run, and which limits apply."""
        async for group in self._store.groups(self._config.only_index()):
            yield group
