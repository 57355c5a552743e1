//! Sorted sets in their two forms, small and large, behind one type for readers. Knows members, scores and ranks;
//! refuses to know commands, and how either form is laid out (`packed`, `table`).
//!
//! Members are ordered by score, those of one score by their bytes. A score is never NaN.

mod change;
mod image;
mod members;
pub(crate) mod packed;
mod table;

pub use change::Change;
pub use image::{image_of, put_image, to_redis};
pub use packed::Packed;
pub use table::SortedSet;

use super::{Entry, FREED_AT_ONCE_MAX, Object, ValueType};
use crate::storage::{Kind, Scalar};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

/// A small sorted set, packed: see [`packed`].
pub const PACKED: Kind = Kind::inline(4);

/// The row of sorted sets.
pub static TYPE: ValueType = ValueType {
    tag: 3,
    name: "zset",
    redis_number: 3,
    event_letter: 'z',
    is_own: false,
    is_bound: false,
    name_error: |_| None,
    encoding: |entry| match entry.object() {
        Some(Object::SortedSet(set)) => set.form.encoding(),
        _ => Form::Small.encoding(),
    },
    elements: |entry, _| stored(entry).len(),
    heap_bytes: |object, samples| table_of(object).map_or(0, |set| set.heap_bytes(samples)),
    is_freed_later: |object| table_of(object).is_some_and(|set| set.len() > FREED_AT_ONCE_MAX),
    write_image: image::write,
    check_image: image::check,
    read_image: image::read,
    release: None,
    element_expiry: None,
    to_redis: |entry, _, _| to_redis(stored(entry).iter()),
    digest: image::digest,
};

/// When a small sorted set becomes a large one.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    pub entries_max: usize,
    pub value_bytes_max: usize,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { entries_max: 128, value_bytes_max: 64 }
    }
}

fn table_of(object: &Object) -> Option<&SortedSet> {
    match object {
        Object::SortedSet(set) => Some(set),
        _ => None,
    }
}

/// The sorted set in an entry.
#[inline]
pub fn stored(entry: &Entry) -> StoredRef<'_> {
    match entry.object() {
        Some(Object::SortedSet(set)) => StoredRef::Table(set),
        Some(_) => panic!("the entry holds no sorted set"),
        None => StoredRef::Packed(Packed::new(entry.body())),
    }
}

/// A score and a member's name, as commands give them.
pub type Scored<'a> = (f64, &'a [u8]);

/// The encoding that Redis would use for a sorted set, for OBJECT ENCODING. A set never returns to a smaller form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Form {
    /// Small by the settings, but too large for us to pack.
    #[default]
    Small,
    Large,
}

impl Form {
    /// Its name in OBJECT ENCODING.
    pub fn encoding(self) -> &'static str {
        match self {
            Form::Small => "listpack",
            Form::Large => "skiplist",
        }
    }
}

/// The order of members.
pub fn compare(a: Scored<'_>, b: Scored<'_>) -> Ordering {
    a.0.partial_cmp(&b.0).expect("a score is a number").then_with(|| a.1.cmp(b.1))
}

/// Members in order, each once: of several with one name the last one wins.
pub fn in_order<'a>(members: &[Scored<'a>]) -> Vec<Scored<'a>> {
    let mut latest: Vec<(usize, Scored<'a>)> = members.iter().copied().enumerate().collect();
    latest.sort_unstable_by(|(at_a, a), (at_b, b)| a.1.cmp(b.1).then(at_b.cmp(at_a)));
    latest.dedup_by(|(_, later), (_, kept)| later.1 == kept.1);
    let mut members: Vec<Scored<'a>> = latest.into_iter().map(|(_, member)| member).collect();
    members.sort_unstable_by(|a, b| compare(*a, *b));
    members
}

/// The name of a member, wherever it is stored.
#[derive(Clone, Debug)]
pub struct Name<'a>(Scalar<'a>);

impl<'a> Name<'a> {
    pub fn kept(name: Scalar<'a>) -> Name<'a> {
        Name(name)
    }

    /// Passes the bytes to `look` without allocating.
    pub fn with_bytes<T>(&self, look: impl FnOnce(&[u8]) -> T) -> T {
        self.0.with_bytes(look)
    }

    /// The bytes.
    pub fn into_bytes(self) -> Cow<'a, [u8]> {
        self.0.bytes()
    }

    /// The name as a scalar.
    #[inline]
    pub fn scalar(&self) -> Scalar<'a> {
        self.0
    }
}

/// A readable member.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    pub name: Name<'a>,
    pub score: f64,
}

/// One end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreBound {
    pub score: f64,
    /// The score itself is excluded.
    pub excluded: bool,
}

/// Scores from one bound to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    pub min: ScoreBound,
    pub max: ScoreBound,
}

impl ScoreRange {
    pub fn is_above(&self, score: f64) -> bool {
        if self.min.excluded { score <= self.min.score } else { score < self.min.score }
    }

    pub fn reaches(&self, score: f64) -> bool {
        if self.max.excluded { score < self.max.score } else { score <= self.max.score }
    }

    /// True for a score within the range.
    pub fn has(&self, score: f64) -> bool {
        !self.is_above(score) && self.reaches(score)
    }
}

