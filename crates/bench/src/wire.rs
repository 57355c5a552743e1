//! A small blocking client of the Redis protocol. Knows nothing of what the commands mean.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    /// Requests not yet sent.
    pending: Vec<u8>,
    /// Room for the first line of a reply.
    line: Vec<u8>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Option<Vec<u8>>),
    Array(Vec<Reply>),
}

/// A server silent for longer than this has hung.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

impl Connection {
    pub(crate) fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Connection { stream: BufReader::new(stream), pending: Vec::new(), line: Vec::new() })
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
        self.stream.get_mut().write_all(&self.pending).context("cannot send to the server")?;
        self.pending.clear();
        Ok(())
    }

    /// Reads a reply and keeps nothing of it, except the text of an error.
    pub(crate) fn skip_reply(&mut self) -> Result<Option<String>> {
        skip_reply(&mut self.stream, &mut self.line).context("cannot read the server's reply")
    }

    pub(crate) fn read_reply(&mut self) -> Result<Reply> {
        read_reply(&mut self.stream, &mut self.line).context("cannot read the server's reply")
    }
}

impl Reply {
    /// The text of a string, as far as it is UTF-8.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Reply::Bulk(Some(bytes)) => str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

pub(crate) fn write_request(buffer: &mut Vec<u8>, args: &[&str]) {
    // Writing to a Vec cannot fail.
    let _ = write!(buffer, "*{}\r\n", args.len());
    for arg in args {
        let _ = write!(buffer, "${}\r\n{arg}\r\n", arg.len());
    }
}

fn read_reply(stream: &mut impl BufRead, line: &mut Vec<u8>) -> Result<Reply> {
    line.clear();
    stream.read_until(b'\n', line)?;
    let Some(head) = line.strip_suffix(b"\r\n") else { bail!("the connection was closed") };
    let (kind, rest) = str::from_utf8(head)?.split_at_checked(1).context("an empty line is not a reply")?;
    Ok(match kind {
        "+" => Reply::Simple(rest.to_string()),
        "-" => Reply::Error(rest.to_string()),
        ":" => Reply::Integer(rest.parse()?),
        "$" if rest == "-1" => Reply::Bulk(None),
        "$" => {
            let mut bytes = vec![0; rest.parse::<usize>()? + 2];
            stream.read_exact(&mut bytes)?;
            bytes.truncate(bytes.len() - 2);
            Reply::Bulk(Some(bytes))
        }
        "*" => {
            let count: usize = rest.parse()?;
            Reply::Array((0..count).map(|_| read_reply(stream, line)).collect::<Result<_>>()?)
        }
        _ => bail!("this client does not read replies such as {:?}", String::from_utf8_lossy(head)),
    })
}

fn skip_reply(stream: &mut impl BufRead, line: &mut Vec<u8>) -> Result<Option<String>> {
    let mut replies: u64 = 1;
    while replies > 0 {
        replies -= 1;
        line.clear();
        stream.read_until(b'\n', line)?;
        let Some(head) = line.strip_suffix(b"\r\n") else { bail!("the connection was closed") };
        let (kind, rest) = str::from_utf8(head)?.split_at_checked(1).context("an empty line is not a reply")?;
        match kind {
            "+" | ":" => {}
            "-" => return Ok(Some(rest.to_string())),
            "$" | "*" if rest == "-1" => {}
            "$" => {
                let bytes = rest.parse::<u64>()? + 2;
                let skipped = io::copy(&mut stream.by_ref().take(bytes), &mut io::sink())?;
                if skipped < bytes {
                    bail!("the connection was closed");
                }
            }
            "*" => replies += rest.parse::<u64>()?,
            _ => bail!("this client does not read replies such as {:?}", String::from_utf8_lossy(head)),
        }
    }
    Ok(None)
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

    #[test]
    fn replies_are_read_one_by_one() {
        let mut stream = "+PONG\r\n-ERR no\r\n:12\r\n$5\r\na\r\nbc\r\n$-1\r\n*2\r\n*0\r\n:1\r\n".as_bytes();
        let mut line = Vec::new();
        let mut next = || read_reply(&mut stream, &mut line).unwrap();
        assert_eq!(next(), Reply::Simple("PONG".into()));
        assert_eq!(next(), Reply::Error("ERR no".into()));
        assert_eq!(next(), Reply::Integer(12));
        assert_eq!(next(), Reply::Bulk(Some(b"a\r\nbc".to_vec())));
        assert_eq!(next(), Reply::Bulk(None));
        assert_eq!(next(), Reply::Array(vec![Reply::Array(Vec::new()), Reply::Integer(1)]));
        assert_eq!(read_reply(&mut stream, &mut line).unwrap_err().to_string(), "the connection was closed");
    }

    #[test]
    fn a_reply_is_skipped_whole() {
        let mut stream = "*3\r\n$5\r\na\r\nbc\r\n*2\r\n:1\r\n$-1\r\n*0\r\n-ERR no\r\n+OK\r\n".as_bytes();
        let mut line = Vec::new();
        let mut skip = || skip_reply(&mut stream, &mut line);
        assert_eq!(skip().unwrap(), None);
        assert_eq!(skip().unwrap(), Some("ERR no".into()));
        assert_eq!(skip().unwrap(), None);
        assert!(skip().is_err());
    }
}
