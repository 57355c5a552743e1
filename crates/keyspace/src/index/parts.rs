//! The contents of indexes, updated together with the records themselves. Knows which records are in an index and in
//! which order; refuses to know commands.
//!
//! An index is sharded as the records are: each database of each shard has a part with its own records, so that a write
//! updates the index under the lock it holds anyway. A part has the score and name id of each record, 16 bytes in a
//! B+tree; the name itself is in the table of keys, and is looked up where scores are equal.

use super::definition::{INDEXES_MAX, Index, IndexScore, Indexes, Placement};
use super::groups;
use super::heads::Head;
use super::item::{Item, by_score};
use crate::storage::prefetch::{prefetch, prefetch_at};
use crate::storage::ranked::{Change, Ranked};
use crate::storage::{NameHash, NameId, Scalar};
use crate::types::hash::Pair;
use crate::types::{Entry, Shapes, Table};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A set of indexes: one bit for each position in `Indexes`.
#[derive(Clone, Copy, Default)]
pub(crate) struct IndexMask(u64);

/// The scores of one record in some indexes. Written in place as plain numbers: an `Option` that is written in halves
/// and moved as a whole stalls the CPU (store forwarding fails).
pub(crate) type IndexScores = SmallVec<[IndexScore; 4]>;

/// What places one record in the indexes with groups that cover it, by their positions.
pub(crate) type Placements = SmallVec<[(usize, Placement); 1]>;

impl IndexMask {
    pub(crate) const EMPTY: IndexMask = IndexMask(0);

    #[inline]
    fn of(mask: impl Iterator<Item = usize>) -> IndexMask {
        IndexMask(mask.fold(0, |bits, at| bits | 1 << at))
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    fn has(self, at: usize) -> bool {
        self.0 >> at & 1 == 1
    }

    #[inline]
    fn iter(self) -> impl Iterator<Item = usize> {
        let mut bits = self.0;
        std::iter::from_fn(move || {
            let at = bits.trailing_zeros() as usize;
            bits &= bits.wrapping_sub(1);
            (at < INDEXES_MAX).then_some(at)
        })
    }
}

/// The parts of all indexes in one database of one shard.
#[derive(Default)]
#[repr(C)]
pub(crate) struct IndexParts {
    /// In the order of `indexes`. Empty until the first record is added. Most servers have one index: its part is
    /// inline.
    parts: SmallVec<[IndexPart; 1]>,
    indexes: Indexes,
    place: Place,
    /// The indexes that keep their records in groups.
    grouped: IndexMask,
}

/// Which database of which shard the parts belong to.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) db: u16,
    pub(crate) shard: u16,
    pub(crate) shard_count: u16,
}

impl Default for Place {
    fn default() -> Place {
        Place { db: 0, shard: 0, shard_count: 1 }
    }
}

impl Place {
    /// Moves a record among the groups of an index. They know records of all shards, so an id has its shard there.
    fn change_group(
        self,
        index: &Index,
        id: NameId,
        before: Option<groups::Place<'_>>,
        after: Option<groups::Place<'_>>,
    ) {
        let id = NameHash::with_shard(id, usize::from(self.shard));
        index.groups.change(usize::from(self.db), id, before, after);
    }

    /// Publishes the head of a part; with `lowered`, searches that have read the old head are informed.
    fn publish(self, index: &Index, head: Head, lowered: bool) {
        let heads = index.heads(usize::from(self.db), usize::from(self.shard_count));
        match lowered {
            true => heads.lower(usize::from(self.shard), head),
            false => heads.raise(usize::from(self.shard), head),
        }
    }
}

