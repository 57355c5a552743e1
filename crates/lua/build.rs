//! Compiles the vendored Lua 5.1.5 (see `vendor/README.md`).

use std::path::Path;

fn main() {
    let sources = Path::new("vendor/lua-5.1.5");
    println!("cargo:rerun-if-changed={}", sources.display());

    let mut build = cc::Build::new();
    build.include(sources).warnings(false).opt_level(2);
    if cfg!(unix) {
        // `_setjmp` does not save the signal mask: a protected call costs nanoseconds instead of a system call.
        build.define("LUA_USE_ULONGJMP", None);
    }
    for entry in std::fs::read_dir(sources).expect("the vendored sources are part of the crate") {
        let path = entry.expect("a readable directory").path();
        if path.extension().is_some_and(|extension| extension == "c") {
            build.file(path);
        }
    }
    build.compile("lua51-holdfast");
}
