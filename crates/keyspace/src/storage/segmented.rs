//! A hash table that grows incrementally, without pauses. Knows hashes and the order of iteration; refuses to know its
//! elements: the caller supplies hashes and comparisons.
//!
//! It is a row of small hash tables, each for one range of *positions* (32 bits of the hash). A full table is split in
//! two, so growth moves a hundred elements at a time instead of all, and iteration by position survives every split and
//! merge: a scan visits an element that stays in the table exactly once. A single large `HashMap` gives neither.
//! Elements that share a position stay in one table, which grows when splitting it further would cost more than it is
//! worth.

use super::table::NameHash;
use hashbrown::HashTable;

/// The most elements of a segment before it is split: seven eighths of 128 slots, which is when `hashbrown` would
/// otherwise double it.
const SEGMENT_MAX: usize = 112;
/// Two neighbours are merged when together they hold no more than this.
const MERGE_MAX: usize = 28;
/// Bits of position; the deepest a table can be split.
const POSITION_BITS: u32 = 32;

#[derive(Clone)]
struct Segment<E> {
    elements: HashTable<E>,
    /// How many leading bits of the position all elements here share.
    depth: u32,
    /// The value of those bits.
    prefix: u32,
}

/// Elements by hash. See the module's description.
#[derive(Clone)]
pub struct Segmented<E> {
    segments: Vec<Segment<E>>,
    /// Leading `depth` bits of a position to the index of its segment.
    directory: Vec<u32>,
    depth: u32,
    len: usize,
}

impl<E> Default for Segmented<E> {
    fn default() -> Segmented<E> {
        Segmented { segments: Vec::new(), directory: Vec::new(), depth: 0, len: 0 }
    }
}

impl<E> Segmented<E> {
    /// How many elements there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element for which `test` holds, among those that may have this hash: not all bits of the hash are compared.
    #[inline]
    pub fn find(&self, hash: NameHash, test: impl FnMut(&E) -> bool) -> Option<&E> {
        let segment = self.segments.get(self.segment_of(hash.position())?)?;
        segment.elements.find(hash.get(), test)
    }

    /// Mutable access to the element for which `test` holds; its hash must not change.
    #[inline]
    pub fn find_mut(&mut self, hash: NameHash, test: impl FnMut(&E) -> bool) -> Option<&mut E> {
        let index = self.segment_of(hash.position())?;
        self.segments[index].elements.find_mut(hash.get(), test)
    }

    /// Adds an element that is not in the table yet.
    pub fn insert(&mut self, hash: NameHash, element: E, hash_of: impl Fn(&E) -> NameHash) -> &mut E {
        if self.segments.is_empty() {
            self.segments.push(Segment { elements: HashTable::new(), depth: 0, prefix: 0 });
            self.directory.push(0);
        }
        let position = hash.position();
        let mut index = self.directory[self.slot_of(position)] as usize;
        let depth_max = self.depth_max();
        while self.segments[index].elements.len() >= SEGMENT_MAX && self.segments[index].depth < depth_max {
            self.split(index, &hash_of);
            index = self.directory[self.slot_of(position)] as usize;
        }
        self.len += 1;
        let rehash = |element: &E| hash_of(element).get();
        self.segments[index].elements.insert_unique(hash.get(), element, rehash).into_mut()
    }

    /// How deep segments are split. Elements with different positions need less than a bit for each doubling of their
    /// number; more would not part those that share a position, and the directory doubles with each bit.
    #[inline]
    fn depth_max(&self) -> u32 {
        POSITION_BITS.min(self.len.checked_ilog2().unwrap_or(0) + 1)
    }

    /// Removes the element for which `test` holds, among those that may have this hash.
    pub fn remove(
        &mut self,
        hash: NameHash,
        test: impl FnMut(&E) -> bool,
        hash_of: impl Fn(&E) -> NameHash,
    ) -> Option<E> {
        let index = self.segment_of(hash.position())?;
        let occupied = self.segments[index].elements.find_entry(hash.get(), test).ok()?;
        let (element, _) = occupied.remove();
        self.len -= 1;
        if self.len == 0 {
            *self = Segmented::default();
        } else if self.segments[index].elements.len() < MERGE_MAX / 2 {
            self.merge(index, &hash_of);
        }
        Some(element)
    }

