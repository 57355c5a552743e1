//! All semantics of Holdfast. Refuses to know tokio, sockets, files, the clock and entropy: they are passed in.
//!
//! The rooms, from the ground up; a room uses those above it in this list, never those below:
//! - `settings`, `persistence`, `host`, `error`, `args`, `algorithms`: what is passed in and what errors say;
//! - `clients`: handles, subscriptions, tracking, pauses;
//! - `observability`: counters, latencies, slow commands, MONITOR;
//! - `execution`: [`Engine::execute`] finds a request's row, passes the gates once, locks the shards of its keys, calls its
//!   handler and commits what that has recorded; MULTI, waiting, replay, indexes;
//! - `commands`: a folder for each family, handlers and rows;
//! - `background`: the background thread.

#![deny(unsafe_code)]

// The unit tests share engines with nothing real around them with `tests/`, where this crate has its name.
#[cfg(test)]
extern crate self as engine;

pub mod algorithms;
pub mod args;
pub mod background;
pub mod clients;
mod commands;
pub mod error;
pub mod execution;
pub mod host;
pub mod observability;
pub mod panics;
pub mod persistence;
pub mod settings;
mod value_reply;

pub use clients::{ClientHandle, Clients};
pub use error::CommandError;
pub use execution::client::Client;
pub use execution::engine::Engine;
pub use execution::execute::{Ahead, Flow};
pub use execution::transaction::Departed;
pub use execution::waiting::{Blocked, Event};
pub use execution::worker::Worker;
pub use host::{Clock, Host};
pub use persistence::Persistence;
pub use settings::Settings;

use std::sync::Arc;

/// Commands: rows, flags, and the table of them all.
pub mod command {
    pub use crate::commands::{missing, registry};
    pub use crate::execution::command::*;
}

impl Engine {
    /// An engine with all commands, `workers` worker threads to come and an empty keyspace of `shards` shards.
    pub fn new(
        settings: Arc<Settings>,
        host: Arc<dyn Host>,
        clock: Arc<dyn Clock>,
        shards: usize,
        workers: usize,
    ) -> Engine {
        Engine::with_commands(commands::registry(), settings, host, clock, shards, workers)
    }
}
