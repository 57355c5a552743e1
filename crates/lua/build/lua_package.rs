//! Finds the sources of Lua 5.1.5: a folder of the package `lua-src`, which is a build dependency. Knows paths, nothing
//! of Lua.
//!
//! There is no public way to ask where a package is:
//! - Cargo passes `DEP_…` variables from packages with a `links` key only. `lua-src` has none; `mlua-sys` has one, and
//!   passes nothing, since it does not build Lua for us.
//! - `lua-src` returns the folders that it builds into, not the one that it reads.
//! - `cargo metadata` prints it, but fails offline unless every package of the workspace was downloaded, those included
//!   that this build does not use.
//!
//! But the compiler knows the path of each source file, and tells it to a function with `#[track_caller]`: the place
//! from which it was called. So we let `lua-src` call a function of ours, and ask that for the file of its caller.

use std::cell::Cell;
use std::panic::Location;
use std::path::{Path, PathBuf};

/// The folder with the sources. An error is the file of the package that the compiler names, if it is not there: the
/// compiler was told to write other paths (`--remap-path-prefix`).
pub(super) fn sources() -> Result<PathBuf, &'static str> {
    let caller = CallerFile::default();
    // This calls `caller.as_ref()` in `src/lib.rs` of the package, and does nothing else.
    lua_src::Build::new().out_dir(&caller);
    let file = caller.0.get();
    let package = Path::new(file).parent().and_then(Path::parent).unwrap_or(Path::new(""));
    let sources = package.join("lua-5.1.5");
    if sources.is_dir() { Ok(sources) } else { Err(file) }
}

/// Pretends to be a path, to learn which file asks for it.
#[derive(Default)]
struct CallerFile(Cell<&'static str>);

impl AsRef<Path> for &CallerFile {
    #[track_caller]
    fn as_ref(&self) -> &Path {
        self.0.set(Location::caller().file());
        Path::new("")
    }
}
