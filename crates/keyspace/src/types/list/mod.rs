//! Lists in their two forms behind one type for readers: packed in the entry, or a deque of chunks. Knows elements and
//! their order; refuses to know commands, and how each form is laid out (`packed`, `chunked`).

mod alphabet;
mod change;
mod chunked;
mod image;
mod items;
mod open;
mod packed;
mod sealed;

pub use change::Change;
pub use chunked::ChunkedList;
pub use image::{image_of, put_image};
pub use packed::Packed;

use super::{Entry, Object, ValueType};
use crate::storage::{Kind, Scalar};
use std::ops::Range;

/// A small list, packed: see [`packed`].
pub const PACKED: Kind = Kind::inline(9);

/// The row of lists.
pub static TYPE: ValueType = ValueType {
    tag: 9,
    name: "list",
    redis_number: 1,
    event_letter: 'l',
    is_own: false,
    is_bound: false,
    name_error: |_| None,
    encoding: |_| "quicklist",
    elements: |entry, _| list(entry).len(),
    heap_bytes: |object, samples| chunked_of(object).map_or(0, |list| list.heap_bytes(samples)),
    is_freed_later: |object| chunked_of(object).is_some_and(|list| !list.is_freed_at_once()),
    write_image: image::write,
    check_image: image::check,
    read_image: image::read,
    release: None,
    element_expiry: None,
    to_redis: image::to_redis,
    digest: image::digest,
};

/// One of the two ends of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end with element 0.
    Left,
    Right,
}

impl Side {
    /// The other end.
    pub fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

fn chunked_of(object: &Object) -> Option<&ChunkedList> {
    match object {
        Object::List(list) => Some(list),
        _ => None,
    }
}

/// The list in an entry.
#[inline]
pub fn list(entry: &Entry) -> ListRef<'_> {
    match entry.object() {
        Some(Object::List(list)) => ListRef::Chunked(list),
        Some(_) => panic!("the entry holds no list"),
        None => ListRef::Packed(Packed::new(entry.body())),
    }
}

/// A readable list. Elements are passed to closures, not borrowed: those of a compressed chunk exist only temporarily.
/// An element that spells an integer is passed as a number.
#[derive(Clone, Copy)]
pub enum ListRef<'a> {
    Packed(Packed<'a>),
    Chunked(&'a ChunkedList),
}

impl ListRef<'_> {
    /// How many elements there are.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            ListRef::Packed(list) => list.len(),
            ListRef::Chunked(list) => list.len(),
        }
    }

    /// The length of its elements as a plain run: about their total length.
    pub(super) fn plain_bytes(&self) -> usize {
        match self {
            ListRef::Packed(list) => list.plain_bytes(),
            ListRef::Chunked(list) => list.plain_bytes(),
        }
    }

    /// Always false: a key without elements is deleted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Passes the elements of these indexes to `look`, starting at the given side, until it returns false. Missing
    /// indexes are skipped.
    pub fn visit(&self, range: Range<usize>, from: Side, mut look: impl FnMut(Scalar<'_>) -> bool) {
        let end = range.end.min(self.len());
        let range = range.start.min(end)..end;
        match self {
            ListRef::Packed(list) => list.visit(range, from, &mut look),
            ListRef::Chunked(list) => list.visit(range, from, &mut look),
        };
    }

    /// Passes all elements to `look`, in order.
    pub fn for_each(&self, mut look: impl FnMut(Scalar<'_>)) {
        self.visit(0..self.len(), Side::Left, |element| {
            look(element);
            true
        });
    }

    /// Passes the element at `index` to `look`, if it exists.
    #[inline]
    pub fn with<T>(&self, index: usize, look: impl FnOnce(Scalar<'_>) -> T) -> Option<T> {
        let (mut look, mut found) = (Some(look), None);
        if index < self.len() {
            self.visit(index..index + 1, Side::Left, |element| {
                found = look.take().map(|look| look(element));
                false
            });
        }
        found
    }
}

#[cfg(test)]
mod tests;
