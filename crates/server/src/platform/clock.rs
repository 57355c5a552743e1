//! The clocks of the machine, for the engine, which reads none itself.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// The system's time and a monotonic clock. Both are read for every batch of requests and the second for every
/// command, so both come from the CPU's counter where that is reliable; how far unix time is ahead of it is
/// noted ten times a second.
pub(crate) struct SystemClock {
    monotonic: quanta::Clock,
    started: quanta::Instant,
    /// Unix nanoseconds at which the monotonic clock stood at zero.
    epoch_ns: AtomicU64,
    log: LogTime,
}

/// What a log that several machines write makes of the time, so that what has expired for one writer has expired for the
/// next, whatever their clocks say.
#[derive(Default)]
pub(crate) struct LogTime {
    mode: AtomicU8,
    /// The time of a follower; the latest time of a writer. Unix microseconds.
    ceiling_us: AtomicU64,
    /// The time of a writer is never before this and the monotonic clock.
    base_us: AtomicU64,
}

/// The values of [`LogTime::mode`]: the time is the machine's own; that of the last batch; the machine's within bounds.
const OWN: u8 = 0;
const FOLLOWS: u8 = 1;
const WRITES: u8 = 2;

impl LogTime {
    /// What the log makes of the machine's own time.
    #[inline]
    pub(crate) fn unix_us(&self, own_us: u64, monotonic_ns: u64) -> u64 {
        match self.mode.load(Relaxed) {
            OWN => own_us,
            mode => self.bound(mode, own_us, monotonic_ns),
        }
    }

    #[cold]
    fn bound(&self, mode: u8, own_us: u64, monotonic_ns: u64) -> u64 {
        let ceiling_us = self.ceiling_us.load(Relaxed);
        match mode {
            FOLLOWS => ceiling_us,
            _ => own_us.max(self.base_us.load(Relaxed) + monotonic_ns / 1000).min(ceiling_us),
        }
    }

    /// True for a writer whose time has come to the ceiling.
    #[inline]
    pub(crate) fn stands(&self, own_us: impl FnOnce() -> (u64, u64)) -> bool {
        self.mode.load(Relaxed) == WRITES && {
            let (own_us, monotonic_ns) = own_us();
            self.bound(WRITES, own_us, monotonic_ns) == self.ceiling_us.load(Relaxed)
        }
    }

    pub(crate) fn follow(&self, time_ms: u64) {
        self.ceiling_us.store(time_ms * 1000, Relaxed);
        self.mode.store(FOLLOWS, Relaxed);
    }

    pub(crate) fn begin(&self, monotonic_ns: u64, floor_ms: u64, ceiling_ms: u64) {
        self.base_us.store((floor_ms * 1000).saturating_sub(monotonic_ns / 1000), Relaxed);
        self.ceiling_us.store(ceiling_ms * 1000, Relaxed);
        self.mode.store(WRITES, Relaxed);
    }

    /// The log says this time: the writer's own never goes back behind it, even if the machine's calendar is set back. What
    /// has expired for a follower, or for the writer after this one, must not come back here.
    pub(crate) fn say(&self, unix_us: u64, monotonic_ns: u64) {
        if self.mode.load(Relaxed) == WRITES {
            self.base_us.fetch_max(unix_us.saturating_sub(monotonic_ns / 1000), Relaxed);
        }
    }

    pub(crate) fn allow(&self, ceiling_ms: u64) {
        self.ceiling_us.store(ceiling_ms * 1000, Relaxed);
    }
}

impl SystemClock {
    pub(crate) fn new() -> SystemClock {
        let monotonic = quanta::Clock::new();
        let started = monotonic.now();
        let clock = SystemClock { monotonic, started, epoch_ns: AtomicU64::new(0), log: LogTime::default() };
        engine::Clock::adjust(&clock);
        clock
    }

    /// The machine's own unix microseconds, and monotonic nanoseconds.
    #[inline]
    fn own(&self) -> (u64, u64) {
        let monotonic_ns = engine::Clock::monotonic_ns(self);
        ((self.epoch_ns.load(Relaxed) + monotonic_ns) / 1000, monotonic_ns)
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
        let (own_us, monotonic_ns) = self.own();
        (self.log.unix_us(own_us, monotonic_ns), monotonic_ns)
    }

    #[inline]
    fn stands(&self) -> bool {
        self.log.stands(|| self.own())
    }

    #[inline]
    fn monotonic_ns(&self) -> u64 {
        self.monotonic.now().saturating_duration_since(self.started).as_nanos() as u64
    }

    fn adjust(&self) {
        let unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        // IMPORTANT: before the clock follows a calendar that may have been set back.
        let (unix_us, monotonic_ns) = engine::Clock::both(self);
        self.log.say(unix_us, monotonic_ns);
        self.epoch_ns.store(unix_ns.saturating_sub(self.monotonic_ns()), Relaxed);
    }
}

impl jetstream::Time for SystemClock {
    fn now_ms(&self) -> u64 {
        let (unix_us, monotonic_ns) = engine::Clock::both(self);
        self.log.say(unix_us, monotonic_ns);
        unix_us / 1000
    }

    fn own_ms(&self) -> u64 {
        self.own().0 / 1000
    }

    fn follow(&self, time_ms: u64) {
        self.log.follow(time_ms);
    }

    fn begin(&self, floor_ms: u64, ceiling_ms: u64) {
        self.log.begin(engine::Clock::monotonic_ns(self), floor_ms, ceiling_ms);
    }

    fn allow(&self, ceiling_ms: u64) {
        self.log.allow(ceiling_ms);
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

    #[test]
    fn a_log_bounds_the_time_of_its_writer_and_gives_its_followers_their_time() {
        use jetstream::Time;
        let clock = SystemClock::new();
        let now_ms = clock.now_ms();
        clock.follow(5000);
        assert_eq!(clock.unix_us(), 5_000_000);
        // The writer before was an hour ahead.
        let ahead_ms = now_ms + 3_600_000;
        clock.begin(ahead_ms, ahead_ms + 60_000);
        assert!(clock.now_ms() >= ahead_ms && clock.now_ms() < ahead_ms + 60_000);
        assert!(!clock.stands());
        clock.allow(ahead_ms - 10);
        assert_eq!(clock.now_ms(), ahead_ms - 10);
        assert!(clock.stands());
        // The clock was ahead by an hour, and is set right: the log's time goes on from where it was.
        clock.begin(now_ms, now_ms + 60_000);
        clock.epoch_ns.fetch_add(3_600_000_000_000, Relaxed);
        assert_eq!(clock.now_ms(), now_ms + 60_000);
        clock.adjust();
        clock.allow(now_ms + 120_000);
        assert!(clock.now_ms() >= now_ms + 60_000 && clock.now_ms() < now_ms + 120_000);
        // A frame says a time, and the calendar is set back.
        let log = LogTime::default();
        log.begin(0, 1000, 9000);
        let said_us = log.unix_us(5_000_000, 0);
        log.say(said_us, 0);
        assert_eq!((said_us, log.unix_us(2_000_000, 1_000_000)), (5_000_000, 5_001_000));
        assert_eq!(log.unix_us(2_000_000, 60_000_000_000), 9_000_000, "not beyond the ceiling");
        // It was behind.
        clock.begin(now_ms - 3_600_000, now_ms + 60_000);
        assert!(clock.now_ms() >= now_ms);
    }
}
