//! Ids in arguments and replies. Knows how clients may abbreviate them; refuses to know commands.

use execution::error::CommandError;
use keyspace::types::stream::StreamId;
use numbers::parse_i64;
use resp::Reply;

const INVALID: CommandError = CommandError::fixed("ERR Invalid stream ID specified as stream command argument");
const ID_CHARS_MAX: usize = 127;

/// An id as XADD takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewId {
    /// `*`
    Auto,
    /// `ms-*`
    Ms(u64),
    Exact(StreamId),
}

/// An argument up to the first zero byte: Redis parses some of them as C does.
pub(super) fn text_of(arg: &[u8]) -> &[u8] {
    arg.split(|byte| *byte == 0).next().unwrap_or(arg)
}

/// Parses an id; a missing second part is `missing_seq`. Neither `-` nor `+`.
#[inline]
pub(super) fn id(arg: &[u8], missing_seq: u64) -> Result<StreamId, CommandError> {
    match new_id(arg, missing_seq)? {
        NewId::Exact(id) => Ok(id),
        NewId::Auto | NewId::Ms(_) => Err(INVALID),
    }
}

/// Parses an id, or `ms-*`. Neither `-` nor `+`.
#[inline]
pub(super) fn new_id(arg: &[u8], missing_seq: u64) -> Result<NewId, CommandError> {
    if arg.len() > ID_CHARS_MAX {
        return Err(INVALID);
    }
    let text = text_of(arg);
    let (ms, seq) = match memchr::memchr(b'-', text) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let ms = unsigned(ms).ok_or(INVALID)?;
    let seq = match seq {
        None => missing_seq,
        Some(b"*") => return Ok(NewId::Ms(ms)),
        Some(seq) => unsigned(seq).ok_or(INVALID)?,
    };
    Ok(NewId::Exact(StreamId { ms, seq }))
}

/// Parses an id, or `-` and `+` for the lowest and the highest.
pub(super) fn id_or_end(arg: &[u8], missing_seq: u64) -> Result<StreamId, CommandError> {
    match text_of(arg) {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => id(arg, missing_seq),
    }
}

/// Parses the first id of an interval, which `(` excludes.
pub(super) fn start(arg: &[u8]) -> Result<StreamId, CommandError> {
    const NO_ID: CommandError = CommandError::fixed("ERR invalid start ID for the interval");
    match arg {
        [b'(', arg @ ..] if !arg.is_empty() => id(arg, 0)?.next().ok_or(NO_ID),
        _ => id_or_end(arg, 0),
    }
}

/// Parses the last id of an interval, which `(` excludes.
pub(super) fn end(arg: &[u8]) -> Result<StreamId, CommandError> {
    const NO_ID: CommandError = CommandError::fixed("ERR invalid end ID for the interval");
    match arg {
        [b'(', arg @ ..] if !arg.is_empty() => id(arg, u64::MAX)?.previous().ok_or(NO_ID),
        _ => id_or_end(arg, u64::MAX),
    }
}

/// Parses a part of an id. A number that is not in plain decimal form is parsed as C's `strtoull` does.
#[inline]
fn unsigned(text: &[u8]) -> Option<u64> {
    match parse_i64(text) {
        Some(number) => u64::try_from(number).ok(),
        None => unsigned_loosely(text),
    }
}

fn unsigned_loosely(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    // Vertical tabs are space to C.
    let text = match text.iter().position(|byte| *byte != 0x0b && !byte.is_ascii_whitespace()) {
        Some(at) => &text[at..],
        None => return None,
    };
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut number: u64 = 0;
    for digit in digits {
        let value = digit.wrapping_sub(b'0');
        if value > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(value.into())?;
    }
    Some(if is_negative { number.wrapping_neg() } else { number })
}

/// Writes an id.
#[inline]
pub(super) fn reply_id(reply: &mut Reply<'_>, id: StreamId) {
    let (mut ms, mut seq) = (itoa::Buffer::new(), itoa::Buffer::new());
    let (ms, seq) = (ms.format(id.ms).as_bytes(), seq.format(id.seq).as_bytes());
    let mut text = [0; 41];
    text[..ms.len()].copy_from_slice(ms);
    text[ms.len()] = b'-';
    let len = ms.len() + 1 + seq.len();
    text[ms.len() + 1..len].copy_from_slice(seq);
    reply.bulk(&text[..len]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        let id = |text: &str| id(text.as_bytes(), 7).ok().map(|id| (id.ms, id.seq));
        assert_eq!((id("5-3"), id("5"), id("0-0")), (Some((5, 3)), Some((5, 7)), Some((0, 0))));
        let max = "18446744073709551615";
        assert_eq!(id(&format!("{max}-{max}")), Some((u64::MAX, u64::MAX)));
        // Forms that strtoull accepts.
        assert_eq!(
            (id("007-01"), id(" 5-3"), id("+5-+3"), id("5--0")),
            (Some((7, 1)), Some((5, 3)), Some((5, 3)), Some((5, 0)))
        );
        for text in
            ["", "-", "+", "-5", "5-", "5-x", "x-5", "5-3-1", "5--1", "1.5", "18446744073709551616", "5-*", "*", "5 "]
        {
            assert_eq!(id(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_ends_of_intervals_may_be_excluded() {
        let id = |ms, seq| Ok(StreamId::new(ms, seq));
        assert_eq!((start(b"5"), start(b"(5"), start(b"-")), (id(5, 0), id(5, 1), id(0, 0)));
        assert_eq!((end(b"5"), end(b"(5-0"), end(b"+")), (id(5, u64::MAX), id(4, u64::MAX), Ok(StreamId::MAX)));
        assert!(start(b"(18446744073709551615-18446744073709551615").is_err());
        assert!(end(b"(0-0").is_err() && start(b"(+").is_err() && start(b"(").is_err());
    }
}
