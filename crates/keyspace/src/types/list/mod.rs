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
    encoding: |entry| form(entry).encoding(),
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

/// When a small list becomes a large one: `list-max-listpack-size`, a count of elements, or a class of bytes from -1 on
/// down.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    pub small_size_max: i64,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { small_size_max: -2 }
    }
}

/// The most bytes of a small list for the classes -1 to -5.
const CLASSES: [usize; 5] = [4096, 8192, 16_384, 32_768, 65_536];
/// The most bytes of a small list whose elements are counted.
const COUNTED_BYTES_MAX: usize = 8192;
/// What a listpack without elements takes.
const EMPTY_BYTES: usize = 7;

impl Thresholds {
    /// True when a list may be small that has so many elements, and so many bytes as a listpack.
    fn allow_small(self, count: usize, bytes: usize) -> bool {
        self.allow_part(count, bytes, 1)
    }

    /// True when a large list has become so much smaller than the limits that it is a small one again. In Redis its
    /// elements must also be in one node, which depends on where they were pushed; here there are no nodes.
    fn allow_small_again(self, count: usize, bytes: usize) -> bool {
        self.allow_part(count, bytes, 2)
    }

    /// As above, with the limits divided.
    fn allow_part(self, count: usize, bytes: usize, divisor: usize) -> bool {
        match usize::try_from(self.small_size_max) {
            Ok(max) => count <= max.max(1) / divisor && bytes <= self.bytes_max(),
            Err(_) => bytes <= self.bytes_max() / divisor,
        }
    }

    /// The most bytes of a small list.
    fn bytes_max(self) -> usize {
        match self.small_size_max {
            0.. => COUNTED_BYTES_MAX,
            class => CLASSES[class.unsigned_abs().min(CLASSES.len() as u64) as usize - 1],
        }
    }

    /// The form of a list that was made of these elements at once.
    pub fn form_at_once<'e>(self, elements: impl Iterator<Item = &'e [u8]>) -> Form {
        let mut sum = Sum { thresholds: self, count: 0, bytes: EMPTY_BYTES };
        for element in elements {
            if !sum.allows(element.len()) {
                return Form::Large;
            }
        }
        Form::Small
    }

    /// The form that a list would have if it had been made at once.
    fn form_of(self, list: ListRef<'_>) -> Form {
        let mut sum = Sum { thresholds: self, count: 0, bytes: EMPTY_BYTES };
        let mut form = Form::Small;
        list.visit(0..list.len(), Side::Left, |element| {
            let allows = sum.allows(element.len());
            if !allows {
                form = Form::Large;
            }
            allows
        });
        form
    }
}

/// A list that is made.
struct Sum {
    thresholds: Thresholds,
    count: usize,
    bytes: usize,
}

impl Sum {
    /// Adds an element of so many bytes; true while the list may be small. Beside them, an element takes about two
    /// bytes in a listpack.
    fn allows(&mut self, element_bytes: usize) -> bool {
        self.count += 1;
        self.bytes += element_bytes + 2;
        self.thresholds.allow_small(self.count, self.bytes)
    }
}

/// The encoding that Redis would use for a list, for OBJECT ENCODING. How a list lies in memory is another question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Small,
    Large,
}

impl Form {
    /// Its name in OBJECT ENCODING.
    pub fn encoding(self) -> &'static str {
        match self {
            Form::Small => "listpack",
            Form::Large => "quicklist",
        }
    }
}

/// The form of the list in an entry. A packed list is a small one.
pub(super) fn form(entry: &Entry) -> Form {
    list(entry).form()
}

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

    /// The encoding that Redis would use.
    pub fn form(&self) -> Form {
        match self {
            ListRef::Packed(_) => Form::Small,
            ListRef::Chunked(list) => list.form(),
        }
    }

    /// About what it takes as a listpack, which has the length of each element behind it.
    fn listpack_bytes(&self) -> usize {
        let elements = match self {
            ListRef::Packed(list) => list.plain_bytes() + list.len(),
            ListRef::Chunked(list) => list.linked_bytes(),
        };
        EMPTY_BYTES + elements
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
