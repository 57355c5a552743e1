//! Commands for keys of any type.

pub(crate) mod dump;
mod expire;
mod generic;
pub(crate) mod object;
mod scan;

use crate::command::Table;

pub(super) const TABLES: &[Table] = &[
    Table { category: "keyspace", commands: generic::COMMANDS },
    Table { category: "keyspace", commands: scan::COMMANDS },
    Table { category: "keyspace", commands: expire::COMMANDS },
    Table { category: "keyspace", commands: dump::COMMANDS },
    Table { category: "keyspace", commands: object::COMMANDS },
];
