//! Blocking commands: which client is queued for which key, and how it is served. Knows queues and conditions; refuses
//! to know what a command takes and how time passes.
//!
//! A handler that finds nothing writes the timeout reply and asks to wait ([`Client::wait`]). Its client is queued for
//! its keys (`keyspace::interest::waiters`) before the handler's locks are released, so that no value is missed. Inside
//! a transaction or a script no command waits: the timeout reply stands.
//!
//! Whatever changes a key that a client waits for notes it ([`note_ready`]). The commit of that command, transaction or
//! script serves the waiters, with its locks still held: *readers* first, which take nothing and are all served, then
//! *takers*, first come, first served, as long as their conditions hold. Each waiter's command is run on its behalf, as
//! its own journal batch, and its reply is left in the waiter's ticket.
//!
//! A command that is served is offered the key that has changed, and keys that it did not wait for (the destination of a
//! move). To its handler all other keys are absent: they may lie in shards that are not locked here, and had one of them
//! become what it wants, the commit that made it so would have served it. When the shard of a key that it did not wait
//! for is held by another thread, the waiter is served right after the locks are released ([`Engine::serve_deferred`]).
//!
//! A wait can be ended by a commit that serves it, the timeout, CLIENT UNBLOCK, CLIENT KILL or the end of the
//! connection. Exactly one wins: see `WaitState`. A client that is served may still be queued in other shards; its own
//! connection removes it there.

use super::waiter::{BlockedCommand, WaitPhase};
use super::{Blocked, Event};
use crate::execution::client::Client;
use crate::execution::command::CommandRow;
use crate::execution::engine::Engine;
use crate::execution::indexes::{OnIndex, is_index};
use crate::execution::notifications::PendingNotifications;
use crate::execution::worker::Worker;
use keyspace::DATABASES;
use keyspace::db::Db;
use keyspace::{Effect, Fate, Key, Locked, Touch, Touches, Value};
use locks::{Mutex, rank};
use resp::{OwnedRequest, Reply, Request};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What is known of all clients that wait for keys.
#[derive(Default)]
pub(crate) struct KeyWaiters {
    /// How many waiters are queued, including those that have stopped waiting.
    count: AtomicUsize,
    /// How many keys they wait for.
    keys: AtomicUsize,
    /// Waiters that could not leave their queues yet.
    left: Mutex<Vec<Arc<Waiter>>, { rank::LEFT_WAITERS }>,
    /// Keys whose waiters could not be served under the locks of a commit.
    deferred: Mutex<Vec<(usize, Box<[u8]>)>, { rank::DEFERRED_KEYS }>,
    deferred_count: AtomicUsize,
}

impl KeyWaiters {
    /// True when a client waits for a key. Exact for a thread that holds the lock of that key's shard: a waiter is
    /// counted before that lock is released, until it has left every queue.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// How many keys clients wait for.
    pub(crate) fn keys(&self) -> usize {
        self.keys.load(Relaxed)
    }

    fn enqueue(&self, locked: &mut Locked<'_>, key: Key<'_>, waiter: &Arc<Waiter>) {
        let queues = locked.awaited_mut(key);
        let before = queues.len();
        let is_new = queues.enqueue(waiter.blocked.db, key.name, waiter.blocked.number, waiter.clone());
        waiter.places.fetch_add(usize::from(is_new), Relaxed);
        self.keys.fetch_add(queues.len() - before, Relaxed);
    }

    /// Takes a client out of a key's queue, if it is there.
    fn leave(&self, locked: &mut Locked<'_>, key: Key<'_>, waiter: &Waiter) {
        let queues = locked.awaited_mut(key);
        let before = queues.len();
        let was_queued = queues.leave(waiter.blocked.db, key.name, waiter.blocked.number);
        waiter.places.fetch_sub(usize::from(was_queued), Relaxed);
        self.keys.fetch_sub(before - queues.len(), Relaxed);
    }

    /// The waiters of a key will be served once the locks that are held now are released.
    fn defer(&self, db: usize, key: Key<'_>) {
        let mut deferred = self.deferred.lock();
        deferred.push((db, key.name.into()));
        self.deferred_count.store(deferred.len(), Relaxed);
    }

    fn take_deferred(&self) -> Vec<(usize, Box<[u8]>)> {
        let mut deferred = self.deferred.lock();
        self.deferred_count.store(0, Relaxed);
        std::mem::take(&mut deferred)
    }
}

/// A client that waits for keys.
pub(crate) struct Waiter {
    blocked: BlockedCommand,
    keys: WaitKeys,
    condition: Condition,
    role: WaitRole,
    /// In how many queues it is.
    places: AtomicUsize,
}

