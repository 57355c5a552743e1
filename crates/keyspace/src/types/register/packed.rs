//! A register without a buffer in its entry. Knows how the bytes lie; refuses to know what an operation makes of them.
//!
//! ```text
//! head: u8   bits 0..4 bytes of the round, bit 4 "an epoch follows", bit 5 "what was added follows"
//! round      in as few bytes as it needs, the lowest first
//! epoch      a byte that says how many, and the bytes, likewise
//! added      likewise, in zigzag
//! value      the rest
//! ```

use super::{Current, PACKED, Version};
use crate::types::Entry;
use smallvec::SmallVec;

/// A longer value lies behind a pointer: a new deadline or name must not copy it.
pub(super) const VALUE_BYTES_MAX: usize = 4096;

/// The most bytes in front of a value.
const HEAD_BYTES_MAX: usize = 1 + 8 + 9 + 9;

const ROUND_BYTES: u8 = 0x0f;
const HAS_EPOCH: u8 = 0x10;
const HAS_ADDED: u8 = 0x20;

/// An entry of a register that has this version alone.
pub(super) fn create(name: &[u8], current: Current<'_>, deadline: Option<u64>) -> Entry {
    Entry::new(name, PACKED, &body(current), deadline)
}

/// Gives an entry this version alone.
pub(super) fn set(entry: &mut Entry, current: Current<'_>) {
    entry.set_body(PACKED, &body(current));
}

fn body(current: Current<'_>) -> SmallVec<[u8; 128]> {
    let Current { version, added, value } = current;
    let mut body = SmallVec::with_capacity(HEAD_BYTES_MAX + value.len());
    let epoch = if version.epoch == 0 { 0 } else { HAS_EPOCH };
    let adds = if added.is_some() { HAS_ADDED } else { 0 };
    let round_len = bytes_of(version.round);
    body.push(round_len as u8 | epoch | adds);
    body.extend_from_slice(&version.round.to_le_bytes()[..round_len]);
    if version.epoch != 0 {
        put_counted(version.epoch, &mut body);
    }
    if let Some(added) = added {
        put_counted((added << 1 ^ added >> 63) as u64, &mut body);
    }
    body.extend_from_slice(value);
    body
}

/// The version in a body.
#[inline]
pub(super) fn read(body: &[u8]) -> Current<'_> {
    let (head, rest) = body.split_first().expect("a packed register has a head");
    let (round, mut rest) = rest.split_at(usize::from(head & ROUND_BYTES));
    let (mut epoch, mut added) = (0, None);
    if head & HAS_EPOCH != 0 {
        (epoch, rest) = take_counted(rest);
    }
    if head & HAS_ADDED != 0 {
        let (zigzag, behind) = take_counted(rest);
        (added, rest) = (Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)), behind);
    }
    Current { version: Version { epoch, round: number(round) }, added, value: rest }
}

fn put_counted(number: u64, body: &mut SmallVec<[u8; 128]>) {
    let len = bytes_of(number);
    body.push(len as u8);
    body.extend_from_slice(&number.to_le_bytes()[..len]);
}

fn take_counted(bytes: &[u8]) -> (u64, &[u8]) {
    let (len, rest) = bytes.split_first().expect("a number has a length");
    let (bytes, rest) = rest.split_at(usize::from(*len));
    (number(bytes), rest)
}

/// How many bytes a number needs.
fn bytes_of(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()).div_ceil(8) as usize
}

#[inline]
fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}
