"""Runs: append-only logs of events. Their commands, their events and snapshots, and the reducer that the server has. Knows no
connection, and refuses to know what the data of an event means."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from .codec import Codec, parsed
from .errors import ReplyError
from .records import block
from .fields import Fields, read_fields
from .replies import Reply, flag, integer, items, name, named, optional, raw, row, text, time
from .request import Request
from .words import Key, Values, Word, counted_list, counted_values, key_word, whole, word

D = TypeVar("D")

RunStatus: TypeAlias = Literal["pending", "running", "paused", "completed", "failed", "cancelled"]
StepStatus: TypeAlias = Literal["pending", "running", "retrying", "completed", "failed", "skipped"]

#: Events that a page has at most, where the caller does not say.
PAGE = 1000


@dataclass(frozen=True)
class NewEvent(Generic[D]):
    """An event to append. Absent are made: `event_id` by the server, a random UUID; `idempotency_key` by the server, SHA-256 of
    run, step, logical attempt, type and plan version; `emitted_at` here, the time of the call in ISO 8601."""

    event_type: str
    event_data: D
    _: KW_ONLY
    idempotency_key: str | None = None
    event_id: str | None = None
    step_id: str | None = None
    engine_attempt_id: str | None = None
    logical_attempt_id: str | None = None
    emitted_at: str | None = None
    adapter_version: str | None = None
    #: What the engine calls the run: an identifier, or an object that is sent as JSON.
    engine_run_ref: Any = None
    caused_by_signal_id: str | None = None
    parent_event_id: str | None = None
    plan_version: str | None = None
    #: Fields of the engine's own, of which the server knows nothing. They are stored unchanged.
    attributes: Values = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Event(Generic[D]):
    """An event as it is stored."""

    #: The run, which is the key.
    run_id: str
    #: 1, 2, 3 … without gaps, assigned by the server.
    run_seq: int
    event_id: str
    event_type: str
    event_data: D
    idempotency_key: str
    #: As the writer gave it.
    emitted_at: str
    #: The server's time; never before that of the event before.
    persisted_at: datetime
    step_id: str | None = None
    engine_attempt_id: str | None = None
    logical_attempt_id: str | None = None
    adapter_version: str | None = None
    engine_run_ref: Any = None
    caused_by_signal_id: str | None = None
    parent_event_id: str | None = None
    plan_version: str | None = None
    attributes: Fields = field(default_factory=Fields)


@dataclass(frozen=True)
class Lag:
    """How far a reader is behind its run."""

    #: How many events come after its position.
    events: int
    #: How long ago the first of them was stored, in milliseconds by the server's clock; 0 if there is none.
    age_ms: int


@dataclass(frozen=True, kw_only=True)
class Appended:
    """The event is stored."""

    run_seq: int
    event_id: str
    persisted_at: datetime
    outcome: Literal["appended"] = "appended"
    idempotent: Literal[False] = False
    persisted: Literal[True] = True
    mismatch: Literal[False] = False


@dataclass(frozen=True, kw_only=True)
class Duplicate:
    """An event with this idempotency key was stored before; these are its run_seq, event_id and time. Nothing was changed."""

    run_seq: int
    event_id: str
    persisted_at: datetime
    #: Its type or its data differ from this one's: the key was used for two events.
    mismatch: bool
    outcome: Literal["duplicate"] = "duplicate"
    idempotent: Literal[True] = True
    persisted: Literal[False] = False


@dataclass(frozen=True, kw_only=True)
class Behind:
    """The run's last event is another one than `if_last` says: another engine goes on with it. Nothing was changed."""

    #: The run's last run_seq.
    run_seq: int
    outcome: Literal["behind"] = "behind"
    idempotent: Literal[False] = False
    persisted: Literal[False] = False


#: What became of an append that had no `if_last`.
AppendResult: TypeAlias = Appended | Duplicate


