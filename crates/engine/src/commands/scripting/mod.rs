//! Scripts and functions.

mod eval;
mod functions;
mod table;

use crate::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "scripting", category: "scripting", commands: table::COMMANDS }];
