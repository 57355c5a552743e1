//! Streams.

mod append;
mod claim;
mod groups;
mod idempotency;
mod ids;
mod info;
mod pending;
mod ranges;
mod read;
mod references;
mod release;
mod table;
mod trim;

use execution::command::Table;
use execution::context::WriteCx;

pub(super) const TABLES: &[Table] = &[Table { group: "stream", category: "stream", commands: table::COMMANDS }];

/// The time with which entries, deliveries and consumers are stamped. During an import of Redis's files it is the real
/// time, as in Redis; `keys.now_ms` is held back there, so that nothing expires.
fn stamp_ms(cx: &WriteCx<'_>) -> u64 {
    cx.now_us / 1000
}
