"""What jobs are: where a queue has them, what their fields and states are called, and what a worker writes. Knows how a job is
written, refuses to know how the writes are sent."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .errors import HoldfastError
from .fields import Fields
from .records import Claim, Exchange, Fate, IndexDefinition, Indexed, Lifetime, Outcome, UpTo, exchange
from .request import Request
from .words import Changes, Key, Value, Values, whole, word

#: The name of a group has at most so many bytes: a job with a longer one would be in no index, and never claimed.
GROUP_BYTES_MAX = 1024


@dataclass(frozen=True, kw_only=True)
class JobNames:
    """The names of a job's fields, which may have any others beside them, and of its states."""

    state: str = "state"
    #: When it may be claimed, in unix milliseconds: its start, then the end of each lease.
    run_at: str = "run_at"
    #: How often it was claimed: the fencing token. It must never be set back.
    attempt: str = "attempt"
    #: The worker that claimed it last.
    worker: str = "worker"
    #: The job waits for its time or for a worker.
    pending: str = "pending"
    #: A worker has it, or had it and died.
    running: str = "running"
    completed: str = "completed"
    #: It was given up: a dead letter.
    dead: str = "dead"


@dataclass(frozen=True, kw_only=True)
class QueueConfig:
    #: The indexes, most urgent first: each over the field `run_at` of pending and running jobs.
    indexes: Sequence[str]
    #: How long a worker has a job unless it renews.
    lease_ms: int = 30_000
    #: How often a job is claimed before it becomes a dead letter; for ever if not given.
    attempts_max: int | None = None
    #: How long a completed job is kept; for ever if not given.
    completed_lifetime: Lifetime | None = None
    names: JobNames = field(default_factory=JobNames)
    #: The field by whose value jobs are kept apart, such as `"tenant"`: each of its values is a group, which takes its turns and has limits.
    #: Without it the queue has no groups. Workers need not know it.
    group_by: str | None = None

    def index(self, prefix: Key) -> IndexDefinition:
        """The index over the open jobs whose keys begin so."""
        names = self.names
        index = IndexDefinition(prefixes=[prefix], field=names.run_at, only=(names.state, [names.pending, names.running]))
        return index if self.group_by is None else replace(index, group=self.group_by, held=(names.state, [names.running]))

    def only_index(self) -> str:
        """The index of a queue that has one: limits are those of one index."""
        if len(self.indexes) != 1:
            raise ValueError(f"the queue has {len(self.indexes)} indexes, and each has limits of its own: name one to the store's method")
        return self.indexes[0]

    def new_job(self, values: Changes, delay_ms: int, group: Value | None) -> Exchange:
        names = self.names
        own: dict[str, Value] = {names.state: names.pending}
        if group is not None:
            own = {self._group_field(group): group, **own}
        return Exchange(absent=[names.state], set={**values, **own}, stamp={names.run_at: delay_ms})

    def request(self, worker: str) -> Claim:
        names, lease = self.names, whole(self.lease_ms, "lease_ms").decode()
        up_to = None if self.attempts_max is None else UpTo(max=self.attempts_max, otherwise={names.state: names.dead})
        changes = {names.state: names.running, names.worker: worker, names.run_at: f"NOW+{lease}"}
        return Claim(indexes=self.indexes, max="NOW", set=changes, counter=names.attempt, up_to=up_to)

    def give_back(self, claimed: Sequence[Indexed]) -> list[Request[Any]]:
        """The requests that leave claimed jobs as they were, in the place of a worker that was cancelled before it got them. The attempt does
        not count: no handler has seen it. So each is sent once. A second one could meet the same attempt of the next worker."""
        return [exchange(job.key, given_back) for job in claimed if (given_back := self._given_back(job)) is not None]

    def _given_back(self, job: Indexed) -> Exchange | None:
        names, token = self.names, job.fields.integer(self.names.attempt)
        if token is None:
            return None
        score = int(job.score) if job.score.is_integer() else job.score
        before: Changes = {names.attempt: token - 1 if token > 1 else None, names.worker: None}
        held: Values = {names.attempt: token, names.state: names.running}
        return Exchange(expected=held, set={names.state: names.pending, names.run_at: score, **before})

    def with_token(self, claim: Claim) -> Claim:
        """The claim with the attempt among its fields."""
        if claim.fields is None:
            return claim
        return replace(claim, fields=[*dict.fromkeys([*claim.fields, self.names.attempt])])

    def _group_field(self, group: Value) -> str:
        if self.group_by is None:
            raise ValueError("the queue has no groups: its configuration has no group_by")
        if len(word(group)) > GROUP_BYTES_MAX:
            raise ValueError(f"the name of a group has at most {GROUP_BYTES_MAX} bytes, and this one has {len(word(group))}")
        return self.group_by


class LostError(HoldfastError):
    """The job is not this worker's any more: its lease has ended, or it was ended by another. Nothing was changed: stop."""

    key: str
    #: The token under which the worker had it.
    token: int
    #: State and attempt as they are now; nothing if the record is gone.
    current: Fields

    def __init__(self, key: str, token: int, current: Fields) -> None:
        now = " ".join(f"{name}={value.decode(errors='replace')}" for name, value in current.items())
        super().__init__(f"attempt {token} of the job {key} is over: it {f'has {now}' if now else 'is gone'}")
        self.key, self.token, self.current = key, token, current


@dataclass(frozen=True)
class Hold:
    """A worker's hold on a job: the attempt, which is the fencing token, and the state. Every write has it as its condition."""

    key: str
    token: int
    config: QueueConfig

    def update(self, exchange: Exchange) -> Exchange:
        return replace(exchange, expected={**exchange.expected, **self._conditions()})

    def check(self, outcome: Outcome) -> Outcome:
        """The outcome of such a write, unless it was refused because the job is lost."""
        conditions = self._conditions()
        now = {name: outcome.current[name] for name in conditions if name in outcome.current}
        if outcome.applied or now == {name: value.encode() for name, value in conditions.items()}:
            return outcome
        raise LostError(self.key, self.token, Fields(now))

    def renewal(self, lease_ms: int) -> Exchange:
        return Exchange(stamp={self.config.names.run_at: lease_ms})

    def completion(self, values: Changes) -> Exchange:
        return replace(self._leave(self.config.names.completed, values), lifetime=self.config.completed_lifetime)

    def failure(self, values: Changes) -> Exchange:
        return self._leave(self.config.names.dead, values)

    def retry(self, after_ms: int, values: Changes) -> tuple[Exchange, Fate]:
        """Gives the job back; if this was the last attempt, gives it up."""
        names, most = self.config.names, self.config.attempts_max
        if most is not None and self.token >= most:
            return self.failure(values), "exhausted"
        return replace(self._leave(names.pending, values), stamp={names.run_at: after_ms}), "requeued"

    def was_left(self, lost: LostError, exchange: Exchange) -> bool:
        """Whether the job is as the exchange would leave it, under the same token: by a call whose answer was lost."""
        names = self.config.names
        same_state = lost.current.get(names.state) == str(exchange.set[names.state]).encode()
        return same_state and lost.current.integer(names.attempt) == self.token

    def _leave(self, state: str, values: Changes) -> Exchange:
        return Exchange(set={**values, self.config.names.state: state})

    def _conditions(self) -> dict[str, str]:
        names = self.config.names
        return {names.attempt: str(self.token), names.state: names.running}
