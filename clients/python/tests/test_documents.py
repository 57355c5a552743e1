"""The Python of the documents runs as it is written, and that which uses the package has the types that it says."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
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
