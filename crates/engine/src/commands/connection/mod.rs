//! Commands about the connection: its login and protocol, CLIENT, client-side caching.

mod basic;
mod client;
mod tracking;

use crate::command::Table;

pub(super) const TABLES: &[Table] = &[
    Table { category: "connection", commands: basic::COMMANDS },
    Table { category: "connection", commands: client::COMMANDS },
];
