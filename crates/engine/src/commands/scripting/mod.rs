//! Scripts and functions: their commands, and how one is run. Stored scripts are in `execution::scripts`.

mod eval;
mod functions;
mod host;
mod run;
mod script_thread;
mod table;

use crate::execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "scripting", category: "scripting", commands: table::COMMANDS }];
