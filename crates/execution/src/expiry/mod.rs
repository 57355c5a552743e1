//! The active expiry cycle: removes expired keys and fields a few at a time, so that a million keys that expire in one
//! second neither pile up nor delay clients. Knows which shards belong to a worker; refuses to know when it is called.

pub mod keys;

use crate::conditions;
use crate::engine::Engine;
use crate::eviction;
use crate::sessions;
use crate::waiting;
use crate::worker::Worker;
use std::sync::atomic::Ordering::Relaxed;

/// Removes expired keys and fields from the shards that belong to worker `index` of `workers`, until none is left
/// or `budget_ns` is used up. True when there may be more.
pub fn expire_cycle(engine: &Engine, worker: &mut Worker, index: usize, workers: usize, budget_ns: u64) -> bool {
    let now_us = engine.clock.unix_us();
    worker.now_ms = now_us / 1000;
    worker.now_us = now_us;
    if index == 0 {
        engine.waiting.keys.look_again();
    }
    // Even while expiry is off: without requests from clients, no other code would serve them.
    if waiting::queueing::has_deferred(engine) {
        waiting::serving::serve_deferred(engine, worker);
    }
    // The clock may have been set, which no timer notices.
    waiting::records::serving::serve_due_records(engine, worker);
    let has_to_clean = engine.watches.remove_orphaned(&engine.keyspace) | eviction::evict_in_background(engine, worker);
    // While writes are refused the journal cannot record removals; expired keys read as absent anyway.
    if !engine.debug.active_expiry.load(Relaxed) || !conditions::may_expire(engine) {
        return has_to_clean;
    }
    let started_ns = engine.clock.monotonic_ns();
    let cut_short = expire_shards(engine, worker, index, workers, started_ns + budget_ns);
    let stats = &worker.metrics.stats;
    let took_ns = engine.clock.monotonic_ns() - started_ns;
    stats.expiry_ns.add(took_ns);
    let (took_ms, threshold_ms) = (took_ns / 1_000_000, engine.settings.latency_monitor_threshold());
    if threshold_ms > 0 && took_ms >= threshold_ms {
        engine.latency.add("expire-cycle", worker.now_ms / 1000, took_ms);
    }
    stats.expiry_cut_short.add(u64::from(cut_short));
    cut_short || has_to_clean
}

/// Visits the worker's shards, starting where the last cycle stopped.
fn expire_shards(engine: &Engine, worker: &mut Worker, index: usize, workers: usize, until_ns: u64) -> bool {
    let own = engine.keyspace.shard_count().saturating_sub(index).div_ceil(workers);
    if worker.shards_to_expire == 0 {
        worker.shards_to_expire = own;
    }
    while worker.shards_to_expire > 0 {
        let shard = index + own.saturating_sub(worker.shards_to_expire) * workers;
        let removed = keys::expire_some(engine, shard, worker)
            | sessions::expiry::expire_sessions(engine, shard, worker, until_ns);
        if !removed {
            worker.shards_to_expire -= 1;
        }
        if engine.clock.monotonic_ns() > until_ns {
            break;
        }
    }
    worker.shards_to_expire > 0
}
