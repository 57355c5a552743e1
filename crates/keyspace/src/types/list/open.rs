//! The chunk at an end of a large list: elements are pushed and popped at both of its ends. Knows its layout; refuses
//! to know other chunks.
//!
//! Elements are linked (see `items`), in an allocation with room before or after them: a chunk at the left end has the
//! room before them, where elements are pushed. A push or pop moves nothing, except now and then the whole run.

use super::Side;
use super::items::{first_linked, last_linked, link_len, plain_items, write_link};
use super::sealed::Sealed;
use crate::storage::Scalar;
use crate::storage::item::{Item, read_item};
use crate::storage::prefetch::prefetch_at;
use crate::storage::size_class::size_class;
use std::ops::Range;

/// The most bytes of an open chunk, unless it has one element: then half of it is sealed. Twice a sealed chunk, so that
/// as many pushes are needed to seal the next as pops to need an older one.
pub(super) const BYTES_MAX: usize = 2 * Sealed::BYTES_MAX;
/// The smallest allocation for a chunk.
const BYTES_MIN: usize = 256;
/// The bytes of an element of usual size.
const LIKELY_BYTES: usize = 64;

/// An open chunk.
#[derive(Clone, Default)]
pub(super) struct Open {
    room: Box<[u8]>,
    start: u32,
    end: u32,
    count: u32,
}

impl Open {
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The length of its elements in bytes.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Prefetches that end: an element of usual size, and as much room.
    #[inline]
    pub(super) fn prefetch_end(&self, side: Side) {
        let end = match side {
            Side::Left => self.start,
            Side::Right => self.end,
        };
        prefetch_at(self.room.as_ptr().wrapping_add(end as usize).wrapping_sub(LIKELY_BYTES), 2 * LIKELY_BYTES);
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_class(self.room.len())
    }

    #[inline]
    fn run(&self) -> &[u8] {
        &self.room[self.start as usize..self.end as usize]
    }

    /// The bytes that an element takes here.
    #[inline]
    pub(super) fn bytes_of(item: &Item<'_>) -> usize {
        item.len() + link_len(item.len())
    }

    /// Pushes an element. `side` is the chunk's side of the list; the other chunks are on the other side.
    #[inline]
    pub(super) fn push(&mut self, side: Side, item: &Item<'_>) {
        let bytes = Self::bytes_of(item);
        let free = match side {
            Side::Left => self.start as usize,
            Side::Right => self.room.len() - self.end as usize,
        };
        if free < bytes {
            self.make_room(side, bytes);
        }
        let at = match side {
            Side::Left => {
                self.start -= bytes as u32;
                self.start as usize
            }
            Side::Right => {
                self.end += bytes as u32;
                self.end as usize - bytes
            }
        };
        let (to, link) = self.room[at..at + bytes].split_at_mut(item.len());
        item.write(to);
        write_link(link, item.len());
        self.count += 1;
    }

    /// Makes room for `bytes` bytes at that side: in the same allocation, if enough of it is free, or in a new one.
    #[cold]
    fn make_room(&mut self, side: Side, bytes: usize) {
        let used = self.bytes();
        let needed = used + bytes;
        if needed <= self.room.len() && used <= self.room.len() / 4 * 3 {
            return self.move_away_from(side);
        }
        let grown = match needed > BYTES_MAX {
            true => needed,
            // A quarter more, so that the run is copied only now and then.
            false => size_class((needed + needed / 4).max(BYTES_MIN)).min(BYTES_MAX),
        };
        self.resize(side, grown);
    }

    /// Moves the elements into an allocation of that size, with the room at that side.
    fn resize(&mut self, side: Side, len: usize) {
        let mut room = vec![0; len].into_boxed_slice();
        let used = self.bytes();
        let start = match side {
            Side::Left => len - used,
            Side::Right => 0,
        };
        room[start..start + used].copy_from_slice(self.run());
        self.room = room;
        (self.start, self.end) = (start as u32, (start + used) as u32);
    }

    fn move_away_from(&mut self, side: Side) {
        let used = self.bytes();
        let start = match side {
            Side::Left => self.room.len() - used,
            Side::Right => 0,
        };
        self.room.copy_within(self.start as usize..self.end as usize, start);
        (self.start, self.end) = (start as u32, (start + used) as u32);
    }

    /// Frees memory that is no longer needed.
    pub(super) fn shrink(&mut self, side: Side) {
        let used = self.bytes();
        if self.room.len() > 4 * BYTES_MIN && used < self.room.len() / 4 {
            self.resize(side, size_class((used + used / 4).max(BYTES_MIN)));
        }
    }

    /// Removes everything; keeps the memory if it is small.
    pub(super) fn clear(&mut self) {
        if self.room.len() > BYTES_MAX {
            self.room = Box::default();
        }
        (self.start, self.end, self.count) = (0, 0, 0);
    }

    /// Removes `count` elements, which must exist.
    #[inline]
    pub(super) fn pop(&mut self, side: Side, count: usize) {
        if count >= self.count() {
            return self.clear();
        }
        for _ in 0..count {
            match side {
                Side::Left => self.start += first_linked(self.run()).1 as u32,
                Side::Right => self.end -= last_linked(self.run()).1 as u32,
            }
        }
        self.count -= count as u32;
    }

    /// The range of element `number` among the elements, with its link. The number after the last gives their end.
    fn place(&self, number: usize) -> Range<usize> {
        let run = self.run();
        if number < self.count() / 2 {
            let mut at = 0;
            for _ in 0..number {
                at += first_linked(&run[at..]).1;
            }
            return at..at + first_linked(&run[at..]).1;
        }
        let (mut at, mut end) = (run.len(), run.len());
        for _ in number..self.count() {
            end = at;
            at -= last_linked(&run[..at]).1;
        }
        at..end
    }

