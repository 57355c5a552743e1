//! Sets.

mod algebra;
mod members;
mod random;
mod scan;
mod table;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "set", category: "set", commands: table::COMMANDS }];
