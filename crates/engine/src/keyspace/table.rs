//! A table of entries by name that never stops to grow. Knows hashing and order of iteration; refuses to know
//! what a value is.
//!
//! It is a row of small hash tables, each for one range of *positions* (32 bits of the hash). A table that is
//! full is split in two, so growth moves a hundred entries at a time instead of all of them, and iteration by
//! position survives every split and merge: an element that stays in the table throughout a scan is met by it
//! exactly once. A single large `HashMap` gives neither.

use super::entry::Entry;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hasher};

/// Most entries a segment holds before it is split: seven eighths of 128 slots, which is when `hashbrown` would
/// otherwise double it.
const SEGMENT_MAX: usize = 112;
/// Two neighbours are merged when together they hold no more than this.
const MERGE_MAX: usize = 28;
/// Bits of position; the deepest a table can be split.
const POSITION_BITS: u32 = 32;

/// The hash of a name, the same in every table of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameHash(u64);

impl NameHash {
    /// Hashes `name` with the seed of this process, so that nobody outside can aim at one segment.
    #[inline]
    pub fn of(name: &[u8]) -> NameHash {
        NameHasher::of_process().hash(name)
    }

    /// The whole hash, for indexes beside the table.
    #[inline]
    pub fn get(self) -> u64 {
        self.0
    }

    /// A hash that was kept as a number.
    pub fn from_raw(raw: u64) -> NameHash {
        NameHash(raw)
    }

    /// Where the entry stands in the order of iteration. These bits are neither those that `hashbrown` picks
    /// the slot with (low) nor its tag (high), nor those that pick the shard.
    #[inline]
    pub fn position(self) -> u32 {
        (self.0 >> 16) as u32
    }

    /// Bits to pick a shard with.
    #[inline]
    pub fn shard_bits(self) -> usize {
        (self.0 >> 48) as usize & 0x1ff
    }
}

/// A hash function for names: one of a family that a seed picks from.
#[derive(Clone)]
pub struct NameHasher {
    state: foldhash::fast::FixedState,
    seed: u64,
}

impl NameHasher {
    /// Which family of functions this is. Snapshots tell it beside the seed: what reads one has to find keys where
    /// its writer found them. IMPORTANT: another function gets another number, and this one stays readable; a test
    /// pins what it makes of known names.
    pub const FAMILY: u8 = 1;

    /// The function of that seed.
    pub fn with_seed(seed: u64) -> NameHasher {
        NameHasher { state: foldhash::fast::FixedState::with_seed(seed), seed }
    }

    /// The function that this process uses.
    #[inline]
    pub fn of_process() -> &'static NameHasher {
        static HASHER: std::sync::OnceLock<NameHasher> = std::sync::OnceLock::new();
        HASHER.get_or_init(|| NameHasher::with_seed(foldhash::fast::RandomState::default().hash_one(0u64)))
    }

    /// What picks the function from its family.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    #[inline]
    pub fn hash(&self, name: &[u8]) -> NameHash {
        let mut hasher = self.state.build_hasher();
        hasher.write(name);
        NameHash(hasher.finish())
    }
}

#[derive(Clone)]
struct Segment {
    entries: HashTable<Entry>,
    /// How many leading bits of the position all entries here share.
    depth: u32,
    /// Those bits, in the low end.
    prefix: u32,
}

/// Entries by name. See the module's description.
#[derive(Default, Clone)]
pub struct Table {
    segments: Vec<Segment>,
    /// Leading `depth` bits of a position to the index of its segment.
    directory: Vec<u32>,
    depth: u32,
    len: usize,
}

impl Table {
    /// How many entries there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry of that name.
    #[inline]
    pub fn get(&self, hash: NameHash, name: &[u8]) -> Option<&Entry> {
        let segment = self.segments.get(self.segment_of(hash.position())?)?;
        segment.entries.find(hash.0, |entry| entry.name() == name)
    }

    /// The entry of that name, to be changed.
    #[inline]
    pub fn get_mut(&mut self, hash: NameHash, name: &[u8]) -> Option<&mut Entry> {
        let index = self.segment_of(hash.position())?;
        self.segments[index].entries.find_mut(hash.0, |entry| entry.name() == name)
    }