/// The records of one index in one database of one shard.
///
/// Changes are first collected, then applied to the tree together: each leaf is then fetched once for all its changes.
/// IMPORTANT: apply pending changes before a read, and before a record is removed from the table: every record that is
/// pending or in the tree must have its name in the table.
#[repr(C)]
pub(crate) struct IndexPart {
    /// Changes that are not applied to the tree yet, in order.
    pending: Vec<ScoreChange>,
    /// The number of changes from which the tree is rewritten. It does not change while changes are pending.
    rewritten_from: usize,
    /// The published head: no record comes before it.
    head: Head,
    /// True when the head is the first record of the tree.
    head_is_exact: bool,
    /// The previous scores of the records of the first changes. Changes beyond the rewrite threshold do not need them.
    before: Vec<IndexScore>,
    items: Ranked<Item>,
    /// The number of the last change of this tree: see [`next_change`].
    changed: u64,
    /// Ids of records that would be in the index if their field were a number.
    not_numeric: HashSet<NameId, foldhash::fast::FixedState>,
}

impl Default for IndexPart {
    fn default() -> IndexPart {
        IndexPart {
            pending: Vec::new(),
            rewritten_from: 0,
            head: Head::NONE,
            head_is_exact: false,
            before: Vec::new(),
            items: Ranked::default(),
            changed: 0,
            not_numeric: HashSet::default(),
        }
    }
}

/// Numbers the changes of all trees, so that a reader can tell from the highest number among the parts whether any has
/// changed. One counter for all: parts are swapped with their databases, and recreated with their indexes.
fn next_change() -> u64 {
    static CHANGES: AtomicU64 = AtomicU64::new(0);
    CHANGES.fetch_add(1, Relaxed) + 1
}

/// A change of a record's score in an index.
struct ScoreChange {
    after: IndexScore,
    id: NameId,
}

/// The most parts that are prefetched for each request of a look-ahead: with many indexes, a record is in few of them.
const FETCHED_AHEAD: usize = 2;

impl IndexParts {
    pub(crate) fn indexes(&self) -> &Indexes {
        &self.indexes
    }

