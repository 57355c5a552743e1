//! A large list: an open chunk at each end, and sealed ones between them. Knows which chunk an element is in; refuses
//! to know how chunks are laid out (`open`, `sealed`).
//!
//! A push or a pop touches one open chunk. When that is full, the inner half of it is sealed; when it is empty and more
//! is wanted, the next sealed chunk is opened. An element inside is found by the counts of the chunks, which lie side
//! by side. A linked list of chunks, as Redis has, was rejected: to find an element, each of them would be fetched.

use super::items::{plain_items, plain_offset, visit_plain};
use super::open::{self, Open};
use super::packed;
use super::sealed::Sealed;
use super::{Form, Side};
use crate::storage::Scalar;
use crate::storage::item::{Item, item_len, write_item};
use crate::storage::size_class::size_class;
use std::collections::VecDeque;
use std::ops::Range;

/// The number of sealed chunks at each end that are not packed: they were written recently, or will be read soon.
const PLAIN_CHUNKS: usize = 2;

/// A list with more chunks is freed after the locks are released.
const FREED_AT_ONCE_CHUNKS: usize = 64;

/// A large list.
#[derive(Clone, Default)]
pub struct ChunkedList {
    left: Open,
    right: Open,
    inner: VecDeque<Sealed>,
    len: usize,
    /// Reported as a large list. Otherwise it is one that is only too large for us to pack.
    is_large: bool,
    /// The last chunk that should be packed could not be: the next ones need not reserve room for it.
    is_incompressible: bool,
}

/// The position of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    End(Side),
    Inner(usize),
}

impl ChunkedList {
    /// The encoding that Redis would use.
    pub(super) fn form(&self) -> Form {
        if self.is_large { Form::Large } else { Form::Small }
    }

    pub(super) fn set_form(&mut self, form: Form) {
        self.is_large = form == Form::Large;
    }

    /// True when it has more chunks than a list of so many bytes could have: then they need not be added up.
    #[inline]
    pub(super) fn has_many_chunks_for(&self, bytes: usize) -> bool {
        self.inner.len() > 2 + 4 * bytes / Sealed::BYTES_MAX
    }

