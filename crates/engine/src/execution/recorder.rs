//! The locked part of the keyspace, for writing: every effect that a command records passes through here, to the state,
//! the journal batch, watchers, client-side caches and waiters. Refuses to know commands.

use super::view::{View, goes_with_its_fields};
use crate::clients::tracking::Reason;
use crate::error::{CommandError, CommandResult};
use crate::execution::engine::Engine;
use crate::execution::waiting::keys::note_ready;
use crate::execution::waiting::records::note_records;
use crate::panics;
use crate::settings::events::Events;
use keyspace::db::Db;
use keyspace::effects::codec;
use keyspace::index::{Definition, Indexes};
use keyspace::interest::watchers::Watched;
use keyspace::locked::Garbage;
use keyspace::types::hash::Pair;
use keyspace::types::list::{self, ListRef};
use keyspace::types::register::{self, RegisterRef};
use keyspace::types::run::Run;
use keyspace::types::session::{self, Session};
use keyspace::types::stream::Stream;
use keyspace::types::{Object, RecordFields, cell, hash, string};
use keyspace::{
    Applied, BadEffect, Cause, Change, Definable, Effect, Entry, Fate, HashRef, Key, Locked, SortedSetRef, Thresholds,
    Touch, Touches, ValueType,
};
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

/// The locked part of the keyspace, to be read and changed by recording effects.
pub struct Recorder<'a> {
    pub(super) view: View<'a>,
    pub(super) engine: &'a Engine,
    pub(super) thresholds: Thresholds,
    /// The batch for the journal, if there is a journal.
    pub(super) effects: Option<&'a mut Vec<u8>>,
    /// Effects recorded.
    pub(crate) changes: u64,
    /// Records written by the command, while an index stamps records.
    pub(super) written: Vec<Written>,
    /// The keys are those of an interactive transaction: no other client hears of them.
    pub(super) is_private: bool,
}

/// What a command that changes a cell has to know of it.
#[derive(Clone, Copy)]
pub struct CellStamp {
    /// Of its newest version.
    pub version: u64,
    pub time_us: u64,
    /// How many versions there are.
    pub kept: u64,
}

/// A record that a command has written, and which stamped fields it has set itself.
pub(super) struct Written {
    db: usize,
    name: Vec<u8>,
    set: Vec<Vec<u8>>,
}

impl<'a> std::ops::Deref for Recorder<'a> {
    type Target = View<'a>;

    #[inline]
    fn deref(&self) -> &View<'a> {
        &self.view
    }
}

impl<'a> Recorder<'a> {
    /// Applies an effect at once: later commands of the same script or transaction see it.
    #[inline]
    pub fn record(&mut self, effect: &Effect<'_>) -> Applied {
        self.record_in(self.view.db, effect)
    }

    /// Applies an effect in any database.
    pub fn record_in(&mut self, db: usize, effect: &Effect<'_>) -> Applied {
        if self.engine.stamps.load(Relaxed) {
            self.note_written(db, effect);
        }
        if self.engine.sessions.has_hooks() {
            self.make_way(db, effect);
        }
        self.changes += 1;
        let applied = self.record_alone(db, effect);
        if applied.replaced_deadline().is_some_and(|deadline| deadline <= self.view.now_ms) {
            self.view.stats.expired_keys.add(1);
        }
        applied
    }

    /// Removes an expired session from the key that an effect is about to give a value of another type. See
    /// [`Recorder::remove_if_expired`].
    #[cold]
    fn make_way(&mut self, db: usize, effect: &Effect<'_>) {
        let Effect::Change { key, change } = *effect else { return };
        if change.value_type().is(&session::TYPE) || change.replaces_other_types() {
            return;
        }
        let is_in_the_way = |entry: &Entry| matches!(entry.object(), Some(Object::Session(session)) if session.is_expired(self.view.now_ms));
        if self.view.locked.db(db, key).entry(key).is_some_and(is_in_the_way) {
            self.view.stats.expired_keys.add(1);
            self.record_alone(db, &Effect::Delete { key, cause: Cause::Expired });
        }
    }

