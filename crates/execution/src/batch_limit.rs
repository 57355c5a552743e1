//! The size limit of a journal batch, and how much a command would add. Knows sizes; refuses to know what is in a
//! batch.
//!
//! A journal frame has a 32-bit length, so no client may build a longer batch: the journal could only fail. Most
//! commands record at most as many bytes as their request has; commands that copy values record the length of those
//! values ([`Flags::COPIES_VALUES`]). Both are known before the handler runs, so a command, or a whole transaction,
//! that would exceed the limit is refused with nothing changed. If commands of one transaction grow each other's values
//! beyond the estimate, only the command that would exceed the limit is refused.

use crate::command::{CommandRow, Flags};
use crate::engine::Engine;
use crate::error::{CommandError, CommandResult};
use crate::queued::Transaction;
use keyspace::footprint;
use keyspace::{Key, Locked};
use resp::Request;
use std::sync::atomic::Ordering::Relaxed;

/// A batch that is shorter than this has room for any command that copies nothing, since requests are limited.
const UNCHECKED_SHARE: usize = 4;

/// How many elements of a large value are sampled to estimate its size.
const SAMPLES: usize = 64;

/// About how many times larger a record of an index is as a member of a sorted set: the index holds no names.
const INDEX_FACTOR: usize = 4;

const TOO_LARGE: &str = "its changes would be larger than one batch of the journal can be";

/// Refuses a command whose changes would make a batch of `batch_bytes` too long. Its keys are locked.
#[inline]
pub fn pass_batch_limit(
    engine: &Engine,
    batch_bytes: usize,
    locked: &Locked<'_>,
    db: usize,
    row: &'static CommandRow,
    request: Request<'_>,
) -> CommandResult {
    let copies = row.command.flags.has(Flags::COPIES_VALUES);
    let max = engine.debug.batch_bytes_max.load(Relaxed);
    match copies || batch_bytes > max / UNCHECKED_SHARE {
        true if engine.persistence.is_recording() => pass_batch_limit_now(batch_bytes, max, locked, db, row, request),
        _ => Ok(()),
    }
}

#[cold]
fn pass_batch_limit_now(
    batch_bytes: usize,
    max: usize,
    locked: &Locked<'_>,
    db: usize,
    row: &'static CommandRow,
    request: Request<'_>,
) -> CommandResult {
    let bytes = batch_bytes.saturating_add(recorded_bytes(locked, db, row, request));
    if bytes > max { Err(CommandError::said(format!("ERR {TOO_LARGE}"))) } else { Ok(()) }
}

/// Refuses changes that are too long for one batch.
pub fn pass_batch_bytes(engine: &Engine, bytes: usize) -> CommandResult {
    match engine.persistence.is_recording() && bytes > engine.debug.batch_bytes_max.load(Relaxed) {
        true => Err(CommandError::said(format!("ERR {TOO_LARGE}"))),
        false => Ok(()),
    }
}

/// Refuses a transaction whose changes together would be too long for one batch. All its keys are locked.
pub fn pass_batch_limit_together(
    engine: &Engine,
    locked: &Locked<'_>,
    db: usize,
    transaction: &Transaction,
) -> CommandResult {
    let max = engine.debug.batch_bytes_max.load(Relaxed);
    let copies = || transaction.commands().any(|(row, _)| row.command.flags.has(Flags::COPIES_VALUES));
    if !engine.persistence.is_recording() || transaction.bytes() <= max && !copies() {
        return Ok(());
    }
    let sizes = transaction.commands().map(|(row, request)| recorded_bytes(locked, db, row, request));
    match sizes.fold(0usize, usize::saturating_add) > max {
        true => Err(CommandError::fixed(TOO_LARGE)),
        false => Ok(()),
    }
}

/// About how many bytes a command will record.
fn recorded_bytes(locked: &Locked<'_>, db: usize, row: &'static CommandRow, request: Request<'_>) -> usize {
    let sent: usize = request.iter().map(<[u8]>::len).sum();
    if !row.command.flags.has(Flags::COPIES_VALUES) {
        return sent;
    }
    let bytes_of = |key: Key<'_>| match locked.db(db, key).entry(key) {
        Some(entry) => footprint::bytes_of(entry, SAMPLES),
        None => index_bytes(locked, db, key.name),
    };
    sent.saturating_add(row.keys(request).map(bytes_of).fold(0, usize::saturating_add))
}

/// About the size of an index as a sorted set, counting its locked shards; 0 for other names.
fn index_bytes(locked: &Locked<'_>, db: usize, name: &[u8]) -> usize {
    let parts = locked.shards().filter_map(|(_, shard)| {
        let part = shard.db(db);
        part.indexes().position(name).map(|at| part.part_bytes(at))
    });
    parts.sum::<usize>().saturating_mul(INDEX_FACTOR)
}
