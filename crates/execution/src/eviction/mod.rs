//! Eviction: when more than `maxmemory` is in use, keys are removed as `maxmemory-policy` says. Knows how to rank keys
//! and how long the search may take; refuses to know commands.
//!
//! Keys are sampled, as in Redis: the best candidates are kept, and the best of all is removed. A removal is an effect
//! like any other: it is in the journal, and a follower applies it.

pub mod memory;
mod state;

use memory::{excess_bytes, is_over_limit, may_evict};
pub use state::Eviction;
use state::{Candidate, Outcome};
pub use state::{Candidates, VictimSearch};

use crate::ahead::Ahead;
use crate::command::{CommandRow, Flags};
use crate::commit;
use crate::engine::Engine;
use crate::own_changes;
use crate::settings::MaxmemoryPolicy;
use crate::settings::events::Events;
use crate::worker::Worker;
use keyspace::db::Db;
use keyspace::footprint;
use keyspace::storage::entry::idle_s;
use keyspace::types::ValueType;
use keyspace::usage::frequency;
use keyspace::{Cause, DATABASES, Effect, Entry, Key, Locked};
use std::sync::atomic::Ordering::Relaxed;

/// Removals between two looks at the clock.
const REMOVALS_PER_LOOK: usize = 16;
/// Keys visited under one lock in a search through all keys, and how many such steps are done at once.
const KEYS_PER_STEP: usize = 256;
const SEARCH_STEPS_MAX: usize = 64;
/// Elements from which the size of a key is estimated.
const SAMPLES: usize = 5;
/// The time between two searches through all keys that find nothing.
const SEARCH_EVERY_MS: u64 = 100;
/// How long the regular work of a worker may evict before clients run again.
const BACKGROUND_NS: u64 = 250_000;

/// Removes keys before a command, when more than `maxmemory` is in use and the policy allows it.
#[inline]
pub fn make_room(engine: &Engine, worker: &mut Worker, row: &'static CommandRow, ahead: &mut Ahead<'_>) {
    if engine.settings.maxmemory() != 0 && is_over_limit(engine) {
        make_room_now(engine, worker, row, ahead);
    }
}

#[cold]
fn make_room_now(engine: &Engine, worker: &mut Worker, row: &'static CommandRow, ahead: &mut Ahead<'_>) {
    // When the last search found no key to remove, only commands that would be refused search again.
    if engine.eviction.has_nothing_left.load(Relaxed) && !row.command.flags.has(Flags::DENYOOM) || !may_evict(engine) {
        return;
    }
    // IMPORTANT: it takes locks.
    ahead.release();
    evict(engine, worker, time_for(engine.settings.maxmemory_eviction_tenacity()));
}

/// Evicts keys as part of a worker's regular work. True when there may be more to remove.
pub(super) fn evict_in_background(engine: &Engine, worker: &mut Worker) -> bool {
    engine.settings.maxmemory() != 0
        && may_evict(engine)
        && (is_over_limit(engine) || engine.eviction.behind_since_ns.load(Relaxed) != 0)
        && evict(engine, worker, Some(BACKGROUND_NS)) == Outcome::NotYet
        && engine.eviction.freeing.lists.load(Relaxed) == 0
}

/// Removes keys until at most `maxmemory` is in use, or until the removed keys add up to the excess: invalidation
/// messages take memory too, and removing more keys for them would cause more messages. That memory is freed when the
/// clients have been served. IMPORTANT: the caller holds no locks.
fn evict(engine: &Engine, worker: &mut Worker, time_ns: Option<u64>) -> Outcome {
    let started_ns = engine.clock.monotonic_ns();
    let until_ns = time_ns.map_or(u64::MAX, |time_ns| started_ns.saturating_add(time_ns));
    let excess_at_first = excess_bytes(engine);
    let (mut removed, mut removed_bytes) = (0, 0);
    let outcome = loop {
        if !is_over_limit(engine) {
            break Outcome::Enough;
        }
        if removed_bytes > excess_at_first && engine.tracking.any() {
            engine.eviction.wait_for_clients(excess_bytes(engine), engine.clock.monotonic_ns());
            break Outcome::NotYet;
        }
        // Large values that are being freed count as free: no other key is removed for them.
        if engine.eviction.freeing.lists.load(Relaxed) > 0 {
            break Outcome::NotYet;
        }
        match evict_one(engine, worker) {
            Some(0) if engine.clock.monotonic_ns() > until_ns || !may_evict(engine) => break Outcome::NotYet,
            Some(0) => continue,
            Some(bytes) => (removed, removed_bytes) = (removed + 1, removed_bytes + bytes as u64),
            None => break Outcome::NothingLeft,
        }
        if removed % REMOVALS_PER_LOOK == 0 && engine.clock.monotonic_ns() > until_ns {
            break Outcome::NotYet;
        }
    };
    let ended_ns = engine.clock.monotonic_ns();
    engine.eviction.note(outcome, removed, ended_ns);
    let (took_ms, threshold_ms) =
        (ended_ns.saturating_sub(started_ns) / 1_000_000, engine.settings.latency_monitor_threshold());
    if removed > 0 && threshold_ms > 0 && took_ms >= threshold_ms {
        engine.latency.add("eviction-cycle", worker.now_ms / 1000, took_ms);
    }
    outcome
}

