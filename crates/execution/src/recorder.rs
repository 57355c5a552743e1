//! The locked part of the keyspace, for writing. A handler reads through [`Recorder::view`] and changes keys by
//! recording effects; expired keys and elements are removed first, and records are stamped at the end. Refuses to know
//! commands, and the observers of an effect (`observers`).

use super::observers::Recording;
use super::view::{View, expires_with_its_elements};
use crate::engine::Engine;
use crate::error::{CommandError, CommandResult};
use crate::settings::events::Events;
use keyspace::db::Db;
use keyspace::garbage::Garbage;
use keyspace::index::{Definition, Indexes};
use keyspace::interest::watchers::Watched;
use keyspace::types::hash::Pair;
use keyspace::types::{ElementExpiry, RecordFields, hash, string};
use keyspace::{Applied, BadEffect, Cause, Effect, Entry, Fate, Key, Locked, Thresholds, Typed, ValueType};
use smallvec::SmallVec;

/// The locked part of the keyspace, to be read and changed by recording effects.
pub struct Recorder<'a> {
    recording: Recording<'a>,
    /// Effects recorded.
    pub changes: u64,
    /// Records written by the command, while an index stamps records.
    written: Vec<Written>,
}

/// A record that a command has written, and which stamped fields the command has set itself.
struct Written {
    db: usize,
    name: Vec<u8>,
    set: Vec<Vec<u8>>,
}

impl<'a> View<'a> {
    /// Turns the view into a recorder.
    pub fn into_recorder(self, engine: &'a Engine, effects: &'a mut Vec<u8>) -> Recorder<'a> {
        self.into_recorder_of(engine, false, effects)
    }

    /// Turns the view into a recorder on shared keys, or on the private keys of an interactive transaction, whose
    /// effects are kept even without a journal.
    #[inline]
    pub fn into_recorder_of(self, engine: &'a Engine, is_private: bool, effects: &'a mut Vec<u8>) -> Recorder<'a> {
        let effects = (is_private || engine.persistence.is_recording()).then_some(effects);
        self.recorder(engine, is_private, effects)
    }

    /// Turns the view into a recorder that applies effects recorded elsewhere.
    pub fn into_follower(self, engine: &'a Engine) -> Recorder<'a> {
        self.recorder(engine, false, None)
    }

    #[inline]
    fn recorder(self, engine: &'a Engine, is_private: bool, batch: Option<&'a mut Vec<u8>>) -> Recorder<'a> {
        let thresholds = engine.thresholds();
        let recording = Recording { view: self, engine, thresholds, batch, is_private };
        Recorder { recording, changes: 0, written: Vec::new() }
    }
}

