//! A large sorted set: members by name and by rank. Knows how the two stay consistent; refuses to know commands.
//!
//! A member is in a slot (`members`). A hash table of slots finds it by name, a tree of scores and slots (`ranked`) by
//! score and rank. That takes about 60 bytes for a member with a name of up to 22 bytes; both table and tree grow
//! incrementally, without pauses.

use super::members::MemberSlots;
use super::{Form, Member, Name, Scored, compare};
use crate::storage::ranked::{self, Ranked};
use crate::storage::segmented::Segmented;
use crate::storage::size_class::size_class;
use crate::storage::{NameHash, Scalar};
use std::ops::Range;

/// A large sorted set.
#[derive(Default)]
pub struct SortedSet {
    members: MemberSlots,
    by_name: Segmented<u32>,
    by_score: Ranked<Placed>,
    pub form: Form,
}

/// A member in the tree. Twelve bytes; without packing it would be sixteen.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct Placed {
    score: f64,
    slot: u32,
}

impl SortedSet {
    /// Builds a set of these members, in any order; of several with one name the last one wins.
    pub fn from_members<'a>(members: impl Iterator<Item = Scored<'a>>, form: Form) -> SortedSet {
        let mut set = SortedSet { form, ..SortedSet::default() };
        let (mut placed, mut last): (Vec<Placed>, Option<u32>) = (Vec::new(), None);
        let mut members = members.peekable();
        // While they are in order, the tree need not search for their positions.
        while let Some((score, name)) = members.next_if(|member| {
            let in_order = |last| compare((set.members.score(last), set.members.name(last)), *member).is_lt();
            last.is_none_or(in_order) && set.slot(member.1).is_none()
        }) {
            let slot = set.insert_by_name(score, name);
            placed.push(Placed { score, slot });
            last = Some(slot);
        }
        set.by_score = Ranked::from_sorted(placed.into_iter());
        for member in members {
            set.set(member);
        }
        set
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// True when there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn score(&self, name: &[u8]) -> Option<f64> {
        self.slot(name).map(|slot| self.members.score(slot))
    }

    pub(super) fn rank(&self, name: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(name)?;
        Some((self.by_score.partition_point(|placed| is_before(&self.members, placed, (score, name))), score))
    }

    /// The number of members before the first whose score fails `test`.
    pub(super) fn count_scores(&self, test: impl Fn(f64) -> bool) -> usize {
        self.by_score.partition_point(|placed| test(placed.score))
    }

    /// The number of members before the first whose name fails `test`.
    pub(super) fn count_names(&self, test: impl Fn(&[u8]) -> bool) -> usize {
        self.by_score.partition_point(|placed| test(self.members.name(placed.slot)))
    }

    /// The members of these ranks.
    pub(super) fn members(&self, ranks: Range<usize>) -> TableMembers<'_> {
        TableMembers { set: self, placed: self.by_score.range(ranks) }
    }

    /// Visits members in order of the positions of their names: see [`Segmented::scan`].
    pub(super) fn scan(&self, cursor: u32, count: usize, mut visit: impl FnMut(Member<'_>)) -> Option<u32> {
        let hash_of = |slot: &u32| NameHash::of(self.members.name(*slot));
        self.by_name.scan(cursor, count, hash_of, |slot| visit(self.member(*slot, self.members.score(*slot))))
    }

    /// Sets the score of a member; returns true when it is new.
    pub fn set(&mut self, (score, name): Scored<'_>) -> bool {
        let Some(slot) = self.slot(name) else {
            let slot = self.insert_by_name(score, name);
            self.place(score, slot, name);
            return true;
        };
        let before = self.members.score(slot);
        if before != score {
            self.by_score.remove(|placed| is_before(&self.members, placed, (before, name)));
            self.members.set_score(slot, score);
            self.place(score, slot, name);
        }
        false
    }

    /// Removes a member and returns whether it existed.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let members = &self.members;
        let removed = self.by_name.remove(
            NameHash::of(name),
            |slot| members.name(*slot) == name,
            |slot| NameHash::of(members.name(*slot)),
        );
        let Some(slot) = removed else { return false };
        let score = members.score(slot);
        self.by_score.remove(|placed| is_before(members, placed, (score, name)));
        self.members.remove(slot);
        // Two for each removed member: slots are compacted faster than they become free.
        for _ in 0..2 {
            if self.members.is_sparse() {
                self.move_last();
            }
        }
        true
    }

    /// Heap bytes of the set and its contents, estimated from about `samples` members.
    pub fn heap_bytes(&self, samples: usize) -> usize {
        let step = self.len() / samples.max(1);
        self.members.heap_bytes(step, size_class) + self.by_name.heap_bytes() + self.by_score.heap_bytes()
    }

    fn slot(&self, name: &[u8]) -> Option<u32> {
        self.by_name.find(NameHash::of(name), |slot| self.members.name(*slot) == name).copied()
    }

    fn member(&self, slot: u32, score: f64) -> Member<'_> {
        Member { name: Name::kept(Scalar::Bytes(self.members.name(slot))), score }
    }

    /// Adds a member that is not in the tree yet.
    fn insert_by_name(&mut self, score: f64, name: &[u8]) -> u32 {
        let slot = self.members.insert(score, name);
        let members = &self.members;
        self.by_name.insert(NameHash::of(name), slot, |slot| NameHash::of(members.name(*slot)));
        slot
    }

    fn place(&mut self, score: f64, slot: u32, name: &[u8]) {
        let members = &self.members;
        self.by_score.insert(Placed { score, slot }, |placed| is_before(members, placed, (score, name)));
    }

    /// Moves a member from the last slot into a free one.
    fn move_last(&mut self) {
        let Some((from, to)) = self.members.move_last() else { return };
        let members = &self.members;
        let (score, name) = (members.score(to), members.name(to));
        let known = self.by_name.find_mut(NameHash::of(name), |slot| *slot == from);
        *known.expect("the table knows every member") = to;
        // IMPORTANT: the tree still has the old slot, which no longer exists; its name must not be looked up.
        self.by_score.replace(Placed { score, slot: to }, |placed| {
            placed.slot != from && is_before(members, placed, (score, name))
        });
    }
}

/// True when a member of the tree comes before another.
fn is_before(members: &MemberSlots, placed: &Placed, (score, name): Scored<'_>) -> bool {
    let placed = *placed;
    placed.score < score || placed.score == score && members.name(placed.slot) < name
}

impl Clone for SortedSet {
    fn clone(&self) -> SortedSet {
        let members = self.by_score.iter().map(|placed| (placed.score, self.members.name(placed.slot)));
        SortedSet::from_members(members, self.form)
    }
}

/// Members of a large set, from either end.
pub struct TableMembers<'a> {
    set: &'a SortedSet,
    placed: ranked::Iter<'a, Placed>,
}

impl<'a> Iterator for TableMembers<'a> {
    type Item = Member<'a>;

    #[inline]
    fn next(&mut self) -> Option<Member<'a>> {
        self.placed.next().map(|placed| self.set.member(placed.slot, placed.score))
    }
}

impl<'a> DoubleEndedIterator for TableMembers<'a> {
    #[inline]
    fn next_back(&mut self) -> Option<Member<'a>> {
        self.placed.next_back().map(|placed| self.set.member(placed.slot, placed.score))
    }
}
