//! The size limit of a journal batch, and how much a command would add. Knows sizes; refuses to know what is in a
//! batch.
//!
//! A journal frame has a 32-bit length, so no client may build a longer batch: the journal could only fail. Most
//! commands record at most as many bytes as their request has; commands that copy values record the length of those
//! values ([`Flags::COPIES_VALUES`]). Both are known before the handler runs, so a command, or a whole transaction,
//! that would exceed the limit is refused with nothing changed. If commands of one transaction grow each other's values
//! beyond the estimate, only the command that would exceed the limit is refused.

use crate::error::{CommandError, CommandResult};
use crate::execution::command::{CommandRow, Flags};
use crate::execution::engine::Engine;
use crate::execution::transaction::Transaction;
use keyspace::footprint;
use keyspace::{Key, Locked};
use resp::Request;
use std::sync::atomic::Ordering::Relaxed;

/// The longest batch, minus a margin for what the estimate leaves out: compressed values, stamped records, expired
/// keys.
pub(crate) const BATCH_BYTES_MAX: usize = 3 << 30;

/// A batch that is shorter than this has room for any command that copies nothing, since requests are limited.
const UNCHECKED_SHARE: usize = 4;

/// How many elements of a large value are sampled to estimate its size.
const SAMPLES: usize = 64;

/// About how many more bytes a record of an index takes as a member of a sorted set: the index has no names.
const INDEX_FACTOR: usize = 4;

const TOO_LARGE: &str = "its changes would be larger than one batch of the journal can be";

impl Engine {
    /// Refuses a command whose changes would make a batch of `batch_bytes` too long. Its keys are locked.
    #[inline]
    pub(crate) fn pass_batch_limit(
        &self,
        batch_bytes: usize,
        locked: &Locked<'_>,
        db: usize,
        row: &'static CommandRow,
        request: Request<'_>,
    ) -> CommandResult {
        let copies = row.command.flags.has(Flags::COPIES_VALUES);
        let max = self.batch_bytes_max.load(Relaxed);
        match copies || batch_bytes > max / UNCHECKED_SHARE {
            true if self.persistence.is_recording() => {
                self.pass_batch_limit_now(batch_bytes, max, locked, db, row, request)
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn pass_batch_limit_now(
        &self,
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
    pub(crate) fn pass_batch_bytes(&self, bytes: usize) -> CommandResult {
        match self.persistence.is_recording() && bytes > self.batch_bytes_max.load(Relaxed) {
            true => Err(CommandError::said(format!("ERR {TOO_LARGE}"))),
            false => Ok(()),
        }
    }

    /// Refuses a transaction whose changes would be too long for one batch. All its keys are locked.
    pub(crate) fn pass_batch_limit_together(
        &self,
        locked: &Locked<'_>,
        db: usize,
        transaction: &Transaction,
    ) -> CommandResult {
        let max = self.batch_bytes_max.load(Relaxed);
        let copies = || transaction.commands().any(|(row, _)| row.command.flags.has(Flags::COPIES_VALUES));
        if !self.persistence.is_recording() || transaction.bytes() <= max && !copies() {
            return Ok(());
        }
        let sizes = transaction.commands().map(|(row, request)| recorded_bytes(locked, db, row, request));
        match sizes.fold(0usize, usize::saturating_add) > max {
            true => Err(CommandError::fixed(TOO_LARGE)),
            false => Ok(()),
        }
    }
}

/// About what a command will record.
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

/// About how long an index is as a sorted set, as far as it is locked; 0 for other names.
fn index_bytes(locked: &Locked<'_>, db: usize, name: &[u8]) -> usize {
    let parts = locked.shards().filter_map(|(_, shard)| {
        let part = shard.db(db);
        part.indexes().position(name).map(|at| part.part_bytes(at))
    });
    parts.sum::<usize>().saturating_mul(INDEX_FACTOR)
}
