//! Strings.

mod conditions;
mod counters;
mod increx;
mod multiple;
mod table;
mod values;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "string", category: "string", commands: table::COMMANDS }];
