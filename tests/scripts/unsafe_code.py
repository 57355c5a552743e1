#!/usr/bin/env python3
"""Compares the files of crates/*/src that have unsafe code with the table in docs/architecture/unsafe-code.md."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = "docs/architecture/unsafe-code.md"
UNSAFE = re.compile(r"\bunsafe\s*(?:\{|fn\b|impl\b|extern\b)|#\[unsafe\(")


def is_unsafe(path):
    lines = path.read_text().splitlines()
    return any(UNSAFE.search(line) for line in lines if not line.lstrip().startswith("//"))


found = {str(path.relative_to(ROOT)) for path in ROOT.glob("crates/*/src/**/*.rs") if is_unsafe(path)}
listed = set(re.findall(r"^\| `(crates/[^`]+)` \|", (ROOT / PAGE).read_text(), re.M))
for name in sorted(found - listed):
    print(f"{name} has unsafe code and is not in {PAGE}")
for name in sorted(listed - found):
    print(f"{name} is in {PAGE} and has no unsafe code")
print(f"unsafe code: {len(found)} files, {len(found ^ listed)} differences")
sys.exit(found != listed)
