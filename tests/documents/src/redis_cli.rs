//! Replies as redis-cli shows them on a terminal, and the comparison with what a document shows. Knows no socket.

use std::collections::BTreeMap;

use wire::{Reply, quote};

/// The lines that redis-cli shows for a reply in RESP2.
pub fn shown(reply: &Reply) -> Vec<String> {
    match reply {
        Reply::Simple(text) => vec![String::from_utf8_lossy(text).into_owned()],
        Reply::Error(text) => vec![format!("(error) {}", String::from_utf8_lossy(text))],
        Reply::Integer(number) => vec![format!("(integer) {number}")],
        Reply::Bulk(bytes) => vec![quote(bytes)],
        Reply::NilBulk | Reply::NilArray => vec!["(nil)".to_owned()],
        Reply::Array(items) if items.is_empty() => vec!["(empty array)".to_owned()],
        Reply::Array(items) => {
            let width = items.len().to_string().len();
            let mut lines = Vec::new();
            for (number, item) in items.iter().enumerate() {
                for (at, line) in shown(item).into_iter().enumerate() {
                    lines.push(match at {
                        0 => format!("{:>width$}) {line}", number + 1),
                        _ => format!("{:width$}  {line}", ""),
                    });
                }
            }
            lines
        }
        other => panic!("a reply of RESP3 on a connection of RESP2: {other}"),
    }
}

/// The words that differ from run to run, and what they stand for once they were seen.
pub struct Varying {
    words: BTreeMap<String, Option<String>>,
}

impl Varying {
    pub fn new(words: impl IntoIterator<Item = String>) -> Varying {
        Varying { words: words.into_iter().map(|word| (word, None)).collect() }
    }

    /// A command with the words as they were seen.
    pub fn in_command(&self, command: &str) -> String {
        let seen = self.words.iter().filter_map(|(word, seen)| Some((word, seen.as_ref()?)));
        seen.fold(command.to_owned(), |command, (word, seen)| command.replace(word, seen))
    }

    /// Whether a reply is the one that a document shows. A line `…` stands for whatever follows.
    pub fn matches(&mut self, expected: &[&str], lines: &[String]) -> bool {
        for (at, line) in expected.iter().enumerate() {
            if line.trim() == "…" {
                return at + 1 == expected.len();
            }
            if !lines.get(at).is_some_and(|shown| self.matches_line(line, shown)) {
                return false;
            }
        }
        expected.len() == lines.len()
    }

    fn matches_line(&mut self, expected: &str, shown: &str) -> bool {
        let first = self.words.keys().filter_map(|word| Some((expected.find(word.as_str())?, word.clone()))).min();
        let Some((at, word)) = first else { return expected == shown };
        let Some(rest) = shown.strip_prefix(&expected[..at]) else { return false };
        let end = rest.find([' ', '"', ')']).unwrap_or(rest.len());
        let (actual, rest) = rest.split_at(end);
        let seen = self.words.entry(word.clone()).or_default().get_or_insert_with(|| actual.to_owned());
        !actual.is_empty() && seen == actual && self.matches_line(&expected[at + word.len()..], rest)
    }
}
