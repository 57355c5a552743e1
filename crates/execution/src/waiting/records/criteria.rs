//! Which records a waiter wants. Knows scores, times and fields; refuses to know the waiters.

use keyspace::HashRef;
use keyspace::types::sorted_set::{ScoreBound, ScoreRange};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A bound of scores, which may move with the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeBound {
    /// The bits of a score.
    Score { bits: u64, excluded: bool },
    /// The current time plus so many milliseconds.
    Now { offset_ms: i64, excluded: bool },
}

impl TimeBound {
    pub fn score(score: f64, excluded: bool) -> TimeBound {
        TimeBound::Score { bits: score.to_bits(), excluded }
    }

    /// The bound at that time.
    pub fn at(self, now_ms: u64) -> ScoreBound {
        match self {
            TimeBound::Score { bits, excluded } => ScoreBound { score: f64::from_bits(bits), excluded },
            TimeBound::Now { offset_ms, excluded } => {
                ScoreBound { score: (now_ms as i64).saturating_add(offset_ms) as f64, excluded }
            }
        }
    }

    /// When a record of that score comes below this bound, in unix milliseconds.
    pub(super) fn reached_at_ms(self, score: f64) -> Option<u64> {
        match self {
            TimeBound::Score { .. } => None,
            TimeBound::Now { .. } if score == f64::INFINITY => None,
            TimeBound::Now { offset_ms, excluded } => {
                let first = if excluded { score.floor() + 1.0 } else { score.ceil() };
                Some((first - offset_ms as f64).max(0.0) as u64)
            }
        }
    }
}

/// Which records a waiter wants. Waiters with equal criteria want the same records.
#[derive(Debug, PartialEq, Eq)]
pub struct Criteria {
    /// The hash of the other fields, which may be long.
    hash: u64,
    min: TimeBound,
    max: TimeBound,
    conditions: Vec<Condition>,
    other: Vec<u8>,
}

/// A field that must have one of these values, which are sorted.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    pub field: Box<[u8]>,
    pub values: Vec<Box<[u8]>>,
}

impl Criteria {
    /// Creates criteria. `other` holds everything else that two commands must agree on to want the same records.
    pub fn new(min: TimeBound, max: TimeBound, conditions: Vec<Condition>, other: Vec<u8>) -> Criteria {
        let mut hasher = DefaultHasher::new();
        (min, max, &conditions, &other).hash(&mut hasher);
        Criteria { hash: hasher.finish(), min, max, conditions, other }
    }

    pub fn range(&self, now_ms: u64) -> ScoreRange {
        ScoreRange { min: self.min.at(now_ms), max: self.max.at(now_ms) }
    }

    /// When a record of that score is no longer above the range, in unix milliseconds.
    pub(super) fn reached_at_ms(&self, score: f64) -> Option<u64> {
        self.max.reached_at_ms(score)
    }

    pub(super) fn first_condition(&self) -> Option<&Condition> {
        self.conditions.first()
    }

    /// False when a record is not wanted, whatever its score.
    pub(super) fn may_want(&self, hash: HashRef<'_>) -> bool {
        self.conditions.iter().all(|condition| {
            let has = |value: &[u8]| condition.values.binary_search_by(|one| (**one).cmp(value)).is_ok();
            hash.get(&condition.field).is_some_and(|value| value.with_bytes(has))
        })
    }
}

impl Hash for Criteria {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}
