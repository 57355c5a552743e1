//! How long a writer may answer, and how long a follower waits before it takes over. Knows the arithmetic; refuses to
//! know what is sent.

use std::time::Duration;

/// The times of the protocol.
///
/// A lease lasts from the moment at which a frame was first sent, once it is stored. A follower waits from the moment at
/// which it received the last frame, which is later. So the lease has ended before anybody else writes, as long as
/// `lease * (1 + e) < patience * (1 - e)` for clocks that err by the part `e`: with 3 and 3.5 seconds, 7 %.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long a writer may answer after it has sent a frame.
    pub lease: Duration,
    /// How long a follower waits since the last frame.
    pub patience: Duration,
    /// A writer sends a frame at least this often.
    pub beat: Duration,
    /// A frame that has no answer is sent again after this.
    pub resend: Duration,
    /// How long others wait before they take a log that was given to one of them.
    pub courtesy: Duration,
    /// How long a stream may have lost what it acknowledged before its writer believes it: a new leader of the stream may
    /// not have read all of its own files at first.
    pub lost_after: Duration,
}

impl Timing {
    pub const DEFAULT: Timing = Timing {
        lease: Duration::from_millis(3000),
        patience: Duration::from_millis(3500),
        beat: Duration::from_millis(500),
        resend: Duration::from_millis(400),
        courtesy: Duration::from_millis(1000),
        lost_after: Duration::from_secs(10),
    };

    pub(crate) fn lease_ns(&self) -> u64 {
        self.lease.as_nanos() as u64
    }

    pub(crate) fn lease_ms(&self) -> u64 {
        self.lease.as_millis() as u64
    }
}

/// True when `after` has passed since `since_ns`.
pub(crate) fn has_passed(now_ns: u64, since_ns: u64, after: Duration) -> bool {
    now_ns.saturating_sub(since_ns) >= after.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_before_anybody_else_writes_even_if_clocks_err_by_a_twentieth() {
        let Timing { lease, patience, beat, .. } = Timing::DEFAULT;
        assert!(lease.mul_f64(1.05) < patience.mul_f64(0.95));
        // Two beats may be lost before the lease ends.
        assert!(beat * 3 < lease);
    }
}
