//! One reply as it came over the wire, and its readable form. Keeps every distinction that the wire makes.

use std::fmt;
use std::io::{self, BufRead};

use redis_protocol::error::RedisProtocolError;
use redis_protocol::resp2::{self, types::RangeFrame as Frame2};
use redis_protocol::resp3::{self, types::RangeFrame as Frame3};

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
        let closed = match filled(from) {
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

/// What has arrived, empty at the end. A read with a time limit is interrupted when the machine is suspended for a moment:
/// that is no answer, and it is made again.
fn filled(from: &mut impl BufRead) -> io::Result<&[u8]> {
    while let Err(error) = from.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    from.fill_buf()
}

/// Reads a reply, whatever is inside of it. `redis-protocol` reads every frame that has no elements. Of an array, map, set
/// or push only the first line is read here, and its elements one by one, since frames of the crate lose what a
/// transcript must see: maps and sets are hash tables there (no order, nothing twice, no arrays for keys), and RESP2's two
/// nulls are one. It would also begin an array again from its first byte each time that more of it arrives.
fn read_nested(from: &mut impl BufRead) -> io::Result<Reply> {
    let Some(&kind) = filled(from)?.first() else { return Err(cut_off()) };
    match kind {
        b'*' => match read_count(from)? {
            Some(count) => Ok(Reply::Array(read_many(from, count)?)),
            None => Ok(Reply::NilArray),
        },
        b'~' => Ok(Reply::Set(read_elements(from)?)),
        b'>' => Ok(Reply::Push(read_elements(from)?)),
        b'%' => {
            let count = read_count(from)?.ok_or_else(|| malformed("a map of -1 entries"))?;
            let entries = (0..count).map(|_| Ok((read_nested(from)?, read_nested(from)?)));
            Ok(Reply::Map(entries.collect::<io::Result<_>>()?))
        }
        b'+' | b'-' | b':' | b'$' => read_resp2(from),
        _ => read_resp3(from),
    }
}

fn read_elements(from: &mut impl BufRead) -> io::Result<Vec<Reply>> {
    let count = read_count(from)?.ok_or_else(|| malformed("a set or push of -1 elements"))?;
    read_many(from, count)
}

fn read_many(from: &mut impl BufRead, count: usize) -> io::Result<Vec<Reply>> {
    (0..count).map(|_| read_nested(from)).collect()
}

/// How many elements the first line announces; `None` for -1.
fn read_count(from: &mut impl BufRead) -> io::Result<Option<usize>> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    if !line.ends_with(b"\n") {
        return Err(cut_off());
    }
    let digits = line[1..].strip_suffix(b"\r\n").and_then(|digits| str::from_utf8(digits).ok());
    match digits {
        Some("-1") => Ok(None),
        digits => digits
            .and_then(|digits| digits.parse().ok())
            .map(Some)
            .ok_or_else(|| malformed(&format!("{} for a number of elements", quote(&line)))),
    }
}

fn read_resp2(from: &mut impl BufRead) -> io::Result<Reply> {
    let (frame, bytes) = read_frame(from, resp2::decode::decode_range)?;
    match frame {
        Frame2::SimpleString((start, end)) => Ok(Reply::Simple(line(&bytes[start..end])?)),
        Frame2::Error((start, end)) => Ok(Reply::Error(line(&bytes[start..end])?)),
        Frame2::Integer(number) => Ok(Reply::Integer(number)),
        Frame2::BulkString((start, end)) => Ok(Reply::Bulk(blob(&bytes, start, end)?)),
        Frame2::Null => Ok(Reply::NilBulk),
        Frame2::Array(_) => unreachable!("arrays are read element by element"),
    }
}

fn read_resp3(from: &mut impl BufRead) -> io::Result<Reply> {
    let (frame, bytes) = read_frame(from, resp3::decode::complete::decode_range)?;
    match frame {
        // The frame would keep anything between `_` and the end of the line to itself.
        Frame3::Null if bytes == b"_\r\n" => Ok(Reply::Null),
        // The frame has the number; transcripts compare the digits.
        Frame3::Double { .. } => Ok(Reply::Double(ascii(&bytes[1..bytes.len() - 2])?)),
        Frame3::Boolean { data, .. } => Ok(Reply::Boolean(data)),
        Frame3::BigNumber { data: (start, end), .. } => Ok(Reply::BigNumber(ascii(&bytes[start..end])?)),
        Frame3::VerbatimString { data: (start, end), .. } => {
            // The frame takes any byte for the colon.
            let (format, text) = (ascii(&bytes[start - 4..start])?, blob(&bytes, start, end)?);
            let format = format.strip_suffix(':').ok_or_else(|| malformed("a verbatim string without its format"))?;
            Ok(Reply::Verbatim { format: format.to_string(), text })
        }
        // Attributes too: what sends them is compared as raw bytes.
        _ => Err(malformed(&format!("a reply that starts with {}", quote(&bytes)))),
    }
}

/// A decoder of `redis-protocol`: a frame and its length, or nothing while it is not all there.
type Decode<F> = fn(&[u8]) -> Result<Option<(F, usize)>, RedisProtocolError>;

