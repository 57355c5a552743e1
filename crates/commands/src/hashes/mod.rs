//! Hashes.

mod deadlines;
mod fields;
mod scan;
mod table;

pub(crate) use fields::notify_fields_deleted;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "hash", category: "hash", commands: table::COMMANDS }];
