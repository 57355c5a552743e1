//! How many workers carry the connections. Knows how busy workers are; refuses to know what they do.
//!
//! With one request per round trip, nearly all of a request's cost is the kernel's, and a worker that finds many
//! sockets ready at once spends less on each than two workers that find few. So connections gather on as few
//! workers as the load needs: a second worker joins when the first is busy, within a tenth of a second, and rests
//! again when the others could do its work for a while. Spreading connections evenly from the start costs half as
//! much CPU again per request on two cores when clients do not pipeline.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A worker is added when those at work are busier than this on average.
const BUSY: f64 = 0.85;
/// A worker is rested when the others would not be busier than this without it…
const CALM: f64 = 0.6;
/// …for so many ticks in a row.
const CALM_TICKS: u32 = 20;

/// How many workers are at work, the first ones. Shared by all.
pub(crate) struct AtWork(AtomicUsize);

impl AtWork {
    pub(crate) fn new() -> AtWork {
        AtWork(AtomicUsize::new(1))
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Relaxed)
    }

    pub(crate) fn set(&self, count: usize) {
        self.0.store(count, Relaxed);
    }
}

/// Decides, once a tick, how many workers should be at work.
#[derive(Default)]
pub(crate) struct Balance {
    calm_ticks: u32,
}

impl Balance {
    /// `busy` has the fraction of the last tick that each worker spent working; the first `at_work` count.
    pub(crate) fn decide(&mut self, busy: &[f64], at_work: usize) -> usize {
        let total: f64 = busy.iter().take(at_work).sum();
        let calm = at_work > 1 && total <= CALM * (at_work - 1) as f64;
        self.calm_ticks = if calm { self.calm_ticks + 1 } else { 0 };
        if total > BUSY * at_work as f64 && at_work < busy.len() {
            at_work + 1
        } else if self.calm_ticks >= CALM_TICKS {
            self.calm_ticks = 0;
            at_work - 1
        } else {
            at_work
        }
    }
}

/// How many of its connections a worker should give away, given how many each worker has.
pub(crate) fn surplus(index: usize, connections: &[usize], at_work: usize) -> usize {
    let own = connections[index];
    if index >= at_work {
        return own;
    }
    let fair = connections.iter().sum::<usize>().div_ceil(at_work);
    own.saturating_sub(fair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_worker_gets_help_at_once_and_a_calm_one_rests_after_a_while() {
        let mut balance = Balance::default();
        assert_eq!(balance.decide(&[0.5, 0.0], 1), 1);
        assert_eq!(balance.decide(&[0.95, 0.0], 1), 2);
        assert_eq!(balance.decide(&[0.95, 0.9], 2), 2, "there is no third");
        for _ in 1..CALM_TICKS {
            assert_eq!(balance.decide(&[0.3, 0.2], 2), 2);
        }
        assert_eq!(balance.decide(&[0.3, 0.2], 2), 1);
    }

    #[test]
    fn one_busy_tick_starts_the_wait_again() {
        let mut balance = Balance::default();
        for tick in 0..3 * CALM_TICKS {
            let busy = if tick % 5 == 0 { [0.5, 0.4] } else { [0.1, 0.1] };
            assert_eq!(balance.decide(&busy, 2), 2);
        }
    }

    #[test]
    fn connections_are_shared_evenly_among_those_at_work() {
        assert_eq!(surplus(0, &[50, 0], 2), 25);
        assert_eq!(surplus(1, &[25, 25], 2), 0);
        assert_eq!(surplus(1, &[25, 25], 1), 25);
        assert_eq!(surplus(0, &[25, 25], 1), 0);
        assert_eq!((surplus(0, &[2, 1], 2), surplus(0, &[1, 0], 2)), (0, 0));
    }
}
