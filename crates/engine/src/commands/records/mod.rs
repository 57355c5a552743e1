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

use crate::command::Table;

pub(super) const TABLES: &[Table] = &[
    Table { category: "hash", commands: change::COMMANDS },
    Table { category: "hash", commands: find::COMMANDS },
    Table { category: "hash", commands: indexes::COMMANDS },
    Table { category: "hash", commands: sweep::COMMANDS },
];
