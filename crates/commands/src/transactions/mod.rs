//! MULTI, EXEC, DISCARD, WATCH and UNWATCH; TXN.BEGIN, TXN.COMMIT and TXN.ROLLBACK.

mod interactive;
mod multi;
mod table;

use execution::command::Table;

pub(super) const TABLES: &[Table] =
    &[Table { group: "transactions", category: "transaction", commands: table::COMMANDS }];
