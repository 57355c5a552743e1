//! Messages to channels.

mod channels;

pub(crate) use channels::unread_bytes_max;

use crate::command::Family;

pub(super) const FAMILIES: &[Family] = &[Family { category: "", commands: channels::COMMANDS }];
