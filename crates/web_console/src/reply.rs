//! Reads replies of RESP3 piece by piece, within limits. Refuses to know which command a reply answers.

use std::borrow::Cow;

/// The deepest nesting of a reply.
const DEPTH_MAX: usize = 32;

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Null,
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bool(bool),
    /// A double or a big number, as it was written.
    Number(Vec<u8>),
    Bulk(Vec<u8>),
    List(Vec<Reply>),
    /// Keys and values, one after the other.
    Map(Vec<Reply>),
    Push(Vec<Reply>),
}

impl Reply {
    /// The bytes of a text, a number or an error; empty for anything else.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Reply::Simple(text) | Reply::Error(text) | Reply::Number(text) | Reply::Bulk(text) => Cow::Borrowed(text),
            Reply::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
            Reply::Bool(value) => Cow::Borrowed(if *value { b"1" } else { b"0" }),
            Reply::Null | Reply::List(_) | Reply::Map(_) | Reply::Push(_) => Cow::Borrowed(b""),
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// A number, also one that is written as text.
    pub fn number(&self) -> Option<f64> {
        std::str::from_utf8(&self.bytes()).ok()?.parse().ok()
    }

    pub fn integer(&self) -> Option<i64> {
        match self {
            Reply::Integer(number) => Some(*number),
            other => std::str::from_utf8(&other.bytes()).ok()?.parse().ok(),
        }
    }

    pub fn error(&self) -> Option<&[u8]> {
        match self {
            Reply::Error(text) => Some(text),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        *self == Reply::Null
    }

    /// The elements of a list; those of a map are keys and values by turns.
    pub fn items(&self) -> &[Reply] {
        match self {
            Reply::List(items) | Reply::Map(items) | Reply::Push(items) => items,
            _ => &[],
        }
    }

    pub fn at(&self, index: usize) -> &Reply {
        self.items().get(index).unwrap_or(&Reply::Null)
    }

    /// Keys and values of a map, or of a list that is one.
    pub fn pairs(&self) -> impl Iterator<Item = (&Reply, &Reply)> {
        self.items().chunks_exact(2).map(|pair| (&pair[0], &pair[1]))
    }

    /// The value of a key of a map.
    pub fn get(&self, key: impl AsRef<[u8]>) -> &Reply {
        self.pairs().find(|(known, _)| *known.bytes() == *key.as_ref()).map_or(&Reply::Null, |(_, value)| value)
    }
}

/// Why replies cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    TooLarge,
    Malformed,
}

/// Reads replies from bytes that come in pieces.
pub struct Reader {
    buffer: Vec<u8>,
    at: usize,
    /// Lists that are not complete yet, outermost first.
    open: Vec<Open>,
    /// The bytes that may still come.
    bytes_left: usize,
}

struct Open {
    make: fn(Vec<Reply>) -> Reply,
    items: Vec<Reply>,
    missing: usize,
}

