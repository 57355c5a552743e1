//! Eviction: when more than `maxmemory` is in use, keys are removed as `maxmemory-policy` says. Knows how good a key is to remove and
//! how long the search may take; refuses to know commands.
//!
//! Keys are sampled, as in Redis: the best of those seen are kept, and the best of all goes. A removal is an effect like any
//! other: the journal has it, and a follower makes it true.

use crate::execution::command::{CommandRow, Flags};
use crate::execution::engine::Engine;
use crate::execution::execute::Ahead;
use crate::execution::worker::Worker;
use crate::settings::MaxmemoryPolicy;
use crate::settings::events::Events;
use keyspace::db::Db;
use keyspace::footprint;
use keyspace::locked::Garbage;
use keyspace::storage::entry::idle_s;
use keyspace::types::ValueType;
use keyspace::usage::frequency;
use keyspace::{Cause, DATABASES, Effect, Entry, Key, Locked};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

/// The most candidates that are kept from one removal to the next.
const CANDIDATES_MAX: usize = 16;
/// Removals between two looks at the clock.
const REMOVALS_PER_LOOK: usize = 16;
/// Keys looked at under one lock in a search through all of them, and how often that is done at once.
const KEYS_PER_STEP: usize = 256;
const SEARCH_STEPS_MAX: usize = 64;
/// Elements from which the size of a key is estimated.
const SAMPLES: usize = 5;
/// How long it takes until all keys are looked at again.
const SEARCH_EVERY_MS: u64 = 100;
/// How long clients have to take what they are sent about removed keys.
const SERVED_WITHIN_NS: u64 = 10_000_000;
/// What the regular work of a worker spends on removals before clients run again.
const BACKGROUND_NS: u64 = 250_000;

/// What is known of memory beyond the limit.
#[derive(Default)]
pub struct Eviction {
    /// No key could be removed when that was last needed.
    has_nothing_left: AtomicBool,
    /// When removals could not keep up, on the monotonic clock; 0 while they do.
    behind_since_ns: AtomicU64,
    /// How long that was so before.
    behind_ns: AtomicU64,
    /// Lists of large values that another thread is freeing.
    being_freed: Arc<AtomicUsize>,
    /// Bytes beyond the limit for which no key goes, and until when, on the monotonic clock.
    on_its_way_bytes: AtomicU64,
    on_its_way_until_ns: AtomicU64,
}

/// Large values on their way to the thread that frees them.
pub(super) struct BeingFreed {
    // Dropped first.
    _garbage: Garbage,
    _count: Counted,
}

/// Counts as long as it lives.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Eviction {
    /// Counts large values until they are freed.
    pub(super) fn counted(&self, garbage: Garbage) -> BeingFreed {
        self.being_freed.fetch_add(1, Relaxed);
        BeingFreed { _garbage: garbage, _count: Counted(self.being_freed.clone()) }
    }

    /// How long more than the limit has been in use, in milliseconds: in all, and without an end so far.
    pub fn exceeded_ms(&self, now_ns: u64) -> (u64, u64) {
        let current_ns = match self.behind_since_ns.load(Relaxed) {
            0 => 0,
            since_ns => now_ns.saturating_sub(since_ns),
        };
        ((self.behind_ns.load(Relaxed) + current_ns) / 1_000_000, current_ns / 1_000_000)
    }

    /// Lets so many more bytes be in use for a moment: messages on their way to clients.
    fn wait_for_clients(&self, bytes: u64, now_ns: u64) {
        // IMPORTANT: more bytes get no more time. Otherwise steady writes would move the limit on and on.
        if self.on_its_way(now_ns) == 0 {
            self.on_its_way_until_ns.store(now_ns + SERVED_WITHIN_NS, Relaxed);
        }
        self.on_its_way_bytes.fetch_add(bytes, Relaxed);
    }

    /// Bytes beyond the limit that are let be now.
    fn on_its_way(&self, now_ns: u64) -> u64 {
        match self.on_its_way_until_ns.load(Relaxed) {
            0 => 0,
            until_ns if now_ns < until_ns => self.on_its_way_bytes.load(Relaxed),
            _ => {
                self.on_its_way_until_ns.store(0, Relaxed);
                self.on_its_way_bytes.store(0, Relaxed);
                0
            }
        }
    }

    /// CONFIG RESETSTAT.
    pub(crate) fn reset(&self) {
        self.behind_ns.store(0, Relaxed);
    }

    fn note(&self, outcome: Outcome, removed: usize, now_ns: u64) {
        // A search that had no time to end and removed nothing has learnt nothing.
        if outcome != Outcome::NotYet || removed > 0 {
            self.has_nothing_left.store(outcome == Outcome::NothingLeft, Relaxed);
        }
        let since_ns = self.behind_since_ns.load(Relaxed);
        match outcome {
            Outcome::Enough if since_ns != 0 => {
                self.behind_ns.fetch_add(now_ns.saturating_sub(since_ns), Relaxed);
                self.behind_since_ns.store(0, Relaxed);
            }
            Outcome::NotYet | Outcome::NothingLeft if since_ns == 0 => self.behind_since_ns.store(now_ns, Relaxed),
            _ => {}
        }
    }
}

