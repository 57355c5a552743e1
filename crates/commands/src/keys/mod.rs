//! Commands for keys of any type.

pub(crate) mod dump;
mod expire;
mod generic;
pub(crate) mod object;
mod scan;
mod table;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "generic", category: "keyspace", commands: table::COMMANDS }];
