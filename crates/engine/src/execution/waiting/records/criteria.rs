//! Which records a waiter wants. Knows scores, times and fields; refuses to know who waits.

use keyspace::HashRef;
use keyspace::types::sorted_set::{ScoreBound, ScoreRange};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A bound of scores, which may pass with the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TimeBound {
    /// The bits of a score.
    Score { bits: u64, excluded: bool },
    /// The time and so many milliseconds.
    Now { offset_ms: i64, excluded: bool },
}

impl TimeBound {
    pub(crate) fn score(score: f64, excluded: bool) -> TimeBound {
        TimeBound::Score { bits: score.to_bits(), excluded }
    }

    /// The bound at that time.
    pub(crate) fn at(self, now_ms: u64) -> ScoreBound {
        match self {
            TimeBound::Score { bits, excluded } => ScoreBound { score: f64::from_bits(bits), excluded },
            TimeBound::Now { offset_ms, excluded } => {
                ScoreBound { score: (now_ms as i64).saturating_add(offset_ms) as f64, excluded }
            }
        }
    }

    /// When a record of that score is below this bound, in unix milliseconds.
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
pub(crate) struct Criteria {
    /// Of the rest, which may be long.
    hash: u64,
    min: TimeBound,
    max: TimeBound,
    conditions: Vec<Condition>,
    other: Vec<u8>,
}

/// A field that must have one of these values, which are in order.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Condition {
    pub(crate) field: Box<[u8]>,
    pub(crate) values: Vec<Box<[u8]>>,
}

impl Criteria {
    /// `other` is in what else two commands must agree to want the same records.
    pub(crate) fn new(min: TimeBound, max: TimeBound, conditions: Vec<Condition>, other: Vec<u8>) -> Criteria {
        let mut hasher = DefaultHasher::new();
        (min, max, &conditions, &other).hash(&mut hasher);
        Criteria { hash: hasher.finish(), min, max, conditions, other }
    }

    pub(crate) fn range(&self, now_ms: u64) -> ScoreRange {
        ScoreRange { min: self.min.at(now_ms), max: self.max.at(now_ms) }
    }

    /// When a record of that score is not above the range, in unix milliseconds.
    pub(super) fn reached_at_ms(&self, score: f64) -> Option<u64> {
        self.max.reached_at_ms(score)
    }

    pub(super) fn first_condition(&self) -> Option<&Condition> {
        self.conditions.first()
    }

    /// False when a record is not for it, whatever its score.
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
