//! One database of one shard: entries and the ordered structures beside them. Knows expiry; refuses to know commands.

use super::detached::DetachedValue;
use super::rates::RateStates;
use crate::digest::Digest;
use crate::index::Indexes;
use crate::index::item::{Item, by_score};
use crate::index::parts::{IndexMask, IndexPart, IndexParts, IndexScores, Place, Placements};
use crate::storage::ranked::Ranked;
use crate::storage::size_class::DEADLINE_BYTES;
use crate::storage::{Key, NameHash, NameId};
use crate::types::hash::HashRef;
use crate::types::listed::{ListKind, Listed};
use crate::types::run::RunStatus;
use crate::types::{Applied, Change, Entry, Object, RecordFields, Shapes, TYPES, Table, Thresholds, ValueType};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Entries by name, with ordered deadlines that `apply` updates.
#[derive(Default)]
#[repr(C)]
pub struct Db {
    /// This database's part of every index; the first field: see [`Shard`](super::shard::Shard).
    parts: IndexParts,
    pub(crate) table: Table,
    pub(crate) shapes: Shapes,
    /// Deadline and id of each key that has one, soonest first.
    deadlines: BTreeSet<(u64, NameId)>,
    /// The sum of all deadlines.
    deadline_sum: u128,
    /// The soonest field deadline, and the id, of each hash that has any.
    field_deadlines: BTreeSet<(u64, NameId)>,
    /// The position and the id of each run that is not over.
    open_runs: BTreeSet<(u64, NameId)>,
    /// Lists of sessions. Most databases have none.
    sessions: Option<Box<SessionLists>>,
    /// How many values have a type that Redis does not have.
    own_values: usize,
    /// How many values each type has, by tag.
    by_type: [u32; TYPES.len()],
    /// How many runs have each status.
    by_run_status: [u32; RunStatus::ALL.len()],
    /// The states of rates that claims have used up. Most databases have none.
    rates: Option<Box<RateStates>>,
    /// The last use that new keys get: see [`Locked::at`](super::locked::Locked::at).
    pub(super) used_at: u32,
}

/// The number of random entries drawn for each sample that must have a deadline.
const TRIES_PER_SAMPLE: usize = 8;

/// The lists of a database's sessions.
#[derive(Default)]
struct SessionLists {
    /// The time of each session's next check, and its id. The check is no later than the session's expiry.
    lives: BTreeSet<(u64, NameId)>,
    /// The time at which each session's oldest pending request was last sent, and the session's id.
    unacknowledged: BTreeSet<(u64, NameId)>,
}

impl Db {
    /// How many keys there are, including expired ones that are not removed yet.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// True when there is no key.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// True when there are values of types that Redis does not have.
    #[inline]
    pub fn has_own_values(&self) -> bool {
        self.own_values > 0
    }

    /// How many keys have a value of a type, expired ones included.
    pub fn count_of_type(&self, value_type: &ValueType) -> usize {
        self.by_type[value_type.position()] as usize
    }

    /// How many runs have a status, expired ones included.
    pub fn run_count(&self, status: RunStatus) -> usize {
        self.by_run_status[status as usize] as usize
    }

    /// How many keys have a deadline.
    pub fn with_deadline(&self) -> usize {
        self.deadlines.len()
    }

    /// How many hashes have fields with deadlines.
    pub fn with_field_deadlines(&self) -> usize {
        self.field_deadlines.len()
    }

    /// The sum of the remaining times of all keys with a deadline, for an average.
    pub fn time_left_sum(&self, now_ms: u64) -> u128 {
        self.deadline_sum.saturating_sub(u128::from(now_ms) * self.deadlines.len() as u128)
    }

    /// The entry of a key, expired or not.
    #[inline]
    pub fn entry(&self, key: Key<'_>) -> Option<&Entry> {
        self.table.get(key.hash, key.name)
    }

    /// Prefetches the entry of a record in an index.
    #[inline]
    pub fn prefetch_indexed(&self, item: Item) {
        self.table.prefetch(NameHash::from_raw(item.1));
    }

    /// Prefetches the entry of a key.
    #[inline]
    pub fn prefetch(&self, hash: NameHash) {
        self.table.prefetch(hash);
        self.parts.prefetch_notes();
    }

