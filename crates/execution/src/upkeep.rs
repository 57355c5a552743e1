//! Periodic work of the server as a whole. Refuses to know the timer that calls it.

use crate::engine::Engine;
use crate::observability::hot_keys::Moment;
use crate::{indexes, scripts, waiting};
use std::sync::atomic::Ordering::Relaxed;

/// Does periodic work, about ten times a second. The caller holds no lock.
pub fn tick(engine: &Engine) {
    indexes::tidy_rates(engine);
    sample(engine);
}

/// Samples counters and memory, and retries clean-ups that a lock had delayed. Also before they are shown: the caller may
/// hold every shard.
pub fn sample(engine: &Engine) {
    engine.watches.remove_orphaned(&engine.keyspace);
    waiting::queueing::remove_orphaned_waiters(engine);
    scripts::tidy::wake_to_tidy(engine);
    indexes::tidy_groups(engine);
    engine.clock.adjust();
    engine.hot_keys.end_if_over(&engine.monitors, || moment(engine));
    engine.statistics.sampler.note(engine.clock.monotonic_ns(), &engine.statistics.totals());
    engine.statistics.peak_memory.fetch_max(engine.host.used_memory(), Relaxed);
}

/// This instant, for what is measured from one to another.
pub fn moment(engine: &Engine) -> Moment {
    let (unix_us, monotonic_ns) = engine.clock.both();
    let (cpu, ms) = (engine.host.cpu(), |seconds: f64| (seconds * 1000.0) as u64);
    Moment {
        unix_ms: unix_us / 1000,
        monotonic_ms: monotonic_ns / 1_000_000,
        cpu_user_ms: ms(cpu.user),
        cpu_system_ms: ms(cpu.system),
    }
}
