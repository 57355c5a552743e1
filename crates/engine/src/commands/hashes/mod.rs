//! Hashes.

mod deadlines;
mod fields;
mod scan;

pub(crate) use fields::notify_fields_deleted;

use crate::command::Table;

pub(super) const TABLES: &[Table] = &[
    Table { category: "hash", commands: fields::COMMANDS },
    Table { category: "hash", commands: scan::COMMANDS },
    Table { category: "hash", commands: deadlines::COMMANDS },
];
