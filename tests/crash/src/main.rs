//! The long form of the crash test: command line in, [`crash::run`] out.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Parser, ValueEnum};
use crash::{Plan, Policy};

/// Kills a server under load, starts it again, and checks that nothing acknowledged is lost.
#[derive(Parser)]
#[command(name = "scripts/crash")]
struct Args {
    /// How often to kill or stop the server under load
    #[arg(long, value_name = "N", default_value_t = 200)]
    rounds: usize,

    /// The seed of all random choices, as a failing run printed it
    #[arg(long)]
    seed: Option<u64>,

    /// Clients at once
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u8).range(1..))]
    clients: u8,

    /// The binary to test: a holdfast or a redis-server
    #[arg(long, value_name = "PATH", env = "HOLDFAST_BIN")]
    server: PathBuf,

    /// The server's appendfsync
    #[arg(long, value_enum, default_value = "mixed")]
    policy: PolicyName,

    /// Keys that make snapshots and starts take longer
    #[arg(long, value_name = "N", default_value_t = 30_000)]
    ballast: usize,

    /// A second server follows the first and takes over, again and again
    #[arg(long)]
    followers: bool,

    /// The most batches sent and replies received in a round
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    ticks: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum PolicyName {
    Always,
    Everysec,
    No,
    /// One of the three for each start
    Mixed,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let plan = Plan {
        server: args.server,
        rounds: args.rounds,
        seed: args.seed.unwrap_or_else(seed_from_clock),
        clients: args.clients.into(),
        policy: match args.policy {
            PolicyName::Always => Policy::Always,
            PolicyName::Everysec => Policy::Everysec,
            PolicyName::No => Policy::No,
            PolicyName::Mixed => Policy::Mixed,
        },
        ballast_keys: args.ballast.max(1),
        ticks_max: args.ticks.max(1),
        followers: args.followers,
    };
    println!("to run this again: --seed {}, with the same options", plan.seed);
    match crash::run(&plan) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("crash: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn seed_from_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    // Short enough to type.
    now.as_micros() as u64 % 1_000_000_000
}