    /// Removes all elements, and keeps the memory of a table that was never split.
    pub fn clear(&mut self) {
        match &mut self.segments[..] {
            [only] => {
                only.elements.clear();
                self.len = 0;
            }
            _ => *self = Segmented::default(),
        }
    }

    /// All elements, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.segments.iter().flat_map(|segment| segment.elements.iter())
    }

    /// Visits at least `count` elements in order of position from `cursor` on, and returns the cursor to continue with;
    /// `None` at the end. An element that is in the table during the whole iteration is visited exactly once, whatever
    /// else is inserted or removed.
    pub fn scan(
        &self,
        cursor: u32,
        count: usize,
        hash_of: impl Fn(&E) -> NameHash,
        mut visit: impl FnMut(&E),
    ) -> Option<u32> {
        let mut next = cursor;
        let mut visited = 0;
        let mut batch: Vec<(u32, &E)> = Vec::new();
        loop {
            let segment = &self.segments[self.segment_of(next)?];
            batch.clear();
            let positions = segment.elements.iter().map(|element| (hash_of(element).position(), element));
            batch.extend(positions.filter(|(position, _)| *position >= next));
            batch.sort_unstable_by_key(|(position, _)| *position);
            let mut rest = batch.as_slice();
            while let [(position, element), tail @ ..] = rest {
                visit(element);
                visited += 1;
                rest = tail;
                // Elements that share a position are visited together: the cursor cannot point between them.
                if visited >= count && rest.first().is_none_or(|(following, _)| following != position) {
                    match position.checked_add(1) {
                        Some(after) if !rest.is_empty() => return Some(after),
                        _ => break,
                    }
                }
            }
            next = segment.end()?;
            if visited >= count {
                return Some(next);
            }
        }
    }

    /// The last position of the segment that contains `position`: the smallest step that [`Segmented::visit_range`]
    /// takes without reading hashes.
    pub fn range_end(&self, position: u32) -> u32 {
        let segment = self.segment_of(position).and_then(|index| self.segments[index].end());
        segment.map_or(u32::MAX, |end| end - 1)
    }

    /// Visits the elements whose positions are `from` to `to`, both included, in no order.
    pub fn visit_range<'t>(
        &'t self,
        from: u32,
        to: u32,
        hash_of: impl Fn(&E) -> NameHash,
        mut visit: impl FnMut(&'t E),
    ) {
        let mut next = from;
        while let Some(index) = self.segment_of(next) {
            let segment = &self.segments[index];
            let end = segment.end().map_or(u32::MAX, |end| end - 1);
            if segment.start() >= from && end <= to {
                segment.elements.iter().for_each(&mut visit);
            } else {
                let within = |element: &&E| (from..=to).contains(&hash_of(element).position());
                segment.elements.iter().filter(within).for_each(&mut visit);
            }
            match end.checked_add(1) {
                Some(start) if start <= to => next = start,
                _ => break,
            }
        }
    }

    /// A random element. Fair among the elements of a segment; segments are chosen in proportion to their range.
    pub fn random(&self, random: &mut fastrand::Rng) -> Option<&E> {
        if self.len == 0 {
            return None;
        }
        loop {
            let segment = &self.segments[self.segment_of(random.u32(..))?];
            if !segment.elements.is_empty() {
                return segment.elements.iter().nth(random.usize(..segment.elements.len()));
            }
        }
    }

    /// Heap bytes of the table itself, without those of its elements.
    pub fn heap_bytes(&self) -> usize {
        let slots: usize = self.segments.iter().map(|segment| segment.elements.allocation_size()).sum();
        slots + self.segments.capacity() * size_of::<Segment<E>>() + self.directory.capacity() * 4
    }

    #[inline]
    fn slot_of(&self, position: u32) -> usize {
        // A shift by all 32 bits would overflow; depth 0 has the single slot 0.
        (u64::from(position) >> (POSITION_BITS - self.depth)) as usize
    }

    #[inline]
    fn segment_of(&self, position: u32) -> Option<usize> {
        self.directory.get(self.slot_of(position)).map(|index| *index as usize)
    }

    /// Splits a segment by the next bit of the position.
    fn split(&mut self, index: usize, hash_of: &impl Fn(&E) -> NameHash) {
        let Segment { depth, prefix, .. } = self.segments[index];
        if depth == self.depth {
            self.directory = self.directory.iter().flat_map(|segment| [*segment, *segment]).collect();
            self.depth += 1;
        }
        let elements = std::mem::take(&mut self.segments[index].elements);
        let (mut low, mut high) =
            (HashTable::with_capacity(SEGMENT_MAX / 2), HashTable::with_capacity(SEGMENT_MAX / 2));
        for element in elements {
            let hash = hash_of(&element);
            let half = if hash.position() >> (POSITION_BITS - depth - 1) & 1 == 0 { &mut low } else { &mut high };
            half.insert_unique(hash.get(), element, |element| hash_of(element).get());
        }
        let fresh = self.segments.len() as u32;
        self.segments[index] = Segment { elements: low, depth: depth + 1, prefix: prefix << 1 };
        let high = Segment { elements: high, depth: depth + 1, prefix: prefix << 1 | 1 };
        let slots = self.slots_of(&high);
        self.directory[slots].fill(fresh);
        self.segments.push(high);
    }

    /// Merges a small segment with its other half, if that is small too.
    fn merge(&mut self, index: usize, hash_of: &impl Fn(&E) -> NameHash) {
        let Segment { depth, prefix, .. } = self.segments[index];
        if depth == 0 {
            return;
        }
        let buddy_prefix = prefix ^ 1;
        let buddy = self.directory[(buddy_prefix as usize) << (self.depth - depth)] as usize;
        let together = self.segments[index].elements.len() + self.segments[buddy].elements.len();
        if self.segments[buddy].depth != depth || together > MERGE_MAX {
            return;
        }
        let mut merged = HashTable::with_capacity(together);
        for half in [index, buddy] {
            for element in std::mem::take(&mut self.segments[half].elements) {
                let hash = hash_of(&element);
                merged.insert_unique(hash.get(), element, |element| hash_of(element).get());
            }
        }
        self.segments[index] = Segment { elements: merged, depth: depth - 1, prefix: prefix >> 1 };
        let slots = self.slots_of(&self.segments[index]);
        self.directory[slots].fill(index as u32);
        // The last segment moves to the free slot.
        self.segments.swap_remove(buddy);
        if buddy < self.segments.len() {
            let slots = self.slots_of(&self.segments[buddy]);
            self.directory[slots].fill(buddy as u32);
        }
    }

    /// The slots of the directory that point to a segment.
    fn slots_of(&self, segment: &Segment<E>) -> std::ops::Range<usize> {
        let width = self.depth - segment.depth;
        let first = (segment.prefix as usize) << width;
        first..first + (1 << width)
    }
}

