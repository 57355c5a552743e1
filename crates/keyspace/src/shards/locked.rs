//! The shards and their locks. Knows which keys need which locks and the order of locking; refuses to know what is done
//! under them.

use super::db::Db;
use super::definitions::Definitions;
use super::detached::KeyCopy;
use super::garbage::Garbage;
use super::held::Held;
use super::shard::Shard;
use crate::DATABASES;
use crate::effects::{Effect, Touches, codec};
use crate::index::{Indexes, groups};
use crate::interest::readers::{Readers, Tracked};
use crate::interest::waiters::Awaited;
use crate::interest::watchers::{KeyState, Watched};
use crate::storage::{Key, KeyHashes, NameHash};
use crate::types::{Cause, Fate, ValueType};
use crate::usage::Usage;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// All state, in a power-of-two number of shards.
pub struct Keyspace {
    shards: Box<[Padded]>,
}

/// A shard's lock on its own cache lines, so that neighbours do not slow each other down.
#[repr(align(128))]
struct Padded {
    shard: Mutex<Shard>,
    /// How many long scripts hold the lock, or have just released it: other threads must not wait for it. IMPORTANT: a number.
    /// A script may hold it, and be long, before the one before it has noted its end.
    held_long: AtomicU32,
}

impl Padded {
    #[cold]
    fn acquire_slowly(&self) -> Option<Guard<'_>> {
        while self.held_long.load(Relaxed) == 0 {
            if let Some(guard) = self.shard.try_lock_for(LOOK_EVERY) {
                return Some(Guard::Own(OwnGuard::new(guard)));
            }
        }
        None
    }
}

