//! The state of eviction: whether removals keep up, which values are being freed, and which keys to remove next.

use crate::settings::MaxmemoryPolicy;
use keyspace::garbage::Garbage;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

/// The most candidates that are kept from one removal to the next.
const CANDIDATES_MAX: usize = 16;
/// How long clients may take to read the messages about removed keys, on a machine whose other threads wait for a core.
const SERVED_WITHIN_NS: u64 = 100_000_000;

/// The state of eviction.
#[derive(Default)]
pub struct Eviction {
    /// The last search found no key to remove.
    pub(super) has_nothing_left: AtomicBool,
    /// Since when removals have not kept up, on the monotonic clock; 0 while they do.
    pub(super) behind_since_ns: AtomicU64,
    /// How long removals had not kept up before that.
    pub(super) behind_ns: AtomicU64,
    /// What another thread is freeing.
    pub(super) freeing: Arc<Freeing>,
    /// Bytes beyond the limit for which no key is removed, and until when, on the monotonic clock.
    pub(super) on_its_way_bytes: AtomicU64,
    pub(super) on_its_way_until_ns: AtomicU64,
}

/// Counters of values that another thread frees.
#[derive(Default)]
pub(super) struct Freeing {
    /// Lists of large values that are not free yet, and the number of values in them.
    pub(super) lists: AtomicUsize,
    pub(super) values: AtomicU64,
    /// Values that have been freed.
    pub(super) freed: AtomicU64,
}

/// Large values on their way to the thread that frees them.
pub struct BeingFreed {
    // Dropped first.
    _garbage: Garbage,
    _count: Counted,
}

/// Counts a list until it is dropped.
pub(super) struct Counted {
    pub(super) freeing: Arc<Freeing>,
    pub(super) values: u64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.freeing.values.fetch_sub(self.values, Relaxed);
        self.freeing.freed.fetch_add(self.values, Relaxed);
        self.freeing.lists.fetch_sub(1, Relaxed);
    }
}

impl Eviction {
    /// Counts large values until they are freed.
    pub fn counted(&self, garbage: Garbage) -> BeingFreed {
        let (freeing, values) = (self.freeing.clone(), garbage.value_count());
        freeing.lists.fetch_add(1, Relaxed);
        freeing.values.fetch_add(values, Relaxed);
        BeingFreed { _garbage: garbage, _count: Counted { freeing, values } }
    }

    /// Values that another thread is freeing now, and those that it has freed.
    pub fn freed_elsewhere(&self) -> (u64, u64) {
        (self.freeing.values.load(Relaxed), self.freeing.freed.load(Relaxed))
    }

    /// How long more than the limit has been in use, in milliseconds: in total, and in the current period.
    pub fn exceeded_ms(&self, now_ns: u64) -> (u64, u64) {
        let current_ns = match self.behind_since_ns.load(Relaxed) {
            0 => 0,
            since_ns => now_ns.saturating_sub(since_ns),
        };
        ((self.behind_ns.load(Relaxed) + current_ns) / 1_000_000, current_ns / 1_000_000)
    }

    /// Tolerates so many more bytes for a moment: messages on their way to clients.
    pub(super) fn wait_for_clients(&self, bytes: u64, now_ns: u64) {
        // IMPORTANT: more bytes do not extend the time. Otherwise steady writes would move the limit on and on.
        if self.on_its_way(now_ns) == 0 {
            self.on_its_way_until_ns.store(now_ns + SERVED_WITHIN_NS, Relaxed);
        }
        self.on_its_way_bytes.fetch_add(bytes, Relaxed);
    }

    /// Bytes beyond the limit that are tolerated now.
    pub(super) fn on_its_way(&self, now_ns: u64) -> u64 {
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

    /// Resets the counters (CONFIG RESETSTAT).
    pub fn reset(&self) {
        self.behind_ns.store(0, Relaxed);
        self.freeing.freed.store(0, Relaxed);
    }

    pub(super) fn note(&self, outcome: Outcome, removed: usize, now_ns: u64) {
        // A search that ran out of time and removed nothing proves nothing.
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

/// The result of a round of eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// No more than the limit is in use.
    Enough,
    /// The time is used up, or large values are still being freed.
    NotYet,
    /// No key may be removed.
    NothingLeft,
}

/// Keys to remove next, and the policy by which they were chosen. The best is last.
#[derive(Default)]
pub struct Candidates {
    pub(super) policy: Option<MaxmemoryPolicy>,
    pub(super) keys: Vec<Candidate>,
    pub(super) search: VictimSearch,
}

/// A search through all keys, used when samples contain no key that may be removed: nearly all keys may be of types
/// that stay.
#[derive(Clone, Copy, Default)]
pub struct VictimSearch {
    /// Where it continues.
    pub(super) shard: usize,
    pub(super) db: usize,
    pub(super) cursor: u32,
    /// No search begins before this time (unix ms): the last one found nothing.
    pub(super) not_before_ms: u64,
}

/// A key that could be removed.
pub(super) struct Candidate {
    /// The higher, the sooner it is removed.
    pub(super) merit: u64,
    pub(super) db: usize,
    pub(super) name: Box<[u8]>,
}

impl Candidates {
    /// Adds a key if there is room, or if it is better than one of those kept.
    pub(super) fn offer(&mut self, merit: u64, db: usize, name: &[u8]) {
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
