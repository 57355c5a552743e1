//! Faults of a cluster: three NATS servers, two or three Holdfast servers that keep their log there, and clients that check,
//! after each fault and during it, that nothing acknowledged is lost, nothing refused has happened, and nothing that the
//! writer answers is old.
//!
//! The way through: [`run()`] goes from round to round; a `fault` is drawn from the seed of a round; `hosts`, `network`, `nats`,
//! `members` and `process` are what can break; the clients of the crash test load whichever server writes, beside `witness`, `appends`
//! and `waiters`.

mod appends;
mod fault;
mod hosts;
mod members;
mod nats;
mod network;
mod pace;
mod process;
mod round;
mod waiters;
mod witness;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use wire::Random;

pub use hosts::can_separate;
pub(crate) use members::Addresses;
pub(crate) use pace::Pace;
use round::{Cluster, Verdict};

/// What to run.
pub struct Plan {
    /// The binaries.
    pub server: PathBuf,
    pub nats: PathBuf,
    /// The library that gives a process a clock of its own; without it, clocks are left alone.
    pub faketime: Option<PathBuf>,
    pub rounds: u64,
    /// The seed of the first round; the next one has the next.
    pub seed: u64,
    pub clients: usize,
    /// Faults of this kind only.
    pub only: Option<String>,
    /// Faults last as long as they may in production.
    pub long: bool,
    /// A failed round does not end the run.
    pub keeps_going: bool,
    /// Each round has a cluster of its own.
    pub fresh: bool,
    /// Each process has a network of its own, and a cable that can be pulled.
    pub cables: bool,
}

/// Runs the plan. Returns how many rounds failed; what they left is kept.
pub fn run(plan: &Plan) -> usize {
    let work = std::env::temp_dir().join(format!("holdfast-faults-{}", std::process::id()));
    let (mut failures, mut refusals, mut cluster): (Vec<u64>, usize, Option<Cluster>) = (Vec::new(), 0, None);
    for seed in plan.seed..plan.seed + plan.rounds {
        let mut random = Random::new(mixed(seed));
        let faults = round::draw(&mut random, plan);
        let members = random.pick(&[2, 3, 3]);
        // Clocks are set wrong only where that is the fault: the library has faults of its own.
        let faketime = plan.faketime.as_deref().filter(|_| round::has_clocks(&faults));
        if random.one_in(8) || plan.fresh || faketime.is_some() {
            cluster = None;
        }
        let shown: Vec<String> = faults.iter().map(ToString::to_string).collect();
        println!("seed {seed}: {}", shown.join("; "));
        let began = Instant::now();
        let start = || Cluster::start(plan, faketime, members, &work.join(seed.to_string()));
        let running = cluster.take().map_or_else(start, Ok);
        let (found, dir) = match running {
            Ok(mut running) => {
                let found = running.round(seed, &faults, &mut random);
                let dir = running.dir.clone();
                // After these nothing is as it was.
                let goes_on = matches!(found, Ok(Verdict::Whole(_))) && !round::spoils(&faults);
                cluster = goes_on.then_some(running);
                (found, dir)
            }
            Err(what) => (Err(what), work.join(seed.to_string())),
        };
        let seconds = began.elapsed().as_secs();
        match found {
            Ok(Verdict::Whole(what)) => println!("seed {seed}: well after {seconds} s: {what}"),
            Ok(Verdict::Refused(what)) => {
                refusals += 1;
                println!("seed {seed}: refused after {seconds} s: {what}");
            }
            Err(what) => {
                failures.push(seed);
                println!("seed {seed}: FAILED after {seconds} s: {what}\nseed {seed}: files are in {}", dir.display());
                cluster = None;
            }
        }
        if cluster.is_none() && failures.last() != Some(&seed) {
            // A directory that cannot be removed does no harm.
            let _ = fs::remove_dir_all(dir);
        }
        if !failures.is_empty() && !plan.keeps_going {
            break;
        }
    }
    drop(cluster);
    if failures.is_empty() {
        let _ = fs::remove_dir_all(&work);
    }
    println!(
        "{} rounds: {refusals} refused by servers that noticed, {} failed {failures:?}",
        plan.rounds,
        failures.len()
    );
    failures.len()
}

/// Seeds are small numbers next to each other: SplitMix64 spreads them.
fn mixed(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
