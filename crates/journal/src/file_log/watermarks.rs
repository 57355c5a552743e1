//! Watermarks of the log: numbers that other threads read without a lock. The thread that moves one holds the lock of
//! what it counts; refuses to know that lock.
//!
//! A thread that sees a watermark sees all that was done before it was moved. `tests/interleavings` checks that.

use crate::sequence::Sequence;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(super) struct Watermarks {
    tail: AtomicU64,
    written: AtomicU64,
    durable: AtomicU64,
    has_failed: AtomicBool,
}

impl Watermarks {
    /// For a log all of which is synced.
    pub(super) fn new(reached: Sequence) -> Watermarks {
        let reached = || AtomicU64::new(reached.0);
        Watermarks { tail: reached(), written: reached(), durable: reached(), has_failed: AtomicBool::new(false) }
    }

    /// The last batch that was appended.
    #[inline]
    pub(super) fn tail(&self) -> Sequence {
        Sequence(self.tail.load(Ordering::Acquire))
    }

    /// The last batch that the operating system has.
    #[inline]
    pub(super) fn written(&self) -> Sequence {
        Sequence(self.written.load(Ordering::Acquire))
    }

    /// The last batch that is on disk.
    #[inline]
    pub(super) fn durable(&self) -> Sequence {
        Sequence(self.durable.load(Ordering::Acquire))
    }

    /// The log has failed, or waits for the snapshot of a restart.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn set_tail(&self, last: Sequence) {
        self.tail.store(last.0, Ordering::Release);
    }

    #[inline]
    pub(super) fn set_written(&self, last: Sequence) {
        self.written.store(last.0, Ordering::Release);
    }

    #[inline]
    pub(super) fn set_durable(&self, last: Sequence) {
        self.durable.store(last.0, Ordering::Release);
    }

    pub(super) fn fail(&self) {
        self.has_failed.store(true, Ordering::Release);
    }

    /// The log goes on behind `last`, and counts as failed until [`Watermarks::accept`].
    pub(super) fn restart(&self, last: Sequence) {
        self.set_tail(last);
        self.fail();
    }

    /// The snapshot of a restart is durable, and so is the log up to `durable`.
    pub(super) fn accept(&self, written: Sequence, durable: Sequence) {
        self.set_written(written);
        self.set_durable(durable);
        // IMPORTANT: last. A thread that sees that the log is sound sees its marks, too.
        self.has_failed.store(false, Ordering::Release);
    }
}