    /// How many elements there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn open_mut(&mut self, side: Side) -> &mut Open {
        match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        }
    }

    /// Prefetches what a push or pop at either end touches.
    #[inline]
    pub(crate) fn prefetch_ends(&self) {
        self.left.prefetch_end(Side::Left);
        self.right.prefetch_end(Side::Right);
        // A list of one chunk has both ends there.
        if self.inner.is_empty() {
            match (self.left.is_empty(), self.right.is_empty()) {
                (true, _) => self.right.prefetch_end(Side::Left),
                (_, true) => self.left.prefetch_end(Side::Right),
                _ => {}
            }
        }
    }

    /// Pushes an element.
    #[inline]
    pub(super) fn push(&mut self, side: Side, element: &[u8]) {
        let item = Item::of(Scalar::of(element));
        if self.open_mut(side).bytes() + Open::bytes_of(&item) > open::BYTES_MAX {
            self.seal(side, Open::bytes_of(&item));
        }
        self.open_mut(side).push(side, &item);
        self.len += 1;
    }

    /// Seals elements of the chunk at an end, the inner ones first, until there is room for `room` bytes or the chunk
    /// is empty.
    #[cold]
    fn seal(&mut self, side: Side, room: usize) {
        while !self.open_mut(side).is_empty() && self.open_mut(side).bytes() + room > open::BYTES_MAX {
            let bytes_max = if self.is_incompressible { Sealed::BYTES_MAX } else { Sealed::BYTES_PACKED_MAX };
            let sealed = self.open_mut(side).take_sealed(side.other(), bytes_max);
            let at = match side {
                Side::Left => {
                    self.inner.push_front(sealed);
                    PLAIN_CHUNKS
                }
                Side::Right => {
                    self.inner.push_back(sealed);
                    self.inner.len().saturating_sub(1 + PLAIN_CHUNKS)
                }
            };
            // The same at the other end.
            if self.inner.len() > 2 * PLAIN_CHUNKS {
                self.is_incompressible = !self.inner[at].pack();
            }
        }
    }

    /// Removes `count` elements; there are more.
    #[inline]
    pub(super) fn pop(&mut self, side: Side, count: usize) {
        self.len -= count;
        let open = self.open_mut(side);
        match count < open.count() {
            true => open.pop(side, count),
            false => self.pop_chunks(side, count),
        }
        if self.inner.is_empty() {
            self.open_mut(side).shrink(side);
        }
    }

    fn pop_chunks(&mut self, side: Side, mut count: usize) {
        count -= self.open_mut(side).count();
        self.open_mut(side).clear();
        while count > 0 {
            let next = match side {
                Side::Left => self.inner.pop_front(),
                Side::Right => self.inner.pop_back(),
            };
            match next {
                None => {
                    self.open_mut(side.other()).pop(side, count);
                    self.open_mut(side.other()).shrink(side.other());
                    return;
                }
                Some(chunk) if chunk.count() <= count => count -= chunk.count(),
                Some(chunk) => {
                    self.open_mut(side).open(side, chunk);
                    self.open_mut(side).pop(side, count);
                    count = 0;
                }
            }
        }
        if self.inner.capacity() > 64 && self.inner.len() < self.inner.capacity() / 4 {
            self.inner.shrink_to(self.inner.len() * 2);
        }
    }

    /// The chunk of an element, and the element's number in it.
    fn locate(&self, index: usize) -> (Place, usize) {
        let Some(mut rest) = index.checked_sub(self.left.count()) else { return (Place::End(Side::Left), index) };
        let inner = self.len - self.left.count() - self.right.count();
        if rest >= inner {
            return (Place::End(Side::Right), rest - inner);
        }
        if rest < inner / 2 {
            for (at, chunk) in self.inner.iter().enumerate() {
                match rest.checked_sub(chunk.count()) {
                    Some(left) => rest = left,
                    None => return (Place::Inner(at), rest),
                }
            }
        }
        let mut behind = inner - rest;
        for (at, chunk) in self.inner.iter().enumerate().rev() {
            match behind.checked_sub(chunk.count() + 1) {
                Some(more) => behind = more + 1,
                None => return (Place::Inner(at), chunk.count() - behind),
            }
        }
        unreachable!("the chunks have as many elements as the list")
    }

    /// The next chunk from that side.
    fn next(&self, place: Place, from: Side) -> Option<Place> {
        match (place, from) {
            (Place::End(end), _) if end != from => None,
            (Place::End(_), _) if self.inner.is_empty() => Some(Place::End(from.other())),
            (Place::End(_), Side::Left) => Some(Place::Inner(0)),
            (Place::End(_), Side::Right) => Some(Place::Inner(self.inner.len() - 1)),
            (Place::Inner(at), Side::Left) if at + 1 < self.inner.len() => Some(Place::Inner(at + 1)),
            (Place::Inner(at), Side::Right) if at > 0 => Some(Place::Inner(at - 1)),
            (Place::Inner(_), _) => Some(Place::End(from.other())),
        }
    }

    fn count_of(&self, place: Place) -> usize {
        match place {
            Place::End(Side::Left) => self.left.count(),
            Place::End(Side::Right) => self.right.count(),
            Place::Inner(at) => self.inner[at].count(),
        }
    }

    /// Passes elements to `look`, starting at the given side, until it returns false. Returns false if it did.
    pub(super) fn visit(&self, range: Range<usize>, from: Side, look: &mut impl FnMut(Scalar<'_>) -> bool) -> bool {
        if range.is_empty() {
            return true;
        }
        let mut left = range.len();
        let (mut place, mut number) = match from {
            Side::Left => self.locate(range.start),
            Side::Right => self.locate(range.end - 1),
        };
        loop {
            let numbers = match from {
                Side::Left => number..self.count_of(place).min(number + left),
                Side::Right => (number + 1).saturating_sub(left)..number + 1,
            };
            left -= numbers.len();
            if !self.visit_chunk(place, numbers, from, look) {
                return false;
            }
            loop {
                if left == 0 {
                    return true;
                }
                place = self.next(place, from).expect("the chunks have as many elements as the list");
                if self.count_of(place) > 0 {
                    break;
                }
            }
            number = if from == Side::Left { 0 } else { self.count_of(place) - 1 };
        }
    }

    fn visit_chunk(
        &self,
        place: Place,
        numbers: Range<usize>,
        from: Side,
        look: &mut impl FnMut(Scalar<'_>) -> bool,
    ) -> bool {
        match place {
            Place::End(Side::Left) => self.left.visit(numbers, from, look),
            Place::End(Side::Right) => self.right.visit(numbers, from, look),
            Place::Inner(at) => self.inner[at].with_plain(|plain| visit_plain(plain, numbers, from, look)),
        }
    }

    /// Replaces the element at `index`.
    pub(super) fn set(&mut self, index: usize, element: &[u8]) {
        let item = Item::of(Scalar::of(element));
        match self.locate(index) {
            (Place::End(side), number) => {
                self.open_mut(side).set(side, number, &item);
                self.settle(side);
            }
            (Place::Inner(at), number) => {
                let chunk = &self.inner[at];
                let count = chunk.count();
                let mut plain = Vec::new();
                if count > 1 {
                    chunk.with_plain(|all| plain.extend_from_slice(all));
                    let start = plain_offset(&plain, number);
                    let old = item_len(&plain[start..]);
                    splice(&mut plain, start..start + old, &item);
                } else {
                    splice(&mut plain, 0..0, &item);
                }
                self.replace(at, plain, count);
            }
        }
    }

    /// Inserts an element at `index`.
    pub(super) fn insert(&mut self, index: usize, element: &[u8]) {
        if index == 0 {
            return self.push(Side::Left, element);
        }
        if index == self.len {
            return self.push(Side::Right, element);
        }
        let item = Item::of(Scalar::of(element));
        self.len += 1;
        match self.locate_before(index) {
            (Place::End(side), number) => {
                self.open_mut(side).insert(side, number, &item);
                self.settle(side);
            }
            (Place::Inner(at), number) => {
                let chunk = &self.inner[at];
                let count = chunk.count();
                let mut plain = Vec::new();
                // A chunk that is large enough is not merged.
                if chunk.plain_len() + item.len() > 2 * Sealed::BYTES_MAX && (number == 0 || number == count) {
                    splice(&mut plain, 0..0, &item);
                    self.inner.insert(at + usize::from(number > 0), Sealed::new(plain, 1));
                    return;
                }
                chunk.with_plain(|all| plain.extend_from_slice(all));
                let start = plain_offset(&plain, number);
                splice(&mut plain, start..start, &item);
                self.replace(at, plain, count + 1);
            }
        }
    }

    /// Where to insert an element before that of `index`. `len` counts it already.
    fn locate_before(&mut self, index: usize) -> (Place, usize) {
        self.len -= 1;
        let found = self.locate(index);
        self.len += 1;
        found
    }

    /// Restores the size limit after an element of an open chunk has grown.
    fn settle(&mut self, side: Side) {
        if self.open_mut(side).bytes() > open::BYTES_MAX && self.open_mut(side).count() > 1 {
            self.seal(side, 0);
        }
    }

    /// Replaces the elements of a sealed chunk.
    fn replace(&mut self, at: usize, plain: Vec<u8>, count: usize) {
        let chunks = Sealed::split(plain, count);
        for (number, chunk) in chunks.into_iter().enumerate() {
            match number {
                0 => self.put(at, chunk),
                _ => self.inner.insert(at + number, chunk),
            }
        }
    }

    /// Replaces a sealed chunk; packs the new one if the old one was packed.
    fn put(&mut self, at: usize, mut chunk: Sealed) {
        if self.inner[at].is_packed() {
            chunk.pack();
        }
        self.inner[at] = chunk;
    }

    /// Removes at most `max` elements equal to this one, those nearest to that side, and returns how many.
    pub(super) fn remove(&mut self, side: Side, max: usize, element: &[u8]) -> usize {
        let element = Scalar::of(element);
        let (mut removed, mut place) = (0, Some(Place::End(side)));
        while let Some(at) = place.filter(|_| removed < max) {
            removed += self.remove_in(at, side, max - removed, element);
            place = self.next(at, side);
        }
        self.len -= removed;
        if removed > 0 {
            self.merge();
        }
        removed
    }

    /// Removes equal elements from one chunk, and returns how many. An empty chunk is dropped later.
    fn remove_in(&mut self, place: Place, side: Side, max: usize, element: Scalar<'_>) -> usize {
        let count = self.count_of(place);
        let mut equal = Vec::new();
        let mut number = 0;
        self.visit_chunk(place, 0..count, Side::Left, &mut |found| {
            if found == element {
                equal.push(number);
            }
            number += 1;
            true
        });
        let gone = match side {
            Side::Left => &equal[..equal.len().min(max)],
            Side::Right => &equal[equal.len().saturating_sub(max)..],
        };
        if gone.is_empty() {
            return 0;
        }
        let keeps = |number: usize| gone.binary_search(&number).is_err();
        match place {
            Place::End(side) => {
                let open = self.open_mut(side);
                match gone.len() == count {
                    true => open.clear(),
                    false => open.keep(keeps),
                }
            }
            Place::Inner(at) => {
                let mut plain = Vec::new();
                if gone.len() < count {
                    self.inner[at].with_plain(|all| {
                        let kept = plain_items(all).enumerate().filter(|(number, _)| keeps(*number));
                        kept.for_each(|(_, (item, _))| plain.extend_from_slice(&all[item]));
                    });
                }
                self.put(at, Sealed::new(plain, count - gone.len()));
            }
        }
        gone.len()
    }

    /// Drops empty sealed chunks, and merges small ones with their successors.
    fn merge(&mut self) {
        let mut merged: VecDeque<Sealed> = VecDeque::with_capacity(self.inner.len());
        for chunk in self.inner.drain(..).filter(|chunk| chunk.count() > 0) {
            match merged.back_mut() {
                Some(last) if last.plain_len() + chunk.plain_len() <= Sealed::BYTES_MAX / 2 => {
                    let (count, is_packed) = (last.count() + chunk.count(), last.is_packed());
                    let both = last.with_plain(|one| chunk.with_plain(|other| [one, other].concat()));
                    *last = Sealed::new(both, count);
                    if is_packed {
                        last.pack();
                    }
                }
                _ => merged.push_back(chunk),
            }
        }
        self.inner = merged;
    }

    /// The body of an entry with the same elements, if they are few.
    pub(super) fn packed_again(&self) -> Option<Vec<u8>> {
        if self.is_large || !self.inner.is_empty() || self.left.bytes() + self.right.bytes() > packed::BYTES_AGAIN {
            return None;
        }
        Some(packed::body_of(self.len, |body| {
            self.visit(0..self.len, Side::Left, &mut |element| {
                write_item(body, element);
                true
            });
        }))
    }

    /// The length of its elements as a plain run.
    pub(super) fn plain_bytes(&self) -> usize {
        let sealed: usize = self.inner.iter().map(Sealed::plain_len).sum();
        self.left.bytes() + sealed + self.right.bytes()
    }

    /// The length of its elements with a link of one byte each, as nearly all have.
    pub(super) fn linked_bytes(&self) -> usize {
        let sealed: usize = self.inner.iter().map(|chunk| chunk.plain_len() + chunk.count()).sum();
        self.left.bytes() + sealed + self.right.bytes()
    }

    /// Heap bytes, estimated from `samples` chunks.
    pub(super) fn heap_bytes(&self, samples: usize) -> usize {
        let looked_at = self.inner.len().min(samples);
        let bytes: usize = self.inner.iter().take(looked_at).map(Sealed::heap_bytes).sum();
        self.left.heap_bytes()
            + self.right.heap_bytes()
            + size_class(self.inner.capacity() * size_of::<Sealed>())
            + bytes * self.inner.len() / looked_at.max(1)
    }

    /// True when freeing it takes no noticeable time.
    pub(super) fn is_freed_at_once(&self) -> bool {
        const BYTES_MAX: usize = 1024 * 1024;
        self.inner.len() <= FREED_AT_ONCE_CHUNKS && self.heap_bytes(FREED_AT_ONCE_CHUNKS) <= BYTES_MAX
    }

    /// The number of elements of each chunk, for tests.
    #[cfg(test)]
    pub(super) fn chunk_counts(&self) -> Vec<usize> {
        let inner = self.inner.iter().map(Sealed::count);
        [self.left.count()].into_iter().chain(inner).chain([self.right.count()]).collect()
    }
}

/// Overwrites a range with an item.
fn splice(plain: &mut Vec<u8>, range: Range<usize>, item: &Item<'_>) {
    let mut bytes = vec![0; item.len()];
    item.write(&mut bytes);
    plain.splice(range, bytes);
}
