//! How long the runs of a program take, as far as they tell: where the next one may run. Knows no clock and no program.
//!
//! What is not bounded may run for ever, and so belongs on the script thread; but most such programs are quick, and two changes of
//! threads take longer than they do. One that has been quick for a while runs where its client is served. When it takes long after
//! all, it is given up and begun again on the script thread, if it has done nothing yet but read.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A run that takes no longer is quick.
const QUICK_NS: u64 = 250_000;
/// A run that takes longer where its client is served is given up if it can be.
pub(crate) const GIVEN_UP_NS: u64 = 1_000_000;
/// So many more quick runs than slow ones make a program quick; each time that a run is given up, twice as many.
const QUICK_RUNS: u32 = 16;
const DOUBLED_MAX: u32 = 10;
/// A slow run counts for so many quick ones: on a busy machine any may be slow now and then.
const SLOW_COUNTS: u32 = 8;
/// Runs beyond this many times what is needed are not remembered.
const REMEMBERED_TIMES: u32 = 4;

/// What is known of the runs of a program that is not bounded.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    quick_runs: AtomicU32,
    given_up: AtomicU32,
}

impl Pace {
    pub(crate) fn is_quick(&self) -> bool {
        self.quick_runs.load(Relaxed) >= self.needed()
    }

    fn needed(&self) -> u32 {
        QUICK_RUNS << self.given_up.load(Relaxed).min(DOUBLED_MAX)
    }

    /// Notes how long a run took that has ended.
    pub(crate) fn note(&self, took_ns: u64) {
        // Two threads at once may lose a run.
        let runs = self.quick_runs.load(Relaxed);
        let next = match took_ns <= QUICK_NS {
            true => (runs + 1).min(self.needed() * REMEMBERED_TIMES),
            false => runs.saturating_sub(SLOW_COUNTS),
        };
        if next != runs {
            self.quick_runs.store(next, Relaxed);
        }
    }

    /// Notes a run that took too long where its client is served.
    pub(crate) fn note_given_up(&self) {
        self.quick_runs.store(0, Relaxed);
        self.given_up.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(pace: &Pace, times: u32, took_ns: u64) {
        (0..times).for_each(|_| pace.note(took_ns));
    }

    #[test]
    fn quick_runs_make_a_program_quick_and_slow_ones_unmake_it() {
        let pace = Pace::default();
        run(&pace, QUICK_RUNS - 1, 1);
        assert!(!pace.is_quick());
        run(&pace, 1, QUICK_NS);
        assert!(pace.is_quick());
        run(&pace, 1, QUICK_NS + 1);
        assert!(!pace.is_quick());
        run(&pace, 10_000, 1);
        run(&pace, 3, u64::MAX);
        assert!(pace.is_quick(), "one that is slow now and then stays quick");
        run(&pace, 100, u64::MAX);
        run(&pace, QUICK_RUNS - 1, 1);
        assert!(!pace.is_quick());
    }

    #[test]
    fn each_run_that_is_given_up_makes_it_harder() {
        let pace = Pace::default();
        let mut needed = QUICK_RUNS;
        for _ in 0..5 {
            run(&pace, needed - 1, 1);
            assert!(!pace.is_quick());
            run(&pace, 1, 1);
            assert!(pace.is_quick());
            pace.note_given_up();
            needed *= 2;
        }
        (0..100).for_each(|_| pace.note_given_up());
        run(&pace, QUICK_RUNS << DOUBLED_MAX, 1);
        assert!(pace.is_quick());
    }
}