    /// An entry with that hash for which `test` holds.
    pub fn find(&self, hash: NameHash, test: impl Fn(&Entry) -> bool) -> Option<&Entry> {
        let index = self.segment_of(hash.position())?;
        // The table compares a few bits of the hash only.
        self.segments[index].entries.find(hash.0, |entry| test(entry) && NameHash::of(entry.name()) == hash)
    }

    /// Has the CPU fetch the entry of that hash, if there is one, without waiting for it.
    #[inline]
    pub fn prefetch(&self, hash: NameHash) {
        let Some(segment) = self.segment_of(hash.position()).and_then(|index| self.segments.get(index)) else { return };
        // Whatever has the same tag is fetched; looking at names would wait for them.
        segment.entries.find(hash.0, |entry| {
            entry.prefetch();
            false
        });
    }

    /// Adds an entry whose name is not in the table yet.
    pub fn insert(&mut self, hash: NameHash, entry: Entry) -> &mut Entry {
        debug_assert!(self.get(hash, entry.name()).is_none(), "the name is there already");
        if self.segments.is_empty() {
            self.segments.push(Segment { entries: HashTable::new(), depth: 0, prefix: 0 });
            self.directory.push(0);
        }
        let position = hash.position();
        let mut index = self.directory[self.slot_of(position)] as usize;
        while self.segments[index].entries.len() >= SEGMENT_MAX && self.segments[index].depth < POSITION_BITS {
            self.split(index);
            index = self.directory[self.slot_of(position)] as usize;
        }
        self.len += 1;
        self.segments[index].entries.insert_unique(hash.0, entry, rehash).into_mut()
    }

    /// Takes the entry of that name out.
    pub fn remove(&mut self, hash: NameHash, name: &[u8]) -> Option<Entry> {
        let index = self.segment_of(hash.position())?;
        let segment = &mut self.segments[index];
        let occupied = segment.entries.find_entry(hash.0, |entry| entry.name() == name).ok()?;
        let (entry, _) = occupied.remove();
        self.len -= 1;
        if self.len == 0 {
            *self = Table::default();
        } else if self.segments[index].entries.len() < MERGE_MAX / 2 {
            self.merge(index);
        }
        Some(entry)
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.segments.iter().flat_map(|segment| segment.entries.iter())
    }

