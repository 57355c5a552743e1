//! Messages to channels.

mod channels;
mod table;

pub(crate) use channels::unread_bytes_max;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "pubsub", category: "", commands: table::COMMANDS }];
