//! Strings as bits.

mod bitmap;

use crate::command::Family;

pub(super) const FAMILIES: &[Family] = &[Family { category: "bitmap", commands: bitmap::COMMANDS }];
