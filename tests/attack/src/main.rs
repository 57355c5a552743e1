//! The long form of the attack: command line in, [`attack::run`] out.

#![forbid(unsafe_code)]

use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use attack::Plan;
use clap::Parser;

/// Sends random requests, made from the server's own command table, and checks that it lives and answers.
#[derive(Parser)]
#[command(name = "scripts/attack")]
struct Args {
    /// How long
    #[arg(long, value_name = "N", default_value_t = 300)]
    seconds: u64,

    /// The seed of all random choices, as a failing run printed it
    #[arg(long)]
    seed: Option<u64>,

    /// A server that is already running, with DEBUG allowed; its data is lost
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_address)]
    addr: Option<SocketAddr>,

    /// Connections at once
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u8).range(1..))]
    connections: u8,

    /// How long a new connection may wait for a reply
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    ping_max: u64,

    /// Requests not to send, because what they do is known: globs over the whole request (`ZRANDMEMBER idx:*`)
    #[arg(long, value_name = "GLOB", value_delimiter = ',', env = "HOLDFAST_TEST_AVOID")]
    avoid: Vec<String>,

    /// Attack in these ways alone
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = attack::part_names())]
    only: Vec<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let plan = Plan {
        address: args.addr,
        seed: args.seed.unwrap_or_else(seed_from_clock),
        duration: Duration::from_secs(args.seconds),
        connections: args.connections.into(),
        ping_max: Duration::from_secs(args.ping_max),
        avoid: args.avoid,
        only: args.only,
    };
    println!("to run this again: --seed {}, with the same options", plan.seed);
    match attack::run(&plan) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("attack: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map_err(|error| error.to_string())?.next();
    found.ok_or_else(|| "no such address".into())
}

fn seed_from_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    // Short enough to type.
    now.as_micros() as u64 % 1_000_000_000
}