    /// Prefetches what a change of a record reads first.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&self.parts[..self.parts.len().min(FETCHED_AHEAD)]);
    }

    /// Prefetches the memory for the next pending changes; the parts themselves have been prefetched.
    #[inline]
    pub(crate) fn prefetch_notes(&self) {
        for part in self.parts.iter().take(FETCHED_AHEAD) {
            let spare = part.pending.capacity() - part.pending.len();
            prefetch_at(part.pending.as_ptr().wrapping_add(part.pending.len()), spare.min(2));
        }
    }

    /// The indexes that a record of that name can be in.
    #[inline]
    pub(crate) fn covering(&self, name: &[u8]) -> IndexMask {
        let indexes = self.indexes.0.iter().enumerate();
        IndexMask::of(indexes.filter(|(_, index)| index.definition.covers(name)).map(|(at, _)| at))
    }

    /// The indexes in which a change of these fields can change the record's score.
    #[inline]
    pub(crate) fn concerned<'f>(&self, name: &[u8], fields: impl Iterator<Item = &'f [u8]> + Clone) -> IndexMask {
        let indexes = self.indexes.0.iter().enumerate();
        let is_concerned = |index: &Index| index.definition.concerns(fields.clone()) && index.definition.covers(name);
        IndexMask::of(indexes.filter(|(_, index)| is_concerned(index)).map(|(at, _)| at))
    }

    /// Sets the indexes; existing ones keep their records. Returns the parts of dropped indexes, for the caller to
    /// free.
    pub(crate) fn set_indexes(&mut self, indexes: &Indexes) -> Vec<IndexPart> {
        if self.indexes.is_same(indexes) {
            return Vec::new();
        }
        let mut left = Vec::new();
        if !self.parts.is_empty() {
            let mut before: Vec<Option<IndexPart>> = std::mem::take(&mut self.parts).into_iter().map(Some).collect();
            let parts = indexes.iter().map(|index| {
                let at = self.indexes.0.iter().position(|known| Arc::ptr_eq(known, index));
                at.and_then(|at| before[at].take()).unwrap_or_default()
            });
            self.parts = parts.collect();
            left = before.into_iter().flatten().collect();
        }
        self.indexes = indexes.clone();
        let grouped = indexes.iter().enumerate().filter(|(_, index)| index.definition.has_queues());
        self.grouped = IndexMask::of(grouped.map(|(at, _)| at));
        left
    }

    /// Empty parts of the same indexes.
    pub(crate) fn emptied(&self) -> IndexParts {
        IndexParts { indexes: self.indexes.clone(), parts: SmallVec::new(), place: self.place, grouped: self.grouped }
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Sets its database and shard, and publishes the heads of its parts there.
    pub(crate) fn set_place(&mut self, place: Place) {
        self.place = place;
        for (at, index) in self.indexes.0.iter().enumerate() {
            place.publish(index, self.parts.get(at).map_or(Head::NONE, |part| part.head), true);
        }
    }

    /// Applies pending changes of one part, and raises its head to its first record. Returns that record.
    pub(crate) fn settle(&mut self, index: usize, table: &Table) -> Option<Item> {
        let Some(part) = self.parts.get_mut(index) else {
            // It may have had records before everything was removed.
            self.place.publish(&self.indexes.0[index], Head::NONE, false);
            return None;
        };
        if part.pending.is_empty() && part.head_is_exact {
            return part.items.get(0);
        }
        part.apply_pending(table);
        part.head_is_exact = true;
        let (first, index) = (part.items.get(0), &self.indexes.0[index]);
        let name = first.and_then(|first| name_of(table, first.1)).unwrap_or_default();
        let head = first.map_or(Head::NONE, |first| index.definition.head(first.0, name));
        if head != part.head {
            part.head = head;
            self.place.publish(index, head, false);
        }
        first
    }

    /// Applies all pending changes to the trees.
    pub(crate) fn apply_pending(&mut self, table: &Table) {
        for part in self.parts.iter_mut() {
            part.apply_pending(table);
        }
    }

    /// How many changes are pending.
    pub(crate) fn pending_changes(&self) -> usize {
        self.parts.iter().map(|part| part.pending.len()).sum()
    }

    /// The part of one index.
    pub(crate) fn part(&self, index: usize) -> Option<&Ranked<Item>> {
        debug_assert!(
            self.parts.get(index).is_none_or(|part| part.pending.is_empty()),
            "pending changes are applied before a read"
        );
        self.parts.get(index).map(|part| &part.items)
    }

    /// The number of the last change of the tree of one index.
    pub(crate) fn part_changed(&self, index: usize) -> u64 {
        self.parts.get(index).map_or(0, |part| part.changed)
    }

    #[cfg(test)]
    pub(crate) fn part_will_be_rewritten(&self, index: usize) -> bool {
        self.parts.get(index).is_some_and(IndexPart::will_be_rewritten)
    }

    /// Heap bytes of the part of one index.
    pub(crate) fn part_bytes(&self, index: usize) -> usize {
        self.parts.get(index).map_or(0, IndexPart::heap_bytes)
    }

    /// True when every record that the index covers and that has the field is in it.
    pub(crate) fn has_all(&self, index: usize) -> bool {
        self.parts.get(index).is_none_or(|part| part.not_numeric.is_empty())
    }

    /// The scores of an entry in indexes that cover it, and what places it in those with groups.
    #[inline]
    pub(crate) fn scores(
        &self,
        mask: IndexMask,
        entry: &Entry,
        shapes: &Shapes,
        out: &mut IndexScores,
        placed: &mut Placements,
    ) {
        for at in mask.iter() {
            let definition = &self.indexes.0[at].definition;
            out.push(match self.grouped.has(at) {
                true => put_placement(placed, at, definition.placement(entry, shapes)),
                false => definition.score_of_entry(entry, shapes),
            });
        }
    }

    /// The scores of an entry that is about to change, as far as they are needed: a part that will be rewritten does
    /// not need the old position.
    #[inline]
    pub(crate) fn scores_before_change(
        &self,
        mask: IndexMask,
        entry: &Entry,
        shapes: &Shapes,
        out: &mut IndexScores,
        placed: &mut Placements,
    ) {
        for at in mask.iter() {
            let index = &self.indexes.0[at];
            if self.grouped.has(at) {
                out.push(put_placement(placed, at, index.definition.placement(entry, shapes)));
                continue;
            }
            let is_rewritten = self.parts.get(at).is_some_and(IndexPart::will_be_rewritten) && index.is_built();
            out.push(match is_rewritten {
                true => IndexScore::UNKNOWN,
                false => index.definition.score_of_entry(entry, shapes),
            });
        }
    }

    /// The scores of an entry whose `fields` have just been set: where one of them is the indexed field, or the index has
    /// groups and the entry was read before, it is not read again.
    #[inline]
    pub(crate) fn scores_after_set(
        &self,
        mask: IndexMask,
        fields: &[Pair<'_>],
        (entry, shapes): (&Entry, &Shapes),
        out: &mut IndexScores,
        (was_placed, placed): (&Placements, &mut Placements),
    ) {
        for at in mask.iter() {
            let definition = &self.indexes.0[at].definition;
            if self.grouped.has(at) {
                let before = was_placed[placed.len()].1.clone();
                out.push(put_placement(placed, at, definition.placement_after_set(before, fields)));
                continue;
            }
            let set = match definition.condition {
                None => fields.iter().rev().find(|(field, _)| *field == definition.field),
                _ => None,
            };
            out.push(match set {
                Some((_, value)) => IndexScore::of_field(Scalar::of(value)),
                None => definition.score_of_entry(entry, shapes),
            });
        }
    }

    /// Adds a record to indexes that are being backfilled, if it is not in them yet. It is one of those at positions from
    /// `from` on that are added together.
    pub(crate) fn add_to_unfilled(&mut self, table: &Table, entry: &Entry, shapes: &Shapes, from: u32) {
        let mask = IndexMask::of(self.covering(entry.name()).iter().filter(|at| !self.indexes.0[*at].is_built()));
        let (mut scores, mut placed) = (IndexScores::new(), Placements::new());
        self.scores(mask, entry, shapes, &mut scores, &mut placed);
        let id = table.id_of(NameHash::of(entry.name()), entry.name());
        self.add_record(table, entry.name(), id, mask, &scores);
        for (at, placement) in &placed {
            let index = &self.indexes.0[*at];
            if index.is_filled_up_to(usize::from(self.place.shard), u64::from(from)) {
                self.place.change_group(index, id, None, placement.place());
            }
        }
    }

    /// Moves a record among the groups of those indexes that have counted it, by the position of its name. A record that is
    /// added was nowhere, one that is removed will be nowhere.
    #[inline]
    pub(crate) fn move_in_groups(&self, id: NameId, position: u32, before: &Placements, after: &Placements) {
        let most = if before.len() > after.len() { before } else { after };
        for (number, (at, _)) in most.iter().enumerate() {
            let (before, after) = (place_of(before, number), place_of(after, number));
            let index = &self.indexes.0[*at];
            if before != after && index.is_filled(usize::from(self.place.shard), position) {
                self.place.change_group(index, id, before, after);
            }
        }
    }

    /// Adds a new record, which is in the table.
    #[inline]
    pub(crate) fn add_record(&mut self, table: &Table, name: &[u8], id: NameId, mask: IndexMask, scores: &IndexScores) {
        let absent = SmallVec::from_elem(IndexScore::ABSENT, scores.len());
        self.move_record(table, name, id, mask, (&absent, scores));
    }

    /// Removes a record, which is still in the table.
    #[inline]
    pub(crate) fn remove_record(
        &mut self,
        table: &Table,
        name: &[u8],
        id: NameId,
        mask: IndexMask,
        scores: &IndexScores,
    ) {
        let absent = SmallVec::from_elem(IndexScore::ABSENT, scores.len());
        self.move_record(table, name, id, mask, (scores, &absent));
        // It may have left an index before, with that change still pending.
        for at in mask.iter() {
            if let Some(part) = self.parts.get_mut(at) {
                part.apply_pending(table);
            }
        }
    }

    /// Changes the scores of a record, which is in the table.
    #[inline]
    pub(crate) fn move_record(
        &mut self,
        table: &Table,
        name: &[u8],
        id: NameId,
        mask: IndexMask,
        scores: (&IndexScores, &IndexScores),
    ) {
        for (at, (before, after)) in mask.iter().zip(scores.0.iter().zip(scores.1)) {
            if before.is_same(*after) {
                continue;
            }
            if self.parts.is_empty() {
                self.parts.resize_with(self.indexes.0.len(), IndexPart::default);
            }
            let part = &mut self.parts[at];
            if after.is_not_numeric() {
                part.not_numeric.insert(id);
            } else if before.is_not_numeric() || before.is_unknown() && !part.not_numeric.is_empty() {
                part.not_numeric.remove(&id);
            }
            if let Some(score) = after.score() {
                part.lower_head(self.place, &self.indexes.0[at], score, name);
            }
            match self.indexes.0[at].is_built() {
                true => part.add_pending(table, id, *before, *after),
                false => part.move_unfilled(table, name, id, before.score(), after.score()),
            }
        }
    }

    /// Rebuilds the part of one index from all entries of the table.
    pub(crate) fn build(&mut self, index: usize, table: &Table, shapes: &Shapes) {
        let definition = &self.indexes.0[index].definition;
        let mut items: Vec<(f64, &[u8], NameId)> = Vec::new();
        let mut not_numeric = HashSet::default();
        for entry in table.iter().filter(|entry| definition.covers(entry.name())) {
            let id = table.id_of(NameHash::of(entry.name()), entry.name());
            if definition.has_queues() {
                let placement = definition.placement(entry, shapes);
                self.place.change_group(&self.indexes.0[index], id, None, placement.place());
            }
            let index_score = definition.score_of_entry(entry, shapes);
            if index_score.is_not_numeric() {
                not_numeric.insert(id);
            } else if let Some(score) = index_score.score() {
                items.push((score, entry.name(), id));
            }
        }
        if items.is_empty() && not_numeric.is_empty() && self.parts.is_empty() {
            return;
        }
        items.sort_unstable_by(|a, b| by_score(a.0, b.0).then_with(|| a.1.cmp(b.1)));
        self.parts.resize_with(self.indexes.0.len(), IndexPart::default);
        let head = items.first().map_or(Head::NONE, |(score, name, _)| definition.head(*score, name));
        let items = Ranked::from_sorted(items.iter().map(|(score, _, id)| (*score, *id)));
        let mut part = IndexPart { items, not_numeric, head, ..IndexPart::default() };
        part.note_changed();
        self.parts[index] = part;
        self.place.publish(&self.indexes.0[index], head, true);
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.parts.iter().map(IndexPart::heap_bytes).sum()
    }
}

#[inline]
fn place_of(placed: &Placements, number: usize) -> Option<groups::Place<'_>> {
    placed.get(number)?.1.place()
}