    /// Prefetches the value of a key that is an object, some time after [`Db::prefetch`].
    #[inline]
    pub(super) fn prefetch_object(&self, hash: NameHash) {
        self.table.prefetch_object(hash);
    }

    /// Prefetches what a write of a key's value will touch behind its object, some time after [`Db::prefetch_object`].
    #[inline]
    pub(super) fn prefetch_write(&self, hash: NameHash) {
        self.table.visit_object(hash, Object::prefetch_write);
    }

    /// Prefetches what [`Db::prefetch`] reads.
    #[inline]
    pub(super) fn prefetch_self(&self) {
        self.parts.prefetch();
    }

    /// The value of an entry of this database, as `formats` represents it.
    pub fn to_redis(&self, entry: &Entry, now_ms: u64) -> formats::Value {
        (ValueType::of(entry).to_redis)(entry, &self.shapes, now_ms)
    }

    /// Appends the image of an entry of this database.
    pub fn write_image(&self, entry: &Entry, out: &mut Vec<u8>) {
        (ValueType::of(entry).write_image)(entry, &self.shapes, out);
    }

    /// How many elements an entry of this database has, expired ones included.
    pub fn elements(&self, entry: &Entry) -> usize {
        (ValueType::of(entry).elements)(entry, &self.shapes)
    }

    /// Adds an entry of this database to a digest: its value, and whether it has a deadline.
    pub fn digest(&self, entry: &Entry, now_ms: u64, digest: &mut Digest) {
        let value_type = ValueType::of(entry);
        digest.mix(&value_type.redis_number.to_be_bytes());
        (value_type.digest)(entry, &self.shapes, now_ms, digest);
        if entry.deadline().is_some() {
            digest.add(b"!!expire!!");
        }
    }

    /// True when the entry, or its last field, has expired.
    #[inline]
    pub fn is_expired(entry: &Entry, now_ms: u64) -> bool {
        entry.deadline().is_some_and(|deadline| deadline <= now_ms)
            || entry.object().is_some_and(|object| object.is_expired(now_ms))
    }

    /// When the entry or one of its fields expires next; `None` for an expired entry.
    pub fn next_expiry(entry: &Entry, now_ms: u64) -> Option<u64> {
        let expiry = ValueType::of(entry).element_expiry.as_ref();
        let of_fields = expiry.zip(entry.object()).and_then(|(expiry, object)| (expiry.next)(object, now_ms));
        match entry.deadline() {
            Some(deadline) if deadline <= now_ms => None,
            Some(deadline) => Some(of_fields.map_or(deadline, |soonest| soonest.min(deadline))),
            None => of_fields,
        }
    }

    /// True when it has expired keys, or keys with expired fields.
    pub fn has_expired(&self, now_ms: u64) -> bool {
        let is_due = |index: &BTreeSet<(u64, NameId)>| index.first().is_some_and(|(deadline, _)| *deadline <= now_ms);
        is_due(&self.deadlines) || is_due(&self.field_deadlines)
    }

    /// Visits entries that have not expired, from `cursor` on. See [`Table::scan`].
    pub fn scan(&self, cursor: u32, count: usize, now_ms: u64, mut visit: impl FnMut(&Entry)) -> Option<u32> {
        self.table.scan(cursor, count, |entry| {
            if !Db::is_expired(entry, now_ms) {
                visit(entry);
            }
        })
    }

    /// All entries that have not expired.
    pub fn iter(&self, now_ms: u64) -> impl Iterator<Item = &Entry> {
        self.table.iter().filter(move |entry| !Db::is_expired(entry, now_ms))
    }

    /// A random entry, perhaps an expired one.
    pub fn random(&self, random: &mut fastrand::Rng) -> Option<&Entry> {
        self.table.random(random)
    }

    /// Visits `count` random entries, possibly some of them twice.
    pub fn sample(&self, random: &mut fastrand::Rng, count: usize, mut visit: impl FnMut(&Entry)) {
        for _ in 0..count {
            self.table.random(random).into_iter().for_each(&mut visit);
        }
    }

