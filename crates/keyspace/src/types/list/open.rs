//! The chunk at an end of a large list: elements come and go at both of its ends. Knows how its bytes lie; refuses to know
//! the chunks beside it.
//!
//! Elements are linked (see `items`), and lie somewhere in an allocation with room in front of them or behind: a chunk at the
//! left end has it in front, where elements are pushed. Nothing is moved by a push or a pop but now and then all of it.

use super::Side;
use super::items::{first_linked, last_linked, link_len, plain_items, write_link};
use super::sealed::Sealed;
use crate::storage::Scalar;
use crate::storage::item::{Item, read_item};
use crate::storage::prefetch::prefetch_at;
use crate::storage::size_class::size_class;
use std::ops::Range;

/// An open chunk has no more bytes than this, unless it has one element: then half of it is sealed. Twice a sealed one, so that
/// it takes as many pushes to seal the next and as many pops to need an older one.
pub(super) const BYTES_MAX: usize = 2 * Sealed::BYTES_MAX;
/// A smaller allocation is not made for a chunk.
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

    /// How many bytes its elements take.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Prefetches what lies at that end: an element of usual size, and as much room.
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

    /// How many bytes an element takes here.
    #[inline]
    pub(super) fn bytes_of(item: &Item<'_>) -> usize {
        item.len() + link_len(item.len())
    }

    /// Pushes an element. `side` is that of the chunk in its list: the other chunks are on the other.
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

    /// Makes room for so many bytes at that side: elsewhere in the same allocation, if enough of it is free, or in another.
    #[cold]
    fn make_room(&mut self, side: Side, bytes: usize) {
        let used = self.bytes();
        let needed = used + bytes;
        if needed <= self.room.len() && used <= self.room.len() / 4 * 3 {
            return self.move_away_from(side);
        }
        let grown = match needed > BYTES_MAX {
            true => needed,
            // A quarter more, so that all of it is copied only now and then.
            false => size_class((needed + needed / 4).max(BYTES_MIN)).min(BYTES_MAX),
        };
        self.resize(side, grown);
    }

    /// Puts the elements into an allocation of that size, with the room at that side.
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

    /// Gives back memory that it does not need any more.
    pub(super) fn shrink(&mut self, side: Side) {
        let used = self.bytes();
        if self.room.len() > 4 * BYTES_MIN && used < self.room.len() / 4 {
            self.resize(side, size_class((used + used / 4).max(BYTES_MIN)));
        }
    }

    /// Removes everything, and keeps the memory if it is not much.
    pub(super) fn clear(&mut self) {
        if self.room.len() > BYTES_MAX {
            self.room = Box::default();
        }
        (self.start, self.end, self.count) = (0, 0, 0);
    }

    /// Takes off so many elements, which are there.
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

    /// Where the element of that number lies among the elements, with its link. One behind the last is where they end.
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

    /// Shows elements from the given side on, until `look` returns false. False when it did.
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

    /// Gives an element another value.
    pub(super) fn set(&mut self, side: Side, number: usize, item: &Item<'_>) {
        self.splice(side, self.place(number), item);
    }

    /// Inserts an element that has that number then.
    pub(super) fn insert(&mut self, side: Side, number: usize, item: &Item<'_>) {
        let at = self.place(number).start;
        self.splice(side, at..at, item);
        self.count += 1;
    }

    /// Writes an element over a range of the elements' bytes.
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

    /// Keeps the elements for whose numbers that holds.
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

    /// Takes elements off that end for a sealed chunk, as many as make so many bytes, at least one.
    pub(super) fn take_sealed(&mut self, from: Side, bytes_max: usize) -> Sealed {
        if self.count == 1 && self.bytes() > Sealed::BYTES_MAX {
            // Perhaps very large: it is not copied.
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

    /// Becomes what was sealed. It is empty.
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