/// Adds what places a record in an index, and returns its score there.
#[inline]
fn put_placement(placed: &mut Placements, at: usize, placement: Placement) -> IndexScore {
    let score = placement.index_score();
    placed.push((at, placement));
    score
}

/// The most pending changes of a part: applied by rewriting its tree, and by searching for records. With fewer, leaves
/// are fetched more often; with more, other threads wait longer for the shard: these take up to a fifth of a
/// millisecond.
const REWRITTEN_MAX: usize = 2048;
const SEARCHED_MAX: usize = 768;
/// The most items of a tree that is rewritten while others wait for the shard.
const REWRITTEN_ITEMS_MAX: usize = 32_768;
/// The capacity for pending changes in a small part. Larger parts have one for each four records: four bytes per
/// record.
const PENDING_MIN: usize = 16;
const RECORDS_PER_PENDING: usize = 4;
/// The number of items per change from which visiting all items costs as much as searching for the changed ones.
const ITEMS_PER_CHANGE: usize = 32;

impl IndexPart {
    #[inline]
    fn add_pending(&mut self, table: &Table, id: NameId, before: IndexScore, after: IndexScore) {
        if !self.will_be_rewritten() {
            self.before.push(before);
        }
        self.pending.push(ScoreChange { after, id });
        if self.pending.len() == self.pending.capacity() {
            self.apply_pending(table);
            let max = if self.items.len() <= REWRITTEN_ITEMS_MAX { REWRITTEN_MAX } else { SEARCHED_MAX };
            let wait = (self.items.len() / RECORDS_PER_PENDING).clamp(PENDING_MIN, max);
            // Do not reallocate for small differences.
            if self.pending.capacity().abs_diff(wait) > wait / 8 {
                self.pending = Vec::with_capacity(wait);
                self.before = Vec::new();
            }
        }
    }

