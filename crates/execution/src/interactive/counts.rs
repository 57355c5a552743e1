//! Counts how interactive transactions have ended.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many interactive transactions have ended in each way. Workers count those that were committed.
#[derive(Default)]
pub struct EndedTransactions {
    /// Another client changed a key first, or a key expired.
    pub conflicts: AtomicU64,
    /// By the client, by the end of its connection, or because of a limit.
    pub rolled_back: AtomicU64,
    pub timed_out: AtomicU64,
}

impl EndedTransactions {
    /// Resets all counters (CONFIG RESETSTAT).
    pub fn reset(&self) {
        for count in [&self.conflicts, &self.rolled_back, &self.timed_out] {
            count.store(0, Relaxed);
        }
    }
}
