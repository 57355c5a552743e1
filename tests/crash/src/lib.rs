//! Kills a server again and again under load and checks, each time it is back, that it has forgotten nothing that it
//! acknowledged and made up nothing that it was not told. Knows the server by its process, its socket and its data
//! directory: Holdfast and Redis alike.
//!
//! The way through: [`run`] goes from round to round; a `round` is drawn from the seed; `server` is the process; each
//! `client` sends a `workload` of `request`s that its `author` writes, and keeps its ledger in terms of the `model`, which
//! `commands`, `scores`, `lists`, `cells`, `event_runs`, `registers`, `sessions` and `scripts` change; the `moment` ends the round; `observe` reads what
//! the server holds, with `checkpoints` for snapshots of registers, and `ledger` compares, with `shared`, `shared_registers` and
//! `shared_queue` for what all clients write, `indexes` for what an index must hold, and `grouped` for its groups and limits.

#![forbid(unsafe_code)]

mod author;
mod cells;
mod checkpoints;
mod client;
pub mod cluster;
mod commands;
mod connection;
mod event_runs;
mod grouped;
mod indexes;
mod ledger;
mod lists;
mod model;
mod moment;
mod observe;
mod registers;
mod request;
mod round;
mod run;
mod scores;
mod scripts;
mod server;
mod sessions;
mod shared;
mod shared_queue;
mod shared_registers;
mod streams;
mod workload;

use std::fmt;
use std::fs;
use std::path::PathBuf;

use wire::Random;

pub use run::run;

/// What to run. The same plan does the same, as far as threads and processes allow.
pub struct Plan {
    /// The binary under test: `holdfast`, or a `redis-server`.
    pub server: PathBuf,
    pub rounds: usize,
    pub seed: u64,
    pub clients: usize,
    pub policy: Policy,
    /// Keys that make snapshots and starts take longer.
    pub ballast_keys: usize,
    /// A round lasts for at most so many batches sent and replies received.
    pub ticks_max: u64,
    /// A second server follows the first and takes over.
    pub followers: bool,
}

/// The server's `appendfsync`. A killed process must lose nothing under any of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    Always,
    Everysec,
    No,
    /// One of the three for each start; for Redis `always` or `no`. Its `everysec` replies before it writes while a sync is
    /// under way (`flushAppendOnlyFile` puts the write off for up to two seconds), so a kill does lose acknowledged writes.
    Mixed,
}

impl Plan {
    fn draw_policy(&self, random: &mut Random) -> &'static str {
        match self.policy {
            Policy::Always => "always",
            Policy::Everysec => "everysec",
            Policy::No => "no",
            Policy::Mixed if self.is_redis() => random.pick(&["always", "no"]),
            Policy::Mixed => random.pick(&["always", "everysec", "no"]),
        }
    }

    fn is_redis(&self) -> bool {
        self.server.file_name().is_some_and(|name| name.to_string_lossy().contains("redis-server"))
    }
}

/// What went wrong, and how to see it again.
pub struct Failure {
    pub seed: u64,
    pub round: usize,
    pub what: String,
    /// Where the data directory and the server's log were left.
    pub dir: PathBuf,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "round {} with seed {} failed:", self.round, self.seed)?;
        writeln!(f, "{}", self.what)?;
        writeln!(f, "data: {}", self.dir.join("data").display())?;
        write!(f, "the end of {}:", self.dir.join("server.log").display())?;
        let log = fs::read(self.dir.join("server.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines.iter().skip(lines.len().saturating_sub(15)).try_for_each(|line| write!(f, "\n  {line}"))
    }
}
