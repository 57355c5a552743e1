//! The shards and their locks. Knows which keys need which locks and the order in which locks are taken; refuses to
//! know what is done under them.

use super::db::Db;
use super::definitions::Definitions;
use super::detached::KeyCopy;
use super::held::Held;
use super::shard::Shard;
use crate::effects::{Effect, Touches, codec};
use crate::index::Indexes;
use crate::interest::readers::{Readers, Tracked};
use crate::interest::waiters::Awaited;
use crate::interest::watchers::{KeyState, Watched};
use crate::storage::{Key, KeyHashes};
use crate::types::{Cause, Fate, ValueType};
use crate::usage::Usage;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// All state, in a power-of-two number of shards.
pub struct Keyspace {
    shards: Box<[Padded]>,
    /// A long script holds locks: other threads should not wait for them.
    busy: AtomicBool,
}

/// A shard's lock alone on its cache lines, so that neighbours do not slow each other down.
#[repr(align(128))]
struct Padded(Mutex<Shard>);

/// A locked shard: by a lock of its own, or lent by a [`Batch`] that holds it.
enum Guard<'a> {
    Own(OwnGuard<'a>),
    Lent(&'a mut Shard),
}

/// A lock of a shard. Debug builds count it for its thread.
struct OwnGuard<'a> {
    guard: MutexGuard<'a, Shard>,
    _held: Held,
}

impl<'a> OwnGuard<'a> {
    #[inline]
    fn new(guard: MutexGuard<'a, Shard>) -> OwnGuard<'a> {
        OwnGuard { guard, _held: Held::new() }
    }
}

impl std::ops::Deref for Guard<'_> {
    type Target = Shard;

    #[inline]
    fn deref(&self) -> &Shard {
        match self {
            Guard::Own(own) => &own.guard,
            Guard::Lent(shard) => shard,
        }
    }
}

impl std::ops::DerefMut for Guard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Shard {
        match self {
            Guard::Own(own) => &mut own.guard,
            Guard::Lent(shard) => shard,
        }
    }
}

