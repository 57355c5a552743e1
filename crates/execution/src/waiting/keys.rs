//! Blocking commands: which client is queued for which key, and how it is served. Knows queues and conditions; refuses
//! to know what a command takes and how time passes.
//!
//! A handler that finds nothing writes the timeout reply and requests a wait ([`Client::wait`]). Its client is queued
//! for its keys (`keyspace::interest::waiters`) before the handler's locks are released, so that no value is missed.
//! Inside a transaction or a script no command waits: the client gets the timeout reply.
//!
//! Every effect on a key with waiters is noted ([`note_ready`]). The commit of that command, transaction or script
//! serves the waiters, with its locks still held: *readers* first, which take nothing and are all served, then
//! *takers*, first come, first served, as long as their conditions hold. Each waiter's command is run on its behalf, as
//! its own journal batch, and its reply is left in the waiter's ticket.
//!
//! The served command sees only the key that has changed, and keys that it did not wait for (the destination of a
//! move). All other keys are absent to its handler: their shards may not be locked here, and a commit that changes one
//! of them serves the waiter itself. When another thread holds the shard of a key that it did not wait for, the waiter
//! is served right after the locks are released (`serving::serve_deferred`).
//!
//! A wait can be ended by a commit that serves it, the timeout, CLIENT UNBLOCK, CLIENT KILL or the end of the
//! connection. Exactly one wins: see `WaitState`. A client that is served may still be queued in other shards; its own
//! connection removes it there.

use super::waiter::{BlockedCommand, WaitPhase};
use crate::client::Client;
use crate::command::CommandRow;
use crate::notifications::pending::PendingNotifications;
use keyspace::{Effect, Fate, Key, Locked, Touch, Touches, Value};
use locks::{Mutex, rank};
use resp::{OwnedRequest, Request};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// All clients that wait for keys.
#[derive(Default)]
pub struct KeyWaiters {
    /// How many waiters are queued, including those that have stopped waiting.
    pub(super) count: AtomicUsize,
    /// The number of keys with waiters.
    keys: AtomicUsize,
    /// Waiters that could not be removed from their queues yet.
    pub(super) orphaned: Mutex<Vec<Arc<Waiter>>, { rank::ORPHANED_WAITERS }>,
    /// Keys whose waiters are not served under the locks of a commit.
    deferred: Mutex<Deferred, { rank::DEFERRED_KEYS }>,
    /// How many waiters look again from time to time.
    looking: AtomicUsize,
    pub(super) deferred_count: AtomicUsize,
    /// The number of the last wait.
    last_wait: AtomicU64,
}

/// Keys whose waiters are served by a thread that holds no locks.
#[derive(Default)]
struct Deferred {
    /// Those that are served next.
    keys: Vec<(usize, Box<[u8]>)>,
    /// Those whose waiters look again from time to time, and how many do.
    looked_at: BTreeMap<(usize, Box<[u8]>), usize>,
}

impl KeyWaiters {
    /// True when a client waits for a key. Exact for a thread that holds the lock of that key's shard: a waiter is
    /// counted before that lock is released, until it has left every queue.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// The number of the next wait.
    pub(super) fn next_number(&self) -> u64 {
        self.last_wait.fetch_add(1, Relaxed) + 1
    }

    /// How many keys clients wait for.
    pub fn keys(&self) -> usize {
        self.keys.load(Relaxed)
    }

    pub(super) fn enqueue(&self, locked: &mut Locked<'_>, key: Key<'_>, waiter: &Arc<Waiter>) {
        let queues = locked.awaited_mut(key);
        let before = queues.len();
        let is_new = queues.enqueue(waiter.blocked.db, key.name, waiter.blocked.number, waiter.clone());
        waiter.places.fetch_add(usize::from(is_new), Relaxed);
        self.keys.fetch_add(queues.len() - before, Relaxed);
    }

