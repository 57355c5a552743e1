//! The clocks of the machine, for the engine, which reads none itself.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// The system's time and a monotonic clock. Both are read for every batch of requests and the second for every
/// command, so both come from the CPU's counter where that is reliable; how far unix time is ahead of it is
/// noted ten times a second.
pub(crate) struct SystemClock {
    monotonic: quanta::Clock,
    started: quanta::Instant,
    /// Unix nanoseconds at which the monotonic clock stood at zero.
    epoch_ns: AtomicU64,
}

impl SystemClock {
    pub(crate) fn new() -> SystemClock {
        let monotonic = quanta::Clock::new();
        let started = monotonic.now();
        let clock = SystemClock { monotonic, started, epoch_ns: AtomicU64::new(0) };
        engine::Clock::adjust(&clock);
        clock
    }
}

/// Seconds since 1970.
pub(crate) fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl engine::Clock for SystemClock {
    #[inline]
    fn unix_us(&self) -> u64 {
        self.both().0
    }

    #[inline]
    fn both(&self) -> (u64, u64) {
        let monotonic_ns = self.monotonic_ns();
        ((self.epoch_ns.load(Relaxed) + monotonic_ns) / 1000, monotonic_ns)
    }

    #[inline]
    fn monotonic_ns(&self) -> u64 {
        self.monotonic.now().saturating_duration_since(self.started).as_nanos() as u64
    }

    fn adjust(&self) {
        let unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        self.epoch_ns.store(unix_ns.saturating_sub(self.monotonic_ns()), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Clock;

    #[test]
    fn unix_time_is_the_systems() {
        let clock = SystemClock::new();
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
        assert!(clock.unix_us().abs_diff(before) < 1_000_000, "a second at the most, on the busiest machine");
        let first = clock.monotonic_ns();
        assert!(clock.monotonic_ns() >= first);
    }
}
