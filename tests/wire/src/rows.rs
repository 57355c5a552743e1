//! Transcripts in short: rows of a table, one reply for several requests, and steps that lead to what a test is about.
//!
//! | line | meaning |
//! | --- | --- |
//! | `GET a => "1"` (`2> GET a => "1"` on connection 2) | a request and its reply, which ends with the line |
//! | `! SET a 1` (`2! SET a 1`) | a request whose reply may be anything but an error |
//! | `-ERR syntax error`, and below it `SET a 1 NX XX` | each request below a reply gets it. It begins with a capital letter |
//!
//! Everything else is as in a transcript.

use std::fmt::Write as _;
use std::panic::Location;

use crate::session::Session;
use crate::transcript::Transcript;

/// A reply of any type that is no error.
const SUCCESS: &str = r#"~+"*" | :.. | ~"*" | (nil) | (nil array) | _ | [...] | set[...] | {...}"#;

/// Runs rows against an empty server, alone, and panics at the first reply that differs.
#[track_caller]
pub fn check_rows(rows: &str) {
    Session::start().check_rows(rows);
}

impl Session {
    /// Runs rows on connections of their own, and panics at the first reply that differs. Keys stay.
    #[track_caller]
    pub fn check_rows(&self, rows: &str) {
        let caller = Location::caller();
        Transcript::parse(&written_out(rows, caller), caller).run(self);
    }
}

/// The transcript of the rows. Comments say on which lines of the source they are.
fn written_out(rows: &str, caller: &Location<'_>) -> String {
    // rustfmt puts the text on the lines below the call.
    let first = caller.line() as usize + 1;
    let lines: Vec<&str> = rows.lines().collect();
    let (mut out, mut common) = (String::new(), "");
    for (number, line) in lines.iter().enumerate() {
        let (text, place) = (line.trim(), format!("// {}:{}", caller.file(), first + number));
        let begins_group = || lines[number + 1..].iter().find(|below| !is_comment(below)).is_some_and(|l| is_bare(l));
        let _ = match (step(text), row(text)) {
            (Some((peer, request)), _) => writeln!(out, "{place}\n{peer}> {request}\n{SUCCESS}"),
            (_, Some((peer, request, reply))) => writeln!(out, "{place}\n{peer}> {request}\n{reply}"),
            _ if is_bare(text) => writeln!(out, "{place}\n> {text}\n{common}"),
            _ if !is_comment(text) && begins_group() => {
                common = text;
                continue;
            }
            _ => writeln!(out, "{line}"),
        };
    }
    out
}

fn is_comment(line: &str) -> bool {
    line.trim().starts_with("//")
}

/// Whether a line is a request alone, as below a common reply.
fn is_bare(line: &str) -> bool {
    line.trim().starts_with(|first: char| first.is_ascii_uppercase()) && row(line.trim()).is_none()
}

/// The connection's number, if it has one, and the request of a step.
fn step(text: &str) -> Option<(&str, &str)> {
    text.split_once("! ").filter(|(peer, _)| is_number(peer))
}

/// The connection's number, if it has one, the request and the reply of a row.
fn row(text: &str) -> Option<(&str, &str, &str)> {
    let (request, reply) = text.split_once(" => ")?;
    match request.split_once("> ") {
        Some((peer, request)) if is_number(peer) => Some((peer, request, reply)),
        _ => request.starts_with(|first: char| first.is_ascii_uppercase()).then_some(("", request, reply)),
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|digit| digit.is_ascii_digit())
}
