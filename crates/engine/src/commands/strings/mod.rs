//! Strings.

mod values;

use crate::command::Family;

pub(super) const FAMILIES: &[Family] = &[Family { category: "string", commands: values::COMMANDS }];
