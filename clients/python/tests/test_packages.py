"""docs/packages.md promises operations and fields by name. Each name of its column Python exists in both faces of the package, with the same
parameters."""

import dataclasses
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import holdfast
import holdfast.asyncio

TABLE = Path(__file__).parents[3] / "docs" / "packages.md"


def names() -> list[str]:
    """The column Python, without the rows that are headings of a part."""
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    column = rows[0].index("Python")
    cells = [row[column] for row in rows[1:] if not row[0].startswith(("**", "---"))]
    found = [re.fullmatch(r"`([\w.]+)`", cell) for cell in cells]
    assert all(found), "each cell of the column is one name"
    return sorted({match[1] for match in found if match})


def find(face: ModuleType, name: str) -> Any:
    owner, _, member = name.partition(".")
    found: Any = getattr(face, owner, None) or getattr(holdfast, owner)  # most classes without operations are shared
    if dataclasses.is_dataclass(found) and member in {field.name for field in dataclasses.fields(found)}:
        return found
    return getattr(found, member) if member else found


def test_the_table_is_read() -> None:
    assert len(names()) > 90 and {"Store.connect", "StatefulNode.recover", "PreparedRequest.send", "MemoryState"} <= set(names())


@pytest.mark.parametrize("name", names())
def test_both_faces_have_it(name: str) -> None:
    blocking, awaiting = find(holdfast, name), find(holdfast.asyncio, name)
    assert (inspect.getdoc(blocking) and inspect.getdoc(awaiting)) or name == "OnDifference"
    if callable(blocking) and not isinstance(blocking, type):
        assert list(inspect.signature(blocking).parameters) == list(inspect.signature(awaiting).parameters)


def test_the_faces_differ_in_what_is_awaited_alone() -> None:
    for name in holdfast.asyncio.__all__:
        one, other = getattr(holdfast, name), getattr(holdfast.asyncio, name)
        public = [{part for part in dir(face) if not part.startswith("_")} for face in (one, other)]
        assert public[0] == public[1], name
        assert name in holdfast.__all__
