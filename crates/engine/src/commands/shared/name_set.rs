//! A set of very many names. It grows a part at a time: a single table of a million names takes tens of milliseconds to
//! grow, which would block the worker's other clients. Knows nothing of what the names are for.

use keyspace::storage::table::NameHash;
use std::collections::HashSet;

const PARTS: usize = 256;

/// Names, each once.
#[derive(Default)]
pub(crate) struct NameSet {
    /// Empty until the first name is added.
    parts: Vec<HashSet<Vec<u8>>>,
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
        self.len > 0 && self.parts[part_of(name)].contains(name)
    }

    pub(crate) fn insert(&mut self, name: Vec<u8>) {
        if self.parts.is_empty() {
            self.parts.resize_with(PARTS, HashSet::default);
        }
        self.len += usize::from(self.parts[part_of(&name)].insert(name));
    }
}

fn part_of(name: &[u8]) -> usize {
    (NameHash::of(name).get() >> 8) as usize % PARTS
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
