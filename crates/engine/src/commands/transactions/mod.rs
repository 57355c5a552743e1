//! MULTI, EXEC, DISCARD, WATCH and UNWATCH.

mod multi;
mod table;

use crate::execution::command::Table;

pub(super) const TABLES: &[Table] =
    &[Table { group: "transactions", category: "transaction", commands: table::COMMANDS }];
