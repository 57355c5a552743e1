//! A readable sorted set: stored under a key, or an index of records. Refuses to know commands.

use super::index_ref::{IndexMembers, IndexRef};
use crate::types::sorted_set::{Direction, Form, Member, NameRange, ScoreRange, StoredMembers, StoredRef};
use std::ops::Range;

/// A readable sorted set.
#[derive(Clone, Copy)]
pub enum SortedSetRef<'a> {
    Stored(StoredRef<'a>),
    /// An index of records, which the server maintains.
    Index(IndexRef<'a>),
}

impl<'a> SortedSetRef<'a> {
    /// How many members there are.
    pub fn len(&self) -> usize {
        match self {
            SortedSetRef::Stored(set) => set.len(),
            SortedSetRef::Index(index) => index.len(),
        }
    }

    /// True when there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The score of a member.
    pub fn score(&self, name: &[u8]) -> Option<f64> {
        match self {
            SortedSetRef::Stored(set) => set.score(name),
            SortedSetRef::Index(index) => index.score(name),
        }
    }

    /// The rank of a member, the lowest score being rank 0, and its score.
    pub fn rank(&self, name: &[u8]) -> Option<(usize, f64)> {
        match self {
            SortedSetRef::Stored(set) => set.rank(name),
            SortedSetRef::Index(index) => index.rank(name),
        }
    }

    /// The ranks of members whose scores are within a range.
    pub fn ranks_by_score(&self, range: &ScoreRange) -> Range<usize> {
        match self {
            SortedSetRef::Stored(set) => set.ranks_by_score(range),
            SortedSetRef::Index(index) => {
                let (start, end) = index.ranks_by_score(range);
                start..end.max(start)
            }
        }
    }

    /// The ranks of members whose names are within a range: see [`StoredRef::ranks_by_name`].
    pub fn ranks_by_name(&self, range: &NameRange<'_>) -> Range<usize> {
        match self {
            SortedSetRef::Stored(set) => set.ranks_by_name(range),
            SortedSetRef::Index(index) => {
                let (start, end) = index.ranks_by_name(range);
                start..end.max(start)
            }
        }
    }

    /// The member of a rank.
    pub fn get(&self, rank: usize) -> Option<Member<'a>> {
        self.members(rank..rank + 1, Direction::Ascending).next()
    }

    /// One of the members, a different one for each number below [`len`](SortedSetRef::len), in the order that is
    /// fastest.
    pub fn pick(&self, number: usize) -> Option<Member<'a>> {
        match self {
            SortedSetRef::Stored(_) => self.get(number),
            SortedSetRef::Index(index) => index.pick(number),
        }
    }

    /// The members of these ranks; descending, the highest rank first.
    pub fn members(&self, ranks: Range<usize>, direction: Direction) -> Members<'a> {
        match self {
            SortedSetRef::Stored(set) => Members::Stored(set.members(ranks, direction)),
            SortedSetRef::Index(index) => {
                let ranks = ranks.start.min(index.len())..ranks.end.min(index.len());
                Members::Index(Box::new(index.members(ranks, direction)))
            }
        }
    }

    /// All members in their order.
    pub fn iter(&self) -> Members<'a> {
        self.members(0..self.len(), Direction::Ascending)
    }

    /// Visits members from `cursor` on: see [`StoredRef::scan`].
    pub fn scan(&self, cursor: u64, count: usize, visit: impl FnMut(Member<'_>)) -> Option<u64> {
        match self {
            // No step returns a cursor of more than 32 bits: such a cursor is at the end.
            SortedSetRef::Stored(set) => {
                set.scan(u32::try_from(cursor).unwrap_or(u32::MAX), count, visit).map(u64::from)
            }
            SortedSetRef::Index(index) => index.scan(cursor, count, visit),
        }
    }

    /// The name OBJECT ENCODING gives the form.
    pub fn encoding(&self) -> &'static str {
        match self {
            SortedSetRef::Stored(set) => set.form().encoding(),
            SortedSetRef::Index(_) => Form::Large.encoding(),
        }
    }
}

/// Members of a sorted set in order.
pub enum Members<'a> {
    Stored(StoredMembers<'a>),
    Index(Box<IndexMembers<'a>>),
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    #[inline]
    fn next(&mut self) -> Option<Member<'a>> {
        match self {
            Members::Stored(members) => members.next(),
            Members::Index(members) => members.next(),
        }
    }
}