/// Removes one key and returns about how many bytes it took. `None` when no key may be removed, 0 when that is unknown
/// yet.
fn evict_one(engine: &Engine, worker: &mut Worker) -> Option<usize> {
    let mut candidates = std::mem::take(&mut worker.candidates);
    let outcome = evict_best(engine, worker, &mut candidates);
    worker.candidates = candidates;
    outcome
}

fn evict_best(engine: &Engine, worker: &mut Worker, candidates: &mut Candidates) -> Option<usize> {
    let policy = engine.settings.maxmemory_policy();
    if candidates.policy != Some(policy) {
        *candidates = Candidates { policy: Some(policy), ..Candidates::default() };
    }
    let has_looked_everywhere =
        look_for_candidates(engine, worker, policy, candidates) && search_all(engine, worker, policy, candidates);
    while let Some(Candidate { db, name, .. }) = candidates.keys.pop() {
        let key = Key::new(&name);
        let Some(mut locked) = engine.keyspace.lock_key_unless_busy(key) else { return Some(0) };
        let entry = locked.db(db, key).entry(key).filter(|entry| may_go(entry, policy));
        let Some(entry) = entry else { continue };
        let (is_expired, bytes) = (Db::is_expired(entry, worker.now_ms), footprint::bytes_of(entry, SAMPLES));
        remove_for_room(engine, worker, &mut locked, db, key, is_expired);
        return Some(bytes.max(1));
    }
    (!has_looked_everywhere).then_some(0)
}

fn remove_for_room(
    engine: &Engine,
    worker: &mut Worker,
    locked: &mut Locked<'_>,
    db: usize,
    key: Key<'_>,
    is_expired: bool,
) {
    let mut keys = own_changes::own_changes(engine, worker, locked.lend(), db);
    let cause = if is_expired { Cause::Expired } else { Cause::Evicted };
    keys.record(&Effect::Delete { key, cause });
    if !is_expired {
        keys.notify(Events::EVICTED, "evicted", key);
    }
    let garbage = keys.finish().take_garbage();
    let stats = &worker.metrics.stats;
    if is_expired { &stats.expired_keys } else { &stats.evicted_keys }.add(1);
    commit::commit(engine, worker, None, locked);
    engine.free(garbage);
}

/// Samples keys of the next shard that has any. True when all shards were visited.
fn look_for_candidates(
    engine: &Engine,
    worker: &mut Worker,
    policy: MaxmemoryPolicy,
    candidates: &mut Candidates,
) -> bool {
    let shards = engine.keyspace.shard_count();
    let first = worker.random.usize(..shards);
    let count = engine.settings.maxmemory_samples() as usize;
    let decay_minutes = engine.settings.lfu_decay_time();
    let mut all = true;
    for number in (first..shards).chain(0..first) {
        // Another thread holds this shard, and there are others.
        let Some(locked) = engine.keyspace.try_lock_shard(number) else {
            all = false;
            continue;
        };
        let Some((_, shard)) = locked.shards().next() else { continue };
        let mut any = false;
        for db in 0..DATABASES {
            let (random, now_ms) = (&mut worker.random, worker.now_ms);
            let mut draws = random.fork();
            let offer = |entry: &Entry| {
                if may_go(entry, policy) {
                    any = true;
                    let merit = merit(entry, policy, now_ms, decay_minutes, draws.u16(..));
                    candidates.offer(merit, db, entry.name());
                }
            };
            match policy {
                MaxmemoryPolicy::VolatileTtl => shard.db(db).soonest_to_expire(count).for_each(offer),
                _ if policy.is_volatile() => shard.db(db).sample_with_deadline(random, count, offer),
                _ => shard.db(db).sample(random, count, offer),
            }
        }
        if any {
            return false;
        }
    }
    all
}

