//! The groups of an index: its records apart by the value of a field, with limits for how many of a group are held and
//! taken. Knows scores, ids and points in time; refuses to know commands.
//!
//! A group's queue is one for all shards, so that its first record is known without a look into every shard. It is
//! behind one lock for each database, which a write takes while it holds its shard's.

mod limits;
mod names;
mod queues;
mod rate;
mod search;
#[cfg(test)]
mod tests;

pub use limits::{
    Applied, LimitTable, Limits, Scope, Setting, WEIGHT_DEFAULT, WEIGHT_MAX, WEIGHT_MIN, decode_name, encode_name,
    names_of,
};
pub use queues::{Blocked, GroupQueues, GroupRef, GroupState, News, Place, Take, Taken};
pub use rate::{RATE_MAX, Rate};
pub use search::{Found, GroupSearch, Order};

use crate::effects::DATABASES;
use crate::storage::NameId;
use locks::{Mutex, MutexGuard, RwLock, rank};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};

/// The longest name of a group. A record whose field is longer is not in the index.
pub const GROUP_NAME_MAX: usize = 1024;

type Queues = Mutex<GroupQueues, { rank::GROUP_QUEUES }>;

/// The groups of one index, in all databases.
#[derive(Default)]
pub struct Groups {
    limits: RwLock<LimitTable, { rank::GROUP_LIMITS }>,
    /// There are limits for all groups together.
    limits_all: AtomicBool,
    /// There are rates: each take changes the state of some.
    has_rates: AtomicBool,
    queues: [OnceLock<Box<Queues>>; DATABASES],
}

impl Groups {
    /// Locks the groups of a database.
    pub fn lock(&self, db: usize) -> MutexGuard<'_, GroupQueues, { rank::GROUP_QUEUES }> {
        self.queues(db).lock()
    }

    /// Locks the groups of a database; `None` if it never had any.
    pub fn lock_if_used(&self, db: usize) -> Option<MutexGuard<'_, GroupQueues, { rank::GROUP_QUEUES }>> {
        self.queues[db].get().map(|queues| queues.lock())
    }

    fn queues(&self, db: usize) -> &Queues {
        self.queues[db].get_or_init(|| {
            let limits = self.limits.read();
            Box::new(Mutex::new(GroupQueues::new(limits.get(Scope::Each), limits.get(Scope::All))))
        })
    }

    fn own(&self, name: &[u8]) -> Limits {
        self.limits.read().get(Scope::Group(name))
    }

    /// Moves a record. Its shard is locked.
    pub(crate) fn change(&self, db: usize, id: NameId, before: Option<Place<'_>>, after: Option<Place<'_>>) {
        self.lock(db).change(id, before, after, |name| self.own(name));
    }

    /// Calls `look` with all limits that are set.
    pub fn with_limits<T>(&self, look: impl FnOnce(&LimitTable) -> T) -> T {
        look(&self.limits.read())
    }

    /// Sets limits. All shards are locked, so no group is made meanwhile.
    pub fn set_limits(&self, scope: Scope<'_>, limits: Limits) {
        let mut table = self.limits.write();
        table.set(scope, limits);
        self.limits_all.store(!table.get(Scope::All).is_empty(), SeqCst);
        self.has_rates.store(table.has_rates(), SeqCst);
        drop(table);
        self.queues.iter().filter_map(OnceLock::get).for_each(|queues| queues.lock().set_limits(scope, limits));
    }

    /// True when there are limits for all groups together, which an index without groups may have too.
    #[inline]
    pub fn limits_all(&self) -> bool {
        self.limits_all.load(Relaxed)
    }

    /// True when takes change the states of rates. While a shard is locked it does not change.
    #[inline]
    pub fn has_rates(&self) -> bool {
        self.has_rates.load(SeqCst)
    }

    /// Raises the state of a rate.
    pub(crate) fn raise_rate(&self, db: usize, scope: Scope<'_>, until_ns: u64) {
        self.lock(db).raise_rate(scope, until_ns, |name| self.own(name));
    }

    /// Empties the groups of a database. All shards are locked. Returns what is to be freed.
    pub(crate) fn clear(&self, db: usize) -> Option<GroupQueues> {
        self.queues[db].get().map(|queues| queues.lock().clear(self.has_rates(), |name| self.own(name)))
    }

    /// Exchanges the groups of two databases. All shards are locked.
    pub(crate) fn swap(&self, a: usize, b: usize) {
        if a == b || self.queues[a].get().is_none() && self.queues[b].get().is_none() {
            return;
        }
        let (one, other) = (self.queues(a), self.queues(b));
        let of_a = std::mem::replace(&mut *one.lock(), GroupQueues::new(Limits::default(), Limits::default()));
        let of_b = std::mem::replace(&mut *other.lock(), of_a);
        *one.lock() = of_b;
    }

    /// Takes everything out, to be freed: the index was dropped.
    pub(crate) fn take_all(&self) -> Vec<GroupQueues> {
        let empty = || GroupQueues::new(Limits::default(), Limits::default());
        let made = self.queues.iter().filter_map(OnceLock::get);
        made.map(|queues| std::mem::replace(&mut *queues.lock(), empty())).collect()
    }

    /// Does some of the work that is left: files groups after limits were changed, and forgets those that nobody needs.
    pub fn work(&self, now_ns: u64) {
        for queues in self.queues.iter().filter_map(OnceLock::get) {
            let mut queues = queues.lock();
            if !queues.is_empty() {
                queues.pass_time(now_ns);
                queues.work();
            }
        }
    }

    /// Heap bytes of the groups of a database.
    pub fn heap_bytes(&self, db: usize) -> usize {
        self.queues[db].get().map_or(0, |queues| queues.lock().heap_bytes())
    }
}
