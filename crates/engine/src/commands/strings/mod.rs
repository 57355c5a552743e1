//! Strings.

mod table;
mod values;

use crate::execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "string", category: "string", commands: table::COMMANDS }];