/// Locks held for the next commands of a pipeline, each of which touches one key or two.
///
/// Holding them together lets the CPU fetch all their entries at once before the first command runs; one after the
/// other, each command would wait for memory alone. The locks are taken with try_lock: a thread that holds some must
/// not wait for another.
pub struct Batch<'a> {
    guards: SmallVec<[(usize, OwnGuard<'a>); BATCH_MAX]>,
    shard_count: usize,
    /// The keys whose values may lie behind a pointer, in the order of their commands, and their database.
    objects: SmallVec<[KeyHashes; BATCH_MAX]>,
    db: usize,
    /// Of how many keys commands have run.
    lent: usize,
}

/// The most keys of a batch. More would block the other workers.
pub const BATCH_MAX: usize = 8;

impl Batch<'_> {
    /// True when the shard of a key is held.
    #[inline]
    pub fn holds(&self, key: Key<'_>) -> bool {
        let number = key.shard(self.shard_count);
        self.guards.iter().any(|(index, _)| *index == number)
    }

    /// The database of a key, if its shard is held.
    #[inline]
    fn db_of(&self, key: KeyHashes) -> Option<&Db> {
        let number = key.shard(self.shard_count);
        let held = self.guards.iter().find(|(index, _)| *index == number);
        held.map(|(_, held)| held.guard.db(self.db))
    }

    /// Prefetches values of the two commands after the one that is about to run, if they have as many keys. What this looks at was
    /// itself prefetched a command before: for all keys at once, each step would wait for the one before.
    #[inline]
    fn prefetch_objects(&mut self, keys: usize) {
        if self.objects.is_empty() {
            return;
        }
        let next = self.lent + keys;
        for key in self.objects.iter().skip(next + keys).take(keys) {
            if let Some(db) = self.db_of(*key) {
                db.prefetch_object(key.hash);
            }
        }
        for key in self.objects.iter().skip(next).take(keys) {
            if let Some(db) = self.db_of(*key) {
                db.prefetch_write(key.hash);
            }
        }
        self.lent = next;
    }

    /// The shard of a key, lent for one command. It must be held.
    #[inline]
    pub fn lend(&mut self, key: Key<'_>) -> Locked<'_> {
        self.prefetch_objects(1);
        let number = key.shard(self.shard_count);
        let guard = self.guards.iter_mut().find(|(index, _)| *index == number);
        let (_, guard) = guard.expect("only what is held can be lent");
        let mut guards = SmallVec::new();
        guards.push((number, Guard::Lent(&mut guard.guard)));
        Locked { guards, shard_count: self.shard_count, used_at: 0, garbage: Vec::new() }
    }

    /// The shards of several keys, lent for one command. They must be held.
    pub fn lend_keys(&mut self, keys: &[Key<'_>]) -> Locked<'_> {
        // One that is there twice, as in LMOVE within a list, is one of the batch.
        let is_one = matches!(keys, [one, other] if one.name == other.name);
        self.prefetch_objects(if is_one { 1 } else { keys.len() });
        let shard_count = self.shard_count;
        let is_wanted = |number: usize| keys.iter().any(|key| key.shard(shard_count) == number);
        let held = self.guards.iter_mut().filter(|(number, _)| is_wanted(*number));
        let mut guards: SmallVec<[(usize, Guard<'_>); 2]> =
            held.map(|(number, held)| (*number, Guard::Lent(&mut held.guard))).collect();
        guards.sort_unstable_by_key(|(number, _)| *number);
        Locked { guards, shard_count, used_at: 0, garbage: Vec::new() }
    }
}

/// Locks held, lowest shard first.
pub struct Locked<'a> {
    guards: SmallVec<[(usize, Guard<'a>); 2]>,
    shard_count: usize,
    /// The [`Entry::used_at`](crate::storage::entry::Entry::used_at) of new keys; not part of the state.
    used_at: u32,
    /// Large values and whole databases that were removed. Freeing them takes long: declared last, they are dropped
    /// after the locks.
    pub(super) garbage: Garbage,
}

/// Removed from the keyspace but not freed yet.
pub type Garbage = Vec<Box<dyn std::any::Any + Send>>;

impl Keyspace {
    /// An empty keyspace of `shard_count` shards, rounded up to a power of two.
    pub fn new(shard_count: usize) -> Keyspace {
        let shard_count = shard_count.clamp(1, 512).next_power_of_two();
        let shard = |number| Padded(Mutex::new(Shard::new(number, shard_count)));
        Keyspace { shards: (0..shard_count).map(shard).collect(), busy: AtomicBool::new(false) }
    }

    /// How many shards there are.
    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// How many keys there are in all databases, a shard after the other.
    pub fn keys(&self) -> u64 {
        Held::assert_none();
        let count = |shard: &Padded| shard.0.lock().dbs.iter().map(|db| db.len() as u64).sum::<u64>();
        self.shards.iter().map(count).sum()
    }

    /// Sets whether threads that wait for locks should give up.
    pub fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Relaxed);
    }

    /// Locks one shard; `None` when that would take long.
    #[inline]
    fn acquire(&self, shard: usize) -> Option<Guard<'_>> {
        let mutex = &self.shards[shard].0;
        match mutex.try_lock() {
            Some(guard) => Some(Guard::Own(OwnGuard::new(guard))),
            None => self.acquire_slowly(mutex),
        }
    }

    #[cold]
    fn acquire_slowly<'k>(&self, mutex: &'k Mutex<Shard>) -> Option<Guard<'k>> {
        loop {
            if let Some(guard) = mutex.try_lock_for(BUSY_LOOK_EVERY) {
                return Some(Guard::Own(OwnGuard::new(guard)));
            }
            if self.busy.load(Relaxed) {
                return None;
            }
        }
    }

    /// Locks the shard of one key; `None` when that would take long.
    #[inline]
    pub fn lock_key_unless_busy(&self, key: Key<'_>) -> Option<Locked<'_>> {
        self.lock_shard_unless_busy(key.shard(self.shards.len()))
    }

    /// Locks one shard by number; `None` when that would take long.
    #[inline]
    pub fn lock_shard_unless_busy(&self, shard: usize) -> Option<Locked<'_>> {
        Held::assert_none();
        let mut guards = SmallVec::new();
        guards.push((shard, self.acquire(shard)?));
        Some(Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Vec::new() })
    }

    /// Locks one shard by number, if it is free.
    pub fn try_lock_shard(&self, shard: usize) -> Option<Locked<'_>> {
        Held::assert_none();
        let mut guards = SmallVec::new();
        guards.push((shard, Guard::Own(OwnGuard::new(self.shards[shard].0.try_lock()?))));
        Some(Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Vec::new() })
    }

    /// Locks the shards of several keys; `None` when that would take long.
    pub fn lock_keys_unless_busy<'k>(&self, keys: impl Iterator<Item = Key<'k>>) -> Option<Locked<'_>> {
        self.lock_shards_unless_busy(keys.map(|key| key.shard(self.shards.len())).collect())
    }

    /// Locks shards by their numbers; `None` when that would take long.
    pub fn lock_shards_unless_busy(&self, mut shards: SmallVec<[usize; 16]>) -> Option<Locked<'_>> {
        Held::assert_none();
        // IMPORTANT: ascending and without repetition, everywhere; otherwise two clients can wait for each other.
        shards.sort_unstable();
        shards.dedup();
        let guards = shards.into_iter().map(|shard| Some((shard, self.acquire(shard)?))).collect::<Option<_>>()?;
        Some(Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Vec::new() })
    }

    /// Locks two shards, or one if they are the same; `None` when that would take long.
    #[inline]
    pub fn lock_two_unless_busy(&self, one: usize, other: usize) -> Option<Locked<'_>> {
        Held::assert_none();
        // IMPORTANT: ascending, as everywhere.
        let (first, second) = (one.min(other), one.max(other));
        let mut guards = SmallVec::new();
        guards.push((first, self.acquire(first)?));
        if first != second {
            guards.push((second, self.acquire(second)?));
        }
        Some(Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Vec::new() })
    }

    /// Locks everything; `None` when that would take long.
    pub fn lock_all_unless_busy(&self) -> Option<Locked<'_>> {
        Held::assert_none();
        let mut guards = SmallVec::with_capacity(self.shards.len());
        for shard in 0..self.shards.len() {
            guards.push((shard, self.acquire(shard)?));
        }
        Some(Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Vec::new() })
    }

    /// Locks nothing: for commands that touch no key.
    #[inline]
    pub fn lock_none(&self) -> Locked<'_> {
        Locked { guards: SmallVec::new(), shard_count: self.shards.len(), used_at: 0, garbage: Vec::new() }
    }

    /// Locks the shard of one key.
    #[inline]
    pub fn lock_key(&self, key: Key<'_>) -> Locked<'_> {
        self.lock_shard(key.shard(self.shards.len()))
    }

    /// Locks one shard by number.
    #[inline]
    pub fn lock_shard(&self, shard: usize) -> Locked<'_> {
        Held::assert_none();
        let mut guards = SmallVec::new();
        guards.push((shard, Guard::Own(OwnGuard::new(self.shards[shard].0.lock()))));
        Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Vec::new() }
    }

    /// Locks the shards of several keys.
    pub fn lock_keys<'k>(&self, keys: impl Iterator<Item = Key<'k>>) -> Locked<'_> {
        self.lock_shards(keys.map(|key| key.shard(self.shards.len())).collect())
    }

    /// The number of the shard of a key.
    pub fn shard_of(&self, name: &[u8]) -> usize {
        Key::new(name).shard(self.shards.len())
    }

    /// The number of the shard of a key.
    #[inline]
    pub fn shard_of_key(&self, key: Key<'_>) -> usize {
        key.shard(self.shards.len())
    }

    /// Locks shards by their numbers.
    pub fn lock_shards(&self, mut shards: SmallVec<[usize; 16]>) -> Locked<'_> {
        Held::assert_none();
        // IMPORTANT: ascending and without repetition, everywhere; otherwise two clients can wait for each other.
        shards.sort_unstable();
        shards.dedup();
        let lock = |shard: usize| (shard, Guard::Own(OwnGuard::new(self.shards[shard].0.lock())));
        let guards = shards.into_iter().map(lock).collect();
        Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Vec::new() }
    }

    /// Locks those shards of keys of database `db` that are free, and prefetches the keys' entries; with `objects`, also
    /// the values that lie behind a pointer, as the commands run. That is not for types of which few do.
    pub fn lock_batch(&self, db: usize, keys: &[Key<'_>], objects: bool) -> Batch<'_> {
        Held::assert_none();
        let (guards, shard_count) = (SmallVec::new(), self.shards.len());
        let mut batch = Batch { guards, shard_count, objects: SmallVec::new(), db, lent: 0 };
        for key in keys {
            let number = key.shard(self.shards.len());
            if batch.guards.iter().any(|(index, _)| *index == number) {
                continue;
            }
            if let Some(guard) = self.shards[number].0.try_lock() {
                guard.db(db).prefetch_self();
                batch.guards.push((number, OwnGuard::new(guard)));
            }
        }
        for key in keys {
            if let Some(db) = batch.db_of(key.hashes()) {
                db.prefetch(*key);
            }
        }
        if objects {
            batch.objects.extend(keys.iter().map(Key::hashes));
            for key in keys.iter().take(2) {
                if let Some(db) = batch.db_of(key.hashes()) {
                    db.prefetch_object(key.hash);
                }
            }
        }
        batch
    }

    /// Locks everything.
    pub fn lock_all(&self) -> Locked<'_> {
        Held::assert_none();
        let guards = self.shards.iter().map(|shard| Guard::Own(OwnGuard::new(shard.0.lock()))).enumerate().collect();
        Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Vec::new() }
    }
}

