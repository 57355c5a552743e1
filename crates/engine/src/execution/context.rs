//! What a handler works with: its arguments, its reply, the keys it locked. A read context has no way to write.

use crate::args::Args;
use crate::clients::tracking::Reason;
use crate::error::{CommandError, CommandResult};
use crate::execution::client::Client;
use crate::execution::command::CommandRow;
use crate::execution::engine::{Engine, Worker};
use crate::execution::notifications::PendingNotifications;
use crate::execution::waiting::Blocked;
use crate::execution::waiting::keys::{Offer, note_ready};
use crate::observability::stats::WorkerStats;
use crate::panics;
use crate::settings::events::Events;
use keyspace::db::Db;
use keyspace::effects::codec;
use keyspace::index::Definition;
use keyspace::interest::readers::Readers;
use keyspace::interest::watchers::Watched;
use keyspace::shard::Shard;
use keyspace::types::hash::Pair;
use keyspace::types::{Object, RecordFields, hash};
use keyspace::{
    Applied, BadEffect, Cause, Effect, Entry, Fate, HashRef, IndexRef, Key, Locked, Scalar, SortedSetRef, Thresholds,
    Touch, Touches, Usage, Value, ValueType,
};
use resp::Reply;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The context of a command that only looks.
pub struct ReadCx<'a> {
    pub engine: &'a Engine,
    pub client: &'a mut Client,
    pub args: Args<'a>,
    pub reply: Reply<'a>,
    pub keys: View<'a>,
    pub random: &'a mut fastrand::Rng,
    pub command: &'static CommandRow,
}

/// The context of a command that may change keys.
pub struct WriteCx<'a> {
    pub engine: &'a Engine,
    pub client: &'a mut Client,
    pub args: Args<'a>,
    pub reply: Reply<'a>,
    pub keys: Recorder<'a>,
    pub random: &'a mut fastrand::Rng,
    pub command: &'static CommandRow,
}

/// The context of a command about the server or its own connection.
pub struct ServerCx<'a> {
    pub engine: &'a Engine,
    pub client: &'a mut Client,
    pub worker: &'a mut Worker,
    pub args: Args<'a>,
    pub reply: Reply<'a>,
    pub now_ms: u64,
    pub command: &'static CommandRow,
    /// What the connection has to do after this command.
    pub after: After,
}

/// The context of a command that runs others.
pub struct ScriptCx<'a, 'l> {
    pub engine: &'a Engine,
    pub client: &'a mut Client,
    pub worker: &'a mut Worker,
    pub args: Args<'a>,
    pub reply: Reply<'a>,
    /// The locks of the transaction that it is part of, which has them all.
    pub held: Option<Locked<'l>>,
    /// What the connection has to do after this command.
    pub after: After,
}

/// What a server command asks of the connection.
#[derive(Default)]
pub enum After {
    #[default]
    Continue,
    Close,
    Block(Blocked),
    /// There is more to do: the same request is executed again, and goes on, when others have had their turn.
    Again,
}

impl ReadCx<'_> {
    /// Hands out the selected database's part in one shard, locked for just that long. For commands whose keys are
    /// [`Locks::Walk`](crate::execution::command::Locks::Walk): they hold no locks, unless they are part of something that holds
    /// them all.
    pub fn shard<T>(&self, index: usize, look: impl FnOnce(&Db) -> T) -> T {
        self.whole_shard(index, |shard| look(shard.db(self.keys.db)))
    }

    /// The same with the database's part of every index up to date.
    pub fn settled_shard<T>(&mut self, index: usize, look: impl FnOnce(&Db) -> T) -> T {
        let db = self.keys.db;
        if self.keys.locked.shards().next().is_some() {
            self.keys.locked.settle(db);
            return self.shard(index, look);
        }
        match self.engine.keyspace.lock_shard_unless_busy(index) {
            Some(mut locked) => {
                self.keys.note_seen(locked.changed_by());
                locked.settle(db);
                let (_, shard) = locked.shards().next().expect("the shard was just locked");
                look(shard.db(db))
            }
            None => {
                self.keys.met_busy.set(true);
                look(Shard::default().db(db))
            }
        }
    }

    /// The same with the shard's part of every database.
    pub fn whole_shard<T>(&self, index: usize, look: impl FnOnce(&Shard) -> T) -> T {
        match self.keys.locked.shards().find(|(number, _)| *number == index) {
            Some((_, shard)) => look(shard),
            None => match self.engine.keyspace.lock_shard_unless_busy(index) {
                Some(locked) => {
                    self.keys.note_seen(locked.changed_by());
                    let (_, shard) = locked.shards().next().expect("the shard was just locked");
                    look(shard)
                }
                // It makes no difference what is found: the reply will be that the server is busy.
                None => {
                    self.keys.met_busy.set(true);
                    look(&Shard::default())
                }
            },
        }
    }
}

