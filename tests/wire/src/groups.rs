//! Groups in transcripts: requests that all have the same reply, which stands once above them.

use crate::session::Session;
use crate::short_forms::in_full;

/// Runs a transcript with the short forms of [`in_full`], and with groups: a reply, and below it each request that gets it. A
/// request in a group begins with a capital letter.
///
/// ```text
/// ! ZADD z 1 a
/// ZRANK z a => :0
/// ZRANK z nosuch => (nil)
/// -ERR syntax error
///     ZADD z 1 a 2
///     ZADD z CH a
/// ```
#[track_caller]
pub fn check_groups(transcript: &str) {
    Session::start().check(&in_full(&without_groups(transcript)));
}

/// Makes each request of a group a row with the group's reply. The number of lines stays the same.
fn without_groups(transcript: &str) -> String {
    let lines: Vec<&str> = transcript.lines().map(str::trim).collect();
    let mut rows = Vec::new();
    let mut reply = "";
    for (number, line) in lines.iter().enumerate() {
        let is_comment = |line: &&&str| line.starts_with("//");
        let below = lines[number + 1..].iter().find(|line| !is_comment(line));
        rows.push(match line {
            line if is_in_a_group(line) => format!("{line} => {reply}"),
            line if !is_comment(&line) && below.is_some_and(|below| is_in_a_group(below)) && !is_row(line) => {
                reply = line;
                String::new()
            }
            line => (*line).to_owned(),
        });
    }
    rows.join("\n")
}

fn is_in_a_group(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_uppercase()) && !is_row(line)
}

fn is_row(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_uppercase()) && line.contains(" => ")
}
