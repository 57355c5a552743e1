//! Servers that share a log on a stream, under simulation: they take over when a writer is silent, hand over, are stopped,
//! cut off, killed and started again, while the network loses, delays, repeats and reorders. Random numbers choose every
//! step, on one thread: a seed gives the same simulation each time. Engines, keepers, role threads and the whole protocol are
//! real; the stream, the objects, the clocks and the network are `jetstream::simulation`'s.
//!
//! What must hold: a change that was acknowledged is in the log, and happened, once; one that was refused did not happen; a
//! read of a server that writes sees all that was acknowledged or read before; a read of a follower sees a prefix; a key
//! that has expired does not come back; no two processes write in one epoch; in the end all servers have the same data.
//!
//! `HOLDFAST_TEST_SEED` runs one simulation again and prints what happens, `HOLDFAST_TEST_SEEDS=from..to` a range.

mod checks;
mod server;
mod simulation;

use jetstream::simulation::Mutation;
use simulation::{Broken, Focus, Plan, Summary, simulate};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// So many simulations, each time with other seeds.
const SIMULATIONS: u64 = 150;
const STEPS: usize = 250;

struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("run it again with HOLDFAST_TEST_SEED={}", self.0);
        }
    }
}

fn run(seed: u64, is_traced: bool) -> Summary {
    let _named = SeedOnPanic(seed);
    simulate(Plan { is_traced, ..Plan::of(seed, STEPS) })
}

/// The seeds that the environment asks for.
fn seeds() -> Range<u64> {
    let number = |text: &str| text.parse().expect("a seed is a number");
    if let Ok(seed) = std::env::var("HOLDFAST_TEST_SEED") {
        let seed = number(&seed);
        return seed..seed + 1;
    }
    match std::env::var("HOLDFAST_TEST_SEEDS") {
        Ok(range) => {
            let (from, to) = range.split_once("..").expect("HOLDFAST_TEST_SEEDS is from..to");
            number(from)..number(to)
        }
        Err(_) => {
            let first = fastrand::u64(..1 << 32);
            first..first + SIMULATIONS
        }
    }
}

#[test]
fn servers_that_share_a_stream_keep_their_promises_whatever_happens() {
    let seeds = seeds();
    let count = seeds.end - seeds.start;
    // Each simulation is on one thread. Which one that is makes no difference.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(seeds.start);
    let run_some = || -> Vec<Summary> {
        let chosen = std::iter::repeat_with(|| next.fetch_add(1, Relaxed)).take_while(|seed| *seed < seeds.end);
        chosen.map(|seed| run(seed, count == 1)).collect()
    };
    let summaries: Vec<Summary> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run_some)).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("all of it holds")).collect()
    });
    let mut all = Summary::default();
    for summary in summaries {
        all.epochs += summary.epochs;
        all.acknowledged += summary.acknowledged;
        all.writer_reads += summary.writer_reads;
        all.snapshots += summary.snapshots;
        all.purged += summary.purged;
    }
    println!("{count} simulations: {all:?}");
    if count > 100 {
        // Otherwise it shows nothing.
        let count = count as usize;
        assert!(all.epochs > 2 * count && all.acknowledged > 10 * count && all.writer_reads > 5 * count, "{all:?}");
        assert!(2 * all.snapshots > count && 2 * all.purged > count as u64, "{all:?}");
    }
}

#[test]
fn a_seed_gives_the_same_simulation_each_time() {
    for seed in seeds().take(5) {
        assert_eq!(run(seed, false).fingerprint, run(seed, false).fingerprint, "seed {seed}");
    }
}

/// Runs simulations with a broken rule. True if one of them notices it.
fn is_noticed(broken: Broken, seeds: Range<u64>) -> bool {
    seeds.into_iter().any(|seed| {
        // Two attempts can only be taken for the same where nothing else tells their servers apart.
        let are_alike = broken == Broken::FixedNonce || Plan::of(seed, STEPS).are_alike;
        let usual = Plan::of(seed, STEPS);
        let focus = match broken {
            Broken::NoLease | Broken::Protocol(Mutation::LeaseFromAnswer | Mutation::LeaseFromResend) => {
                Some(Focus::Lease)
            }
            Broken::TimeIgnoresCeiling => Some(Focus::Expiry),
            _ => usual.focus,
        };
        let plan = Plan { broken: Some(broken), are_alike, confirms_reads: false, focus, ..usual };
        let noticed = catch_unwind(AssertUnwindSafe(|| simulate(plan))).is_err();
        if noticed {
            println!("{broken:?} is noticed with seed {seed}");
        }
        noticed
    })
}

/// A test that a rule is needed: without it, something that must hold does not.
macro_rules! broken_rules {
    ($($name:ident: $broken:expr;)*) => {
        mod without {
            use super::*;
            $(
                #[test]
                fn $name() {
                    assert!(is_noticed($broken, MUTATED_SEEDS), "nothing notices it");
                }
            )*
        }
    };
}

/// In how many simulations a broken rule has to be noticed.
const MUTATED_SEEDS: Range<u64> = 0..500;

broken_rules! {
    a_lease_from_the_first_attempt_when_it_is_from_the_answer: Broken::Protocol(Mutation::LeaseFromAnswer);
    a_lease_from_the_first_attempt_when_it_is_from_the_last: Broken::Protocol(Mutation::LeaseFromResend);
    replies_that_wait_for_the_lease: Broken::NoLease;
    acknowledgements_of_what_is_stored: Broken::AcknowledgedWhenSent;
    a_nonce_of_each_attempt: Broken::FixedNonce;
    an_epoch_that_begins_behind_what_is_applied: Broken::Protocol(Mutation::EpochBehindUnapplied);
    the_last_piece_of_a_batch: Broken::Protocol(Mutation::FirstPieceCounts);
    the_ceiling_of_the_writer_before: Broken::TimeIgnoresCeiling;
    the_state_of_the_log_after_a_fence: Broken::Protocol(Mutation::FencedKeepsState);
    a_comparison_of_whole_frames: Broken::Protocol(Mutation::ComparedByEpoch);
    batches_that_are_stored_before_their_snapshot: Broken::Protocol(Mutation::SnapshotBeforeBatches);
}
