//! Commands about the connection: its login and protocol, CLIENT, client-side caching.

mod basic;
mod client;
mod client_filter;
mod client_line;
mod table;
mod tracking;

use execution::command::Table;

pub use client_line::describe_client;

pub(super) const TABLES: &[Table] = &[Table { group: "connection", category: "connection", commands: table::COMMANDS }];