impl Waiter {
    pub(super) fn blocked(&self) -> &BlockedCommand {
        &self.blocked
    }

    /// The keys that it waits for.
    fn awaited_keys(&self) -> impl Iterator<Item = Key<'_>> {
        self.keys.of(self.blocked.command, self.blocked.request.as_request())
    }

    /// The keys of its command that it does not wait for: it may touch them whenever it is served.
    fn other_keys(&self) -> impl Iterator<Item = Key<'_>> {
        let request = self.blocked.request.as_request();
        let positions = self.blocked.command.key_positions(request);
        positions.filter(|at| !self.keys.has(*at)).map(move |at| Key::new(request.arg(at)))
    }
}

/// True when the value of a key, or `None` for an absent key, may end the wait. It captures what was asked for, such as
/// "entries after this id".
pub(crate) type Condition = Box<dyn Fn(Option<&Value<'_>>) -> bool + Send + Sync>;

/// What a handler that has found nothing asks for.
pub(crate) struct Wait {
    /// Unix milliseconds; `None` = for ever.
    pub(crate) until_ms: Option<u64>,
    pub(crate) keys: WaitKeys,
    pub(crate) condition: Condition,
    pub(crate) role: WaitRole,
}

/// Which keys of its command a client waits for.
pub(crate) enum WaitKeys {
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

/// What a command does with what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitRole {
    /// It consumes what it finds: first come, first served.
    Taker,
    /// It consumes nothing: all readers are served, before the takers.
    Reader,
}

impl WaitRole {
    /// In the order in which they are served.
    const IN_ORDER: [WaitRole; 2] = [WaitRole::Reader, WaitRole::Taker];
}

/// The keys that a command may touch when it is served after a wait.
pub(crate) struct Offer(SmallVec<[Box<[u8]>; 2]>);

impl Offer {
    /// True when the command may touch the key.
    pub(crate) fn has(&self, key: Key<'_>) -> bool {
        self.0.iter().any(|name| **name == *key.name)
    }
}

impl Client {
    /// Asks to wait until one of the command's keys has something for it. What the handler has replied is the timeout
    /// reply, also for a command that cannot wait (inside a transaction or script).
    pub(crate) fn wait(&mut self, wait: Wait) {
        self.wait_as(wait, None);
    }

    /// Asks to wait with another request in place of its own, in which words that mean something else later, such as "from now
    /// on", are what they mean now. It has the same keys in the same places.
    pub(crate) fn wait_as(&mut self, wait: Wait, request: Option<OwnedRequest>) {
        self.wait_phase = WaitPhase::Requested(wait);
        self.wait_request = request;
        self.times_out_with_array = false;
    }

    /// Asks to wait as [`wait`](Client::wait) does, for a command whose timeout reply is a null array, as it is in Redis whatever the
    /// command replies where it cannot wait.
    pub(crate) fn wait_or_null_array(&mut self, wait: Wait) {
        self.wait(wait);
        self.times_out_with_array = true;
    }

    /// The keys that its command may touch, if it is served.
    #[inline]
    pub(crate) fn offer(&self) -> Option<Arc<Offer>> {
        match &self.wait_phase {
            WaitPhase::Serving(offer) => Some(offer.clone()),
            _ => None,
        }
    }
}

/// Notes the keys with waiters that an effect has just changed.
#[inline(never)]
pub(crate) fn note_ready(pending: &PendingNotifications, locked: &Locked<'_>, db: usize, effect: &Effect<'_>) {
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
                    Fate::Amended | Fate::Deadline | Fate::Read => {}
                }
            }
        }
        Touches::Emptied(dbs) => dbs.for_each(all_of),
        Touches::Swapped(a, b) => [a, b].into_iter().for_each(all_of),
        Touches::Definition => {}
    }
}

impl Engine {
    /// Queues a client whose command, which has just run, asks to wait. What was replied becomes the timeout reply.
    /// IMPORTANT: call this under the locks under which the command has found nothing.
    pub(crate) fn begin_wait(
        &self,
        client: &mut Client,
        command: &'static CommandRow,
        request: Request<'_>,
        out: &mut Vec<u8>,
        reply_at: usize,
        locked: &mut Locked<'_>,
    ) -> Option<Blocked> {
        let WaitPhase::Requested(wait) = std::mem::take(&mut client.wait_phase) else { return None };
        let until_ms = wait.until_ms;
        if client.times_out_with_array {
            out.truncate(reply_at);
            Reply::new(out, client.protocol).null_array();
        }
        let resolved = client.wait_request.take();
        let request = resolved.as_ref().map_or(request, OwnedRequest::as_request);
        // The number is assigned under the locks, so that later waiters have higher numbers in every queue.
        let blocked = BlockedCommand::new(self.next_wait_number(), client, command, request, out.split_off(reply_at));
        let waiter = Arc::new(Waiter {
            blocked,
            keys: wait.keys,
            condition: wait.condition,
            role: wait.role,
            places: AtomicUsize::new(0),
        });
        for key in waiter.awaited_keys() {
            self.waiters.enqueue(locked, key, &waiter);
        }
        self.waiters.count.fetch_add(1, Relaxed);
        client.handle.wait_state.begin(waiter.blocked.number);
        client.wait_phase = WaitPhase::Queued(waiter);
        Some(Blocked { until_ms, event: Event::Value, silent: false })
    }