/// Continues a search through all keys, to its end or for one step in each shard. True when it is complete and has
/// found no key.
fn search_all(engine: &Engine, worker: &mut Worker, policy: MaxmemoryPolicy, candidates: &mut Candidates) -> bool {
    let mut search = candidates.search;
    if worker.now_ms < search.not_before_ms {
        return true;
    }
    let mut steps = 0;
    while search.shard < engine.keyspace.shard_count() && steps < SEARCH_STEPS_MAX && candidates.keys.is_empty() {
        let Some(locked) = engine.keyspace.try_lock_shard(search.shard) else { break };
        let Some((_, shard)) = locked.shards().next() else { break };
        let VictimSearch { db, cursor, .. } = search;
        let next = shard.db(db).scan(cursor, KEYS_PER_STEP, worker.now_ms, |entry| {
            if may_go(entry, policy) {
                candidates.offer(0, db, entry.name());
            }
        });
        steps += usize::from(!shard.db(db).is_empty());
        search = match next {
            Some(cursor) => VictimSearch { cursor, ..search },
            None if db + 1 < DATABASES => VictimSearch { db: db + 1, cursor: 0, ..search },
            None => VictimSearch { shard: search.shard + 1, ..VictimSearch::default() },
        };
    }
    let is_complete = search.shard == engine.keyspace.shard_count();
    candidates.search = match is_complete && candidates.keys.is_empty() {
        true => VictimSearch { not_before_ms: worker.now_ms + SEARCH_EVERY_MS, ..VictimSearch::default() },
        false if is_complete => VictimSearch::default(),
        false => search,
    };
    is_complete
}

/// True when a key may be evicted. Cells, runs, registers and sessions stay: they keep work from being lost or done
/// twice.
fn may_go(entry: &Entry, policy: MaxmemoryPolicy) -> bool {
    (!policy.is_volatile() || entry.deadline().is_some()) && !ValueType::of(entry).is_own
}

/// Ranks a key for eviction: the highest is removed first. Many keys are equal: `draw` decides between them, so that no
/// database is preferred.
fn merit(entry: &Entry, policy: MaxmemoryPolicy, now_ms: u64, decay_minutes: u64, draw: u16) -> u64 {
    let of_equals = |merit: u32| u64::from(merit) << u16::BITS | u64::from(draw);
    match policy {
        MaxmemoryPolicy::VolatileLru | MaxmemoryPolicy::AllkeysLru => of_equals(idle_s(entry.used_at(), now_ms)),
        MaxmemoryPolicy::VolatileLfu | MaxmemoryPolicy::AllkeysLfu => {
            of_equals(u32::from(u8::MAX - frequency(entry.used_at(), now_ms, decay_minutes)))
        }
        MaxmemoryPolicy::VolatileTtl => u64::MAX - entry.deadline().unwrap_or(u64::MAX),
        MaxmemoryPolicy::VolatileRandom | MaxmemoryPolicy::AllkeysRandom | MaxmemoryPolicy::NoEviction => of_equals(0),
    }
}

/// How long removals may delay a command, as in Redis; `None` for no limit.
fn time_for(tenacity: u64) -> Option<u64> {
    const STEP_NS: u64 = 50_000;
    match tenacity {
        0..=10 => Some(STEP_NS * tenacity),
        11..=99 => Some((10.0 * STEP_NS as f64 * 1.15f64.powi(tenacity as i32 - 10)) as u64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_candidates_are_kept_in_order() {
        let mut candidates = Candidates::default();
        for merit in [5, 3, 9, 9, 1] {
            candidates.offer(merit, 0, format!("k{merit}").as_bytes());
        }
        let merits = |of: &Candidates| of.keys.iter().map(|kept| kept.merit).collect::<Vec<_>>();
        assert_eq!(merits(&candidates), [1, 3, 5, 9], "a key is kept once");
        for merit in 10..30 {
            candidates.offer(merit, 1, format!("k{merit}").as_bytes());
        }
        assert_eq!(merits(&candidates), (14..30).collect::<Vec<_>>());
        candidates.offer(2, 0, b"k2");
        assert_eq!(merits(&candidates), (14..30).collect::<Vec<_>>());
    }

    #[test]
    fn tenacity_is_a_time() {
        assert_eq!(time_for(0), Some(0));
        assert_eq!(time_for(10), Some(500_000));
        assert!((time_for(20).unwrap() as f64 / 500_000.0 - 4.0456).abs() < 0.001);
        assert!(time_for(99).unwrap() > 60_000_000_000);
        assert_eq!(time_for(100), None);
    }
}
