//! Sorted sets.

mod algebra;
mod gathered;
mod members;
mod pops;
mod ranges;
mod scan;

pub(crate) use members::reply_score;
pub(crate) use ranges::score_bound;

use crate::command::Table;

pub(super) const TABLES: &[Table] = &[
    Table { category: "sortedset", commands: members::COMMANDS },
    Table { category: "sortedset", commands: ranges::COMMANDS },
    Table { category: "sortedset", commands: pops::COMMANDS },
    Table { category: "sortedset", commands: algebra::COMMANDS },
    Table { category: "sortedset", commands: scan::COMMANDS },
];