/// How often a thread that waits for a lock checks the busy flag.
const BUSY_LOOK_EVERY: Duration = Duration::from_millis(5);

/// What makes a value large.
const LARGE_BYTES: usize = 16 * 1024 * 1024;
const LARGE_ELEMENTS: usize = 100_000;
/// How many elements are sampled to estimate the size of a value.
const LARGE_SAMPLES: usize = 100;

impl<'a> Locked<'a> {
    /// A shard that is part of no keyspace, and so needs no lock.
    pub fn alone(shard: &'a mut Shard) -> Locked<'a> {
        let mut guards = SmallVec::new();
        guards.push((0, Guard::Lent(shard)));
        Locked { guards, shard_count: 1, used_at: 0, garbage: Vec::new() }
    }

    /// Sets the instant, in unix milliseconds, at which new keys count as used.
    #[inline]
    pub fn at(mut self, now_ms: u64, usage: Usage) -> Locked<'a> {
        self.used_at = usage.fresh(now_ms);
        self
    }

    /// The shard of a key. Its lock must be held: a command that touches keys it did not declare is a bug.
    #[inline]
    pub fn shard(&self, key: Key<'_>) -> &Shard {
        &self.guards[self.index_of(key.shard(self.shard_count))].1
    }

    /// Database `db` in the shard of a key.
    #[inline]
    pub fn db(&self, db: usize, key: Key<'_>) -> &Db {
        self.shard(key).db(db)
    }