/// What removals came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// No more than the limit is in use.
    Enough,
    /// The time was over, or large values are still being freed.
    NotYet,
    /// There is no key that may go.
    NothingLeft,
}

/// Keys to remove next, and the policy that they were chosen by. The best is last.
#[derive(Default)]
pub(crate) struct Candidates {
    policy: Option<MaxmemoryPolicy>,
    keys: Vec<Candidate>,
    search: Search,
}

/// A search through all keys, for when samples show none that may go: nearly all keys may be of types that stay.
#[derive(Clone, Copy, Default)]
struct Search {
    /// How far it has come.
    shard: usize,
    db: usize,
    cursor: u32,
    /// There is none before this time (unix ms): the last one has found nothing.
    not_before_ms: u64,
}

/// A key that could go.
struct Candidate {
    /// The higher, the better.
    merit: u64,
    db: usize,
    name: Box<[u8]>,
}

impl Candidates {
    /// Takes a key in if it is better than those that are kept, or if there is room.
    fn offer(&mut self, merit: u64, db: usize, name: &[u8]) {
        let at = self.keys.partition_point(|kept| kept.merit <= merit);
        if at == 0 && self.keys.len() == CANDIDATES_MAX {
            return;
        }
        if self.keys.iter().any(|kept| kept.db == db && *kept.name == *name) {
            return;
        }
        self.keys.insert(at, Candidate { merit, db, name: name.into() });
        if self.keys.len() > CANDIDATES_MAX {
            self.keys.remove(0);
        }
    }
}

impl Engine {
    /// Removes keys before a command, when more than `maxmemory` is in use and the policy allows it.
    #[inline]
    pub(crate) fn make_room(&self, worker: &mut Worker, row: &'static CommandRow, ahead: &mut Ahead<'_>) {
        if self.settings.maxmemory() != 0 && self.is_over_limit() {
            self.make_room_now(worker, row, ahead);
        }
    }

    #[cold]
    fn make_room_now(&self, worker: &mut Worker, row: &'static CommandRow, ahead: &mut Ahead<'_>) {
        // Looking for keys where there were none is for those who would be refused.
        if self.eviction.has_nothing_left.load(Relaxed) && !row.command.flags.has(Flags::DENYOOM) || !self.may_evict() {
            return;
        }
        // IMPORTANT: it takes locks.
        ahead.release();
        self.evict(worker, time_for(self.settings.maxmemory_eviction_tenacity()));
    }

    /// The regular work of a worker: true when there may be more to remove.
    pub(super) fn evict_in_background(&self, worker: &mut Worker) -> bool {
        self.settings.maxmemory() != 0
            && self.may_evict()
            && (self.is_over_limit() || self.eviction.behind_since_ns.load(Relaxed) != 0)
            && self.evict(worker, Some(BACKGROUND_NS)) == Outcome::NotYet
            && self.eviction.being_freed.load(Relaxed) == 0
    }

