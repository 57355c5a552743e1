//! The locked part of the keyspace at one instant, as a handler sees it: looks keys up, collects the expired ones that
//! it meets, notes events for notifications. Has no way to write.

use super::recorder::Recorder;
use crate::clients::tracking::Reason;
use crate::error::CommandError;
use crate::execution::engine::Engine;
use crate::execution::notifications::PendingNotifications;
use crate::execution::waiting::keys::Offer;
use crate::observability::stats::WorkerStats;
use crate::settings::events::Events;
use keyspace::db::Db;
use keyspace::interest::readers::Readers;
use keyspace::locked::Garbage;
use keyspace::shard::Shard;
use keyspace::types::Object;
use keyspace::types::cell::CellRef;
use keyspace::types::register::RegisterRef;
use keyspace::types::run::Run;
use keyspace::types::session::Session;
use keyspace::types::stream::Stream;
use keyspace::{
    Cause, Effect, Entry, Fate, HashRef, IndexRef, Key, Locked, Scalar, SortedSetRef, Touch, Touches, Usage, Value,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The locked part of the keyspace at one instant, to be read.
pub struct View<'a> {
    pub(crate) locked: Locked<'a>,
    pub(crate) db: usize,
    pub now_ms: u64,
    pub(super) touch: bool,
    pub(super) usage: Usage,
    pub(super) stats: &'a WorkerStats,
    /// What is changed when the handler is done, while the locks are still held. A pointer, as nearly always there is nothing.
    pub(super) afterwards: RefCell<Option<Box<Afterwards>>>,
    /// Where notifications are collected, and which classes of events (`settings::events`) are.
    pub(super) notifications: Option<&'a PendingNotifications>,
    pub(super) events: Events,
    /// A shard could not be locked.
    pub(super) met_busy: Cell<bool>,
    /// The newest batch that has changed a shard which was locked only for a moment.
    pub(super) seen: Cell<u64>,
    /// One of the command's keys is an index, and everything is locked.
    pub(super) reads_index: bool,
    /// Everything is locked for a command that reads an index, and walks over more elements than that take too long.
    pub(super) walk_max: usize,
    /// Copies of the indexes among the command's keys, in the first database.
    pub(super) index_copies: Option<&'a Shard>,
    /// The command is served after a wait: all keys but these are absent to it.
    pub(super) offer: Option<Arc<Offer>>,
}

/// What a command that only looks leaves to be changed.
#[derive(Clone, Default)]
pub(super) struct Afterwards {
    /// Expired keys that were met.
    pub(super) overdue: BTreeSet<Vec<u8>>,
    /// Bytes that are to be in the strings at these keys, from these offsets on.
    pub(super) kept: Vec<(Vec<u8>, usize, Vec<u8>)>,
}