    #[inline]
    pub(super) fn db_mut(&mut self, db: usize, key: Key<'_>) -> &mut Db {
        let index = self.index_of(key.shard(self.shard_count));
        let db = &mut self.guards[index].1.dbs[db];
        db.used_at = self.used_at;
        db
    }

    /// The same locks for one of several commands.
    #[inline]
    pub fn lend(&mut self) -> Locked<'_> {
        let mut guards = SmallVec::new();
        match &mut self.guards[..] {
            // Nearly always.
            [(index, guard)] => guards.push((*index, Guard::Lent(guard))),
            several => guards.extend(several.iter_mut().map(|(index, guard)| (*index, Guard::Lent(guard)))),
        }
        Locked { guards, shard_count: self.shard_count, used_at: self.used_at, garbage: Vec::new() }
    }

    /// The lock of one key's shard, for a command that has no other.
    #[inline]
    pub fn lend_key(&mut self, key: Key<'_>) -> Locked<'_> {
        let shard = key.shard(self.shard_count);
        let index = self.index_of(shard);
        let mut guards = SmallVec::new();
        guards.push((shard, Guard::Lent(&mut self.guards[index].1)));
        Locked { guards, shard_count: self.shard_count, used_at: self.used_at, garbage: Vec::new() }
    }

    /// The locks of these keys' shards, for a command that has no others: lent where they are held here, taken where
    /// they are free. `None` when another thread holds one: a thread that holds locks must not wait for others.
    pub fn lend_or_try<'s>(&'s mut self, keyspace: &'s Keyspace, keys: &[Key<'_>]) -> Option<Locked<'s>> {
        let (shard_count, used_at) = (self.shard_count, self.used_at);
        let mut needed: SmallVec<[usize; 4]> = keys.iter().map(|key| key.shard(shard_count)).collect();
        needed.sort_unstable();
        needed.dedup();
        let mut guards: SmallVec<[(usize, Guard<'s>); 2]> = SmallVec::new();
        for (index, guard) in self.guards.iter_mut().filter(|(index, _)| needed.contains(index)) {
            guards.push((*index, Guard::Lent(guard)));
        }
        for shard in needed {
            if !guards.iter().any(|(index, _)| *index == shard) {
                guards.push((shard, Guard::Own(OwnGuard::new(keyspace.shards[shard].0.try_lock()?))));
            }
        }
        guards.sort_unstable_by_key(|(index, _)| *index);
        Some(Locked { guards, shard_count, used_at, garbage: Vec::new() })
    }

    /// True when the shard of a key is locked.
    pub fn holds(&self, key: Key<'_>) -> bool {
        let shard = key.shard(self.shard_count);
        self.guards.iter().any(|(index, _)| *index == shard)
    }

    /// The watches of the key's shard.
    pub fn watched_mut(&mut self, key: Key<'_>) -> &mut Watched {
        let index = self.index_of(key.shard(self.shard_count));
        &mut self.guards[index].1.watched
    }

    /// Queues a session that has not expired to be looked at when it will have, if it is not renewed. Nothing is recorded: how long
    /// a session lives is of this process alone.
    pub fn queue_session(&mut self, db: usize, key: Key<'_>, now_ms: u64) {
        self.db_mut(db, key).queue_session(key, now_ms);
    }

    /// The waiters of the key's shard.
    pub fn awaited_mut(&mut self, key: Key<'_>) -> &mut Awaited {
        let index = self.index_of(key.shard(self.shard_count));
        &mut self.guards[index].1.awaited
    }

    /// The tracked keys of the key's shard, with their readers.
    pub fn tracked_mut(&mut self, key: Key<'_>) -> &mut Tracked {
        let index = self.index_of(key.shard(self.shard_count));
        &mut self.guards[index].1.tracked
    }

    /// Forgets any tracked key of the locked shards; the key `but` only if there is no other.
    pub fn forget_any_tracked(&mut self, but: &[u8]) -> Option<(Box<[u8]>, Readers)> {
        self.shards_mut().find_map(|shard| shard.tracked.forget_any(but))
    }

    /// Forgets all tracked keys. All shards are locked.
    pub fn forget_tracked(&mut self) {
        self.shards_mut().for_each(|shard| shard.tracked.clear());
    }

    /// Sets the flags of watched keys that an effect in database `db` is about to change. Called before it is applied:
    /// when it affects a whole database, only existing keys change.
    pub fn notify_watchers(&mut self, db: usize, effect: &Effect<'_>, now_ms: u64) {
        match effect.touches(db) {
            Touches::Keys(touches) => {
                for touch in touches {
                    let expired = match touch.fate {
                        Fate::Read => continue,
                        Fate::Gone(cause) => cause == Cause::Expired,
                        // Elements of a value that has expired as a whole.
                        Fate::Loses(Cause::Expired) => {
                            let entry = self.db(touch.db, touch.key).entry(touch.key);
                            entry.is_some_and(|entry| Db::is_expired(entry, now_ms))
                        }
                        Fate::Loses(Cause::Deleted | Cause::Evicted)
                        | Fate::Gains { .. }
                        | Fate::Amended
                        | Fate::Deadline => false,
                    };
                    self.watched_mut(touch.key).changed(touch.db, touch.key, expired);
                }
            }
            Touches::Emptied(dbs) => dbs.for_each(|db| self.notify_replaced(db, None, now_ms)),
            Touches::Swapped(a, b) => {
                self.notify_replaced(a, Some(b), now_ms);
                self.notify_replaced(b, Some(a), now_ms);
            }
            Touches::Definition => {}
        }
    }

    /// Sets the flags of watched keys in a database that is emptied, or gets the keys of another.
    fn notify_replaced(&mut self, db: usize, by: Option<usize>, now_ms: u64) {
        for shard in self.shards_mut() {
            let Shard { dbs, watched, .. } = shard;
            let state = |db: usize, name: &[u8]| match dbs[db].entry(Key::new(name)) {
                None => KeyState::Absent,
                Some(entry) if Db::is_expired(entry, now_ms) => KeyState::Expired,
                Some(_) => KeyState::Present,
            };
            watched.all_replaced(db, |name| (state(db, name), by.map_or(KeyState::Absent, |by| state(by, name))));
        }
    }

    /// Releases the locks fairly: a waiting thread gets them next.
    pub fn release_fairly(self) {
        for (_, guard) in self.guards {
            if let Guard::Own(own) = guard {
                MutexGuard::unlock_fair(own.guard);
            }
        }
    }

    /// Applies pending index changes of database `db` in the locked shards, before a read.
    pub fn apply_pending(&mut self, db: usize) {
        self.shards_mut().for_each(|shard| shard.dbs[db].apply_pending());
    }

    /// Makes one index of database `db` current in the locked shards, and publishes the first records there: see
    /// [`Heads`](crate::index::Heads).
    pub fn settle_index(&mut self, db: usize, index: usize) {
        for shard in self.shards_mut() {
            shard.dbs[db].settle(index);
        }
    }

    /// How many keys of database `db` have expired, or have fields that have, as far as it is locked; no more than `max`.
    pub fn expired_up_to(&self, db: usize, now_ms: u64, max: usize) -> usize {
        let mut count = 0;
        for (_, shard) in self.shards() {
            count += shard.db(db).expired_up_to(now_ms, max - count);
            if count >= max {
                break;
            }
        }
        count
    }

    /// How many changes that would make.
    pub fn pending_changes(&self, db: usize) -> usize {
        self.shards().map(|(_, shard)| shard.db(db).pending_changes()).sum()
    }

    /// How many shards are locked.
    pub(crate) fn len(&self) -> usize {
        self.guards.len()
    }

    /// One of the shards that are locked, in their order.
    pub(crate) fn nth(&self, number: usize) -> &Shard {
        &self.guards[number].1
    }

    /// True when every shard is locked.
    #[inline]
    pub fn holds_all(&self) -> bool {
        self.guards.len() == self.shard_count
    }

    /// Sets the indexes of every database. New ones are empty. All shards are locked.
    pub fn set_indexes(&mut self, indexes: &Indexes) {
        let dbs = self.shards_mut().flat_map(|shard| shard.dbs.iter_mut());
        let left: Vec<_> = dbs.flat_map(|db| db.set_indexes(indexes)).collect();
        self.garbage.push(Box::new(left));
    }

    /// Rebuilds one of the indexes from the records of the locked shards.
    pub fn build_index(&mut self, at: usize) {
        self.shards_mut().flat_map(|shard| shard.dbs.iter_mut()).for_each(|db| db.build_part(at));
    }

    /// Backfill: adds records of the locked shard, from a position on, to the indexes that are not complete, until
    /// about `count` were visited. Returns where to continue.
    pub fn index_some(&mut self, from: u32, count: usize) -> Option<u32> {
        let shard = self.shards_mut().next()?;
        let (mut from, mut seen) = (from, 0);
        loop {
            let used = shard.dbs.iter().filter(|db| !db.is_empty());
            let end = used.map(|db| db.range_end(from)).min().unwrap_or(u32::MAX);
            seen += shard.dbs.iter_mut().filter(|db| !db.is_empty()).map(|db| db.index_range(from, end)).sum::<usize>();
            from = end.checked_add(1)?;
            if seen >= count {
                return Some(from);
            }
        }
    }

    /// The definitions. The first shard is locked.
    pub fn definitions(&self) -> &Definitions {
        &self.guards[self.index_of(0)].1.definitions
    }

    pub(super) fn definitions_mut(&mut self) -> &mut Definitions {
        let index = self.index_of(0);
        &mut self.guards[index].1.definitions
    }

    /// The number of the last batch that changed any of the locked shards.
    #[inline]
    pub fn changed_by(&self) -> u64 {
        self.guards.iter().map(|(_, guard)| guard.changed_by).max().unwrap_or(0)
    }

    /// Notes that the batch of that number has changed the locked shards.
    #[inline]
    pub fn set_changed_by(&mut self, sequence: u64) {
        self.shards_mut().for_each(|shard| shard.changed_by = sequence);
    }

    /// Appends a key of database `db` as the effect that creates it; nothing when there is no such key.
    pub fn encode_key(&self, db: usize, key: Key<'_>, out: &mut Vec<u8>) {
        let within = self.db(db, key);
        if let Some(entry) = within.entry(key) {
            codec::encode_entry(db, entry, &within.shapes, out);
        }
    }

    /// True when the value of a key is too large to be encoded as a whole without delaying other clients.
    pub fn is_large(&self, db: usize, key: Key<'_>) -> bool {
        let within = self.db(db, key);
        let Some(entry) = within.entry(key) else { return false };
        let (value_type, Some(object)) = (ValueType::of(entry), entry.object()) else { return false };
        (value_type.elements)(entry, &within.shapes) > LARGE_ELEMENTS
            || (value_type.heap_bytes)(object, LARGE_SAMPLES) > LARGE_BYTES
    }

    /// A copy of a key of database `db`: its value and deadline, expired or not.
    pub fn copy_of(&self, db: usize, key: Key<'_>) -> KeyCopy {
        let within = self.db(db, key);
        KeyCopy::new(within.entry(key), &within.shapes)
    }

    /// Takes the garbage, to free it elsewhere.
    pub fn take_garbage(&mut self) -> Garbage {
        std::mem::take(&mut self.garbage)
    }

    /// All shards that are locked, with their numbers.
    pub fn shards(&self) -> impl Iterator<Item = (usize, &Shard)> {
        self.guards.iter().map(|(index, guard)| (*index, &**guard))
    }

    pub(super) fn shards_mut(&mut self) -> impl Iterator<Item = &mut Shard> {
        self.guards.iter_mut().map(|(_, guard)| &mut **guard)
    }

    #[inline]
    fn index_of(&self, shard: usize) -> usize {
        if self.guards.len() == 1 {
            assert_eq!(self.guards[0].0, shard, "a command may only touch keys whose shards it locked");
            return 0;
        }
        self.guards
            .binary_search_by_key(&shard, |(index, _)| *index)
            .expect("a command may only touch keys whose shards it locked")
    }
}