    /// True when memory in use is beyond the limit and no key can be removed to change that.
    pub(super) fn is_out_of_memory(&self) -> bool {
        self.is_over_limit() && (!self.may_evict() || self.eviction.has_nothing_left.load(Relaxed))
    }

    /// True when more than `maxmemory` is in use: memory that is kept to be used again is better free.
    pub fn is_short_of_memory(&self) -> bool {
        let limit = self.settings.maxmemory();
        limit != 0 && self.host.used_memory() > limit
    }

    fn is_over_limit(&self) -> bool {
        self.host.used_memory() > self.settings.maxmemory() && self.excess_bytes() > 0
    }

    fn may_evict(&self) -> bool {
        self.settings.maxmemory_policy() != MaxmemoryPolicy::NoEviction && self.may_expire()
    }

    /// How many bytes beyond the limit are in use, and not only until clients have been served. As in Redis, memory of scripts is
    /// not counted: a large script does not block writes.
    fn excess_bytes(&self) -> u64 {
        let used = self.host.used_memory().saturating_sub(lua::total_bytes() as u64);
        match used.saturating_sub(self.settings.maxmemory()) {
            0 => 0,
            excess => excess.saturating_sub(self.eviction.on_its_way(self.clock.monotonic_ns())),
        }
    }

    /// Removes keys until no more than `maxmemory` is in use, or until those that are gone were as much as was too much: what is
    /// sent to clients that cache them takes memory too, and removing more keys for it would mean more messages. It goes when
    /// the clients have been served. IMPORTANT: the caller holds no locks.
    fn evict(&self, worker: &mut Worker, time_ns: Option<u64>) -> Outcome {
        let started_ns = self.clock.monotonic_ns();
        let until_ns = time_ns.map_or(u64::MAX, |time_ns| started_ns.saturating_add(time_ns));
        let excess_bytes = self.excess_bytes();
        let (mut removed, mut removed_bytes) = (0, 0);
        let outcome = loop {
            if !self.is_over_limit() {
                break Outcome::Enough;
            }
            if removed_bytes > excess_bytes && self.tracking.any() {
                self.eviction.wait_for_clients(self.excess_bytes(), self.clock.monotonic_ns());
                break Outcome::NotYet;
            }
            // What they hold is as good as free: no other key goes for it.
            if self.eviction.being_freed.load(Relaxed) > 0 {
                break Outcome::NotYet;
            }
            match self.evict_one(worker) {
                Some(0) if self.clock.monotonic_ns() > until_ns || !self.may_evict() => break Outcome::NotYet,
                Some(0) => continue,
                Some(bytes) => (removed, removed_bytes) = (removed + 1, removed_bytes + bytes as u64),
                None => break Outcome::NothingLeft,
            }
            if removed % REMOVALS_PER_LOOK == 0 && self.clock.monotonic_ns() > until_ns {
                break Outcome::NotYet;
            }
        };
        let ended_ns = self.clock.monotonic_ns();
        self.eviction.note(outcome, removed, ended_ns);
        let (took_ms, threshold_ms) =
            (ended_ns.saturating_sub(started_ns) / 1_000_000, self.settings.latency_monitor_threshold());
        if removed > 0 && threshold_ms > 0 && took_ms >= threshold_ms {
            self.latency.add("eviction-cycle", worker.now_ms / 1000, took_ms);
        }
        outcome
    }

    /// Removes one key and says about how many bytes it took. `None` when there is none that may go, 0 when that cannot be told now.
    fn evict_one(&self, worker: &mut Worker) -> Option<usize> {
        let mut candidates = std::mem::take(&mut worker.candidates);
        let outcome = self.evict_best(worker, &mut candidates);
        worker.candidates = candidates;
        outcome
    }