/// The locked part of the keyspace at one instant, to be read.
pub struct View<'a> {
    pub(crate) locked: Locked<'a>,
    pub(crate) db: usize,
    pub now_ms: u64,
    touch: bool,
    usage: Usage,
    stats: &'a WorkerStats,
    /// Keys met whose time has come: removed when the handler is done, while the locks are still held.
    overdue: RefCell<BTreeSet<Vec<u8>>>,
    /// Where events are noted that somebody may want to hear of, and which those are: bits of `settings::events`.
    news: Option<&'a PendingNotifications>,
    events: Events,
    /// A shard could not be locked.
    met_busy: Cell<bool>,
    /// The newest batch that has changed a shard which was looked at for a moment.
    seen: Cell<u64>,
    /// One of the command's keys is an index, and everything is locked.
    reads_index: bool,
    /// The command is served after a wait: all keys but these are absent to it.
    offer: Option<Arc<Offer>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(locked: Locked<'a>, db: usize, now_ms: u64, usage: Usage, stats: &'a WorkerStats) -> View<'a> {
        let locked = locked.at(now_ms, usage);
        let (overdue, met_busy) = (RefCell::default(), Cell::new(false));
        View {
            locked,
            db,
            now_ms,
            touch: true,
            usage,
            stats,
            overdue,
            news: None,
            events: Events::empty(),
            met_busy,
            seen: Cell::new(0),
            reads_index: false,
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

    /// True when the command may touch a key: one that is served after a wait sees what it is offered.
    #[inline]
    fn is_offered(&self, key: Key<'_>) -> bool {
        self.offer.as_ref().is_none_or(|offer| offer.has(key))
    }

    /// Shows indexes as the sorted sets that they are. Everything is locked.
    pub(crate) fn with_indexes(mut self) -> View<'a> {
        self.reads_index = true;
        self
    }

    /// The index of that name in the selected database. Everything is locked.
    pub fn index(&self, name: &[u8]) -> Option<IndexRef<'_>> {
        IndexRef::find(&self.locked, self.db, name)
    }

    /// Notes what happens in `news`, as far as somebody may want to hear of it.
    #[inline]
    pub(crate) fn notify_through(&mut self, news: &'a PendingNotifications, events: Events) {
        self.news = Some(news);
        self.events = events;
    }

    /// Tells those who listen what happens to a key (`notify-keyspace-events`). `class` is what kind of event it is.
    #[inline]
    pub fn notify(&self, class: Events, event: &'static str, key: Key<'_>) {
        self.notify_in(self.db, class, event, key);
    }

    /// The same in another database.
    #[inline]
    pub fn notify_in(&self, db: usize, class: Events, event: &'static str, key: Key<'_>) {
        if self.events.intersects(class)
            && let Some(news) = self.news
        {
            news.event(event, db, key.name);
        }
    }

    /// True when events of any of these classes are told.
    #[inline]
    pub fn tells(&self, classes: Events) -> bool {
        self.events.intersects(classes)
    }

    /// The number of the selected database.
    pub fn db(&self) -> usize {
        self.db
    }

    /// The entry of a key in the selected database; a key whose time has come is absent.
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
        if Db::is_overdue(entry, self.now_ms) {
            if db == self.db {
                self.meet_overdue(key, entry);
            }
            return None;
        }
        if self.touch {
            self.use_entry(entry);
        }
        Some(entry)
    }

    /// Notes that a key is to be removed.
    #[cold]
    fn meet_overdue(&self, key: Key<'_>, entry: &Entry) {
        if !self.overdue.borrow().contains(key.name) {
            self.notify_expired(self.db, key, entry);
            self.overdue.borrow_mut().insert(key.name.to_vec());
        }
    }

    /// Tells that a key's time has come, unless that was told when it was met.
    fn notify_expired(&self, db: usize, key: Key<'_>, entry: &Entry) {
        if self.events.is_empty() || db == self.db && self.overdue.borrow().contains(key.name) {
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

    /// Notes what an effect that is about to be recorded ends or begins beside what its handler tells: keys that had
    /// expired, and keys that are new.
    #[inline(never)]
    fn notify_expired_or_new(&self, db: usize, effect: &Effect<'_>) {
        let Touches::Keys(touches) = effect.touches(db) else { return };
        for Touch { db, key, fate } in touches {
            match fate {
                Fate::Gains { replaces } => self.notify_new(db, key, replaces),
                Fate::Gone(Cause::Expired) => {
                    if let Some(entry) = self.locked.db(db, key).entry(key) {
                        self.notify_expired(db, key, entry);
                    }
                }
                Fate::Gone(Cause::Deleted) | Fate::Loses(_) | Fate::Deadline | Fate::Read => {}
            }
        }
    }

    /// A key gets a value, and is new if it had none; or counts as new, since what it had goes first.
    fn notify_new(&self, db: usize, key: Key<'_>, replaced: bool) {
        let entry = self.locked.db(db, key).entry(key);
        let overdue = entry.filter(|entry| Db::is_overdue(entry, self.now_ms));
        if let Some(entry) = overdue {
            self.notify_expired(db, key, entry);
        }
        if replaced || entry.is_none() || overdue.is_some() {
            self.notify_in(db, Events::NEW_KEY, "new", key);
        }
    }

    /// Notes the events of an effect that was recorded elsewhere. Which command it was is not known: the events are those
    /// of the plainest command with that effect.
    #[cold]
    fn notify_replayed(&self, db: usize, effect: &Effect<'_>, emptied: bool) {
        let generic = |db: usize, event: &'static str, key: Key<'_>| self.notify_in(db, Events::GENERIC, event, key);
        match *effect {
            Effect::Change { key, change } => {
                // Elements that have expired were told of when they were removed.
                if change.fate() != Fate::Loses(Cause::Expired) {
                    let class = Events::of_letter(change.value_type().event_letter);
                    self.notify_in(db, class, change.event(), key);
                    if emptied {
                        generic(db, "del", key);
                    }
                }
            }
            Effect::Delete { key, cause: Cause::Deleted } => generic(db, "del", key),
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
        self.entry(key).map(Entry::deadline)
    }

    /// A read command has looked a key up: counted for INFO, and told if there is none.
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

    /// Remembers that a client has read keys, as long as there is room; when there is none, another key is forgotten,
    /// and its readers are told so.
    #[inline(never)]
    pub(crate) fn remember<'k>(&mut self, engine: &Engine, keys: impl Iterator<Item = Key<'k>>, reader: u64) {
        for key in keys {
            let gained = self.locked.tracked_mut(key).remember(key.name, reader);
            engine.tracking.note_remembered(gained);
            self.forget_readers(engine, key.name, 1);
        }
    }

    /// Tells a client that what it has read of these keys may be something else by now: nobody hears of changes of an
    /// index.
    #[cold]
    pub(crate) fn tell_stale<'k>(&mut self, keys: impl Iterator<Item = Key<'k>>, reader: u64) {
        let Some(news) = self.news else { return };
        for key in keys {
            news.stale(key.name, Readers::from_iter([reader]), Reason::Forgotten);
        }
    }

    /// Forgets who has read keys of the locked shards, as far as too many are remembered, but of no more than `count_max`
    /// keys, and of this one last. True when there are still too many.
    fn forget_readers(&mut self, engine: &Engine, last: &[u8], count_max: usize) -> bool {
        let too_many = engine.tracking.keys_beyond(engine.settings.tracking_table_max_keys());
        for _ in 0..too_many.min(count_max) {
            let Some((name, readers)) = self.locked.forget_any_tracked(last) else { return false };
            engine.tracking.note_forgotten(readers.len());
            if let Some(news) = self.news {
                news.stale(&name, readers, Reason::Forgotten);
            }
        }
        too_many > count_max
    }

    pub(crate) fn into_recorder(self, engine: &'a Engine, effects: &'a mut Vec<u8>) -> Recorder<'a> {
        let effects = engine.persistence.is_recording().then_some(effects);
        Recorder { view: self, engine, thresholds: engine.thresholds(), effects, changes: 0, written: Vec::new() }
    }

    /// The locks, once everything is read.
    pub(crate) fn into_locked(self) -> Locked<'a> {
        self.locked
    }

    /// To be changed by effects that were recorded elsewhere.
    pub(crate) fn into_follower(self, engine: &'a Engine) -> Recorder<'a> {
        Recorder { view: self, engine, thresholds: engine.thresholds(), effects: None, changes: 0, written: Vec::new() }
    }

    /// True when a shard could not be locked: what was found is not all there is.
    pub(crate) fn has_met_busy(&self) -> bool {
        self.met_busy.get()
    }

    fn note_seen(&self, sequence: u64) {
        self.seen.set(self.seen.get().max(sequence));
    }

    /// The newest batch that what was found may tell of.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.get().max(self.locked.changed_by())
    }

    pub(crate) fn has_overdue(&self) -> bool {
        !self.overdue.borrow().is_empty()
    }
}

