//! Records: hashes that are found, judged and changed in one step. Holdfast's own commands.

mod change;
mod filters;
mod find;
mod indexes;
mod name_set;
mod options;
mod sweep;

pub(crate) use indexes::RangeProgress;
pub(crate) use sweep::SweepProgress;

use crate::command::Family;

pub(super) const FAMILIES: &[Family] = &[
    Family { category: "hash", commands: change::COMMANDS },
    Family { category: "hash", commands: find::COMMANDS },
    Family { category: "hash", commands: indexes::COMMANDS },
    Family { category: "hash", commands: sweep::COMMANDS },
];
