//! Runs: append-only logs of events with idempotent appends, and a snapshot that is kept at every append. Holdfast's own
//! commands.

mod append;
mod events;
mod list;
mod snapshot;
mod table;

use crate::execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "run", category: "", commands: table::COMMANDS }];