    fn evict_best(&self, worker: &mut Worker, candidates: &mut Candidates) -> Option<usize> {
        let policy = self.settings.maxmemory_policy();
        if candidates.policy != Some(policy) {
            *candidates = Candidates { policy: Some(policy), ..Candidates::default() };
        }
        let has_looked_everywhere =
            self.look_for_candidates(worker, policy, candidates) && self.search_all(worker, policy, candidates);
        while let Some(Candidate { db, name, .. }) = candidates.keys.pop() {
            let key = Key::new(&name);
            let Some(mut locked) = self.keyspace.lock_key_unless_busy(key) else { return Some(0) };
            let entry = locked.db(db, key).entry(key).filter(|entry| may_go(entry, policy));
            let Some(entry) = entry else { continue };
            let (is_expired, bytes) = (Db::is_expired(entry, worker.now_ms), footprint::bytes_of(entry, SAMPLES));
            self.remove_for_room(worker, &mut locked, db, key, is_expired);
            return Some(bytes.max(1));
        }
        (!has_looked_everywhere).then_some(0)
    }

    fn remove_for_room(&self, worker: &mut Worker, locked: &mut Locked<'_>, db: usize, key: Key<'_>, is_expired: bool) {
        let mut keys = self.own_changes(worker, locked.lend(), db);
        let cause = if is_expired { Cause::Expired } else { Cause::Evicted };
        keys.record(&Effect::Delete { key, cause });
        if !is_expired {
            keys.notify(Events::EVICTED, "evicted", key);
        }
        let garbage = keys.finish().take_garbage();
        let stats = &worker.books.stats;
        if is_expired { &stats.expired_keys } else { &stats.evicted_keys }.add(1);
        self.commit(worker, None, locked);
        self.free(garbage);
    }

    /// Looks at a few keys of a shard that has any, in turn. True when all shards were looked at.
    fn look_for_candidates(&self, worker: &mut Worker, policy: MaxmemoryPolicy, candidates: &mut Candidates) -> bool {
        let shards = self.keyspace.shard_count();
        let first = worker.random.usize(..shards);
        let count = self.settings.maxmemory_samples() as usize;
        let decay_minutes = self.settings.lfu_decay_time();
        let mut all = true;
        for number in (first..shards).chain(0..first) {
            // Another thread is at it, and there are others.
            let Some(locked) = self.keyspace.try_lock_shard(number) else {
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

    /// Goes on with a search through all keys, to its end or for one step of each shard. True when it is complete and has found none.
    fn search_all(&self, worker: &mut Worker, policy: MaxmemoryPolicy, candidates: &mut Candidates) -> bool {
        let mut search = candidates.search;
        if worker.now_ms < search.not_before_ms {
            return true;
        }
        let mut steps = 0;
        while search.shard < self.keyspace.shard_count() && steps < SEARCH_STEPS_MAX && candidates.keys.is_empty() {
            let Some(locked) = self.keyspace.try_lock_shard(search.shard) else { break };
            let Some((_, shard)) = locked.shards().next() else { break };
            let Search { db, cursor, .. } = search;
            let next = shard.db(db).scan(cursor, KEYS_PER_STEP, worker.now_ms, |entry| {
                if may_go(entry, policy) {
                    candidates.offer(0, db, entry.name());
                }
            });
            steps += usize::from(!shard.db(db).is_empty());
            search = match next {
                Some(cursor) => Search { cursor, ..search },
                None if db + 1 < DATABASES => Search { db: db + 1, cursor: 0, ..search },
                None => Search { shard: search.shard + 1, ..Search::default() },
            };
        }
        let is_complete = search.shard == self.keyspace.shard_count();
        candidates.search = match is_complete && candidates.keys.is_empty() {
            true => Search { not_before_ms: worker.now_ms + SEARCH_EVERY_MS, ..Search::default() },
            false if is_complete => Search::default(),
            false => search,
        };
        is_complete
    }
}

/// True when a key may be removed to make room. Cells, runs, registers and sessions stay: what they remember is what keeps work from
/// being lost or done twice.
fn may_go(entry: &Entry, policy: MaxmemoryPolicy) -> bool {
    (!policy.is_volatile() || entry.deadline().is_some()) && !ValueType::of(entry).is_own
}

/// How good a key is to remove. Many are equally good: `draw` decides between them, so that no database is preferred.
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

/// How long removals may hold a command up, as Redis has it; `None` for as long as it takes.
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
