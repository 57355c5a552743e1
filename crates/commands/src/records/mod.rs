//! Records: atomic conditional changes of hashes, indexes, queries, claims and sweeps. Holdfast's own commands.

mod change;
mod claim;
mod filters;
mod find;
mod groups;
mod indexes;
mod record_reply;
mod sweep;
mod table;
mod times;

pub(crate) use sweep::check_sweep;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "hash", category: "record", commands: table::COMMANDS }];
