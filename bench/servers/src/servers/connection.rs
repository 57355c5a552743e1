//! A small blocking client of the Redis protocol. Knows nothing of what the commands mean.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use redis_protocol::resp2::decode::{decode, decode_range};
use redis_protocol::resp2::types::RangeFrame;

/// What a server replies. Owned: frames that share a buffer (`BytesFrame`) cost more than copies of such small replies.
pub(crate) use redis_protocol::resp2::types::OwnedFrame as Reply;

pub(crate) struct Connection {
    stream: TcpStream,
    /// Requests not yet sent.
    pending: Vec<u8>,
    received: Received,
}

/// Bytes that have arrived, of which the first `used` have been read.
#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    used: usize,
}

/// A server silent for longer than this has hung.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// Received at most at once.
const CHUNK_BYTES: usize = 16 * 1024;

impl Connection {
    pub(crate) fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Connection { stream, pending: Vec::new(), received: Received::default() })
    }

    /// Sends one request and waits for its reply.
    pub(crate) fn call(&mut self, args: &[&str]) -> Result<Reply> {
        self.push(args);
        self.flush()?;
        self.read_reply()
    }

    /// Adds a request to those that the next `flush` sends.
    pub(crate) fn push(&mut self, args: &[&str]) {
        write_request(&mut self.pending, args);
    }

    /// Adds requests that are put together already.
    pub(crate) fn push_written(&mut self, requests: &[u8]) {
        self.pending.extend_from_slice(requests);
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.stream.write_all(&self.pending).context("cannot send to the server")?;
        self.pending.clear();
        Ok(())
    }

    pub(crate) fn read_reply(&mut self) -> Result<Reply> {
        read_reply(&mut self.stream, &mut self.received).context("cannot read the server's reply")
    }

    /// Reads a reply and keeps nothing of it, except the text of an error.
    pub(crate) fn skip_reply(&mut self) -> Result<Option<String>> {
        skip_reply(&mut self.stream, &mut self.received).context("cannot read the server's reply")
    }
}

pub(crate) fn write_request(buffer: &mut Vec<u8>, args: &[&str]) {
    // Writing to a Vec cannot fail.
    let _ = write!(buffer, "*{}\r\n", args.len());
    for arg in args {
        let _ = write!(buffer, "${}\r\n{arg}\r\n", arg.len());
    }
}

/// The text of a bulk string, as far as it is UTF-8.
pub(crate) fn text(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::BulkString(bytes) => str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// A reply that is one line, such as `OK`.
pub(crate) fn simple(text: &'static str) -> Reply {
    Reply::SimpleString(text.into())
}

fn read_reply(stream: &mut impl Read, received: &mut Received) -> Result<Reply> {
    loop {
        match decode(received.unread())? {
            Some((reply, length)) => {
                received.used += length;
                return Ok(reply);
            }
            None => received.fill(stream)?,
        }
    }
}

/// Keeps nothing, since what is measured here are replies of a million elements or of many megabytes. So arrays are skipped
/// element by element (decoding one whole would begin again with each chunk that arrives), and a string that has not
/// arrived yet by its length.
fn skip_reply(stream: &mut impl Read, received: &mut Received) -> Result<Option<String>> {
    let mut replies: u64 = 1;
    while replies > 0 {
        match skip_one(received.unread())? {
            Skip::Frame { length } => {
                received.used += length;
                replies -= 1;
            }
            Skip::Error { length, text } => {
                received.used += length;
                return Ok(Some(text));
            }
            Skip::Array { length, elements } => {
                received.used += length;
                replies = replies - 1 + elements;
            }
            Skip::LongString { length } => {
                received.skip(stream, length)?;
                replies -= 1;
            }
            Skip::Unfinished => received.fill(stream)?,
        }
    }
    Ok(None)
}

/// What stands at the beginning of some bytes.
enum Skip {
    Frame {
        length: usize,
    },
    Error {
        length: usize,
        text: String,
    },
    /// The first line of an array, before its elements.
    Array {
        length: usize,
        elements: u64,
    },
    /// The beginning of a string of this length, with its first line and its end.
    LongString {
        length: u64,
    },
    /// Too little to tell.
    Unfinished,
}

fn skip_one(bytes: &[u8]) -> Result<Skip> {
    if bytes.first() == Some(&b'*') {
        // -1 is the array that is not there.
        return Ok(announced(bytes)?
            .map_or(Skip::Unfinished, |(length, count)| Skip::Array { length, elements: count.max(0) as u64 }));
    }
    Ok(match decode_range(bytes)? {
        Some((RangeFrame::Error((start, end)), length)) => {
            Skip::Error { length, text: String::from_utf8_lossy(&bytes[start..end]).into_owned() }
        }
        Some((_, length)) => Skip::Frame { length },
        None if bytes.first() == Some(&b'$') => match announced(bytes)? {
            Some((length, count)) => Skip::LongString { length: length as u64 + count as u64 + 2 },
            None => Skip::Unfinished,
        },
        None => Skip::Unfinished,
    })
}

/// The length of the first line, and the number in it.
fn announced(bytes: &[u8]) -> Result<Option<(usize, i64)>> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    Ok(Some((end + 2, str::from_utf8(&bytes[1..end])?.parse()?)))
}

