//! Serves clients that wait for keys: a commit runs their commands on their behalf. Knows locks and the order of
//! waiters; refuses to know what a command takes.

use super::keys::{Offer, WaitRole, Waiter};
use super::waiter::WaitPhase;
use crate::acl::Context;
use crate::call::Call;
use crate::conditions;
use crate::engine::Engine;
use crate::gates;
use crate::handler;
use crate::indexes::{OnIndex, is_index};
use crate::waiting;
use crate::worker::Worker;
use keyspace::db::Db;
use keyspace::{Key, Locked};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Serves the waiters of changed keys, in the order in which the keys got a value. Part of a commit.
pub fn serve_ready(engine: &Engine, worker: &mut Worker, locked: &mut Locked<'_>) {
    serve_all(engine, worker, locked);
}

/// Serves the waiters of all changed keys. Returns how many were served.
#[inline(never)]
fn serve_all(engine: &Engine, worker: &mut Worker, locked: &mut Locked<'_>) -> usize {
    let began_ns = engine.clock.monotonic_ns();
    let mut served = 0;
    // A value that a transaction or script has written may have expired before its end.
    let instant = worker.see(began_ns);
    worker.batch.is_serving = true;
    loop {
        // Serving a waiter may change another key.
        let ready = worker.batch.notifications.take_ready();
        if ready.is_empty() {
            break;
        }
        for (db, name) in ready {
            let key = Key::new(&name);
            match locked.holds(key) {
                true => served += serve_key(engine, worker, locked, db, key),
                // A served waiter has changed a key that it did not wait for.
                false => engine.waiting.keys.defer(db, key),
            }
        }
    }
    worker.batch.is_serving = false;
    (worker.now_us, worker.now_ms) = instant;
    // This time does not count for the command that has changed the keys.
    worker.last_ns += engine.clock.monotonic_ns().saturating_sub(began_ns);
    served
}

/// Serves the waiters of a key as long as their conditions hold, readers first. Returns how many.
fn serve_key(engine: &Engine, worker: &mut Worker, locked: &mut Locked<'_>, db: usize, key: Key<'_>) -> usize {
    let mut count = 0;
    for role in WaitRole::IN_ORDER {
        if role == WaitRole::Taker && engine.restrictions.is_following() {
            break;
        }
        let mut passed_over = 0;
        while let Some(waiter) = next_in_queue(locked, db, key, role, passed_over, worker.now_ms) {
            if waiter.blocked.claim() {
                let served = serve(engine, worker, locked, &waiter, key);
                if served != Served::Yes {
                    waiter.blocked.give_back();
                }
                match served {
                    Served::Yes => count += 1,
                    Served::NothingForIt => {
                        passed_over = waiter.blocked.number;
                        continue;
                    }
                    // The waiters after it keep their order.
                    Served::Later => {
                        engine.waiting.keys.defer(db, key);
                        return count;
                    }
                }
            }
            engine.waiting.keys.leave(locked, key, &waiter);
        }
    }
    count
}

/// Runs a client's command on its behalf, now that a key may have something for it.
fn serve(engine: &Engine, worker: &mut Worker, locked: &mut Locked<'_>, waiter: &Waiter, key: Key<'_>) -> Served {
    let began_ns = engine.clock.monotonic_ns();
    let keys: SmallVec<[Key<'_>; 2]> = [key].into_iter().chain(waiter.other_keys()).collect();
    let Some(mut lent) = locked.lend_or_try(&engine.keyspace, &keys) else { return Served::Later };
    let offer = Offer(keys.iter().map(|key| key.name.into()).collect());
    let mut client = waiter.blocked.stand_in(&engine.acl, &engine.tracking, WaitPhase::Serving(Arc::new(offer)));
    let mut out = Vec::new();
    let reply = waiter.blocked.reply_to(&mut out);
    let (command, request) = (waiter.blocked.command, waiter.blocked.request.as_request());
    let result = match waiter.other_keys().find(|key| engine.indexes.has_any_of([key.name].into_iter())) {
        // The index was created while the client waited.
        Some(key) => {
            client.depends_on = client.depends_on.max(lent.changed_by());
            Err(is_index(key.name))
        }
        None => match gates::pass_user(engine, &client, command, request) {
            // The right was taken away while the client waited.
            Err(error) => {
                gates::note_if_denied(engine, &client, &error, Context::TopLevel);
                client.wait_phase = WaitPhase::Idle;
                Err(error)
            }
            Ok(()) => {
                let mut call = Call::new(worker, &mut client, command, request);
                handler::run_under(engine, &mut call, reply, &mut lent, OnIndex::No)
            }
        },
    };
    drop(lent);
    if matches!(client.wait_phase, WaitPhase::Requested(_)) {
        return Served::NothingForIt;
    }
    let took_ns = engine.clock.monotonic_ns().saturating_sub(began_ns);
    waiting::outcome::deliver(engine, &waiter.blocked, worker, &client, result, out, took_ns);
    Served::Yes
}

/// Serves waiters whose shards could not be locked during the commit, and waiters that become ready meanwhile. The
/// caller holds no locks. Waiters that cannot be served now are left for the next command or expiry cycle; so are all
/// waiters while clients are paused or writes are refused, since most waiters write.
#[cold]
pub fn serve_deferred(engine: &Engine, worker: &mut Worker) {
    let may_serve = || conditions::may_expire(engine) || engine.restrictions.is_following();
    loop {
        if engine.waiting.records.has_work() {
            waiting::records::serving::serve_record_waiters(engine, worker, false);
        }
        let has_keys = engine.waiting.keys.deferred_count.load(Relaxed) > 0;
        if !has_keys || !may_serve() || serve_deferred_once(engine, worker) == 0 {
            break;
        }
    }
}

fn serve_deferred_once(engine: &Engine, worker: &mut Worker) -> usize {
    let mut served = 0;
    for (db, name) in engine.waiting.keys.take_deferred() {
        let key = Key::new(&name);
        let mut shards: SmallVec<[usize; 16]> = SmallVec::from_slice(&[engine.keyspace.shard_of_key(key)]);
        if let Some(locked) = engine.keyspace.lock_key_unless_busy(key) {
            let first_of = |role| next_in_queue(&locked, db, key, role, 0, worker.now_ms);
            let first = WaitRole::IN_ORDER.into_iter().find_map(first_of);
            let others = first.iter().flat_map(|waiter| waiter.other_keys());
            shards.extend(others.map(|key| engine.keyspace.shard_of_key(key)));
        }
        // A long script may hold the locks: retry later.
        let Some(mut locked) = engine.keyspace.lock_shards_unless_busy(shards) else {
            engine.waiting.keys.defer(db, key);
            continue;
        };
        worker.batch.notifications.ready(db, &name, true);
        served += serve_all(engine, worker, &mut locked);
    }
    served
}

/// The result of serving a waiter whose condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    Yes,
    /// Its condition held, but its command found nothing.
    NothingForIt,
    /// Another thread holds a shard that it needs.
    Later,
}

/// The first waiter of that role in a key's queue, after the number `behind`, whose condition holds.
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
    // Checked before cloning: a long queue is visited whenever its key changes.
    let wants = |waiter: &Waiter| waiter.role == role && (waiter.condition)(value.as_ref());
    let mut wanting = queue.filter(|waiting| waiting.downcast_ref::<Waiter>().is_some_and(wants));
    wanting.next().and_then(|waiting| waiting.clone().downcast::<Waiter>().ok())
}
