//! Attacks a server with random requests, made from the server's own command table, and checks all the while that it
//! lives, answers, and changes nothing when it answers with an error. Knows the server by its socket and its data directory.
//!
//! The way through: [`run`] goes from round to round; `table` reads the command table; an `author` writes requests from it
//! with the words of the `vocabulary`, and `danger` tames those that would end the run; `forms` puts them into
//! transactions and scripts; a `session` sends them over a `talk`, many at once, `solo` one at a time between two looks at
//! the `state`. Then there are special ways to attack: `slices`, `paces`, `full`, `accounts`, each with tables of its own, some
//! beside `neighbours`. `health` asks whether the server can be reached; `record` keeps the last requests for the case of a failure.

#![forbid(unsafe_code)]

mod accounts;
mod author;
mod danger;
mod forms;
mod full;
mod health;
mod leash;
mod neighbours;
mod paces;
mod record;
mod run;
mod session;
mod slices;
mod solo;
mod state;
mod table;
mod talk;
mod vocabulary;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use run::{part_names, run};

/// What to run. The same plan sends the same requests, as far as threads and clocks allow.
pub struct Plan {
    /// A server that is already running, instead of one of our own. Its data is lost.
    pub address: Option<SocketAddr>,
    pub seed: u64,
    pub duration: Duration,
    /// Attacking connections at once.
    pub connections: usize,
    /// How long PING may take. Only tells a slow server from a stuck one.
    pub ping_max: Duration,
    /// Requests that are not sent: globs over the whole request, such as `ZRANDMEMBER idx:*`.
    pub avoid: Vec<String>,
    /// The ways to attack, by [`part_names`]; all if there is none.
    pub only: Vec<String>,
}

/// What went wrong, and how to see it again.
pub struct Failure {
    pub seed: u64,
    pub round: u64,
    pub what: String,
    /// The last requests of every connection.
    pub requests: String,
    /// The end of what the server printed.
    pub log: String,
    /// Where the data and the log were left, if the server was ours.
    pub dir: Option<PathBuf>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.requests)?;
        writeln!(f, "the end of the server's log:\n{}", self.log)?;
        if let Some(dir) = &self.dir {
            writeln!(f, "data and log: {}", dir.display())?;
        }
        writeln!(f, "round {} failed: {}", self.round, self.what)?;
        write!(f, "to run this again: --seed {}, with the same options", self.seed)
    }
}