    /// Visits entries in order of position from `cursor` on, at least `count` of them if there are so many, and
    /// returns the cursor to go on with; `None` at the end. An entry that is in the table during the whole
    /// iteration is visited exactly once, whatever else comes and goes.
    pub fn scan(&self, cursor: u32, count: usize, mut visit: impl FnMut(&Entry)) -> Option<u32> {
        let mut next = cursor;
        let mut visited = 0;
        let mut batch: Vec<(u32, &Entry)> = Vec::new();
        loop {
            let segment = &self.segments[self.segment_of(next)?];
            batch.clear();
            batch.extend(
                segment
                    .entries
                    .iter()
                    .map(|entry| (NameHash::of(entry.name()).position(), entry))
                    .filter(|(position, _)| *position >= next),
            );
            batch.sort_unstable_by_key(|(position, _)| *position);
            let mut rest = batch.as_slice();
            while let [(position, entry), tail @ ..] = rest {
                visit(entry);
                visited += 1;
                rest = tail;
                // Entries that share a position are visited together: the cursor cannot point between them.
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

    /// The last position of the range of positions that is kept together with `position`: the smallest step that
    /// [`Table::visit_range`] takes without looking at hashes.
    pub fn range_end(&self, position: u32) -> u32 {
        let segment = self.segment_of(position).and_then(|index| self.segments[index].end());
        segment.map_or(u32::MAX, |end| end - 1)
    }

    /// Visits the entries whose positions are `from` to `to`, both included, in no order.
    pub fn visit_range<'t>(&'t self, from: u32, to: u32, mut visit: impl FnMut(&'t Entry)) {
        let mut next = from;
        while let Some(index) = self.segment_of(next) {
            let segment = &self.segments[index];
            let end = segment.end().map_or(u32::MAX, |end| end - 1);
            if segment.start() >= from && end <= to {
                segment.entries.iter().for_each(&mut visit);
            } else {
                let within = |entry: &&Entry| (from..=to).contains(&NameHash::of(entry.name()).position());
                segment.entries.iter().filter(within).for_each(&mut visit);
            }
            match end.checked_add(1) {
                Some(start) if start <= to => next = start,
                _ => break,
            }
        }
    }

    /// A random entry. Fair among the entries of a segment; segments are met in proportion to their range.
    pub fn random(&self, random: &mut fastrand::Rng) -> Option<&Entry> {
        if self.len == 0 {
            return None;
        }
        loop {
            let segment = &self.segments[self.segment_of(random.u32(..))?];
            if !segment.entries.is_empty() {
                return segment.entries.iter().nth(random.usize(..segment.entries.len()));
            }
        }
    }

    /// Heap bytes of the table itself, without its entries.
    pub fn heap_bytes(&self) -> usize {
        let slots: usize = self.segments.iter().map(|segment| segment.entries.allocation_size()).sum();
        slots + self.segments.capacity() * size_of::<Segment>() + self.directory.capacity() * 4
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
    fn split(&mut self, index: usize) {
        let Segment { depth, prefix, .. } = self.segments[index];
        if depth == self.depth {
            self.directory = self.directory.iter().flat_map(|segment| [*segment, *segment]).collect();
            self.depth += 1;
        }
        let entries = std::mem::take(&mut self.segments[index].entries);
        let (mut low, mut high) =
            (HashTable::with_capacity(SEGMENT_MAX / 2), HashTable::with_capacity(SEGMENT_MAX / 2));
        for entry in entries {
            let hash = NameHash::of(entry.name());
            let half = if hash.position() >> (POSITION_BITS - depth - 1) & 1 == 0 { &mut low } else { &mut high };
            half.insert_unique(hash.0, entry, rehash);
        }
        let fresh = self.segments.len() as u32;
        self.segments[index] = Segment { entries: low, depth: depth + 1, prefix: prefix << 1 };
        let high = Segment { entries: high, depth: depth + 1, prefix: prefix << 1 | 1 };
        let slots = self.slots_of(&high);
        self.directory[slots].fill(fresh);
        self.segments.push(high);
    }

    /// Merges a small segment with its other half, if that is small too.
    fn merge(&mut self, index: usize) {
        let Segment { depth, prefix, .. } = self.segments[index];
        if depth == 0 {
            return;
        }
        let buddy_prefix = prefix ^ 1;
        let buddy = self.directory[(buddy_prefix as usize) << (self.depth - depth)] as usize;
        let together = self.segments[index].entries.len() + self.segments[buddy].entries.len();
        if self.segments[buddy].depth != depth || together > MERGE_MAX {
            return;
        }
        let mut merged = HashTable::with_capacity(together);
        for half in [index, buddy] {
            for entry in std::mem::take(&mut self.segments[half].entries) {
                let hash = NameHash::of(entry.name());
                merged.insert_unique(hash.0, entry, rehash);
            }
        }
        self.segments[index] = Segment { entries: merged, depth: depth - 1, prefix: prefix >> 1 };
        let slots = self.slots_of(&self.segments[index]);
        self.directory[slots].fill(index as u32);
        // The last segment takes the place that became free.
        self.segments.swap_remove(buddy);
        if buddy < self.segments.len() {
            let slots = self.slots_of(&self.segments[buddy]);
            self.directory[slots].fill(buddy as u32);
        }
    }

    /// The slots of the directory that point to a segment.
    fn slots_of(&self, segment: &Segment) -> std::ops::Range<usize> {
        let width = self.depth - segment.depth;
        let first = (segment.prefix as usize) << width;
        first..first + (1 << width)
    }
}

impl Segment {
    /// The first position of this segment's range.
    fn start(&self) -> u32 {
        (u64::from(self.prefix) << (POSITION_BITS - self.depth)) as u32
    }

    /// The first position behind this segment's range; `None` when it is the last.
    fn end(&self) -> Option<u32> {
        let end = (u64::from(self.prefix) + 1) << (POSITION_BITS - self.depth);
        u32::try_from(end).ok()
    }
}

fn rehash(entry: &Entry) -> u64 {
    NameHash::of(entry.name()).0
}

#[cfg(test)]
mod tests {
    /// Snapshots on disk depend on it: should a new version of the crate make something else of these names, it is
    /// another family and needs another number.
    #[test]
    fn the_hash_function_is_what_it_always_was() {
        let hasher = NameHasher::with_seed(42);
        let names: [&[u8]; 5] = [b"", b"a", b"job:1234567", b"a name of more than sixteen bytes", &[0xff; 100]];
        let made = names.map(|name| hasher.hash(name).get());
        let ever = [
            8_457_901_266_710_262_221,
            634_688_044_347_179_469,
            3_760_531_872_047_137_988,
            2_570_470_136_454_680_783,
            1_864_659_930_143_030_463,
        ];
        assert_eq!(made, ever, "family {}", NameHasher::FAMILY);
    }

    #[test]
    fn ranges_together_hold_every_entry_once() {
        let mut random = fastrand::Rng::with_seed(5);
        for count in [0, 1, 5, 150, 3_000] {
            let mut table = Table::default();
            (0..count).for_each(|name: u32| put(&mut table, name.to_string().as_bytes()));
            let (mut found, mut from) = (Vec::new(), 0u32);
            loop {
                // Whole segments, or any piece of the range.
                let to = if random.bool() { table.range_end(from) } else { from.saturating_add(random.u32(..1 << 28)) };
                table.visit_range(from, to, |entry| {
                    assert!((from..=to).contains(&NameHash::of(entry.name()).position()));
                    found.push(entry.name().to_vec());
                });
                let Some(next) = to.checked_add(1) else { break };
                from = next;
            }
            found.sort();
            let mut expected: Vec<_> = (0..count).map(|name| name.to_string().into_bytes()).collect();
            expected.sort();
            assert_eq!(found, expected);
        }
    }

    use super::super::entry::Kind;
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn put(table: &mut Table, name: &[u8]) {
        let hash = NameHash::of(name);
        if table.get(hash, name).is_none() {
            table.insert(hash, Entry::new(name, Kind::Text, b"v", None));
        }
    }

    fn names(table: &Table, count: usize) -> Vec<Vec<u8>> {
        let (mut found, mut cursor) = (Vec::new(), Some(0));
        while let Some(at) = cursor {
            cursor = table.scan(at, count, |entry| found.push(entry.name().to_vec()));
        }
        found
    }

    #[test]
    fn random_changes_agree_with_a_map() {
        let seed = 11;
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut table, mut model) = (Table::default(), BTreeMap::new());
        let mut range = 10;
        for step in 0..60_000 {
            if step % 5_000 == 0 {
                range = [10, 5_000, 40, 20_000, 300][random.usize(..5)];
            }
            let name = random.u32(..range).to_string().into_bytes();
            if random.u8(..10) < if range > 1_000 { 7 } else { 4 } {
                put(&mut table, &name);
                model.insert(name, ());
            } else {
                assert_eq!(table.remove(NameHash::of(&name), &name).is_some(), model.remove(&name).is_some());
            }
            assert_eq!(table.len(), model.len(), "seed {seed}");
        }
        let mut found = names(&table, 7);
        found.sort();
        assert_eq!(found, model.keys().cloned().collect::<Vec<_>>());
        for name in model.keys() {
            assert!(table.get(NameHash::of(name), name).is_some());
            table.remove(NameHash::of(name), name);
        }
        assert!(table.is_empty() && table.segments.is_empty());
    }

    #[test]
    fn a_scan_meets_what_stays_exactly_once_while_others_come_and_go() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut table = Table::default();
        let stay: BTreeSet<Vec<u8>> = (0..3_000).map(|i| format!("stay:{i}").into_bytes()).collect();
        stay.iter().for_each(|name| put(&mut table, name));
        let (mut met, mut cursor, mut passing) = (Vec::new(), Some(0), 0);
        while let Some(at) = cursor {
            cursor = table.scan(at, 60, |entry| met.push(entry.name().to_vec()));
            for _ in 0..40 {
                put(&mut table, format!("pass:{passing}").as_bytes());
                passing += 1;
            }
            for _ in 0..random.usize(..60) {
                let name = format!("pass:{}", random.usize(..passing)).into_bytes();
                table.remove(NameHash::of(&name), &name);
            }
        }
        let mut met: Vec<_> = met.into_iter().filter(|name| name.starts_with(b"stay")).collect();
        met.sort();
        assert_eq!(met, stay.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_random_entry_may_be_any() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut table = Table::default();
        assert!(table.random(&mut random).is_none());
        (0..500).for_each(|i| put(&mut table, format!("{i}").as_bytes()));
        let met: BTreeSet<Vec<u8>> = (0..20_000).map(|_| table.random(&mut random).unwrap().name().to_vec()).collect();
        assert!(met.len() > 490, "{}", met.len());
    }
}
