//! The active expiry cycle: removes expired keys and fields a few at a time, so that a million keys that expire in one
//! second neither pile up nor delay clients. Knows which shards belong to a worker; refuses to know when it is called.

use crate::execution::engine::Engine;
use crate::execution::view::View;
use crate::execution::worker::Worker;
use keyspace::DATABASES;
use keyspace::types::hash;
use keyspace::{Cause, Effect, Key, Usage};
use std::sync::atomic::Ordering::Relaxed;

/// Keys removed under one lock: tens of microseconds.
const KEYS_PER_LOCK: usize = 64;
/// Fields removed from one hash under one lock.
const FIELDS_PER_LOCK: usize = 256;

impl Engine {
    /// Removes expired keys and fields from the shards that belong to worker `index` of `workers`, until none is left
    /// or `budget_ns` is used up. True when there may be more.
    pub fn expire_cycle(&self, worker: &mut Worker, index: usize, workers: usize, budget_ns: u64) -> bool {
        let now_us = self.clock.unix_us();
        worker.now_ms = now_us / 1000;
        worker.now_us = now_us;
        // Also while expiry is off: without requests from clients, nothing else would serve them.
        if self.has_deferred() {
            self.serve_deferred(worker);
        }
        // The clock may have been set, which no timer notices.
        self.serve_due_records(worker);
        let has_to_evict = self.evict_in_background(worker);
        // While writes are refused the journal cannot record removals; expired keys read as absent anyway.
        if !self.active_expiry.load(Relaxed) || !self.may_expire() {
            return has_to_evict;
        }
        let started_ns = self.clock.monotonic_ns();
        let cut_short = self.expire_shards(worker, index, workers, started_ns + budget_ns);
        let stats = &worker.books.stats;
        stats.expiry_ns.add(self.clock.monotonic_ns() - started_ns);
        stats.expiry_cut_short.add(u64::from(cut_short));
        cut_short || has_to_evict
    }

    /// Goes on where it was cut short.
    fn expire_shards(&self, worker: &mut Worker, index: usize, workers: usize, until_ns: u64) -> bool {
        let own = self.keyspace.shard_count().saturating_sub(index).div_ceil(workers);
        if worker.shards_to_expire == 0 {
            worker.shards_to_expire = own;
        }
        while worker.shards_to_expire > 0 {
            let shard = index + own.saturating_sub(worker.shards_to_expire) * workers;
            let removed = self.expire_some(shard, worker) | self.expire_sessions(shard, worker, until_ns);
            if !removed {
                worker.shards_to_expire -= 1;
            }
            if self.clock.monotonic_ns() > until_ns {
                break;
            }
        }
        worker.shards_to_expire > 0
    }

    /// Removes a few expired keys and fields of one shard; true when there were any.
    pub(crate) fn expire_some(&self, shard: usize, worker: &mut Worker) -> bool {
        let stats = &worker.books.stats;
        // No entry is created or touched here, so the kind of usage does not matter. Never block here: a thread that
        // holds the shard for long (a snapshot of a huge value does) would delay all clients of this worker.
        let Some(mut locked) = self.keyspace.try_lock_shard(shard) else { return false };
        let mut view = View::new(locked.lend(), 0, worker.now_ms, Usage::Time, stats).without_touching();
        view.notify_through(&worker.batch.notifications, self.settings.notify_keyspace_events().published());
        let mut keys = view.into_recorder(self, &mut worker.batch.effects);
        let mut any = false;
        for db in 0..DATABASES {
            let (overdue, fields) = {
                let Some((_, shard)) = keys.locked().shards().next() else { return false };
                let shard = shard.db(db);
                if shard.with_deadline() == 0 && shard.with_field_deadlines() == 0 {
                    continue;
                }
                let fields = shard.expired_field_names(worker.now_ms, FIELDS_PER_LOCK);
                (shard.expired_keys(worker.now_ms, KEYS_PER_LOCK), fields)
            };
            any |= !overdue.is_empty() || fields.is_some();
            for name in &overdue {
                keys.record_in(db, &Effect::Delete { key: Key::new(name), cause: Cause::Expired });
            }
            stats.expired_keys.add(overdue.len() as u64);
            if let Some((name, fields)) = fields
                && !overdue.contains(&name)
            {
                let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
                let cause = Cause::Expired;
                keys.record_in(db, &Effect::change(Key::new(&name), hash::Change::Delete { fields: &fields, cause }));
                stats.expired_fields.add(fields.len() as u64);
            }
        }
        any |= keys.forget_readers(KEYS_PER_LOCK);
        let garbage = keys.finish().take_garbage();
        self.commit(worker, None, &mut locked);
        self.free(garbage);
        any
    }
}