/// True for a hash whose fields are all past their time though it is not past its own: it is no expired key.
fn goes_with_its_fields(entry: &Entry, now_ms: u64) -> bool {
    let is_hash = matches!(entry.object(), Some(Object::Hash(_)));
    is_hash && entry.deadline().is_none_or(|deadline| deadline > now_ms)
}

/// The locked part of the keyspace, to be read and changed by recording effects.
pub struct Recorder<'a> {
    view: View<'a>,
    engine: &'a Engine,
    thresholds: Thresholds,
    /// The batch for the journal, if there is one to keep it.
    effects: Option<&'a mut Vec<u8>>,
    /// Effects recorded.
    pub(crate) changes: u64,
    /// Records written by the command, while an index stamps records.
    written: Vec<Written>,
}

/// A record that a command has written, and which stamped fields it has set itself.
struct Written {
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
    /// Makes an effect true, at once: later commands of the same script or transaction see it.
    #[inline]
    pub fn record(&mut self, effect: &Effect<'_>) -> Applied {
        self.record_in(self.view.db, effect)
    }

    /// The same in another database.
    pub fn record_in(&mut self, db: usize, effect: &Effect<'_>) -> Applied {
        if self.engine.stamps.load(Relaxed) {
            self.note_written(db, effect);
        }
        self.changes += 1;
        let applied = self.record_alone(db, effect);
        if applied.replaced_deadline.is_some_and(|deadline| deadline <= self.view.now_ms) {
            self.view.stats.expired_keys.add(1);
        }
        applied
    }