    /// Makes an effect true without what it entails.
    fn record_alone(&mut self, db: usize, effect: &Effect<'_>) -> Applied {
        assert!(self.view.offers(db, effect), "a command that is served changes only keys that it is offered");
        if self.is_private {
            return self.record_privately(db, effect);
        }
        panics::note_effect();
        if self.engine.watches.load(Relaxed) > 0 {
            self.view.locked.notify_watchers(db, effect, self.view.now_ms);
        }
        if !self.view.events.is_empty() {
            self.view.notify_expired_or_new(db, effect);
        }
        if self.engine.tracking.any() {
            self.note_stale(db, effect);
        }
        if self.engine.forks.any() {
            let shard_of = |key: Key<'_>| self.engine.keyspace.shard_of_key(key);
            self.engine.forks.note(&self.view.locked, shard_of, db, effect);
        }
        let applied = self.engine.apply(&mut self.view.locked, db, effect, &self.thresholds);
        if self.engine.waiters.any()
            && let Some(pending) = self.view.notifications
        {
            note_ready(pending, &self.view.locked, db, effect);
        }
        if self.engine.record_waiters.any()
            && let Some(pending) = self.view.notifications
        {
            note_records(pending, &self.view.locked, db, effect);
        }
        if self.engine.sessions.any_attached() {
            self.note_pushed(db, effect);
        }
        if let Some(batch) = &mut self.effects {
            match self.engine.is_walked() {
                false => codec::encode(db, effect, batch),
                true => encode_while_walked(self.engine, &self.view.locked, db, effect, batch),
            }
        }
        self.notify_expired_fields(db, effect, &applied);
        if self.engine.restores.any() {
            self.end_restores(db, effect);
        }
        applied
    }

    /// What a restore has still to do in a database that is emptied goes with its keys: it comes before, as a whole.
    #[cold]
    fn end_restores(&mut self, db: usize, effect: &Effect<'_>) {
        for ended in self.engine.restores.ended_by(db, effect) {
            self.record_alone(0, &Effect::Undefine { what: Definable::Restore, name: &[ended] });
        }
    }

    /// Makes an effect true on the keys of an interactive transaction. A panic afterwards costs no more than that
    /// transaction, so the effect does not count as recorded.
    #[inline(never)]
    fn record_privately(&mut self, db: usize, effect: &Effect<'_>) -> Applied {
        if !self.view.events.is_empty() {
            self.view.notify_expired_or_new(db, effect);
        }
        let applied = self.view.locked.apply(db, effect, &self.thresholds);
        if let Some(batch) = &mut self.effects {
            codec::encode(db, effect, batch);
        }
        self.notify_expired_fields(db, effect, &applied);
        applied
    }

    /// Applies an effect that an interactive transaction has recorded.
    pub(crate) fn record_again(&mut self, db: usize, effect: &Effect<'_>) {
        self.changes += 1;
        self.record_alone(db, effect);
    }

    /// From now on, effects imply no events.
    pub(crate) fn stop_noting_events(&mut self) {
        self.view.events = Events::empty();
    }

    #[inline]
    fn notify_expired_fields(&mut self, db: usize, effect: &Effect<'_>, applied: &Applied) {
        if let Effect::Change { key, change } = effect
            && change.fate() == Fate::Loses(Cause::Expired)
        {
            self.view.notify_in(db, Events::HASH, "hexpired", *key);
            if applied.emptied() {
                self.view.notify_in(db, Events::GENERIC, "del", *key);
            }
        }
    }

    /// Applies an effect that was recorded elsewhere, and publishes it as if its command had run here. With `is_live`,
    /// when clients read during the replay, a definition takes effect at once.
    pub(crate) fn replay(&mut self, db: usize, effect: &Effect<'_>, is_live: bool) {
        if !is_live && effect.touches(db).is_definition() {
            self.view.locked.apply(db, effect, &self.thresholds);
            return;
        }
        let applied = self.record_alone(db, effect);
        if !self.view.events.is_empty() {
            self.view.notify_replayed(db, effect, applied.emptied());
        }
    }