    /// True when the pending changes are enough to rewrite the tree.
    #[inline]
    fn will_be_rewritten(&self) -> bool {
        self.pending.len() >= self.rewritten_from
    }

    /// Applies pending changes to the tree.
    fn apply_pending(&mut self, table: &Table) {
        if self.pending.is_empty() {
            return;
        }
        match self.will_be_rewritten() {
            true => self.rewrite(table),
            false => self.search_and_change(table),
        }
        self.pending.clear();
        self.before.clear();
        self.note_changed();
    }

    /// Records that the tree has changed and no changes are pending.
    fn note_changed(&mut self) {
        self.head_is_exact = false;
        self.changed = next_change();
        self.rewritten_from = self.items.len().div_ceil(ITEMS_PER_CHANGE);
    }

    /// Publishes a lower head if a record of this score and name comes before all others.
    #[inline]
    fn lower_head(&mut self, place: Place, index: &Index, score: f64, name: &[u8]) {
        if score > self.head.score() {
            return;
        }
        let head = index.definition.head(score, name);
        if head < self.head {
            self.head = head;
            place.publish(index, head, true);
        }
    }

    /// Applies many changes: rewrites all leaves without searching for records.
    fn rewrite(&mut self, table: &Table) {
        let (newest, mut added) = NewestChanges::of(&self.pending);
        put_in_order(&mut added, table);
        self.items.rewrite(&added, |item| newest.has(item.1), |one, other| comes_before(table, one, other));
    }

