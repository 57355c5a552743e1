//! Interactive transactions (TXN.BEGIN, TXN.COMMIT, TXN.ROLLBACK): commands that reply at once, run on a private
//! keyspace, and take effect together or not at all. Knows which keys a transaction has touched and what it has
//! recorded; refuses to know what commands do: no handler knows whether it runs in one.
//!
//! Start with `rules`, which says which commands may be part of a transaction. `step` runs one of them. A command that
//! only reads keys which the transaction has not written runs on the shared keyspace, and its keys are watched. Other
//! commands run on the transaction's private keyspace, into which their keys are copied first; their effects are kept,
//! not committed. `commit` locks all keys, checks the watches and applies the effects as one batch. Between two
//! commands no lock is held: an open transaction takes memory, but delays no other client.
//!
//! A read-only transaction (TXN.BEGIN READONLY) is of another kind: it reads cells as they were when it began, from
//! what `instants` keeps of them, and conflicts with no write (`reading`).
//!
//! All replies of a transaction show one state: a command first checks that no key of the transaction has changed or
//! expired, under the locks under which it reads. Otherwise the transaction has failed.

pub mod commit;
pub mod counts;
pub mod reading;
mod request;
pub mod rules;
pub mod step;
pub mod transaction;

pub use counts::EndedTransactions;
pub use transaction::InteractiveTransaction;

use crate::client::Client;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::watches::WatchList;
use crate::worker::Worker;
use keyspace::garbage::Garbage;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const CONFLICT: CommandError = CommandError::fixed(
    "CONFLICT a key that this transaction has read or written was changed by another client or has expired; nothing of \
     it was applied: begin again",
);

/// The error of a read-only transaction whose cells could not be kept.
const LOST: CommandError = CommandError::fixed(
    "CONFLICT cells that changed since TXN.BEGIN READONLY could not be kept for this transaction: begin a new one, keep \
     it shorter, or raise txn-max-bytes",
);

/// Begins a transaction of a client without one.
pub fn begin_interactive(worker: &mut Worker, client: &mut Client) {
    let monotonic_ms = worker.monotonic_ms();
    let mut begun = worker.spare_transactions.pop().unwrap_or_else(|| Box::new(InteractiveTransaction::new()));
    begun.begin(client.db, monotonic_ms);
    client.interactive = Some(begun);
    client.handle.note_transaction(Some(0));
}

/// Ends a transaction without applying anything. False when there was none. IMPORTANT: the caller holds no shard locks.
pub fn roll_back(engine: &Engine, client: &mut Client) -> bool {
    let Some(mut ended) = client.interactive.take() else { return false };
    if let Some(watches) = empty(engine, client, &mut ended, &engine.transactions.rolled_back) {
        engine.watches.remove(&engine.keyspace, watches);
    }
    true
}

/// Ends a transaction as [`roll_back`] does, but leaves its watches to the caller.
pub fn roll_back_in_slices(engine: &Engine, client: &mut Client) -> Option<WatchList> {
    let mut ended = client.interactive.take()?;
    empty(engine, client, &mut ended, &engine.transactions.rolled_back)
}

/// Marks a transaction as failed: frees its memory and removes its watches. Until the client ends the transaction, all
/// its commands get the error `why`. IMPORTANT: the caller holds no shard locks.
fn fail_interactive(engine: &Engine, client: &mut Client, why: CommandError, count: &AtomicU64) {
    let mut failed = client.interactive.take().expect("only an open transaction fails");
    if let Some(watches) = empty(engine, client, &mut failed, count) {
        engine.watches.remove(&engine.keyspace, watches);
    }
    failed.failed = Some(why);
    client.interactive = Some(failed);
}

/// Fails a transaction that has been open for too long. Called for each of its commands, and when its idle client is
/// woken ([`wake_idle_transactions`]).
pub fn end_if_overdue(engine: &Engine, client: &mut Client, monotonic_ms: u64) {
    let timeout_ms = engine.settings.txn_timeout();
    let is_overdue = |open: &InteractiveTransaction| open.is_open() && monotonic_ms >= open.began_ms + timeout_ms;
    if client.interactive.as_deref().is_some_and(is_overdue) {
        let why = format!(
            "ERR the transaction was open for more than {timeout_ms} ms (txn-timeout) and was rolled back: begin a new one"
        );
        fail_interactive(engine, client, CommandError::said(why), &engine.transactions.timed_out);
    }
}

/// Wakes the connections of clients that are idle in a transaction, so that [`end_if_overdue`] can free its memory.
/// Called once a second. Other clients run it with their next command.
pub fn wake_idle_transactions(engine: &Engine) {
    let now_ns = engine.clock.monotonic_ns();
    for handle in engine.clients.all() {
        if handle.in_transaction.load(Relaxed) && handle.idle_s(now_ns) > 0 {
            handle.wake();
        }
    }
}

/// Empties a transaction that ends, frees its contents, and returns its watches. A failed one is empty already.
fn empty(engine: &Engine, client: &Client, ended: &mut InteractiveTransaction, count: &AtomicU64) -> Option<WatchList> {
    if !ended.is_open() {
        return None;
    }
    count.fetch_add(1, Relaxed);
    if let Some(reading) = ended.reading.take() {
        // IMPORTANT: before the client's memory is noted: until the instant has ended, writers note it.
        engine.free(engine.instants.end(reading.id).unwrap_or_default());
    }
    client.handle.note_transaction(None);
    let keys = std::mem::take(&mut ended.keys);
    engine.watches.subtract(keys.len());
    ended.batch = Default::default();
    free_private(engine, ended);
    Some(keys.into_watches(ended.db))
}

/// Keeps the memory of an ended transaction without watches for the next one, or frees it.
fn recycle(engine: &Engine, worker: &mut Worker, ended: Box<InteractiveTransaction>) {
    match ended.emptied() {
        Ok(spare) if worker.spare_transactions.len() < SPARE_MAX => worker.spare_transactions.push(spare),
        Ok(_) => {}
        Err(mut large) => free_private(engine, &mut large),
    }
}

/// Frees the private keyspace of a transaction; on another thread if it is large.
fn free_private(engine: &Engine, ended: &mut InteractiveTransaction) {
    let private = ended.private.take();
    if ended.copies_bytes > FREED_HERE_BYTES_MAX
        && let Some(private) = private
    {
        engine.free(Garbage::of(private));
    }
    ended.copies_bytes = 0;
}

/// The most ended transactions that a worker keeps for reuse.
const SPARE_MAX: usize = 64;

/// The largest private keyspace that is freed on the worker.
const FREED_HERE_BYTES_MAX: usize = 64 * 1024;
