//! How a test says that it cannot run here: the server is another product, a program is missing or not permitted. Knows
//! nothing of which skips are acceptable; `scripts/test` counts and names them, and judges them by `tests/skips`.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::thread;

/// Notes that the calling test cannot run here, wholly or in a part that it is there for. The caller then returns.
///
/// Rust's test harness knows no such result and reports the test as passed. So the note goes, as a line
/// `binary::test: reason`, to the file that `HOLDFAST_TEST_SKIPS` names, if it is set.
pub fn skip(reason: &str) {
    let note = format!("{}: {reason}", test_name());
    println!("skipped: {note}");
    if let Some(path) = env::var_os("HOLDFAST_TEST_SKIPS") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        // One write, so that notes of several processes do not mix.
        let written = file.and_then(|mut file| file.write_all(format!("{note}\n").as_bytes()));
        written.expect("cannot write to the file that HOLDFAST_TEST_SKIPS names");
    }
}

/// `strings::ranges::a_range`: the binary's name without its hash, and the name of the test.
fn test_name() -> String {
    let program = env::args().next().unwrap_or_default();
    let file = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let binary = file.rsplit_once('-').map_or(file, |(name, _)| name);
    // nextest runs each test in a process of its own; `cargo test` names a test's thread after it.
    let test = env::var("NEXTEST_TEST_NAME").ok();
    let test = test.or_else(|| thread::current().name().map(String::from)).unwrap_or_default();
    format!("{binary}::{test}")
}