impl<'a> View<'a> {
    pub(crate) fn new(locked: Locked<'a>, db: usize, now_ms: u64, usage: Usage, stats: &'a WorkerStats) -> View<'a> {
        let locked = locked.at(now_ms, usage);
        let (afterwards, met_busy) = (RefCell::default(), Cell::new(false));
        View {
            locked,
            db,
            now_ms,
            touch: true,
            usage,
            stats,
            afterwards,
            notifications: None,
            events: Events::empty(),
            met_busy,
            seen: Cell::new(0),
            reads_index: false,
            walk_max: usize::MAX,
            index_copies: None,
            offer: None,
        }
    }

    /// Looks at keys without using them.
    pub(crate) fn without_touching(mut self) -> View<'a> {
        self.touch = false;
        self
    }

    /// Shows these keys alone.
    pub(crate) fn offered(mut self, offer: Arc<Offer>) -> View<'a> {
        self.offer = Some(offer);
        self
    }

    /// True when the command may record an effect: all its keys are offered.
    #[inline]
    pub(super) fn offers(&self, db: usize, effect: &Effect<'_>) -> bool {
        self.offer.is_none() || self.offers_all_of(effect.touches(db))
    }

    #[cold]
    fn offers_all_of(&self, touches: Touches<'_>) -> bool {
        matches!(touches, Touches::Keys(keys) if keys.iter().all(|touch| self.is_offered(touch.key)))
    }

    /// True when the command may touch a key: a command that is served after a wait sees only the keys of its offer.
    #[inline]
    pub(super) fn is_offered(&self, key: Key<'_>) -> bool {
        self.offer.as_ref().is_none_or(|offer| offer.has(key))
    }

    /// Shows indexes as the sorted sets that they are. Everything is locked.
    pub(crate) fn with_indexes(mut self) -> View<'a> {
        self.reads_index = true;
        self
    }

    /// True when a walk over so many elements takes too long because everything is locked, to read an index. The handler
    /// then has changed nothing yet, and leaves [`CopyWanted`](super::indexes::CopyWanted) with its client.
    pub(crate) fn is_long_walk(&self, elements: usize) -> bool {
        elements > self.walk_max
    }

    /// Shows copies of indexes in their place.
    pub(crate) fn with_index_copies(mut self, copies: &'a Shard) -> View<'a> {
        self.index_copies = Some(copies);
        self
    }

    /// The index of that name in the selected database. Everything is locked.
    pub fn index(&self, name: &[u8]) -> Option<IndexRef<'_>> {
        IndexRef::find(&self.locked, self.db, name)
    }

    /// Collects events of these classes in `notifications`.
    #[inline]
    pub(crate) fn notify_through(&mut self, notifications: &'a PendingNotifications, events: Events) {
        self.notifications = Some(notifications);
        self.events = events;
    }

    /// Notifies subscribers of an event of this class for a key (`notify-keyspace-events`).
    #[inline]
    pub fn notify(&self, class: Events, event: &'static str, key: Key<'_>) {
        self.notify_in(self.db, class, event, key);
    }

    /// Notifies subscribers of an event for a key of any database.
    #[inline]
    pub fn notify_in(&self, db: usize, class: Events, event: &'static str, key: Key<'_>) {
        if self.events.intersects(class)
            && let Some(pending) = self.notifications
        {
            pending.event(event, db, key.name);
        }
    }

    /// True when events of any of these classes are published.
    #[inline]
    pub fn tells(&self, classes: Events) -> bool {
        self.events.intersects(classes)
    }

    /// The number of the selected database.
    pub fn db(&self) -> usize {
        self.db
    }

    /// The entry of a key in the selected database; an expired key is absent.
    #[inline]
    pub fn entry(&self, key: Key<'_>) -> Option<&Entry> {
        self.entry_in(self.db, key)
    }

    /// The entry of a key in any database.
    #[inline]
    pub fn entry_in(&self, db: usize, key: Key<'_>) -> Option<&Entry> {
        if !self.is_offered(key) {
            return None;
        }
        let entry = self.locked.db(db, key).entry(key)?;
        if Db::is_expired(entry, self.now_ms) {
            if db == self.db {
                self.note_expired(key, entry);
            }
            return None;
        }
        if self.touch {
            self.use_entry(entry);
        }
        Some(entry)
    }

    /// True when the key was met before and had expired.
    fn has_met(&self, key: Key<'_>) -> bool {
        self.afterwards.borrow().as_ref().is_some_and(|after| after.overdue.contains(key.name))
    }

    /// Notes an expired key, to be removed.
    #[cold]
    pub(super) fn note_expired(&self, key: Key<'_>, entry: &Entry) {
        // Something may have to be called before a session goes: the expiry cycle does both.
        if !self.has_met(key) && !matches!(entry.object(), Some(Object::Session(_))) {
            self.notify_expired(self.db, key, entry);
            self.afterwards.borrow_mut().get_or_insert_default().overdue.insert(key.name.to_vec());
        }
    }

    /// Keeps what a command has computed in the string from which it has, where there is a place for it: it is written when
    /// the handler is done, unless this server may not change anything.
    #[cold]
    pub(crate) fn keep_in_string(&self, key: Key<'_>, offset: usize, bytes: &[u8]) {
        self.afterwards.borrow_mut().get_or_insert_default().kept.push((key.name.to_vec(), offset, bytes.to_vec()));
    }

    /// Notifies that a key has expired, unless that was done when it was met.
    pub(super) fn notify_expired(&self, db: usize, key: Key<'_>, entry: &Entry) {
        if self.events.is_empty() || db == self.db && self.has_met(key) {
            return;
        }
        match goes_with_its_fields(entry, self.now_ms) {
            true => {
                self.notify_in(db, Events::HASH, "hexpired", key);
                self.notify_in(db, Events::GENERIC, "del", key);
            }
            false => self.notify_in(db, Events::EXPIRED, "expired", key),
        }
    }

    /// Notes the events that an effect implies, in addition to those of its handler: keys that have expired, and keys
    /// that are new. Called before the effect is applied.
    #[inline(never)]
    pub(super) fn notify_expired_or_new(&self, db: usize, effect: &Effect<'_>) {
        let Touches::Keys(touches) = effect.touches(db) else { return };
        for Touch { db, key, fate } in touches {
            match fate {
                Fate::Gains { replaces } => self.notify_new(db, key, replaces),
                Fate::Gone(Cause::Expired) => {
                    if let Some(entry) = self.locked.db(db, key).entry(key) {
                        self.notify_expired(db, key, entry);
                    }
                }
                Fate::Gone(Cause::Deleted | Cause::Evicted)
                | Fate::Loses(_)
                | Fate::Amended
                | Fate::Deadline
                | Fate::Read => {}
            }
        }
    }

    /// Notes that a key gets a value: it is new if it had none, or if `replaced`, since its old value is deleted first.
    pub(super) fn notify_new(&self, db: usize, key: Key<'_>, replaced: bool) {
        let entry = self.locked.db(db, key).entry(key);
        let overdue = entry.filter(|entry| Db::is_expired(entry, self.now_ms));
        if let Some(entry) = overdue {
            self.notify_expired(db, key, entry);
        }
        if replaced || entry.is_none() || overdue.is_some() {
            self.notify_in(db, Events::NEW_KEY, "new", key);
        }
    }

    /// Notes the events of an effect that was recorded elsewhere. The command is not known: the events are those of the
    /// simplest command with that effect.
    #[cold]
    pub(super) fn notify_replayed(&self, db: usize, effect: &Effect<'_>, emptied: bool) {
        let generic = |db: usize, event: &'static str, key: Key<'_>| self.notify_in(db, Events::GENERIC, event, key);
        match *effect {
            Effect::Change { key, change } => {
                // Expired elements were notified when they were removed.
                if change.fate() != Fate::Loses(Cause::Expired) {
                    let class = Events::of_letter(change.value_type().event_letter);
                    if !change.event().is_empty() {
                        self.notify_in(db, class, change.event(), key);
                    }
                    if emptied {
                        generic(db, "del", key);
                    }
                }
            }
            Effect::Delete { key, cause: Cause::Deleted } => generic(db, "del", key),
            Effect::Delete { key, cause: Cause::Evicted } => self.notify_in(db, Events::EVICTED, "evicted", key),
            Effect::Deadline { key, deadline } => {
                generic(db, if deadline.is_some() { "expire" } else { "persist" }, key);
            }
            Effect::Rename { from, to } => {
                generic(db, "rename_from", from);
                generic(db, "rename_to", to);
            }
            Effect::Copy { to, to_db, .. } => generic(to_db, "copy_to", to),
            Effect::Move { key, to_db } => {
                generic(db, "move_from", key);
                generic(to_db, "move_to", key);
            }
            Effect::Put { key, .. } => generic(db, "restore", key),
            Effect::Delete { cause: Cause::Expired, .. }
            | Effect::FlushDb
            | Effect::FlushAll
            | Effect::SwapDb { .. }
            | Effect::Define { .. }
            | Effect::Undefine { .. } => {}
        }
    }

    /// Notes that an entry is used now.
    #[inline]
    pub fn use_entry(&self, entry: &Entry) {
        entry.touch(self.usage.used(entry.used_at(), self.now_ms));
    }

    /// What an entry of a key's database holds.
    #[inline]
    pub fn value_of<'e>(&'e self, db: usize, key: Key<'_>, entry: &'e Entry) -> Value<'e> {
        self.locked.db(db, key).value(entry, self.now_ms)
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: Key<'_>) -> Option<Value<'_>> {
        if let Some(index) = self.index_at(key) {
            return Some(Value::SortedSet(SortedSetRef::Index(index)));
        }
        if let Some(copies) = self.index_copies
            && let Some(copy) = copies.db(0).entry(key)
        {
            return Some(copies.db(0).value(copy, self.now_ms));
        }
        let entry = self.entry(key)?;
        Some(self.value_of(self.db, key, entry))
    }

    /// The index that a key of this command is.
    pub fn index_at(&self, key: Key<'_>) -> Option<IndexRef<'_>> {
        if self.reads_index { self.index(key.name) } else { None }
    }

    /// True when the key is there.
    pub fn exists(&self, key: Key<'_>) -> bool {
        self.index_at(key).is_some() || self.entry(key).is_some()
    }

    /// The string at a key.
    #[inline]
    pub fn string(&self, key: Key<'_>) -> Result<Option<Scalar<'_>>, CommandError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(string)) => Ok(Some(string)),
            Some(_) => Err(CommandError::WrongType),
        }
    }

    /// The hash at a key.
    #[inline]
    pub fn hash(&self, key: Key<'_>) -> Result<Option<HashRef<'_>>, CommandError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Hash(hash)) => Ok(Some(hash)),
            Some(_) => Err(CommandError::WrongType),
        }
    }

    /// The cell at a key.
    #[inline]
    pub fn cell(&self, key: Key<'_>) -> Result<Option<CellRef<'_>>, CommandError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Cell(cell)) => Ok(Some(cell)),
            Some(_) => Err(CommandError::WrongType),
        }
    }

    /// The run at a key.
    #[inline]
    pub fn run(&self, key: Key<'_>) -> Result<Option<&Run>, CommandError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Run(run)) => Ok(Some(run)),
            Some(_) => Err(CommandError::WrongType),
        }
    }

    /// The register at a key.
    #[inline]
    pub fn register(&self, key: Key<'_>) -> Result<Option<RegisterRef<'_>>, CommandError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Register(register)) => Ok(Some(register)),
            Some(_) => Err(CommandError::WrongType),
        }
    }

    /// The session at a key.
    #[inline]
    pub fn session(&self, key: Key<'_>) -> Result<Option<&Session>, CommandError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Session(session)) => Ok(Some(session)),
            Some(_) => Err(CommandError::WrongType),
        }
    }

    /// The stream at a key.
    #[inline]
    pub fn stream(&self, key: Key<'_>) -> Result<Option<&Stream>, CommandError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Stream(stream)) => Ok(Some(stream)),
            Some(_) => Err(CommandError::WrongType),
        }
    }

    /// The sorted set at a key.
    #[inline]
    pub fn sorted_set(&self, key: Key<'_>) -> Result<Option<SortedSetRef<'_>>, CommandError> {
        match self.get(key) {
            None => Ok(None),
            // An index is there even if no record is in it; no other sorted set is empty, and no handler expects one.
            Some(Value::SortedSet(SortedSetRef::Index(index))) if index.is_empty() => Ok(None),
            Some(Value::SortedSet(set)) => Ok(Some(set)),
            Some(_) => Err(CommandError::WrongType),
        }
    }

    /// The deadline of a key: `None` when there is no such key.
    pub fn deadline(&self, key: Key<'_>) -> Option<Option<u64>> {
        if self.index_at(key).is_some() {
            // An index lasts until it is dropped.
            return Some(None);
        }
        let entry = self.entry(key)?;
        Some(match entry.object() {
            Some(Object::Session(session)) => Some(session.expires_ms(self.now_ms)),
            _ => entry.deadline(),
        })
    }

    /// Counts a look-up of a read command for INFO, and notifies of a miss.
    #[inline]
    pub fn looked_up(&self, key: Key<'_>, found: bool) {
        self.count(found);
        if !found {
            self.notify(Events::KEY_MISS, "keymiss", key);
        }
    }

    /// Counts a look-up as found or not, for INFO.
    #[inline]
    pub fn count(&self, found: bool) {
        if found { self.stats.keyspace_hits.add(1) } else { self.stats.keyspace_misses.add(1) }
    }

    /// The locked shards, for commands that walk over all keys.
    pub fn locked(&self) -> &Locked<'a> {
        &self.locked
    }

    /// Remembers that a client has read keys. When the tracking table is full, another key is forgotten, and its
    /// readers get an invalidation.
    #[inline(never)]
    pub(crate) fn remember<'k>(&mut self, engine: &Engine, keys: impl Iterator<Item = Key<'k>>, reader: u64) {
        for key in keys {
            if !self.is_offered(key) {
                continue;
            }
            let gained = self.locked.tracked_mut(key).remember(key.name, reader);
            engine.tracking.note_remembered(gained);
            self.forget_readers(engine, key.name, 1);
        }
    }

    /// Sends a client an invalidation for keys that it has just read: changes of an index are not tracked.
    #[cold]
    pub(crate) fn invalidate_now<'k>(&mut self, keys: impl Iterator<Item = Key<'k>>, reader: u64) {
        let Some(pending) = self.notifications else { return };
        for key in keys {
            pending.stale(key.name, Readers::from_iter([reader]), Reason::Forgotten);
        }
    }

    /// Forgets readers of at most `count_max` keys of the locked shards while the tracking table is over its limit, of
    /// the key `last` only when there is no other. True when it is still over the limit.
    pub(super) fn forget_readers(&mut self, engine: &Engine, last: &[u8], count_max: usize) -> bool {
        let too_many = engine.tracking.keys_beyond(engine.settings.tracking_table_max_keys());
        for _ in 0..too_many.min(count_max) {
            let Some((name, readers)) = self.locked.forget_any_tracked(last) else { return false };
            engine.tracking.note_forgotten(readers.len());
            if let Some(pending) = self.notifications {
                pending.stale(&name, readers, Reason::Forgotten);
            }
        }
        too_many > count_max
    }

    pub(crate) fn into_recorder(self, engine: &'a Engine, effects: &'a mut Vec<u8>) -> Recorder<'a> {
        self.into_recorder_of(engine, false, effects)
    }

    /// To record on shared keys, or on those of an interactive transaction, whose effects are kept though there may be no
    /// journal.
    #[inline]
    pub(crate) fn into_recorder_of(
        self,
        engine: &'a Engine,
        is_private: bool,
        effects: &'a mut Vec<u8>,
    ) -> Recorder<'a> {
        let effects = (is_private || engine.persistence.is_recording()).then_some(effects);
        self.recorder(engine, is_private, effects)
    }

    #[inline]
    fn recorder(self, engine: &'a Engine, is_private: bool, effects: Option<&'a mut Vec<u8>>) -> Recorder<'a> {
        let thresholds = engine.thresholds();
        Recorder { view: self, engine, thresholds, effects, changes: 0, written: Vec::new(), is_private }
    }

    /// Takes what effects have removed, to be freed elsewhere.
    #[inline]
    pub(crate) fn take_garbage(&mut self) -> Garbage {
        self.locked.take_garbage()
    }

    /// To apply effects that were recorded elsewhere.
    pub(crate) fn into_follower(self, engine: &'a Engine) -> Recorder<'a> {
        self.recorder(engine, false, None)
    }

    /// True when a shard could not be locked, so that the result is incomplete.
    pub(crate) fn has_met_busy(&self) -> bool {
        self.met_busy.get()
    }

    pub(super) fn note_seen(&self, sequence: u64) {
        self.seen.set(self.seen.get().max(sequence));
    }

    /// The newest batch that the result depends on.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.get().max(self.locked.changed_by())
    }

    /// True when the command has left something to be changed.
    pub(crate) fn has_leftovers(&self) -> bool {
        self.afterwards.borrow().is_some()
    }
}

/// True for a hash that is overdue because all its fields have expired, not the key itself.
pub(super) fn goes_with_its_fields(entry: &Entry, now_ms: u64) -> bool {
    let is_hash = matches!(entry.object(), Some(Object::Hash(_)));
    is_hash && entry.deadline().is_none_or(|deadline| deadline > now_ms)
}
