//! Scripts and functions.

mod eval;
mod functions;

use crate::command::Table;

pub(super) const TABLES: &[Table] = &[
    Table { category: "scripting", commands: eval::COMMANDS },
    Table { category: "scripting", commands: functions::COMMANDS },
];
