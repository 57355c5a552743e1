//! Counters of all workers together, and memory in use over time.

use super::key_counts::CountsOfWorker;
use super::latency::Histograms;
use super::stats::{Sampler, Totals, WorkerStats};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Counters that a worker writes and other threads may read.
pub struct WorkerMetrics {
    pub stats: WorkerStats,
    pub histograms: Histograms,
    /// What HOTKEYS counts.
    pub hot_keys: CountsOfWorker,
}

/// Counters of all workers, and memory in use.
pub struct Statistics {
    workers: Vec<Arc<WorkerMetrics>>,
    /// The number of commands.
    commands: usize,
    /// How busy the server is.
    pub sampler: Sampler,
    /// Unix milliseconds of the last CONFIG RESETSTAT.
    pub since_ms: AtomicU64,
    /// The peak of memory in use.
    pub peak_memory: AtomicU64,
    /// Memory in use before any data was loaded.
    pub startup_memory: AtomicU64,
}

/// The counters of one command, of all workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandTotals {
    pub calls: u64,
    pub ns: u64,
    pub rejected: u64,
    pub failed: u64,
}

impl WorkerMetrics {
    fn new(commands: usize) -> Arc<WorkerMetrics> {
        Arc::new(WorkerMetrics {
            stats: WorkerStats::new(commands),
            histograms: Histograms::new(commands),
            hot_keys: CountsOfWorker::default(),
        })
    }
}

impl Statistics {
    /// Counters for a thread whose work is not part of the statistics.
    pub fn uncounted(&self) -> Arc<WorkerMetrics> {
        WorkerMetrics::new(self.commands)
    }

    /// Creates statistics for so many commands and workers.
    pub fn new(commands: usize, workers: usize, now_ms: u64) -> Statistics {
        Statistics {
            workers: (0..workers.max(1)).map(|_| WorkerMetrics::new(commands)).collect(),
            commands,
            sampler: Sampler::default(),
            since_ms: AtomicU64::new(now_ms),
            peak_memory: AtomicU64::new(0),
            startup_memory: AtomicU64::new(0),
        }
    }

    /// Every worker's metrics.
    pub fn workers(&self) -> &[Arc<WorkerMetrics>] {
        &self.workers
    }

    /// The counters of all workers together.
    pub fn totals(&self) -> Totals {
        Totals::of(self.workers.iter().map(|metrics| &metrics.stats))
    }

    /// The counters of the command with this position in the table; `None` if it was never called.
    pub fn of_command(&self, index: usize) -> Option<CommandTotals> {
        let mut sum = CommandTotals::default();
        for metrics in &self.workers {
            let counters = &metrics.stats.commands[index];
            sum.calls += counters.calls.get();
            sum.ns += counters.ns.get();
            sum.rejected += counters.rejected.get();
            sum.failed += counters.failed.get();
        }
        (sum.calls + sum.rejected + sum.failed > 0).then_some(sum)
    }
}
