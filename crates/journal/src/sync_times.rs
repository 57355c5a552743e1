//! How long syncs take: a histogram with one writer and many readers. Knows durations; refuses to know files and networks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The bounds of [`SyncTimes`] in nanoseconds: powers of two from 66 microseconds to 8.6 seconds.
pub const SYNC_BOUNDS_NS: [u64; 18] = {
    let mut bounds = [0; 18];
    let mut at = 0;
    while at < bounds.len() {
        bounds[at] = 1 << (16 + at);
        at += 1;
    }
    bounds
};

/// How long the syncs of a log took since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncTimes {
    /// How many took at most as long as each of [`SYNC_BOUNDS_NS`].
    pub at_most: [u64; SYNC_BOUNDS_NS.len()],
    pub count: u64,
    pub sum_ns: u64,
}

/// Counts of the syncs of one log.
#[derive(Default)]
pub struct SyncHistogram {
    /// Those that took at most as long as each bound, and longer than the one before.
    within: [AtomicU64; SYNC_BOUNDS_NS.len()],
    count: AtomicU64,
    sum_ns: AtomicU64,
}

impl SyncHistogram {
    /// Counts a sync.
    pub fn add(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bound = SYNC_BOUNDS_NS.partition_point(|bound_ns| *bound_ns < ns);
        if let Some(within) = self.within.get(bound) {
            within.fetch_add(1, Relaxed);
        }
        self.sum_ns.fetch_add(ns, Relaxed);
        // The last: a reader that comes in between sees no sync in a bound that the count lacks by more than one.
        self.count.fetch_add(1, Relaxed);
    }

    /// What was counted so far.
    pub fn read(&self) -> SyncTimes {
        let mut seen = 0;
        let at_most = std::array::from_fn(|bound| {
            seen += self.within[bound].load(Relaxed);
            seen
        });
        // Never fewer than the bounds say, which would be no histogram.
        SyncTimes { at_most, count: self.count.load(Relaxed).max(seen), sum_ns: self.sum_ns.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_counts_in_all_bounds_that_it_does_not_exceed() {
        let histogram = SyncHistogram::default();
        assert_eq!(histogram.read(), SyncTimes::default());
        let first = SYNC_BOUNDS_NS[0];
        for ns in [0, first, first + 1, SYNC_BOUNDS_NS[3], u64::MAX / 4] {
            histogram.add(Duration::from_nanos(ns));
        }
        let times = histogram.read();
        assert_eq!(times.at_most[..5], [2, 3, 3, 4, 4]);
        assert_eq!((times.at_most.last(), times.count), (Some(&4), 5));
        assert_eq!(times.sum_ns, 2 * first + 1 + SYNC_BOUNDS_NS[3] + u64::MAX / 4);
    }
}
