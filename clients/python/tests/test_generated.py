"""The blocking half of the package is what its generator makes of the half for asyncio."""

import subprocess
import sys
from pathlib import Path

import holdfast.asyncio.runtime
import holdfast.sync.runtime

ROOT = Path(__file__).parent.parent


def test_the_blocking_half_is_generated() -> None:
    checked = subprocess.run([sys.executable, "generate_sync.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_what_is_written_by_hand_has_the_same_names() -> None:
    assert holdfast.asyncio.runtime.__all__ == holdfast.sync.runtime.__all__


def test_a_change_of_one_half_is_found(tmp_path: Path) -> None:
    for path in [ROOT / "generate_sync.py", *(ROOT / "src").rglob("*.py")]:
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run([sys.executable, "generate_sync.py", *arguments], cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stdout

    source, left_over = tmp_path / "src/holdfast/asyncio/cell.py", tmp_path / "src/holdfast/sync/old.py"
    source.write_text(source.read_text() + "\n\nasync def added(ask: Callable[[], Awaitable[list[int]]]) -> int:\n    return len(await ask())\n")
    left_over.write_text("")
    status, output = run("--check")
    assert (status, output.count("\n")) == (1, 2)
    assert "sync/cell.py" in output and "sync/old.py" in output
    assert run() == (0, "") == run("--check")
    generated = (tmp_path / "src/holdfast/sync/cell.py").read_text()
    assert generated.endswith("\n\ndef added(ask: Callable[[], list[int]]) -> int:\n    return len(ask())\n")
    assert not left_over.exists()
