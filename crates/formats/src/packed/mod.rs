//! Lists packed into one run of bytes, and compression. This file has what listpacks and ziplists share: their elements
//! and the walk over them. Refuses to know how either encodes an element.

pub(crate) mod listpack;
pub(crate) mod lzf;
pub(crate) mod ziplist;
pub(crate) mod zipmap;

use numbers::{I64_CHARS_MAX, format_i64};
use std::borrow::Cow;

/// An element of a packed list. Numbers are packed as numbers; as text they have one spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element<'a> {
    Bytes(&'a [u8]),
    Integer(i64),
}

impl<'a> Element<'a> {
    pub(crate) fn into_text(self) -> Cow<'a, [u8]> {
        match self {
            Self::Bytes(bytes) => Cow::Borrowed(bytes),
            Self::Integer(_) => Cow::Owned(self.to_vec()),
        }
    }

    pub(crate) fn with_text<T>(self, look: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Bytes(bytes) => look(bytes),
            Self::Integer(number) => look(format_i64(number, &mut [0; I64_CHARS_MAX])),
        }
    }

    pub(crate) fn to_vec(self) -> Vec<u8> {
        self.with_text(<[u8]>::to_vec)
    }
}

/// The bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The byte that ends a packed list.
pub(crate) const END: u8 = 0xff;
/// An element count that means "unknown".
pub(crate) const COUNT_UNKNOWN: u16 = u16::MAX;

/// Walks the part after the header with `read`, which takes one element off the front. Checks that the elements end
/// where the list does, and that there are as many as the header says. Ends after the first error.
pub(crate) fn walk<'a>(
    body: &'a [u8],
    count: u16,
    mut read: impl FnMut(&mut &'a [u8]) -> Option<Element<'a>>,
) -> impl Iterator<Item = Result<Element<'a>, Malformed>> {
    let mut rest = body;
    let mut due = (count != COUNT_UNKNOWN).then_some(count);
    let mut done = false;
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        if rest == [END] && due.unwrap_or(0) == 0 {
            done = true;
            return None;
        }
        let element = match rest {
            [] | [END, ..] => None,
            _ if due == Some(0) => None,
            _ => read(&mut rest),
        };
        due = due.map(|due| due.saturating_sub(1));
        done = element.is_none();
        Some(element.ok_or(Malformed))
    })
}

/// A signed number of one to eight bytes, least first.
pub(crate) fn little_endian(bytes: &[u8]) -> i64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let unused = 64 - 8 * bytes.len() as u32;
    (i64::from_le_bytes(word) << unused) >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One byte, one element.
    fn walked(body: &[u8], count: u16) -> Vec<Result<i64, Malformed>> {
        let numbers = walk(body, count, |rest| Some(Element::Integer((*rest.split_off_first()?).into())));
        let plain = |element| match element {
            Element::Integer(number) => number,
            Element::Bytes(_) => unreachable!(),
        };
        numbers.map(|element| element.map(plain)).collect()
    }

    #[test]
    fn the_walk_checks_count_and_end() {
        assert_eq!(walked(b"\x01\x02\xff", 2), [Ok(1), Ok(2)]);
        assert_eq!(walked(b"\x01\x02\xff", COUNT_UNKNOWN), [Ok(1), Ok(2)]);
        assert_eq!(walked(b"\xff", 0), []);
        assert_eq!(walked(b"\x01\x02\xff", 1), [Ok(1), Err(Malformed)]);
        assert_eq!(walked(b"\x01\x02\xff", 3), [Ok(1), Ok(2), Err(Malformed)]);
        assert_eq!(walked(b"\x01\xff\xff", 1), [Ok(1), Err(Malformed)]);
        assert_eq!(walked(b"\x01", 1), [Ok(1), Err(Malformed)]);
        assert_eq!(walked(b"", 0), [Err(Malformed)]);
    }

    #[test]
    fn short_numbers_keep_their_sign() {
        assert_eq!(little_endian(b"\x80"), -128);
        assert_eq!(little_endian(b"\xff\xff\x7f"), 0x7f_ffff);
        assert_eq!(little_endian(b"\0\0\x80"), -0x80_0000);
        assert_eq!(little_endian(&[0xff; 8]), -1);
    }
}
