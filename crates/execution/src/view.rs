//! The locked part of the keyspace at one instant, as a handler sees it: finds keys, collects expired keys on the way,
//! notes events for notifications. Has no way to write.

use crate::clients::tracking::Reason;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::instants::AtInstant;
use crate::notifications::pending::PendingNotifications;
use crate::observability::stats::WorkerStats;
use crate::settings::events::Events;
use crate::waiting::keys::Offer;
use keyspace::db::Db;
use keyspace::garbage::Garbage;
use keyspace::interest::readers::Readers;
use keyspace::shard::Shard;
use keyspace::{
    Applied, Cause, Effect, Entry, Fate, IndexRef, Key, Locked, SortedSetRef, Touch, Touches, Typed, Usage, Value,
    ValueType,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The locked part of the keyspace at one instant, to be read.
pub struct View<'a> {
    pub locked: Locked<'a>,
    pub db: usize,
    /// The instant at which it is judged what has expired.
    pub now_ms: u64,
    /// The time. It is later than `now_ms` for an import source.
    pub clock_ms: u64,
    pub(super) touch: bool,
    pub(super) usage: Usage,
    pub(super) stats: &'a WorkerStats,
    /// Changes to make after the handler, under the same locks. Boxed, because there are nearly never any.
    pub(super) afterwards: RefCell<Option<Box<Afterwards>>>,
    /// Where notifications are collected, and for which classes of events (`settings::events`).
    pub(super) notifications: Option<&'a PendingNotifications>,
    pub(super) events: Events,
    /// A shard could not be locked.
    pub(super) met_busy: Cell<bool>,
    /// The newest batch that has changed a shard which was locked only for a moment.
    pub(super) seen: Cell<u64>,
    /// One of the command's keys is an index, and everything is locked.
    pub(super) reads_index: bool,
    /// While everything is locked for a command that reads an index, walks over more elements than this take too long.
    pub(super) walk_max: usize,
    /// What some of the command's keys show instead of their values.
    pub(super) stand_ins: Option<StandIns<'a>>,
    /// The command is served after a wait: all keys except these are absent to it.
    pub(super) offer: Option<Arc<Offer>>,
}

/// What keys show instead of their values.
#[derive(Clone, Copy)]
pub(super) enum StandIns<'a> {
    /// Copies of the indexes among the command's keys, in the first database.
    Indexes(&'a Shard),
    /// Cells as they were at the instant of a read-only transaction.
    Cells(&'a AtInstant<'a>),
}

impl<'a> StandIns<'a> {
    /// What a key shows; `None` when nothing stands in for its value.
    fn find(self, key: Key<'_>, now_ms: u64) -> Option<Option<Value<'a>>> {
        match self {
            StandIns::Indexes(copies) => {
                let copy = copies.db(0).entry(key)?;
                Some(Some(copies.db(0).value(copy, now_ms)))
            }
            StandIns::Cells(instant) => {
                Some(instant.kept(key.name)?.map(|entry| Value::Cell(keyspace::types::cell::cell(entry))))
            }
        }
    }
}

/// Changes that a read command leaves behind.
#[derive(Clone, Default)]
pub(super) struct Afterwards {
    /// Expired keys that were found.
    pub(super) overdue: BTreeSet<Vec<u8>>,
    /// Bytes to write into the strings at these keys, at these offsets.
    pub(super) kept: Vec<(Vec<u8>, usize, Vec<u8>)>,
}

impl<'a> View<'a> {
    pub fn new(locked: Locked<'a>, db: usize, now_ms: u64, usage: Usage, stats: &'a WorkerStats) -> View<'a> {
        let locked = locked.at(now_ms, usage);
        let (afterwards, met_busy) = (RefCell::default(), Cell::new(false));
        View {
            locked,
            db,
            now_ms,
            clock_ms: now_ms,
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
            stand_ins: None,
            offer: None,
        }
    }

    /// Makes reads not count as use of a key.
    pub fn without_touching(mut self) -> View<'a> {
        self.touch = false;
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

    /// True when a walk over so many elements takes too long because everything is locked in order to read an index.
    /// The handler, which has changed nothing yet, then sets `Client::wants_index_copies`.
    pub fn is_long_walk(&self, elements: usize) -> bool {
        elements > self.walk_max
    }

