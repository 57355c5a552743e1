"""Random histories of operations, by seed: what the drivers of three languages run. Knows the operations and which of them belong
together; refuses to know what they should answer, and how they are called in a language."""

import random
from typing import Any

Op = dict[str, Any]

KEYS = ["rec:1", "rec:2", "rec:3", "rec:ü", "hex:7265633aff80"]
FIELDS = ["state", "n", "note", "ü"]
VALUES = ["", "0", "1", "7", "007", "-3", "1.5", "1e1", "text", "ü€", "hex:ff00", "9007199254740993", "pending"]
HOUR_MS = 3_600_000
CELLS = ["limit", "greeting", "main/limit", "hex:63ff"]
BRANCHES = ["main", "trial", "other"]
BRANCH_CELLS = ["limit", "a/b", "ü", "_strata/x", "", "hex:6e00", "_strata"]
RUNS = ["runs/1", "runs/2", "runs/3"]
EVENT_TYPES = [
    "RunStarted", "RunPaused", "RunResumed", "RunCompleted", "RunFailed", "StepStarted", "StepCompleted", "StepFailed", "StepRetried",
    "StepCorrected", "StepSkipped", "Noted",
]
JSON = [None, True, 0, 7, -1.5, "", "text", "ü€", [], [1, [2, None]], {}, {"a": 1, "b": {"c": ["x"]}}]
TENANTS = ["acme", "bolt", "ü", "", "hex:ff"]
STATES = ["state-a/", "state-b/", "memory:a", "memory:b"]
NODES = ["sums", "memory:sums"]


