//! Elements in a run of bytes. Knows their two encodings; refuses to know where the run is stored.
//!
//! *Plain*, an element is only an item (see `storage::item`): one byte more than a short text. It is read forwards.
//! *Linked*, each item is followed by its length, so that a run can be read from both ends:
//!
//! ```text
//! item  u8                    its length, up to 127
//! item  u16 0x80              up to 65,535
//! item  u32 0x81              any
//! ```

use super::Side;
use crate::storage::Scalar;
use crate::storage::item::{item_len, read_item};
use smallvec::SmallVec;
use std::ops::Range;

const SHORT_MAX: usize = 127;
const LEN16: u8 = 0x80;
const LEN32: u8 = 0x81;

/// The number of bytes that the length of an item takes after it.
#[inline]
pub(super) fn link_len(item_len: usize) -> usize {
    match item_len {
        0..=SHORT_MAX => 1,
        len if len <= usize::from(u16::MAX) => 3,
        _ => 5,
    }
}

/// Writes the length of an item into the bytes after it, whose number [`link_len`] gives.
#[inline]
pub(super) fn write_link(to: &mut [u8], item_len: usize) {
    match to {
        [short] => *short = item_len as u8,
        [a, b, tag] => [*a, *b, *tag] = [item_len as u8, (item_len >> 8) as u8, LEN16],
        [len @ .., tag] => {
            len.copy_from_slice(&(item_len as u32).to_le_bytes());
            *tag = LEN32;
        }
        [] => unreachable!("a link has a byte"),
    }
}

/// The length of the item at the end of a linked run, without and with its link.
#[inline]
pub(super) fn last_linked(run: &[u8]) -> (usize, usize) {
    let (tag, before) = run.split_last().expect("an element is there");
    let len = match *tag {
        LEN16 => usize::from(u16::from_le_bytes(*before.last_chunk().expect("a link is whole"))),
        LEN32 => u32::from_le_bytes(*before.last_chunk().expect("a link is whole")) as usize,
        short => usize::from(short),
    };
    (len, len + link_len(len))
}

/// The length of the item at the start of a linked run, without and with its link.
#[inline]
pub(super) fn first_linked(run: &[u8]) -> (usize, usize) {
    let len = item_len(run);
    (len, len + link_len(len))
}

/// The offset of item `number` in a plain run.
pub(super) fn plain_offset(run: &[u8], number: usize) -> usize {
    (0..number).fold(0, |at, _| at + item_len(&run[at..]))
}

/// The items of a plain run, each with its range.
pub(super) fn plain_items(run: &[u8]) -> impl Iterator<Item = (Range<usize>, Scalar<'_>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == run.len() {
            return None;
        }
        let (element, len) = read_item(&run[at..]);
        at += len;
        Some((at - len..at, element))
    })
}

/// Passes elements of a plain run to `look`, starting at the given side, until it returns false. Returns false if it
/// did.
pub(super) fn visit_plain(
    run: &[u8],
    numbers: Range<usize>,
    from: Side,
    look: &mut impl FnMut(Scalar<'_>) -> bool,
) -> bool {
    let mut at = plain_offset(run, numbers.start);
    match from {
        Side::Left => {
            for _ in numbers {
                let (element, len) = read_item(&run[at..]);
                at += len;
                if !look(element) {
                    return false;
                }
            }
        }
        Side::Right => {
            let mut starts: SmallVec<[usize; 256]> = SmallVec::new();
            for _ in numbers {
                starts.push(at);
                at += item_len(&run[at..]);
            }
            for at in starts.into_iter().rev() {
                if !look(read_item(&run[at..]).0) {
                    return false;
                }
            }
        }
    }
    true
}
