//! A cell without past versions in its entry. Knows the layout; refuses to know what a write does.
//!
//! ```text
//! head: u8   bits 0..4 bytes of the version, bits 4..8 bytes of the time
//! version    one less than the version, in as few bytes as it needs, the lowest first
//! time       unix microseconds, likewise: seven bytes until the year 4253
//! value      the rest
//! ```

use super::{PACKED, Version};
use crate::types::Entry;
use smallvec::SmallVec;

/// A longer value is behind a pointer: a new deadline or name must not copy it.
pub(super) const VALUE_BYTES_MAX: usize = 4096;

/// The most bytes before a value.
const HEAD_BYTES_MAX: usize = 1 + 8 + 8;

/// Creates an entry for a cell with only this version.
pub(super) fn create(name: &[u8], version: Version<'_>, deadline: Option<u64>) -> Entry {
    Entry::new(name, PACKED, &body(version), deadline)
}

/// Replaces all versions of an entry by this one.
pub(super) fn set(entry: &mut Entry, version: Version<'_>) {
    entry.set_body(PACKED, &body(version));
}

fn body(version: Version<'_>) -> SmallVec<[u8; 128]> {
    let (before, time) = (version.number - 1, version.time_us);
    let (before_len, time_len) = (bytes_of(before), bytes_of(time));
    let mut body = SmallVec::with_capacity(HEAD_BYTES_MAX + version.value.len());
    body.push((time_len << 4 | before_len) as u8);
    body.extend_from_slice(&before.to_le_bytes()[..before_len]);
    body.extend_from_slice(&time.to_le_bytes()[..time_len]);
    body.extend_from_slice(version.value);
    body
}

/// The version in a body.
#[inline]
pub(super) fn read(body: &[u8]) -> Version<'_> {
    let (head, rest) = body.split_first().expect("a packed cell has a head");
    let (before, rest) = rest.split_at(usize::from(head & 0x0f));
    let (time, value) = rest.split_at(usize::from(head >> 4));
    Version { number: number(before) + 1, time_us: number(time), value }
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