impl<E> Segment<E> {
    /// The first position of this segment's range.
    fn start(&self) -> u32 {
        (u64::from(self.prefix) << (POSITION_BITS - self.depth)) as u32
    }

    /// The first position after this segment's range; `None` when it is the last.
    fn end(&self) -> Option<u32> {
        let end = (u64::from(self.prefix) + 1) << (POSITION_BITS - self.depth);
        u32::try_from(end).ok()
    }
}

#[cfg(test)]
mod same_position_tests {
    use super::*;

    /// Splitting does not part elements that share a position: a table of them takes memory in proportion to their
    /// number.
    #[test]
    fn elements_of_one_position_take_no_more_memory_than_others() {
        let hash = NameHash::from_raw(0x1234_5678_9abc_def0);
        let (mut same, mut spread) = (Segmented::default(), Segmented::default());
        let hash_of = |number: &u64| NameHash::from_raw(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for number in 0..2000u64 {
            same.insert(hash, number, |_| hash);
            spread.insert(hash_of(&number), number, hash_of);
            assert!(same.heap_bytes() < 64 * 1024, "{number}: {}", same.heap_bytes());
        }
        assert!(same.find(hash, |number| *number == 1999).is_some());
        assert!(spread.segments.iter().all(|segment| segment.elements.len() <= SEGMENT_MAX));
        for number in 0..2000u64 {
            assert_eq!(same.remove(hash, |one| *one == number, |_| hash), Some(number));
        }
        assert_eq!(same.len(), 0);
    }
}