    /// Applies few changes, by searching for each.
    fn search_and_change(&mut self, table: &Table) {
        // In two lists: scores are often times, so that the added items are already in order.
        let (mut removed, mut added): (Items, Items) = (SmallVec::new(), SmallVec::new());
        debug_assert_eq!(self.pending.len(), self.before.len(), "where a record was is known unless it is rewritten");
        for (ScoreChange { after, id }, before) in self.pending.iter().zip(&self.before) {
            if let Some(score) = before.score() {
                removed.push((score, *id));
            }
            if let Some(score) = after.score() {
                added.push((score, *id));
            }
        }
        put_in_order(&mut removed, table);
        put_in_order(&mut added, table);
        let changes = merged(&removed, &added, |one, other| in_order(table, one, other));
        let is_before = |one: &Item, other: &Item| in_order(table, one, other) == Ordering::Less;
        match &changes[..] {
            [Change { item, comes: true }] => self.items.insert(*item, |other| is_before(other, item)),
            [Change { item, comes: false }] => {
                self.items.remove_if(|other| is_before(other, item), |found| found == item);
            }
            changes => self.items.change_all(changes, is_before),
        }
    }

    /// Moves a record while the index is being backfilled: the backfill may have reached the record, or not yet.
    fn move_unfilled(&mut self, table: &Table, name: &[u8], id: NameId, before: Option<f64>, after: Option<f64>) {
        if let Some(score) = before {
            let place = |item: &Item| is_before(table, item, score, name);
            self.items.remove_if(place, |item| *item == (score, id));
        }
        if let Some(score) = after {
            let place = |item: &Item| is_before(table, item, score, name);
            if self.items.find(place) != Some((score, id)) {
                self.items.insert((score, id), place);
            }
        }
        self.note_changed();
    }

    fn heap_bytes(&self) -> usize {
        self.items.heap_bytes()
            + self.not_numeric.capacity() * 9
            + self.pending.capacity() * size_of::<ScoreChange>()
            + self.before.capacity() * size_of::<IndexScore>()
    }
}

type Items = SmallVec<[Item; 4]>;

/// The newest of the pending changes of each record, by the record's id: a table with open addressing.
struct NewestChanges<'p> {
    pending: &'p [ScoreChange],
    /// A position in `pending` plus one, or zero. Most are zero: most records of a part have not changed.
    slots: Vec<u16>,
}

