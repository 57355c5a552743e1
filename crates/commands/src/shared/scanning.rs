//! What all kinds of SCAN share: cursors, patterns and the size of a step. Knows nothing of what is scanned.

use algorithms::glob::Pattern;
use execution::error::CommandError;
use numbers::parse_i64;

/// Parses a cursor as Redis 8 does: a number in plain form must not be negative; anything else is parsed as C's
/// `strtoull` does, with leading spaces, a sign and leading zeros.
pub(crate) fn parse_cursor(text: &[u8]) -> Option<u64> {
    if let Some(number) = parse_i64(text) {
        return u64::try_from(number).ok();
    }
    let start = text.iter().position(|byte| !matches!(byte, b' ' | b'\t'..=b'\r'))?;
    let (negative, digits) = match &text[start..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut number: u64 = 0;
    for byte in digits {
        let digit = char::from(*byte).to_digit(10)?;
        number = number.checked_mul(10)?.checked_add(digit.into())?;
    }
    Some(if negative { number.wrapping_neg() } else { number })
}

/// Which names a pattern selects.
pub(crate) enum Selection {
    All,
    Matching(Pattern),
}

impl Selection {
    /// `*` alone selects everything; the matcher would leave out the empty name, as Redis's does.
    pub(crate) fn of(pattern: &[u8]) -> Selection {
        if pattern == b"*" { Selection::All } else { Selection::Matching(Pattern::new(pattern, false)) }
    }

    pub(crate) fn has(&self, name: &[u8]) -> bool {
        match self {
            Selection::All => true,
            Selection::Matching(pattern) => pattern.matches(name),
        }
    }
}

/// The COUNT of a step.
pub(crate) fn step_size(count: i64) -> Result<usize, CommandError> {
    usize::try_from(count).ok().filter(|count| *count > 0).ok_or(CommandError::Syntax)
}

/// The position at which a scan continues. A key never changes its shard, and its position there survives every growth
/// of the table, so a key that is in the database during the whole scan is returned exactly once.
///
/// ```text
/// cursor   bits 0..32 position, bits 32.. shard; 0 is the start, and the end
/// ```
///
/// That is far below 2^53, so a client may keep a cursor as a double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScanCursor {
    pub(crate) shard: usize,
    pub(crate) position: u32,
}

impl ScanCursor {
    pub(crate) fn from_number(number: u64) -> ScanCursor {
        ScanCursor { shard: (number >> 32) as usize, position: number as u32 }
    }

    pub(crate) fn to_number(self) -> i64 {
        (self.shard as i64) << 32 | i64::from(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_as_a_cursor() {
        for cursor in [(0, 1), (1, 0), (511, u32::MAX)].map(|(shard, position)| ScanCursor { shard, position }) {
            assert_eq!(ScanCursor::from_number(cursor.to_number() as u64), cursor);
            assert!(cursor.to_number() < 1 << 53);
        }
    }

    /// Rows collected from Redis 8.0.2.
    #[test]
    fn cursors_are_read_as_redis_reads_them() {
        for (text, cursor) in [
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            (" 0", Some(0)),
            ("+7", Some(7)),
            ("007", Some(7)),
            (" -1", Some(u64::MAX)),
            ("-0", Some(0)),
            ("-1", None),
            ("", None),
            (" ", None),
            ("+", None),
            ("0 ", None),
            ("1.5", None),
            ("18446744073709551616", None),
        ] {
            assert_eq!(parse_cursor(text.as_bytes()), cursor, "{text:?}");
        }
    }
}
