//! Sorted sets.

mod algebra;
mod gathered;
mod members;
mod pops;
mod ranges;
mod scan;

pub(crate) use members::reply_score;
pub(crate) use ranges::score_bound;

use crate::command::Family;

pub(super) const FAMILIES: &[Family] = &[
    Family { category: "sortedset", commands: members::COMMANDS },
    Family { category: "sortedset", commands: ranges::COMMANDS },
    Family { category: "sortedset", commands: pops::COMMANDS },
    Family { category: "sortedset", commands: algebra::COMMANDS },
    Family { category: "sortedset", commands: scan::COMMANDS },
];
