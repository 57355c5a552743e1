//! The heads of an index in one database: for each shard, a lower bound of the scores in its part, readable without the
//! shard's lock. Knows numbers of shards; refuses to know what is in the parts.
//!
//! A search for the lowest record reads the heads and locks one shard, the one with the lowest head. A write that
//! brings a lower score lowers the head of its shard at once. When records leave, the head stays where it was, too low;
//! the next search that looks into the part raises it. Both happen under the lock of that shard.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// Lower bounds of the scores in each shard's part, and how many clients wait for records.
pub struct Heads {
    parts: Box<[PartHead]>,
    /// How often a head was lowered.
    lowered: AtomicU64,
    /// How many clients wait for a record of this index in this database.
    pub waiting: AtomicUsize,
}

struct PartHead {
    /// The bits of the score.
    score: AtomicU64,
    /// The first bytes of the record's name behind the prefix: a hint which of several equal scores comes first.
    name: AtomicU64,
}

/// The head of a part: the lowest score that it may have, and a hint of the record's name.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Head {
    pub score: f64,
    pub name: u64,
}

impl Head {
    /// The head of an empty part.
    pub const NONE: Head = Head { score: f64::INFINITY, name: 0 };

    /// The head of a part whose first record has that score, and that name behind the prefix of the index.
    pub fn new(score: f64, name: &[u8]) -> Head {
        let mut first = [0; 8];
        let len = name.len().min(first.len());
        first[..len].copy_from_slice(&name[..len]);
        Head { score, name: u64::from_be_bytes(first) }
    }
}

impl Heads {
    pub(crate) fn new(shard_count: usize) -> Heads {
        let none = || PartHead { score: AtomicU64::new(f64::INFINITY.to_bits()), name: AtomicU64::new(0) };
        Heads {
            parts: std::iter::repeat_with(none).take(shard_count).collect(),
            lowered: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Lowers the head of a part. Its shard is locked.
    pub(crate) fn lower(&self, shard: usize, head: Head) {
        self.parts[shard].name.store(head.name, Relaxed);
        // IMPORTANT: before the writer looks for waiting clients: one that does not see this head is counted by then.
        self.parts[shard].score.store(head.score.to_bits(), SeqCst);
        self.lowered.fetch_add(1, SeqCst);
    }

    /// Raises the head of a part to its first record. Its shard is locked.
    pub(crate) fn raise(&self, shard: usize, head: Head) {
        self.parts[shard].name.store(head.name, Relaxed);
        self.parts[shard].score.store(head.score.to_bits(), SeqCst);
    }

    /// How often a head was lowered. As long as this stays the same, every head that was read is still a lower bound.
    #[inline]
    pub fn lowered(&self) -> u64 {
        self.lowered.load(SeqCst)
    }

    /// The heads of all shards.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Head> {
        self.parts
            .iter()
            .map(|part| Head { score: f64::from_bits(part.score.load(SeqCst)), name: part.name.load(Relaxed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_comes_first_and_names_decide_between_equal_scores() {
        let heads = Heads::new(4);
        assert!(heads.iter().all(|head| head == Head::NONE));
        heads.lower(2, Head::new(5.0, b"b"));
        heads.lower(1, Head::new(5.0, b"a-long-name"));
        heads.lower(3, Head::new(-7.0, b""));
        let in_order = |heads: &Heads| {
            let mut all: Vec<(usize, Head)> = heads.iter().enumerate().collect();
            all.sort_by(|one, other| one.1.partial_cmp(&other.1).unwrap());
            all.into_iter().map(|(shard, _)| shard).collect::<Vec<_>>()
        };
        assert_eq!((in_order(&heads), heads.lowered()), (vec![3, 1, 2, 0], 3));
        heads.raise(3, Head::NONE);
        assert_eq!((in_order(&heads)[0], heads.lowered()), (1, 3), "raising is no news to a search");
    }
}
