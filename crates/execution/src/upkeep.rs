//! Periodic work of the server as a whole. Refuses to know the timer that calls it.

use crate::engine::Engine;
use crate::{scripts, waiting};
use std::sync::atomic::Ordering::Relaxed;

/// Does periodic work, about ten times a second: samples counters and memory, and retries clean-ups that a lock had
/// delayed.
pub fn sample(engine: &Engine) {
    engine.watches.remove_orphaned(&engine.keyspace);
    waiting::queueing::remove_orphaned_waiters(engine);
    scripts::tidy::wake_to_tidy(engine);
    engine.clock.adjust();
    engine.statistics.sampler.note(engine.clock.monotonic_ns(), &engine.statistics.totals());
    engine.statistics.peak_memory.fetch_max(engine.host.used_memory(), Relaxed);
}
