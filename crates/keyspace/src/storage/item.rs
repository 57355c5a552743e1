//! A scalar among others in one run of bytes, as small values are packed. Knows the layout; refuses to know how the
//! scalars relate.
//!
//! An *item* is a type byte, then the bytes. Each scalar has one encoding: the shortest.
//!
//! ```text
//! 0..=127    that many bytes
//! 128..=239  nothing: it is the number 0 to 111
//! 240..=247  a number in 1 to 8 little-endian bytes
//! 248        a u8 length and bytes
//! 249        a u16 length and bytes
//! 250        a u32 length and bytes
//! ```
//! A number represents its decimal text: a counter takes one byte, a 13-digit timestamp 7.

use super::entry::Entry;
use super::scalar::Scalar;

const SHORT_MAX: usize = 127;
const SMALL: u8 = 128;
const SMALL_MAX: i64 = 111;
const NUMBER: u8 = 240;
const LEN8: u8 = 248;
const LEN16: u8 = 249;
const LEN32: u8 = 250;

/// Overwrites the item of `old_len` bytes at `start` of the body with `value`.
pub(crate) fn replace_item<O>(entry: &mut Entry<O>, start: usize, old_len: usize, value: Scalar<'_>) {
    let item = Item::of(value);
    item.write(entry.open_gap(start..start + old_len, item.len()));
}

/// A scalar in packed form: a head, and bytes that are copied unchanged.
pub(crate) struct Item<'a> {
    head: [u8; 9],
    head_len: usize,
    tail: &'a [u8],
}

impl<'a> Item<'a> {
    #[inline]
    pub(crate) fn of(value: Scalar<'a>) -> Item<'a> {
        let mut head = [0; 9];
        match value {
            Scalar::Number(number @ 0..=SMALL_MAX) => {
                head[0] = SMALL + number as u8;
                Item { head, head_len: 1, tail: &[] }
            }
            Scalar::Number(number) => {
                // As few bytes as keep the sign.
                let bits = 65 - if number < 0 { number.leading_ones() } else { number.leading_zeros() };
                let len = bits.div_ceil(8).min(8) as usize;
                head[0] = NUMBER + len as u8 - 1;
                head[1..].copy_from_slice(&number.to_le_bytes());
                Item { head, head_len: 1 + len, tail: &[] }
            }
            Scalar::Bytes(bytes) => {
                let head_len = match bytes.len() {
                    len @ 0..=SHORT_MAX => {
                        head[0] = len as u8;
                        1
                    }
                    len if len <= usize::from(u8::MAX) => {
                        head[0] = LEN8;
                        head[1] = len as u8;
                        2
                    }
                    len if len <= usize::from(u16::MAX) => {
                        head[0] = LEN16;
                        head[1..3].copy_from_slice(&(len as u16).to_le_bytes());
                        3
                    }
                    len => {
                        head[0] = LEN32;
                        head[1..5].copy_from_slice(&(len as u32).to_le_bytes());
                        5
                    }
                };
                Item { head, head_len, tail: bytes }
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.head_len + self.tail.len()
    }

    #[inline]
    pub(crate) fn write(&self, to: &mut [u8]) {
        to[..self.head_len].copy_from_slice(&self.head[..self.head_len]);
        to[self.head_len..].copy_from_slice(self.tail);
    }
}

#[inline]
pub(crate) fn write_item(out: &mut Vec<u8>, value: Scalar<'_>) {
    let item = Item::of(value);
    out.extend_from_slice(&item.head[..item.head_len]);
    out.extend_from_slice(item.tail);
}

/// The item at the start of `items` and how many bytes it takes.
#[inline]
pub(crate) fn read_item(items: &[u8]) -> (Scalar<'_>, usize) {
    match items[0] {
        short @ 0..SMALL => {
            let end = 1 + usize::from(short);
            (Scalar::Bytes(&items[1..end]), end)
        }
        small @ SMALL..NUMBER => (Scalar::Number(i64::from(small - SMALL)), 1),
        number @ NUMBER..LEN8 => {
            let len = usize::from(number - NUMBER) + 1;
            (Scalar::Number(read_number(&items[1..], len)), 1 + len)
        }
        _ => {
            let (head, len) = long_frame(items);
            (Scalar::Bytes(&items[head..head + len]), head + len)
        }
    }
}

/// The number in the first `len` bytes, 1 to 8. Where more bytes follow, it is one load: a copy of a length that is
/// unknown at compile time is a call.
#[inline]
fn read_number(bytes: &[u8], len: usize) -> i64 {
    let eight = match bytes.first_chunk::<8>() {
        Some(eight) => *eight,
        None => {
            let mut eight = [0; 8];
            eight[..len].copy_from_slice(&bytes[..len]);
            eight
        }
    };
    // Shifting left and right extends the sign.
    let unused = 64 - 8 * len as u32;
    i64::from_le_bytes(eight) << unused >> unused
}

/// How many bytes the item at the start of `items` takes. Every look-up of a field walks over items with it.
#[inline]
pub(crate) fn item_len(items: &[u8]) -> usize {
    match ITEM_LEN[usize::from(items[0])] {
        0 => {
            let (head, len) = long_frame(items);
            head + len
        }
        len => usize::from(len),
    }
}

/// The length of the item at the start of untrusted bytes; `None` when there is no valid item.
pub(crate) fn checked_item_len(items: &[u8]) -> Option<usize> {
    let head_len = match *items.first()? {
        0..LEN8 => 1,
        LEN8 => 2,
        LEN16 => 3,
        LEN32 => 5,
        _ => return None,
    };
    let len = if items.len() < head_len { return None } else { item_len(items) };
    (len <= items.len()).then_some(len)
}

/// The length of an item by its first byte; 0 where the length follows.
static ITEM_LEN: [u8; 256] = {
    let mut lens = [0; 256];
    let mut tag = 0;
    while tag < LEN8 {
        lens[tag as usize] = match tag {
            0..SMALL => 1 + tag,
            SMALL..NUMBER => 1,
            _ => 2 + tag - NUMBER,
        };
        tag += 1;
    }
    lens
};

/// The lengths of the head and the content of an item that begins with its length.
#[inline]
fn long_frame(items: &[u8]) -> (usize, usize) {
    match items[0] {
        LEN8 => (2, usize::from(items[1])),
        LEN16 => (3, usize::from(u16::from_le_bytes([items[1], items[2]]))),
        _ => (5, u32::from_le_bytes([items[1], items[2], items[3], items[4]]) as usize),
    }
}

pub(crate) fn item_is(items: &[u8], name: &[u8]) -> bool {
    match read_item(items).0 {
        Scalar::Bytes(bytes) => bytes == name,
        number => number.with_bytes(|bytes| bytes == name),
    }
}
