//! A set of very many names. It grows one segment at a time: a single table of a million names takes tens of
//! milliseconds to grow, which would block the worker's other clients. Knows nothing of what the names are for.

use hashbrown::HashTable;
use keyspace::storage::table::NameHash;

const SEGMENTS: usize = 256;
const NAMES_PER_BLOCK: usize = 1024;

/// Names, each once.
#[derive(Default)]
pub(crate) struct NameSet {
    names: NameList,
    /// Indexes into `names`, of the first `found_by_hash` names. Empty until the first name is added.
    segments: Vec<HashTable<usize>>,
    found_by_hash: usize,
}

impl NameSet {
    pub(crate) fn len(&self) -> usize {
        self.names.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.len == 0
    }

    /// True when a name is in the set and hashed.
    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        if self.found_by_hash == 0 {
            return false;
        }
        let hash = NameHash::of(name).get();
        self.segments[segment_of(hash)].find(hash, |at| self.names.get(*at) == name).is_some()
    }

    /// Adds a name, unless it is in the set.
    pub(crate) fn insert(&mut self, name: &[u8]) {
        debug_assert_eq!(self.found_by_hash, self.names.len, "all names are hashed before one is looked for");
        if !self.contains(name) {
            self.add_new(name);
            self.hash_one();
        }
    }

    /// Adds a name that is not in the set, to be hashed later.
    pub(crate) fn add_new(&mut self, name: &[u8]) {
        self.names.push(name);
    }

    /// Hashes added names, so that they are found. False when `is_over` stopped it before the last one.
    pub(crate) fn hash_new(&mut self, is_over: impl Fn() -> bool) -> bool {
        while self.found_by_hash < self.names.len {
            self.hash_one();
            if self.found_by_hash.is_multiple_of(NAMES_PER_LOOK) && is_over() {
                return false;
            }
        }
        true
    }

    fn hash_one(&mut self) {
        if self.segments.is_empty() {
            self.segments.resize_with(SEGMENTS, HashTable::default);
        }
        let names = &self.names;
        let hash = NameHash::of(names.get(self.found_by_hash)).get();
        self.segments[segment_of(hash)]
            .insert_unique(hash, self.found_by_hash, |at| NameHash::of(names.get(*at)).get());
        self.found_by_hash += 1;
    }
}

/// Names hashed between two checks of the clock.
const NAMES_PER_LOOK: usize = 64;

/// The segment of a hash: by bits in its middle, because the tables use the highest and the lowest.
fn segment_of(hash: u64) -> usize {
    (hash >> 40) as usize % SEGMENTS
}

/// Names in order, in blocks: a single list would be moved whenever it grows.
#[derive(Default)]
struct NameList {
    blocks: Vec<Block>,
    len: usize,
}

#[derive(Default)]
struct Block {
    /// All names, concatenated.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl NameList {
    fn push(&mut self, name: &[u8]) {
        if self.len.is_multiple_of(NAMES_PER_BLOCK) {
            self.blocks.push(Block::default());
        }
        let block = self.blocks.last_mut().expect("there is one for the next name");
        block.bytes.extend_from_slice(name);
        block.ends.push(block.bytes.len());
        self.len += 1;
    }

    fn get(&self, at: usize) -> &[u8] {
        let (block, at) = (&self.blocks[at / NAMES_PER_BLOCK], at % NAMES_PER_BLOCK);
        let start = if at == 0 { 0 } else { block.ends[at - 1] };
        &block.bytes[start..block.ends[at]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_there_once() {
        let mut names = NameSet::default();
        assert!(names.is_empty() && !names.contains(b"a"));
        for number in 0..9000 {
            names.insert((number % 3000).to_string().as_bytes());
        }
        assert_eq!(names.len(), 3000);
        assert!(names.contains(b"0") && names.contains(b"2999") && !names.contains(b"3000") && !names.contains(b""));
    }

    #[test]
    fn names_are_found_once_they_are_hashed() {
        let mut names = NameSet::default();
        names.insert(b"");
        for number in 0..3000 {
            names.add_new(number.to_string().as_bytes());
        }
        let mut slices = 1;
        while !names.hash_new(|| true) {
            slices += 1;
        }
        assert!(slices > 10, "{slices}");
        assert_eq!(names.len(), 3001);
        assert!((0..3000).all(|number: u32| names.contains(number.to_string().as_bytes())));
        assert!(names.contains(b"") && !names.contains(b"3000"));
    }
}