impl Reader {
    /// A reader of at most so many bytes altogether.
    pub fn new(bytes_max: usize) -> Reader {
        Reader { buffer: Vec::new(), at: 0, open: Vec::new(), bytes_left: bytes_max }
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Unreadable> {
        self.bytes_left = self.bytes_left.checked_sub(bytes.len()).ok_or(Unreadable::TooLarge)?;
        self.buffer.drain(..self.at);
        self.at = 0;
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next reply, if all of it is there.
    pub fn take(&mut self) -> Result<Option<Reply>, Unreadable> {
        while let Some(piece) = self.piece()? {
            let mut done = match piece {
                Piece::Whole(reply) => reply,
                Piece::Begins(make, 0) => make(Vec::new()),
                Piece::Begins(make, missing) => {
                    if self.open.len() == DEPTH_MAX {
                        return Err(Unreadable::Malformed);
                    }
                    self.open.push(Open { make, items: Vec::new(), missing });
                    continue;
                }
            };
            loop {
                let Some(mut list) = self.open.pop() else { return Ok(Some(done)) };
                list.items.push(done);
                list.missing -= 1;
                if list.missing > 0 {
                    self.open.push(list);
                    break;
                }
                done = (list.make)(list.items);
            }
        }
        Ok(None)
    }

    fn piece(&mut self) -> Result<Option<Piece>, Unreadable> {
        let rest = &self.buffer[self.at..];
        let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
        let Some((kind, line)) = rest[..end].split_first() else { return Err(Unreadable::Malformed) };
        let after = end + 2;
        let number = || std::str::from_utf8(line).ok().and_then(|line| line.parse::<i64>().ok());
        let count = || number().ok_or(Unreadable::Malformed);
        let (piece, used) = match kind {
            b'+' => (Piece::Whole(Reply::Simple(line.to_vec())), after),
            b'-' => (Piece::Whole(Reply::Error(line.to_vec())), after),
            b':' => (Piece::Whole(Reply::Integer(count()?)), after),
            b'_' => (Piece::Whole(Reply::Null), after),
            b'#' => (Piece::Whole(Reply::Bool(line == b"t")), after),
            b',' | b'(' => (Piece::Whole(Reply::Number(line.to_vec())), after),
            b'$' | b'=' | b'!' => match count()? {
                -1 => (Piece::Whole(Reply::Null), after),
                len => {
                    let len = usize::try_from(len).map_err(|_| Unreadable::Malformed)?;
                    let missing = (after + len + 2).saturating_sub(rest.len());
                    if missing > self.bytes_left {
                        return Err(Unreadable::TooLarge);
                    }
                    if missing > 0 {
                        return Ok(None);
                    }
                    let bytes = &rest[after..after + len];
                    let reply = match kind {
                        b'!' => Reply::Error(bytes.to_vec()),
                        // Its format comes first, as in `txt:`.
                        b'=' => Reply::Bulk(bytes.get(4..).unwrap_or_default().to_vec()),
                        _ => Reply::Bulk(bytes.to_vec()),
                    };
                    (Piece::Whole(reply), after + len + 2)
                }
            },
            b'*' | b'~' | b'>' | b'%' | b'|' => match count()? {
                -1 => (Piece::Whole(Reply::Null), after),
                len => {
                    let len = usize::try_from(len).map_err(|_| Unreadable::Malformed)?;
                    let per_item = if matches!(kind, b'%' | b'|') { 2 } else { 1 };
                    let len = len.checked_mul(per_item).ok_or(Unreadable::TooLarge)?;
                    let make: fn(Vec<Reply>) -> Reply = match kind {
                        b'%' => Reply::Map,
                        b'>' => Reply::Push,
                        // An attribute is no reply, and the server sends none.
                        b'|' => return Err(Unreadable::Malformed),
                        _ => Reply::List,
                    };
                    (Piece::Begins(make, len), after)
                }
            },
            _ => return Err(Unreadable::Malformed),
        };
        self.at += used;
        Ok(Some(piece))
    }
}

enum Piece {
    Whole(Reply),
    Begins(fn(Vec<Reply>) -> Reply, usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[u8] = b"+OK\r\n:-5\r\n$3\r\na\r\n\r\n_\r\n$-1\r\n#t\r\n,1.5\r\n=6\r\ntxt:ab\r\n!5\r\nERR x\r\n\
        %1\r\n+k\r\n*2\r\n:1\r\n*0\r\n~1\r\n:7\r\n>1\r\n+p\r\n-ERR no\r\n";

    fn expected() -> Vec<Reply> {
        let simple = |text: &str| Reply::Simple(text.into());
        vec![
            simple("OK"),
            Reply::Integer(-5),
            Reply::Bulk(b"a\r\n".to_vec()),
            Reply::Null,
            Reply::Null,
            Reply::Bool(true),
            Reply::Number(b"1.5".to_vec()),
            Reply::Bulk(b"ab".to_vec()),
            Reply::Error(b"ERR x".to_vec()),
            Reply::Map(vec![simple("k"), Reply::List(vec![Reply::Integer(1), Reply::List(vec![])])]),
            Reply::List(vec![Reply::Integer(7)]),
            Reply::Push(vec![simple("p")]),
            Reply::Error(b"ERR no".to_vec()),
        ]
    }

    #[test]
    fn replies_in_pieces_of_any_size() {
        for size in [1, 2, 3, 7, ALL.len()] {
            let (mut reader, mut found) = (Reader::new(ALL.len()), Vec::new());
            for piece in ALL.chunks(size) {
                reader.feed(piece).unwrap();
                while let Some(reply) = reader.take().unwrap() {
                    found.push(reply);
                }
            }
            assert_eq!(found, expected(), "pieces of {size}");
        }
    }

    #[test]
    fn limits_hold() {
        let fails = |bytes: &[u8], bytes_max| {
            let mut reader = Reader::new(bytes_max);
            reader.feed(bytes).and_then(|()| reader.take()).err()
        };
        assert_eq!(fails(b"+OK\r\n", 4), Some(Unreadable::TooLarge));
        assert_eq!(fails(b"$1000000\r\nabc", 1000), Some(Unreadable::TooLarge));
        assert_eq!(fails("*1\r\n".repeat(100).as_bytes(), 1000), Some(Unreadable::Malformed));
        for bad in ["\r\n", "?1\r\n", "$x\r\n", ":\r\n", "$-2\r\n", "*-7\r\n", "%9223372036854775808\r\n"] {
            assert!(fails(bad.as_bytes(), 1000).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn a_list_that_promises_much_takes_no_memory() {
        let mut reader = Reader::new(1000);
        reader.feed(b"*2000000000\r\n").unwrap();
        assert_eq!(reader.take(), Ok(None));
    }
}
