//! Short forms in transcripts: steps that lead to what a test is about, and tables of requests with their replies.
//!
//! | line | meaning |
//! | --- | --- |
//! | `! HSET job:1 at 1` (`2! …` on connection 2) | send the command: its reply may be anything but an error |
//! | `HGET job:1 at => "1"` | a row of a table: a command of connection 1 and its reply, which ends with the line |

use std::fmt::Write as _;
use std::panic::Location;

/// A reply of any type that is no error.
const SUCCESS: &str = r#"~+"*" | :.. | ~"*" | (nil) | (nil array) | _ | [...] | set[...] | {...}"#;

/// Writes the short forms of a transcript out, for [`check`](crate::check) or [`Session::check`](crate::Session::check).
/// Comments say on which lines of the source they are.
#[track_caller]
pub fn in_full(transcript: &str) -> String {
    let caller = Location::caller();
    // rustfmt puts the text on the lines below the call.
    let first = caller.line() as usize + 1;
    let mut lines = String::new();
    for (number, line) in transcript.lines().enumerate() {
        let (text, place) = (line.trim(), format!("// {}:{}", caller.file(), first + number));
        let _ = match (step(text), row(text)) {
            (Some((peer, command)), _) => writeln!(lines, "{place}\n{peer}> {command}\n{SUCCESS}"),
            (None, Some((command, reply))) => writeln!(lines, "{place}\n> {command}\n{reply}"),
            (None, None) => writeln!(lines, "{line}"),
        };
    }
    lines
}

/// The connection's number, if it has one, and the command.
fn step(text: &str) -> Option<(&str, &str)> {
    let (peer, command) = text.split_once("! ")?;
    peer.bytes().all(|digit| digit.is_ascii_digit()).then_some((peer, command))
}

/// The command, which is written in capitals here, and its reply.
fn row(text: &str) -> Option<(&str, &str)> {
    text.starts_with(|first: char| first.is_ascii_uppercase()).then(|| text.split_once(" => "))?
}
