//! One reply as it came over the wire, and its readable form. Keeps every distinction that the wire makes.

use std::fmt;
use std::io::{self, BufRead};

use crate::text::quote;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    /// RESP2's absent bulk string, `$-1`.
    NilBulk,
    /// RESP2's absent array, `*-1`.
    NilArray,
    Array(Vec<Reply>),
    /// RESP3's one null, `_`.
    Null,
    Map(Vec<(Reply, Reply)>),
    Set(Vec<Reply>),
    Push(Vec<Reply>),
    /// The digits as sent: `1.5`, `inf`.
    Double(String),
    Boolean(bool),
    BigNumber(String),
    Verbatim {
        format: String,
        text: Vec<u8>,
    },
    /// The server closed the connection instead of replying.
    Closed,
}

impl Reply {
    /// Reads one reply. An orderly or abrupt close between replies is the reply `Closed`.
    pub fn read(from: &mut impl BufRead) -> io::Result<Reply> {
        let closed = match from.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => true,
            Err(e) => return Err(e),
        };
        if closed {
            return Ok(Reply::Closed);
        }
        read_nested(from)
    }

    /// The integer, or a panic that shows what came instead.
    #[track_caller]
    pub fn integer(&self) -> i64 {
        match self {
            Reply::Integer(n) => *n,
            other => panic!("expected an integer, received {other}"),
        }
    }

    /// The bytes of a bulk string, or a panic that shows what came instead.
    #[track_caller]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Reply::Bulk(bytes) => bytes,
            other => panic!("expected a bulk string, received {other}"),
        }
    }

    /// The bytes of a bulk string as text.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(self.bytes()).expect("the bulk string is not UTF-8")
    }

    /// The elements of an array, set or push, or a panic that shows what came instead.
    #[track_caller]
    pub fn items(&self) -> &[Reply] {
        match self {
            Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => items,
            other => panic!("expected an array, received {other}"),
        }
    }

    pub fn is_nil(&self) -> bool {
        matches!(self, Reply::NilBulk | Reply::NilArray | Reply::Null)
    }

    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }

    /// The readable form, cut short where it would flood a terminal.
    pub fn excerpt(&self) -> String {
        const CHARS_MAX: usize = 2000;
        let text = self.to_string();
        if text.len() <= CHARS_MAX {
            return text;
        }
        let head: String = text.chars().take(CHARS_MAX).collect();
        format!("{head}... ({} characters in all)", text.len())
    }
}

fn read_nested(from: &mut impl BufRead) -> io::Result<Reply> {
    let line = read_line(from)?;
    let (kind, rest) = line.split_first().ok_or_else(|| malformed("an empty line"))?;
    let reply = match kind {
        b'+' => Reply::Simple(rest.to_vec()),
        b'-' => Reply::Error(rest.to_vec()),
        b':' => Reply::Integer(number(rest)?),
        b'$' => match length(rest)? {
            Some(len) => Reply::Bulk(read_bulk(from, len)?),
            None => Reply::NilBulk,
        },
        b'*' => match length(rest)? {
            Some(len) => Reply::Array(read_many(from, len)?),
            None => Reply::NilArray,
        },
        b'_' if rest.is_empty() => Reply::Null,
        b'~' => Reply::Set(read_many(from, present(rest)?)?),
        b'>' => Reply::Push(read_many(from, present(rest)?)?),
        b'%' => {
            let mut entries = Vec::new();
            for _ in 0..present(rest)? {
                entries.push((read_nested(from)?, read_nested(from)?));
            }
            Reply::Map(entries)
        }
        b',' => Reply::Double(ascii(rest)?),
        b'#' if rest == b"t" => Reply::Boolean(true),
        b'#' if rest == b"f" => Reply::Boolean(false),
        b'(' => Reply::BigNumber(ascii(rest)?),
        b'=' => {
            let mut bytes = read_bulk(from, present(rest)?)?;
            if bytes.get(3) != Some(&b':') {
                return Err(malformed("a verbatim string without its format"));
            }
            let text = bytes.split_off(4);
            Reply::Verbatim { format: ascii(&bytes[..3])?, text }
        }
        _ => {
            return Err(malformed(&format!("a reply that starts with {}", quote(&line))));
        }
    };
    Ok(reply)
}