/// One end of a range of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameBound<'a> {
    /// Before every name.
    Lowest,
    /// After every name.
    Highest,
    Included(&'a [u8]),
    Excluded(&'a [u8]),
}

/// Names from one bound to another. Meaningful where all members have one score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameRange<'a> {
    pub min: NameBound<'a>,
    pub max: NameBound<'a>,
}

impl NameRange<'_> {
    pub fn is_above(&self, name: &[u8]) -> bool {
        match self.min {
            NameBound::Lowest => false,
            NameBound::Highest => true,
            NameBound::Included(min) => name < min,
            NameBound::Excluded(min) => name <= min,
        }
    }

    pub fn reaches(&self, name: &[u8]) -> bool {
        match self.max {
            NameBound::Lowest => false,
            NameBound::Highest => true,
            NameBound::Included(max) => name <= max,
            NameBound::Excluded(max) => name < max,
        }
    }
}

/// The direction of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

/// A readable sorted set under a key.
#[derive(Clone, Copy)]
pub enum StoredRef<'a> {
    Packed(Packed<'a>),
    Table(&'a SortedSet),
}

impl<'a> StoredRef<'a> {
    /// The encoding that Redis would use.
    pub fn form(&self) -> Form {
        match self {
            StoredRef::Packed(_) => Form::Small,
            StoredRef::Table(table) => table.form,
        }
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        match self {
            StoredRef::Packed(packed) => packed.len(),
            StoredRef::Table(table) => table.len(),
        }
    }

    /// True when there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The score of a member.
    pub fn score(&self, name: &[u8]) -> Option<f64> {
        match self {
            StoredRef::Packed(packed) => packed.find(name).map(|(_, score)| score),
            StoredRef::Table(table) => table.score(name),
        }
    }

    /// The rank of a member, the lowest score being rank 0, and its score.
    pub fn rank(&self, name: &[u8]) -> Option<(usize, f64)> {
        match self {
            StoredRef::Packed(packed) => packed.find(name),
            StoredRef::Table(table) => table.rank(name),
        }
    }

    /// The ranks of members whose scores are within a range.
    pub fn ranks_by_score(&self, range: &ScoreRange) -> Range<usize> {
        let (start, end) = match self {
            StoredRef::Packed(packed) => (
                packed.count_while(0, |score, _| range.is_above(score)),
                packed.count_while(0, |score, _| range.reaches(score)),
            ),
            StoredRef::Table(table) => {
                (table.count_scores(|score| range.is_above(score)), table.count_scores(|score| range.reaches(score)))
            }
        };
        start..end.max(start)
    }

    /// The ranks of members whose names are within a range. Members of different scores are not in the order of their
    /// names: for such a set the result may be any part of it.
    pub fn ranks_by_name(&self, range: &NameRange<'_>) -> Range<usize> {
        let (start, end) = match self {
            StoredRef::Packed(packed) => {
                let start = packed.count_while(0, |_, name| name.with_bytes(|name| range.is_above(name)));
                (start, start + packed.count_while(start, |_, name| name.with_bytes(|name| range.reaches(name))))
            }
            StoredRef::Table(table) => {
                (table.count_names(|name| range.is_above(name)), table.count_names(|name| range.reaches(name)))
            }
        };
        start..end.max(start)
    }

    /// The member of a rank.
    pub fn get(&self, rank: usize) -> Option<Member<'a>> {
        self.members(rank..rank + 1, Direction::Ascending).next()
    }

    /// The members of these ranks; descending, the highest rank first.
    pub fn members(&self, ranks: Range<usize>, direction: Direction) -> StoredMembers<'a> {
        let ranks = ranks.start.min(self.len())..ranks.end.min(self.len());
        match (self, direction) {
            (StoredRef::Table(table), _) => StoredMembers::Table(table.members(ranks), direction),
            (StoredRef::Packed(packed), Direction::Ascending) => StoredMembers::Packed(packed.members(ranks)),
            (StoredRef::Packed(packed), Direction::Descending) => {
                StoredMembers::PackedBack(packed.members(ranks).collect())
            }
        }
    }

    /// All members in their order.
    pub fn iter(&self) -> StoredMembers<'a> {
        self.members(0..self.len(), Direction::Ascending)
    }

    /// Visits members from `cursor` on, as [`Table::scan`](crate::storage::table::Table::scan) does. A small set is
    /// visited whole.
    pub fn scan(&self, cursor: u32, count: usize, mut visit: impl FnMut(Member<'_>)) -> Option<u32> {
        match self {
            StoredRef::Table(table) if table.form == Form::Large => table.scan(cursor, count, visit),
            _ => {
                self.iter().for_each(&mut visit);
                None
            }
        }
    }
}

/// StoredMembers of a sorted set in order.
pub enum StoredMembers<'a> {
    Packed(packed::PackedMembers<'a>),
    /// Packed members can only be read forward; these are buffered, to be returned from the end.
    PackedBack(Vec<Member<'a>>),
    Table(table::TableMembers<'a>, Direction),
}

impl<'a> Iterator for StoredMembers<'a> {
    type Item = Member<'a>;

    #[inline]
    fn next(&mut self) -> Option<Member<'a>> {
        match self {
            StoredMembers::Packed(members) => members.next(),
            StoredMembers::PackedBack(members) => members.pop(),
            StoredMembers::Table(members, Direction::Ascending) => members.next(),
            StoredMembers::Table(members, Direction::Descending) => members.next_back(),
        }
    }
}

#[cfg(test)]
mod tests;
