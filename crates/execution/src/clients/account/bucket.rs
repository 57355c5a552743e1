//! A token bucket: how much of something is left in this second. Knows one number; the time is passed in, in nanoseconds
//! of the monotonic clock.
//!
//! It holds one second's worth. What is taken beyond that is owed: nothing more is let in until it is paid back. So what
//! cannot be known before (how many bytes a reply has, how many commands a script calls) is taken afterwards.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub const SECOND_NS: u64 = 1_000_000_000;
/// How much time's worth a full bucket holds.
pub const BURST_NS: u64 = SECOND_NS;

/// A bucket. A new one is full.
#[derive(Default)]
pub struct Bucket {
    /// When the bucket is, or was, at zero: as much as flows in from then until now is in it. In the future, when something is
    /// owed.
    empty_ns: AtomicU64,
}

impl Bucket {
    /// Takes `amount` of something of which `rate` flow in each second; without a rate, nothing.
    pub fn take(&self, amount: u64, rate: u64, now_ns: u64) {
        if rate == 0 || amount == 0 {
            return;
        }
        // Rounded up: many small amounts must not be free.
        let cost_ns = (u128::from(amount) * u128::from(SECOND_NS)).div_ceil(u128::from(rate));
        let cost_ns = u64::try_from(cost_ns).unwrap_or(u64::MAX);
        let full_ns = now_ns.saturating_sub(BURST_NS);
        let take = |empty_ns: u64| Some(empty_ns.max(full_ns).saturating_add(cost_ns));
        let _ = self.empty_ns.fetch_update(Relaxed, Relaxed, take);
    }

    /// How long it takes until nothing is owed; 0 when nothing is.
    pub fn wait_ns(&self, now_ns: u64) -> u64 {
        self.empty_ns.load(Relaxed).saturating_sub(now_ns)
    }

    /// Fills it.
    pub fn fill(&self) {
        self.empty_ns.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_let_in_at_once_then_the_rate() {
        let (bucket, now_ns) = (Bucket::default(), 100 * SECOND_NS);
        (0..1000).for_each(|_| {
            assert_eq!(bucket.wait_ns(now_ns), 0);
            bucket.take(1, 1000, now_ns);
        });
        assert_eq!(bucket.wait_ns(now_ns), 0, "exactly empty");
        bucket.take(1, 1000, now_ns);
        assert_eq!((bucket.wait_ns(now_ns), bucket.wait_ns(now_ns + 1_000_000)), (1_000_000, 0));
    }

    #[test]
    fn what_is_owed_is_paid_back() {
        let bucket = Bucket::default();
        bucket.take(10_000, 1000, 100 * SECOND_NS);
        assert_eq!(bucket.wait_ns(100 * SECOND_NS), 9 * SECOND_NS);
        assert_eq!(bucket.wait_ns(109 * SECOND_NS), 0);
    }

    #[test]
    fn extremes_do_not_wrap_around() {
        let bucket = Bucket::default();
        bucket.take(u64::MAX, 1, 5);
        bucket.take(u64::MAX, 1, 5);
        assert_eq!(bucket.wait_ns(5), u64::MAX - 5);
        bucket.fill();
        bucket.take(1, u64::MAX, 5 * SECOND_NS);
        bucket.take(0, 1, 5 * SECOND_NS);
        bucket.take(7, 0, 5 * SECOND_NS);
        assert_eq!(bucket.wait_ns(5 * SECOND_NS), 0);
    }

    /// A bucket as one would draw it: so much is in it, in nanoseconds' worth, and it may be negative.
    struct Model {
        level: f64,
        at_ns: u64,
        rate: u64,
    }

    impl Model {
        fn see(&mut self, now_ns: u64) {
            let flowed_in = (now_ns - self.at_ns) as f64 / SECOND_NS as f64 * self.rate as f64;
            self.level = (self.level + flowed_in).min(self.rate as f64);
            self.at_ns = now_ns;
        }
    }

    #[test]
    fn it_does_what_the_model_does() {
        let mut random = test_random::Random::new();
        for _ in 0..200 {
            let rate = 1 << random.below(34);
            let rate = 1 + random.next() % rate;
            let start_ns = (2 + random.next() % 1_000_000) * SECOND_NS;
            let bucket = Bucket::default();
            let mut model = Model { level: rate as f64, at_ns: start_ns, rate };
            let (mut now_ns, mut taken, mut largest) = (start_ns, 0u64, 0u64);
            for _ in 0..300 {
                now_ns += match random.below(4) {
                    0 => 0,
                    1 => random.next() % 1000,
                    2 => random.next() % (SECOND_NS / 100),
                    _ => bucket.wait_ns(now_ns).min(60 * SECOND_NS),
                };
                model.see(now_ns);
                // Rounding: a nanosecond's worth for each time, and what a double of that size cannot hold.
                let slack = 301.0 * (rate as f64 / SECOND_NS as f64 + 1e-6 * (1.0 + rate as f64));
                match bucket.wait_ns(now_ns) {
                    0 => {
                        assert!(model.level > -slack, "let in at {}, rate {rate}", model.level);
                        let amount = 1 + random.next() % (rate / 4).max(2);
                        bucket.take(amount, rate, now_ns);
                        model.level -= amount as f64;
                        (taken, largest) = (taken + amount, largest.max(amount));
                    }
                    wait_ns => {
                        assert!(model.level < slack, "held back at {}, rate {rate}", model.level);
                        let owed = -model.level / rate as f64 * SECOND_NS as f64;
                        let tolerance = slack / rate as f64 * SECOND_NS as f64 + 1.0;
                        assert!((owed - wait_ns as f64).abs() <= tolerance, "{owed} {wait_ns}, rate {rate}");
                    }
                }
                // In any time: a burst of a second, what has flowed in, and one amount that was owed.
                let seconds = (now_ns - start_ns) as f64 / SECOND_NS as f64;
                assert!(taken as f64 <= rate as f64 * (seconds + 1.0) + largest as f64 + slack);
            }
        }
    }

    /// Clients that always want more get what the rate allows, and no less.
    #[test]
    fn demand_gets_the_whole_rate() {
        for rate in [1, 3, 7, 1000, 33_333, 1_000_000] {
            let (bucket, start_ns) = (Bucket::default(), 10 * SECOND_NS);
            let (mut now_ns, mut taken) = (start_ns, 0);
            let amount = 1 + rate / 50;
            while now_ns < start_ns + 20 * SECOND_NS {
                now_ns += bucket.wait_ns(now_ns);
                bucket.take(amount, rate, now_ns);
                taken += amount;
            }
            let allowed = rate * 21;
            assert!(taken >= allowed - allowed / 1000 && taken <= allowed + 2 * amount, "{rate}: {taken} of {allowed}");
        }
    }
}
