//! Interactive transactions (TXN.BEGIN, TXN.COMMIT, TXN.ROLLBACK): commands that answer at once, on a private keyspace,
//! and take effect together or not at all. Knows which keys a transaction has touched and what it has recorded; refuses
//! to know what commands do: no handler knows whether it runs in one.
//!
//! The way through: `rules` says which commands may be part of a transaction. `step` runs one of them. A command that
//! only reads keys which the transaction has not written runs on the shared keyspace, and its keys are watched. Any
//! other runs on the transaction's private keyspace, into which its keys are copied first; what it records is kept, not
//! committed. `commit` locks all keys, checks the watches and applies what was recorded as one batch. Between two
//! commands no lock is held: an open transaction costs its memory and holds up no other client.
//!
//! All replies of a transaction belong to one state: a command first checks that no key of the transaction has changed
//! or expired, under the locks under which it reads. Otherwise the transaction has failed.

mod commit;
mod rules;
mod step;
mod transaction;

pub use transaction::InteractiveTransaction;

use crate::error::CommandError;
use crate::execution::client::Client;
use crate::execution::engine::Engine;
use crate::execution::transaction::WatchList;
use crate::execution::worker::Worker;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const CONFLICT: CommandError = CommandError::fixed(
    "CONFLICT a key that this transaction has read or written was changed by another client or has expired; nothing of \
     it was applied",
);

/// How interactive transactions have ended, each counted once; those that were committed, by their workers.
#[derive(Default)]
pub struct EndedTransactions {
    /// Another client was first, or a key has expired.
    pub conflicts: AtomicU64,
    /// By the client, by the end of its connection, or because of a limit.
    pub rolled_back: AtomicU64,
    pub timed_out: AtomicU64,
}

impl EndedTransactions {
    /// All back to zero (CONFIG RESETSTAT).
    pub(crate) fn reset(&self) {
        for count in [&self.conflicts, &self.rolled_back, &self.timed_out] {
            count.store(0, Relaxed);
        }
    }
}

impl Engine {
    /// Begins a transaction of this client, which has none.
    pub(crate) fn begin_interactive(&self, worker: &mut Worker, client: &mut Client) {
        let monotonic_ms = worker.monotonic_ms();
        let mut begun = worker.spare_transactions.pop().unwrap_or_else(|| Box::new(InteractiveTransaction::new()));
        begun.begin(client.db, monotonic_ms);
        client.interactive = Some(begun);
        client.handle.note_transaction(Some(0));
    }

    /// Ends a transaction without applying anything. False when there was none. IMPORTANT: the caller holds no shard locks.
    pub(crate) fn roll_back(&self, client: &mut Client) -> bool {
        let Some(mut ended) = client.interactive.take() else { return false };
        if let Some(watches) = self.empty(client, &mut ended, &self.transactions.rolled_back) {
            self.remove_watches(watches, usize::MAX);
        }
        true
    }

    /// Ends a transaction as [`roll_back`](Engine::roll_back) does, but leaves its watches to the caller.
    pub(crate) fn roll_back_in_slices(&self, client: &mut Client) -> Option<WatchList> {
        let mut ended = client.interactive.take()?;
        self.empty(client, &mut ended, &self.transactions.rolled_back)
    }

    /// Makes a transaction one that has failed: its memory and its watches go, and from now on every command of the
    /// client is answered with `why` until it ends the transaction. IMPORTANT: the caller holds no shard locks.
    fn fail_interactive(&self, client: &mut Client, why: CommandError, count: &AtomicU64) {
        let mut failed = client.interactive.take().expect("only an open transaction fails");
        if let Some(watches) = self.empty(client, &mut failed, count) {
            self.remove_watches(watches, usize::MAX);
        }
        failed.failed = Some(why);
        client.interactive = Some(failed);
    }

    /// Fails a transaction that has been open for too long. Called with each of its commands, and when the client is woken
    /// for it ([`wake_idle_transactions`](Engine::wake_idle_transactions)).
    pub fn end_if_overdue(&self, client: &mut Client, monotonic_ms: u64) {
        let timeout_ms = self.settings.txn_timeout();
        let is_overdue = |open: &InteractiveTransaction| open.is_open() && monotonic_ms >= open.began_ms + timeout_ms;
        if client.interactive.as_deref().is_some_and(is_overdue) {
            let why =
                format!("ERR the transaction was open for more than {timeout_ms} ms (txn-timeout) and was rolled back");
            self.fail_interactive(client, CommandError::said(why), &self.transactions.timed_out);
        }
    }

    /// Wakes the connections of clients that are idle in a transaction, for
    /// [`end_if_overdue`](Engine::end_if_overdue) to free its memory. Called once a second: others find out with their
    /// next command.
    pub fn wake_idle_transactions(&self) {
        let now_ns = self.clock.monotonic_ns();
        for handle in self.clients.all() {
            if handle.in_transaction.load(Relaxed) && handle.idle_s(now_ns) > 0 {
                handle.wake();
            }
        }
    }

    /// Takes everything out of a transaction that ends, frees it, and returns its watches. A failed one has nothing left.
    fn empty(&self, client: &Client, ended: &mut InteractiveTransaction, count: &AtomicU64) -> Option<WatchList> {
        if !ended.is_open() {
            return None;
        }
        count.fetch_add(1, Relaxed);
        client.handle.note_transaction(None);
        let keys = std::mem::take(&mut ended.keys);
        self.watches.fetch_sub(keys.len(), Relaxed);
        ended.batch = Default::default();
        self.free_private(ended);
        Some(keys.into_watches(ended.db))
    }

    /// Keeps the memory of a transaction that has ended and watches nothing any more for the next one, or frees it.
    fn recycle(&self, worker: &mut Worker, ended: Box<InteractiveTransaction>) {
        match ended.emptied() {
            Ok(spare) if worker.spare_transactions.len() < SPARE_MAX => worker.spare_transactions.push(spare),
            Ok(_) => {}
            Err(mut large) => self.free_private(&mut large),
        }
    }

    /// Frees the private keyspace of a transaction, elsewhere if there is much in it.
    fn free_private(&self, ended: &mut InteractiveTransaction) {
        let private = ended.private.take();
        if ended.copies_bytes > FREED_HERE_BYTES_MAX
            && let Some(private) = private
        {
            self.free(vec![private]);
        }
        ended.copies_bytes = 0;
    }
}

/// The most transactions that a worker keeps for their memory.
const SPARE_MAX: usize = 64;

/// The largest private keyspace that is freed where its client is served.
const FREED_HERE_BYTES_MAX: usize = 64 * 1024;
