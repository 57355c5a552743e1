//! The groups of an index by their names. Knows hashes and slots; refuses to know what a group has.
//!
//! In many tables, each with its part of the names: a table that grows hashes all of its names again, and whoever adds the
//! group waits for that with the lock.

use hashbrown::HashTable;
use std::hash::BuildHasher;

/// The position of a group among those of its database.
pub(super) type Slot = u32;

const TABLES_BITS: u32 = 8;
/// A table keeps at most this many times the memory that it needs.
const SPARE: usize = 4;

/// Slots by name.
#[derive(Default)]
pub(super) struct Names {
    /// Empty until the first name.
    tables: Vec<HashTable<Slot>>,
    hasher: foldhash::fast::RandomState,
    len: usize,
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The slot of a name for which `is_it` holds.
    pub(super) fn find(&self, name: &[u8], is_it: impl Fn(Slot) -> bool) -> Option<Slot> {
        let hash = self.hasher.hash_one(name);
        self.tables.get(table_of(hash))?.find(hash, |slot| is_it(*slot)).copied()
    }

    /// Adds a name that is not there. `name_of` knows those that are.
    pub(super) fn add<'n>(&mut self, name: &[u8], slot: Slot, name_of: impl Fn(Slot) -> &'n [u8]) {
        if self.tables.is_empty() {
            self.tables.resize_with(1 << TABLES_BITS, HashTable::new);
        }
        let (hash, hasher) = (self.hasher.hash_one(name), &self.hasher);
        let hash_of = |slot: &Slot| hasher.hash_one(name_of(*slot));
        self.tables[table_of(hash)].insert_unique(hash, slot, hash_of);
        self.len += 1;
    }

    /// Removes a name that is there. `name_of` knows the others.
    pub(super) fn remove<'n>(&mut self, name: &[u8], slot: Slot, name_of: impl Fn(Slot) -> &'n [u8]) {
        let (hash, hasher) = (self.hasher.hash_one(name), &self.hasher);
        let table = &mut self.tables[table_of(hash)];
        let entry = table.find_entry(hash, |other| *other == slot);
        entry.expect("a group is listed under its name").remove();
        if table.len() * SPARE < table.capacity() {
            table.shrink_to(table.len() * 2, |slot| hasher.hash_one(name_of(*slot)));
        }
        self.len -= 1;
        if self.len == 0 {
            self.tables = Vec::new();
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.tables.iter().map(HashTable::capacity).sum()
    }
}

/// The table of a name, by bits of the hash that a small table does not use.
fn table_of(hash: u64) -> usize {
    (hash >> 32) as usize % (1 << TABLES_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_until_they_are_removed_and_then_take_nothing() {
        let mut names = Names::default();
        let name = |slot: Slot| format!("tenant:{slot}");
        let all: Vec<String> = (0..20_000).map(name).collect();
        let name_of = |slot: Slot| all[slot as usize].as_bytes();
        for slot in 0..20_000 {
            names.add(name(slot).as_bytes(), slot, name_of);
        }
        assert_eq!(names.len(), 20_000);
        for slot in 0..20_000 {
            assert_eq!(names.find(name(slot).as_bytes(), |found| found == slot), Some(slot));
        }
        assert_eq!(names.find(b"another", |slot| name_of(slot) == b"another"), None);
        for slot in 0..19_990 {
            names.remove(name(slot).as_bytes(), slot, name_of);
        }
        assert!(names.capacity() < 2_000, "{}", names.capacity());
        assert_eq!(names.find(name(5).as_bytes(), |slot| slot == 5), None);
        assert_eq!(names.find(name(19_995).as_bytes(), |slot| slot == 19_995), Some(19_995));
        (19_990..20_000).for_each(|slot| names.remove(name(slot).as_bytes(), slot, name_of));
        assert!(names.is_empty() && names.capacity() == 0);
    }
}
