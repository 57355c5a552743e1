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

use crate::command::Family;

pub(super) const FAMILIES: &[Family] = &[
    Family { category: "connection", commands: command::COMMANDS },
    Family { category: "connection", commands: persistence::WAITING },
    Family { category: "", commands: config::COMMANDS },
    Family { category: "", commands: info::COMMANDS },
    Family { category: "", commands: process::COMMANDS },
    Family { category: "", commands: persistence::COMMANDS },
    Family { category: "", commands: memory::COMMANDS },
    Family { category: "", commands: latency::COMMANDS },
    Family { category: "", commands: debug::COMMANDS },
];
