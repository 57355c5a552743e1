//! What a transcript expects: the readable form of a reply, with marks where more than one reply is right.
//!
//! | written | matches |
//! | --- | --- |
//! | `*` | any one reply |
//! | `:1..100` | an integer in that range, both ends included; `:1..` and `:..100` leave one end open |
//! | `~"ab*"`, `~+ab*`, `~-ERR *` | a text of that type that matches the glob (`*` any run, `?` any one) |
//! | `~["a", "b"]`, `~{...}` | these elements or entries in any order (a `set[...]` has none anyway) |
//! | `["a", ...]` | an array, set, push or map that starts so, whatever follows |
//! | `"a" \| "b"` | either |
//!
//! Everything else matches only itself: `"3"` is no `:3`, `(nil)` is no `(nil array)`.

use std::str::FromStr;

use crate::reply::Reply;
use crate::text::{glob, unquote};

#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Any,
    Success,
    Exactly(Reply),
    Range { min: i64, max: i64 },
    Glob { kind: Text, pattern: Vec<u8> },
    Items { kind: Items, items: Vec<Pattern>, any_order: bool, open_ended: bool },
    Map { entries: Vec<(Pattern, Pattern)>, any_order: bool, open_ended: bool },
    Either(Vec<Pattern>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Text {
    Simple,
    Error,
    Bulk,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Items {
    Array,
    Set,
    Push,
}

#[derive(Debug, PartialEq)]
pub(crate) enum ParseError {
    /// A bracket is still open: the next line belongs to this reply too.
    Unfinished,
    Wrong(String),
}

impl Pattern {
    /// Reads what a transcript expects as one reply.
    pub(crate) fn parse(text: &str) -> Result<Pattern, ParseError> {
        let text = text.trim();
        if let Some(pattern) = whole_line(text) {
            return Ok(pattern);
        }
        let mut parser = Parser { rest: text };
        let pattern = parser.alternatives()?;
        parser.space();
        if parser.rest.is_empty() { Ok(pattern) } else { Err(parser.wrong("nothing more")) }
    }

    pub(crate) fn matches(&self, reply: &Reply) -> bool {
        match self {
            Pattern::Any => *reply != Reply::Closed,
            // It has no written form: the steps of a transcript expect it.
            Pattern::Success => !matches!(reply, Reply::Error(_) | Reply::Push(_) | Reply::Closed),
            Pattern::Exactly(expected) => expected == reply,
            Pattern::Range { min, max } => {
                matches!(reply, Reply::Integer(n) if (min..=max).contains(&n))
            }
            Pattern::Glob { kind, pattern } => match (kind, reply) {
                (Text::Simple, Reply::Simple(text))
                | (Text::Error, Reply::Error(text))
                | (Text::Bulk, Reply::Bulk(text)) => glob(pattern, text),
                _ => false,
            },
            Pattern::Items { kind, items, any_order, open_ended } => {
                let (received_kind, received) = match reply {
                    Reply::Array(received) => (Items::Array, received),
                    Reply::Set(received) => (Items::Set, received),
                    Reply::Push(received) => (Items::Push, received),
                    _ => return false,
                };
                let any_order = *any_order || *kind == Items::Set;
                *kind == received_kind && matches_all(items, received, any_order, *open_ended, Pattern::matches)
            }
            Pattern::Map { entries, any_order, open_ended } => match reply {
                Reply::Map(received) => {
                    matches_all(entries, received, *any_order, *open_ended, |(key, value), (k, v)| {
                        key.matches(k) && value.matches(v)
                    })
                }
                _ => false,
            },
            Pattern::Either(choices) => choices.iter().any(|choice| choice.matches(reply)),
        }
    }
}

/// In any order each pattern takes the first free match: write the narrow patterns before the wide ones.
fn matches_all<P, R>(
    expected: &[P],
    received: &[R],
    any_order: bool,
    open_ended: bool,
    matches: impl Fn(&P, &R) -> bool,
) -> bool {
    let lengths_fit = if open_ended { received.len() >= expected.len() } else { received.len() == expected.len() };
    if !any_order {
        return lengths_fit && expected.iter().zip(received).all(|(p, r)| matches(p, r));
    }
    let mut free: Vec<&R> = received.iter().collect();
    lengths_fit
        && expected.iter().all(|pattern| match free.iter().position(|r| matches(pattern, r)) {
            Some(at) => {
                free.remove(at);
                true
            }
            None => false,
        })
}

/// Status and error texts that take the whole line, as they do on the wire.
fn whole_line(text: &str) -> Option<Pattern> {
    let (globbed, sigiled) = match text.strip_prefix('~') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let kind = match sigiled.as_bytes().first()? {
        b'+' => Text::Simple,
        b'-' => Text::Error,
        _ => return None,
    };
    let content = &sigiled[1..];
    if content.starts_with('"') {
        return None;
    }
    let bytes = content.as_bytes().to_vec();
    Some(match (globbed, kind) {
        (true, kind) => Pattern::Glob { kind, pattern: bytes },
        (false, Text::Simple) => Pattern::Exactly(Reply::Simple(bytes)),
        (false, _) => Pattern::Exactly(Reply::Error(bytes)),
    })
}

struct Parser<'a> {
    rest: &'a str,
}

type Parsed<T> = Result<T, ParseError>;

impl Parser<'_> {
    fn alternatives(&mut self) -> Parsed<Pattern> {
        let mut choices = vec![self.one()?];
        while self.take("|") {
            choices.push(self.one()?);
        }
        Ok(if choices.len() == 1 { choices.remove(0) } else { Pattern::Either(choices) })
    }

    fn one(&mut self) -> Parsed<Pattern> {
        self.space();
        if self.rest.is_empty() {
            return Err(ParseError::Unfinished);
        }
        if self.take("*") {
            return Ok(Pattern::Any);
        }
        let loose = self.take("~");
        let opens = [("[", Items::Array), ("set[", Items::Set), ("push[", Items::Push)];
        for (open, kind) in opens {
            if self.take(open) {
                let (items, open_ended) = self.list("]", Parser::alternatives)?;
                return Ok(Pattern::Items { kind, items, any_order: loose, open_ended });
            }
        }
        if self.take("{") {
            let (entries, open_ended) = self.list("}", Parser::entry)?;
            return Ok(Pattern::Map { entries, any_order: loose, open_ended });
        }
        for (sigil, kind) in [("+", Text::Simple), ("-", Text::Error), ("", Text::Bulk)] {
            if self.take(&format!("{sigil}\"")) {
                let text = self.quoted()?;
                return Ok(match (loose, kind) {
                    (true, kind) => Pattern::Glob { kind, pattern: text },
                    (false, Text::Simple) => Pattern::Exactly(Reply::Simple(text)),
                    (false, Text::Error) => Pattern::Exactly(Reply::Error(text)),
                    (false, Text::Bulk) => Pattern::Exactly(Reply::Bulk(text)),
                });
            }
        }
        if loose {
            return Err(self.wrong("a text, an array or a map after ~"));
        }
        self.scalar()
    }

    fn scalar(&mut self) -> Parsed<Pattern> {
        let words = [
            ("(nil array)", Reply::NilArray),
            ("(nil)", Reply::NilBulk),
            ("(closed)", Reply::Closed),
            ("#t", Reply::Boolean(true)),
            ("#f", Reply::Boolean(false)),
            ("_", Reply::Null),
        ];
        for (word, reply) in words {
            if self.take(word) {
                return Ok(Pattern::Exactly(reply));
            }
        }
        for format in ["txt", "mkd"] {
            if self.take(&format!("{format}:\"")) {
                return Ok(Pattern::Exactly(Reply::Verbatim { format: format.into(), text: self.quoted()? }));
            }
        }
        if self.take("+") {
            return Ok(Pattern::Exactly(Reply::Simple(self.word().as_bytes().to_vec())));
        }
        if self.take(":") {
            let word = self.word();
            return match word.split_once("..") {
                Some((min, max)) => Ok(Pattern::Range {
                    min: if min.is_empty() { i64::MIN } else { parse(min)? },
                    max: if max.is_empty() { i64::MAX } else { parse(max)? },
                }),
                None => Ok(Pattern::Exactly(Reply::Integer(parse(word)?))),
            };
        }
        if self.take(",") {
            return Ok(Pattern::Exactly(Reply::Double(self.word().into())));
        }
        if self.take("(") {
            return Ok(Pattern::Exactly(Reply::BigNumber(self.word().into())));
        }
        Err(self.wrong("a reply"))
    }

    fn entry(&mut self) -> Parsed<(Pattern, Pattern)> {
        let key = self.alternatives()?;
        self.expect("=>")?;
        Ok((key, self.alternatives()?))
    }

    /// Elements up to `close`, and whether `...` stands for more of them.
    fn list<T>(&mut self, close: &str, mut element: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<(Vec<T>, bool)> {
        let mut elements = Vec::new();
        if self.take(close) {
            return Ok((elements, false));
        }
        loop {
            if self.take("...") {
                self.expect(close)?;
                return Ok((elements, true));
            }
            elements.push(element(self)?);
            if self.take(close) {
                return Ok((elements, false));
            }
            self.expect(",")?;
        }
    }

    /// The rest of a quoted text whose opening quote has been taken.
    fn quoted(&mut self) -> Parsed<Vec<u8>> {
        let quoted = format!("\"{}", self.rest);
        let (bytes, after) = unquote(quoted.as_bytes()).map_err(ParseError::Wrong)?;
        self.rest = &self.rest[self.rest.len() - after.len()..];
        Ok(bytes)
    }

    fn word(&mut self) -> &str {
        let end = self.rest.find(|c: char| c.is_whitespace() || ",]}|=".contains(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.take(token) {
            return Ok(());
        }
        Err(if self.rest.is_empty() { ParseError::Unfinished } else { self.wrong(token) })
    }

    fn take(&mut self, token: &str) -> bool {
        self.space();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn wrong(&self, expected: &str) -> ParseError {
        ParseError::Wrong(format!("expected {expected} at {:?}", self.rest))
    }
}

fn parse<T: FromStr>(word: &str) -> Parsed<T> {
    word.parse().map_err(|_| ParseError::Wrong(format!("{word:?} is no number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readable_form_of_every_reply_matches_that_reply_only() {
        let bulk = |text: &str| Reply::Bulk(text.into());
        let replies = [
            Reply::Simple(b"OK".to_vec()),
            Reply::Simple(b"Background saving started".to_vec()),
            Reply::Simple(b"\"quoted\"".to_vec()),
            Reply::Error(b"ERR syntax error | [really]".to_vec()),
            Reply::Error(b"\n".to_vec()),
            Reply::Integer(-5),
            bulk("a\"b\\c\r\n"),
            Reply::Bulk(vec![0, 255]),
            Reply::NilBulk,
            Reply::NilArray,
            Reply::Null,
            Reply::Array(vec![]),
            Reply::Array(vec![
                Reply::Simple(b"OK".to_vec()),
                Reply::Simple(b"two words".to_vec()),
                Reply::Error(b"ERR no, not that".to_vec()),
                Reply::Array(vec![Reply::Integer(1), Reply::NilBulk]),
            ]),
            Reply::Map(vec![(bulk("a"), Reply::Integer(1)), (bulk("b"), Reply::Map(vec![]))]),
            Reply::Set(vec![bulk("a")]),
            Reply::Push(vec![bulk("a"), Reply::Null]),
            Reply::Double("1.5".into()),
            Reply::Double("-inf".into()),
            Reply::Boolean(true),
            Reply::Boolean(false),
            Reply::BigNumber("12345678901234567890".into()),
            Reply::Verbatim { format: "txt".into(), text: b"some\ntext".to_vec() },
            Reply::Closed,
        ];
        for (i, written) in replies.iter().enumerate() {
            let pattern = Pattern::parse(&written.to_string()).unwrap_or_else(|e| panic!("{written}: {e:?}"));
            for (j, reply) in replies.iter().enumerate() {
                assert_eq!(pattern.matches(reply), i == j, "{written} against {reply}");
            }
        }
    }

    #[test]
    fn marks_match_more_than_one_reply() {
        let read = |text: &str| Reply::read(&mut text.replace(' ', "\r\n").as_bytes()).unwrap();
        let matches = |pattern: &str, wire: &str| Pattern::parse(pattern).unwrap().matches(&read(wire));
        assert!(matches(":1..3", ":1 ") && matches(":1..3", ":3 ") && !matches(":1..3", ":4 "));
        assert!(matches(":-5..", ":-5 ") && matches(":..0", ":-5 ") && !matches(":..0", ":1 "));
        assert!(matches("~\"a*\"", "$3 abc ") && !matches("~\"a*\"", "+abc "));
        assert!(matches("~-ERR*", "-ERRx ") && !matches("~+*", "-ERR "));
        assert!(matches("~[:1, :2]", "*2 :2 :1 ") && !matches("~[:1, :1]", "*2 :2 :1 "));
        assert!(matches("set[:1, :2]", "~2 :2 :1 "));
        assert!(matches("~{:1 => :2, :3 => :4}", "%2 :3 :4 :1 :2 "));
        assert!(matches("[:1, ...]", "*2 :1 :2 ") && !matches("[:1]", "*2 :1 :2 "));
        assert!(matches("[*, :2]", "*2 :1 :2 "));
        assert!(matches("[:0 | :1, (nil) | :2]", "*2 :1 :2 ") && !matches(":0 | :1", ":2 "));
    }

    #[test]
    fn an_open_bracket_asks_for_the_next_line() {
        for unfinished in ["[", "[:1,", "[:1", "{:1", "{:1 =>", "~[[:1], "] {
            assert!(matches!(Pattern::parse(unfinished), Err(ParseError::Unfinished)), "{unfinished}");
        }
        assert!(matches!(Pattern::parse("[:1]]"), Err(ParseError::Wrong(_))));
        assert!(matches!(Pattern::parse("OK"), Err(ParseError::Wrong(_))));
        assert!(Pattern::parse("[:1,\n :2]").is_ok());
    }
}
