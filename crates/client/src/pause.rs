//! The pause before a retry. Knows how it is randomized; refuses to know what is retried.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// From half of the longest pause to all of it: clients that have failed at the same moment spread out.
pub(crate) fn randomized(longest: Duration) -> Duration {
    let part = f64::from(RandomState::new().hash_one(0) as u32) / f64::from(u32::MAX);
    longest / 2 + longest.mul_f64(part) / 2
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_pause_is_at_least_half_of_the_longest_and_differs() {
        let longest = Duration::from_secs(1);
        let pauses: BTreeSet<Duration> = (0..50).map(|_| randomized(longest)).collect();
        assert!(pauses.iter().all(|pause| (longest / 2..=longest).contains(pause)), "{pauses:?}");
        assert!(pauses.len() > 1, "{pauses:?}");
        assert_eq!(randomized(Duration::ZERO), Duration::ZERO);
    }
}