    /// Removes a client from a key's queue, if it is there.
    pub(super) fn leave(&self, locked: &mut Locked<'_>, key: Key<'_>, waiter: &Waiter) {
        let queues = locked.awaited_mut(key);
        let before = queues.len();
        let was_queued = queues.leave(waiter.blocked.db, key.name, waiter.blocked.number);
        waiter.places.fetch_sub(usize::from(was_queued), Relaxed);
        self.keys.fetch_sub(before - queues.len(), Relaxed);
    }

    /// Defers the waiters of a key until the locks that are held now are released.
    pub(super) fn defer(&self, db: usize, key: Key<'_>) {
        let mut deferred = self.deferred.lock();
        deferred.keys.push((db, key.name.into()));
        self.deferred_count.store(deferred.keys.len(), Relaxed);
    }

    /// Lets a waiter look again from time to time, as long as it waits.
    pub(super) fn begin_looking(&self, waiter: &Waiter) {
        let mut deferred = self.deferred.lock();
        for key in waiter.awaited_keys() {
            *deferred.looked_at.entry((waiter.blocked.db, key.name.into())).or_default() += 1;
        }
        self.looking.fetch_add(1, Relaxed);
    }

    pub(super) fn end_looking(&self, waiter: &Waiter) {
        let mut deferred = self.deferred.lock();
        for key in waiter.awaited_keys() {
            let place = (waiter.blocked.db, key.name.into());
            if let Some(count) = deferred.looked_at.get_mut(&place) {
                *count -= 1;
                if *count == 0 {
                    deferred.looked_at.remove(&place);
                }
            }
        }
        self.looking.fetch_sub(1, Relaxed);
    }

    /// Defers the keys of the waiters that look again from time to time: it is time.
    pub fn look_again(&self) {
        if self.looking.load(Relaxed) > 0 {
            let mut deferred = self.deferred.lock();
            let Deferred { keys, looked_at } = &mut *deferred;
            keys.extend(looked_at.keys().cloned());
            self.deferred_count.store(keys.len(), Relaxed);
        }
    }

    pub(super) fn take_deferred(&self) -> Vec<(usize, Box<[u8]>)> {
        let mut deferred = self.deferred.lock();
        self.deferred_count.store(0, Relaxed);
        std::mem::take(&mut deferred.keys)
    }
}

/// A client that waits for keys.
pub struct Waiter {
    pub(super) blocked: BlockedCommand,
    pub(super) keys: WaitKeys,
    pub(super) condition: Condition,
    pub(super) role: WaitRole,
    /// It looks again from time to time: what it waits for may come with time alone.
    pub(super) looks_again: bool,
    /// The number of queues that it is in.
    pub(super) places: AtomicUsize,
}

impl Waiter {
    pub(super) fn blocked(&self) -> &BlockedCommand {
        &self.blocked
    }

    /// The keys that it waits for.
    pub(super) fn awaited_keys(&self) -> impl Iterator<Item = Key<'_>> {
        self.keys.of(self.blocked.command, self.blocked.request.as_request())
    }

    /// The keys of its command that it does not wait for: it may touch them whenever it is served.
    pub(super) fn other_keys(&self) -> impl Iterator<Item = Key<'_>> {
        let request = self.blocked.request.as_request();
        let positions = self.blocked.command.key_positions(request);
        positions.filter(|at| !self.keys.has(*at)).map(move |at| Key::new(request.arg(at)))
    }
}

/// True when the value of a key, or `None` for an absent key, may end the wait. It captures what the command waits for,
/// such as "entries after this id".
pub type Condition = Box<dyn Fn(Option<&Value<'_>>) -> bool + Send + Sync>;

/// The wait that a handler requests when it has found nothing.
pub struct Wait {
    /// Unix milliseconds; `None` = for ever.
    pub until_ms: Option<u64>,
    pub keys: WaitKeys,
    pub condition: Condition,
    pub role: WaitRole,
}

/// Which keys of its command a client waits for.
pub enum WaitKeys {
    All,
    /// The keys at these positions of the request. The command touches its other keys when it is served.
    At(SmallVec<[usize; 2]>),
}

impl WaitKeys {
    fn has(&self, position: usize) -> bool {
        match self {
            WaitKeys::All => true,
            WaitKeys::At(positions) => positions.contains(&position),
        }
    }

    fn of<'a>(&'a self, command: &'static CommandRow, request: Request<'a>) -> impl Iterator<Item = Key<'a>> {
        command.key_positions(request).filter(|at| self.has(*at)).map(move |at| Key::new(request.arg(at)))
    }
}

