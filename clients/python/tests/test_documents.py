"""The Python of the documents runs as it is written, and that which uses the package has the types that it says."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from run_document import blocks
from server import Server

PACKAGE = Path(__file__).parents[1]
ROOT = PACKAGE.parents[1]
DOCUMENTS = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), PACKAGE / "README.md"] if "```python" in path.read_text()]


@pytest.fixture
def empty_server() -> Iterator[Server]:
    server = Server()
    yield server
    server.end()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_python_of_a_document_runs_on_an_empty_server(document: Path, empty_server: Server) -> None:
    if document.parent == PACKAGE and empty_server.answer("TXN.BEGIN", "READONLY") != "b'OK'":
        pytest.skip("the server has no TXN.BEGIN READONLY")
    run(document, empty_server)


def run(document: Path, server: Server) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", Path(__file__).with_name("run_document.py"), document, str(server.port)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE / "src")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


#: Loses the connection of the plain transaction before each of its commands, in turn.
LOSE_CONNECTION = """
other = redis.Redis(decode_responses=True)

def lose_before(command):
    execute = redis.Redis.execute_command

    def lose(self, *words, **options):
        if words[0] == command:
            other.client_kill_filter(_type="normal", skipme=True)
        return execute(self, *words, **options)

    redis.Redis.execute_command = lose
    try:
        transfer("account:1", "account:2", 30)
    except redis.ConnectionError:
        return
    finally:
        redis.Redis.execute_command = execute
    raise AssertionError("the loss is an error")

for command in ("GET", "DECRBY", "INCRBY", "TXN.COMMIT"):
    before = other.mget("account:1", "account:2")
    lose_before(command)
    assert other.mget("account:1", "account:2") == before, command
"""


def test_the_plain_transaction_of_the_documents_cannot_be_left(tmp_path: Path, empty_server: Server) -> None:
    [plain] = [code for _, code in blocks(ROOT / "docs" / "cells.md") if "TXN.BEGIN" in code]
    document = tmp_path / "cells.md"
    document.write_text(f"```python\n{plain}{LOSE_CONNECTION}```\n")
    run(document, empty_server)


#: Works on until the job task:last is done. The work of a job with the field `cancel` cancels its job, and then fails.
WORK_ON = """
def resize(job):
    if job.fields.text("cancel"):
        store.set_field(job.key, "state", "cancelled")
        raise RuntimeError("no image")
    return "small"

store = Store.connect("redis://127.0.0.1:6379")
queue = Queue(store, QueueConfig(indexes=["due"], attempts_max=5))
stop = threading.Event()
thread = threading.Thread(target=worker, args=("w-1", stop))
thread.start()
store.client.set("ready", 1)
while thread.is_alive():
    try:
        if store.get_field("job:last", "state") == b"completed":
            stop.set()
    except HoldfastError:
        pass
    time.sleep(0.01)
assert stop.is_set(), "the worker has ended by itself"
store.close()
"""

#: The same for the loop over redis-py alone.
WORK_ON_PLAIN = """
r.set("ready", 1)
done = False
while not done:
    try:
        if job := claim("w-1"):
            key, fields = job
            if fields.get("cancel"):
                r.hset(key, "state", "cancelled")
            write(key, fields["attempt"], "SET", *counted({"state": "completed"}))
            done = key.endswith(":last")
"""


@pytest.mark.parametrize(("marker", "tail", "prefix"), [("def worker(", WORK_ON, "job"), ("def claim(", WORK_ON_PLAIN, "task")], ids=["package", "redis-py"])
def test_a_documented_worker_outlives_a_cancelled_job_and_a_restart(
    tmp_path: Path, empty_server: Server, marker: str, tail: str, prefix: str
) -> None:
    [code] = [code for _, code in blocks(ROOT / "docs" / "jobs.md") if marker in code]
    if tail is WORK_ON_PLAIN:
        # The loop as it is written, over and over.
        tail += code[code.rindex("    except ("):]
    document = tmp_path / "jobs.md"
    document.write_text(f"```python\n{code}{tail}```\n")
    with redis.Redis(port=empty_server.port, decode_responses=True) as client, started(document, empty_server) as program:

        def until(holds: Callable[[], bool]) -> None:
            deadline = time.monotonic() + 60
            while not holds():
                assert program.poll() is None, program.communicate()
                assert time.monotonic() < deadline, "waited in vain"
                time.sleep(0.01)

        until(lambda: client.exists("ready") == 1)
        client.hset(f"{prefix}:cancelled", mapping={"state": "pending", "run_at": 0, "cancel": "yes"})
        until(lambda: client.hget(f"{prefix}:cancelled", "state") == "cancelled")
        until(lambda: client.info("clients")["blocked_clients"] == 1)
        empty_server.kill()
        empty_server.run()
        until(lambda: client.info("clients")["blocked_clients"] == 1)
        client.hset(f"{prefix}:last", mapping={"state": "pending", "run_at": 0})
        output, errors = program.communicate(timeout=60)
        assert (program.returncode, errors) == (0, ""), output + errors


def started(document: Path, server: Server) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-W", "error", Path(__file__).with_name("run_document.py"), document, str(server.port)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_python_of_the_documents_is_typed(tmp_path: Path) -> None:
    typed: list[Path] = []
    for document in DOCUMENTS:
        for number, (_, code) in enumerate(blocks(document)):
            if "holdfast" in code:
                typed.append(tmp_path / f"{document.parent.name}_{document.stem.lower().replace('-', '_')}_{number}.py")
                typed[-1].write_text(code)
    assert len(typed) >= 5
    options = ["--config-file", str(PACKAGE / "pyproject.toml")]
    checked = subprocess.run([sys.executable, "-m", "mypy", *options, *typed], cwd=PACKAGE, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
