"""A data directory with its servers, the load programs of three languages, and what must hold afterwards. Knows how servers and programs are started
and killed, and what the ledgers say; refuses to know when that happens."""

import hashlib
import json
import os
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import redis
from drivers import LANGUAGES, command, environment
from proxy import Proxy
from server import free_port

ACCOUNTS = [f"account/{number}" for number in range(6)]
TOTAL = 100 * len(ACCOUNTS)
START_SECONDS_MAX = 30
#: What passes on a connection before it is cut.
BYTES_MAX = 4000


class Home:
    """The servers of one data directory: a writer, and perhaps a follower. Clients get to the writer by a proxy."""

    def __init__(self, folder: Path, cuts_seed: int | None = None) -> None:
        """With a seed the proxy cuts every connection after some bytes of requests or replies."""
        self._data, self._log = folder / "data", folder / "server.log"
        self._data.mkdir()
        self._writer: tuple[subprocess.Popen[bytes], int] = self._start("--dir")
        self._follower: tuple[subprocess.Popen[bytes], int] | None = None
        self.proxy = Proxy(self._writer[1], cuts_seed, BYTES_MAX)

    @property
    def port(self) -> int:
        return self._writer[1]

    def follow(self) -> None:
        self._follower = self._start("--follow")

    def crash(self) -> None:
        """Kills the writer, and starts it again."""
        self._kill(self._writer)
        self._writer = self._start("--dir")
        self.proxy.lead_to(self.port)

    def take_over(self) -> None:
        """Kills the writer; its follower takes its place, and gets a follower itself."""
        assert self._follower is not None
        self._kill(self._writer)
        self._writer, self._follower = self._follower, None
        with redis.Redis(port=self.port) as client:
            client.execute_command("REPLICAOF", "NO", "ONE")
        self.proxy.lead_to(self.port)
        self.follow()

    def end(self) -> None:
        self.proxy.end()
        for server in (self._writer, self._follower):
            if server is not None:
                self._kill(server)

    def _start(self, role: str) -> tuple[subprocess.Popen[bytes], int]:
        port = free_port()
        options = ["--port", str(port), "--bind", "127.0.0.1", role, str(self._data)]
        with self._log.open("ab") as log:
            process = subprocess.Popen([os.environ["HOLDFAST_BIN"], *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not _answers(port):
            assert process.poll() is None and time.monotonic() < deadline, f"the server did not come up:\n{self._log.read_text()}"
            time.sleep(0.01)
        return process, port

    @staticmethod
    def _kill(server: tuple[subprocess.Popen[bytes], int]) -> None:
        server[0].kill()
        server[0].wait()


def _answers(port: int) -> bool:
    try:
        with redis.Redis(port=port, socket_timeout=2) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


class Program:
    """A load program, which goes on from its ledger when it is started again."""

    def __init__(self, language: str, home: Home, folder: Path) -> None:
        self.language = language
        self._home, self._ledger, self._errors = home, folder / f"{language}.ledger", folder / f"{language}.errors"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, seconds: float) -> None:
        words = [*command(self.language, "load"), self._home.proxy.url, str(self._ledger), self.language, str(seconds)]
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                words, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
            )

    def crash(self) -> None:
        """Kills it, unless it has failed by itself."""
        assert self._process is not None
        assert self._process.poll() in (None, 0), f"the {self.language} program failed:\n{self._errors.read_text()[-4000:]}"
        self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def join(self, seconds_max: float) -> None:
        assert self._process is not None
        try:
            code = self._process.wait(seconds_max)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the {self.language} program does not end:\n{self._errors.read_text()}") from None
        assert code == 0, f"the {self.language} program failed:\n{self._errors.read_text()[-4000:]}"

    def lines(self) -> list[dict[str, Any]]:
        whole = self._ledger.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]


def prepare(home: Home) -> None:
    with redis.Redis(port=home.port) as client:
        for account in ACCOUNTS:
            client.execute_command("CELL.INIT", account, 100)
        only = ["ONLY", "state", 2, "pending", "running"]
        client.execute_command("IDX.CREATE", "due", "PREFIX", 1, "job:", "FIELD", "run_at", *only)


def check(home: Home, programs: list[Program]) -> dict[str, int]:
    """Nothing acknowledged is lost, nothing is applied twice. Returns how much there was of each, for the reader."""
    with redis.Redis(port=home.port, decode_responses=True, protocol=3) as client:
        ledgers = {program.language: program.lines() for program in programs}
        told: Counter[str] = Counter()
        _check_jobs(client, ledgers, told)
        _check_transfers(client, ledgers, told)
        for program in programs:
            name, lines = program.language, ledgers[program.language]
            _check_log(client, name, lines, told)
            _check_node(client, name, lines, told)
            _check_count(client, name, lines, told)
    return dict(told)


