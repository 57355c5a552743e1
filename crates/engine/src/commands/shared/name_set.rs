//! A set of very many names. It grows a part at a time: a single table of a million names takes tens of milliseconds to
//! grow, which would block the worker's other clients. Knows nothing of what the names are for.

use hashbrown::HashTable;
use keyspace::storage::table::NameHash;

const PARTS: usize = 256;

/// Names, each once.
#[derive(Default)]
pub(crate) struct NameSet {
    /// Empty until the first name is added.
    parts: Vec<HashTable<Vec<u8>>>,
    len: usize,
}

impl NameSet {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        if self.len == 0 {
            return false;
        }
        let hash = NameHash::of(name).get();
        self.parts[part_of(hash)].find(hash, |other| other == name).is_some()
    }

    pub(crate) fn insert(&mut self, name: Vec<u8>) {
        if self.parts.is_empty() {
            self.parts.resize_with(PARTS, HashTable::default);
        }
        let hash = NameHash::of(&name).get();
        let part = &mut self.parts[part_of(hash)];
        if part.find(hash, |other| *other == name).is_none() {
            part.insert_unique(hash, name, |other| NameHash::of(other).get());
            self.len += 1;
        }
    }
}

/// By bits in the middle of the hash: a table looks at the highest and the lowest.
fn part_of(hash: u64) -> usize {
    (hash >> 40) as usize % PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_there_once() {
        let mut names = NameSet::default();
        assert!(names.is_empty() && !names.contains(b"a"));
        for number in 0..3000 {
            names.insert((number % 1000).to_string().into_bytes());
        }
        assert_eq!(names.len(), 1000);
        assert!(names.contains(b"999") && !names.contains(b"1000"));
    }
}