    /// Applies an effect on whole databases to some keys only.
    pub(crate) fn apply_where(&mut self, db: usize, effect: &Effect<'_>, counts: impl Fn(&[u8]) -> bool) {
        self.view.locked.apply_where(db, effect, counts);
    }

    /// Notes which fields a command sets in a record, for [`Recorder::stamp_written`].
    #[cold]
    fn note_written(&mut self, db: usize, effect: &Effect<'_>) {
        let Effect::Change { key, change } = *effect else { return };
        let set: &[Pair<'_>] = match change.record_fields() {
            RecordFields::Set(fields) => fields,
            RecordFields::Named(_) if change.fate() == Fate::Loses(Cause::Deleted) => &[],
            RecordFields::Named(_) | RecordFields::Any | RecordFields::None => return,
        };
        let at = match self.written.iter().position(|record| record.db == db && record.name == key.name) {
            Some(at) => at,
            None => {
                self.written.push(Written { db, name: key.name.to_vec(), set: Vec::new() });
                self.written.len() - 1
            }
        };
        let indexes = self.indexes(db, key);
        let stamps = |definition: &Definition, field: &[u8]| definition.stamp && definition.field == field;
        let stamped = |field: &[u8]| indexes.iter().any(|index| stamps(&index.definition, field));
        let set = set.iter().map(|(field, _)| *field).filter(|field| stamped(field)).map(<[u8]>::to_vec);
        self.written[at].set.extend(set);
    }

    /// Stamps the records that the command has written with the time, where an index asks for it and the command has
    /// not set the field itself. Called after all other effects of the command.
    #[inline]
    pub(crate) fn stamp_written(&mut self) {
        if !self.written.is_empty() {
            self.stamp_all();
        }
    }

    /// The indexes that a key is in. The keys of an interactive transaction are in none until it commits, but stamped as
    /// the others are.
    fn indexes(&self, db: usize, key: Key<'_>) -> Indexes {
        match self.is_private {
            true => self.engine.indexes(),
            false => self.view.locked.db(db, key).indexes().clone(),
        }
    }

    #[cold]
    fn stamp_all(&mut self) {
        let now = self.view.now_ms.to_string();
        for Written { db, name, set } in std::mem::take(&mut self.written) {
            let key = Key::new(&name);
            let within = self.view.locked.db(db, key);
            let is_hash = |entry: &Entry| ValueType::of(entry).is(&hash::TYPE);
            if !within.entry(key).is_some_and(is_hash) {
                continue;
            }
            let indexes = self.indexes(db, key);
            let stamping = indexes.iter().map(|index| &index.definition).filter(|definition| definition.stamp);
            let stamping = stamping.filter(|definition| definition.covers(&name));
            let stamps = stamping.filter(|definition| !set.contains(&definition.field));
            let stamps: SmallVec<[_; 2]> = stamps.map(|definition| (&*definition.field, now.as_bytes())).collect();
            if !stamps.is_empty() {
                self.changes += 1;
                self.record_alone(
                    db,
                    &Effect::change(key, hash::Change::Set { fields: &stamps, keep_deadlines: true }),
                );
            }
        }
    }

    /// Notes invalidations for the keys that an effect changes.
    #[inline(never)]
    fn note_stale(&mut self, db: usize, effect: &Effect<'_>) {
        let Some(pending) = self.view.notifications else { return };
        let tracking = &self.engine.tracking;
        let touches = match effect.touches(db) {
            Touches::Keys(touches) => touches,
            Touches::Emptied(_) | Touches::Swapped(..) => {
                self.view.locked.forget_tracked();
                tracking.note_all_forgotten();
                return pending.all_stale();
            }
            Touches::Definition => return,
        };
        for Touch { key, fate, .. } in touches {
            let reason = match fate {
                Fate::Read => continue,
                Fate::Gone(Cause::Expired) | Fate::Loses(Cause::Expired) => Reason::Expired,
                Fate::Gone(Cause::Deleted | Cause::Evicted)
                | Fate::Loses(Cause::Deleted | Cause::Evicted)
                | Fate::Gains { .. }
                | Fate::Amended
                | Fate::Deadline => Reason::Changed,
            };
            let readers = self.view.locked.tracked_mut(key).forget(key.name);
            if let Some(readers) = &readers {
                tracking.note_forgotten(readers.len());
            }
            if readers.is_some() || tracking.has_prefixes() {
                pending.stale(key.name, readers.unwrap_or_default(), reason);
            }
        }
    }