def _check_jobs(client: Any, ledgers: dict[str, list[dict[str, Any]]], told: "Counter[str]") -> None:
    completed: dict[str, tuple[str, int]] = {}
    for name, lines in ledgers.items():
        for line in lines:
            if "completed" in line:
                assert line["completed"] not in completed, f"{line['completed']} was completed twice: {completed[line['completed']]}, {name}"
                completed[line["completed"]] = (name, line["token"])
    for name, lines in ledgers.items():
        for number in (line["added"] for line in lines if "added" in line):
            key = f"job:{name}:{number:06}"
            job = client.hgetall(key)
            assert job.get("state") == "completed", f"{key} was added, and is {job}"
            assert job["token"] == job["attempt"], f"{key} was written by a worker that had lost it: {job}"
            if key in completed:
                by, token = completed[key]
                assert (job["by"], job["token"]) == (by, str(token)), f"{key} was completed by {by} with token {token}, and is {job}"
            told["jobs"] += 1
            told["jobs claimed again"] += int(job["attempt"]) > 1
    # Also those whose addition was not acknowledged.
    for key in client.scan_iter("job:*", count=1000):
        assert client.hget(key, "state") == "completed", f"{key} is left: {client.hgetall(key)}"


def _events(client: Any, run: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    while page := client.execute_command("RUN.EVENTS", run, "AFTER", len(events), "LIMIT", 1000):
        events += page
    assert [event["runSeq"] for event in events] == list(range(1, len(events) + 1)), f"{run} has gaps"
    keys = [event["idempotencyKey"] for event in events]
    assert len(set(keys)) == len(keys), f"{run} has an event twice"
    return events


def _check_transfers(client: Any, ledgers: dict[str, list[dict[str, Any]]], told: "Counter[str]") -> None:
    balances = dict.fromkeys(ACCOUNTS, 100)
    for name, lines in ledgers.items():
        sums = {line["sum"] for line in lines if "sum" in line}
        assert sums <= {TOTAL}, f"{name} has read sums {sums}"
        events = _events(client, f"transfers/{name}")
        numbers = {int(event["idempotencyKey"].removeprefix("t-")) for event in events}
        moved = {line["moved"] for line in lines if "moved" in line}
        refused = {line["conflict"] for line in lines if "conflict" in line}
        tried = {line["transfer"] for line in lines if "transfer" in line}
        assert moved <= numbers <= tried, f"{name}: lost {sorted(moved - numbers)}, unasked {sorted(numbers - tried)}"
        assert not refused & numbers, f"{name}: {sorted(refused & numbers)} were refused, and made"
        for event in events:
            data = json.loads(event["eventData"])
            balances[data["from"]] -= data["amount"]
            balances[data["to"]] += data["amount"]
        told["transfers"] += len(moved)
        told["transfers without an answer that were made"] += len(numbers - moved)
    held = {account: int(client.execute_command("CELL.GETV", account)[0]) for account in ACCOUNTS}
    assert held == balances, f"the accounts are {held}, and the events make them {balances}"
    assert sum(held.values()) == TOTAL


def _check_log(client: Any, name: str, lines: list[dict[str, Any]], told: "Counter[str]") -> None:
    events = _events(client, f"log/{name}")
    for line in lines:
        if "appended" in line:
            assert not line["mismatch"] and line["seq"] == line["appended"], f"{name}: {line}"
            event = events[line["seq"] - 1] if line["seq"] <= len(events) else None
            assert event is not None and event["idempotencyKey"] == f"k-{line['appended']}", f"{name}: {line} is lost: {event}"
            told["appends"] += 1


def _check_node(client: Any, name: str, lines: list[dict[str, Any]], told: "Counter[str]") -> None:
    node = f"sums-{name}"
    held = {}
    for number in range(3):
        found = client.execute_command("REG.GET", f"{node}/key-{number}")
        if found is not None:
            held[number] = (json.loads(found[0]), int(found[1]))
    newest = max((version for _, version in held.values()), default=0)
    sink = client.hgetall(f"sink-{name}")
    # The node may have gone back to a checkpoint before what its sink has.
    last = max((int(value.partition(":")[0]) for value in sink.values()), default=0)
    totals, wanted = dict.fromkeys(range(3), 0), {}
    for position in range(1, max(newest, last) + 1):
        key = position % 3
        totals[key] += position % 7
        wanted[hashlib.sha256(f"{node}|key-{key}|{position}|0".encode()).hexdigest()] = f"{position}: {totals[key]}"
        if position == newest:
            for number, (kept, _) in held.items():
                assert kept["state"] == totals[number], f"{node}: key-{number} has {kept}, and its inputs make {totals[number]}"
    missing = {output_id: value for output_id, value in wanted.items() if sink.get(output_id) != value}
    assert not missing and len(sink) == len(wanted), f"{node}: its sink has {len(sink)} outputs of {len(wanted)}; wrong or missing: {missing}"
    assert newest >= max((line["checkpoint"] for line in lines if "checkpoint" in line), default=0)
    told["inputs"] += newest


def _check_count(client: Any, name: str, lines: list[dict[str, Any]], told: "Counter[str]") -> None:
    values = [line["value"] for line in lines if "value" in line]
    assert values == list(range(1, len(values) + 1)), f"{name}: the counts are {values[:10]}… {values[-10:]}"
    open_ = len({line["prepared"] for line in lines if "prepared" in line} - {line["answered"] for line in lines if "answered" in line})
    assert len(values) <= int(client.get(f"count:{name}") or 0) <= len(values) + open_, f"{name}: {len(values)} counts were answered"
    told["counts"] += len(values)


def all_programs(home: Home, folder: Path) -> list[Program]:
    return [Program(language, home, folder) for language in LANGUAGES]
