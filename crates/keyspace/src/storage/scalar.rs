//! A string as it is stored: bytes, or an integer in binary. Knows how to turn one into the other and back; refuses to
//! know where it is stored.

use super::entry::{Entry, Kind};
use std::borrow::Cow;

/// A string as its bytes, inline in an entry.
pub const TEXT: Kind = Kind::inline(0);
/// A string that is a whole number, as eight little-endian bytes.
pub const NUMBER: Kind = Kind::inline(1);

/// The string in an entry of one of these kinds.
#[inline]
pub fn inline_scalar<O>(entry: &Entry<O>) -> Scalar<'_> {
    match entry.kind() {
        NUMBER => Scalar::Number(i64::from_le_bytes(entry.body().try_into().expect("a number has eight bytes"))),
        _ => Scalar::Bytes(entry.body()),
    }
}

/// A string value or the value of a hash field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar<'a> {
    Bytes(&'a [u8]),
    /// A number whose decimal form is the value.
    Number(i64),
}

impl<'a> Scalar<'a> {
    /// The most compact form of `bytes`.
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Scalar<'a> {
        match canonical_i64(bytes) {
            Some(number) => Scalar::Number(number),
            None => Scalar::Bytes(bytes),
        }
    }

    /// The value as bytes.
    pub fn bytes(self) -> Cow<'a, [u8]> {
        match self {
            Scalar::Bytes(bytes) => Cow::Borrowed(bytes),
            Scalar::Number(number) => Cow::Owned(itoa::Buffer::new().format(number).as_bytes().to_vec()),
        }
    }

    /// How many bytes the value has.
    pub fn len(self) -> usize {
        match self {
            Scalar::Bytes(bytes) => bytes.len(),
            Scalar::Number(number) => itoa::Buffer::new().format(number).len(),
        }
    }

    /// True for the empty string.
    pub fn is_empty(self) -> bool {
        matches!(self, Scalar::Bytes([]))
    }

    /// Passes the bytes to `look` without allocating.
    #[inline]
    pub fn with_bytes<T>(self, look: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Scalar::Bytes(bytes) => look(bytes),
            Scalar::Number(number) => look(itoa::Buffer::new().format(number).as_bytes()),
        }
    }
}

/// The number whose canonical decimal form is `bytes`: no sign but a minus, no leading zeros.
#[inline]
pub fn canonical_i64(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [] => None,
        [b'0'] => (!negative).then_some(0),
        [b'0', ..] => None,
        _ if digits.len() > 19 => None,
        _ => {
            let mut magnitude: u64 = 0;
            for digit in digits {
                let value = digit.wrapping_sub(b'0');
                if value > 9 {
                    return None;
                }
                // 19 digits cannot overflow 64 bits.
                magnitude = magnitude * 10 + u64::from(value);
            }
            match negative {
                true if magnitude <= 1 << 63 => Some((magnitude as i64).wrapping_neg()),
                false => i64::try_from(magnitude).ok(),
                true => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_form_is_a_number() {
        for number in [0, 1, -1, 10, i64::MAX, i64::MIN, 1_700_000_000_000] {
            assert_eq!(Scalar::of(number.to_string().as_bytes()), Scalar::Number(number));
        }
        for text in [
            "",
            "-",
            "-0",
            "00",
            "01",
            "+1",
            " 1",
            "1 ",
            "1a",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
        ] {
            assert_eq!(Scalar::of(text.as_bytes()), Scalar::Bytes(text.as_bytes()));
        }
    }
}
