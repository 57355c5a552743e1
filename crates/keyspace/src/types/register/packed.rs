//! A register without a buffer in its entry. Knows the layout; refuses to know what an operation does.
//!
//! ```text
//! head: u8   bits 0..4 bytes of the round, bit 4 "an epoch follows", bit 5 "what was added follows",
//!            bit 6 "ordered: one by one", bit 7 "ordered: until sealed"
//! round      in as few bytes as it needs, the lowest first
//! epoch      a byte that says how many, and the bytes, likewise
//! added      likewise, in zigzag
//! value      the rest
//! ```

use super::{Current, Order, PACKED, Version};
use crate::types::Entry;
use smallvec::SmallVec;

/// A longer value is behind a pointer: a new deadline or name must not copy it.
pub(super) const VALUE_BYTES_MAX: usize = 4096;

/// The most bytes before a value.
const HEAD_BYTES_MAX: usize = 1 + 8 + 9 + 9;

const ROUND_BYTES: u8 = 0x0f;
const HAS_EPOCH: u8 = 0x10;
const HAS_ADDED: u8 = 0x20;
const IS_ONE_BY_ONE: u8 = 0x40;
const IS_UNTIL_SEALED: u8 = 0x80;

#[inline]
fn order_bits(order: Option<Order>) -> u8 {
    match order {
        None => 0,
        Some(Order::OneByOne) => IS_ONE_BY_ONE,
        Some(Order::UntilSealed) => IS_UNTIL_SEALED,
    }
}

/// How the register in a body takes ordered versions.
#[inline]
pub(super) fn order(body: &[u8]) -> Option<Order> {
    match body[0] & (IS_ONE_BY_ONE | IS_UNTIL_SEALED) {
        0 => None,
        IS_UNTIL_SEALED => Some(Order::UntilSealed),
        _ => Some(Order::OneByOne),
    }
}

/// Sets how the register in an entry takes ordered versions.
pub(super) fn set_order(entry: &mut Entry, order: Order) {
    let mut body = SmallVec::<[u8; 128]>::from_slice(entry.body());
    body[0] |= order_bits(Some(order));
    entry.body_to_fill(PACKED, body.len()).copy_from_slice(&body);
}

/// Creates an entry for a register with only this version.
pub(super) fn create(name: &[u8], order: Option<Order>, current: Current<'_>, deadline: Option<u64>) -> Entry {
    let mut body = SmallVec::<[u8; 128]>::from_slice(head(order, current).bytes());
    body.extend_from_slice(current.value);
    Entry::new(name, PACKED, &body, deadline)
}

/// Replaces the version of an entry.
#[inline]
pub(super) fn set(entry: &mut Entry, order: Option<Order>, current: Current<'_>) {
    let Current { version, added, value } = current;
    if version.epoch == 0 && added.is_none() {
        return set_round(entry, order, version.round, value);
    }
    let head = head(order, current);
    let head = head.bytes();
    let (before, value) = entry.body_to_fill(PACKED, head.len() + current.value.len()).split_at_mut(head.len());
    before.copy_from_slice(head);
    value.copy_from_slice(current.value);
}

/// As `set`, for the common case: a round of epoch 0 that put the value.
#[inline]
fn set_round(entry: &mut Entry, order: Option<Order>, round: u64, value: &[u8]) {
    let len = bytes_of(round);
    let body = entry.body_to_fill(PACKED, 1 + len + value.len());
    body[0] = len as u8 | order_bits(order);
    match body[1..].first_chunk_mut() {
        // Write all eight bytes at once: the value overwrites the excess.
        Some(room) => *room = round.to_le_bytes(),
        None => body[1..1 + len].copy_from_slice(&round.to_le_bytes()[..len]),
    }
    body[1 + len..].copy_from_slice(value);
}

/// The bytes before a value.
#[inline]
fn head(order: Option<Order>, current: Current<'_>) -> Head {
    let Current { version, added, value: _ } = current;
    let mut head = Head { bytes: [0; HEAD_BYTES_MAX + 8], len: 0 };
    let epoch = if version.epoch == 0 { 0 } else { HAS_EPOCH };
    let adds = if added.is_some() { HAS_ADDED } else { 0 };
    head.push(bytes_of(version.round) as u8 | epoch | adds | order_bits(order));
    head.push_number(version.round);
    if version.epoch != 0 {
        head.push(bytes_of(version.epoch) as u8);
        head.push_number(version.epoch);
    }
    if let Some(added) = added {
        let zigzag = (added << 1 ^ added >> 63) as u64;
        head.push(bytes_of(zigzag) as u8);
        head.push_number(zigzag);
    }
    head
}

/// The bytes before a value, with room to write eight bytes after any of them.
struct Head {
    bytes: [u8; HEAD_BYTES_MAX + 8],
    len: usize,
}

impl Head {
    #[inline]
    fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// Appends a number in as few bytes as it needs.
    #[inline]
    fn push_number(&mut self, number: u64) {
        self.bytes[self.len..self.len + 8].copy_from_slice(&number.to_le_bytes());
        self.len += bytes_of(number);
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The version in a body.
#[inline]
pub(super) fn read(body: &[u8]) -> Current<'_> {
    let (head, rest) = body.split_first().expect("a packed register has a head");
    let (round, mut rest) = take_number(rest, head & ROUND_BYTES);
    let (mut epoch, mut added) = (0, None);
    if head & HAS_EPOCH != 0 {
        (epoch, rest) = take_counted(rest);
    }
    if head & HAS_ADDED != 0 {
        let (zigzag, behind) = take_counted(rest);
        (added, rest) = (Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)), behind);
    }
    Current { version: Version { epoch, round }, added, value: rest }
}

fn take_counted(bytes: &[u8]) -> (u64, &[u8]) {
    let (len, rest) = bytes.split_first().expect("a number has a length");
    take_number(rest, *len)
}

/// Reads a number of `len` bytes, and returns the rest.
#[inline]
fn take_number(bytes: &[u8], len: u8) -> (u64, &[u8]) {
    let (number, rest) = bytes.split_at(usize::from(len));
    match (bytes.first_chunk(), len) {
        // Read all eight bytes at once and mask the excess.
        (Some(word), 1..=8) => (u64::from_le_bytes(*word) & u64::MAX >> (64 - 8 * len), rest),
        _ => (number.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)), rest),
    }
}

/// How many bytes a number needs.
#[inline]
fn bytes_of(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()).div_ceil(8) as usize
}