    /// Visits `count` random entries that have a deadline. Where few keys have one, those after a longer gap between
    /// deadlines are more likely.
    pub fn sample_with_deadline(&self, random: &mut fastrand::Rng, count: usize, mut visit: impl FnMut(&Entry)) {
        let (Some((first, _)), Some((last, _))) = (self.deadlines.first(), self.deadlines.last()) else { return };
        let mut found = 0;
        for _ in 0..count * TRIES_PER_SAMPLE {
            let drawn = self.table.random(random).filter(|entry| entry.deadline().is_some());
            found += usize::from(drawn.is_some());
            drawn.into_iter().for_each(&mut visit);
            if found == count {
                return;
            }
        }
        for _ in found..count {
            let from = (random.u64(*first..=*last), NameId::MIN);
            let drawn = self.deadlines.range(from..).next().and_then(|(_, id)| self.table.by_id(*id));
            drawn.into_iter().for_each(&mut visit);
        }
    }

    /// The entries that expire soonest.
    pub fn soonest_to_expire(&self, count: usize) -> impl Iterator<Item = &Entry> {
        self.deadlines.iter().take(count).filter_map(|(_, id)| self.table.by_id(*id))
    }

    /// The number of expired keys and keys with expired fields, at most `max`.
    pub(super) fn expired_up_to(&self, now_ms: u64, max: usize) -> usize {
        let due = |index: &BTreeSet<(u64, NameId)>, max: usize| index.range(..=(now_ms, NameId::MAX)).take(max).count();
        let keys = due(&self.deadlines, max);
        keys + due(&self.field_deadlines, max - keys)
    }

    /// Names of expired keys, earliest deadline first, at most `count`.
    pub fn expired_keys(&self, now_ms: u64, count: usize) -> Vec<Vec<u8>> {
        let due = self.deadlines.range(..=(now_ms, NameId::MAX)).take(count);
        due.filter_map(|(_, id)| self.table.by_id(*id)).map(|entry| entry.name().to_vec()).collect()
    }

