//! The heads of an index in one database: for each shard, a lower bound of the scores in its part, readable without the
//! shard's lock. Knows numbers of shards; refuses to know what is in the parts.
//!
//! A search for the lowest record reads the heads and locks the shard with the lowest head. A write with a lower score
//! lowers the head of its shard at once. When records leave, the head stays too low; the next search of the part raises
//! it. Both happen under the lock of that shard.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// Lower bounds of the scores in each shard's part, and how many clients wait for records.
pub struct Heads {
    parts: Box<[PartHead]>,
    /// Counts how often a head was lowered.
    lowered: AtomicU64,
    /// How many clients wait for a record of this index in this database.
    waiting: AtomicUsize,
}

struct PartHead {
    /// The score, as an integer with the same order.
    score: AtomicU64,
    /// The first bytes of the record's name after the prefix: a hint for the order of equal scores.
    name: AtomicU64,
}

/// The head of a part: a lower bound of its scores, and a hint of the record's name. One integer, so that the lowest of
/// many is found without branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Head(u128);

impl Head {
    /// The head of an empty part.
    pub const NONE: Head = Head((ordered(f64::INFINITY) as u128) << 64);

    /// The head of a part whose first record has this score, and this name after the prefix of the index.
    pub fn new(score: f64, name: &[u8]) -> Head {
        let mut first = [0; 8];
        let len = name.len().min(first.len());
        first[..len].copy_from_slice(&name[..len]);
        Head::of_parts(ordered(score), u64::from_be_bytes(first))
    }

    #[inline]
    fn of_parts(score: u64, name: u64) -> Head {
        Head(u128::from(score) << 64 | u128::from(name))
    }

    /// The score, infinite for an empty part.
    #[inline]
    pub fn score(self) -> f64 {
        let bits = (self.0 >> 64) as u64;
        f64::from_bits(if bits >> 63 == 1 { bits ^ (1 << 63) } else { !bits })
    }
}

/// The bits of a score, in the order of scores. A score is never NaN or minus zero.
#[inline]
const fn ordered(score: f64) -> u64 {
    let bits = score.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

impl Heads {
    pub(crate) fn new(shard_count: usize) -> Heads {
        let none = || PartHead { score: AtomicU64::new(ordered(f64::INFINITY)), name: AtomicU64::new(0) };
        Heads {
            parts: std::iter::repeat_with(none).take(shard_count).collect(),
            lowered: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Lowers the head of a part. Its shard must be locked.
    pub(crate) fn lower(&self, shard: usize, head: Head) {
        // IMPORTANT: before the writer looks for waiting clients: a client that does not see this head is counted by
        // then.
        self.parts[shard].set(head);
        self.lowered.fetch_add(1, SeqCst);
    }

    /// Raises the head of a part to its first record. Its shard must be locked.
    pub(crate) fn raise(&self, shard: usize, head: Head) {
        self.parts[shard].set(head);
    }

    /// Counts how often a head was lowered. While it stays the same, every head that was read is still a lower bound.
    #[inline]
    pub fn lowered(&self) -> u64 {
        self.lowered.load(SeqCst)
    }

    /// The number of waiting clients.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting.load(SeqCst)
    }

    /// Counts a waiting client. IMPORTANT: before its last search: see [`Heads::lower`].
    pub fn add_waiting(&self) {
        self.waiting.fetch_add(1, SeqCst);
    }

    pub(super) fn remove_waiting(&self) {
        self.waiting.fetch_sub(1, SeqCst);
    }

    /// The heads of all shards.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Head> {
        self.parts.iter().map(|part| Head::of_parts(part.score.load(SeqCst), part.name.load(Relaxed)))
    }
}

impl PartHead {
    fn set(&self, head: Head) {
        self.name.store(head.0 as u64, Relaxed);
        self.score.store((head.0 >> 64) as u64, SeqCst);
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
            all.sort_by_key(|(_, head)| *head);
            all.into_iter().map(|(shard, _)| shard).collect::<Vec<_>>()
        };
        assert_eq!((in_order(&heads), heads.lowered()), (vec![3, 1, 2, 0], 3));
        heads.raise(3, Head::NONE);
        assert_eq!((in_order(&heads)[0], heads.lowered()), (1, 3), "raising is no news to a search");
    }

    #[test]
    fn a_score_comes_back_and_keeps_its_order() {
        let scores =
            [f64::MIN, -1e300, -2.5, -1.0, -f64::MIN_POSITIVE, 0.0, f64::MIN_POSITIVE, 1.0, 1.5, 1e300, f64::MAX];
        for (at, score) in scores.iter().enumerate() {
            assert_eq!(Head::new(*score, b"name").score(), *score);
            assert!(scores[at + 1..].iter().all(|higher| Head::new(*score, b"zzzzzzzz") < Head::new(*higher, b"")));
            assert!(Head::new(*score, b"zzzzzzzz") < Head::NONE);
        }
        assert_eq!(Head::NONE.score(), f64::INFINITY);
    }
}
