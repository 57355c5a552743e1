//! Commands for keys of any type.

pub(crate) mod dump;
mod expire;
mod generic;
pub(crate) mod object;
mod scan;

use crate::command::Family;

pub(super) const FAMILIES: &[Family] = &[
    Family { category: "keyspace", commands: generic::COMMANDS },
    Family { category: "keyspace", commands: scan::COMMANDS },
    Family { category: "keyspace", commands: expire::COMMANDS },
    Family { category: "keyspace", commands: dump::COMMANDS },
    Family { category: "keyspace", commands: object::COMMANDS },
];