/// Whether a command consumes what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitRole {
    /// It consumes what it finds: first come, first served.
    Taker,
    /// It consumes nothing: all readers are served, before the takers.
    Reader,
}

impl WaitRole {
    /// In the order in which they are served.
    pub(super) const IN_ORDER: [WaitRole; 2] = [WaitRole::Reader, WaitRole::Taker];
}

/// The keys that a command may touch when it is served after a wait.
pub struct Offer(pub(super) SmallVec<[Box<[u8]>; 2]>);

impl Offer {
    /// True when the command may touch the key.
    pub fn has(&self, key: Key<'_>) -> bool {
        self.0.iter().any(|name| **name == *key.name)
    }
}

impl Client {
    /// Requests to wait until one of the command's keys has something for it. The reply that the handler has written is
    /// the timeout reply; it is also the reply of a command that cannot wait (inside a transaction or script).
    pub fn wait(&mut self, wait: Wait) {
        self.wait_as(wait, None);
    }

    /// Requests to wait as [`wait`](Client::wait) does, and to run the command again from time to time while the condition
    /// holds: what it waits for may come with time alone.
    pub fn wait_and_look(&mut self, wait: Wait) {
        self.wait(wait);
        self.looks_again = true;
    }

    /// Requests to wait with another request instead of the client's, in which relative arguments, such as "from now
    /// on", are resolved. It has the same keys at the same positions.
    pub fn wait_as(&mut self, wait: Wait, request: Option<OwnedRequest>) {
        self.wait_phase = WaitPhase::Requested(wait);
        self.wait_request = request;
        self.times_out_with_array = false;
        self.looks_again = false;
    }

    /// Requests to wait as [`wait`](Client::wait) does, with a null array as the timeout reply. In Redis that is the
    /// timeout reply even of commands that reply differently where they cannot wait.
    pub fn wait_or_null_array(&mut self, wait: Wait) {
        self.wait(wait);
        self.times_out_with_array = true;
    }

    /// The keys that its command may touch while it is served.
    #[inline]
    pub fn offer(&self) -> Option<Arc<Offer>> {
        match &self.wait_phase {
            WaitPhase::Serving(offer) => Some(offer.clone()),
            _ => None,
        }
    }
}

/// Notes the keys with waiters that an effect has just changed.
#[inline(never)]
pub fn note_ready(pending: &PendingNotifications, locked: &Locked<'_>, db: usize, effect: &Effect<'_>) {
    let ready = |db: usize, key: Key<'_>| pending.ready(db, key.name, locked.db(db, key).entry(key).is_some());
    let all_of = |db: usize| {
        for (_, shard) in locked.shards() {
            shard.awaited.names(db).for_each(|name| ready(db, Key::new(name)));
        }
    };
    match effect.touches(db) {
        Touches::Keys(touches) => {
            for Touch { db, key, fate } in touches {
                match fate {
                    Fate::Gains { .. } | Fate::Loses(_) | Fate::Gone(_) => {
                        if locked.shard(key).awaited.has(db, key.name) {
                            ready(db, key);
                        }
                    }
                    Fate::Amended | Fate::Noted | Fate::Deadline | Fate::Read => {}
                }
            }
        }
        Touches::Emptied(dbs) => dbs.for_each(all_of),
        Touches::Swapped(a, b) => [a, b].into_iter().for_each(all_of),
        Touches::Definition(_) => {}
    }
}
