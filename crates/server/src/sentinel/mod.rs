//! The port on which this server answers as a Redis Sentinel, so that clients find the writer and notice when another
//! server becomes it. What it says comes from `engine::persistence::Replication`; it decides nothing, and takes part in no
//! election. Refuses to know how a role is changed and where the log is kept.
//!
//! `port` opens it, `room` has its connections, `connection` is one of them, `session` the client on it. `run` runs its
//! requests, by the rows of `table`. `topology` is what is known of the servers, and what clients are told when that changes.

mod client_commands;
mod command;
mod connection;
mod instances;
mod port;
mod room;
mod run;
mod sentinel_commands;
mod server_commands;
mod session;
mod table;
mod topology;

pub(crate) use port::{connections_max, start};
