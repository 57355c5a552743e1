//! A small set as one run of bytes. Knows the layout; refuses to know commands.
//!
//! ```text
//! u8 count
//!    member member …      in the order in which they came
//! ```
//! A member is one item: see `storage::item`. Each member has one encoding, so it is searched for as the bytes of its
//! item. OBJECT ENCODING reports a listpack. A small set that is not packed is a table whose form is `Form::Small`.

use super::PACKED;
use crate::storage::Scalar;
use crate::storage::item::{Item, item_len, read_item};
use crate::types::Entry;
use std::ops::Range;

const HEADER: usize = 1;

/// The most members of a packed set, and their greatest length: every look-up walks over them. For so many short ones
/// that takes no longer than two cache misses, which is the cost of a table.
pub(super) const MEMBERS_MAX: usize = 32;
pub(super) const MEMBER_BYTES_MAX: usize = 64;

/// A readable packed set.
#[derive(Clone, Copy)]
pub struct Packed<'a> {
    count: usize,
    items: &'a [u8],
}

impl<'a> Packed<'a> {
    #[inline]
    pub fn new(body: &'a [u8]) -> Packed<'a> {
        let (count, items) = body.split_first().expect("a packed set begins with its count");
        Packed { count: usize::from(*count), items }
    }

    /// How many members there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// A packed set is never empty: a key without members is deleted.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    pub fn has(&self, member: Scalar<'_>) -> bool {
        with_item(member, |item| self.find(item)).flatten().is_some()
    }

    /// All members in insertion order.
    pub fn iter(self) -> PackedMembers<'a> {
        PackedMembers { rest: self.items }
    }

    /// Where an item is in `items`.
    #[inline]
    fn find(&self, item: &[u8]) -> Option<Range<usize>> {
        let mut at = 0;
        while at < self.items.len() {
            let end = at + item_len(&self.items[at..]);
            if self.items[at..end] == *item {
                return Some(at..end);
            }
            at = end;
        }
        None
    }
}

/// Members of a packed set.
pub struct PackedMembers<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for PackedMembers<'a> {
    type Item = Scalar<'a>;

    #[inline]
    fn next(&mut self) -> Option<Scalar<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (member, len) = read_item(self.rest);
        self.rest = &self.rest[len..];
        Some(member)
    }
}

/// True when a set of `count` members, the longest of which has so many bytes, can be packed.
pub(super) fn fits(count: usize, longest: usize) -> bool {
    count <= MEMBERS_MAX && longest <= MEMBER_BYTES_MAX
}

/// Creates an entry with these members, which [fit](fits), each once; returns how many it has.
pub(super) fn create<'m>(
    name: &[u8],
    members: impl Iterator<Item = Scalar<'m>>,
    deadline: Option<u64>,
) -> (Entry, usize) {
    let mut body = Vec::with_capacity(128);
    body.push(0);
    for member in members {
        with_item(member, |item| {
            if Packed::new(&body).find(item).is_none() {
                body.extend_from_slice(item);
                body[0] += 1;
            }
        });
    }
    let count = usize::from(body[0]);
    (Entry::new(name, PACKED, &body, deadline), count)
}

/// Adds a member that is short enough and new; the set is not full.
pub(super) fn add(entry: &mut Entry, member: &[u8]) {
    with_item(Scalar::of(member), |item| {
        let end = entry.body().len();
        entry.splice_body(end..end, item);
        entry.body_mut()[0] += 1;
    });
}

/// Removes a member and returns whether it existed. The last one is not removed: the caller removes the key.
pub(super) fn remove(entry: &mut Entry, member: &[u8]) -> bool {
    let set = Packed::new(entry.body());
    let Some(at) = with_item(Scalar::of(member), |item| set.find(item)).flatten() else { return false };
    assert!(set.len() > 1, "the owner removes a key with its last member");
    entry.splice_body(HEADER + at.start..HEADER + at.end, &[]);
    entry.body_mut()[0] -= 1;
    true
}

/// Passes the item of a member to `look`; `None` for a member that is too long for a packed set.
#[inline]
fn with_item<T>(member: Scalar<'_>, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let item = Item::of(match member {
        Scalar::Bytes(bytes) if bytes.len() > MEMBER_BYTES_MAX => return None,
        Scalar::Bytes(bytes) => Scalar::of(bytes),
        number => number,
    });
    let mut buffer = [0; 1 + MEMBER_BYTES_MAX];
    let buffer = &mut buffer[..item.len()];
    item.write(buffer);
    Some(look(buffer))
}
