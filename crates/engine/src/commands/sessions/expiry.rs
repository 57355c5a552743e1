//! The expiry of sessions: looks at those whose time may be up, a few at a time. Knows which were renewed since they were last looked
//! at; refuses to know when it is called.

use super::{Found, find};
use crate::execution::engine::Engine;
use crate::execution::sessions::HookEvent;
use crate::execution::worker::Worker;
use keyspace::{Cause, DATABASES, Effect, Key};

/// Sessions looked at under one lock.
const SESSIONS_PER_LOCK: usize = 64;

impl Engine {
    /// Looks at a few sessions of one shard whose time may be up, and removes those whose time is. Stops at `until_ns`. True when
    /// there was something to do.
    pub(crate) fn expire_sessions(&self, shard: usize, worker: &mut Worker, until_ns: u64) -> bool {
        let now_ms = worker.now_ms;
        // Never block here, as for keys.
        let Some(mut locked) = self.keyspace.try_lock_shard(shard) else { return false };
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
        if self.sessions.hook(HookEvent::Expired).is_some() {
            drop(locked);
            return self.expire_with_hook(worker, &expired, until_ns) || !renewed.is_empty();
        }
        let mut keys = self.own_changes(worker, locked.lend(), 0);
        for (db, name) in &expired {
            keys.record_in(*db, &Effect::Delete { key: Key::new(name), cause: Cause::Expired });
        }
        let garbage = keys.finish().take_garbage();
        worker.books.stats.expired_keys.add(expired.len() as u64);
        self.commit(worker, None, &mut locked);
        self.free(garbage);
        true
    }

    /// Removes sessions, after the function that is called for each; one at a time, each as one batch. False when
    /// another thread is at it.
    fn expire_with_hook(&self, worker: &mut Worker, expired: &[(usize, Vec<u8>)], until_ns: u64) -> bool {
        let Some(_turn) = self.sessions.expiry_turn() else { return false };
        for (db, name) in expired {
            let key = Key::new(name);
            let Some(mut locked) = self.keyspace.lock_all_unless_busy() else { return false };
            if matches!(find(&locked, *db, key, worker.now_ms), Ok(Found::Expired)) {
                let mut client = self.nobody(*db);
                worker.batch.is_atomic = true;
                self.end_session(worker, &mut client, &mut locked, key, Cause::Expired);
                worker.batch.is_atomic = false;
                worker.books.stats.expired_keys.add(1);
                self.commit(worker, None, &mut locked);
            }
            drop(locked);
            if self.clock.monotonic_ns() > until_ns {
                break;
            }
        }
        true
    }
}
