//! Messages to channels.

mod channels;

pub(crate) use channels::unread_bytes_max;

use crate::command::Table;

pub(super) const TABLES: &[Table] = &[Table { category: "", commands: channels::COMMANDS }];
