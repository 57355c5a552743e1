//! Which walks over all keys are in progress. Refuses to know how one continues (`walk`).

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The walks in progress.
#[derive(Default)]
pub struct Walks {
    count: AtomicUsize,
    /// How often the parts of walks became useless.
    spoiled: AtomicUsize,
}

impl Walks {
    /// True while a walk is in progress.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(SeqCst) > 0
    }

    /// Counts one more walk. IMPORTANT: call it before the first lock is taken, so that every thread that changes a key
    /// after the walk has visited it finds the walk counted. Returns how many walks had been spoiled before.
    pub fn begin(&self) -> usize {
        self.count.fetch_add(1, SeqCst);
        self.spoiled()
    }

    pub fn end(&self) {
        self.count.fetch_sub(1, SeqCst);
    }

    /// Notes that a batch refers from one key to another during a walk: the parts of all walks so far are useless.
    /// Better than carrying a huge value in the batch.
    pub fn spoil(&self) {
        self.spoiled.fetch_add(1, SeqCst);
    }

    /// How often walks were spoiled.
    pub fn spoiled(&self) -> usize {
        self.spoiled.load(SeqCst)
    }
}
