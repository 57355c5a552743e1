//! Totals of a user. Each worker counts for itself, in a cache line of its own, and the sum is taken when it is asked
//! for: no client waits for a counter that clients on other threads change. Refuses to know limits but for their names.

use super::limits::Limit;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Workers with a line of their own. Further ones, and other threads, share one more.
const LINES: usize = 15;
/// Counts in a line.
const COUNTS: usize = 4;

/// What a client has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commands, those of transactions and scripts among them.
    pub operations: u64,
    /// The time that they took.
    pub busy_ns: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

impl Counts {
    fn numbers(self) -> [u64; COUNTS] {
        [self.operations, self.busy_ns, self.bytes_in, self.bytes_out]
    }
}

/// What a user takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Connections now.
    pub clients: u64,
    /// Bytes of their buffers and transactions now.
    pub memory: u64,
    pub counts: Counts,
    /// How often a client was delayed, and for how long.
    pub delays: u64,
    pub delayed_ms: u64,
    /// What was refused, by limit; for memory, connections that were closed too.
    pub refused: [u64; Limit::ALL.len()],
}

#[derive(Default)]
#[repr(align(64))]
struct Line([AtomicU64; COUNTS]);

/// Counters of a user. Those that change at a limit only are shared.
#[derive(Default)]
pub struct UsageCounters {
    lines: [Line; LINES + 1],
    delays: AtomicU64,
    delayed_ns: AtomicU64,
    refused: [AtomicU64; Limit::ALL.len()],
    /// The sums of `lines` when they were last reset. The lines themselves are never reset: their workers may be adding.
    before: [AtomicU64; COUNTS],
}

/// The number of a thread that is no worker.
pub const NO_WORKER: usize = usize::MAX;

impl UsageCounters {
    /// Adds what a client of this worker has taken. Only the worker's thread may call it.
    #[inline]
    pub fn add(&self, worker: usize, counts: &Counts) {
        let line = &self.lines[worker.min(LINES)].0;
        for (counter, by) in line.iter().zip(counts.numbers()) {
            match worker < LINES {
                // One thread writes it: a plain load and store is several times cheaper than an atomic addition.
                true => counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed),
                false => drop(counter.fetch_add(by, Relaxed)),
            }
        }
    }

    pub fn count_refused(&self, limit: Limit) {
        self.refused[limit as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn count_delay(&self) {
        self.delays.fetch_add(1, Relaxed);
    }

    pub(super) fn count_delayed_ns(&self, ns: u64) {
        self.delayed_ns.fetch_add(ns, Relaxed);
    }

    fn sums(&self) -> [u64; COUNTS] {
        std::array::from_fn(|at| self.lines.iter().fold(0, |sum: u64, line| sum.wrapping_add(line.0[at].load(Relaxed))))
    }

    pub(super) fn usage(&self, clients: u64, memory: u64) -> Usage {
        let sums = self.sums();
        let [operations, busy_ns, bytes_in, bytes_out] =
            std::array::from_fn(|at| sums[at].saturating_sub(self.before[at].load(Relaxed)));
        Usage {
            clients,
            memory,
            counts: Counts { operations, busy_ns, bytes_in, bytes_out },
            delays: self.delays.load(Relaxed),
            delayed_ms: self.delayed_ns.load(Relaxed) / 1_000_000,
            refused: std::array::from_fn(|at| self.refused[at].load(Relaxed)),
        }
    }

    /// Begins all totals anew.
    pub fn reset(&self) {
        self.before.iter().zip(self.sums()).for_each(|(before, sum)| before.store(sum, Relaxed));
        [&self.delays, &self.delayed_ns].into_iter().chain(&self.refused).for_each(|counter| counter.store(0, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_all_threads_are_added_up() {
        let counters = UsageCounters::default();
        let counts = Counts { operations: 1, busy_ns: 10, bytes_in: 100, bytes_out: 1000 };
        [0, 1, LINES - 1, LINES, 500, NO_WORKER].into_iter().for_each(|worker| counters.add(worker, &counts));
        let usage = counters.usage(2, 3);
        assert_eq!(usage.counts, Counts { operations: 6, busy_ns: 60, bytes_in: 600, bytes_out: 6000 });
        assert_eq!((usage.clients, usage.memory), (2, 3));
        counters.count_refused(Limit::Memory);
        counters.reset();
        assert_eq!(counters.usage(0, 0), Usage::default());
        counters.add(0, &counts);
        assert_eq!(counters.usage(0, 0).counts, counts);
    }
}
