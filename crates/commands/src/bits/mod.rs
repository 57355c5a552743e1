//! Strings as bits.

mod bitmap;
mod table;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "bitmap", category: "bitmap", commands: table::COMMANDS }];