impl<'p> NewestChanges<'p> {
    /// Collects the newest changes, and the items that they add.
    fn of(pending: &'p [ScoreChange]) -> (NewestChanges<'p>, Items) {
        let slots = vec![0; (pending.len() * SLOTS_PER_CHANGE).next_power_of_two()];
        let (mut newest, mut added) = (NewestChanges { pending, slots }, Items::with_capacity(pending.len()));
        for (at, change) in pending.iter().enumerate().rev() {
            if let Err(free) = newest.find(change.id) {
                newest.slots[free] = u16::try_from(at + 1).expect("a part has fewer pending changes");
                added.extend(change.after.score().map(|score| (score, change.id)));
            }
        }
        (newest, added)
    }

    #[inline]
    fn has(&self, id: NameId) -> bool {
        self.find(id).is_ok()
    }

    /// The slot of a record, or the free slot for it.
    #[inline]
    fn find(&self, id: NameId) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        // An id is a hash already.
        let mut at = id as usize & mask;
        loop {
            match self.slots[at] {
                0 => return Err(at),
                change if self.pending[usize::from(change) - 1].id == id => return Ok(at),
                _ => at = (at + 1) & mask,
            }
        }
    }
}

const SLOTS_PER_CHANGE: usize = 4;
const _: () = assert!(REWRITTEN_MAX < u16::MAX as usize && SEARCHED_MAX <= REWRITTEN_MAX);

fn put_in_order(items: &mut Items, table: &Table) {
    // By scores first: looking up names would slow down every comparison.
    items.sort_unstable_by(|one, other| by_score(one.0, other.0));
    for equal in items.chunk_by_mut(|one, other| one.0 == other.0).filter(|equal| equal.len() > 1) {
        equal.sort_unstable_by(|one, other| in_order(table, one, other));
    }
}

/// Merges both lists into one change for each item. An item that is removed and added again has not changed.
fn merged(removed: &[Item], added: &[Item], order: impl Fn(&Item, &Item) -> Ordering) -> SmallVec<[Change<Item>; 8]> {
    let mut changes = SmallVec::with_capacity(removed.len() + added.len());
    let (mut removed, mut added) = (removed, added);
    while let ([one, removed_rest @ ..], [other, added_rest @ ..]) = (removed, added) {
        let next = order(one, other);
        if next.is_le() {
            removed = removed_rest;
        }
        if next.is_ge() {
            added = added_rest;
        }
        match next {
            Ordering::Less => changes.push(Change { item: *one, comes: false }),
            Ordering::Greater => changes.push(Change { item: *other, comes: true }),
            Ordering::Equal => {}
        }
    }
    changes.extend(removed.iter().map(|item| Change { item: *item, comes: false }));
    changes.extend(added.iter().map(|item| Change { item: *item, comes: true }));
    changes
}

/// The order of records in a part. Names are looked up only where scores are equal: each look-up is a cache miss.
#[inline]
fn in_order(table: &Table, one: &Item, other: &Item) -> Ordering {
    by_score(one.0, other.0).then_with(|| match one.1 == other.1 {
        true => Ordering::Equal,
        false => name_of(table, one.1).cmp(&name_of(table, other.1)),
    })
}

/// True when the first of two items of a part comes before the other. Most scores differ; their order is computed
/// without a branch.
#[inline]
fn comes_before(table: &Table, one: &Item, other: &Item) -> bool {
    match one.0 == other.0 {
        true => in_order(table, one, other) == Ordering::Less,
        false => one.0 < other.0,
    }
}

/// True when an item of a part comes before a record of this score and name, which may be in another part: ids are only
/// valid within one table.
#[inline]
pub(crate) fn is_before(table: &Table, item: &Item, score: f64, name: &[u8]) -> bool {
    match by_score(item.0, score) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => name_of(table, item.1).is_some_and(|other| other < name),
    }
}

/// The name of a record in a part.
#[inline]
fn name_of(table: &Table, id: NameId) -> Option<&[u8]> {
    table.by_id(id).map(Entry::name)
}
