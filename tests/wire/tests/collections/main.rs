//! What hashes, lists, sets and sorted sets have in common: each test runs for every type that has it.
//!
//! The transcripts use words like `MAKE` and `READ`, which [`Words`] replaces by the commands and replies of a type.

mod blocking;
mod blocking_clients;
mod blocking_wakes;
mod dump;
mod keyspace;
mod picks;
mod scan;
mod stores;
mod tracking;
mod waiting;
mod watch;

use wire::{check, check_events};

/// What the words of a transcript stand for. In `MAKE k a b`, `#` is the key `k` and `@` the element `a`. A part in braces is
/// written once for each element.
#[derive(Clone, Copy)]
struct Words(&'static [(&'static str, &'static str)]);

/// The types, two of them in two encodings. `MAKE` makes two elements, `TWO` is how they are read; `ADD` adds a third.
const KINDS: &[Words] = &[
    Words(&[
        ("KIND", "hash"),
        ("EVENT", "hset"),
        ("REMOVAL", "hdel"),
        ("LETTER", "h"),
        ("MAKE", "HSET # a 1 b 2"),
        ("TWO", r#"~["a", "1", "b", "2"]"#),
        ("ADD", "HSET # c 3"),
        ("THREE", r#"~["a", "1", "b", "2", "c", "3"]"#),
        ("REMOVE", "HDEL # c"),
        ("CLEAR", "HDEL # a b"),
        ("READ", "HGETALL #"),
    ]),
    Words(&[
        ("KIND", "list"),
        ("EVENT", "rpush"),
        ("REMOVAL", "ltrim"),
        ("LETTER", "l"),
        ("MAKE", "RPUSH # a b"),
        ("TWO", r#"["a", "b"]"#),
        ("ADD", "RPUSH # c"),
        ("THREE", r#"["a", "b", "c"]"#),
        ("REMOVE", "RPOP #"),
        ("CLEAR", "LTRIM # 1 0"),
        ("READ", "LRANGE # 0 -1"),
    ]),
    Words(&[
        ("KIND", "set"),
        ("EVENT", "sadd"),
        ("REMOVAL", "srem"),
        ("LETTER", "s"),
        ("MAKE", "SADD # a b"),
        ("TWO", r#"~["a", "b"]"#),
        ("ADD", "SADD # c"),
        ("THREE", r#"~["a", "b", "c"]"#),
        ("REMOVE", "SREM # c"),
        ("CLEAR", "SREM # a b"),
        ("READ", "SMEMBERS #"),
    ]),
    // An intset.
    Words(&[
        ("KIND", "set"),
        ("EVENT", "sadd"),
        ("REMOVAL", "srem"),
        ("LETTER", "s"),
        ("MAKE", "SADD # 1 2"),
        ("TWO", r#"["1", "2"]"#),
        ("ADD", "SADD # 70000"),
        ("THREE", r#"["1", "2", "70000"]"#),
        ("REMOVE", "SREM # 70000"),
        ("CLEAR", "SREM # 1 2"),
        ("READ", "SMEMBERS #"),
    ]),
    Words(&[
        ("KIND", "zset"),
        ("EVENT", "zadd"),
        ("REMOVAL", "zrem"),
        ("LETTER", "z"),
        ("MAKE", "ZADD # 1 a 2 b"),
        ("TWO", r#"["a", "1", "b", "2"]"#),
        ("ADD", "ZADD # 1.5 c"),
        ("THREE", r#"["a", "1", "c", "1.5", "b", "2"]"#),
        ("REMOVE", "ZREM # c"),
        ("CLEAR", "ZREM # a b"),
        ("READ", "ZRANGE # 0 -1 WITHSCORES"),
    ]),
];

/// Runs a transcript for each type.
#[track_caller]
fn check_each(kinds: &[Words], transcript: &str) {
    for kind in kinds {
        check(&kind.put_into(transcript));
    }
}

/// Compares the events of commands for each type.
#[track_caller]
fn check_events_of_each(kinds: &[Words], lines: &str) {
    for kind in kinds {
        check_events(&kind.put_into(lines));
    }
}

impl Words {
    /// The text with each word replaced. It keeps its lines, so that a failure names the right one.
    fn put_into(self, text: &str) -> String {
        let constants = self.0.iter().filter(|(_, meaning)| !meaning.contains('#'));
        let text = constants.fold(text.to_owned(), |text, (word, meaning)| text.replace(word, meaning));
        text.lines().map(|line| self.put_into_line(line.trim())).collect::<Vec<_>>().join("\n")
    }

    /// Replaces the word at the beginning of a line, or behind its mark, together with the key and the elements behind it.
    fn put_into_line(self, line: &str) -> String {
        let (mark, said) = line.split_at(line.find(|c: char| c.is_ascii_uppercase()).unwrap_or(line.len()));
        let (said, events) = said.split_once(" =>").map_or((said, None), |(said, events)| (said, Some(events)));
        let mut arguments = said.split_whitespace();
        let word = arguments.next().unwrap_or_default();
        let Some((_, meaning)) = self.0.iter().find(|(known, meaning)| *known == word && meaning.contains('#')) else {
            return line.to_owned();
        };
        let key = arguments.next().unwrap_or_else(|| panic!("{line:?} names no key"));
        let elements: Vec<&str> = arguments.collect();
        let said = meaning_of(meaning, &elements).replace('#', key);
        format!("{mark}{said}{}", events.map(|events| format!(" =>{events}")).unwrap_or_default())
    }
}

/// The meaning of a word with the elements in it; parts in braces are written once for each.
fn meaning_of(meaning: &str, elements: &[&str]) -> String {
    let first = elements.first().copied().unwrap_or_default();
    let Some((before, rest)) = meaning.split_once('{') else { return meaning.replace('@', first) };
    let (part, after) = rest.split_once('}').expect("a closing brace");
    let separator = if meaning.starts_with('[') { ", " } else { " " };
    let parts: Vec<String> = elements.iter().map(|element| part.replace('@', element)).collect();
    format!("{before}{}{after}", parts.join(separator))
}
