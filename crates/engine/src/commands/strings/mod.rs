//! Strings.

mod values;

use crate::command::Table;

pub(super) const TABLES: &[Table] = &[Table { category: "string", commands: values::COMMANDS }];
