//! The names with the largest sums, in bounded memory. Knows names, databases and weights; refuses to know what is weighed.
//!
//! The algorithm is that of Misra and Gries with weights: when the table is full, the median of all sums is taken from each, and what
//! has nothing left is removed. So a sum is never too large, and too small by at most `error`, which is below the total divided by
//! half of the table.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hasher};

/// Longer names are weighed in the total alone, so that a table has a limit in bytes.
const NAME_BYTES_MAX: usize = 512;

/// A name in a database, and what was added for it.
struct Summed {
    db: usize,
    name: Box<[u8]>,
    sum: u64,
}

/// The table. Holds at most as many names as it was made for.
pub(super) struct TopNames {
    table: HashTable<Summed>,
    hashes: RandomState,
    names_max: usize,
    total: u64,
    /// By how much a sum may be too small.
    error: u64,
}

impl TopNames {
    /// An empty table for so many names, at least two.
    pub(super) fn new(names_max: usize) -> TopNames {
        TopNames {
            table: HashTable::new(),
            hashes: RandomState::default(),
            names_max: names_max.max(2),
            total: 0,
            error: 0,
        }
    }

    /// Adds a weight to a name.
    pub(super) fn add(&mut self, db: usize, name: &[u8], weight: u64) {
        self.total += weight;
        if name.len() > NAME_BYTES_MAX || weight == 0 {
            return;
        }
        let hash = hash_of(&self.hashes, db, name);
        if let Some(known) = self.table.find_mut(hash, |known| known.db == db && *known.name == *name) {
            known.sum += weight;
            return;
        }
        if self.table.len() >= self.names_max {
            self.make_room();
        }
        let hashes = &self.hashes;
        let rehash = |known: &Summed| hash_of(hashes, known.db, &known.name);
        self.table.insert_unique(hash, Summed { db, name: name.into(), sum: weight }, rehash);
    }

    /// All weights that were added, those of names that are no longer in the table included.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The names with their databases and sums, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &[u8], u64)> {
        self.table.iter().map(|known| (known.db, &*known.name, known.sum))
    }

    /// Removes at least half of the names: those with the smallest sums.
    #[cold]
    fn make_room(&mut self) {
        let mut sums: Vec<u64> = self.table.iter().map(|known| known.sum).collect();
        let middle = sums.len() / 2;
        let (_, median, _) = sums.select_nth_unstable(middle);
        let median = *median;
        self.error += median;
        self.table.retain(|known| {
            known.sum = known.sum.saturating_sub(median);
            known.sum > 0
        });
    }
}

fn hash_of(hashes: &RandomState, db: usize, name: &[u8]) -> u64 {
    let mut hasher = hashes.build_hasher();
    hasher.write_usize(db);
    hasher.write(name);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn sums(top: &TopNames) -> Vec<(usize, Vec<u8>, u64)> {
        let mut sums: Vec<_> = top.iter().map(|(db, name, sum)| (db, name.to_vec(), sum)).collect();
        sums.sort();
        sums
    }

    #[test]
    fn few_names_are_counted_exactly() {
        let mut top = TopNames::new(4);
        for (db, name, weight) in [(0, "a", 3), (1, "a", 1), (0, "b", 2), (0, "a", 4), (0, "", 5), (0, "c", 0)] {
            top.add(db, name.as_bytes(), weight);
        }
        let expected = [(0, "", 5), (0, "a", 7), (0, "b", 2), (1, "a", 1)];
        assert_eq!(sums(&top), expected.map(|(db, name, sum)| (db, name.as_bytes().to_vec(), sum)));
        assert_eq!((top.total(), top.error), (15, 0));
    }

    #[test]
    fn a_long_name_is_in_the_total_alone() {
        let mut top = TopNames::new(4);
        top.add(0, &[b'x'; NAME_BYTES_MAX], 1);
        top.add(0, &[b'y'; NAME_BYTES_MAX + 1], 10);
        assert_eq!((sums(&top).len(), top.total()), (1, 11));
    }

    /// However the names come: there are never too many, no sum is too large, none is smaller than by the error, and the error is
    /// below the bound that the table promises.
    #[test]
    fn it_agrees_with_exact_sums() {
        let mut random = test_random::Random::new();
        for _ in 0..30 {
            let names_max = 2 + random.below(100);
            let names = 1 + random.below(2000) as u64;
            let mut top = TopNames::new(names_max);
            let mut exact: HashMap<(usize, Vec<u8>), u64> = HashMap::new();
            for _ in 0..5000 {
                // Small numbers are much more frequent than large ones.
                let number = (random.next() % names).min(random.next() % names).min(random.next() % names);
                let (db, name, weight) = (random.below(2), number.to_string().into_bytes(), 1 + random.next() % 1000);
                top.add(db, &name, weight);
                *exact.entry((db, name)).or_default() += weight;
                assert!(top.table.len() <= names_max);
            }
            assert_eq!(top.total(), exact.values().sum::<u64>());
            assert!(top.error <= top.total() / (names_max as u64 / 2).max(1), "{} of {}", top.error, top.total());
            let found: HashMap<_, _> = top.iter().map(|(db, name, sum)| ((db, name.to_vec()), sum)).collect();
            for (at, true_sum) in &exact {
                let sum = found.get(at).copied().unwrap_or(0);
                assert!(sum <= *true_sum && sum + top.error >= *true_sum, "{sum} for {true_sum}");
            }
        }
    }
}