@dataclass(frozen=True, kw_only=True)
class StepSnapshot(Generic[D]):
    #: Pending: it was corrected before it began.
    status: StepStatus = "pending"
    #: How often it was started.
    attempts: int = 0
    started_at: datetime | None = None
    updated_at: datetime | None = None
    data: D | None = None


@dataclass(frozen=True, kw_only=True)
class RunSnapshot(Generic[D]):
    """The state of a run after its last event; `RunSnapshot(run_id=…)` is that before its first."""

    run_id: str
    status: RunStatus = "pending"
    #: The watermark: the events up to it are in the snapshot. 0: there are none.
    last_event_seq: int = 0
    #: When the first RunStarted was stored.
    started_at: datetime | None = None
    #: When the last event of a known type was stored.
    updated_at: datetime | None = None
    steps: Mapping[str, StepSnapshot[D]] = field(default_factory=dict)
    #: That of the last event that changed the status.
    data: D | None = None


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    run_id: str
    status: RunStatus
    events: int
    last_event_seq: int
    #: When the first and the last event were stored.
    first_at: datetime | None
    last_at: datetime | None
    #: The memory that the run takes.
    bytes: int


_RUN_STATUS: Mapping[str, RunStatus] = {
    "RunStarted": "running",
    "RunResumed": "running",
    "RunPaused": "paused",
    "RunCompleted": "completed",
    "RunFailed": "failed",
    "RunCancelled": "cancelled",
}

_STEP_STATUS: Mapping[str, StepStatus] = {
    "StepStarted": "running",
    "StepRetried": "retrying",
    "StepCompleted": "completed",
    "StepFailed": "failed",
    "StepSkipped": "skipped",
}

_FINAL = ("completed", "failed", "cancelled")


def snapshot_reducer(state: RunSnapshot[D], event: Event[D]) -> RunSnapshot[D]:
    """The server's own reducer: from the same events it makes what RUN.SNAPSHOT says. Unknown types move only the watermark."""
    state = replace(state, last_event_seq=event.run_seq)
    if (status := _RUN_STATUS.get(event.event_type)) is not None:
        state = replace(state, updated_at=event.persisted_at)
        if state.status in _FINAL:
            return state
        if event.event_type == "RunStarted" and state.started_at is None:
            state = replace(state, started_at=event.persisted_at)
        return replace(state, status=status, data=event.event_data)
    known = event.event_type in _STEP_STATUS or event.event_type == "StepCorrected"
    if event.step_id is None or not known:
        return state
    step = _step_after(state.steps.get(event.step_id, StepSnapshot()), event)
    return replace(state, updated_at=event.persisted_at, steps={**state.steps, event.step_id: step})


def _step_after(step: StepSnapshot[D], event: Event[D]) -> StepSnapshot[D]:
    status = _STEP_STATUS.get(event.event_type, step.status)
    step = replace(step, status=status, updated_at=event.persisted_at, data=event.event_data)
    if event.event_type != "StepStarted":
        return step
    return replace(step, attempts=step.attempts + 1, started_at=step.started_at or event.persisted_at)