    /// The index of that name in the selected database. Everything is locked.
    pub fn index(&self, name: &[u8]) -> Option<IndexRef<'_>> {
        IndexRef::find(&self.locked, self.db, name)
    }

    /// Collects events of these classes in `notifications`.
    #[inline]
    pub fn notify_through(&mut self, notifications: &'a PendingNotifications, events: Events) {
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

    /// True when events of any class are published.
    #[inline]
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// True when events of any of these classes are published.
    #[inline]
    pub fn tells(&self, classes: Events) -> bool {
        self.events.intersects(classes)
    }

    /// True when the locked part of the selected database has values of types that Redis does not have.
    #[inline]
    pub fn has_own_values(&self) -> bool {
        self.locked.shards().any(|(_, shard)| shard.db(self.db).has_own_values())
    }

    /// The instant of the read-only transaction that the command is part of.
    pub fn at_instant(&self) -> Option<&'a AtInstant<'a>> {
        match self.stand_ins {
            Some(StandIns::Cells(instant)) => Some(instant),
            Some(StandIns::Indexes(_)) | None => None,
        }
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

    /// True when the key was found expired before.
    fn has_met(&self, key: Key<'_>) -> bool {
        self.afterwards.borrow().as_ref().is_some_and(|after| after.overdue.contains(key.name))
    }

    /// Notes an expired key, to be removed.
    #[cold]
    pub(super) fn note_expired(&self, key: Key<'_>, entry: &Entry) {
        // A hook may have to be called before an expired session is removed: the expiry cycle does both. A read-only
        // transaction changes nothing: its time is the past.
        if !self.has_met(key) && !ValueType::of(entry).is_bound && self.at_instant().is_none() {
            self.notify_expired(self.db, key, entry);
            self.afterwards.borrow_mut().get_or_insert_default().overdue.insert(key.name.to_vec());
        }
    }

    /// Stores a computed value in the string that it was computed from, where that has a place for it. It is written
    /// after the handler, unless this server may not change anything.
    #[cold]
    pub fn keep_in_string(&self, key: Key<'_>, offset: usize, bytes: &[u8]) {
        self.afterwards.borrow_mut().get_or_insert_default().kept.push((key.name.to_vec(), offset, bytes.to_vec()));
    }

    /// Publishes that a key has expired, unless that was done when it was found.
    pub(super) fn notify_expired(&self, db: usize, key: Key<'_>, entry: &Entry) {
        if self.events.is_empty() || db == self.db && self.has_met(key) {
            return;
        }
        match expires_with_its_elements(entry, self.now_ms) {
            true => self.notify_elements_gone(db, ValueType::of(entry), key, true),
            false => self.notify_in(db, Events::EXPIRED, "expired", key),
        }
    }

    /// Notes the events of a change that has removed expired elements.
    #[inline]
    pub(super) fn notify_expired_elements(&self, db: usize, effect: &Effect<'_>, applied: Applied) {
        if let Effect::Change { key, change } = effect
            && change.fate() == Fate::Loses(Cause::Expired)
        {
            self.notify_elements_gone(db, change.value_type(), *key, applied.emptied());
        }
    }

    /// Publishes that elements of a key have expired, and, with the last element, the key.
    fn notify_elements_gone(&self, db: usize, value_type: &ValueType, key: Key<'_>, is_emptied: bool) {
        let Some(expiry) = &value_type.element_expiry else { return };
        self.notify_in(db, Events::of_letter(value_type.event_letter), expiry.event, key);
        if is_emptied {
            self.notify_in(db, Events::GENERIC, "del", key);
        }
    }

    /// Notes the events that an effect implies, besides those of its handler: expired keys and new keys. Called before
    /// the effect is applied.
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
                | Fate::Noted
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

    /// Notes the events of an effect that was recorded elsewhere. Its command is unknown: the events are those of the
    /// simplest command with that effect.
    #[cold]
    pub(super) fn notify_replayed(&self, db: usize, effect: &Effect<'_>, emptied: bool) {
        let generic = |db: usize, event: &'static str, key: Key<'_>| self.notify_in(db, Events::GENERIC, event, key);
        match *effect {
            Effect::Change { key, change } => {
                // Expired elements were published when they were removed.
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
            | Effect::Rate { .. }
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

    /// The value of an entry in a key's database.
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
        if let Some(stand_ins) = self.stand_ins
            && let Some(found) = stand_ins.find(key, self.now_ms)
        {
            return found;
        }
        let entry = self.entry(key)?;
        Some(self.value_of(self.db, key, entry))
    }

    /// The index at a key of this command.
    #[inline]
    pub fn index_at(&self, key: Key<'_>) -> Option<IndexRef<'_>> {
        if self.reads_index { self.index(key.name) } else { None }
    }

    /// True when the key exists.
    pub fn exists(&self, key: Key<'_>) -> bool {
        self.index_at(key).is_some() || self.entry(key).is_some()
    }

    /// The value of that type at a key: `None` when there is no such key. An error when the key holds another type.
    #[inline]
    pub fn typed<T: Typed>(&self, key: Key<'_>) -> Result<Option<T::Ref<'_>>, CommandError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match T::of(value) {
            // An index may be empty; other sorted sets never are, and handlers do not expect one.
            Some(_) if value.is_empty_index() => Ok(None),
            Some(found) => Ok(Some(found)),
            None => Err(CommandError::wrong_type(value.value_type())),
        }
    }

    /// The deadline of a key: `None` when there is no such key.
    pub fn deadline(&self, key: Key<'_>) -> Option<Option<u64>> {
        if self.index_at(key).is_some() {
            // An index lasts until it is dropped.
            return Some(None);
        }
        let entry = self.entry(key)?;
        let lifetime = entry.object().and_then(|object| object.expires_ms(self.now_ms));
        Some(lifetime.or_else(|| entry.deadline()))
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

    /// Remembers that a client has read keys. A full tracking table is shrunk before the next command.
    #[inline(never)]
    pub fn remember<'k>(&mut self, engine: &Engine, keys: impl Iterator<Item = Key<'k>>, reader: u64) {
        for key in keys {
            if !self.is_offered(key) {
                continue;
            }
            let gained = self.locked.tracked_mut(key).remember(key.name, reader);
            engine.tracking.note_remembered(gained);
        }
    }

    /// Sends a client an invalidation for keys that it has just read: changes of an index are not tracked.
    #[cold]
    pub fn invalidate_now<'k>(&mut self, keys: impl Iterator<Item = Key<'k>>, reader: u64) {
        let Some(pending) = self.notifications else { return };
        for key in keys {
            pending.stale(key.name, Readers::from_iter([reader]), Reason::Forgotten);
        }
    }

    /// Forgets readers of at most `count_max` keys of the locked shard while the tracking table is over its limit, or
    /// no client tracks keys any more. Returns of how many keys.
    pub(super) fn forget_readers(&mut self, engine: &Engine, count_max: usize) -> usize {
        if !engine.tracking.any() {
            return 0;
        }
        let too_many = match engine.tracking.has_clients() {
            true => engine.tracking.keys_beyond(engine.settings.tracking_table_max_keys()),
            false => usize::MAX,
        };
        let forgotten = self.locked.forget_some_tracked(too_many.min(count_max));
        let count = forgotten.len();
        for (name, readers) in forgotten {
            engine.tracking.note_forgotten(readers.len());
            if let Some(pending) = self.notifications {
                pending.stale(&name, readers, Reason::Forgotten);
            }
        }
        count
    }

    /// Takes the values that effects have removed, to be freed elsewhere.
    #[inline]
    pub fn take_garbage(&mut self) -> Garbage {
        self.locked.take_garbage()
    }

    /// True when a shard could not be locked, so that the result is incomplete.
    pub fn has_met_busy(&self) -> bool {
        self.met_busy.get()
    }

    pub(super) fn note_seen(&self, sequence: u64) {
        self.seen.set(self.seen.get().max(sequence));
    }

    /// The newest batch that the result depends on.
    pub fn seen(&self) -> u64 {
        self.seen.get().max(self.locked.changed_by())
    }

    /// True when the command has left changes to be made.
    #[inline]
    pub fn has_leftovers(&self) -> bool {
        self.afterwards.borrow().is_some()
    }
}

/// True for a value that has expired because all its elements have, while its key has not.
pub(super) fn expires_with_its_elements(entry: &Entry, now_ms: u64) -> bool {
    ValueType::of(entry).element_expiry.is_some() && entry.deadline().is_none_or(|deadline| deadline > now_ms)
}
