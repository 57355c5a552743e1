//! A small blocking client of the Redis protocol. Knows nothing of what the commands mean.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::{Buf, BytesMut};
use redis_protocol::resp2::decode::{decode_bytes_mut, decode_range};
use redis_protocol::resp2::types::RangeFrame;

/// What a server replies.
pub(crate) use redis_protocol::resp2::types::BytesFrame as Reply;

pub(crate) struct Connection {
    stream: TcpStream,
    /// Requests not yet sent.
    pending: Vec<u8>,
    /// Replies not yet read.
    received: BytesMut,
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
        Ok(Connection { stream, pending: Vec::new(), received: BytesMut::new() })
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

fn read_reply(stream: &mut impl Read, received: &mut BytesMut) -> Result<Reply> {
    loop {
        match decode_bytes_mut(received)? {
            Some((reply, _, _)) => return Ok(reply),
            None => receive(stream, received)?,
        }
    }
}

/// Skips the elements of an array one by one: decoding it whole would begin again with each chunk that arrives, and what is
/// measured here are replies of a million elements.
fn skip_reply(stream: &mut impl Read, received: &mut BytesMut) -> Result<Option<String>> {
    let mut replies: u64 = 1;
    while replies > 0 {
        let mut skipped = 0;
        while let Some(skip) = skip_one(&received[skipped..])? {
            let (length, elements) = match skip {
                Skip::Error { length, text } => {
                    received.advance(skipped + length);
                    return Ok(Some(text));
                }
                Skip::Array { length, elements } => (length, elements),
                Skip::Other { length } => (length, 0),
            };
            skipped += length;
            replies = replies - 1 + elements;
            if replies == 0 {
                break;
            }
        }
        received.advance(skipped);
        if replies > 0 {
            receive(stream, received)?;
        }
    }
    Ok(None)
}

/// What stands at the beginning of some bytes.
enum Skip {
    Error {
        length: usize,
        text: String,
    },
    /// The first line of an array, before its elements.
    Array {
        length: usize,
        elements: u64,
    },
    Other {
        length: usize,
    },
}

/// `None` while it is not all there.
fn skip_one(received: &[u8]) -> Result<Option<Skip>> {
    if received.first() == Some(&b'*') {
        let Some(end) = received.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
        let elements: i64 = str::from_utf8(&received[1..end])?.parse()?;
        // -1 is the array that is not there.
        return Ok(Some(Skip::Array { length: end + 2, elements: elements.max(0) as u64 }));
    }
    Ok(decode_range(received)?.map(|(frame, length)| match frame {
        RangeFrame::Error((start, end)) => {
            Skip::Error { length, text: String::from_utf8_lossy(&received[start..end]).into_owned() }
        }
        _ => Skip::Other { length },
    }))
}

fn receive(stream: &mut impl Read, received: &mut BytesMut) -> Result<()> {
    let mut chunk = [0; CHUNK_BYTES];
    match stream.read(&mut chunk) {
        Ok(0) => bail!("the connection was closed"),
        Ok(count) => received.extend_from_slice(&chunk[..count]),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
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
            let mut received = BytesMut::new();
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
        let bytes = b"*3\r\n$5\r\na\r\nbc\r\n*2\r\n:1\r\n$-1\r\n*0\r\n*-1\r\n-ERR no\r\n+OK\r\n";
        let check = |mut stream: &mut dyn Read| {
            let mut received = BytesMut::new();
            let mut skip = || skip_reply(&mut stream, &mut received);
            let skipped: Vec<_> = (0..4).map(|_| skip().unwrap()).collect();
            assert_eq!(skipped, [None, None, Some("ERR no".into()), None]);
        };
        check(&mut &bytes[..]);
        check(&mut Dripping(bytes));
        assert!(skip_reply(&mut &b"*2\r\n:1\r\n"[..], &mut BytesMut::new()).is_err());
    }
}
