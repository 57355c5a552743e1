//! Streams.

mod append;
mod claim;
mod groups;
mod ids;
mod info;
mod pending;
mod ranges;
mod read;
mod table;
mod trim;

use crate::execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "stream", category: "stream", commands: table::COMMANDS }];
