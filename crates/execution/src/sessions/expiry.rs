//! The expiry of sessions: checks a few sessions at a time whose deadline may have passed. Knows which were renewed
//! since the last check; refuses to know when it is called.

use super::ending::{end_session, system_client};
use super::lookup::{Found, find};
use crate::commit;
use crate::conditions;
use crate::engine::Engine;
use crate::own_changes;
use crate::sessions::HookEvent;
use crate::worker::Worker;
use keyspace::{Cause, DATABASES, Effect, Key};
use std::sync::atomic::Ordering::Relaxed;

/// Sessions checked under one lock.
const SESSIONS_PER_LOCK: usize = 64;

/// Checks a few sessions of one shard, and removes those that have expired. Stops at `until_ns`. True when there was
/// something to do.
pub fn expire_sessions(engine: &Engine, shard: usize, worker: &mut Worker, until_ns: u64) -> bool {
    let now_ms = worker.now_ms;
    // Never block here, as in `keys::expire_some`.
    let Some(mut locked) = engine.keyspace.try_lock_shard(shard) else { return false };
    let (mut renewed, mut expired) = (Vec::new(), Vec::new());
    for db in 0..DATABASES {
        let Some((_, shard)) = locked.shards().next() else { return false };
        let within = shard.db(db);
        if !within.has_sessions_due(now_ms) {
            continue;
        }
        for name in within.sessions_due(now_ms, SESSIONS_PER_LOCK) {
            match find(&locked, db, Key::new(&name), now_ms) {
                Ok(Found::Expired) => expired.push((db, name)),
                Ok(Found::Alive(_) | Found::Nothing) | Err(_) => renewed.push((db, name)),
            }
        }
    }
    for (db, name) in &renewed {
        locked.queue_session(*db, Key::new(name), now_ms);
    }
    if expired.is_empty() {
        return !renewed.is_empty();
    }
    if engine.sessions.hook(HookEvent::Expired).is_some() {
        drop(locked);
        if worker.serves_clients {
            // The hook may take long: it runs on the script thread, which serves no clients.
            engine.scripting.threads.expire_sessions();
            return !renewed.is_empty();
        }
        return expire_with_hook(engine, worker, &expired, until_ns) || !renewed.is_empty();
    }
    let mut keys = own_changes::own_changes(engine, worker, locked.lend(), 0);
    for (db, name) in &expired {
        keys.record_in(*db, &Effect::Delete { key: Key::new(name), cause: Cause::Expired });
    }
    let garbage = keys.finish().take_garbage();
    worker.metrics.stats.expired_keys.add(expired.len() as u64);
    commit::commit(engine, worker, None, &mut locked);
    engine.free(garbage);
    true
}

/// Removes all expired sessions, after calling the hook for each. For the script thread.
pub fn expire_due_sessions(engine: &Engine, worker: &mut Worker) {
    // IMPORTANT: before the search. Sessions that expire from now on notify this thread again.
    engine.scripting.threads.expires_sessions.store(false, Relaxed);
    for shard in 0..engine.keyspace.shard_count() {
        while conditions::may_expire(engine) && expire_sessions(engine, shard, worker, u64::MAX) {
            engine.begin(worker);
        }
    }
}

/// Removes sessions one at a time, each as one batch, after calling its hook. False when another thread is removing
/// some.
fn expire_with_hook(engine: &Engine, worker: &mut Worker, expired: &[(usize, Vec<u8>)], until_ns: u64) -> bool {
    let Some(_turn) = engine.sessions.lock_expiry() else { return false };
    for (db, name) in expired {
        let key = Key::new(name);
        let Some(mut locked) = engine.keyspace.lock_all_unless_busy() else { return false };
        if matches!(find(&locked, *db, key, worker.now_ms), Ok(Found::Expired)) {
            let mut client = system_client(*db);
            worker.batch.is_atomic = true;
            end_session(engine, worker, &mut client, &mut locked, key, Cause::Expired);
            worker.batch.is_atomic = false;
            worker.metrics.stats.expired_keys.add(1);
            commit::commit(engine, worker, None, &mut locked);
        }
        drop(locked);
        conditions::end_long_scripts(engine, worker);
        if engine.clock.monotonic_ns() > until_ns {
            break;
        }
    }
    true
}