/// A locked shard: locked here, or lent by [`AheadLocks`].
enum Guard<'a> {
    Own(OwnGuard<'a>),
    Lent(&'a mut Shard),
}

/// The lock of a shard. Debug builds record it for its thread.
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
/// Holding them together lets the CPU fetch all entries at once before the first command runs; otherwise each command
/// would wait for memory alone. The locks are taken with try_lock: a thread that holds some must not wait for another.
pub struct AheadLocks<'a> {
    guards: SmallVec<[(usize, OwnGuard<'a>); AHEAD_MAX]>,
    shard_count: usize,
    /// The keys whose values may be behind a pointer, in the order of their commands.
    objects: SmallVec<[KeyHashes; AHEAD_MAX]>,
    db: usize,
    /// The number of keys whose commands have run.
    lent: usize,
}

/// The most keys that are locked ahead. More would block the other workers.
pub const AHEAD_MAX: usize = 8;

impl AheadLocks<'_> {
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

    /// Prefetches values of the two commands after the next one, if they have as many keys. The memory that this reads
    /// was prefetched one command before; for all keys at once, each step would wait for the previous one.
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

    /// Lends the shard of a key to one command. It must be held.
    #[inline]
    pub fn lend(&mut self, key: Key<'_>) -> Locked<'_> {
        self.prefetch_objects(1);
        let number = key.shard(self.shard_count);
        let guard = self.guards.iter_mut().find(|(index, _)| *index == number);
        let (_, guard) = guard.expect("only what is held can be lent");
        let mut guards = SmallVec::new();
        guards.push((number, Guard::Lent(&mut guard.guard)));
        Locked { guards, shard_count: self.shard_count, used_at: 0, garbage: Garbage::default() }
    }

    /// Lends the shards of several keys to one command. They must be held.
    pub fn lend_keys(&mut self, keys: &[Key<'_>]) -> Locked<'_> {
        // A key that is given twice, as in LMOVE within a list, is locked once.
        let is_one = matches!(keys, [one, other] if one.name == other.name);
        self.prefetch_objects(if is_one { 1 } else { keys.len() });
        let shard_count = self.shard_count;
        let is_wanted = |number: usize| keys.iter().any(|key| key.shard(shard_count) == number);
        let held = self.guards.iter_mut().filter(|(number, _)| is_wanted(*number));
        let mut guards: SmallVec<[(usize, Guard<'_>); 2]> =
            held.map(|(number, held)| (*number, Guard::Lent(&mut held.guard))).collect();
        guards.sort_unstable_by_key(|(number, _)| *number);
        Locked { guards, shard_count, used_at: 0, garbage: Garbage::default() }
    }
}

/// The shards that are locked, in ascending order.
pub struct Locked<'a> {
    guards: SmallVec<[(usize, Guard<'a>); 2]>,
    shard_count: usize,
    /// The [`Entry::used_at`](crate::types::Entry::used_at) of new keys; not part of the state.
    used_at: u32,
    /// Removed large values and whole databases. Freeing them takes long: declared last, they are dropped after the
    /// locks.
    pub(super) garbage: Garbage,
}

impl Keyspace {
    /// An empty keyspace of `shard_count` shards, rounded up to a power of two.
    pub fn new(shard_count: usize) -> Keyspace {
        let shard_count = shard_count.clamp(1, 512).next_power_of_two();
        let shard =
            |number| Padded { shard: Mutex::new(Shard::new(number, shard_count)), held_long: AtomicU32::new(0) };
        Keyspace { shards: (0..shard_count).map(shard).collect() }
    }

    /// How many shards there are.
    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// The number of keys in all databases, counted shard by shard.
    pub fn keys(&self) -> u64 {
        Held::assert_none();
        let count = |shard: &Padded| shard.shard.lock().dbs.iter().map(|db| db.len() as u64).sum::<u64>();
        self.shards.iter().map(count).sum()
    }

    /// The number of keys in all databases; `None` when a long script holds a lock.
    pub fn keys_unless_busy(&self) -> Option<u64> {
        let count = |shard: usize| {
            let locked = self.lock_shard_unless_busy(shard)?;
            locked.shards().next().map(|(_, shard)| shard.dbs.iter().map(|db| db.len() as u64).sum::<u64>())
        };
        (0..self.shards.len()).map(count).sum()
    }

    /// Marks locks that a long script holds, or takes its mark away when it has released them: other threads do not wait for
    /// marked locks.
    pub fn mark_held_long(&self, shards: &[usize], is_held_long: bool) {
        for shard in shards {
            let held_long = &self.shards[*shard].held_long;
            match is_held_long {
                true => held_long.fetch_add(1, Relaxed),
                false => held_long.fetch_sub(1, Relaxed),
            };
        }
    }

    /// Locks one shard; `None` when a long script holds it.
    #[inline]
    fn acquire(&self, shard: usize) -> Option<Guard<'_>> {
        let padded = &self.shards[shard];
        match padded.shard.try_lock() {
            Some(guard) => Some(Guard::Own(OwnGuard::new(guard))),
            None => padded.acquire_slowly(),
        }
    }

    /// Locks the shard of one key; `None` when a long script holds it.
    #[inline]
    pub fn lock_key_unless_busy(&self, key: Key<'_>) -> Option<Locked<'_>> {
        self.lock_shard_unless_busy(key.shard(self.shards.len()))
    }

    /// Locks one shard by number; `None` when a long script holds it.
    #[inline]
    pub fn lock_shard_unless_busy(&self, shard: usize) -> Option<Locked<'_>> {
        Held::assert_none();
        let mut guards = SmallVec::new();
        guards.push((shard, self.acquire(shard)?));
        Some(Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Garbage::default() })
    }

    /// Locks one shard by number, if it is free.
    pub fn try_lock_shard(&self, shard: usize) -> Option<Locked<'_>> {
        Held::assert_none();
        let mut guards = SmallVec::new();
        guards.push((shard, Guard::Own(OwnGuard::new(self.shards[shard].shard.try_lock()?))));
        Some(Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Garbage::default() })
    }

    /// Locks the shards of several keys; `None` when a long script holds one.
    pub fn lock_keys_unless_busy<'k>(&self, keys: impl Iterator<Item = Key<'k>>) -> Option<Locked<'_>> {
        self.lock_shards_unless_busy(keys.map(|key| key.shard(self.shards.len())).collect())
    }

    /// Locks shards by their numbers; `None` when a long script holds one.
    pub fn lock_shards_unless_busy(&self, mut shards: SmallVec<[usize; 16]>) -> Option<Locked<'_>> {
        Held::assert_none();
        // IMPORTANT: ascending and without repetition, everywhere; otherwise two threads can deadlock.
        shards.sort_unstable();
        shards.dedup();
        let guards = shards.into_iter().map(|shard| Some((shard, self.acquire(shard)?))).collect::<Option<_>>()?;
        Some(Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Garbage::default() })
    }

    /// Locks two shards, or one if they are the same; `None` when a long script holds one.
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
        Some(Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Garbage::default() })
    }

    /// Locks all shards; `None` when a long script holds one.
    pub fn lock_all_unless_busy(&self) -> Option<Locked<'_>> {
        Held::assert_none();
        let mut guards = SmallVec::with_capacity(self.shards.len());
        for shard in 0..self.shards.len() {
            guards.push((shard, self.acquire(shard)?));
        }
        Some(Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Garbage::default() })
    }

    /// Locks nothing: for commands that touch no key.
    #[inline]
    pub fn lock_none(&self) -> Locked<'_> {
        Locked { guards: SmallVec::new(), shard_count: self.shards.len(), used_at: 0, garbage: Garbage::default() }
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
        guards.push((shard, Guard::Own(OwnGuard::new(self.shards[shard].shard.lock()))));
        Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Garbage::default() }
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
        // IMPORTANT: ascending and without repetition, everywhere; otherwise two threads can deadlock.
        shards.sort_unstable();
        shards.dedup();
        let lock = |shard: usize| (shard, Guard::Own(OwnGuard::new(self.shards[shard].shard.lock())));
        let guards = shards.into_iter().map(lock).collect();
        Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Garbage::default() }
    }

    /// Locks those shards of keys of database `db` that are free, and prefetches the keys' entries. With `objects`,
    /// values behind a pointer are prefetched too, as the commands run; not worth it for types of which few values are.
    pub fn lock_ahead(&self, db: usize, keys: &[Key<'_>], objects: bool) -> AheadLocks<'_> {
        Held::assert_none();
        let (guards, shard_count) = (SmallVec::new(), self.shards.len());
        let mut batch = AheadLocks { guards, shard_count, objects: SmallVec::new(), db, lent: 0 };
        for key in keys {
            let number = key.shard(self.shards.len());
            if batch.guards.iter().any(|(index, _)| *index == number) {
                continue;
            }
            if let Some(guard) = self.shards[number].shard.try_lock() {
                guard.db(db).prefetch_self();
                batch.guards.push((number, OwnGuard::new(guard)));
            }
        }
        for key in keys {
            if let Some(db) = batch.db_of(key.hashes()) {
                db.prefetch(key.hash);
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

    /// Locks all shards.
    pub fn lock_all(&self) -> Locked<'_> {
        Held::assert_none();
        let guards =
            self.shards.iter().map(|shard| Guard::Own(OwnGuard::new(shard.shard.lock()))).enumerate().collect();
        Locked { guards, shard_count: self.shards.len(), used_at: 0, garbage: Garbage::default() }
    }
}

/// How often a thread that waits for a lock checks whether a long script holds it.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// The size from which a value counts as large.
const LARGE_BYTES: usize = 16 * 1024 * 1024;
const LARGE_ELEMENTS: usize = 100_000;
/// How many elements are sampled to estimate the size of a value.
const LARGE_SAMPLES: usize = 100;

impl<'a> Locked<'a> {
    /// A shard outside of any keyspace, which needs no lock.
    pub fn alone(shard: &'a mut Shard) -> Locked<'a> {
        let mut guards = SmallVec::new();
        guards.push((0, Guard::Lent(shard)));
        Locked { guards, shard_count: 1, used_at: 0, garbage: Garbage::default() }
    }

    /// Sets the instant, in unix milliseconds, at which new keys count as used.
    #[inline]
    pub fn at(mut self, now_ms: u64, usage: Usage) -> Locked<'a> {
        self.used_at = usage.fresh(now_ms);
        self
    }

    /// The shard of a key. Its lock must be held: a command that touches undeclared keys is a bug.
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

    /// Lends all locks to one of several commands.
    #[inline]
    pub fn lend(&mut self) -> Locked<'_> {
        let mut guards = SmallVec::new();
        match &mut self.guards[..] {
            // The common case.
            [(index, guard)] => guards.push((*index, Guard::Lent(guard))),
            several => guards.extend(several.iter_mut().map(|(index, guard)| (*index, Guard::Lent(guard)))),
        }
        Locked { guards, shard_count: self.shard_count, used_at: self.used_at, garbage: Garbage::default() }
    }

    /// Lends the lock of one key's shard to a command that needs no other.
    #[inline]
    pub fn lend_key(&mut self, key: Key<'_>) -> Locked<'_> {
        self.lend_shard(key.shard(self.shard_count))
    }

    /// Lends the lock of one shard. It must be held.
    #[inline]
    pub fn lend_shard(&mut self, shard: usize) -> Locked<'_> {
        let index = self.index_of(shard);
        let mut guards = SmallVec::new();
        guards.push((shard, Guard::Lent(&mut self.guards[index].1)));
        Locked { guards, shard_count: self.shard_count, used_at: self.used_at, garbage: Garbage::default() }
    }

    /// Prefetches the entry of a key in a shard, which must be locked.
    #[inline]
    pub fn prefetch_in(&self, shard: usize, db: usize, hash: NameHash) {
        self.guards[self.index_of(shard)].1.db(db).prefetch(hash);
    }

    /// Gives a command the locks of these keys' shards: lent where they are held here, taken where they are free.
    /// `None` when another thread holds one: a thread that holds locks must not wait for others.
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
                guards.push((shard, Guard::Own(OwnGuard::new(keyspace.shards[shard].shard.try_lock()?))));
            }
        }
        guards.sort_unstable_by_key(|(index, _)| *index);
        Some(Locked { guards, shard_count, used_at, garbage: Garbage::default() })
    }

    /// The numbers of the locked shards.
    pub fn numbers(&self) -> Vec<usize> {
        self.guards.iter().map(|(number, _)| *number).collect()
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

    /// Schedules the next check of a live session, at the time of its expiry if it is not renewed. Nothing is recorded:
    /// the lifetime of a session is not part of the journal.
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

    /// Forgets up to `count_max` tracked keys of each locked shard. Returns their names and readers.
    pub fn forget_some_tracked(&mut self, count_max: usize) -> Vec<(Box<[u8]>, Readers)> {
        self.shards_mut().flat_map(|shard| shard.tracked.forget_some(count_max)).collect()
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
                        Fate::Read | Fate::Noted => continue,
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
            // For clients that WATCH the name of an index, a key appears or disappears.
            Touches::Definition(index) => {
                if let Some(name) = index {
                    (0..DATABASES).for_each(|db| self.watched_mut(name).changed(db, name, false));
                }
            }
        }
    }

    /// Sets the flags of watched keys in a database that is emptied or swapped.
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

    /// Applies pending changes of one index of database `db` in the locked shards, and publishes the first records
    /// there: see [`Heads`](crate::index::Heads).
    pub fn settle_index(&mut self, db: usize, index: usize) {
        for shard in self.shards_mut() {
            shard.dbs[db].settle(index);
        }
    }

    /// The number of expired keys of database `db` and of keys with expired fields, in the locked shards, at most
    /// `max`.
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

    /// The number of pending index changes of database `db` in the locked shards.
    pub fn pending_changes(&self, db: usize) -> usize {
        self.shards().map(|(_, shard)| shard.db(db).pending_changes()).sum()
    }

    /// How many shards are locked.
    pub(crate) fn len(&self) -> usize {
        self.guards.len()
    }

    /// The locked shard at position `number`.
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
        let before = self.nth(0).db(0).indexes().clone();
        let dbs = self.shards_mut().flat_map(|shard| shard.dbs.iter_mut());
        let left: Vec<_> = dbs.flat_map(|db| db.set_indexes(indexes)).collect();
        self.garbage.add(left);
        for dropped in before.iter().filter(|index| !indexes.iter().any(|kept| Arc::ptr_eq(kept, index))) {
            self.garbage.add(dropped.groups.take_all());
        }
    }

    /// Rebuilds one of the indexes from the records of the locked shards.
    pub fn build_index(&mut self, at: usize) {
        self.shards_mut().flat_map(|shard| shard.dbs.iter_mut()).for_each(|db| db.build_part(at));
        let Some(index) = self.nth(0).db(0).indexes().iter().nth(at) else { return };
        for (_, shard) in self.shards() {
            for (number, db) in shard.dbs.iter().enumerate() {
                for (name, until_ns) in db.rates(0, u32::MAX) {
                    match groups::decode_name(name) {
                        Some((of, scope)) if of == index.name => index.groups.raise_rate(number, scope, until_ns),
                        _ => {}
                    }
                }
            }
        }
    }

    /// Looks at about `count` states of rates in each database, and forgets those that are over.
    pub fn forget_rates_over(&mut self, now_ns: u64, count: usize) {
        let dbs = self.shards_mut().flat_map(|shard| shard.dbs.iter_mut());
        dbs.for_each(|db| db.forget_rates_over(now_ns, count));
    }

    /// Backfill: adds records of the locked shard, from a position on, to the indexes that are not complete, until
    /// about `count` were visited. Returns where to continue.
    pub fn index_some(&mut self, from: u32, count: usize) -> Option<u32> {
        let shard = self.shards_mut().next()?;
        let (mut from, mut seen) = (from, 0);
        let place = shard.dbs[0].place();
        let (number, shard_count) = (usize::from(place.shard), usize::from(place.shard_count));
        let indexes = shard.dbs[0].indexes().clone();
        loop {
            let used = shard.dbs.iter().filter(|db| !db.is_empty());
            let end = used.map(|db| db.range_end(from)).min().unwrap_or(u32::MAX);
            seen += shard.dbs.iter_mut().filter(|db| !db.is_empty()).map(|db| db.index_range(from, end)).sum::<usize>();
            // An index that joined later is counted from its own beginning.
            let joined = indexes.iter().filter(|index| index.is_filled_up_to(number, u64::from(from)));
            joined.for_each(|index| index.set_filled(number, shard_count, u64::from(end) + 1));
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

    /// Records that the batch `sequence` has changed the locked shards.
    #[inline]
    pub fn set_changed_by(&mut self, sequence: u64) {
        self.shards_mut().for_each(|shard| shard.changed_by = sequence);
    }

    /// Appends the effect that creates a key of database `db`; nothing when the key is absent.
    pub fn encode_key(&self, db: usize, key: Key<'_>, out: &mut Vec<u8>) {
        let within = self.db(db, key);
        if let Some(entry) = within.entry(key) {
            codec::encode_entry(db, entry, &within.shapes, out);
        }
    }

    /// True when the value of a key is too large to be encoded at once without delaying other clients.
    pub fn is_large(&self, db: usize, key: Key<'_>) -> bool {
        let within = self.db(db, key);
        let Some(entry) = within.entry(key) else { return false };
        let (value_type, Some(object)) = (ValueType::of(entry), entry.object()) else { return false };
        (value_type.elements)(entry, &within.shapes) > LARGE_ELEMENTS
            || (value_type.heap_bytes)(object, LARGE_SAMPLES) > LARGE_BYTES
    }

    /// Copies a key of database `db`: its value and deadline, expired or not.
    pub fn copy_of(&self, db: usize, key: Key<'_>) -> KeyCopy {
        let within = self.db(db, key);
        KeyCopy::new(within.entry(key), &within.shapes)
    }

    /// Copies a key of database `db` so that [`Locked::put_copy`] can undo changes to it.
    pub fn copy_to_restore(&self, db: usize, key: Key<'_>) -> KeyCopy {
        let within = self.db(db, key);
        KeyCopy::to_restore(within.entry(key), &within.shapes)
    }

    /// Adds to the garbage.
    pub fn add_garbage(&mut self, garbage: impl Send + 'static) {
        self.garbage.add(garbage);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Regression: the end of the first took the mark of the second away, and a worker waited for a lock that no client could
    /// make free any more.
    #[test]
    fn a_lock_that_two_long_scripts_have_in_turn_is_marked_until_the_second_ends() {
        let keyspace = Keyspace::new(1);
        keyspace.mark_held_long(&[0], true);
        // The first has released it, and noted nothing yet.
        let held = keyspace.lock_shard(0);
        keyspace.mark_held_long(&[0], true);
        keyspace.mark_held_long(&[0], false);
        thread::scope(|scope| {
            scope.spawn(|| assert!(keyspace.lock_shard_unless_busy(0).is_none()));
        });
        drop(held);
        keyspace.mark_held_long(&[0], false);
        let held = keyspace.lock_shard(0);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| assert!(keyspace.lock_shard_unless_busy(0).is_some()));
            drop(held);
            waiting.join().expect("it has waited");
        });
    }
}
