//! Queues clients for keys, and removes them again. Refuses to know how they are served (`serving`).

use super::keys::Waiter;
use super::waiter::{BlockedCommand, WaitPhase};
use super::{Blocked, Event};
use crate::client::Client;
use crate::command::CommandRow;
use crate::engine::Engine;
use keyspace::DATABASES;
use keyspace::{Key, Locked};
use resp::{OwnedRequest, Reply, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Queues a client whose command has just requested a wait. The reply written so far becomes the timeout reply.
/// IMPORTANT: call this under the locks under which the command has found nothing.
pub fn begin_wait(
    engine: &Engine,
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
    let blocked =
        BlockedCommand::new(engine.waiting.keys.next_number(), client, command, request, out.split_off(reply_at));
    let waiter = Arc::new(Waiter {
        blocked,
        keys: wait.keys,
        condition: wait.condition,
        role: wait.role,
        looks_again: client.looks_again,
        places: AtomicUsize::new(0),
    });
    for key in waiter.awaited_keys() {
        engine.waiting.keys.enqueue(locked, key, &waiter);
    }
    engine.waiting.keys.count.fetch_add(1, Relaxed);
    if waiter.looks_again {
        engine.waiting.keys.begin_looking(&waiter);
    }
    client.handle.wait_state.begin(waiter.blocked.number);
    client.wait_phase = WaitPhase::Queued(waiter);
    Some(Blocked { until_ms, event: Event::Value, silent: false })
}

/// True when waiters are to be served by a thread that holds no locks.
#[inline]
pub fn has_deferred(engine: &Engine) -> bool {
    engine.waiting.keys.deferred_count.load(Relaxed) > 0 || engine.waiting.records.has_work()
}

/// Defers the waiters of all keys: takers were not served for a while, and a key may have something for one by now.
pub fn defer_all_waiters(engine: &Engine) {
    for number in 0..engine.keyspace.shard_count() {
        let locked = engine.keyspace.lock_shard(number);
        for (_, shard) in locked.shards() {
            let names = |db: usize| shard.awaited.names(db).map(move |name| (db, Key::new(name)));
            (0..DATABASES).flat_map(names).for_each(|(db, key)| engine.waiting.keys.defer(db, key));
        }
    }
    engine.waiting.records.search_anew(|_| true);
}

/// Removes clients from their queues that could not leave while a script held the locks.
pub fn remove_orphaned_waiters(engine: &Engine) {
    let orphaned = std::mem::take(&mut *engine.waiting.keys.orphaned.lock());
    orphaned.iter().for_each(|waiter| leave_queues(engine, waiter));
}

/// Removes a client from its queues; later, if a shard is busy. Never block on a shard lock here: a long script may
/// hold it, and the client that could SCRIPT KILL it may be on this thread.
pub(super) fn leave_queues(engine: &Engine, waiter: &Arc<Waiter>) {
    for key in waiter.awaited_keys() {
        if waiter.places.load(Relaxed) == 0 {
            break;
        }
        let Some(mut locked) = engine.keyspace.lock_key_unless_busy(key) else {
            return engine.waiting.keys.orphaned.lock().push(waiter.clone());
        };
        engine.waiting.keys.leave(&mut locked, key, waiter);
    }
    if waiter.looks_again {
        engine.waiting.keys.end_looking(waiter);
    }
    // IMPORTANT: after the removal. Commands serve no waiters while the count is zero.
    engine.waiting.keys.count.fetch_sub(1, Relaxed);
}
