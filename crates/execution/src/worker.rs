//! The working state of a thread, kept from request to request, and its metrics. Refuses to know what a request does.

use crate::eviction::Candidates;
use crate::interactive::InteractiveTransaction;
use crate::observability::statistics::WorkerMetrics;
use crate::pending_batch::PendingBatch;
use crate::scripts::threads::SpareRun;
use crate::scripts::{LongScript, LuaState};
use resp::OwnedRequest;
use std::sync::Arc;

/// The working state of one thread.
pub struct Worker {
    pub metrics: Arc<WorkerMetrics>,
    pub random: fastrand::Rng,
    /// The instant that the requests being executed see, in unix milliseconds and microseconds.
    pub now_ms: u64,
    pub now_us: u64,
    /// This instant may be before the requests were sent: see [`Clock::stands`](crate::host::Clock::stands).
    pub time_stands: bool,
    /// Arguments of the current request that must not appear in SLOWLOG or MONITOR, such as passwords. Handlers add
    /// them.
    pub secrets: Vec<usize>,
    /// Effects and notifications that are not committed yet.
    pub batch: PendingBatch,
    /// Ended interactive transactions, kept for reuse of their memory.
    #[allow(clippy::vec_box, reason = "a client takes the box, not what is in it")]
    pub spare_transactions: Vec<Box<InteractiveTransaction>>,
    /// How many of its shards the current expiry cycle has not visited yet.
    pub(super) shards_to_expire: usize,
    /// Keys to evict next.
    pub candidates: Candidates,
    /// Created when the first script runs here.
    pub lua: Option<Box<LuaState>>,
    /// Buffers for requests and replies of scripts, kept for reuse.
    pub script_reply: Vec<u8>,
    pub script_request: OwnedRequest,
    /// A script runs: commands are executed on its behalf.
    pub in_script: bool,
    /// Its thread serves clients.
    pub serves_clients: bool,
    /// Its request runs on a fiber, and can leave this thread.
    pub is_on_fiber: bool,
    /// Its thread is a script thread, which serves no clients.
    pub is_script_thread: bool,
    /// Long scripts of the request that have ended; their locks are still held.
    pub ended_long: Vec<Arc<LongScript>>,
    /// A stack for the next request that may become long.
    pub spare_run: Option<SpareRun>,
    /// The script that has just ended answered with an error.
    pub script_has_failed: bool,
    /// A hook of a session runs.
    pub in_hook: bool,
    /// When the last command ended, which is when the next one starts.
    pub last_ns: u64,
    /// By how many nanoseconds unix time is ahead of the monotonic clock.
    pub(super) ahead_ns: u64,
}

impl Worker {
    /// True when long work must leave this thread and cannot yet ([`After::Detach`](super::context::After)).
    pub fn must_detach(&self) -> bool {
        self.serves_clients && !self.is_on_fiber && !self.is_script_thread
    }

    /// Takes over the instant of another worker.
    pub fn follow_time_of(&mut self, other: &Worker) {
        (self.now_ms, self.now_us) = (other.now_ms, other.now_us);
        (self.last_ns, self.ahead_ns) = (other.last_ns, other.ahead_ns);
        self.shards_to_expire = other.shards_to_expire;
    }

    /// The instant that the requests being executed see, on the monotonic clock.
    #[inline]
    pub fn monotonic_ms(&self) -> u64 {
        self.last_ns / 1_000_000
    }

    /// When the last command ended, on the monotonic clock; before the first command, when the batch of requests began.
    #[inline]
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Lets the next request see the instant at which the last one ended.
    #[inline]
    pub fn catch_up(&mut self) {
        self.see(self.last_ns);
    }

    /// Lets the following requests see this instant of the monotonic clock. Returns the instant seen before, in unix
    /// microseconds and milliseconds.
    #[inline]
    pub fn see(&mut self, monotonic_ns: u64) -> (u64, u64) {
        let before = (self.now_us, self.now_ms);
        self.now_us = monotonic_ns.wrapping_add(self.ahead_ns) / 1000;
        self.now_ms = self.now_us / 1000;
        before
    }
}
