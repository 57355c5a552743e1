//! Commands about the connection: its login and protocol, CLIENT, client-side caching.

mod basic;
mod client;
mod tracking;

use crate::command::Family;

pub(super) const FAMILIES: &[Family] = &[
    Family { category: "connection", commands: basic::COMMANDS },
    Family { category: "connection", commands: client::COMMANDS },
];
