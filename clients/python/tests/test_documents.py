"""The Python of the package's README, and of the documents that use the package, has the types that it says."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *(ROOT.parent.parent / "docs" / name for name in ("jobs.md", "cells.md", "runs.md"))]


def test_the_python_of_the_documents_is_typed(tmp_path: Path) -> None:
    blocks: list[Path] = []
    for document in DOCUMENTS:
        for number, code in enumerate(re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)):
            if "holdfast" in code:
                blocks.append(tmp_path / f"{document.stem.lower()}_{number}.py")
                blocks[-1].write_text(code)
    assert len(blocks) >= 3
    options = ["--config-file", str(ROOT / "pyproject.toml")]
    checked = subprocess.run([sys.executable, "-m", "mypy", *options, *blocks], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
