//! Side indexes: a second index that has all records which the WHERE of a CLAIM admits. Knows which indexes qualify;
//! refuses to know the search itself.
//!
//! A CLAIM that has rejected `claim-reject-max` records of its index uses a side index: one whose FIELD is compared with numbers in
//! WHERE, or one with the same FIELD whose ONLY or EXCLUDE follows from WHERE. If a shard has few records in the side
//! index, all of these are checked, instead of the rest of the named index. So a CLAIM whose WHERE matches none of
//! 200,000 records ends after one look into each shard.

use super::arguments::Claim;
use crate::shared::options::Names;
use keyspace::db::Db;
use keyspace::index::{self, Definition, Index};
use keyspace::types::sorted_set::ScoreRange;
use keyspace::{Scalar, Value};
use smallvec::SmallVec;
use std::ops::Range;

/// The most records of a side index that are checked at once, with the shard locked.
const CANDIDATES_MAX: usize = 1024;
/// A side index must have this many times fewer records: reaching a record through it costs one more memory access.
const FEWER: usize = 4;

/// A side index in a shard: its position among the indexes, and the ranges of its candidates.
pub(super) struct Side {
    at: usize,
    ranges: SmallVec<[Range<usize>; 2]>,
}

/// A qualifying record: its score in the searched index, and its name.
pub(super) struct Qualified<'a> {
    pub(super) score: f64,
    pub(super) name: &'a [u8],
}

/// The positions of indexes that contain every record of `index` that WHERE admits.
pub(super) fn positions(db: &Db, claim: &Claim<'_>, index: &Index) -> SmallVec<[usize; 4]> {
    let has_all = |(at, one): (usize, &std::sync::Arc<Index>)| {
        let differs = !std::ptr::eq(&**one, index) && one.is_built();
        (differs && has_all(claim, &index.definition, &one.definition)).then_some(at)
    };
    db.indexes().iter().enumerate().filter_map(has_all).collect()
}

/// True when `side` contains every record of `searched` that the conditions of a claim admit, and may contain fewer
/// others.
fn has_all(claim: &Claim<'_>, searched: &Definition, side: &Definition) -> bool {
    let covers = searched.prefixes.iter().all(|prefix| side.prefixes.iter().any(|short| prefix.starts_with(short)));
    let follows = side.condition.as_ref().is_some_and(|condition| {
        let is_listed = |value: &&[u8]| condition.values.iter().any(|one| one == value);
        claim.conditions_on(&condition.field).any(|values| match condition.only {
            true => values.iter().all(is_listed),
            false => !values.iter().any(is_listed),
        })
    });
    let admits = follows || side.condition.is_none() || side.condition == searched.condition;
    covers && admits && (scores(claim, side).is_some() || follows && side.field == searched.field)
}

/// The scores that records may have in an index whose field is in WHERE; `None` when WHERE does not limit them.
fn scores(claim: &Claim<'_>, side: &Definition) -> Option<SmallVec<[f64; 2]>> {
    let of_values = |values: &Names<'_>| {
        let scores: Option<SmallVec<[f64; 2]>> =
            values.iter().map(|value| index::number(Scalar::Bytes(value))).collect();
        scores.map(|mut scores| {
            scores.sort_unstable_by(f64::total_cmp);
            scores.dedup();
            scores
        })
    };
    claim.conditions_on(&side.field).find_map(of_values)
}

/// The side index with the fewest candidates in a shard, if checking them is less work than checking `left` records.
/// Pending changes of these indexes are applied.
pub(super) fn choose(db: &Db, claim: &Claim<'_>, positions: &[usize], left: usize) -> Option<Side> {
    let side = |at: &usize| {
        let definition = &db.indexes().iter().nth(*at)?.definition;
        let part = db.part(*at);
        let ranges = match (part, scores(claim, definition)) {
            (None, _) => SmallVec::new(),
            (Some(part), None) => SmallVec::from_elem(0..part.len(), 1),
            (Some(part), Some(scores)) => {
                let with = |score: &f64| {
                    part.partition_point(|item| item.0 < *score)..part.partition_point(|item| item.0 <= *score)
                };
                scores.iter().map(with).collect()
            }
        };
        Some(Side { at: *at, ranges })
    };
    let fewest = positions.iter().filter_map(side).min_by_key(Side::len)?;
    (fewest.len() <= CANDIDATES_MAX && fewest.len() * FEWER <= left).then_some(fewest)
}

impl Side {
    fn len(&self) -> usize {
        self.ranges.iter().map(Range::len).sum()
    }

    /// The first qualifying record of `index` in this shard after `behind`, whether or not it is within the range.
    pub(super) fn first<'a>(
        &self,
        db: &'a Db,
        index: &Index,
        range: &ScoreRange,
        behind: Option<(f64, &[u8])>,
        now_ms: u64,
        qualifies: impl Fn(keyspace::HashRef<'a>, &'a [u8]) -> bool,
    ) -> Option<Qualified<'a>> {
        let part = db.part(self.at)?;
        let candidates = self.ranges.iter().flat_map(|range| part.range(range.clone())).filter_map(|item| {
            let entry = db.indexed(item)?;
            let Value::Hash(hash) = db.value(entry, now_ms) else { return None };
            let (score, name) = (index.definition.score(hash)?, entry.name());
            let is_left = !Db::is_expired(entry, now_ms)
                && index.definition.covers(name)
                && !range.is_above(score)
                && behind.is_none_or(|(above, last)| (score, name) > (above, last));
            (is_left && qualifies(hash, name)).then_some(Qualified { score, name })
        });
        candidates.min_by(|one, other| one.score.total_cmp(&other.score).then_with(|| one.name.cmp(other.name)))
    }
}
