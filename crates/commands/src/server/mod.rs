//! Commands about the server: what it is doing, its settings, its memory, its snapshots, its command table.

mod command;
mod config;
mod debug;
mod hot_keys;
mod info;
mod latency;
mod memory;
mod persistence;
mod prefixes;
mod process;
mod table;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[
    Table { group: "server", category: "connection", commands: table::COMMAND },
    Table { group: "generic", category: "connection", commands: table::WAITING },
    Table { group: "server", category: "", commands: table::COMMANDS },
];
