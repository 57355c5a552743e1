//! A small list as one run of bytes in its entry. Knows the layout; refuses to know commands.
//!
//! ```text
//! u16 count
//!     element element …      plain: see `items`
//! ```

use super::items::{plain_items, plain_offset, visit_plain};
use super::{PACKED, Side};
use crate::storage::Scalar;
use crate::storage::item::{Item, item_len, replace_item, write_item};
use crate::types::Entry;
use std::ops::Range;

const HEADER: usize = 2;

/// The most bytes of a packed list, so that its entry is mostly a compact one. Reaching an element walks over those
/// before it, and a push moves all of them.
pub(super) const BYTES_MAX: usize = 511;
/// The size below which a shrinking list is packed again.
pub(super) const BYTES_AGAIN: usize = 255;

/// A readable packed list.
#[derive(Clone, Copy)]
pub struct Packed<'a> {
    count: usize,
    items: &'a [u8],
}

impl<'a> Packed<'a> {
    #[inline]
    pub fn new(body: &'a [u8]) -> Packed<'a> {
        let (count, items) = body.split_first_chunk::<HEADER>().expect("a packed list begins with its count");
        Packed { count: usize::from(u16::from_le_bytes(*count)), items }
    }

    /// How many elements there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// A packed list is never empty: a key without elements is deleted.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn plain_bytes(&self) -> usize {
        self.items.len()
    }

    pub(super) fn visit(&self, range: Range<usize>, from: Side, look: &mut impl FnMut(Scalar<'_>) -> bool) -> bool {
        visit_plain(self.items, range, from, look)
    }

    /// The elements, each with its range.
    pub(super) fn items(&self) -> impl Iterator<Item = (Range<usize>, Scalar<'a>)> + use<'a> {
        plain_items(self.items)
    }
}

/// The items of elements, if their bytes may be packed.
fn fitting<'e>(elements: impl Iterator<Item = &'e [u8]>, room: usize) -> Option<Vec<u8>> {
    let mut items = Vec::with_capacity(64);
    for element in elements {
        if items.len() + element.len() > room + HEADER {
            // Even as a number it takes too many bytes.
            if Item::of(Scalar::of(element)).len() + items.len() > room {
                return None;
            }
        }
        write_item(&mut items, Scalar::of(element));
        if items.len() > room {
            return None;
        }
    }
    Some(items)
}

/// Creates an entry with these elements in order; `None` when they are too large to be packed.
pub(super) fn create<'e>(
    name: &[u8],
    elements: impl Iterator<Item = &'e [u8]> + Clone,
    deadline: Option<u64>,
) -> Option<Entry> {
    let items = fitting(elements.clone(), BYTES_MAX - HEADER)?;
    let mut body = Vec::with_capacity(HEADER + items.len());
    body.extend_from_slice(&(elements.count() as u16).to_le_bytes());
    body.extend_from_slice(&items);
    Some(Entry::new(name, PACKED, &body, deadline))
}

/// Builds a body of these elements, for a list that was large.
pub(super) fn body_of(count: usize, mut write_items: impl FnMut(&mut Vec<u8>)) -> Vec<u8> {
    let mut body = Vec::with_capacity(BYTES_MAX);
    body.extend_from_slice(&(count as u16).to_le_bytes());
    write_items(&mut body);
    body
}

/// Pushes elements one by one, and returns the new length; `None` when they do not fit.
#[inline]
pub(super) fn push(entry: &mut Entry, side: Side, elements: &[&[u8]]) -> Option<usize> {
    let body = entry.body();
    let (len, count) = (body.len(), Packed::new(body).count + elements.len());
    let room = BYTES_MAX.checked_sub(len)?;
    if let [element] = elements {
        // Without an intermediate buffer.
        let item = Item::of(Scalar::of(element));
        if item.len() > room {
            return None;
        }
        let at = if side == Side::Left { HEADER } else { len };
        item.write(entry.open_gap(at..at, item.len()));
    } else if side == Side::Left {
        let items = fitting(elements.iter().rev().copied(), room)?;
        entry.splice_body(HEADER..HEADER, &items);
    } else {
        let items = fitting(elements.iter().copied(), room)?;
        entry.splice_body(len..len, &items);
    }
    set_count(entry, count);
    Some(count)
}

/// Removes fewer elements than there are.
#[inline]
pub(super) fn pop(entry: &mut Entry, side: Side, count: usize) {
    let body = entry.body();
    let list = Packed::new(body);
    let left = list.count - count;
    assert!(left > 0, "the owner removes a key with its last element");
    let range = match side {
        Side::Left => HEADER..HEADER + plain_offset(list.items, count),
        Side::Right => HEADER + plain_offset(list.items, left)..body.len(),
    };
    entry.splice_body(range, &[]);
    set_count(entry, left);
}

/// Replaces the element at `index`; false when it does not fit.
pub(super) fn set(entry: &mut Entry, index: usize, value: Scalar<'_>) -> bool {
    let body = entry.body();
    let at = HEADER + plain_offset(Packed::new(body).items, index);
    let old = item_len(&body[at..]);
    if body.len() - old + Item::of(value).len() > BYTES_MAX {
        return false;
    }
    replace_item(entry, at, old, value);
    true
}

/// Inserts an element at `index`; false when it does not fit.
pub(super) fn insert(entry: &mut Entry, index: usize, value: Scalar<'_>) -> bool {
    let body = entry.body();
    let (list, item) = (Packed::new(body), Item::of(value));
    if body.len() + item.len() > BYTES_MAX {
        return false;
    }
    let (at, count) = (HEADER + plain_offset(list.items, index), list.count + 1);
    item.write(entry.open_gap(at..at, item.len()));
    set_count(entry, count);
    true
}

/// Keeps the elements for whose numbers `keeps` holds.
pub(super) fn keep(entry: &mut Entry, keeps: impl Fn(usize) -> bool) {
    let list = Packed::new(entry.body());
    let mut count = 0;
    let body = body_of(0, |body| {
        for (_, (at, _)) in list.items().enumerate().filter(|(number, _)| keeps(*number)) {
            body.extend_from_slice(&list.items[at]);
            count += 1;
        }
    });
    assert!(count > 0, "the owner removes a key with its last element");
    entry.set_body(PACKED, &body);
    set_count(entry, count);
}

fn set_count(entry: &mut Entry, count: usize) {
    entry.body_mut()[..HEADER].copy_from_slice(&(count as u16).to_le_bytes());
}
