//! When clients send: all the time, not for a while, or never again. Knows nothing of what they send.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

pub(crate) struct Pace {
    is_over: AtomicBool,
    is_held: AtomicBool,
    avoided: AtomicUsize,
}

/// No server has this number.
const NONE: usize = usize::MAX;

impl Default for Pace {
    fn default() -> Pace {
        Pace { is_over: AtomicBool::new(false), is_held: AtomicBool::new(false), avoided: AtomicUsize::new(NONE) }
    }
}

impl Pace {
    /// Nothing is written on this server, even if it says that it writes.
    pub(crate) fn avoid(&self, server: Option<usize>) {
        self.avoided.store(server.unwrap_or(NONE), Ordering::SeqCst);
    }

    pub(crate) fn is_avoided(&self, server: usize) -> bool {
        self.avoided.load(Ordering::SeqCst) == server
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Writes are held back, or no longer.
    pub(crate) fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::SeqCst);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Waits until a client may write. False when it is over.
    pub(crate) fn may_write(&self) -> bool {
        while self.is_held.load(Ordering::SeqCst) && !self.is_over() {
            thread::sleep(Duration::from_millis(10));
        }
        !self.is_over()
    }
}
