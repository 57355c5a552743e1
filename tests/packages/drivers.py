"""The programs of the three languages that run histories, and what is needed to compare their results. Knows how they are started and spoken to;
refuses to know what an operation does."""

import functools
import json
import os
import random
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

from histories import Op

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LANGUAGES = ("rust", "python", "typescript")
SECONDS_MAX = 60


def command(language: str, program: str) -> list[str]:
    """The command line of a program, `history` or `load`, in a language."""
    match language:
        case "rust":
            target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
            return [str(target / "debug" / f"packages-{program}")]
        case "python":
            return [sys.executable, str(HERE / "python" / f"{program}.py")]
        case _:
            return [node(), str(ROOT / "clients/typescript/dist/packages/tests/packages/typescript" / f"{program}.js")]


@functools.cache
def node() -> str:
    """Node.js itself: what is called `node` may be a script that starts it, and a kill would end that script alone."""
    return subprocess.run(["node", "-p", "process.execPath"], check=True, capture_output=True, text=True).stdout.strip()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "clients/python/src"), "PYTHONDONTWRITEBYTECODE": "1"}


class Driver:
    """A program that runs one operation after the other."""

    def __init__(self, language: str, url: str, protocol: int) -> None:
        self.language = language
        self._process = subprocess.Popen(
            [*command(language, "history"), url, str(protocol)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
        )

    def run(self, op: Op) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(op).encode() + b"\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], SECONDS_MAX)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            raise AssertionError(f"the {self.language} driver {'ended' if ready else 'hangs'} at {json.dumps(op)}")
        return json.loads(line)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Player:
    """Runs a history: all of it by one driver, or each operation by a driver that is drawn. What belongs to a driver's process (`at`) stays
    with it; a session moves on when it is resumed."""

    def __init__(self, drivers: list[Driver], seed: int) -> None:
        self._drivers = drivers
        self._chance = random.Random(seed)
        self._homes: dict[str, Driver] = {}
        self._request_homes: dict[int, Driver] = {}
        self._ids: dict[int, str] = {}
        self._blobs: dict[int, str] = {}
        #: Which language has run each operation, and the errors as it says them.
        self.notes: list[str] = []

    def play(self, op: Op) -> Any:
        driver = self._driver(op)
        slot: int = op.get("slot", 0)
        given = dict(op)
        if op["op"] in ("v.resume", "v.push", "v.info"):
            given["_id"] = self._ids[slot]
        if op["op"] == "s.take":
            given["_blob"] = self._blobs[slot]
        result = driver.run(given)
        if isinstance(result, dict):
            if "_id" in result:
                self._ids[slot] = result["_id"]
            if "_blob" in result:
                self._blobs[slot] = result["_blob"]
        self.notes.append(f"{driver.language}: {json.dumps(result)[:2000]}")
        return self._neutral(result)

    def _driver(self, op: Op) -> Driver:
        drawn = self._chance.choice(self._drivers)
        if op["op"] == "v.send":
            return self._request_homes[op["request"]]
        if op["op"] in ("v.open", "v.resume"):
            self._homes[op["at"]] = drawn
        driver = self._homes.setdefault(op["at"], drawn) if "at" in op else drawn
        if op["op"] == "v.prepare":
            self._request_homes[op["request"]] = driver
        return driver

    def _neutral(self, result: Any) -> Any:
        """Without what is random: names of sessions, snapshots, and the words of errors."""
        if isinstance(result, list):
            return [self._neutral(each) for each in result]
        if isinstance(result, float) and result.is_integer():
            return int(result)  # JavaScript has one kind of numbers
        if not isinstance(result, dict):
            return result
        slots = {name: slot for slot, name in self._ids.items()}
        neutral: dict[str, Any] = {}
        for name, value in result.items():
            if name == "_ids":
                neutral["ids"] = sorted(slots.get(each, -1) for each in value)
            elif name == "_rows":
                neutral["rows"] = sorted([slots.get(session, -1), number, payload] for session, number, payload in value)
            elif name == "run_at" and len(value) > 10:
                neutral[name] = "a time"
            elif not name.startswith("_"):
                neutral[name] = self._neutral(value)
        return neutral