    /// Serves the waiters of changed keys, in the order in which the keys got a value. Part of a commit.
    #[inline]
    pub(crate) fn serve_ready(&self, worker: &mut Worker, locked: &mut Locked<'_>) {
        if worker.batch.notifications.has_ready() {
            self.serve_all(worker, locked);
        }
    }

    /// Returns how many waiters were served.
    #[inline(never)]
    fn serve_all(&self, worker: &mut Worker, locked: &mut Locked<'_>) -> usize {
        let began_ns = self.clock.monotonic_ns();
        let mut served = 0;
        worker.batch.is_serving = true;
        loop {
            // Serving one may change another key.
            let ready = worker.batch.notifications.take_ready();
            if ready.is_empty() {
                break;
            }
            for (db, name) in ready {
                let key = Key::new(&name);
                match locked.holds(key) {
                    true => served += self.serve_key(worker, locked, db, key),
                    // A waiter that was served has changed a key that it did not wait for.
                    false => self.waiters.defer(db, key),
                }
            }
        }
        worker.batch.is_serving = false;
        // This time does not count for the command that has changed the keys.
        worker.last_ns += self.clock.monotonic_ns().saturating_sub(began_ns);
        served
    }

    /// Serves the waiters of a key as long as their conditions hold, readers first. Returns how many.
    fn serve_key(&self, worker: &mut Worker, locked: &mut Locked<'_>, db: usize, key: Key<'_>) -> usize {
        let mut count = 0;
        for role in WaitRole::IN_ORDER {
            if role == WaitRole::Taker && self.is_following() {
                break;
            }
            let mut passed_over = 0;
            while let Some(waiter) = next_in_queue(locked, db, key, role, passed_over, worker.now_ms) {
                if waiter.blocked.claim() {
                    let served = self.serve(worker, locked, &waiter, key);
                    if served != Served::Yes {
                        waiter.blocked.give_back();
                    }
                    match served {
                        Served::Yes => count += 1,
                        Served::NothingForIt => {
                            passed_over = waiter.blocked.number;
                            continue;
                        }
                        // The waiters behind it keep their order.
                        Served::Later => {
                            self.waiters.defer(db, key);
                            return count;
                        }
                    }
                }
                self.waiters.leave(locked, key, &waiter);
            }
        }
        count
    }

