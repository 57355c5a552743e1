//! How many workers carry the connections. Knows how busy workers are; refuses to know what they do.
//!
//! With one request per round trip, nearly all of a request's cost is the kernel's, and a worker that finds many
//! sockets ready at once spends less on each than two workers that find few. So connections gather on as few workers as
//! the load needs. Another worker joins when those at work are busy and the machine has a core for it. It rests again
//! when the others could do its work for a while, or when other processes need the core: two workers on one core do
//! less together than one of them alone.

use crate::platform::usage::Ticks;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A worker is added when those at work are busier than this on average.
const BUSY: f64 = 0.85;
/// A worker is rested when the others would not be busier than this without it…
const CALM: f64 = 0.6;
/// …for so many ticks in a row.
const CALM_TICKS: u32 = 20;
/// For so many ticks the workers must be busy before another joins, or crowded before one rests: as long as it takes to
/// measure the available cores.
const SURE_TICKS: u32 = CORE_SAMPLES as u32;

/// The number of workers at work, which are the first ones. Shared by all.
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

/// A worker joins when the machine has this much of a core free for it, besides what those at work use…
const ROOM_TO_JOIN: f64 = 0.75;
/// …and rests when other processes take this much of its core.
const ROOM_LOST: f64 = 0.6;

/// Decides, once a tick, how many workers should be at work.
#[derive(Default)]
pub(crate) struct Balance {
    calm_ticks: u32,
    busy_ticks: u32,
    crowded_ticks: u32,
}

impl Balance {
    /// Returns how many workers should be at work. `busy` has the fraction of the last tick that each worker spent
    /// working; the first `at_work` count. `cores` are those that other processes leave to this one.
    pub(crate) fn decide(&mut self, busy: &[f64], at_work: usize, cores: f64) -> usize {
        let total: f64 = busy.iter().take(at_work).sum();
        let count = |ticks: u32, condition: bool| if condition { ticks + 1 } else { 0 };
        self.busy_ticks = count(self.busy_ticks, total > BUSY * at_work as f64);
        self.crowded_ticks = count(self.crowded_ticks, cores < at_work as f64 - ROOM_LOST);
        self.calm_ticks = count(self.calm_ticks, total <= CALM * (at_work - 1) as f64);
        let has_room = cores >= at_work as f64 + ROOM_TO_JOIN;
        let decided = if self.busy_ticks >= SURE_TICKS && has_room && at_work < busy.len() {
            at_work + 1
        } else if at_work > 1 && (self.calm_ticks >= CALM_TICKS || self.crowded_ticks >= SURE_TICKS) {
            at_work - 1
        } else {
            at_work
        };
        if decided != at_work {
            *self = Balance::default();
        }
        decided
    }
}

/// How many cores other processes leave to this one, from the kernel's tick counts of the last half second.
pub(crate) struct Cores {
    count: f64,
    /// Oldest first.
    samples: VecDeque<Ticks>,
}

/// Ticks of the balance over which cores are counted.
const CORE_SAMPLES: usize = 5;

impl Cores {
    pub(crate) fn new(count: usize) -> Cores {
        Cores { count: count as f64, samples: VecDeque::with_capacity(CORE_SAMPLES + 1) }
    }

    /// Adds a reading and returns how many cores are available to this process. Until there are enough readings, all
    /// cores count as available.
    pub(crate) fn available(&mut self, now: Ticks) -> f64 {
        self.samples.push_back(now);
        if self.samples.len() <= CORE_SAMPLES {
            return self.count;
        }
        let before = self.samples.pop_front().unwrap_or_default();
        let all = now.all.saturating_sub(before.all).max(1) as f64;
        let others = now.busy.saturating_sub(before.busy).saturating_sub(now.own.saturating_sub(before.own));
        self.count * (1.0 - others as f64 / all)
    }
}

/// How many connections a worker should give away, given how many each worker has.
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
    fn a_busy_worker_gets_help_soon_and_a_calm_one_rests_after_a_while() {
        let mut balance = Balance::default();
        assert_eq!(balance.decide(&[0.5, 0.0], 1, 2.0), 1);
        for _ in 1..SURE_TICKS {
            assert_eq!(balance.decide(&[0.95, 0.0], 1, 2.0), 1);
        }
        assert_eq!(balance.decide(&[0.95, 0.0], 1, 2.0), 2);
        assert_eq!(balance.decide(&[0.95, 0.9], 2, 2.0), 2, "there is no third");
        for _ in 1..CALM_TICKS {
            assert_eq!(balance.decide(&[0.3, 0.2], 2, 2.0), 2);
        }
        assert_eq!(balance.decide(&[0.3, 0.2], 2, 2.0), 1);
    }

    #[test]
    fn one_busy_tick_starts_the_wait_again() {
        let mut balance = Balance::default();
        for tick in 0..3 * CALM_TICKS {
            let busy = if tick % 5 == 0 { [0.5, 0.4] } else { [0.1, 0.1] };
            assert_eq!(balance.decide(&busy, 2, 2.0), 2);
        }
    }

    #[test]
    fn no_worker_joins_where_other_processes_have_the_core_and_a_crowded_one_rests() {
        let mut balance = Balance::default();
        for _ in 0..2 * SURE_TICKS {
            assert_eq!(balance.decide(&[1.0, 0.0], 1, 1.1), 1);
        }
        for _ in 1..SURE_TICKS {
            assert_eq!(balance.decide(&[1.0, 1.0], 2, 1.2), 2);
        }
        assert_eq!(balance.decide(&[1.0, 1.0], 2, 1.2), 1);
    }

    #[test]
    fn cores_are_those_that_other_processes_leave() {
        let mut cores = Cores::new(2);
        for tick in 0..CORE_SAMPLES as u64 {
            assert_eq!(
                cores.available(Ticks { all: tick * 20, busy: tick * 19, own: tick * 10 }),
                2.0,
                "not known yet"
            );
        }
        let tick = CORE_SAMPLES as u64;
        let available = cores.available(Ticks { all: tick * 20, busy: tick * 19, own: tick * 10 });
        assert!((available - 1.1).abs() < 0.01, "{available}");
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