fn read_line(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(content) => Ok(content.to_vec()),
        None => Err(malformed(&format!("a line without \\r\\n: {}", quote(&line)))),
    }
}

fn read_bulk(from: &mut impl BufRead, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len + 2];
    from.read_exact(&mut bytes)?;
    if !bytes.ends_with(b"\r\n") {
        return Err(malformed("a bulk string without its closing \\r\\n"));
    }
    bytes.truncate(len);
    Ok(bytes)
}

fn read_many(from: &mut impl BufRead, len: usize) -> io::Result<Vec<Reply>> {
    (0..len).map(|_| read_nested(from)).collect()
}

fn length(digits: &[u8]) -> io::Result<Option<usize>> {
    match number(digits)? {
        -1 => Ok(None),
        len => usize::try_from(len).map(Some).map_err(|_| malformed("a negative length")),
    }
}

fn present(digits: &[u8]) -> io::Result<usize> {
    length(digits)?.ok_or_else(|| malformed("a length of -1 where RESP3 has none"))
}

fn number(digits: &[u8]) -> io::Result<i64> {
    ascii(digits)?.parse().map_err(|_| malformed(&format!("{} for a number", quote(digits))))
}

fn ascii(bytes: &[u8]) -> io::Result<String> {
    match String::from_utf8(bytes.to_vec()) {
        Ok(text) if text.is_ascii() => Ok(text),
        _ => Err(malformed("bytes where ASCII belongs")),
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the server sent {what}"))
}

/// The transcript form; `pattern` reads the same form back.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Alone on its line a text needs no quotes.
            Reply::Simple(text) if is_plain(text) => {
                write!(f, "+{}", String::from_utf8_lossy(text))
            }
            Reply::Error(text) if is_plain(text) => write!(f, "-{}", String::from_utf8_lossy(text)),
            other => write_nested(f, other),
        }
    }
}

fn write_nested(f: &mut fmt::Formatter<'_>, reply: &Reply) -> fmt::Result {
    match reply {
        Reply::Simple(text) if is_word(text) => write!(f, "+{}", String::from_utf8_lossy(text)),
        Reply::Simple(text) => write!(f, "+{}", quote(text)),
        Reply::Error(text) => write!(f, "-{}", quote(text)),
        Reply::Integer(n) => write!(f, ":{n}"),
        Reply::Bulk(bytes) => f.write_str(&quote(bytes)),
        Reply::NilBulk => f.write_str("(nil)"),
        Reply::NilArray => f.write_str("(nil array)"),
        Reply::Array(items) => write_items(f, "[", items),
        Reply::Null => f.write_str("_"),
        Reply::Map(entries) => {
            f.write_str("{")?;
            for (i, (key, value)) in entries.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { ", " })?;
                write_nested(f, key)?;
                f.write_str(" => ")?;
                write_nested(f, value)?;
            }
            f.write_str("}")
        }
        Reply::Set(items) => write_items(f, "set[", items),
        Reply::Push(items) => write_items(f, "push[", items),
        Reply::Double(digits) => write!(f, ",{digits}"),
        Reply::Boolean(true) => f.write_str("#t"),
        Reply::Boolean(false) => f.write_str("#f"),
        Reply::BigNumber(digits) => write!(f, "({digits}"),
        Reply::Verbatim { format, text } => write!(f, "{format}:{}", quote(text)),
        Reply::Closed => f.write_str("(closed)"),
    }
}

fn write_items(f: &mut fmt::Formatter<'_>, open: &str, items: &[Reply]) -> fmt::Result {
    f.write_str(open)?;
    for (i, item) in items.iter().enumerate() {
        f.write_str(if i == 0 { "" } else { ", " })?;
        write_nested(f, item)?;
    }
    f.write_str("]")
}

/// Text that can stand on a transcript line as it is: no control characters, no quote in front, no spaces around.
fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, 0x20..=0x7e)) && !text.starts_with(b"\"") && text.trim_ascii() == text
}

fn is_word(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