    /// Runs a client's command on its behalf, now that a key may have something for it.
    fn serve(&self, worker: &mut Worker, locked: &mut Locked<'_>, waiter: &Waiter, key: Key<'_>) -> Served {
        let began_ns = self.clock.monotonic_ns();
        let keys: SmallVec<[Key<'_>; 2]> = [key].into_iter().chain(waiter.other_keys()).collect();
        let Some(mut lent) = locked.lend_or_try(&self.keyspace, &keys) else { return Served::Later };
        let offer = Offer(keys.iter().map(|key| key.name.into()).collect());
        let mut client = waiter.blocked.stand_in(self, WaitPhase::Serving(Arc::new(offer)));
        let mut out = Vec::new();
        let reply = waiter.blocked.reply_to(&mut out);
        let (command, request) = (waiter.blocked.command, waiter.blocked.request.as_request());
        let result = match waiter.other_keys().find(|key| self.any_is_index([key.name].into_iter())) {
            // It was made while the client waited.
            Some(key) => Err(is_index(key.name)),
            None => self.run_under(worker, &mut client, command, request, reply, &mut lent, None, OnIndex::No),
        };
        drop(lent);
        if matches!(client.wait_phase, WaitPhase::Requested(_)) {
            return Served::NothingForIt;
        }
        let took_ns = self.clock.monotonic_ns().saturating_sub(began_ns);
        waiter.blocked.deliver(self, worker, &client, result, out, took_ns);
        Served::Yes
    }

    /// Defers the waiters of all keys: for a while takers were not served, and a key may have something for one by now.
    pub(crate) fn defer_all_waiters(&self) {
        for number in 0..self.keyspace.shard_count() {
            let locked = self.keyspace.lock_shard(number);
            for (_, shard) in locked.shards() {
                let names = |db: usize| shard.awaited.names(db).map(move |name| (db, Key::new(name)));
                (0..DATABASES).flat_map(names).for_each(|(db, key)| self.waiters.defer(db, key));
            }
        }
        self.record_waiters.search_anew(|_| true);
    }

    /// True when waiters are to be served by a thread that holds no locks.
    #[inline]
    pub(crate) fn has_deferred(&self) -> bool {
        self.waiters.deferred_count.load(Relaxed) > 0 || self.record_waiters.has_work()
    }

    /// Serves waiters whose shards could not be locked during the commit, and waiters that become ready by that. The
    /// caller holds no locks. Waiters that cannot be served now are left for the next command or expiry cycle; so are
    /// all while clients are paused or writes are refused, since most waiters write.
    #[cold]
    pub(crate) fn serve_deferred(&self, worker: &mut Worker) {
        let may_serve = || self.may_expire() || self.is_following();
        loop {
            if self.record_waiters.has_work() {
                self.serve_record_waiters(worker);
            }
            let has_keys = self.waiters.deferred_count.load(Relaxed) > 0;
            if !has_keys || !may_serve() || self.serve_deferred_once(worker) == 0 {
                break;
            }
        }
    }

    fn serve_deferred_once(&self, worker: &mut Worker) -> usize {
        let mut served = 0;
        for (db, name) in self.waiters.take_deferred() {
            let key = Key::new(&name);
            let mut shards: SmallVec<[usize; 16]> = SmallVec::from_slice(&[self.keyspace.shard_of_key(key)]);
            if let Some(locked) = self.keyspace.lock_key_unless_busy(key) {
                let first_of = |role| next_in_queue(&locked, db, key, role, 0, worker.now_ms);
                let first = WaitRole::IN_ORDER.into_iter().find_map(first_of);
                let others = first.iter().flat_map(|waiter| waiter.other_keys());
                shards.extend(others.map(|key| self.keyspace.shard_of_key(key)));
            }
            // A long script may hold the locks: then it is tried again later.
            let Some(mut locked) = self.keyspace.lock_shards_unless_busy(shards) else {
                self.waiters.defer(db, key);
                continue;
            };
            worker.batch.notifications.ready(db, &name, true);
            served += self.serve_all(worker, &mut locked);
        }
        served
    }

    /// Takes clients out of their queues that could not leave while a script held the locks.
    pub(crate) fn leave_left_queues(&self) {
        let left = std::mem::take(&mut *self.waiters.left.lock());
        left.iter().for_each(|waiter| self.leave_queues(waiter));
    }

    /// Takes a client out of its queues; later, when that would take long. Never block on a shard lock here: a long script
    /// may hold it, and the client that could SCRIPT KILL it may be on this thread.
    pub(super) fn leave_queues(&self, waiter: &Arc<Waiter>) {
        for key in waiter.awaited_keys() {
            if waiter.places.load(Relaxed) == 0 {
                break;
            }
            let Some(mut locked) = self.keyspace.lock_key_unless_busy(key) else {
                return self.waiters.left.lock().push(waiter.clone());
            };
            self.waiters.leave(&mut locked, key, waiter);
        }
        // IMPORTANT: not before. A command that finds no waiter counted serves none.
        self.waiters.count.fetch_sub(1, Relaxed);
    }
}

/// What became of a waiter whose condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    Yes,
    /// Its condition held, but its command found nothing.
    NothingForIt,
    /// A shard that it needs is held by another thread.
    Later,
}

/// The first waiter of that role in a key's queue, behind the number `behind`, whose condition holds.
fn next_in_queue(
    locked: &Locked<'_>,
    db: usize,
    key: Key<'_>,
    role: WaitRole,
    behind: u64,
    now_ms: u64,
) -> Option<Arc<Waiter>> {
    let within = locked.db(db, key);
    let entry = within.entry(key).filter(|entry| !Db::is_expired(entry, now_ms));
    let value = entry.map(|entry| within.value(entry, now_ms));
    let queue = locked.shard(key).awaited.after(db, key.name, behind);
    // Looked at before it is cloned: a long queue is walked over whenever its key changes.
    let wants = |waiter: &Waiter| waiter.role == role && (waiter.condition)(value.as_ref());
    let mut wanting = queue.filter(|waiting| waiting.downcast_ref::<Waiter>().is_some_and(wants));
    wanting.next().and_then(|waiting| waiting.clone().downcast::<Waiter>().ok())
}
