"""A queue of jobs: how they are added, the claims that workers make, and what a worker does with a job that it holds."""

from collections.abc import AsyncIterator
from dataclasses import replace

from .. import records
from ..errors import ServerError
from ..fields import Fields
from ..indexes import OnDifference, OutsideIndexError, is_dropped
from ..jobs import Hold, LostError, QueueConfig
from ..limits import GroupState, Limits, NoLimit, Rate, Scope
from ..records import Claim, Exchange, Fate, Indexed, Outcome
from ..patience import Deadline
from ..words import Changes, Key, Value, Word, key_word
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
        #: The prefixes of its indexes, as far as they were asked for.
        self._prefixes: frozenset[Word] = frozenset()

    async def create_index(self, index: str, prefix: Key, *, on_difference: OnDifference = "raise") -> bool:
        """Makes an index over the open jobs whose keys begin so. Returns False if there is one of that name with this definition. One with
        another definition is an IndexDiffersError; `on_difference="keep"` leaves it as it is, and `"replace"` puts the new one in its place,
        while workers go on."""
        self._prefixes = frozenset()
        return await self._store.create_index(index, self._config.index(prefix), on_difference=on_difference)

    async def add(self, key: Key, values: Changes, delay_ms: int = 0, *, group: Value | None = None) -> bool:
        """Adds a job, to be claimed when a delay has passed. Whether it is new: one that is there is left alone, so this may be
        repeated. A key without the prefix of one of the queue's indexes is an OutsideIndexError. In a queue with `group_by`, `group` is the value of that
        field; a job without one is in the group of the empty name."""
        job = self._config.new_job(values, delay_ms, group)
        await self._check_prefix(key)
        return (await self._store.exchange(key, job)).applied

    async def next(self, worker: str, wait_ms: int) -> Job | None:
        """The next job that is due, most urgent index first, then by time. Waits so long if there is none; 0 does not wait. If it is cancelled
        it gives back what had come, as if it had not been claimed."""
        jobs = await self.claim(replace(self.request(worker), wait_ms=wait_ms))
        return jobs[0] if jobs else None

    def request(self, worker: str) -> Claim:
        """What a worker asks for: one job that is due, without waiting. More can be added before it goes to `claim`."""
        return self._config.request(worker)

    async def claim(self, request: Claim) -> list[Job]:
        """Claims jobs."""
        claimed = await self._claim(self._config.with_token(request))
        tokens = ((each, each.fields.integer(self._config.names.attempt)) for each in claimed)
        # One without the counter has expired in the step in which it was claimed.
        return [Job(self._store, each, Hold(each.key, token, self._config)) for each, token in tokens if token is not None]

    async def _claim(self, request: Claim) -> list[Indexed]:
        deadline = Deadline(request.wait_ms)
        while True:
            try:
                return await self._store.ask(replace(records.claim(request), give_back=self._config.give_back))
            except ServerError as error:
                # One that was replaced is there. If it is not, the next claim says so.
                if not is_dropped(error):
                    raise
            request = replace(request, wait_ms=deadline.left_ms())

    async def _check_prefix(self, key: Key) -> None:
        """That the key is in an index of the queue. If not all of them are there, it may be in one that is made later."""
        if key_word(key).startswith(tuple(self._prefixes)) or not self._store.is_holdfast:
            return
        found: set[Word] = set()
        for index in self._config.indexes:
            try:
                definition = await self._store.definition(index)
            except ServerError:
                return  # the user may not ask
            if definition is None:
                return
            found |= definition.prefixes
        self._prefixes = frozenset(found)
        if not key_word(key).startswith(tuple(found)):
            raise OutsideIndexError(key, found)

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
