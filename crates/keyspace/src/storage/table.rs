//! A table of entries by name. Knows how names are hashed; refuses to know what a value is. Growth and iteration are in
//! `segmented`.

use super::entry::Entry;
use super::ids::{NameId, NameIds};
use super::segmented::Segmented;
use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;
use std::hash::{BuildHasher, Hasher};

/// The hash of a name, the same in every table of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameHash(u64);

impl NameHash {
    /// Hashes `name` with the secret seed of this process.
    #[inline]
    pub fn of(name: &[u8]) -> NameHash {
        NameHasher::of_process().hash(name)
    }

    /// The whole hash, for ordered structures beside the table.
    #[inline]
    pub fn get(self) -> u64 {
        self.0
    }

    /// Restores a hash that was stored as a number.
    pub fn from_raw(raw: u64) -> NameHash {
        NameHash(raw)
    }

    /// The position of an entry in the order of iteration. These bits are used neither for the slot in `hashbrown`
    /// (low) nor its tag (high), nor for the shard.
    #[inline]
    pub fn position(self) -> u32 {
        (self.0 >> 16) as u32
    }

    /// An id, with the number of a shard in the place of the bits that select it. With a hash tag in the name these are
    /// others.
    #[inline]
    pub fn with_shard(id: NameId, shard: usize) -> NameId {
        id & !SHARD_MASK | (shard as u64) << SHARD_SHIFT
    }

    /// The shard of such an id.
    #[inline]
    pub fn shard_of(id: NameId) -> usize {
        ((id & SHARD_MASK) >> SHARD_SHIFT) as usize
    }

    /// The bits that select the shard.
    #[inline]
    pub fn shard_bits(self) -> usize {
        ((self.0 & SHARD_MASK) >> SHARD_SHIFT) as usize
    }
}

const SHARD_SHIFT: u32 = 48;
const SHARD_MASK: u64 = 0x1ff << SHARD_SHIFT;

/// Makes the shared seed another number than the seed of the hasher.
const SHARED_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// A seeded hash function for names.
#[derive(Clone)]
pub struct NameHasher {
    state: SeedableRandomState,
    seed: u64,
}

impl NameHasher {
    /// The number of this hash function. Snapshots store it with the seed: a reader must compute the same positions as
    /// the writer. IMPORTANT: another function gets another number, and this one stays supported; a test pins the
    /// hashes of known names.
    pub const FAMILY: u8 = 2;

    /// The function with this seed.
    pub fn with_seed(seed: u64) -> NameHasher {
        NameHasher::of_family(NameHasher::FAMILY, seed).expect("the newest family is known")
    }

    /// The function of a family; `None` for an unknown one. In family 1 the constants that a name is multiplied with
    /// are public, so that a client can construct names which collide under every seed; in family 2 they are made of
    /// the seed.
    pub fn of_family(family: u8, seed: u64) -> Option<NameHasher> {
        let shared = match family {
            1 => SharedSeed::global_fixed(),
            // One for the process, and one for each snapshot that is read.
            2 => &*Box::leak(Box::new(SharedSeed::from_u64(seed ^ SHARED_SEED))),
            _ => return None,
        };
        Some(NameHasher { state: SeedableRandomState::with_seed(seed, shared), seed })
    }

    /// The function that this process uses.
    #[inline]
    pub fn of_process() -> &'static NameHasher {
        static HASHER: std::sync::OnceLock<NameHasher> = std::sync::OnceLock::new();
        HASHER.get_or_init(|| NameHasher::with_seed(foldhash::fast::RandomState::default().hash_one(0u64)))
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    #[inline]
    pub fn hash(&self, name: &[u8]) -> NameHash {
        #[cfg(test)]
        let name = if name.starts_with(SAME_HASH) { SAME_HASH } else { name };
        let mut hasher = self.state.build_hasher();
        hasher.write(name);
        NameHash(hasher.finish())
    }
}

/// In tests, names with this prefix have the same hash.
#[cfg(test)]
pub(crate) const SAME_HASH: &[u8] = b"\0same-hash";

/// Entries by name, and an id for each: see [`Segmented`] and [`ids`](super::ids).
pub struct Table<O> {
    pub(super) entries: Segmented<Entry<O>>,
    pub(super) ids: NameIds,
}

impl<O> Default for Table<O> {
    fn default() -> Table<O> {
        Table { entries: Segmented::default(), ids: NameIds::default() }
    }
}

impl<O: Clone> Clone for Table<O> {
    fn clone(&self) -> Table<O> {
        Table { entries: self.entries.clone(), ids: self.ids.clone() }
    }
}

pub(super) fn hash_of<O>(entry: &Entry<O>) -> NameHash {
    NameHash::of(entry.name())
}

impl<O> Table<O> {
    /// How many entries there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry of that name.
    #[inline]
    pub fn get(&self, hash: NameHash, name: &[u8]) -> Option<&Entry<O>> {
        self.entries.find(hash, |entry| entry.name() == name)
    }

    /// The entry of that name, mutable.
    #[inline]
    pub fn get_mut(&mut self, hash: NameHash, name: &[u8]) -> Option<&mut Entry<O>> {
        self.entries.find_mut(hash, |entry| entry.name() == name)
    }

    /// The id of a name that is in the table; valid until the name is removed.
    #[inline]
    pub fn id_of(&self, hash: NameHash, name: &[u8]) -> NameId {
        self.ids.of(hash, name)
    }

    /// The entry of an id.
    #[inline]
    pub fn by_id(&self, id: NameId) -> Option<&Entry<O>> {
        self.ids.entry(&self.entries, id)
    }