    /// Passes elements to `look`, starting at the given side, until it returns false. Returns false if it did.
    pub(super) fn visit(&self, numbers: Range<usize>, from: Side, look: &mut impl FnMut(Scalar<'_>) -> bool) -> bool {
        if numbers.is_empty() {
            return true;
        }
        let run = self.run();
        match from {
            Side::Left => {
                let mut rest = &run[self.place(numbers.start).start..];
                for _ in numbers {
                    let (element, len) = read_item(rest);
                    rest = &rest[len + link_len(len)..];
                    if !look(element) {
                        return false;
                    }
                }
            }
            Side::Right => {
                let mut rest = &run[..self.place(numbers.end - 1).end];
                for _ in numbers {
                    let (_, with_link) = last_linked(rest);
                    let (before, last) = rest.split_at(rest.len() - with_link);
                    rest = before;
                    if !look(read_item(last).0) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Replaces an element.
    pub(super) fn set(&mut self, side: Side, number: usize, item: &Item<'_>) {
        self.splice(side, self.place(number), item);
    }

    /// Inserts an element at `number`.
    pub(super) fn insert(&mut self, side: Side, number: usize, item: &Item<'_>) {
        let at = self.place(number).start;
        self.splice(side, at..at, item);
        self.count += 1;
    }

    /// Overwrites a range of the elements' bytes with an element.
    fn splice(&mut self, side: Side, range: Range<usize>, item: &Item<'_>) {
        let bytes = Self::bytes_of(item);
        if bytes != range.len() {
            let (used, len) = (self.bytes(), self.bytes() - range.len() + bytes);
            let capacity = if len > self.room.len() { size_class(len) } else { self.room.len() };
            let mut room = vec![0; capacity].into_boxed_slice();
            let start = match side {
                Side::Left => capacity - len,
                Side::Right => 0,
            };
            room[start..start + range.start].copy_from_slice(&self.run()[..range.start]);
            room[start + range.start + bytes..start + len].copy_from_slice(&self.run()[range.end..used]);
            self.room = room;
            (self.start, self.end) = (start as u32, (start + len) as u32);
        }
        let at = self.start as usize + range.start;
        let (to, link) = self.room[at..at + bytes].split_at_mut(item.len());
        item.write(to);
        write_link(link, item.len());
    }

    /// Keeps the elements for whose numbers `keeps` holds.
    pub(super) fn keep(&mut self, keeps: impl Fn(usize) -> bool) {
        let (mut from, mut to, mut count) = (self.start as usize, self.start as usize, 0);
        for number in 0..self.count() {
            let (_, len) = first_linked(&self.room[from..]);
            if keeps(number) {
                self.room.copy_within(from..from + len, to);
                to += len;
                count += 1;
            }
            from += len;
        }
        (self.end, self.count) = (to as u32, count);
    }

    /// Moves elements from that end to a sealed chunk, about `bytes_max` bytes, at least one element.
    pub(super) fn take_sealed(&mut self, from: Side, bytes_max: usize) -> Sealed {
        if self.count == 1 && self.bytes() > Sealed::BYTES_MAX {
            // It may be very large, so it is not copied.
            let len = first_linked(self.run()).0;
            let room = if self.bytes() == self.room.len() { std::mem::take(&mut self.room) } else { self.run().into() };
            *self = Open::default();
            return Sealed::single(room, len);
        }
        let (mut count, mut bytes, mut linked) = (0, 0, 0);
        let run = self.run();
        while count < self.count() {
            let (len, with_link) = match from {
                Side::Left => first_linked(&run[linked..]),
                Side::Right => last_linked(&run[..run.len() - linked]),
            };
            if count > 0 && bytes + len > bytes_max {
                break;
            }
            (count, bytes, linked) = (count + 1, bytes + len, linked + with_link);
        }
        let mut rest = match from {
            Side::Left => &run[..linked],
            Side::Right => &run[run.len() - linked..],
        };
        let mut plain = Vec::with_capacity(bytes);
        while !rest.is_empty() {
            let (len, with_link) = first_linked(rest);
            plain.extend_from_slice(&rest[..len]);
            rest = &rest[with_link..];
        }
        match from {
            Side::Left => self.start += linked as u32,
            Side::Right => self.end -= linked as u32,
        }
        self.count -= count as u32;
        Sealed::new(plain, count)
    }

    /// Takes the contents of a sealed chunk. This chunk is empty.
    pub(super) fn open(&mut self, side: Side, sealed: Sealed) {
        let (count, linked) = (sealed.count(), sealed.into_linked());
        match linked {
            Ok(room) => {
                let end = room.len() as u32;
                *self = Open { room, start: 0, end, count: count as u32 };
            }
            Err(plain) => {
                let links: usize = plain_items(&plain).map(|(at, _)| link_len(at.len())).sum();
                let needed = plain.len() + links;
                if self.room.len() < needed {
                    self.room = vec![0; size_class(needed)].into_boxed_slice();
                }
                let mut at = 0;
                for (item, _) in plain_items(&plain) {
                    let (len, link) = (item.len(), link_len(item.len()));
                    self.room[at..at + len].copy_from_slice(&plain[item]);
                    write_link(&mut self.room[at + len..at + len + link], len);
                    at += len + link;
                }
                (self.start, self.end, self.count) = (0, at as u32, count as u32);
                if side == Side::Left {
                    self.move_away_from(side);
                }
            }
        }
    }
}