/// One frame, and its bytes. Takes no byte that follows it.
fn read_frame<F>(from: &mut impl BufRead, decode: Decode<F>) -> io::Result<(F, Vec<u8>)> {
    // What came of a frame that is longer than the buffer of `from`, or arrives in pieces.
    let mut begun = Vec::new();
    loop {
        let arrived = filled(from)?;
        if arrived.is_empty() {
            return Err(cut_off());
        }
        let (before, count) = (begun.len(), arrived.len());
        let bytes = if begun.is_empty() {
            arrived
        } else {
            begun.extend_from_slice(arrived);
            &begun
        };
        match decode(bytes) {
            Ok(Some((frame, length))) => {
                let bytes = bytes[..length].to_vec();
                from.consume(length - before);
                return Ok((frame, bytes));
            }
            Ok(None) if begun.is_empty() => begun.extend_from_slice(arrived),
            Ok(None) => {}
            Err(error) => {
                let start = quote(&bytes[..bytes.len().min(EXCERPT_BYTES)]);
                return Err(malformed(&format!("{start}, where {}", error.details())));
            }
        }
        from.consume(count);
    }
}

/// How much of a malformed reply is shown.
const EXCERPT_BYTES: usize = 100;

/// The text of a frame that is one line: `redis-protocol` ends it at `\r\n` and leaves either byte alone inside of it.
fn line(text: &[u8]) -> io::Result<Vec<u8>> {
    match text.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        true => Err(malformed(&format!("{} in one line", quote(text)))),
        false => Ok(text.to_vec()),
    }
}

/// The content of a frame that announces its length: `redis-protocol` takes any two bytes for its end.
fn blob(frame: &[u8], start: usize, end: usize) -> io::Result<Vec<u8>> {
    match &frame[end..] {
        b"\r\n" => Ok(frame[start..end].to_vec()),
        other => Err(malformed(&format!("a bulk string that ends in {}", quote(other)))),
    }
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

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection in the middle of a reply")
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// All replies in these bytes, which arrive `piece` at a time.
    fn read_all(bytes: &[u8], piece: usize) -> io::Result<Vec<Reply>> {
        let mut from = BufReader::with_capacity(piece, bytes);
        let mut replies = Vec::new();
        loop {
            match Reply::read(&mut from)? {
                Reply::Closed => return Ok(replies),
                reply => replies.push(reply),
            }
        }
    }

    #[test]
    fn every_distinction_of_the_wire_is_kept_however_the_bytes_arrive() {
        let bytes = b"+OK\r\n-ERR no\r\n:-7\r\n$4\r\na\r\nb\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n*2\r\n$-1\r\n*-1\r\n_\r\n\
            ,1.50\r\n,inf\r\n#t\r\n#f\r\n(12345678901234567890\r\n=6\r\ntxt:ab\r\n=4\r\nmkd:\r\n\
            ~2\r\n:1\r\n:1\r\n>2\r\n+a\r\n*1\r\n,-0\r\n%2\r\n$1\r\nb\r\n_\r\n*1\r\n:1\r\n%1\r\n#t\r\n~0\r\n";
        let written = [
            "+OK",
            "-ERR no",
            ":-7",
            r#""a\r\nb""#,
            r#""""#,
            "(nil)",
            "(nil array)",
            "[]",
            "[(nil), (nil array)]",
            "_",
            ",1.50",
            ",inf",
            "#t",
            "#f",
            "(12345678901234567890",
            r#"txt:"ab""#,
            r#"mkd:"""#,
            "set[:1, :1]",
            "push[+a, [,-0]]",
            r#"{"b" => _, [:1] => {#t => set[]}}"#,
        ];
        for piece in [1, 2, 3, 7, 4096] {
            let replies: Vec<_> = read_all(bytes, piece).unwrap().iter().map(Reply::to_string).collect();
            assert_eq!(replies, written, "in pieces of {piece}");
        }
    }

    #[test]
    fn malformed_replies_are_refused() {
        for bytes in [
            "OK\r\n",
            "\r\n",
            ":1x\r\n",
            ":\r\n",
            "$-2\r\n",
            "$2\r\nabc\r\n",
            "$2\r\nab\n\n",
            "*-2\r\n",
            "*x\r\n",
            "*1\n",
            "+a\nb\r\n",
            "-a\rb\r\n",
            "_x\r\n",
            "#x\r\n",
            ",one\r\n",
            "(1\u{e9}\r\n",
            "=2\r\nab\r\n",
            "=5\r\ntxt-a\r\n",
            "=5\r\nabc:a\r\n",
            "~-1\r\n",
            ">-1\r\n",
            "%-1\r\n",
            "*1\r\n%1\r\n+a\r\n?\r\n",
            "!2\r\nab\r\n",
            "HELLO 3\r\n",
            "|1\r\n+a\r\n+b\r\n+c\r\n",
            "$?\r\n",
            "*?\r\n",
        ] {
            let refused = read_all(bytes.as_bytes(), 4096).map_err(|error| error.kind());
            assert_eq!(refused, Err(io::ErrorKind::InvalidData), "{bytes:?}");
        }
    }

    #[test]
    fn a_reply_that_is_cut_off_is_not_malformed() {
        let whole = b"*3\r\n$4\r\na\r\nb\r\n%1\r\n+a\r\n,1.5\r\n_\r\n";
        for end in 1..whole.len() {
            let cut = read_all(&whole[..end], 4096).map_err(|error| error.kind());
            assert_eq!(cut, Err(io::ErrorKind::UnexpectedEof), "{end}");
        }
        assert_eq!(read_all(whole, 4096).unwrap().len(), 1);
    }
}
