"""Runs a history with the Python package: reads one operation a line, as JSON, and prints its result in the neutral form of README.md.
Knows how operations are called in Python; refuses to know what their results should be."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import holdfast
from holdfast import (
    Claim,
    Exchange,
    Filter,
    Group,
    IndexDefinition,
    Lifetime,
    MemoryState,
    NewEvent,
    Queue,
    QueueConfig,
    Rate,
    Retries,
    StatefulNode,
    Store,
    Sweep,
    codec,
)
from holdfast.cells import Done

CODECS: dict[str, Any] = {"text": codec.text, "integer": codec.integer, "json": codec.json, "raw": codec.raw}
HOUR_MS = 3_600_000

#: The kinds of errors. A wrong argument and the server's ERR are one: nothing was changed.
KINDS: list[tuple[type[Exception], str]] = [
    (holdfast.WrongTypeError, "wrong-type"),
    (holdfast.ConflictError, "conflict"),
    (holdfast.NoSessionError, "no-session"),
    (holdfast.MismatchError, "mismatch"),
    (holdfast.EvictedError, "evicted"),
    (holdfast.ServerError, "refused"),
    (holdfast.NoGroupsError, "refused"),
    (holdfast.LostError, "lost"),
    (holdfast.SessionLostError, "session-lost"),
    (holdfast.ClosedError, "closed"),
    (holdfast.ReplyError, "reply"),
    (holdfast.UnavailableError, "unavailable"),
    (ValueError, "refused"),
    (TypeError, "refused"),
]


class Abort(Exception):
    """What a transaction's body raises by itself."""


def data(text: str) -> bytes:
    return bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode()


def shown(value: bytes | str | None) -> str | None:
    if value is None:
        return None
    raw = value.encode(errors="surrogateescape") if isinstance(value, str) else value
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return "hex:" + raw.hex()
    return text


def changes(fields: dict[str, str | None]) -> dict[str, Any]:
    return {name: None if value is None else data(value) for name, value in fields.items()}


def shown_fields(fields: Any) -> dict[str, Any]:
    return {name: shown(value) for name, value in fields.items()}


def exchange(wanted: dict[str, Any]) -> Exchange:
    ttl = wanted.get("ttl")
    return Exchange(
        expected=changes(wanted.get("if", {})),
        absent=wanted.get("absent", []),
        set=changes(wanted.get("set", {})),
        remove=wanted.get("remove", []),
        lifetime=None if ttl is None else Lifetime(ms=ttl),
    )


def filters(wanted: list[dict[str, Any]]) -> list[Filter]:
    make: dict[str, Callable[..., Filter]] = {
        "eq": Filter.eq, "ne": Filter.ne, "lt": Filter.lt, "le": Filter.le, "gt": Filter.gt, "ge": Filter.ge,
        "in": Filter.is_in, "notin": Filter.not_in,
    }
    return [
        make[each["op"]](each["field"], [data(value) for value in each["values"]] if "values" in each else data(each["value"]))
        for each in wanted
    ]


def value_in(op: dict[str, Any]) -> Any:
    return data(op["value"]) if op.get("codec") == "raw" else op["value"]


def value_out(op: dict[str, Any], value: Any) -> Any:
    if op.get("codec") == "json" and isinstance(value, bytes):
        raise holdfast.ReplyError("no JSON, which is bytes here and an error in Rust")
    return shown(value) if isinstance(value, bytes) else value


def version_in(version: Any) -> Any:
    return tuple(version) if isinstance(version, list) else version


def shown_reply(reply: Any) -> Any:
    if isinstance(reply, list):
        return [shown_reply(each) for each in reply]
    if isinstance(reply, int):
        return str(reply)
    return shown(reply)


