//! All semantics of Holdfast, as the server uses them: execution with all commands. Refuses to know tokio, sockets,
//! files, the clock and entropy: they are passed in.
//!
//! Three crates, from the ground up:
//! - `algorithms`: what some commands compute;
//! - `execution`: [`execute`] finds a request's row, passes the gates once, locks the shards of its keys, calls its
//!   handler and commits its effects; MULTI, waiting, scripts, replay, indexes; settings, clients, statistics;
//! - `commands`: a folder for each family, handlers and rows; the background thread.

#![forbid(unsafe_code)]

pub use algorithms;
pub use commands::background;
pub use commands::{
    HOLDFAST_VERSION, NamedUsers, REDIS_VERSION, load_users, parse_declared_users, parse_users, usage_by_user,
};
pub use execution;
pub use execution::acl;
pub use execution::{args, clients, error, host, observability, panics, persistence, settings};

pub use clients::{ClientHandle, Clients};
pub use error::CommandError;
pub use execution::client::Client;
pub use execution::engine::Engine;
pub use execution::worker::Worker;
// The life of a request and its client.
pub use execution::ahead::Ahead;
pub use execution::certificate_user::authenticate_by_certificate;
pub use execution::client_eviction::{GROWN_BYTES, evict_clients};
pub use execution::departure::{Departed, depart, forget, forget_some};
pub use execution::eviction::memory::is_short_of_memory;
pub use execution::execute::{execute, execute_ahead, execute_to_end, look_ahead};
pub use execution::flow::Flow;
pub use execution::interactive::{end_if_overdue, wake_idle_transactions};
pub use execution::waiting::records::serving::{next_due_record, serve_due_records};
pub use execution::waiting::{Blocked, Event, outcome, stop_waiting};
// The start: what was loaded becomes live.
pub use execution::apply::revive_functions;
pub use execution::following::{begin_following, empty, end_following};
pub use execution::forks::undo_forks;
pub use execution::gates::{set_loading, set_reading, set_standing};
pub use execution::indexes::revive_indexes;
pub use execution::register_restores::finish_restores;
pub use execution::restore::{expire_after_import, restore};
// Work that no client asks for.
pub use background::{serve_background_slice, serve_background_tasks};
pub use execution::expiry::expire_cycle;
pub use execution::scripts::detached::{
    begin_serving_scripts, serve_detached, serve_scripts, try_serve_detached, try_serve_script,
};
pub use execution::scripts::tidy::tidy_lua;
pub use execution::upkeep::tick;
pub use execution::walk::walk;
pub use host::{Clock, Host};
pub use persistence::Persistence;
pub use settings::Settings;

use execution::parts::Procedures;
use std::sync::Arc;

/// Commands: rows, flags, and the table of them all.
pub mod command {
    pub use commands::{FAMILIES, missing, registry};
    pub use execution::command::*;
}

/// An engine with all commands, `workers` worker threads to come and an empty keyspace of `shards` shards.
pub fn with_all_commands(
    settings: Arc<Settings>,
    host: Arc<dyn Host>,
    clock: Arc<dyn Clock>,
    shards: usize,
    workers: usize,
) -> Engine {
    let procedures = Procedures {
        serve_ready: execution::waiting::serving::serve_ready,
        execute,
        describe_client: commands::describe_client,
    };
    Engine::new(commands::registry(), procedures, settings, host, clock, shards, workers)
}