impl<'a> Recorder<'a> {
    /// The view, for reading keys.
    #[inline]
    pub fn view(&self) -> &View<'a> {
        &self.recording.view
    }

    /// The instant of the command, in unix milliseconds.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.recording.view.now_ms
    }

    /// The number of the selected database.
    #[inline]
    pub fn db(&self) -> usize {
        self.recording.view.db
    }

    /// Notifies subscribers of an event of this class for a key (`notify-keyspace-events`).
    #[inline]
    pub fn notify(&self, class: Events, event: &'static str, key: Key<'_>) {
        self.recording.view.notify(class, event, key);
    }

    /// Notifies subscribers of an event for a key of any database.
    #[inline]
    pub fn notify_in(&self, db: usize, class: Events, event: &'static str, key: Key<'_>) {
        self.recording.view.notify_in(db, class, event, key);
    }

    /// The engine.
    pub(super) fn engine(&self) -> &'a Engine {
        self.recording.engine
    }

    /// Applies an effect at once: later commands of the same script or transaction see it.
    #[inline]
    pub fn record(&mut self, effect: &Effect<'_>) -> Applied {
        self.record_in(self.recording.view.db, effect)
    }

    /// Applies an effect in any database.
    #[inline]
    pub fn record_in(&mut self, db: usize, effect: &Effect<'_>) -> Applied {
        debug_assert!(
            !self.replaces_own_value(db, effect),
            "an effect that replaces a value of ours was recorded without `replace`"
        );
        if self.recording.engine.indexes.stamps_records() {
            self.note_written(db, effect);
        }
        if self.recording.engine.sessions.has_hooks() {
            self.make_way(db, effect);
        }
        self.changes += 1;
        let applied = self.recording.apply(db, effect);
        if applied.replaced_deadline().is_some_and(|deadline| deadline <= self.recording.view.now_ms) {
            self.recording.view.stats.expired_keys.add(1);
        }
        applied
    }

    /// Records an effect that gives a key another value, or removes it, whatever it holds. An error, with nothing
    /// recorded, when the key holds a value of a type that Redis does not have: it is not replaced by the way.
    #[inline]
    pub fn replace(&mut self, effect: &Effect<'_>) -> Result<Applied, CommandError> {
        let db = self.recording.view.db;
        match *effect {
            Effect::Change { key, .. } | Effect::Delete { key, .. } | Effect::Put { key, .. } => {
                self.pass_replace(db, key)?
            }
            Effect::Rename { to, .. } => self.pass_replace(db, to)?,
            Effect::Copy { to, to_db, .. } => self.pass_replace(to_db, to)?,
            Effect::Move { key, to_db } => self.pass_replace(to_db, key)?,
            Effect::Deadline { .. }
            | Effect::Rate { .. }
            | Effect::FlushDb
            | Effect::FlushAll
            | Effect::SwapDb { .. }
            | Effect::Define { .. }
            | Effect::Undefine { .. } => unreachable!("the effect replaces no value"),
        }
        Ok(self.record(effect))
    }

    /// Refuses to replace the value of a key if its type is one that Redis does not have. For commands that check
    /// several keys before they replace the first; others use [`Recorder::replace`].
    #[inline]
    pub fn pass_replace(&self, db: usize, key: Key<'_>) -> CommandResult {
        if !self.recording.view.locked.db(db, key).has_own_values() {
            return Ok(());
        }
        self.own_value(db, key).map_or(Ok(()), |own| Err(CommandError::wrong_type(own)))
    }

    /// The type of the value that a key holds, if Redis does not have it and the key has not expired.
    #[cold]
    fn own_value(&self, db: usize, key: Key<'_>) -> Option<&'static ValueType> {
        let entry = self.recording.view.locked.db(db, key).entry(key)?;
        let is_expired = Db::is_expired(entry, self.recording.view.now_ms);
        Some(ValueType::of(entry)).filter(|found| found.is_own && !is_expired)
    }

    fn holds_own_value(&self, db: usize, key: Key<'_>) -> bool {
        self.own_value(db, key).is_some()
    }

    /// True when the effect puts a value of another type in the place of one that [`Recorder::replace`] would protect.
    fn replaces_own_value(&self, db: usize, effect: &Effect<'_>) -> bool {
        match *effect {
            Effect::Change { key, change } => change.replaces_other_types() && self.holds_own_value(db, key),
            Effect::Rename { to, .. } => self.holds_own_value(db, to),
            Effect::Copy { to, to_db, .. } => self.holds_own_value(to_db, to),
            Effect::Move { key, to_db } => self.holds_own_value(to_db, key),
            Effect::Put { key, value, .. } => !value.value_type.is_own && self.holds_own_value(db, key),
            _ => false,
        }
    }

    /// Removes an expired session from the key that an effect is about to give a value of another type. See
    /// [`Recorder::remove_if_expired`].
    #[cold]
    fn make_way(&mut self, db: usize, effect: &Effect<'_>) {
        let Effect::Change { key, change } = *effect else { return };
        if change.value_type().is_bound || change.replaces_other_types() {
            return;
        }
        let now_ms = self.recording.view.now_ms;
        let is_in_the_way = |entry: &Entry| ValueType::of(entry).is_bound && Db::is_expired(entry, now_ms);
        if self.recording.view.locked.db(db, key).entry(key).is_some_and(is_in_the_way) {
            self.recording.view.stats.expired_keys.add(1);
            self.recording.apply(db, &Effect::Delete { key, cause: Cause::Expired });
        }
    }

    /// Applies an effect of an interactive transaction to the shared keys.
    pub fn record_again(&mut self, db: usize, effect: &Effect<'_>) {
        self.changes += 1;
        self.recording.apply(db, effect);
    }

    /// Stops noting the events that effects imply.
    pub fn stop_noting_events(&mut self) {
        self.recording.view.events = Events::empty();
    }

    /// Applies an effect that was recorded elsewhere, and publishes it as if its command had run here. With `is_live`,
    /// when clients read during the replay, a definition takes effect at once.
    pub fn replay(&mut self, db: usize, effect: &Effect<'_>, is_live: bool) {
        if !is_live && effect.touches(db).is_definition() {
            self.recording.view.locked.apply(db, effect, &self.recording.thresholds);
            return;
        }
        let applied = self.recording.apply(db, effect);
        if !self.recording.view.events.is_empty() {
            self.recording.view.notify_replayed(db, effect, applied.emptied());
        }
    }

    /// Applies an effect on whole databases to some keys only.
    pub fn apply_where(&mut self, db: usize, effect: &Effect<'_>, counts: impl Fn(&[u8]) -> bool) {
        self.recording.view.locked.apply_where(db, effect, counts);
        self.recording.engine.databases.note(db, effect);
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

    /// Sets the stamp fields of the records that the command has written, where an index requires it and the command
    /// has not set the field itself. Called after all other effects of the command.
    #[inline]
    pub fn stamp_written(&mut self) {
        if !self.written.is_empty() {
            self.stamp_all();
        }
    }

    /// The indexes of a key. The keys of an interactive transaction are in no index until it commits, but are stamped
    /// like others.
    fn indexes(&self, db: usize, key: Key<'_>) -> Indexes {
        match self.recording.is_private {
            true => self.recording.engine.indexes.list(),
            false => self.recording.view.locked.db(db, key).indexes().clone(),
        }
    }

    #[cold]
    fn stamp_all(&mut self) {
        let now = self.recording.view.clock_ms.to_string();
        for Written { db, name, set } in std::mem::take(&mut self.written) {
            let key = Key::new(&name);
            let within = self.recording.view.locked.db(db, key);
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
                self.recording
                    .apply(db, &Effect::change(key, hash::Change::Set { fields: &stamps, keep_deadlines: true }));
            }
        }
    }

    /// Drops up to `count_max` keys of the locked shards from the tracking table while it exceeds its limit. Returns
    /// how many were dropped.
    pub fn forget_readers(&mut self, count_max: usize) -> usize {
        self.recording.view.forget_readers(self.recording.engine, count_max)
    }

    /// Ends recording; the keys can still be read.
    pub fn into_view(self) -> View<'a> {
        self.count_changes();
        self.recording.view
    }

    /// The length of the batch so far.
    pub fn recorded_bytes(&self) -> usize {
        self.recording.batch.as_ref().map_or(0, |effects| effects.len())
    }

    /// Counts the changes. Called once everything is recorded.
    #[inline]
    pub fn count_changes(&self) {
        if !self.recording.is_private {
            self.recording.view.stats.changes.add(self.changes);
        }
    }

    /// Takes the values that effects have removed, to be freed elsewhere.
    #[inline]
    pub fn take_garbage(&mut self) -> Garbage {
        self.recording.view.take_garbage()
    }

    /// Ends recording and returns the locks: counts the changes, and leaves the rest to the commit.
    pub fn finish(self) -> Locked<'a> {
        self.count_changes();
        self.recording.view.locked
    }

    /// The watches of the key's shard.
    pub fn watched_mut(&mut self, key: Key<'_>) -> &mut Watched {
        self.recording.view.locked.watched_mut(key)
    }

    /// True when the key exists but has expired.
    pub fn is_expired(&self, key: Key<'_>) -> bool {
        let entry = self.recording.view.locked.db(self.recording.view.db, key).entry(key);
        entry.is_some_and(|entry| Db::is_expired(entry, self.recording.view.now_ms))
    }

    /// Rebuilds every key of the locked shards from its own image.
    pub fn remake(&mut self) -> Result<(), BadEffect> {
        self.recording.view.locked.remake(&self.recording.thresholds)
    }

    /// Removes a key if it has expired, so that a write starts without it. True when it had expired. An expired session
    /// stays if it has a hook: the expiry cycle removes it and calls the hook, unless the key gets another value before
    /// that.
    pub fn remove_if_expired(&mut self, db: usize, key: Key<'_>) -> bool {
        if !self.recording.view.is_offered(key) {
            return false;
        }
        let (now_ms, stats) = (self.recording.view.now_ms, self.recording.view.stats);
        let within = self.recording.view.locked.db(db, key);
        let Some(entry) = within.entry(key).filter(|entry| Db::is_expired(entry, now_ms)) else { return false };
        // IMPORTANT: hooks change under all locks, so `make_way` sees the same hooks. Private keys are under no lock.
        if self.recording.engine.sessions.has_hooks() && !self.recording.is_private && ValueType::of(entry).is_bound {
            return false;
        }
        match expires_with_its_elements(entry, now_ms) {
            // Count them as the expiry cycle would.
            true => stats.expired_fields.add(within.elements(entry) as u64),
            false => stats.expired_keys.add(1),
        }
        self.record_in(db, &Effect::Delete { key, cause: Cause::Expired });
        true
    }

    /// Removes the key if it has expired, or the expired elements of its value, so that the next effects are exact.
    pub fn remove_expired(&mut self, key: Key<'_>) {
        let db = self.recording.view.db;
        if self.remove_if_expired(db, key) || !self.recording.view.is_offered(key) {
            return;
        }
        let entry = self.recording.view.locked.db(db, key).entry(key);
        if let Some(expiry) = entry.and_then(|entry| ValueType::of(entry).element_expiry.as_ref()) {
            self.remove_expired_elements(key, expiry);
        }
    }

    /// Removes the elements of a value that have expired.
    fn remove_expired_elements(&mut self, key: Key<'_>, expiry: &ElementExpiry) {
        let View { locked, db, now_ms, stats, .. } = &self.recording.view;
        let Some(object) = locked.db(*db, key).entry(key).and_then(Entry::object) else { return };
        let names = (expiry.names)(object, *now_ms, usize::MAX);
        if names.is_empty() {
            return;
        }
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        stats.expired_fields.add(names.len() as u64);
        self.record(&Effect::change(key, (expiry.removal)(&names)));
    }

    /// Prepares to change the value of that type at a key: removes the expired key or elements, so that the next
    /// effects are exact. An error when the key holds another type.
    pub fn prepare<T: Typed>(&mut self, key: Key<'_>) -> CommandResult {
        let View { locked, db, now_ms, .. } = &self.recording.view;
        if !self.recording.view.is_offered(key) {
            return Ok(());
        }
        let Some(entry) = locked.db(*db, key).entry(key) else { return Ok(()) };
        if Db::is_expired(entry, *now_ms) {
            self.remove_if_expired(*db, key);
            return Ok(());
        }
        if !ValueType::of(entry).is(T::ROW) {
            return Err(CommandError::wrong_type(ValueType::of(entry)));
        }
        if let Some(expiry) = const { T::ROW.element_expiry.as_ref() }
            && entry.object().is_some()
        {
            self.remove_expired_elements(key, expiry);
        }
        Ok(())
    }

    /// The value of that type at a key, without expired elements, to be changed. An error when the key holds another
    /// type.
    #[inline]
    pub fn to_change<T: Typed>(&mut self, key: Key<'_>) -> Result<Option<T::Ref<'_>>, CommandError> {
        match const { T::ROW.element_expiry.is_some() } {
            true => self.prepare::<T>(key)?,
            false => drop(self.remove_if_expired(self.recording.view.db, key)),
        }
        self.recording.view.typed::<T>(key)
    }

    /// Reads the value of that type at a key, in order to change it. Finds the key once, where [`Recorder::to_change`]
    /// finds it twice; for types whose elements do not expire. An error when the key holds another type.
    #[inline]
    pub fn look_at<T: Typed, R>(
        &mut self,
        key: Key<'_>,
        look: impl FnOnce(Option<T::Ref<'_>>) -> R,
    ) -> Result<R, CommandError> {
        const { assert!(T::ROW.element_expiry.is_none(), "expired elements would have to be removed first") };
        let view = &self.recording.view;
        if !view.is_offered(key) {
            return Ok(look(None));
        }
        let db = view.locked.db(view.db, key);
        match db.entry(key) {
            None => return Ok(look(None)),
            Some(entry) if Db::is_expired(entry, view.now_ms) => {}
            Some(entry) => {
                let Some(found) = db.typed::<T>(entry, view.now_ms) else {
                    return Err(CommandError::wrong_type(ValueType::of(entry)));
                };
                if view.touch {
                    view.use_entry(entry);
                }
                return Ok(look(Some(found)));
            }
        }
        self.remove_if_expired(self.recording.view.db, key);
        Ok(look(None))
    }

    /// The sizes at which compact values are converted.
    pub fn thresholds(&self) -> &Thresholds {
        &self.recording.thresholds
    }

    /// Removes all expired keys and fields from the locked shards of the selected database, so that counts leave them
    /// out. The caller has made sure that there are few (`indexes::lock_for_index`), or holds the locks for other
    /// reasons.
    pub fn expire_everything(&mut self) {
        let (db, now_ms) = (self.recording.view.db, self.recording.view.now_ms);
        loop {
            let shards = || self.recording.view.locked.shards().map(|(_, shard)| shard.db(db));
            let overdue: Vec<Vec<u8>> = shards().flat_map(|db| db.expired_keys(now_ms, usize::MAX)).collect();
            let fields: Vec<_> = shards().filter_map(|db| db.expired_field_names(now_ms, usize::MAX)).collect();
            if overdue.is_empty() && fields.is_empty() {
                return;
            }
            for name in overdue.iter().chain(fields.iter().map(|(name, _)| name)) {
                self.remove_expired(Key::new(name));
            }
        }
    }

    /// Applies the changes that reads have left: removes keys that were found expired, and stores what reads wanted
    /// kept.
    pub fn change_leftovers(&mut self) {
        // They stay in the list: their expiry was published when they were found.
        let Some(after) = self.recording.view.afterwards.borrow().clone() else { return };
        for (name, offset, bytes) in &after.kept {
            let change = string::Change::Write { offset: *offset, bytes };
            self.record(&Effect::change(Key::new(name), change));
        }
        for name in &after.overdue {
            self.remove_if_expired(self.recording.view.db, Key::new(name));
        }
    }
}
