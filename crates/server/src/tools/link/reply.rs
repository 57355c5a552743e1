//! Replies in RESP2, read from a connection.

use anyhow::{Result, bail, ensure};
use std::io::{self, BufRead, Read};

/// A longer reply than this is none that a tool asks for.
const REPLY_BYTES_MAX: u64 = 4 << 30;
/// The longest line.
const LINE_BYTES_MAX: u64 = 64 << 10;
const DEPTH_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Reply>),
}

impl Reply {
    pub(crate) fn read(from: &mut impl BufRead) -> Result<Reply> {
        Reply::read_nested(from, 0)
    }

    fn read_nested(from: &mut impl BufRead, depth: usize) -> Result<Reply> {
        let mut line = Vec::new();
        from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        let Some(line) = line.strip_suffix(b"\r\n") else {
            match line.len() as u64 {
                LINE_BYTES_MAX.. => bail!("a line of a reply is too long"),
                _ => return Err(closed().into()),
            }
        };
        let line = String::from_utf8_lossy(line).into_owned();
        let Some(kind) = line.chars().next() else { bail!("an empty line is no reply") };
        let rest = &line[kind.len_utf8()..];
        let number = || rest.parse::<i64>().map_err(|_| anyhow::anyhow!("{line:?} is no reply"));
        Ok(match kind {
            '+' => Reply::Simple(rest.to_owned()),
            '-' => Reply::Error(rest.to_owned()),
            ':' => Reply::Integer(number()?),
            '$' | '*' if number()? < 0 => Reply::Nil,
            '$' => {
                let length = number()? as u64;
                ensure!(length <= REPLY_BYTES_MAX, "a reply is too long");
                // Memory is taken as bytes come.
                let mut bytes = Vec::new();
                from.by_ref().take(length + 2).read_to_end(&mut bytes)?;
                if bytes.len() as u64 != length + 2 {
                    return Err(closed().into());
                }
                bytes.truncate(length as usize);
                Reply::Bulk(bytes)
            }
            '*' => {
                ensure!(depth < DEPTH_MAX, "a reply is nested too deeply");
                let mut items = Vec::new();
                for _ in 0..number()? {
                    items.push(Reply::read_nested(from, depth + 1)?);
                }
                Reply::Array(items)
            }
            _ => bail!("{line:?} is no reply"),
        })
    }

    /// The text of a simple string, a bulk string or an integer.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Reply::Simple(text) => Some(text.clone()),
            Reply::Bulk(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Reply::Integer(number) => Some(number.to_string()),
            Reply::Error(_) | Reply::Nil | Reply::Array(_) => None,
        }
    }

    pub(crate) fn items(&self) -> &[Reply] {
        match self {
            Reply::Array(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn error(&self) -> Option<&str> {
        match self {
            Reply::Error(text) => Some(text),
            _ => None,
        }
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read() {
        let read = |bytes: &str| Reply::read(&mut bytes.as_bytes());
        assert_eq!(read("+OK\r\n").unwrap(), Reply::Simple("OK".into()));
        assert_eq!(read("-ERR no\r\n").unwrap().error(), Some("ERR no"));
        let array = read("*4\r\n:-7\r\n$2\r\n\r\n\r\n$-1\r\n*-1\r\n").unwrap();
        assert_eq!(array.items(), [Reply::Integer(-7), Reply::Bulk(b"\r\n".to_vec()), Reply::Nil, Reply::Nil]);
        for cut in ["", "+OK", "$5\r\nab", "*2\r\n:1\r\n"] {
            assert!(super::super::is_lost(&read(cut).unwrap_err()), "{cut:?}");
        }
        for nonsense in ["!\r\n", "\r\n", ":x\r\n", &"*1\r\n".repeat(20)] {
            assert!(!super::super::is_lost(&read(nonsense).unwrap_err()), "{nonsense:?}");
        }
    }
}