    /// Makes an effect true without what it entails.
    fn record_alone(&mut self, db: usize, effect: &Effect<'_>) -> Applied {
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
        let applied = self.engine.apply(&mut self.view.locked, db, effect, &self.thresholds);
        if self.engine.waiters.any()
            && let Some(news) = self.view.news
        {
            note_ready(news, &self.view.locked, db, effect);
        }
        if let Some(batch) = &mut self.effects {
            match *effect {
                Effect::Rename { to, .. } if self.engine.is_walked() && self.view.locked.is_large(db, to) => {
                    self.engine.spoil_walks();
                    codec::encode(db, effect, batch);
                }
                Effect::Copy { to, to_db, .. } if self.engine.is_walked() && self.view.locked.is_large(to_db, to) => {
                    self.engine.spoil_walks();
                    codec::encode(db, effect, batch);
                }
                Effect::Rename { from, to } if self.engine.is_walked() => {
                    codec::encode(db, &Effect::Delete { key: from, cause: Cause::Deleted }, batch);
                    self.view.locked.encode_key(db, to, batch);
                }
                Effect::Copy { to, to_db, .. } if self.engine.is_walked() => {
                    self.view.locked.encode_key(to_db, to, batch);
                }
                _ => codec::encode(db, effect, batch),
            }
        }
        if let Effect::Change { key, change } = effect
            && change.fate() == Fate::Loses(Cause::Expired)
        {
            self.view.notify_in(db, Events::HASH, "hexpired", *key);
            if applied.emptied {
                self.view.notify_in(db, Events::GENERIC, "del", *key);
            }
        }
        applied
    }

