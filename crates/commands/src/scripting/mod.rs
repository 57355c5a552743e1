//! Commands of scripts and functions. `execution::scripts` stores and runs them.

mod eval;
mod functions;
mod table;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "scripting", category: "scripting", commands: table::COMMANDS }];
