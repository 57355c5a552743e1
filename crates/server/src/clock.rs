//! The clocks of the machine, for the engine that may not look at them itself.

use std::time::{SystemTime, UNIX_EPOCH};

/// The system's time, and a monotonic clock read from the CPU where that is reliable: it is read once for every
/// command.
pub(crate) struct SystemClock {
    monotonic: quanta::Clock,
    started: quanta::Instant,
}

impl SystemClock {
    pub(crate) fn new() -> SystemClock {
        let monotonic = quanta::Clock::new();
        let started = monotonic.now();
        SystemClock { monotonic, started }
    }
}

impl engine::Clock for SystemClock {
    fn unix_us(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
    }

    #[inline]
    fn monotonic_ns(&self) -> u64 {
        self.monotonic.now().saturating_duration_since(self.started).as_nanos() as u64
    }
}
