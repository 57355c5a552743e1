//! The commands, a file for each family; each file ends in its table. A new family is added to `FAMILIES`.

mod bits;
mod client;
mod command;
mod config;
mod connection;
mod deadline;
mod debug;
mod dump;
mod expire;
mod filters;
mod find;
mod functions;
mod gathered;
mod hash_deadlines;
mod hash_scan;
mod hashes;
mod help;
mod indexes;
mod info;
mod keys;
mod latency;
mod manual;
mod memory;
mod name_set;
mod object;
mod options;
mod persistence;
mod pubsub;
mod records;
mod scan;
mod scripting;
mod server;
mod sorted_set_algebra;
mod sorted_set_pops;
mod sorted_set_ranges;
mod sorted_set_scan;
mod sorted_sets;
mod strings;
mod sweep;
mod tracking;
mod transactions;

use crate::command::Family;

/// A command that works in slices, between which others are served, and what it has done so far.
pub(crate) enum Unfinished {
    Range(indexes::RangeProgress),
    Sweep(sweep::SweepProgress),
}

/// All families. The order is that of COMMAND LIST.
pub(crate) const FAMILIES: &[Family] = &[
    Family { category: "connection", commands: connection::COMMANDS },
    Family { category: "connection", commands: client::COMMANDS },
    Family { category: "connection", commands: command::COMMANDS },
    Family { category: "connection", commands: persistence::WAITING },
    Family { category: "transaction", commands: transactions::COMMANDS },
    Family { category: "", commands: pubsub::COMMANDS },
    Family { category: "scripting", commands: scripting::COMMANDS },
    Family { category: "scripting", commands: functions::COMMANDS },
    Family { category: "keyspace", commands: keys::COMMANDS },
    Family { category: "keyspace", commands: scan::COMMANDS },
    Family { category: "keyspace", commands: expire::COMMANDS },
    Family { category: "keyspace", commands: dump::COMMANDS },
    Family { category: "keyspace", commands: object::COMMANDS },
    Family { category: "string", commands: strings::COMMANDS },
    Family { category: "bitmap", commands: bits::COMMANDS },
    Family { category: "hash", commands: hashes::COMMANDS },
    Family { category: "hash", commands: hash_scan::COMMANDS },
    Family { category: "hash", commands: hash_deadlines::COMMANDS },
    Family { category: "hash", commands: records::COMMANDS },
    Family { category: "hash", commands: find::COMMANDS },
    Family { category: "hash", commands: indexes::COMMANDS },
    Family { category: "hash", commands: sweep::COMMANDS },
    Family { category: "sortedset", commands: sorted_sets::COMMANDS },
    Family { category: "sortedset", commands: sorted_set_ranges::COMMANDS },
    Family { category: "sortedset", commands: sorted_set_pops::COMMANDS },
    Family { category: "sortedset", commands: sorted_set_algebra::COMMANDS },
    Family { category: "sortedset", commands: sorted_set_scan::COMMANDS },
    Family { category: "", commands: config::COMMANDS },
    Family { category: "", commands: info::COMMANDS },
    Family { category: "", commands: server::COMMANDS },
    Family { category: "", commands: persistence::COMMANDS },
    Family { category: "", commands: memory::COMMANDS },
    Family { category: "", commands: latency::COMMANDS },
    Family { category: "", commands: debug::COMMANDS },
];