    /// Forgets readers of at most `count_max` keys of the locked shards while the tracking table is over its limit.
    /// True when it still is.
    pub(crate) fn forget_readers(&mut self, count_max: usize) -> bool {
        self.view.forget_readers(self.engine, b"", count_max)
    }

    /// Ends recording; the keys can still be read.
    pub(crate) fn into_view(self) -> View<'a> {
        self.count_changes();
        self.view
    }

    /// How long the batch is so far.
    pub(crate) fn recorded_bytes(&self) -> usize {
        self.effects.as_ref().map_or(0, |effects| effects.len())
    }

    /// Counts the changes. Called once everything is recorded.
    #[inline]
    pub(crate) fn count_changes(&self) {
        if !self.is_private {
            self.view.stats.changes.add(self.changes);
        }
    }

    /// Takes what effects have removed, to be freed elsewhere.
    #[inline]
    pub(crate) fn take_garbage(&mut self) -> Garbage {
        self.view.take_garbage()
    }

    /// The locks, once everything is recorded: counts the changes, and leaves the rest to the commit.
    pub(crate) fn finish(self) -> Locked<'a> {
        self.count_changes();
        self.view.locked
    }

    /// The watches of the key's shard.
    pub(crate) fn watched_mut(&mut self, key: Key<'_>) -> &mut Watched {
        self.view.locked.watched_mut(key)
    }

    /// True when the key is there but expired.
    pub(crate) fn is_expired(&self, key: Key<'_>) -> bool {
        let entry = self.view.locked.db(self.view.db, key).entry(key);
        entry.is_some_and(|entry| Db::is_expired(entry, self.view.now_ms))
    }

    /// Rebuilds every key of the locked shards from its own image.
    pub(crate) fn remake(&mut self) -> Result<(), BadEffect> {
        self.view.locked.remake(&self.thresholds)
    }

    /// Removes a key if it has expired, so that a write starts without it. True when it had. A session stays, if a function may be called
    /// when it goes: the expiry cycle does both, unless the key gets another value before that.
    pub fn remove_if_expired(&mut self, db: usize, key: Key<'_>) -> bool {
        if !self.view.is_offered(key) {
            return false;
        }
        let now_ms = self.view.now_ms;
        let Some(entry) = self.view.locked.db(db, key).entry(key).filter(|entry| Db::is_expired(entry, now_ms)) else {
            return false;
        };
        let stats = self.view.stats;
        match entry.object() {
            // IMPORTANT: hooks change under all locks, so `make_way` finds them as they are here; a private key is under none.
            Some(Object::Session(_)) if !self.is_private && self.engine.sessions.has_hooks() => return false,
            // As when the cycle finds it.
            Some(Object::Hash(table)) if goes_with_its_fields(entry, now_ms) => {
                stats.expired_fields.add(table.len() as u64);
            }
            _ => stats.expired_keys.add(1),
        }
        self.record_in(db, &Effect::Delete { key, cause: Cause::Expired });
        true
    }

    /// Prepares to change the hash at a key: removes expired fields first, so that the next effects are exact. An error
    /// when the key holds another type.
    pub fn prepare_hash(&mut self, key: Key<'_>) -> CommandResult {
        if !self.view.is_offered(key) {
            return Ok(());
        }
        let now_ms = self.view.now_ms;
        let Some(entry) = self.view.locked.db(self.view.db, key).entry(key) else { return Ok(()) };
        if Db::is_expired(entry, now_ms) {
            self.remove_if_expired(self.view.db, key);
            return Ok(());
        }
        if !ValueType::of(entry).is(&hash::TYPE) {
            return Err(CommandError::WrongType);
        }
        let names = match entry.object() {
            Some(Object::Hash(table)) if table.overdue(now_ms) > 0 => table.expired_names(now_ms, usize::MAX),
            _ => return Ok(()),
        };
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        self.view.stats.expired_fields.add(names.len() as u64);
        self.record(&Effect::change(key, hash::Change::Delete { fields: &names, cause: Cause::Expired }));
        Ok(())
    }

    /// The hash at a key, made ready to be changed.
    pub fn hash_to_change(&mut self, key: Key<'_>) -> Result<Option<HashRef<'_>>, CommandError> {
        self.prepare_hash(key)?;
        self.view.hash(key)
    }

    /// The sorted set at a key, made ready to be changed.
    #[inline]
    pub fn sorted_set_to_change(&mut self, key: Key<'_>) -> Result<Option<SortedSetRef<'_>>, CommandError> {
        self.remove_if_expired(self.view.db, key);
        self.view.sorted_set(key)
    }

    /// Prepares to change the cell at a key: what there is of it. An error when the key holds another type.
    #[inline]
    pub fn cell_to_change(&mut self, key: Key<'_>) -> Result<Option<CellStamp>, CommandError> {
        if !self.view.is_offered(key) {
            return Ok(None);
        }
        let Some(entry) = self.view.locked.db(self.view.db, key).entry(key) else { return Ok(None) };
        if Db::is_expired(entry, self.view.now_ms) {
            self.remove_if_expired(self.view.db, key);
            return Ok(None);
        }
        if !ValueType::of(entry).is(&cell::TYPE) {
            return Err(CommandError::WrongType);
        }
        if self.view.touch {
            self.view.use_entry(entry);
        }
        let cell = cell::cell(entry);
        cell.prefetch_write();
        let (version, time_us) = cell.stamp();
        Ok(Some(CellStamp { version, time_us, kept: cell.len() as u64 }))
    }

    /// The run at a key, made ready to be changed.
    #[inline]
    pub fn run_to_change(&mut self, key: Key<'_>) -> Result<Option<&Run>, CommandError> {
        self.remove_if_expired(self.view.db, key);
        self.view.run(key)
    }

    /// The stream at a key, made ready to be changed.
    #[inline]
    pub fn stream_to_change(&mut self, key: Key<'_>) -> Result<Option<&Stream>, CommandError> {
        self.remove_if_expired(self.view.db, key);
        self.view.stream(key)
    }

    /// Looks at the value of that type at a key, once, to change it. An error when the key holds another type.
    #[inline]
    fn look_at<T>(
        &mut self,
        key: Key<'_>,
        wanted: &ValueType,
        look: impl FnOnce(Option<&Entry>) -> T,
    ) -> Result<T, CommandError> {
        if !self.view.is_offered(key) {
            return Ok(look(None));
        }
        match self.view.locked.db(self.view.db, key).entry(key) {
            None => return Ok(look(None)),
            Some(entry) if Db::is_expired(entry, self.view.now_ms) => {}
            Some(entry) if !ValueType::of(entry).is(wanted) => return Err(CommandError::WrongType),
            Some(entry) => {
                if self.view.touch {
                    self.view.use_entry(entry);
                }
                return Ok(look(Some(entry)));
            }
        }
        self.remove_if_expired(self.view.db, key);
        Ok(look(None))
    }

    /// Looks at the register at a key, once, to change it.
    #[inline]
    pub fn look_at_register<T>(
        &mut self,
        key: Key<'_>,
        look: impl FnOnce(Option<RegisterRef<'_>>) -> T,
    ) -> Result<T, CommandError> {
        self.look_at(key, &register::TYPE, |entry| look(entry.map(register::register)))
    }

    /// The register at a key, made ready to be changed.
    #[inline]
    pub fn register_to_change(&mut self, key: Key<'_>) -> Result<Option<RegisterRef<'_>>, CommandError> {
        self.remove_if_expired(self.view.db, key);
        self.view.register(key)
    }

    /// Looks at the list at a key, once, to change it.
    #[inline]
    pub fn look_at_list<T>(
        &mut self,
        key: Key<'_>,
        look: impl FnOnce(Option<ListRef<'_>>) -> T,
    ) -> Result<T, CommandError> {
        self.look_at(key, &list::TYPE, |entry| look(entry.map(list::list)))
    }

    /// The session at a key. An expired one is absent, and left to the expiry cycle.
    pub fn session_to_change(&self, key: Key<'_>) -> Result<Option<&Session>, CommandError> {
        self.view.session(key)
    }

    /// Sends a client a request that is pending, when this command commits.
    pub(crate) fn deliver(&self, client: u64, key: Key<'_>, request: session::Request<'_>) {
        if let Some(pending) = self.view.notifications {
            pending.request(client, key.name, request.id, request.payload);
        }
    }

    /// Notes a request for the client that is attached to its session.
    #[inline(never)]
    fn note_pushed(&mut self, db: usize, effect: &Effect<'_>) {
        let Effect::Change { key, change: Change::Session(session::Change::Push { id, payload, .. }) } = *effect else {
            return;
        };
        let entry = self.view.locked.db(db, key).entry(key);
        if let Some(Object::Session(session)) = entry.and_then(Entry::object)
            && session.attached() != 0
            && let Some(pending) = self.view.notifications
        {
            pending.request(session.attached(), key.name, id, payload);
        }
    }

    /// When a small value becomes a large one.
    pub(crate) fn thresholds(&self) -> &Thresholds {
        &self.thresholds
    }

    /// Removes all expired keys and fields from the locked shards of the selected database, so that counts leave them
    /// out. The caller has made sure that there are few ([`Engine::lock_for_index`]), or holds the locks for other
    /// reasons.
    pub(crate) fn expire_everything(&mut self) {
        let (db, now_ms) = (self.view.db, self.view.now_ms);
        loop {
            let shards = || self.view.locked.shards().map(|(_, shard)| shard.db(db));
            let overdue: Vec<Vec<u8>> = shards().flat_map(|db| db.expired_keys(now_ms, usize::MAX)).collect();
            let fields: Vec<_> = shards().filter_map(|db| db.expired_field_names(now_ms, usize::MAX)).collect();
            if overdue.is_empty() && fields.is_empty() {
                return;
            }
            for name in overdue.iter().chain(fields.iter().map(|(name, _)| name)) {
                let key = Key::new(name);
                if !self.remove_if_expired(db, key) {
                    // Some of its fields, then; whatever else it holds stays.
                    let _ = self.prepare_hash(key);
                }
            }
        }
    }

    /// Removes keys that were found to be overdue, and writes what was to be kept.
    pub(crate) fn change_leftovers(&mut self) {
        // They stay in the list: their expiry was notified when they were met.
        let Some(after) = self.view.afterwards.borrow().clone() else { return };
        for (name, offset, bytes) in &after.kept {
            let change = string::Change::Write { offset: *offset, bytes };
            self.record(&Effect::change(Key::new(name), change));
        }
        for name in &after.overdue {
            self.remove_if_expired(self.view.db, Key::new(name));
        }
    }
}

/// Appends an effect that was just applied while a walk over all keys is under way. An effect that refers from one key
/// to another is replaced by the resulting state of each: the snapshot may have one of them from before the effect and
/// the other from after. A value that is too large for a batch makes the walk start over instead.
#[cold]
fn encode_while_walked(engine: &Engine, locked: &Locked<'_>, db: usize, effect: &Effect<'_>, batch: &mut Vec<u8>) {
    let touches = match effect.touches(db) {
        // One key in two databases is one place in a snapshot.
        Touches::Keys(touches) if touches.iter().any(|touch| touch.key.name != touches[0].key.name) => touches,
        Touches::Keys(_) | Touches::Emptied(_) | Touches::Swapped(..) | Touches::Definition => {
            return codec::encode(db, effect, batch);
        }
    };
    let changed = || touches.iter().filter(|touch| touch.fate != Fate::Read);
    if changed().any(|touch| locked.is_large(touch.db, touch.key)) {
        engine.spoil_walks();
        return codec::encode(db, effect, batch);
    }
    for Touch { db, key, .. } in changed() {
        match locked.db(*db, *key).entry(*key) {
            Some(_) => locked.encode_key(*db, *key, batch),
            None => codec::encode(*db, &Effect::Delete { key: *key, cause: Cause::Deleted }, batch),
        }
    }
}
