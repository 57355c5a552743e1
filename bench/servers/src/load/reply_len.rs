//! Where a reply ends. Knows RESP2; refuses to know what a reply says.

use anyhow::{Context, Result, bail};

/// How many bytes the reply at the front has; `None` when it is not whole.
pub(crate) fn reply_len(received: &[u8]) -> Result<Option<usize>> {
    let (mut at, mut awaited) = (0, 1u64);
    while awaited > 0 {
        let Some(end) = received[at..].windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let line = &received[at..at + end];
        at += end + 2;
        awaited -= 1;
        let number = || -> Result<i64> { std::str::from_utf8(&line[1..])?.parse().context("a length in a reply") };
        match line.first() {
            Some(b':' | b'+') => {}
            Some(b'$') => at += usize::try_from(number()?).map_or(0, |len| len + 2),
            Some(b'*') => awaited += u64::try_from(number()?).unwrap_or(0),
            _ => bail!("the server answered {}", line.escape_ascii()),
        }
        if at > received.len() {
            return Ok(None);
        }
    }
    Ok(Some(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_ends_where_its_last_element_ends() {
        let reply = b"*3\r\n$3\r\na\r\n\r\n:12\r\n*2\r\n$-1\r\n+OK\r\n";
        for len in 0..reply.len() {
            assert_eq!(reply_len(&reply[..len]).unwrap(), None, "{len}");
        }
        assert_eq!(reply_len(reply).unwrap(), Some(reply.len()));
        assert_eq!(reply_len(&[reply, &b"+next\r\n"[..]].concat()).unwrap(), Some(reply.len()));
        assert!(reply_len(b"-ERR no\r\n").is_err());
    }
}
