//! The groups of an index by their names. Knows hashes and slots; refuses to know what a group has.
//!
//! In many tables, each with its part of the names, so that no group that is added waits for a table of all groups to grow.

use hashbrown::HashTable;
use std::hash::BuildHasher;

use super::queues::Slot;

const TABLES_BITS: u32 = 6;
/// A table keeps at most this many times the memory that it needs.
const SPARE: usize = 4;

/// Slots by name.
#[derive(Default)]
pub(super) struct Names {
    /// Empty until the first name. Each slot with a part of the hash of its name: a table grows without a look at the names.
    tables: Vec<HashTable<(u32, Slot)>>,
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
        let (table, part) = self.place(name);
        let is_it = |(other, slot): &(u32, Slot)| *other == part && is_it(*slot);
        self.tables.get(table)?.find(spread(part), is_it).map(|(_, slot)| *slot)
    }

    /// Adds a name that is not there.
    pub(super) fn add(&mut self, name: &[u8], slot: Slot) {
        if self.tables.is_empty() {
            self.tables.resize_with(1 << TABLES_BITS, HashTable::new);
        }
        let (table, part) = self.place(name);
        self.tables[table].insert_unique(spread(part), (part, slot), |(part, _)| spread(*part));
        self.len += 1;
    }

    /// Removes a name that is there.
    pub(super) fn remove(&mut self, name: &[u8], slot: Slot) {
        let (number, part) = self.place(name);
        let table = &mut self.tables[number];
        let entry = table.find_entry(spread(part), |(_, other)| *other == slot);
        entry.expect("a group is listed under its name").remove();
        if table.len() * SPARE < table.capacity() {
            table.shrink_to(table.len() * 2, |(part, _)| spread(*part));
        }
        self.len -= 1;
        if self.len == 0 {
            self.tables = Vec::new();
        }
    }

    /// The table of a name, and the part of its hash that the table keeps.
    fn place(&self, name: &[u8]) -> (usize, u32) {
        let hash = self.hasher.hash_one(name);
        ((hash >> (64 - TABLES_BITS)) as usize, hash as u32)
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.tables.iter().map(HashTable::capacity).sum()
    }
}

/// A hash for a table, of which it uses the lowest and the highest bits.
fn spread(part: u32) -> u64 {
    u64::from(part) | u64::from(part) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_until_they_are_removed_and_then_take_nothing() {
        let mut names = Names::default();
        let name = |slot: Slot| format!("tenant:{slot}");
        for slot in 0..20_000 {
            names.add(name(slot).as_bytes(), slot);
        }
        assert_eq!(names.len(), 20_000);
        for slot in 0..20_000 {
            assert_eq!(names.find(name(slot).as_bytes(), |found| found == slot), Some(slot));
        }
        assert_eq!(names.find(b"another", |_| true), None);
        for slot in 0..19_990 {
            names.remove(name(slot).as_bytes(), slot);
        }
        assert!(names.capacity() < 2_000, "{}", names.capacity());
        assert_eq!(names.find(name(5).as_bytes(), |_| true), None);
        assert_eq!(names.find(name(19_995).as_bytes(), |_| true), Some(19_995));
        (19_990..20_000).for_each(|slot| names.remove(name(slot).as_bytes(), slot));
        assert!(names.is_empty() && names.capacity() == 0);
    }
}
