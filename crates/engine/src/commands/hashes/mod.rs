//! Hashes.

mod deadlines;
mod fields;
mod scan;

pub(crate) use fields::notify_fields_deleted;

use crate::command::Family;

pub(super) const FAMILIES: &[Family] = &[
    Family { category: "hash", commands: fields::COMMANDS },
    Family { category: "hash", commands: scan::COMMANDS },
    Family { category: "hash", commands: deadlines::COMMANDS },
];
