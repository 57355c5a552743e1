//! A rate: how many takes there may be in a time. Knows numbers and points in time; refuses to know what is taken.
//!
//! It is the generic cell rate algorithm. The whole state is one point in time, up to which the takes so far have used
//! the rate up. Each take moves it on by a step, and a take is allowed while it is less than a burst ahead of now. So
//! in any `t` milliseconds there are at most `burst + t * takes / per_ms` takes.

/// At most so many takes in so many milliseconds, and so many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// At least 1.
    pub takes: u64,
    /// At least 1.
    pub per_ms: u64,
    /// At least 1.
    pub burst: u64,
}

/// The most takes, milliseconds and burst of a rate: a burst of steps fits into 64 bits of nanoseconds.
pub const RATE_MAX: u64 = 1_000_000_000;

const NS_PER_MS: u64 = 1_000_000;

impl Rate {
    /// The time that one take uses up, in nanoseconds, rounded up: a rate is never exceeded.
    fn step_ns(self) -> u64 {
        (self.per_ms * NS_PER_MS).div_ceil(self.takes)
    }

    /// The state as it counts now. After the clock was set back, or a slower rate was in force, it is cut, or nothing could be
    /// taken for as long.
    pub(super) fn used_up_to(self, until_ns: u64, now_ns: u64) -> u64 {
        until_ns.min(now_ns.saturating_add(self.step_ns().saturating_mul(self.burst)))
    }

    /// When the next take is allowed; not after `now_ns` if it is allowed now.
    pub fn allowed_at(self, until_ns: u64, now_ns: u64) -> u64 {
        self.used_up_to(until_ns, now_ns).saturating_sub(self.step_ns().saturating_mul(self.burst - 1))
    }

    /// The state after a take.
    pub fn after_take(self, until_ns: u64, now_ns: u64) -> u64 {
        self.used_up_to(until_ns, now_ns).max(now_ns).saturating_add(self.step_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    /// Takes as soon as it is allowed, from `now_ns` on. Returns the times of `count` takes.
    fn take_at_once(rate: Rate, mut now_ns: u64, count: usize) -> Vec<u64> {
        let mut until_ns = 0;
        (0..count)
            .map(|_| {
                now_ns = now_ns.max(rate.allowed_at(until_ns, now_ns));
                until_ns = rate.after_take(until_ns, now_ns);
                now_ns
            })
            .collect()
    }

    #[test]
    fn a_burst_comes_at_once_and_the_rest_step_by_step() {
        let rate = Rate { takes: 2, per_ms: 10, burst: 3 };
        let began = 5_000_000_000;
        let after: Vec<u64> = take_at_once(rate, began, 6).iter().map(|at| (at - began) / NS_PER_MS).collect();
        assert_eq!(after, [0, 0, 0, 5, 10, 15]);
    }

    #[test]
    fn no_window_has_more_than_its_bound() {
        let mut random = Random::new();
        for _ in 0..200 {
            let mut draw = |max: u64| 1 + random.below(max as usize) as u64;
            let rate = Rate { takes: draw(50), per_ms: draw(500), burst: draw(20) };
            let mut until_ns = 0;
            let mut now_ns = 1_763_172_000_000 * NS_PER_MS;
            let mut taken: Vec<u64> = Vec::new();
            for _ in 0..300 {
                now_ns += draw(20) * NS_PER_MS / 2;
                if rate.allowed_at(until_ns, now_ns) <= now_ns {
                    until_ns = rate.after_take(until_ns, now_ns);
                    taken.push(now_ns);
                }
            }
            for (at, first) in taken.iter().enumerate() {
                for (count, last) in (1_u128..).zip(&taken[at..]) {
                    let bound = u128::from(rate.burst)
                        + u128::from(last - first) * u128::from(rate.takes) / u128::from(rate.per_ms * NS_PER_MS);
                    assert!(count <= bound, "{rate:?}: {count} in {} ns", last - first);
                }
            }
        }
    }

    #[test]
    fn a_clock_that_was_set_back_costs_no_more_than_a_burst() {
        let rate = Rate { takes: 1, per_ms: 1000, burst: 2 };
        let until_ns = rate.after_take(0, 10_000_000 * NS_PER_MS);
        let now_ns = 1_000 * NS_PER_MS;
        assert_eq!(rate.allowed_at(until_ns, now_ns), now_ns + 1000 * NS_PER_MS);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let rate = Rate { takes: 1, per_ms: RATE_MAX, burst: RATE_MAX };
        let now_ns = 1_763_172_000_000 * NS_PER_MS;
        let until_ns = rate.after_take(u64::MAX, now_ns);
        assert!(rate.allowed_at(until_ns, now_ns) <= now_ns, "such a burst is no limit");
    }
}