@dataclass(frozen=True)
class RunRequests(Generic[D]):
    """The commands of one run."""

    name: str
    codec: Codec[D]

    def append(self, event: NewEvent[D], if_last: int | None) -> Request[Appended | Duplicate | Behind]:
        key = "*" if event.idempotency_key is None else event.idempotency_key
        words = [b"RUN.APPEND", word(self.name), word(key), word(event.event_type), self.codec.encode(event.event_data)]
        emitted_at = event.emitted_at or datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for option, value in (
            (b"EVENTID", event.event_id),
            (b"STEP", event.step_id),
            (b"ENGINEATTEMPT", event.engine_attempt_id),
            (b"LOGICALATTEMPT", event.logical_attempt_id),
            (b"ADAPTER", event.adapter_version),
            (b"SIGNAL", event.caused_by_signal_id),
            (b"PARENT", event.parent_event_id),
            (b"PLANVERSION", event.plan_version),
            (b"EMITTEDAT", emitted_at),
        ):
            if value is not None:
                words += [option, word(value)]
        if event.attributes:
            words += [b"ATTR", *counted_values(event.attributes)]
        if event.engine_run_ref is not None:
            words += [b"REF", _ref_word(event.engine_run_ref)]
        if if_last is not None:
            words += [b"IFLAST", whole(if_last, "if_last")]
        return Request(words, _read_append)

    def events(self, after: int, limit: int, wait_ms: int) -> Request[list[Event[D]]]:
        words = [b"RUN.EVENTS", word(self.name), b"AFTER", whole(after, "after"), b"LIMIT", whole(limit, "limit")]
        return Request([*words, *block(wait_ms)], lambda reply: [self._event(each) for each in items(reply)], wait_ms)

    def snapshot(self) -> Request[RunSnapshot[D] | None]:
        return Request([b"RUN.SNAPSHOT", word(self.name)], lambda reply: optional(reply, self._snapshot))

    def project(self, up_to: int | None) -> Request[RunSnapshot[D]]:
        words = [b"RUN.PROJECT", word(self.name)]
        if up_to is not None:
            words += [b"UPTO", whole(up_to, "up_to")]
        return Request(words, lambda reply: optional(reply, self._snapshot) or RunSnapshot(run_id=self.name))

    def info(self) -> Request[RunInfo | None]:
        return Request([b"RUN.INFO", word(self.name)], lambda reply: optional(reply, _read_info))

    def lag(self, position: int) -> Request[Lag]:
        return Request([b"EVAL", _LAG, b"1", word(self.name), whole(position, "position")], _read_lag, is_holdfast_only=True)

    def delete(self) -> Request[bool]:
        return Request([b"DEL", word(self.name)], flag, is_holdfast_only=True)

    def _event(self, reply: Reply) -> Event[D]:
        parts = named(reply)
        ref = optional(parts.get("engineRunRef"), name)
        return Event(
            run_id=name(parts.get("runId")),
            run_seq=integer(parts.get("runSeq")),
            event_id=name(parts.get("eventId")),
            event_type=name(parts.get("eventType")),
            event_data=self._data(parts.get("eventData")),
            idempotency_key=name(parts.get("idempotencyKey")),
            emitted_at=name(parts.get("emittedAt")),
            persisted_at=time(parts.get("persistedAt")),
            step_id=optional(parts.get("stepId"), name),
            engine_attempt_id=optional(parts.get("engineAttemptId"), name),
            logical_attempt_id=optional(parts.get("logicalAttemptId"), name),
            adapter_version=optional(parts.get("adapterVersion"), name),
            engine_run_ref=None if ref is None else _read_ref(ref),
            caused_by_signal_id=optional(parts.get("causedBySignalId"), name),
            parent_event_id=optional(parts.get("parentEventId"), name),
            plan_version=optional(parts.get("planVersion"), name),
            attributes=optional(parts.get("attributes"), read_fields) or Fields(),
        )

    def _snapshot(self, reply: Reply) -> RunSnapshot[D]:
        parts = named(reply)
        return RunSnapshot(
            run_id=name(parts.get("runId")),
            status=cast(RunStatus, text(parts.get("status"))),
            last_event_seq=integer(parts.get("lastEventSeq")),
            started_at=optional(parts.get("startedAt"), time),
            updated_at=optional(parts.get("updatedAt"), time),
            steps={step_id: self._step(step) for step_id, step in named(parts.get("steps")).items()},
            data=optional(parts.get("data"), self._data),
        )

    def _step(self, reply: Reply) -> StepSnapshot[D]:
        parts = named(reply)
        return StepSnapshot(
            status=cast(StepStatus, text(parts.get("status"))),
            attempts=integer(parts.get("attempts")),
            started_at=optional(parts.get("startedAt"), time),
            updated_at=optional(parts.get("updatedAt"), time),
            data=optional(parts.get("data"), self._data),
        )

    def _data(self, reply: Reply) -> D:
        return self.codec.decode(raw(reply))


