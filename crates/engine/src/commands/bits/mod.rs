//! Strings as bits.

mod bitmap;

use crate::command::Table;

pub(super) const TABLES: &[Table] = &[Table { category: "bitmap", commands: bitmap::COMMANDS }];
