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
    run = subprocess.run(
        [sys.executable, "-W", "error", Path(__file__).with_name("run_document.py"), document, str(empty_server.port)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE / "src")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr


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