def runs(prefix: Key, statuses: Sequence[RunStatus], cursor: Word) -> Request[tuple[Word, list[str]]]:
    """A page: the next cursor, which is `0` behind the last one, and its names."""
    words = [b"RUN.LIST", b"PREFIX", key_word(prefix), b"CURSOR", cursor]
    if statuses:
        words += [b"STATUS", *counted_list(statuses)]

    def read(reply: Reply) -> tuple[Word, list[str]]:
        following, names = row(reply, 2)
        return raw(following), [name(each) for each in items(names)]

    return Request(words, read)


#: One step, so that the count and the age are of one instant, and no event's data is sent.
_LAG = b"""local events = redis.call('RUN.EVENTS', KEYS[1], 'AFTER', ARGV[1], 'LIMIT', 1)
if #events == 0 then return {0, 0} end
local function part(map, name)
    for i = 1, #map, 2 do
        if map[i] == name then return map[i + 1] end
    end
end
local last = part(redis.call('RUN.INFO', KEYS[1]), 'lastEventSeq')
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
return {last - ARGV[1], math.max(now - part(events[1], 'persistedAt'), 0)}"""


def _read_lag(reply: Reply) -> Lag:
    events, age_ms = row(reply, 2)
    return Lag(integer(events), integer(age_ms))


def successor(watermark: int, event: Event[D]) -> int:
    """The watermark behind an event. The server leaves no gaps: one here would be an event that was not seen."""
    if event.run_seq != watermark + 1:
        raise ReplyError(f"event {event.run_seq} of the run {event.run_id} came behind event {watermark}")
    return event.run_seq


def check_page_size(page_size: int) -> None:
    if page_size < 1:
        raise ValueError(f"page_size is {page_size}, and has to be at least 1")


def _read_append(reply: Reply) -> Appended | Duplicate | Behind:
    parts = named(reply)
    run_seq = integer(parts.get("runSeq"))
    persisted, idempotent = flag(parts.get("persisted")), flag(parts.get("idempotent"))
    if not persisted and not idempotent:
        return Behind(run_seq=run_seq)
    event_id, persisted_at = name(parts.get("eventId")), time(parts.get("persistedAt"))
    if persisted:
        return Appended(run_seq=run_seq, event_id=event_id, persisted_at=persisted_at)
    return Duplicate(run_seq=run_seq, event_id=event_id, persisted_at=persisted_at, mismatch=flag(parts.get("mismatch")))


def _read_info(reply: Reply) -> RunInfo:
    parts = named(reply)
    return RunInfo(
        run_id=name(parts.get("runId")),
        status=cast(RunStatus, text(parts.get("status"))),
        events=integer(parts.get("events")),
        last_event_seq=integer(parts.get("lastEventSeq")),
        first_at=optional(parts.get("firstAt"), time),
        last_at=optional(parts.get("lastAt"), time),
        bytes=integer(parts.get("bytes")),
    )


def _ref_word(ref: Any) -> Word:
    """A reference to a run elsewhere is an identifier or an object. An identifier is sent as it is, so that it reads well
    everywhere, unless it looks like JSON; then it is JSON too, so that everything comes back as it was given."""
    if isinstance(ref, str) and not ref.startswith(('"', "[", "{")):
        return word(ref)
    if isinstance(ref, (str, list, tuple, Mapping)):
        return json.dumps(ref, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    raise TypeError(f"engine_run_ref is text or an object, and no {type(ref).__name__}")


def _read_ref(ref: str) -> Any:
    return parsed(ref, ref) if ref.startswith(('"', "[", "{")) else ref
