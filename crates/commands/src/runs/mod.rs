//! Runs: append-only logs of events with idempotent appends, and a snapshot that is updated at every append. Holdfast's
//! own commands.

mod append;
mod events;
mod list;
mod snapshot;
mod table;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "run", category: "run", commands: table::COMMANDS }];
