//! Streams.

mod append;
mod claim;
mod groups;
mod ids;
mod info;
mod pending;
mod ranges;
mod read;
mod table;
mod trim;

use crate::execution::command::Table;
use crate::execution::context::WriteCx;

pub(super) const TABLES: &[Table] = &[Table { group: "stream", category: "stream", commands: table::COMMANDS }];

/// The instant that entries, deliveries and consumers are stamped with. While a file of Redis's is imported it is the real one,
/// as in Redis; `keys.now_ms` is held back there, so that nothing expires.
fn stamp_ms(cx: &WriteCx<'_>) -> u64 {
    cx.now_us / 1000
}
