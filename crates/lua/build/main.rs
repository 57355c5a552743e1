//! Compiles Lua 5.1.5: the sources of the package `lua-src`, with `patches/holdfast.patch` applied to a copy of them.
//! Refuses to build from any other sources than those the patch was written for.

mod lua_package;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use diffy::patch_set::{FileOperation, ParseOptions, PatchSet};

/// SHA-1 of the names and bytes of all files of `lua-5.1.5` in `lua-src` 551.1.0. It tells another release from the one
/// the patch was written for; against tampering there is the SHA-256 of the package in `Cargo.lock`.
const SOURCES_DIGEST: &str = "d741e55bebd587863fb7e0435f904ce560825c40";

const PATCH: &str = "patches/holdfast.patch";

/// Set to a folder with the sources of Lua 5.1.5, where the package cannot be found.
const SOURCES_VARIABLE: &str = "HOLDFAST_LUA_SOURCES";

/// What the sandbox leaves out: the libraries `io`, `os`, `package` and `debug`, and what opens all libraries at once.
const NOT_COMPILED: [&str; 5] = ["ldblib.c", "linit.c", "liolib.c", "loadlib.c", "loslib.c"];

/// File names and their text.
type Sources = BTreeMap<String, String>;

fn main() {
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed={PATCH}");
    println!("cargo:rerun-if-env-changed={SOURCES_VARIABLE}");

    let dir = match env::var_os(SOURCES_VARIABLE) {
        Some(dir) => PathBuf::from(dir),
        None => lua_package::sources().unwrap_or_else(|seen| {
            stop(&format!(
                "the package `lua-src` is not where the compiler saw it ({seen}). Set {SOURCES_VARIABLE} to the folder \
                 `lua-5.1.5` of the package"
            ))
        }),
    };
    let mut sources = read_sources(&dir);
    let digest = digest(&sources);
    if digest != SOURCES_DIGEST {
        stop(&format!(
            "the sources in {} are not the ones that {PATCH} was written for: their digest is {digest}, not \
             {SOURCES_DIGEST}. After a change of the version of `lua-src`, review the patch against the new sources and \
             put the new digest into build/main.rs",
            dir.display()
        ));
    }
    apply_patch(&mut sources);
    compile(&sources);
}

fn read_sources(dir: &Path) -> Sources {
    let read = || {
        let mut sources = Sources::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            sources.insert(entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path())?);
        }
        Ok::<_, std::io::Error>(sources)
    };
    read().unwrap_or_else(|error| stop(&format!("cannot read the sources of Lua in {}: {error}", dir.display())))
}

fn digest(sources: &Sources) -> String {
    let mut sha1 = sha1_smol::Sha1::new();
    for (name, text) in sources {
        sha1.update(format!("{name} {}\n", text.len()).as_bytes());
        sha1.update(text.as_bytes());
    }
    sha1.digest().to_string()
}

fn apply_patch(sources: &mut Sources) {
    let patch = fs::read_to_string(PATCH).unwrap_or_else(|error| stop(&format!("cannot read {PATCH}: {error}")));
    for file in PatchSet::parse(&patch, ParseOptions::unidiff()) {
        let file = file.unwrap_or_else(|error| stop(&format!("{PATCH} is not a unified diff: {error}")));
        let operation = file.operation().strip_prefix(1);
        let FileOperation::Modify { original, .. } = &operation else {
            stop(&format!("{PATCH} may only modify files, and has {operation:?}"));
        };
        let Some(text) = sources.get_mut(original.as_ref()) else {
            stop(&format!("{PATCH} changes {original}, which Lua does not have"));
        };
        let changes = file.patch().as_text().unwrap_or_else(|| stop(&format!("{PATCH}: {original} is not text")));
        *text = diffy::apply(text, changes)
            .unwrap_or_else(|error| stop(&format!("{PATCH} does not apply to {original}: {error}")));
    }
}

fn compile(sources: &Sources) {
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it")).join("lua-5.1.5");
    fs::create_dir_all(&out_dir).expect("OUT_DIR is writable");
    let mut build = cc::Build::new();
    build.include(&out_dir).warnings(false).opt_level(2);
    if cfg!(unix) {
        // `_setjmp` does not save the signal mask: a protected call costs nanoseconds instead of a system call.
        build.define("LUA_USE_ULONGJMP", None);
    }
    for (name, text) in sources {
        let path = out_dir.join(name);
        fs::write(&path, text).expect("OUT_DIR is writable");
        if name.ends_with(".c") && !NOT_COMPILED.contains(&name.as_str()) {
            build.file(path);
        }
    }
    build.compile("lua51-holdfast");
}

/// Ends the build. A panic would hide the sentence behind a backtrace.
fn stop(why: &str) -> ! {
    println!("cargo::error={why}");
    std::process::exit(1)
}
