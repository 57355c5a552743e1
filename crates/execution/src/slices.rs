//! Time slices: how long a command in slices runs before it yields. Refuses to know what it does meanwhile.

use crate::engine::Engine;
use keyspace::garbage::Garbage;

/// How long a command in slices keeps its thread, and the locks, at a time. A request of another client may have to
/// wait for two slices: the one during which it arrives, and the one before replies are sent.
pub const SLICE_NS: u64 = 250_000;
/// Records visited between two checks of the clock.
pub const RECORDS_PER_LOOK: usize = 32;

/// The time for which a command in slices may run before it yields.
#[derive(Clone, Copy)]
pub struct TimeSlice<'a> {
    engine: &'a Engine,
    until_ns: u64,
}

impl<'a> TimeSlice<'a> {
    /// A slice that begins now.
    pub fn begin(engine: &'a Engine) -> TimeSlice<'a> {
        TimeSlice { engine, until_ns: engine.clock.monotonic_ns() + SLICE_NS }
    }

    pub fn is_over(&self) -> bool {
        self.engine.clock.monotonic_ns() >= self.until_ns
    }

    /// Frees a large value on another thread.
    pub fn free(&self, large: impl Send + 'static) {
        self.engine.free(Garbage::of(large));
    }
}

/// A [`TimeSlice`] that begins at the first call of `is_over`. For commands that are mostly done before the clock is
/// read.
pub struct LazyTimeSlice<'a> {
    engine: &'a Engine,
    until_ns: Option<u64>,
}

impl<'a> LazyTimeSlice<'a> {
    pub fn new(engine: &'a Engine) -> LazyTimeSlice<'a> {
        LazyTimeSlice { engine, until_ns: None }
    }

    pub fn is_over(&mut self) -> bool {
        let now_ns = self.engine.clock.monotonic_ns();
        now_ns >= *self.until_ns.get_or_insert(now_ns + SLICE_NS)
    }
}