class Generator:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.slots = 0
        self.jobs: list[tuple[int, str]] = []
        self.jobs_added = 0
        self.tasks_added = 0
        #: By slot: the next request's number.
        self.sessions: dict[int, int] = {}
        self.requests: list[tuple[int, int]] = []
        self.snapshots: list[tuple[int, str]] = []
        self.versions: dict[str, int] = {}

    def history(self, length: int) -> list[Op]:
        ops: list[Op] = [{"op": "q.index"}, {"op": "g.index", "index": "turns"}, {"op": "i.create"}]
        families = [
            (5, self.record), (2, self.index), (4, self.job), (5, self.group), (5, self.cell), (2, self.branch), (2, self.transaction), (1, self.read_transaction),
            (5, self.run), (8, self.state), (3, self.node), (5, self.session),
        ]
        weights, makers = zip(*families)
        while len(ops) < length:
            made = self.chance.choices(makers, weights)[0]()
            ops += made if isinstance(made, list) else [made]
        return ops

    def slot(self) -> int:
        self.slots += 1
        return self.slots

    def pick(self, *choices: Any) -> Any:
        return self.chance.choice(choices)

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    def fields(self, least: int = 0) -> dict[str, str | None]:
        names = self.chance.sample(FIELDS, self.chance.randint(least, 3))
        return {name: None if self.often(0.25) else self.pick(*VALUES) for name in names}

    def values(self) -> dict[str, str]:
        return {name: value for name, value in self.fields().items() if value is not None}

    def record(self) -> Op:
        key, field = self.pick(*KEYS), self.pick(*FIELDS)
        ttl = {"ttl": self.pick(HOUR_MS, HOUR_MS, 0)} if self.often(0.2) else {}
        return self.pick(
            {"op": "r.get", "key": key},
            {"op": "r.put", "key": key, "fields": self.fields(), **ttl},
            {"op": "r.put", "key": key, "fields": self.fields(1), **ttl},
            {"op": "r.set_fields", "key": key, "fields": self.fields()},
            {"op": "r.set_fields", "key": key, "fields": self.fields(1)},
            {"op": "r.set_field", "key": key, "field": field, "value": None if self.often(0.3) else self.pick(*VALUES)},
            {"op": "r.get_field", "key": key, "field": field},
            {"op": "r.cas", "key": key, "field": field, "expected": self.pick(*VALUES), "value": self.pick(*VALUES)},
            self.exchange("r.exchange") | {"key": key} | ttl,
            self.scan(),
            {"op": "r.delete", "key": key},
        )

    def index(self) -> Op:
        value = self.pick("running", "pending", "7")
        return self.pick(
            {"op": "i.create"}, {"op": "i.list"}, *([{"op": "i.drop"}] if self.often(0.3) else []),
            {"op": "r.put", "key": self.pick(*KEYS), "fields": {"n": self.pick("1", "7", "-3", "1.5"), "state": value}},
            *[{"op": "i.range", "min": self.pick("-inf", "(0", "1"), "max": self.pick("+inf", "7", "100"),
               "filters": self.scan()["filters"], **({"limit": self.pick(1, 2)} if self.often(0.3) else {})}] * 3,
            {"op": "i.sweep", "before": self.pick(5, 50), "values": [value, "text"], "set": {"state": "swept", "n": "50"},
             "max": self.pick(0, 2, 2)},
            {"op": "i.claim", "values": ["swept", value], "set": {"state": value}, "count": self.pick(1, 2)},
        )

    def exchange(self, name: str) -> Op:
        op: Op = {"op": name, "if": self.values() if self.often(0.5) else {}, "set": self.fields(), "remove": [], "absent": []}
        if self.often(0.3):
            op["absent"] = [self.pick(*FIELDS)]
        if self.often(0.3):
            op["remove"] = [self.pick(*FIELDS)]
        return op

    def scan(self) -> Op:
        filters = []
        for _ in range(self.chance.randint(0, 2)):
            op = self.pick("eq", "ne", "lt", "le", "gt", "ge", "in", "notin")
            value = {"values": [self.pick(*VALUES) for _ in range(2)]} if op in ("in", "notin") else {"value": self.pick(*VALUES)}
            filters.append({"field": self.pick(*FIELDS), "op": op, **value})
        more: Op = {"limit": self.pick(0, 1, 2, 10)} if self.often(0.2) else {}
        if self.often(0.3):
            more["fields"] = self.chance.sample(FIELDS, 2)
        return {"op": "r.scan", "prefix": self.pick("rec:", "rec:", "", "none:"), "filters": filters, **more}

    def job(self) -> Op:
        kind = self.pick("add", "add", "next", "next", "end", "end", "end", "due")
        if kind == "add":
            # Their order is that of their keys, whichever millisecond they come in.
            if self.often(0.8) or not self.jobs_added:
                self.jobs_added += 1
                number = self.jobs_added
            else:
                number = self.chance.randint(1, self.jobs_added)
            fields = {name: value for name, value in self.fields().items() if name != "state"}
            return {"op": "q.add", "key": f"job:{number:05}", "fields": fields, "delay": self.pick(0, 0, 0, HOUR_MS)}
        if kind == "due" and self.jobs_added:
            # Its lease is over, or its delay: another worker may have it. Only one job at a time is due so, which keeps the order.
            number = self.chance.randint(1, self.jobs_added)
            return {"op": "r.exchange", "key": f"job:{number:05}", "if": {"state": self.pick("pending", "running")},
                    "set": {"run_at": str(number)}, "remove": [], "absent": []}
        if kind == "end" and self.jobs:
            slot, at = self.pick(*self.jobs[-6:])
            how = self.pick("complete", "complete", "retry", "retry", "fail", "renew", "update")
            fields = {name: value for name, value in self.fields().items() if name != "state"}
            op: Op = {"op": "q.end", "slot": slot, "how": how, "after": self.pick(0, 0, HOUR_MS), "fields": fields, "at": at}
            return op | {key: value for key, value in self.exchange("q.end").items() if key != "op"} | {"set": fields, "remove": []}
        slot = self.slot()
        self.jobs.append((slot, f"job-{slot}"))
        worker = f"w-{self.chance.randint(1, 3)}"
        return {"op": "q.next", "slot": slot, "worker": worker, "wait": self.pick(0, 0, 1), "at": f"job-{slot}"}

    def group(self) -> Op:
        """Of a queue whose jobs are of groups. Its rates give nothing back within a history."""
        kind = self.pick(*["add"] * 6, *["next"] * 6, *["limit"] * 3, "limits", "groups", "groups", "reset", "index")
        if kind == "add":
            if self.often(0.9) or not self.tasks_added:
                self.tasks_added += 1
                number = self.tasks_added
            else:
                number = self.chance.randint(1, self.tasks_added)
            fields = {name: value for name, value in self.fields().items() if name != "state"}
            op: Op = {"op": "g.add", "key": f"task:{number:05}", "fields": fields, "delay": self.pick(0, 0, 0, HOUR_MS)}
            return op if self.often(0.1) else op | {"group": self.pick(*TENANTS)} | ({"repeat": 1100} if self.often(0.05) else {})
        if kind == "next":
            slot = self.slot()
            self.jobs.append((slot, f"job-{slot}"))
            order = {"order": self.pick("fair", "score")} if self.often(0.3) else {}
            return {"op": "g.next", "slot": slot, "worker": f"w-{self.chance.randint(1, 3)}", "at": f"job-{slot}", **order}
        if kind == "limit":
            choices: list[tuple[str, Any]] = [
                ("held", self.pick(0, 1, 2, 3, "none", "default")),
                ("rate", self.pick([2, HOUR_MS], [3, HOUR_MS, 1], [1, HOUR_MS, 3], "none", "default", "default", [0, HOUR_MS])),
                ("weight", self.pick(0.5, 1, 3, 3, 0)), ("pause", self.pick(True, False, False)),
            ]
            return {"op": "g.limit", **self.scope(), **{name: value for name, value in choices if self.often(0.4)}}
        if kind == "reset":
            return {"op": "g.reset", **(self.scope() if self.often(0.8) else {})}
        # The other index has no groups, and stays as it is.
        return {"op": f"g.{kind}", **({"index": self.pick("turns", "turns", "due")} if kind == "index" else {})}

    def scope(self) -> Op:
        return {"scope": self.pick("each", "all")} if self.often(0.4) else {"scope": "group", "group": self.pick(*TENANTS)}

    def typed(self) -> Op:
        codec = self.pick("text", "text", "integer", "json", "raw")
        value = {"text": self.pick("", "a", "ü", "7", "007"), "integer": self.pick(0, 7, -3, 2**53 - 1), "json": self.pick(*JSON),
                 "raw": self.pick("hex:ff00", "bytes", "12")}[codec]
        return {"codec": codec, "value": value}

    def cell_name(self) -> Op:
        if self.often(0.4):
            return {"branch": self.pick(*BRANCHES, *BRANCHES, "a/b"), "name": self.pick(*BRANCH_CELLS)}
        return {"name": self.pick(*CELLS)}

    def cell(self, in_transaction: bool = False) -> Op:
        name = {"name": self.pick(*CELLS)} if in_transaction else self.cell_name()
        version = self.chance.randint(0, 5)
        ttl = {"ttl": HOUR_MS} if self.often(0.1) else {}
        ops: list[Op] = [
            {"op": "c.init", **name, **self.typed()},
            {"op": "c.set", **name, **self.typed(), **ttl},
            {"op": "c.set", **name, **self.typed()},
            {"op": "c.cas", **name, **self.typed(), "expected": version, **ttl},
            {"op": "c.get", **name, "codec": self.typed()["codec"]},
            {"op": "c.get", **name, "codec": "raw"},
            {"op": "c.get_version", **name, "version": version, "codec": "raw"},
            {"op": "c.history", **name, "codec": "raw", "limit": self.pick(2, 100), **({"before": version} if self.often(0.3) else {})},
            {"op": "c.delete", **name},
            {"op": "c.delete_if", **name, "version": version},
            {"op": "c.mget", "names": self.chance.sample(CELLS, self.chance.randint(0, 3)), "codec": "raw"},
        ]
        if not in_transaction:
            ops.append({"op": "c.wait_after", **name, "version": version, "codec": "raw"})
        return self.pick(*ops)

    def branch(self) -> Op:
        branch = self.pick(*BRANCHES, "x:y")
        return self.pick(
            {"op": "b.fork", "branch": branch, "to": self.pick(*BRANCHES, "a/b")},
            {"op": "b.drop", "branch": branch},
            {"op": "b.cells", "branch": branch},
        )

    def inner(self) -> Op:
        """An operation that a transaction and a session have too."""
        snapshots = len(self.snapshots)
        made = self.pick(self.record, lambda: self.cell(True), self.run, self.state)()
        del self.snapshots[snapshots:]
        if made.get("ttl") == 0:
            made["ttl"] = HOUR_MS  # some packages refuse it by themselves, and give it no number
        if made["op"] in ("r.scan", "e.list") or made.get("state", "").startswith("memory:"):
            return {"op": "r.get", "key": self.pick(*KEYS)}
        # Of several keys, or of several requests in some packages: the numbers of a session's requests would differ.
        if made["op"] in ("s.snapshot", "s.take", "s.checkpoint", "s.take_checkpoint", "e.lag"):
            return {"op": "s.get", "state": "state-a/", "key": "x"}
        return made

    def transaction(self) -> Op:
        ops = [self.inner() for _ in range(self.chance.randint(1, 4))]
        outside = None
        if self.often(0.4):
            # A write to what the transaction has read or written: a conflict.
            name = {"name": self.pick(*CELLS)}
            ops.insert(0, {"op": "c.get", **name, "codec": "raw"})
            outside = {"op": "c.set", **name, "codec": "text", "value": "from outside"}
        return {
            "op": "t.run", "ops": ops, "tries": self.pick(1, 2, 3), "outside": outside, "outside_times": self.pick(1, 1, 5),
            "fails": self.often(0.2),
        }

    def read_transaction(self) -> Op:
        ops = [self.cell(True) for _ in range(self.chance.randint(1, 4))]
        return {"op": "t.read", "ops": ops, "outside": {"op": "c.set", "name": self.pick(*CELLS), "codec": "text", "value": "later"}}

    def run(self) -> Op:
        run = self.pick(*RUNS)
        if self.often(0.5):
            op: Op = {"op": "e.append", "run": run, "type": self.pick(*EVENT_TYPES), "data": self.pick(*JSON)}
            choices: list[tuple[float, str, Any]] = [
                (0.7, "key", f"k-{self.chance.randint(1, 12)}"), (0.5, "event_id", f"ev-{self.chance.randint(1, 1000)}"),
                (0.6, "step", self.pick("s-1", "s-2", "ü")), (0.3, "logical_attempt", self.pick("1", "2")),
                (0.3, "emitted_at", "at-noon"), (0.2, "ref", self.pick("engine-7", "ü")), (0.2, "plan", self.pick("p1", "p2")),
                (0.3, "if_last", self.chance.randint(0, 6)),
                (0.3, "attributes", {name: self.pick("eu-1", "ü€", "hex:ff00") for name in self.chance.sample(["region", "tag", "ü"], 2)}),
            ]
            return op | {name: value for share, name, value in choices if self.often(share)}
        return self.pick(
            {"op": "e.events", "run": run, "after": self.chance.randint(0, 6), "limit": self.pick(1, 3, 100)},
            {"op": "e.events", "run": run, "after": 0, "limit": 100},
            {"op": "e.snapshot", "run": run},
            {"op": "e.project", "run": run},
            {"op": "e.project", "run": run, "up_to": self.chance.randint(0, 8)},
            {"op": "e.fold", "run": run},
            {"op": "e.lag", "run": run, "position": self.chance.randint(0, 5)},
            {"op": "e.info", "run": run},
            {"op": "e.list", "prefix": self.pick("runs/", "", "none/"), "statuses": self.pick([], ["running"], ["completed", "failed"])},
            *([{"op": "e.delete", "run": run}] if self.often(0.2) else []),
        )

    def version(self) -> Any:
        return [self.pick(0, 1, 1, 2), self.chance.randint(0, 4)] if self.often(0.4) else self.pick(0, 1, 2, 3, 4, 5, 6, 2**53 - 1)

    def state(self) -> Op:
        state, key = self.pick(*STATES), self.pick("x", "y", "hex:ff")
        at = {"at": state} if state.startswith("memory:") else {}
        ordered = self.often(0.5)
        position = {"position": self.pick("17", "", "hex:ff")} if self.often(0.6) else {}
        merges = self.often(0.5)
        kind = self.pick(*["put", "add"] * 4, "seal", "seal", "get", "mget", "snapshot", "take", "checkpoint", "take_checkpoint")
        if kind == "take":
            # A snapshot of the server is for states of the server, and one of a memory state for the same state.
            usable = [slot for slot, of in self.snapshots if (of == state if at else not of.startswith("memory:"))]
            if usable:
                return {"op": "s.take", "state": state, "slot": self.pick(*usable[-3:]), "merges": merges, **at}
            kind = "snapshot"
        if kind == "snapshot":
            slot = self.slot()
            self.snapshots.append((slot, state))
            return {"op": "s.snapshot", "state": state, "slot": slot, **position, **at}
        checkpoint = self.pick("checkpoint:1", "checkpoint:2")
        number = self.pick(1, 2, -5, 2**53 - 1)
        return {
            "put": {"op": "s.put", "state": state, "key": key, "value": self.pick("", "5", "text", "hex:00"),
                    "version": self.version(), "ordered": ordered},
            "add": {"op": "s.add", "state": state, "key": key, "number": number, "version": self.version(), "ordered": ordered},
            "seal": {"op": "s.seal", "state": state, "key": key, "version": self.version()},
            "get": {"op": "s.get", "state": state, "key": key},
            "mget": {"op": "s.mget", "state": state, "keys": self.chance.sample(["x", "y", "hex:ff", "none"], self.chance.randint(0, 4))},
            "checkpoint": {"op": "s.checkpoint", "state": state, "key": checkpoint, **position},
            "take_checkpoint": {"op": "s.take_checkpoint", "state": state, "key": checkpoint, "merges": merges},
        }[kind] | at

    def node(self) -> Op:
        node = self.pick(*NODES)
        at = {"at": node} if node.startswith("memory:") else {}
        if self.often(0.2):
            return {"op": "n.checkpoint", "node": node, "position": self.pick("3", "17", "hex:ff"), **at}
        if self.often(0.15):
            return {"op": "n.recover", "node": node, "again": self.often(0.5), **at}
        key = self.pick("a", "b", "ü", "hex:ff")
        newest = self.versions.get(node + key, 0)
        version = max(0, newest + self.pick(1, 1, 1, 0, -1))
        self.versions[node + key] = max(newest, version)
        return {
            "op": "n.process", "node": node, "key": key, "version": [1, version] if self.often(0.05) else version,
            "amount": self.chance.randint(-5, 50), "outputs": self.chance.randint(0, 3), **at,
        }

    def session(self) -> Op | list[Op]:
        if len(self.sessions) < 2 or self.often(0.04):
            slot = self.slot()
            self.sessions[slot] = 1
            return {"op": "v.open", "slot": slot, "capabilities": self.pick({}, {"role": "w", "ü": "1"}), "at": f"session-{slot}"}
        slot = self.pick(*self.sessions)
        at = f"session-{slot}"
        kind = self.pick(*["do"] * 3, *["call"] * 2, "prepare", "prepare", "send", "resume", "push", "push", "pending", "ack", "info", "retry",
                         "ids", *(["close"] if self.often(0.2) else []))
        words = self.pick(["INCR", "visits"], ["INCR", "rec:3"], ["SET", "rec:2", "v"], ["GET", "rec:2"], ["LRANGE", "list", "0", "-1"],
                          ["RPUSH", "list", "hex:ff", "ü"], ["NOSUCH"], ["DEL", "rec:2", "rec:3"])
        match kind:
            case "do":
                self.sessions[slot] += 1
                return {"op": "v.do", "slot": slot, "inner": self.inner(), "at": at}
            case "prepare":
                request = self.slot()
                self.requests.append((request, slot))
                op = {"op": "v.prepare", "slot": slot, "request": request, "words": words, "at": at}
                if self.often(0.3):
                    op["request_id"] = max(0, self.sessions[slot] + self.chance.randint(-4, 2))
                return op
            case "send" if self.requests:
                request, slot = self.pick(*self.requests[-4:])
                return {"op": "v.send", "slot": slot, "request": request, "at": f"session-{slot}"}
            case "resume":
                # Another program goes on: in the runs of one language the same program under a new name.
                return {"op": "v.resume", "slot": slot, "next": max(1, self.sessions[slot] + self.chance.randint(-1, 3)), "at": at}
            case "push":
                through = self.pick(None, *self.sessions)
                more = {} if through is None else {"at": f"session-{through}"}
                return {"op": "v.push", "slot": slot, "through": through, "payload": self.pick("hello", "", "hex:ff"), **more}
            case "pending":
                return {"op": "v.pending", "slot": slot, "after": self.pick(0, 0, 1), "limit": self.pick(1, 100), "at": at}
            case "ack":
                return {"op": "v.ack", "slot": slot, "id": self.chance.randint(0, 5), "at": at}
            case "info":
                return {"op": "v.info", "slot": slot}
            case "retry":
                return {"op": "v.retry"}
            case "ids":
                return {"op": "v.ids"}
            case "close":
                del self.sessions[slot]
                self.requests = [each for each in self.requests if each[1] != slot]
                return [{"op": "v.close", "slot": slot, "at": at}, {"op": "v.call", "slot": slot, "words": words, "at": at}]
            case _:
                self.sessions[slot] += 1
                return {"op": "v.call", "slot": slot, "words": words, "at": at}


def history(seed: int, length: int) -> list[Op]:
    return Generator(seed).history(length)
