//! Faults of a cluster by seed: command line in, [`crash::cluster::run()`] out.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use crash::cluster::{Plan, can_separate, run};

/// Breaks a cluster under load, and checks that nothing acknowledged is lost, nothing refused happens, and no answer is old.
#[derive(Parser)]
#[command(name = "scripts/cluster-faults")]
struct Args {
    /// How many rounds, of one or two faults each
    #[arg(long, value_name = "N", default_value_t = 60)]
    rounds: u64,

    /// The seed of the first round; each next round has the next one
    #[arg(long)]
    seed: Option<u64>,

    /// Clients with all families of commands
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=7))]
    clients: u8,

    /// Faults of one kind only: kill, pause, restart, all-nats-gone, partition, slow, acknowledgements, clock, full-disk, hand-over, purged, deleted or damaged
    #[arg(long, value_name = "KIND", value_parser = [
        "kill", "pause", "restart", "all-nats-gone", "partition", "slow", "acknowledgements", "clock", "full-disk", "hand-over", "purged",
        "deleted", "damaged",
    ])]
    only: Option<String>,

    /// Pauses of up to 20 seconds, and a minute without NATS
    #[arg(long)]
    long: bool,

    /// Go on after a round that failed
    #[arg(long)]
    keep_going: bool,

    /// A new cluster for each round
    #[arg(long)]
    fresh: bool,

    /// All processes share the loopback of this machine, also where each could have a network of its own
    #[arg(long)]
    no_cables: bool,

    /// The holdfast binary
    #[arg(long, value_name = "PATH", env = "HOLDFAST_BIN")]
    server: PathBuf,

    /// The nats-server binary
    #[arg(long, value_name = "PATH", env = "HOLDFAST_NATS_SERVER")]
    nats: PathBuf,

    /// libfaketime: without it, clocks are left alone
    #[arg(long, value_name = "PATH", env = "LIBFAKETIME")]
    faketime: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    let plan = Plan {
        server: args.server,
        nats: args.nats,
        faketime: args.faketime,
        rounds: args.rounds,
        // Short enough to type.
        seed: args.seed.unwrap_or(now.as_millis() as u64 % 1_000_000_000),
        clients: args.clients.into(),
        only: args.only,
        long: args.long,
        keeps_going: args.keep_going,
        fresh: args.fresh,
        cables: !args.no_cables && can_separate(),
    };
    println!("a round again: --seed SEED --rounds 1, with the same options");
    if run(&plan) == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
