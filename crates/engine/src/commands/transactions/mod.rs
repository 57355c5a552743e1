//! MULTI and its kin.

mod multi;

use crate::command::Table;

pub(super) const TABLES: &[Table] = &[Table { category: "transaction", commands: multi::COMMANDS }];
