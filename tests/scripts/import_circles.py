#!/usr/bin/env python3
"""Tests scripts/import-circles from outside: small crates in a temporary folder, each with the circles to be found in it."""
import subprocess
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "import-circles"
CLEAN = {"lib.rs": "mod a;\nmod b;\npub use a::A;", "a/mod.rs": "mod x;\npub use x::A;", "a/x.rs": "pub struct A;"}
IN_TESTS = """// crate::b::f
const S: &str = "crate::b";
#[cfg(test)]
mod tests { use crate::b::f; }
#[cfg(test)]
mod t;
"""
CASES = [
    ("arrows that point down", {**CLEAN, "b.rs": "use crate::A; fn f(_: crate::a::A) {}"}, []),
    ("a use and a path", {**CLEAN, "b.rs": "use crate::a::A;", "a/x.rs": "fn f() {\n super::super::b::f() }"}, ["a, b"]),
    ("a name that lib.rs exports", {**CLEAN, "b.rs": "use crate::{A};", "a/x.rs": "use crate::b::{self, C};"}, ["a, b"]),
    ("a name that a parent imports", {**CLEAN, "b.rs": "use crate::A;", "a/mod.rs": "mod x;\npub use crate::b::B;",
                                      "a/x.rs": "use super::B;"}, ["a, b"]),
    ("a glob", {**CLEAN, "lib.rs": "mod a;\nmod b;\nuse b::*;", "b.rs": "mod c;\nuse crate::a::A;", "b/c.rs": "",
                "a/x.rs": "use crate::c::D;"}, ["a, b"]),
    ("a re-export that is not used", {**CLEAN, "b.rs": "use crate::a::A;", "a/mod.rs": "mod x;\npub use crate::b::B;"}, []),
    ("tests, comments and strings", {**CLEAN, "b.rs": "use crate::A;", "a/x.rs": IN_TESTS, "a/x/t.rs": "use crate::b::f;"}, []),
    ("subfolders", {"lib.rs": "mod a;", "a/mod.rs": "mod p;\nmod q;\nmod f;", "a/f.rs": "use super::p::P;",
                    "a/p/mod.rs": "use super::q;\nfn f() { q::Q }", "a/q/mod.rs": "use crate::a::{f::F, p::P};"}, ["a/p, a/q", "a/f, a/p, a/q"]),
    ("files of one folder", {"lib.rs": "mod a;", "a/mod.rs": "mod p;\nmod q;", "a/p.rs": "use super::q::Q;",
                             "a/q.rs": "use super::p::P;"}, ["a/p, a/q"]),
    ("a natural circle", {"lib.rs": "mod clients;", "clients/mod.rs": "mod handle;\nmod wait_state;", "clients/handle.rs": "use super::wait_state::W;",
                          "clients/wait_state.rs": "use super::handle::H;"}, [], "execution"),
    ("files of one subject", {"lib.rs": "", "settings/mod.rs": "use crate::b::B;", "a.rs": "use crate::settings::S;", "b.rs": ""},
     ["settings, src"], "execution"),
    ("a file and its folder", {"main.rs": "mod a;", "a.rs": "mod x;\nuse x::X;", "a/x.rs": "use super::A;"}, []),
    ("two circles", {"lib.rs": "", "a.rs": "use crate::b::B;", "b.rs": "use crate::c::C;", "c.rs": "use crate::a::A;",
                     "d.rs": "use crate::{a, e};", "e.rs": "use crate::d;"}, ["a, b, c", "d, e"]),
]

failed = 0
for title, sources, expected, *name_of_crate in CASES:
    with tempfile.TemporaryDirectory() as folder:
        crate = Path(folder, *name_of_crate)
        for name, text in sources.items():
            path = Path(crate, "src", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([SCRIPT, crate], capture_output=True, text=True, check=False)
    found = [line.partition(" between ")[2] for line in done.stdout.splitlines() if not line.startswith(" ")]
    if (found, done.returncode, done.stderr) != (expected, int(bool(expected)), ""):
        failed += 1
        print(f"{title}: expected {expected}, found {found}\n{done.stdout}{done.stderr}")
print(f"import-circles: {len(CASES) - failed} passed, {failed} failed")
raise SystemExit(failed > 0)
