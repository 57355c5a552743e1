//! MULTI and its kin.

mod multi;

use crate::command::Family;

pub(super) const FAMILIES: &[Family] = &[Family { category: "transaction", commands: multi::COMMANDS }];