    /// The entry of an id with the number of this table's shard: see [`NameHash::with_shard`].
    pub fn by_id_with_shard(&self, id: NameId) -> Option<&Entry<O>> {
        self.ids.entry_without(&self.entries, id, SHARD_MASK)
    }

    /// Prefetches the entry of that hash, if there is one.
    #[inline]
    pub fn prefetch(&self, hash: NameHash) {
        // Prefetches every entry with the same tag; comparing names would wait for memory.
        self.entries.find(hash, |entry| {
            entry.prefetch();
            false
        });
    }

    /// Prefetches the object of the entry of that hash, once the entry itself has been fetched.
    #[inline]
    pub fn prefetch_object(&self, hash: NameHash) {
        self.entries.find(hash, |entry| {
            entry.prefetch_object();
            false
        });
    }

    /// Visits the object of the entry of that hash, once it has been fetched.
    #[inline]
    pub fn visit_object(&self, hash: NameHash, visit: impl Fn(&O)) {
        self.entries.find(hash, |entry| {
            if let Some(object) = entry.object() {
                visit(object);
            }
            false
        });
    }

    /// Adds an entry whose name is not in the table yet.
    pub fn insert(&mut self, hash: NameHash, entry: Entry<O>) -> &mut Entry<O> {
        debug_assert!(self.get(hash, entry.name()).is_none(), "the name is there already");
        self.ids.assign(&self.entries, hash, entry.name());
        self.entries.insert(hash, entry, hash_of)
    }

    /// Removes the entry of that name and returns it.
    pub fn remove(&mut self, hash: NameHash, name: &[u8]) -> Option<Entry<O>> {
        let removed = self.entries.remove(hash, |entry| entry.name() == name, hash_of)?;
        self.ids.release(name);
        Some(removed)
    }

    /// Removes all entries, and keeps the memory of a small table.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.ids = NameIds::default();
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<O>> {
        self.entries.iter()
    }

    /// Visits entries from `cursor` on: see [`Segmented::scan`].
    pub fn scan(&self, cursor: u32, count: usize, visit: impl FnMut(&Entry<O>)) -> Option<u32> {
        self.entries.scan(cursor, count, hash_of, visit)
    }

    /// The last position of the range of positions that is kept together with `position`: the smallest step that
    /// [`Table::visit_range`] takes without looking at hashes.
    pub fn range_end(&self, position: u32) -> u32 {
        self.entries.range_end(position)
    }

    /// Visits the entries whose positions are `from` to `to`, both included, in no order.
    pub fn visit_range<'t>(&'t self, from: u32, to: u32, visit: impl FnMut(&'t Entry<O>)) {
        self.entries.visit_range(from, to, hash_of, visit);
    }

    /// A random entry. Fair among the entries of a segment; segments are chosen in proportion to their range.
    pub fn random(&self, random: &mut fastrand::Rng) -> Option<&Entry<O>> {
        self.entries.random(random)
    }

    /// Heap bytes of the table itself, without its entries.
    pub fn heap_bytes(&self) -> usize {
        self.entries.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    /// Snapshots on disk depend on these hashes: if a new version of the crate changes them, it needs another number.
    #[test]
    fn the_hash_function_is_what_it_always_was() {
        let names: [&[u8]; 5] = [b"", b"a", b"job:1234567", b"a name of more than sixteen bytes", &[0xff; 100]];
        let made = |family| {
            let hasher = NameHasher::of_family(family, 42).expect("it is known");
            names.map(|name| hasher.hash(name).get())
        };
        let first = [
            8_457_901_266_710_262_221,
            634_688_044_347_179_469,
            3_760_531_872_047_137_988,
            2_570_470_136_454_680_783,
            1_864_659_930_143_030_463,
        ];
        assert_eq!(made(1), first);
        let second = [
            7_214_805_911_414_909_563,
            3_282_465_867_218_165_188,
            14_038_686_572_565_446_750,
            8_294_673_243_435_574_977,
            2_682_609_480_780_527_505,
        ];
        assert_eq!(made(2), second);
        assert_eq!(NameHasher::FAMILY, 2, "the newest is the last of these");
    }

    /// Names that end in a constant of foldhash have the hash 0 under every seed where the constants are public.
    #[test]
    fn names_cannot_be_constructed_to_collide() {
        let names: Vec<[u8; 16]> =
            (0u64..1000).map(|number| (u128::from(number) | 0x3f84_d5b5_b547_0917_u128 << 64).to_le_bytes()).collect();
        let hashes = |family, seed| {
            let hasher = NameHasher::of_family(family, seed).expect("it is known");
            names.iter().map(|name| hasher.hash(name).get()).collect::<BTreeSet<u64>>().len()
        };
        for seed in [1, 42, u64::MAX] {
            assert_eq!((hashes(1, seed), hashes(2, seed)), (1, names.len()));
        }
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

    type Table = super::Table<()>;
    use std::collections::{BTreeMap, BTreeSet};

    fn put(table: &mut Table, name: &[u8]) {
        let hash = NameHash::of(name);
        if table.get(hash, name).is_none() {
            table.insert(hash, Entry::new(name, Kind::inline(0), b"v", None));
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
        assert!(table.is_empty() && table.heap_bytes() == 0);
    }

    #[test]
    fn a_cleared_table_is_empty_and_can_be_filled_again() {
        for count in [0, 1, 16, 1_000] {
            let mut table = Table::default();
            (0..count).for_each(|name: u32| put(&mut table, name.to_string().as_bytes()));
            table.clear();
            assert!(table.is_empty() && names(&table, 10).is_empty());
            put(&mut table, b"1");
            assert_eq!(names(&table, 10), [b"1"]);
        }
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