impl Received {
    fn unread(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    /// Adds what arrives next.
    fn fill(&mut self, stream: &mut impl Read) -> Result<()> {
        self.bytes.drain(..self.used);
        self.used = 0;
        let mut chunk = [0; CHUNK_BYTES];
        let count = receive(stream, &mut chunk)?;
        self.bytes.extend_from_slice(&chunk[..count]);
        Ok(())
    }

    /// Skips so many bytes, most of which have not arrived yet.
    fn skip(&mut self, stream: &mut impl Read, length: u64) -> Result<()> {
        let mut left = length - self.unread().len() as u64;
        self.bytes.clear();
        self.used = 0;
        let mut chunk = [0; CHUNK_BYTES];
        while left > 0 {
            let most = left.min(CHUNK_BYTES as u64) as usize;
            left -= receive(stream, &mut chunk[..most])? as u64;
        }
        Ok(())
    }
}

fn receive(stream: &mut impl Read, chunk: &mut [u8]) -> Result<usize> {
    loop {
        match stream.read(chunk) {
            Ok(0) => bail!("the connection was closed"),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return Ok(done?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_arrays_of_bulk_strings() {
        let mut buffer = Vec::new();
        write_request(&mut buffer, &["GET", "clé", ""]);
        assert_eq!(buffer, "*3\r\n$3\r\nGET\r\n$4\r\nclé\r\n$0\r\n\r\n".as_bytes());
    }

    /// Some bytes, one at a time.
    struct Dripping(&'static [u8]);

    impl Read for Dripping {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut buffer[..1])
        }
    }

    #[test]
    fn replies_are_read_one_by_one() {
        let bytes = b"+PONG\r\n-ERR no\r\n:12\r\n$5\r\na\r\nbc\r\n$-1\r\n*2\r\n*0\r\n:1\r\n";
        let replies = [
            simple("PONG"),
            Reply::Error("ERR no".into()),
            Reply::Integer(12),
            Reply::BulkString("a\r\nbc".into()),
            Reply::Null,
            Reply::Array(vec![Reply::Array(Vec::new()), Reply::Integer(1)]),
        ];
        let check = |mut stream: &mut dyn Read| {
            let mut received = Received::default();
            for reply in &replies {
                assert_eq!(read_reply(&mut stream, &mut received).unwrap(), *reply);
            }
            let error = read_reply(&mut stream, &mut received).unwrap_err().to_string();
            assert_eq!(error, "the connection was closed");
        };
        check(&mut &bytes[..]);
        check(&mut Dripping(bytes));
    }

    #[test]
    fn a_reply_is_skipped_whole() {
        let bytes = b"*3\r\n$5\r\na\r\nbc\r\n*2\r\n:1\r\n$-1\r\n*0\r\n*-1\r\n-ERR no\r\n*2\r\n$9\r\nlong\r\ngap\r\n:1\r\n+OK\r\n";
        let check = |mut stream: &mut dyn Read| {
            let mut received = Received::default();
            let mut skip = || skip_reply(&mut stream, &mut received);
            let skipped: Vec<_> = (0..5).map(|_| skip().unwrap()).collect();
            assert_eq!(skipped, [None, None, Some("ERR no".into()), None, None]);
        };
        check(&mut &bytes[..]);
        check(&mut Dripping(bytes));
        assert!(skip_reply(&mut &b"*2\r\n:1\r\n"[..], &mut Received::default()).is_err());
    }
}