    /// Makes an effect true that was recorded elsewhere, and publishes it as if its command had run here. What it defines is
    /// made ready when clients read meanwhile.
    pub(crate) fn replay(&mut self, db: usize, effect: &Effect<'_>, is_live: bool) {
        if !is_live && effect.touches(db).is_definition() {
            self.view.locked.apply(db, effect, &self.thresholds);
            return;
        }
        let applied = self.record_alone(db, effect);
        if !self.view.events.is_empty() {
            self.view.notify_replayed(db, effect, applied.emptied);
        }
    }

    /// Makes an effect on whole databases true for some keys alone.
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
        let indexes = self.view.locked.db(db, key).indexes();
        let stamps = |definition: &Definition, field: &[u8]| definition.stamp && definition.field == field;
        let stamped = |field: &[u8]| indexes.iter().any(|index| stamps(&index.definition, field));
        let set = set.iter().map(|(field, _)| *field).filter(|field| stamped(field)).map(<[u8]>::to_vec);
        self.written[at].set.extend(set);
    }

    /// The records that the command has written have the time of the write in them, where an index asks for that and the
    /// command itself has not set the field. Called when a command has recorded everything else.
    #[inline]
    pub(crate) fn stamp_written(&mut self) {
        if !self.written.is_empty() {
            self.stamp_all();
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
            let indexes = within.indexes().clone();
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

    /// Notes that what clients have read of keys is no longer so.
    #[inline(never)]
    fn note_stale(&mut self, db: usize, effect: &Effect<'_>) {
        let Some(news) = self.view.news else { return };
        let tracking = &self.engine.tracking;
        let touches = match effect.touches(db) {
            Touches::Keys(touches) => touches,
            Touches::Emptied(_) | Touches::Swapped(..) => {
                self.view.locked.forget_tracked();
                tracking.note_all_forgotten();
                return news.all_stale();
            }
            Touches::Definition => return,
        };
        for Touch { key, fate, .. } in touches {
            let reason = match fate {
                Fate::Read => continue,
                Fate::Gone(Cause::Expired) | Fate::Loses(Cause::Expired) => Reason::Expired,
                Fate::Gone(Cause::Deleted) | Fate::Loses(Cause::Deleted) | Fate::Gains { .. } | Fate::Deadline => {
                    Reason::Changed
                }
            };
            let readers = self.view.locked.tracked_mut(key).forget(key.name);
            if let Some(readers) = &readers {
                tracking.note_forgotten(readers.len());
            }
            if readers.is_some() || tracking.has_prefixes() {
                news.stale(key.name, readers.unwrap_or_default(), reason);
            }
        }
    }

    /// Forgets who has read keys of the locked shards, as far as too many are remembered, but of no more than so many. True
    /// when there are still too many.
    pub(crate) fn forget_readers(&mut self, count_max: usize) -> bool {
        self.view.forget_readers(self.engine, b"", count_max)
    }

    /// What was recorded is left to be read.
    pub(crate) fn into_view(self) -> View<'a> {
        self.view.stats.changes.add(self.changes);
        self.view
    }

    /// How long the batch is so far.
    pub(crate) fn recorded_bytes(&self) -> usize {
        self.effects.as_ref().map_or(0, |effects| effects.len())
    }

    /// The locks, once everything is recorded: counts the changes, and leaves the rest to the commit.
    pub(crate) fn finish(self) -> Locked<'a> {
        self.view.stats.changes.add(self.changes);
        self.view.locked
    }

    /// Who watches keys in the shard of a key.
    pub(crate) fn watched_mut(&mut self, key: Key<'_>) -> &mut Watched {
        self.view.locked.watched_mut(key)
    }

    /// True when the key is there but its time has come.
    pub(crate) fn is_overdue(&self, key: Key<'_>) -> bool {
        let entry = self.view.locked.db(self.view.db, key).entry(key);
        entry.is_some_and(|entry| Db::is_overdue(entry, self.view.now_ms))
    }

    /// Makes every key of the locked shards anew from its own image.
    pub(crate) fn remake(&mut self) -> Result<(), BadEffect> {
        self.view.locked.remake(&self.thresholds)
    }

    /// Removes a key whose time has come, so that a write finds a clean place. True when it was so.
    pub fn expire_if_overdue(&mut self, db: usize, key: Key<'_>) -> bool {
        if !self.view.is_offered(key) {
            return false;
        }
        let now_ms = self.view.now_ms;
        let Some(entry) = self.view.locked.db(db, key).entry(key).filter(|entry| Db::is_overdue(entry, now_ms)) else {
            return false;
        };
        let stats = self.view.stats;
        match entry.object() {
            // As when the cycle finds it.
            Some(Object::Hash(table)) if goes_with_its_fields(entry, now_ms) => {
                stats.expired_fields.add(table.len() as u64);
            }
            _ => stats.expired_keys.add(1),
        }
        self.record_in(db, &Effect::Delete { key, cause: Cause::Expired });
        true
    }

    /// Makes ready to change the hash at a key: what is past its time goes first, so that what is recorded next is
    /// exact. An error when the key holds something else.
    pub fn prepare_hash(&mut self, key: Key<'_>) -> CommandResult {
        if !self.view.is_offered(key) {
            return Ok(());
        }
        let now_ms = self.view.now_ms;
        let Some(entry) = self.view.locked.db(self.view.db, key).entry(key) else { return Ok(()) };
        if Db::is_overdue(entry, now_ms) {
            self.expire_if_overdue(self.view.db, key);
            return Ok(());
        }
        if !ValueType::of(entry).is(&hash::TYPE) {
            return Err(CommandError::WrongType);
        }
        let names = match entry.object() {
            Some(Object::Hash(table)) if table.overdue(now_ms) > 0 => table.overdue_names(now_ms, usize::MAX),
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
        self.expire_if_overdue(self.view.db, key);
        self.view.sorted_set(key)
    }

    /// When a small value becomes a large one.
    pub(crate) fn thresholds(&self) -> &Thresholds {
        &self.thresholds
    }

    /// Removes whatever has expired from the selected database, as far as it is locked: whoever counts must not count it.
    /// The caller has seen to it that there is little ([`Engine::lock_for_index`]), or holds the locks for other reasons.
    pub(crate) fn expire_everything(&mut self) {
        let (db, now_ms) = (self.view.db, self.view.now_ms);
        loop {
            let shards = || self.view.locked.shards().map(|(_, shard)| shard.db(db));
            let overdue: Vec<Vec<u8>> = shards().flat_map(|db| db.overdue_keys(now_ms, usize::MAX)).collect();
            let fields: Vec<_> = shards().filter_map(|db| db.overdue_fields(now_ms, usize::MAX)).collect();
            if overdue.is_empty() && fields.is_empty() {
                return;
            }
            for name in overdue.iter().chain(fields.iter().map(|(name, _)| name)) {
                let key = Key::new(name);
                if !self.expire_if_overdue(db, key) {
                    // Some of its fields, then; whatever else it holds stays.
                    let _ = self.prepare_hash(key);
                }
            }
        }
    }

    /// Removes keys that were found to be overdue.
    pub(crate) fn expire_met(&mut self) {
        // Left in the list: that they have gone is told already.
        let met = self.view.overdue.borrow().clone();
        for name in met {
            self.expire_if_overdue(self.view.db, Key::new(&name));
        }
    }
}
