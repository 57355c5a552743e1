//! Commands about the server: what it is doing, its settings, its memory, its snapshots, its command table.

mod command;
mod config;
mod debug;
mod digest;
mod info;
mod latency;
mod memory;
mod persistence;
mod process;

use crate::command::Table;

pub(super) const TABLES: &[Table] = &[
    Table { category: "connection", commands: command::COMMANDS },
    Table { category: "connection", commands: persistence::WAITING },
    Table { category: "", commands: config::COMMANDS },
    Table { category: "", commands: info::COMMANDS },
    Table { category: "", commands: process::COMMANDS },
    Table { category: "", commands: persistence::COMMANDS },
    Table { category: "", commands: memory::COMMANDS },
    Table { category: "", commands: latency::COMMANDS },
    Table { category: "", commands: debug::COMMANDS },
];