class Driver:
    def __init__(self, url: str, protocol: int) -> None:
        self.store = Store.connect(url, protocol=protocol)
        self.queue = Queue(self.store, QueueConfig(indexes=["due"], attempts_max=3))
        self.grouped = Queue(self.store, QueueConfig(indexes=["turns"], lease_ms=HOUR_MS, attempts_max=3, group_by="tenant"))
        self.jobs: dict[int, Any] = {}
        self.sessions: dict[int, Any] = {}
        self.session_ids: dict[str, int] = {}
        self.requests: dict[int, Any] = {}
        self.memory: dict[str, Any] = {}
        self.nodes: dict[str, Any] = {}
        self.snapshots: dict[int, bytes] = {}

    def run(self, op: dict[str, Any]) -> Any:
        return self.perform(self.store, op)

    def perform(self, on: Any, op: dict[str, Any]) -> Any:
        try:
            method = getattr(self, op["op"].replace(".", "_"))
            return method(on, op)
        except Exception as error:
            if isinstance(error, Abort):
                raise
            for kind, name in KINDS:
                if isinstance(error, kind):
                    return {"error": name, "_message": f"{type(error).__name__}: {error}"}
            raise

    # Records

    def r_get(self, on: Any, op: dict[str, Any]) -> Any:
        record = on.get(data(op["key"]))
        return None if record is None else {"fields": shown_fields(record), "ttl": record.ttl_ms is not None}

    def r_put(self, on: Any, op: dict[str, Any]) -> Any:
        return on.put(data(op["key"]), changes(op["fields"]), op.get("ttl"))

    def r_delete(self, on: Any, op: dict[str, Any]) -> Any:
        return on.delete(data(op["key"]))

    def r_get_field(self, on: Any, op: dict[str, Any]) -> Any:
        return shown(on.get_field(data(op["key"]), op["field"]))

    def r_set_field(self, on: Any, op: dict[str, Any]) -> Any:
        return on.set_field(data(op["key"]), op["field"], None if op["value"] is None else data(op["value"]))

    def r_set_fields(self, on: Any, op: dict[str, Any]) -> Any:
        return on.set_fields(data(op["key"]), changes(op["fields"]))

    def r_cas(self, on: Any, op: dict[str, Any]) -> Any:
        return on.compare_and_swap(data(op["key"]), op["field"], data(op["expected"]), data(op["value"]))

    def r_exchange(self, on: Any, op: dict[str, Any]) -> Any:
        outcome = on.exchange(data(op["key"]), exchange(op))
        return {"applied": outcome.applied, "current": shown_fields(outcome.current)}

    def r_scan(self, on: Any, op: dict[str, Any]) -> Any:
        found = on.scan(data(op["prefix"]), filters=filters(op["filters"]), limit=op.get("limit"), fields=op.get("fields"))
        rows = [[shown(each.key), shown_fields(each.fields), each.ttl_ms is not None] for each in found]
        return len(rows) if "limit" in op else sorted(rows, key=lambda row: str(row[0]))

    # Indexes

    def i_create(self, on: Any, op: dict[str, Any]) -> Any:
        return on.create_index("by-n", IndexDefinition(prefixes=["rec:"], field="n"))

    def i_drop(self, on: Any, op: dict[str, Any]) -> Any:
        return on.drop_index("by-n")

    def i_list(self, on: Any, op: dict[str, Any]) -> Any:
        return sorted(on.indexes())

    def _indexed(self, rows: Any) -> Any:
        return [[shown(each.key), each.score, shown_fields(each.fields)] for each in rows]

    def i_range(self, on: Any, op: dict[str, Any]) -> Any:
        return self._indexed(on.range("by-n", op["min"], op["max"], filters=filters(op["filters"]), limit=op.get("limit")))

    def i_sweep(self, on: Any, op: dict[str, Any]) -> Any:
        retry = Retries(counter="swept", max=op["max"], otherwise={"state": "given up"})
        sweep = Sweep(index="by-n", before=op["before"], set=op["set"], where=("state", op["values"]), retry=retry)
        return [[shown(each.key), each.fate] for each in on.sweep(sweep)]

    def i_claim(self, on: Any, op: dict[str, Any]) -> Any:
        claim = Claim(indexes=["by-n"], set=op["set"], where={"state": op["values"]}, counter="claims", count=op["count"])
        return self._indexed(on.claim(claim))

    # Jobs

    def q_index(self, on: Any, op: dict[str, Any]) -> Any:
        return self.queue.create_index("due", "job:")

    def q_add(self, on: Any, op: dict[str, Any]) -> Any:
        time.sleep(0.002)  # two jobs of one millisecond come in the order of their keys
        return self.queue.add(op["key"], changes(op["fields"]), op["delay"])

    def q_next(self, on: Any, op: dict[str, Any]) -> Any:
        return self._taken(op, self.queue.next(op["worker"], op["wait"]))

    def _taken(self, op: dict[str, Any], job: Any) -> Any:
        if job is None:
            return None
        self.jobs[op["slot"]] = job
        fields = {name: value for name, value in shown_fields(job.fields).items() if name != "run_at"}
        return {"key": job.key, "token": job.token, "fields": fields}

    def q_end(self, on: Any, op: dict[str, Any]) -> Any:
        if op["slot"] not in self.jobs:
            return "no job"
        job, fields = self.jobs[op["slot"]], changes(op["fields"])
        match op["how"]:
            case "complete":
                return job.complete(fields)
            case "fail":
                return job.fail(fields)
            case "retry":
                time.sleep(0.002)
                return job.retry(op["after"], fields)
            case "renew":
                return job.renew(HOUR_MS)
            case "update":
                outcome = job.update(exchange(op))
                return {"applied": outcome.applied, "current": shown_fields(outcome.current)}

    # Groups of jobs

    def g_index(self, on: Any, op: dict[str, Any]) -> Any:
        return self.grouped.create_index(op["index"], "task:")

    def g_add(self, on: Any, op: dict[str, Any]) -> Any:
        time.sleep(0.002)
        group = {"group": data(op["group"]) * op.get("repeat", 1)} if "group" in op else {}
        return self.grouped.add(op["key"], changes(op["fields"]), op["delay"], **group)

    def g_next(self, on: Any, op: dict[str, Any]) -> Any:
        if "order" not in op:
            return self._taken(op, self.grouped.next(op["worker"], 0))
        jobs = self.grouped.claim(replace(self.grouped.request(op["worker"]), order=op["order"]))
        return self._taken(op, jobs[0] if jobs else None)

    def _scope(self, op: dict[str, Any]) -> Any:
        return Group(data(op["group"])) if op["scope"] == "group" else op["scope"]

    def g_limit(self, on: Any, op: dict[str, Any]) -> Any:
        wanted = {name: op[name] for name in ("held", "weight", "pause") if name in op}
        if "rate" in op:
            wanted["rate"] = Rate(*op["rate"]) if isinstance(op["rate"], list) else op["rate"]
        return self.grouped.limit(self._scope(op), **wanted)

    def g_reset(self, on: Any, op: dict[str, Any]) -> Any:
        return self.grouped.reset_limits(self._scope(op)) if "scope" in op else self.grouped.reset_limits()

    def _limits(self, limits: Any) -> Any:
        rate = limits.rate if limits.rate is None or limits.rate == "none" else [limits.rate.takes, limits.rate.per_ms, limits.rate.burst]
        return {"held": limits.held, "rate": rate, "weight": limits.weight, "pause": limits.pause}

    def g_limits(self, on: Any, op: dict[str, Any]) -> Any:
        def name(scope: Any) -> str:
            return f"group {shown(scope.name)}" if isinstance(scope, Group) else scope

        return {name(each.scope): self._limits(each) for each in self.grouped.limits()}

    def g_groups(self, on: Any, op: dict[str, Any]) -> Any:
        def allowed(at: int | None) -> str:
            return "not by time" if at is None else "later" if at > 0 else "now"

        return {
            f"group {shown(group.name)}": {
                "records": group.records, "held": group.held, "first": group.first_score is not None, "allowed": allowed(group.allowed_at),
                "limits": self._limits(group.limits),
            }
            for group in self.grouped.groups()
        }  # fmt: skip

    # Cells and branches

    def _cell(self, on: Any, op: dict[str, Any]) -> Any:
        kind = CODECS[op.get("codec", "text")]
        if "branch" in op:
            return on.branch(op["branch"]).cell(data(op["name"]), kind)
        return on.cell(data(op["name"]), kind)

    def _version(self, op: dict[str, Any], held: Any) -> Any:
        return None if held is None else {"value": value_out(op, held.value), "version": held.version}

    def _swap(self, op: dict[str, Any], swap: Any) -> Any:
        if isinstance(swap, Done):
            return {"done": swap.version}
        return {"current": None if swap.current is None else [value_out(op, swap.current[0]), swap.current[1]]}

    def c_init(self, on: Any, op: dict[str, Any]) -> Any:
        return self._cell(on, op).init(value_in(op))

    def c_set(self, on: Any, op: dict[str, Any]) -> Any:
        cell = self._cell(on, op)
        return cell.set(value_in(op)) if op.get("ttl") is None else cell.set_for(value_in(op), op["ttl"])

    def c_cas(self, on: Any, op: dict[str, Any]) -> Any:
        cell = self._cell(on, op)
        if op.get("ttl") is None:
            return self._swap(op, cell.cas(op["expected"], value_in(op)))
        return self._swap(op, cell.cas_for(op["expected"], value_in(op), op["ttl"]))

    def c_get(self, on: Any, op: dict[str, Any]) -> Any:
        return self._version(op, self._cell(on, op).get())

    def c_get_version(self, on: Any, op: dict[str, Any]) -> Any:
        return self._version(op, self._cell(on, op).get_version(op["version"]))

    def c_wait_after(self, on: Any, op: dict[str, Any]) -> Any:
        return self._version(op, self._cell(on, op).wait_after(op["version"], 1))

    def c_history(self, on: Any, op: dict[str, Any]) -> Any:
        return [self._version(op, each) for each in self._cell(on, op).history(op.get("before"), op["limit"])]

    def c_delete(self, on: Any, op: dict[str, Any]) -> Any:
        return self._cell(on, op).delete()

    def c_delete_if(self, on: Any, op: dict[str, Any]) -> Any:
        return self._cell(on, op).delete_if(op["version"])

    def c_mget(self, on: Any, op: dict[str, Any]) -> Any:
        found = on.get_cells([data(name) for name in op["names"]], CODECS[op.get("codec", "text")])
        return [self._version(op, each) for each in found]

    def b_fork(self, on: Any, op: dict[str, Any]) -> Any:
        return on.branch(op["branch"]).fork(op["to"])

    def b_drop(self, on: Any, op: dict[str, Any]) -> Any:
        return on.branch(op["branch"]).drop_cells()

    def b_cells(self, on: Any, op: dict[str, Any]) -> Any:
        return sorted(str(shown(each)) for each in on.branch(op["branch"]).cells())

    # Transactions

    def t_run(self, on: Any, op: dict[str, Any]) -> Any:
        tried = 0

        def body(transaction: Any) -> Any:
            nonlocal tried
            tried += 1
            results = [self.perform(transaction, each) for each in op["ops"]]
            if op["outside"] is not None and tried <= op["outside_times"]:
                self.perform(self.store, op["outside"])
            if op["fails"]:
                raise Abort
            return results

        try:
            results = self.store.transaction(op["tries"], body)
        except Abort:
            return {"aborted": tried}
        return {"results": results, "tried": tried}

    def t_read(self, on: Any, op: dict[str, Any]) -> Any:
        def body(transaction: Any) -> Any:
            if op["outside"] is not None:
                self.perform(self.store, op["outside"])
            return [self.perform(transaction, each) for each in op["ops"]]

        return self.store.read_transaction(body)

    # Runs

    def e_append(self, on: Any, op: dict[str, Any]) -> Any:
        event: NewEvent[Any] = NewEvent(
            op["type"],
            op["data"],
            idempotency_key=op.get("key"),
            event_id=op.get("event_id"),
            step_id=op.get("step"),
            logical_attempt_id=op.get("logical_attempt"),
            emitted_at=op.get("emitted_at"),
            engine_run_ref=op.get("ref"),
            plan_version=op.get("plan"),
            attributes={name: data(value) for name, value in op.get("attributes", {}).items()},
        )
        run = on.run(op["run"])
        appended = run.append(event) if op.get("if_last") is None else run.append(event, if_last=op["if_last"])
        if appended.outcome == "behind":
            return {"outcome": "behind", "seq": appended.run_seq}
        return {
            "outcome": appended.outcome, "seq": appended.run_seq, "mismatch": appended.mismatch,
            "event_id": appended.event_id if appended.event_id.startswith("ev-") else "random",
        }

    def e_events(self, on: Any, op: dict[str, Any]) -> Any:
        return [
            {
                "run": each.run_id if "run_id" in vars(each) else op["run"], "seq": each.run_seq, "type": each.event_type,
                "data": value_out(op, each.event_data), "key": each.idempotency_key,
                "event_id": each.event_id if each.event_id.startswith("ev-") else "random",
                "emitted_at": each.emitted_at if each.emitted_at.startswith("at-") else "now",
                "step": each.step_id, "logical_attempt": each.logical_attempt_id, "ref": each.engine_run_ref,
                "plan": each.plan_version, "attributes": shown_fields(each.attributes),
            }
            for each in on.run(op["run"]).events(op["after"], op["limit"])
        ]

    def _snapshot(self, snapshot: Any) -> Any:
        if snapshot is None:
            return None
        return {
            "status": snapshot.status, "seq": snapshot.last_event_seq, "data": snapshot.data,
            "started": snapshot.started_at is not None, "updated": snapshot.updated_at is not None,
            "steps": {
                name: {"status": each.status, "attempts": each.attempts, "data": each.data, "started": each.started_at is not None}
                for name, each in snapshot.steps.items()
            },
        }

    def e_snapshot(self, on: Any, op: dict[str, Any]) -> Any:
        return self._snapshot(on.run(op["run"]).snapshot())

    def e_project(self, on: Any, op: dict[str, Any]) -> Any:
        return self._snapshot(on.run(op["run"]).project(op.get("up_to")))

    def e_fold(self, on: Any, op: dict[str, Any]) -> Any:
        return on.run(op["run"]).fold([], lambda types, event: [*types, event.event_type])

    def e_lag(self, on: Any, op: dict[str, Any]) -> Any:
        return on.run(op["run"]).lag(op["position"]).events

    def e_info(self, on: Any, op: dict[str, Any]) -> Any:
        info = on.run(op["run"]).info()
        return None if info is None else {"status": info.status, "events": info.events}

    def e_delete(self, on: Any, op: dict[str, Any]) -> Any:
        return on.run(op["run"]).delete()

    def e_list(self, on: Any, op: dict[str, Any]) -> Any:
        return sorted(on.runs(op["prefix"], op["statuses"]))

    # Exactly-once state

    def _state(self, on: Any, op: dict[str, Any]) -> Any:
        if op["state"].startswith("memory:"):
            return self.memory.setdefault(op["state"], MemoryState(codec.raw))
        return on.exactly_once_state(op["state"], codec.raw)

    def _held(self, held: Any) -> Any:
        return None if held is None else {"value": shown(held[0]), "version": str(held[1])}

    def s_put(self, on: Any, op: dict[str, Any]) -> Any:
        state = self._state(on, op)
        put = state.put_ordered if op["ordered"] else state.put
        return put(data(op["key"]), data(op["value"]), version_in(op["version"]))

    def s_add(self, on: Any, op: dict[str, Any]) -> Any:
        state = self._state(on, op)
        add = state.add_ordered if op["ordered"] else state.add
        return add(data(op["key"]), version_in(op["version"]), op["number"])

    def s_seal(self, on: Any, op: dict[str, Any]) -> Any:
        return self._state(on, op).seal(data(op["key"]), version_in(op["version"]))

    def s_get(self, on: Any, op: dict[str, Any]) -> Any:
        return self._held(self._state(on, op).get(data(op["key"])))

    def s_mget(self, on: Any, op: dict[str, Any]) -> Any:
        return [self._held(each) for each in self._state(on, op).mget([data(key) for key in op["keys"]])]

    def s_snapshot(self, on: Any, op: dict[str, Any]) -> Any:
        position = op.get("position")
        blob = self._state(on, op).snapshot(None if position is None else data(position))
        self.snapshots[op["slot"]] = blob
        return {"_blob": blob.hex()}

    def s_take(self, on: Any, op: dict[str, Any]) -> Any:
        if "_blob" in op:
            self.snapshots[op["slot"]] = bytes.fromhex(op["_blob"])
        state, blob = self._state(on, op), self.snapshots[op["slot"]]
        return {"position": shown((state.merge(blob) if op["merges"] else state.restore(blob)).position)}

    def s_checkpoint(self, on: Any, op: dict[str, Any]) -> Any:
        position = op.get("position")
        return self._state(on, op).checkpoint(op["key"], None if position is None else data(position))

    def s_take_checkpoint(self, on: Any, op: dict[str, Any]) -> Any:
        state = self._state(on, op)
        restored = state.merge_checkpoint(op["key"]) if op["merges"] else state.restore_checkpoint(op["key"])
        return None if restored is None else {"position": shown(restored.position)}

    # Stateful nodes

    def _node(self, op: dict[str, Any]) -> Any:
        if op["node"] not in self.nodes or op.get("again"):
            name = op["node"]
            if name.startswith("memory:"):
                backend: Any = self.memory.setdefault(name, MemoryState(codec.json))
            else:
                backend = self.store.exactly_once_state(f"{name}/", codec.json)
            self.nodes[name] = StatefulNode(name, backend)
        return self.nodes[op["node"]]

    def n_process(self, on: Any, op: dict[str, Any]) -> Any:
        def update(state: Any) -> Any:
            count, total = (state["count"], state["total"]) if state is not None else (0, 0)
            new = {"count": count + 1, "total": total + op["amount"]}
            outputs = [{"count": new["count"], "key": op["key"]}, f"the total is {new['total']}", None]
            return new, outputs[: op["outputs"]]

        outputs = self._node(op).process(data(op["key"]), version_in(op["version"]), update)
        return None if outputs is None else [[each.id, each.value] for each in outputs]

    def n_checkpoint(self, on: Any, op: dict[str, Any]) -> Any:
        self._node(op).checkpoint(data(op["position"]))

    def n_recover(self, on: Any, op: dict[str, Any]) -> Any:
        return shown(self._node(op).recover())

    # Sessions

    def v_open(self, on: Any, op: dict[str, Any]) -> Any:
        session = self.store.sessions.open(capabilities=op["capabilities"])
        self.sessions[op["slot"]] = session
        return {"_id": session.id}

    def v_resume(self, on: Any, op: dict[str, Any]) -> Any:
        session = self.store.sessions.resume(op["_id"], op["next"])
        self.sessions[op["slot"]] = session
        return session.next_request_id

    def v_do(self, on: Any, op: dict[str, Any]) -> Any:
        return self.perform(self.sessions[op["slot"]], op["inner"])

    def v_call(self, on: Any, op: dict[str, Any]) -> Any:
        return shown_reply(self.sessions[op["slot"]].call(*[data(each) for each in op["words"]]))

    def v_prepare(self, on: Any, op: dict[str, Any]) -> Any:
        words = [data(each) for each in op["words"]]
        request = self.sessions[op["slot"]].prepare(*words, request_id=op.get("request_id"))
        self.requests[op["request"]] = request
        return request.id

    def v_send(self, on: Any, op: dict[str, Any]) -> Any:
        request = self.requests.get(op["request"])
        return "no request" if request is None else shown_reply(request.send())

    def v_push(self, on: Any, op: dict[str, Any]) -> Any:
        if op["through"] is None:
            return self.store.sessions.push(op["_id"], data(op["payload"]))
        return self.sessions[op["through"]].push(op["_id"], data(op["payload"]))

    def v_pending(self, on: Any, op: dict[str, Any]) -> Any:
        found = self.sessions[op["slot"]].pending(op["after"], op["limit"])
        return [[each.id, shown(each.payload)] for each in found]

    def v_ack(self, on: Any, op: dict[str, Any]) -> Any:
        return self.sessions[op["slot"]].ack(op["id"])

    def v_info(self, on: Any, op: dict[str, Any]) -> Any:
        info = self.store.sessions.info(op["_id"])
        if info is None:
            return None
        return {
            "low": info.low, "replies": info.replies, "pending": info.pending, "last_id": info.last_id,
            "attached": info.attached, "capabilities": dict(info.capabilities), "ttl": info.ttl_ms,
        }

    def v_close(self, on: Any, op: dict[str, Any]) -> Any:
        return self.sessions[op["slot"]].close()

    def v_ids(self, on: Any, op: dict[str, Any]) -> Any:
        return {"_ids": sorted(self.store.sessions.ids())}

    def v_retry(self, on: Any, op: dict[str, Any]) -> Any:
        time.sleep(0.002)  # what was sent in this very millisecond is not sent again
        before = int(time.time() * 1000) + HOUR_MS
        has = self.store.sessions.has_retry(before)
        rows = [[each.session_id, each.id, shown(each.payload)] for each in self.store.sessions.retry(before, 1000)]
        return {"has": has, "_rows": rows}


def main() -> None:
    driver = Driver(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        print(json.dumps(driver.run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
