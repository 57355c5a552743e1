//! The end of an interactive transaction: what it has recorded is applied to the shared keyspace as one batch, if the
//! state is still the one that it was recorded from. Refuses to know which commands have recorded it.

use super::transaction::InteractiveTransaction;
use super::{CONFLICT, Engine};
use crate::error::{CommandError, CommandResult};
use crate::execution::client::Client;
use crate::execution::view::View;
use crate::execution::worker::Worker;
use keyspace::effects::codec::Decoder;
use keyspace::{Fate, Key, Locked, Touch, Touches};
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

impl Engine {
    /// Ends a client's transaction and applies it. Returns the number of its batch; of the last one if it has written
    /// nothing. An error when it cannot be applied: then nothing of it was, and it has ended too.
    pub(crate) fn commit_interactive(&self, worker: &mut Worker, client: &mut Client) -> Result<u64, CommandError> {
        let Some(open) = client.interactive.as_deref() else {
            return Err(CommandError::fixed("ERR TXN.COMMIT without TXN.BEGIN"));
        };
        if let Some(error) = &open.failed {
            let error = error.clone();
            client.interactive = None;
            return Err(error);
        }
        if let Err(error) = self.pass_commit_gates(open) {
            self.roll_back(client);
            return Err(error);
        }
        let shards: SmallVec<[usize; 16]> = open.keys.iter().map(|key| self.keyspace.shard_of_key(key)).collect();
        let Some(mut locked) = self.keyspace.lock_shards_unless_busy(shards) else {
            self.roll_back(client);
            return Err(self.busy());
        };
        if self.forks.any()
            && let Err(error) = self.pass_forks_since(open)
        {
            drop(locked);
            self.roll_back(client);
            return Err(error);
        }
        let mut ended = client.interactive.take().expect("the client is in a transaction");
        let is_index = |key: Key<'_>| locked.db(ended.db, key).indexes().position(key.name).is_some();
        let is_applicable = !ended.conflicts(worker.now_ms) && !ended.keys.iter().any(is_index);
        // Before its own changes: it does not watch those.
        self.unwatch_touched(&ended, &mut locked);
        if !is_applicable {
            drop(locked);
            client.handle.note_transaction(None);
            self.transactions.conflicts.fetch_add(1, Relaxed);
            self.recycle(worker, ended);
            return Err(CONFLICT);
        }
        let sequence = self.apply_interactive(worker, client, &mut ended, &mut locked);
        drop(locked);
        client.handle.note_transaction(None);
        worker.books.stats.transactions_committed.add(1);
        self.recycle(worker, ended);
        Ok(sequence)
    }

    /// The gates for what a transaction has written: they may have closed since its commands have passed them.
    fn pass_commit_gates(&self, open: &InteractiveTransaction) -> CommandResult {
        if !open.has_written() {
            return Ok(());
        }
        self.pass_write_restrictions()?;
        self.pass_replicas()?;
        if open.needs_memory {
            self.pass_memory_limit()?;
        }
        self.pass_batch_bytes(open.batch.effects.len())
    }

    /// A fork may have taken names since they were written.
    #[cold]
    fn pass_forks_since(&self, open: &InteractiveTransaction) -> CommandResult {
        let mut effects = Decoder::new(&open.batch.effects);
        while let Some((db, effect)) = effects.next().expect("effects that were just recorded can be read") {
            if let Touches::Keys(touches) = effect.touches(db) {
                for Touch { db, key, .. } in touches.into_iter().filter(|touch| touch.fate != Fate::Read) {
                    self.forks.pass_name(db, key.name)?;
                }
            }
        }
        Ok(())
    }

    fn unwatch_touched(&self, ended: &InteractiveTransaction, locked: &mut Locked<'_>) {
        ended.keys.iter().for_each(|key| locked.watched_mut(key).unwatch(ended.db, key, &ended.keys.changed));
        self.watches.fetch_sub(ended.keys.len(), Relaxed);
    }

    /// Applies what a transaction has recorded, under the locks of all its keys, and commits it.
    fn apply_interactive(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        ended: &mut InteractiveTransaction,
        locked: &mut Locked<'_>,
    ) -> u64 {
        let usage = self.usage(&mut worker.random);
        let mut view = View::new(locked.lend(), ended.db, worker.now_ms, usage, &worker.books.stats);
        view.notify_through(&worker.batch.notifications, self.settings.notify_keyspace_events().published());
        let mut keys = view.into_recorder(self, &mut worker.batch.effects);
        if ended.has_written() {
            // They were absent to the transaction, and its changes are made to nothing.
            for key in ended.keys.private() {
                keys.remove_if_expired(ended.db, key);
            }
        }
        // The events of its commands were noted when they ran.
        keys.stop_noting_events();
        worker.batch.notifications.append(&ended.batch.notifications);
        let mut effects = Decoder::new(&ended.batch.effects);
        while let Some((db, effect)) = effects.next().expect("effects that were just recorded can be read") {
            keys.record_again(db, &effect);
        }
        let garbage = keys.finish().take_garbage();
        let sequence = self.commit(worker, Some(client), locked);
        self.free(garbage);
        sequence.unwrap_or_else(|| self.persistence.tail())
    }
}
