//! All semantics of Holdfast. Refuses to know tokio, sockets, files, the clock and entropy: they are passed in.
//!
//! The way through: [`Engine::execute`] finds a request's row in the command table (`command`, `commands`), passes
//! the gates once, locks the shards of its keys and calls its handler. A handler reads arguments (`args`), looks at
//! the keyspace through its context (`context`), records effects (`keyspace::effect`) and writes its reply. One
//! family of commands is one file in `commands`, which ends in its table.

#![deny(unsafe_code)]

pub mod algorithms;
pub mod args;
mod batch_limit;
pub mod chores;
pub mod client;
mod client_eviction;
pub mod clients;
pub mod command;
mod commands;
mod commit;
pub mod context;
mod dispatch;
pub mod docs;
mod engine;
pub mod error;
pub mod expiry;
mod gates;
pub mod host;
pub mod indexing;
pub mod journal_state;
pub mod latency;
pub mod monitor;
mod news;
pub mod panics;
pub mod pause;
pub mod persistence;
pub mod pubsub;
pub mod replay;
pub mod restore;
pub mod script;
pub mod settings;
pub mod slowlog;
pub mod stats;
pub mod tracking;
pub mod transaction;
mod value_reply;
mod waiting;
pub mod walk;

pub use client::Client;
pub use clients::{ClientHandle, Clients};
pub use engine::{Ahead, Engine, Flow, Worker};
pub use error::CommandError;
pub use host::{Clock, Host};
pub use persistence::Persistence;
pub use settings::Settings;
pub use transaction::Departed;
pub use waiting::{Blocked, Event};
