//! HyperLogLogs: strings that estimate how many different elements were added to them.

mod counting;
mod debugging;
mod table;

use execution::command::Table;

pub(super) const TABLES: &[Table] =
    &[Table { group: "hyperloglog", category: "hyperloglog", commands: table::COMMANDS }];
