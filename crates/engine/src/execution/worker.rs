//! What a worker thread carries from request to request, and its books. Refuses to know what a request does.

use crate::execution::commit::PendingBatch;
use crate::execution::eviction::Candidates;
use crate::execution::interactive::InteractiveTransaction;
use crate::execution::scripts::LuaState;
use crate::observability::latency::Histograms;
use crate::observability::stats::WorkerStats;
use resp::OwnedRequest;
use std::sync::Arc;

/// Counters that a worker writes and other threads may read.
pub struct WorkerBooks {
    pub stats: WorkerStats,
    pub histograms: Histograms,
}

/// What one worker thread carries from request to request.
pub struct Worker {
    pub books: Arc<WorkerBooks>,
    pub random: fastrand::Rng,
    /// The instant that the requests being executed see, in unix milliseconds and microseconds.
    pub now_ms: u64,
    pub now_us: u64,
    /// Arguments of the current request that must not appear in SLOWLOG or MONITOR, such as passwords. Handlers add
    /// them.
    pub secrets: Vec<usize>,
    /// Effects and notifications that are not committed yet.
    pub(crate) batch: PendingBatch,
    /// Interactive transactions that have ended, kept for their memory.
    #[allow(clippy::vec_box, reason = "a client takes the box, not what is in it")]
    pub(crate) spare_transactions: Vec<Box<InteractiveTransaction>>,
    /// How many of its shards the expiry cycle has not come to yet.
    pub(super) shards_to_expire: usize,
    /// Keys to remove next when room is needed.
    pub(crate) candidates: Candidates,
    /// Made when the first script runs here.
    pub(crate) lua: Option<Box<LuaState>>,
    /// Buffers for what scripts ask and answer, kept for their memory.
    pub(crate) script_reply: Vec<u8>,
    pub(crate) script_request: OwnedRequest,
    /// A script runs: commands are executed on its behalf.
    pub(crate) in_script: bool,
    /// It is that of the script thread.
    pub(crate) is_script_thread: bool,
    /// The script that has just ended answered with an error.
    pub(crate) script_has_failed: bool,
    /// A function is called because of what becomes of a session.
    pub(crate) in_hook: bool,
    /// When the last command ended: where the next one's time begins.
    pub(crate) last_ns: u64,
    /// How far unix time is ahead of the monotonic clock, in nanoseconds.
    pub(super) ahead_ns: u64,
}

impl Worker {
    /// The instant that the requests being executed see, on the monotonic clock.
    #[inline]
    pub fn monotonic_ms(&self) -> u64 {
        self.last_ns / 1_000_000
    }

    /// The next request sees the instant at which the last one ended.
    #[inline]
    pub(crate) fn catch_up(&mut self) {
        self.now_us = self.last_ns.wrapping_add(self.ahead_ns) / 1000;
        self.now_ms = self.now_us / 1000;
    }
}
