//! Scripts and functions.

mod eval;
mod functions;

use crate::command::Family;

pub(super) const FAMILIES: &[Family] = &[
    Family { category: "scripting", commands: eval::COMMANDS },
    Family { category: "scripting", commands: functions::COMMANDS },
];
