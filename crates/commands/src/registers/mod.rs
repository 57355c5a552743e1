//! Registers: values that apply each version once, in any order or one by one. Holdfast's own commands.

mod read;
mod restore;
mod snapshot;
mod table;
mod write;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "register", category: "register", commands: table::COMMANDS }];