    /// A hash with expired fields, and the names of those fields, at most `count`.
    pub fn expired_field_names(&self, now_ms: u64, count: usize) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
        let (_, id) = self.field_deadlines.range(..=(now_ms, NameId::MAX)).next()?;
        let entry = self.table.by_id(*id)?;
        let expiry = ValueType::of(entry).element_expiry.as_ref()?;
        Some((entry.name().to_vec(), (expiry.names)(entry.object()?, now_ms, count)))
    }

    /// The runs that are not over, including expired ones, in the order of their positions from `position` on.
    pub fn open_runs(&self, position: u32) -> impl Iterator<Item = (u32, &Entry)> {
        let open = self.open_runs.range((u64::from(position), NameId::MIN)..);
        open.filter_map(|(position, id)| Some((*position as u32, self.table.by_id(*id)?)))
    }

    /// How many runs are not over, including expired ones.
    pub fn open_run_count(&self) -> usize {
        self.open_runs.len()
    }

    /// How many sessions there are, including expired ones that are not removed yet.
    pub fn session_count(&self) -> usize {
        self.sessions.as_ref().map_or(0, |lists| lists.lives.len())
    }

    /// Sessions whose check is due: those that have expired, and those that were renewed since their last check. At
    /// most `count`.
    pub fn sessions_due(&self, now_ms: u64, count: usize) -> Vec<Vec<u8>> {
        let lists = self.sessions.iter();
        let due = lists.flat_map(|lists| lists.lives.range(..=(now_ms, NameId::MAX))).take(count);
        due.filter_map(|(_, id)| self.table.by_id(*id)).map(|entry| entry.name().to_vec()).collect()
    }

    /// True when the check of a session is due.
    #[inline]
    pub fn has_sessions_due(&self, now_ms: u64) -> bool {
        let lists = self.sessions.as_ref();
        lists.and_then(|lists| lists.lives.first()).is_some_and(|(queued_ms, _)| *queued_ms <= now_ms)
    }

    /// Schedules the next check of a live session, at the time of its expiry if it is not renewed.
    pub(super) fn queue_session(&mut self, key: Key<'_>, now_ms: u64) {
        self.change_entry(key, |entry, _| {
            if let Some(Object::Session(session)) = entry.object_mut() {
                session.queue(now_ms);
            }
        });
    }

    /// Sessions with a request that was last sent before `before_ms`, oldest request first, each with that time.
    pub fn unacknowledged(&self, before_ms: u64) -> impl Iterator<Item = (u64, &Entry)> {
        let lists = self.sessions.iter();
        let old = lists.flat_map(move |lists| lists.unacknowledged.range(..(before_ms, NameId::MIN)));
        old.filter_map(|(sent_ms, id)| Some((*sent_ms, self.table.by_id(*id)?)))
    }

    /// Raises the state of a rate. False when it was as high before.
    pub(super) fn raise_rate(&mut self, key: Key<'_>, until_ns: u64, now_ns: u64) -> bool {
        self.rates.get_or_insert_default().raise(key, until_ns, now_ns)
    }

    /// The states of rates with names at these positions.
    pub(super) fn rates(&self, from: u32, to: u32) -> impl Iterator<Item = (&[u8], u64)> {
        self.rates.iter().flat_map(move |rates| rates.between(from, to))
    }

    /// Removes the states of rates for whose names `counts` holds.
    pub(super) fn take_rates(&mut self, counts: impl Fn(&[u8]) -> bool) -> Vec<(Box<[u8]>, u64)> {
        self.change_rates(|rates| rates.take(counts)).unwrap_or_default()
    }

    /// Looks at about `count` states of rates, and forgets those that are over.
    pub(super) fn forget_rates_over(&mut self, now_ns: u64, count: usize) {
        self.change_rates(|rates| rates.forget_over(now_ns, count));
    }

    /// Removes some states of rates. What holds them goes with the last one.
    fn change_rates<T>(&mut self, change: impl FnOnce(&mut RateStates) -> T) -> Option<T> {
        let changed = change(self.rates.as_mut()?);
        self.rates.take_if(|rates| rates.is_empty());
        Some(changed)
    }

    /// Heap bytes of the table and indexes, without the entries.
    pub fn overhead_bytes(&self) -> usize {
        self.table.heap_bytes()
            + self.shapes.heap_bytes()
            + (self.deadlines.len() + self.field_deadlines.len() + self.open_runs.len()) * DEADLINE_BYTES
            + self.sessions.as_ref().map_or(0, |lists| lists.lives.len() + lists.unacknowledged.len()) * DEADLINE_BYTES
            + self.parts.heap_bytes()
    }

    /// The indexes that its records are in.
    #[inline]
    pub fn indexes(&self) -> &Indexes {
        self.parts.indexes()
    }

    pub(super) fn set_indexes(&mut self, indexes: &Indexes) -> Vec<IndexPart> {
        self.parts.set_indexes(indexes)
    }

    /// Which database of which shard this is.
    pub(super) fn place(&self) -> Place {
        self.parts.place()
    }

    /// Sets which database of which shard this is, for its index heads.
    pub(super) fn set_place(&mut self, place: Place) {
        self.parts.set_place(place);
    }

    /// Applies pending changes of one index, and publishes its first record.
    pub(super) fn settle(&mut self, index: usize) -> Option<Item> {
        self.parts.settle(index, &self.table)
    }

    /// Applies pending index changes, before a read.
    #[inline]
    pub(super) fn apply_pending(&mut self) {
        self.parts.apply_pending(&self.table);
    }

    /// The number of pending index changes.
    pub(super) fn pending_changes(&self) -> usize {
        self.parts.pending_changes()
    }

    /// This database's part of an index, in order. Pending changes must have been applied.
    pub fn part(&self, index: usize) -> Option<&Ranked<Item>> {
        self.parts.part(index)
    }

    /// The number of the last index change that affected this part.
    pub fn part_changed(&self, index: usize) -> u64 {
        self.parts.part_changed(index)
    }

    /// True when there are enough pending changes to rewrite this part completely.
    #[cfg(test)]
    pub(super) fn part_will_be_rewritten(&self, index: usize) -> bool {
        self.parts.part_will_be_rewritten(index)
    }

    /// Heap bytes of this part of an index.
    pub fn part_bytes(&self, index: usize) -> usize {
        self.parts.part_bytes(index)
    }

    /// True when every record here that an index covers and that has its field is in the index.
    pub fn part_has_all(&self, index: usize) -> bool {
        self.parts.has_all(index)
    }

    /// The entry of a record in an index.
    #[inline]
    pub fn indexed(&self, item: Item) -> Option<&Entry> {
        self.table.by_id(item.1)
    }

    /// True when an indexed record is at or before this score and name.
    pub fn is_indexed_up_to(&self, item: Item, score: f64, name: &[u8]) -> bool {
        match by_score(item.0, score) {
            Ordering::Equal => self.indexed(item).is_some_and(|entry| entry.name() <= name),
            order => order == Ordering::Less,
        }
    }

    /// The id of a record in the groups of an index.
    pub fn grouped_id(&self, key: Key<'_>) -> NameId {
        NameHash::with_shard(self.table.id_of(key.hash, key.name), usize::from(self.parts.place().shard))
    }

    /// The hash of a key, expired fields included.
    pub fn typed_hash(&self, key: Key<'_>) -> Option<HashRef<'_>> {
        self.typed::<HashRef<'_>>(self.entry(key)?, 0)
    }

    /// The record of such an id, whose shard this is.
    pub fn grouped(&self, id: NameId) -> Option<&Entry> {
        self.table.by_id_with_shard(id)
    }

    /// Rebuilds this part of an index.
    pub(super) fn build_part(&mut self, index: usize) {
        self.parts.build(index, &self.table, &self.shapes);
    }

    /// Adds the records at positions from `from` to `to` to the indexes that are being backfilled.
    pub(super) fn index_range(&mut self, from: u32, to: u32) -> usize {
        let (parts, table, shapes) = (&mut self.parts, &self.table, &self.shapes);
        let mut seen = 0;
        table.visit_range(from, to, |entry| {
            parts.add_to_unfilled(table, entry, shapes, from);
            seen += 1;
        });
        seen
    }

    /// The last position of the range that is visited together with `position`.
    pub fn range_end(&self, position: u32) -> u32 {
        self.table.range_end(position)
    }

    /// Visits the entries at positions from `from` to `to`.
    pub fn visit_range<'t>(&'t self, from: u32, to: u32, visit: impl FnMut(&'t Entry)) {
        self.table.visit_range(from, to, visit);
    }

    /// Removes everything. The indexes remain, empty.
    pub(super) fn take_all(&mut self) -> Db {
        let empty = Db { parts: self.parts.emptied(), rates: self.rates.take(), ..Db::default() };
        std::mem::replace(self, empty)
    }

    /// Removes everything and keeps the memory of the table, for the private keyspace of a client. It has no indexes,
    /// and no value that takes long to free.
    pub(super) fn clear(&mut self) {
        let Db { table, shapes, .. } = self;
        table.iter().for_each(|entry| ValueType::of(entry).release_entry(entry, shapes));
        table.clear();
        self.deadlines.clear();
        self.field_deadlines.clear();
        self.open_runs.clear();
        self.sessions = None;
        self.own_values = 0;
        self.by_type = Default::default();
        self.by_run_status = Default::default();
        self.deadline_sum = 0;
    }

    /// Changes a key's value, and updates deadlines and indexes. A replaced value that takes long to free is passed to
    /// `discard`.
    #[inline]
    pub(super) fn change(
        &mut self,
        key: Key<'_>,
        change: &Change<'_>,
        thresholds: &Thresholds,
        discard: impl FnOnce(Entry),
    ) -> Applied {
        let fields = change.record_fields();
        let mask = match fields {
            RecordFields::None => IndexMask::EMPTY,
            RecordFields::Set(fields) => self.parts.concerned(key.name, fields.iter().map(|(field, _)| *field)),
            RecordFields::Named(fields) => self.parts.concerned(key.name, fields.iter().copied()),
            RecordFields::Any => self.parts.covering(key.name),
        };
        let replaces = change.replaces_other_types();
        let apply = |entry: &mut Entry, shapes: &mut Shapes| match !replaces || is_replaced_in_place(entry, change) {
            true => Some(change.apply(entry, shapes, thresholds)),
            false => None,
        };
        let changed = match mask.is_empty() {
            true => self.change_entry(key, apply),
            false => self.change_record(key, mask, fields, apply),
        };
        let mut replaced_deadline = None;
        match changed {
            Some(Some(applied)) => {
                if applied.emptied() {
                    self.remove(key);
                }
                return applied;
            }
            // A value of another type, or one that takes long to free.
            Some(None) => {
                let replaced = self.remove(key).expect("the entry was just found");
                replaced_deadline = replaced.deadline();
                discard(replaced);
            }
            None => {}
        }
        match change.create(key.name, &mut self.shapes, thresholds) {
            Some((entry, applied)) => {
                self.insert(key, entry);
                match replaced_deadline {
                    Some(deadline) => applied.replacing(Some(deadline)),
                    None => applied,
                }
            }
            None => Applied::default(),
        }
    }

    /// Changes an entry in a way that affects no index. `None` when there is no such key.
    #[inline]
    pub(super) fn change_entry<T>(
        &mut self,
        key: Key<'_>,
        change: impl FnOnce(&mut Entry, &mut Shapes) -> T,
    ) -> Option<T> {
        let entry = self.table.get_mut(key.hash, key.name)?;
        let before = Listed::of(entry);
        let result = change(entry, &mut self.shapes);
        let after = Listed::of(entry);
        if before != after {
            self.relist(self.table.id_of(key.hash, key.name), before, after);
        }
        Some(result)
    }

    /// Changes an entry in a way that may change its score in some indexes.
    #[inline]
    fn change_record<T>(
        &mut self,
        key: Key<'_>,
        mask: IndexMask,
        fields: RecordFields<'_>,
        change: impl FnOnce(&mut Entry, &mut Shapes) -> T,
    ) -> Option<T> {
        let entry = self.table.get_mut(key.hash, key.name)?;
        let before = Listed::of(entry);
        let (mut was, mut is) = (IndexScores::new(), IndexScores::new());
        let (mut was_placed, mut is_placed) = (Placements::new(), Placements::new());
        self.parts.scores_before_change(mask, entry, &self.shapes, &mut was, &mut was_placed);
        let result = change(entry, &mut self.shapes);
        match fields {
            RecordFields::Set(fields) => {
                let placed = (&was_placed, &mut is_placed);
                self.parts.scores_after_set(mask, fields, (entry, &self.shapes), &mut is, placed);
            }
            _ => self.parts.scores(mask, entry, &self.shapes, &mut is, &mut is_placed),
        }
        let after = Listed::of(entry);
        let id = self.table.id_of(key.hash, key.name);
        if !was_placed.is_empty() {
            self.parts.move_in_groups(id, key.hash.position(), &was_placed, &is_placed);
        }
        self.parts.move_record(&self.table, key.name, id, mask, (&was, &is));
        if before != after {
            self.relist(self.table.id_of(key.hash, key.name), before, after);
        }
        Some(result)
    }

    /// Moves a key between the lists of its old and new state.
    #[inline]
    fn relist(&mut self, id: NameId, before: Listed, after: Listed) {
        let kind = if after.kind == ListKind::Other { before.kind } else { after.kind };
        if kind == ListKind::Session {
            return self.relist_session(id, before, after);
        }
        self.deadline_sum += u128::from(after.deadline.unwrap_or(0));
        self.deadline_sum -= u128::from(before.deadline.unwrap_or(0));
        reindex(&mut self.deadlines, id, before.deadline, after.deadline);
        match kind {
            ListKind::Hash => reindex(&mut self.field_deadlines, id, before.also, after.also),
            ListKind::Run => {
                let status = |listed: Listed| listed.also.map(|status| RunStatus::ALL[status as usize]);
                let open = |status: &RunStatus| !status.is_final();
                let position =
                    |listed: Listed| status(listed).filter(open).map(|_| NameHash::from_raw(id).position().into());
                reindex(&mut self.open_runs, id, position(before), position(after));
                if let Some(before) = status(before) {
                    self.by_run_status[before as usize] -= 1;
                }
                if let Some(after) = status(after) {
                    self.by_run_status[after as usize] += 1;
                }
            }
            ListKind::Other | ListKind::Session => {}
        }
    }

    fn relist_session(&mut self, id: NameId, before: Listed, after: Listed) {
        let lists = self.sessions.get_or_insert_default();
        reindex(&mut lists.lives, id, before.deadline, after.deadline);
        reindex(&mut lists.unacknowledged, id, before.also, after.also);
        if lists.lives.is_empty() {
            self.sessions = None;
        }
    }

    /// Adds an entry; the caller has removed the old one.
    pub(super) fn insert(&mut self, key: Key<'_>, entry: Entry) {
        let listed = Listed::of(&entry);
        let value_type = ValueType::of(&entry);
        self.own_values += usize::from(value_type.is_own);
        self.by_type[value_type.position()] += 1;
        entry.touch(self.used_at);
        let entry = &*self.table.insert(key.hash, entry);
        let (mask, mut scores) = (self.parts.covering(key.name), IndexScores::new());
        let mut placed = Placements::new();
        if !mask.is_empty() {
            self.parts.scores(mask, entry, &self.shapes, &mut scores, &mut placed);
        }
        let id = self.table.id_of(key.hash, key.name);
        if !placed.is_empty() {
            self.parts.move_in_groups(id, key.hash.position(), &Placements::new(), &placed);
        }
        if !mask.is_empty() {
            self.parts.add_record(&self.table, key.name, id, mask, &scores);
        }
        self.relist(id, Listed::default(), listed);
    }

    /// Removes an entry. Its body may still refer to a shape, which the caller releases.
    fn take(&mut self, key: Key<'_>) -> Option<Entry> {
        let id = self.table.id_of(key.hash, key.name);
        let mask = self.parts.covering(key.name);
        if !mask.is_empty() {
            let (mut scores, mut placed) = (IndexScores::new(), Placements::new());
            self.parts.scores(mask, self.table.get(key.hash, key.name)?, &self.shapes, &mut scores, &mut placed);
            if !placed.is_empty() {
                self.parts.move_in_groups(id, key.hash.position(), &placed, &Placements::new());
            }
            self.parts.remove_record(&self.table, key.name, id, mask, &scores);
        }
        let entry = self.table.remove(key.hash, key.name)?;
        let value_type = ValueType::of(&entry);
        self.own_values -= usize::from(value_type.is_own);
        self.by_type[value_type.position()] -= 1;
        self.relist(id, Listed::of(&entry), Listed::default());
        Some(entry)
    }

    /// Removes a key and returns its entry, to be dropped. Only its name and its object are still valid: everything
    /// else that its body refers to has been released.
    pub(super) fn remove(&mut self, key: Key<'_>) -> Option<Entry> {
        let entry = self.take(key)?;
        ValueType::of(&entry).release_entry(&entry, &mut self.shapes);
        Some(entry)
    }

    /// Removes a value with its deadline and returns both.
    pub(super) fn take_detached(&mut self, key: Key<'_>) -> Option<(DetachedValue, Option<u64>)> {
        let entry = self.take(key)?;
        let deadline = entry.deadline();
        Some((DetachedValue::taken_from(entry, &mut self.shapes), deadline))
    }

    /// Stores a value under a free name.
    pub(super) fn put_detached(&mut self, key: Key<'_>, value: DetachedValue, deadline: Option<u64>) {
        let entry = value.into_entry(key.name, &mut self.shapes, deadline);
        self.insert(key, entry);
    }
}

/// True when a change that replaces a value of any type can reuse the entry: the entry has the same type, and its value
/// is freed quickly.
#[inline]
fn is_replaced_in_place(entry: &Entry, change: &Change<'_>) -> bool {
    let value_type = ValueType::of(entry);
    value_type.is(change.value_type()) && !entry.object().is_some_and(|object| (value_type.is_freed_later)(object))
}

fn reindex(index: &mut BTreeSet<(u64, NameId)>, id: NameId, before: Option<u64>, after: Option<u64>) {
    if before == after {
        return;
    }
    if let Some(before) = before {
        index.remove(&(before, id));
    }
    if let Some(after) = after {
        index.insert((after, id));
    }
}
