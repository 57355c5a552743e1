//! Sorted sets.

mod algebra;
mod gathered;
mod members;
mod pops;
mod ranges;
mod scan;
mod table;

pub(crate) use members::{Rules, add_members, reply_score, store};
pub(crate) use ranges::score_bound;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "sorted-set", category: "sortedset", commands: table::COMMANDS }];
