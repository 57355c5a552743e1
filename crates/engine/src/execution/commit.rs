//! Commits changes: the effects that were recorded under locks become one journal batch, are published, and waiters are
//! served. Plain commands, transactions, scripts, sweeps, index work, expiry and replay all end here; nothing does
//! these steps by hand.

use crate::execution::client::Client;
use crate::execution::engine::Engine;
use crate::execution::notifications::PendingNotifications;
use crate::execution::worker::Worker;
use keyspace::{Applied, Definable, Effect, Locked, Thresholds};

/// What a worker has recorded and not committed yet.
#[derive(Default)]
pub(crate) struct PendingBatch {
    /// Effects as the journal wants them.
    pub(crate) effects: Vec<u8>,
    /// Notifications that are pending until the commit.
    pub(crate) notifications: PendingNotifications,
    /// Several commands make one batch: a transaction or a script.
    pub(crate) is_atomic: bool,
    /// Waiters are being served: keys that this makes ready are handled by the same loop.
    pub(crate) is_serving: bool,
    /// An interactive transaction's: it is on the transaction's own keyspace, and no other client hears of it.
    pub(crate) is_private: bool,
    /// A command of the transaction has panicked.
    pub(crate) has_panicked: bool,
    /// A script of the transaction has touched a key that it did not declare.
    pub(crate) touched_undeclared_key: bool,
    /// A script on this thread was ended because it took too long.
    pub(crate) script_was_cut_short: bool,
}

/// The largest buffer for effects that is kept for the next batch.
const BATCH_BYTES_KEPT: usize = 256 * 1024;

impl PendingBatch {
    /// The batch of an interactive transaction.
    pub(crate) fn private() -> PendingBatch {
        PendingBatch { is_atomic: true, is_private: true, ..PendingBatch::default() }
    }

    /// Appends the effects to the journal, if there are any. IMPORTANT: call this while the changed shards are locked,
    /// so that the journal has the changes of every key in the order in which they were made.
    #[inline]
    fn append(&mut self, engine: &Engine, locked: &mut Locked<'_>) -> Option<u64> {
        if self.effects.is_empty() {
            return None;
        }
        let sequence = engine.persistence.append(&self.effects);
        match self.effects.capacity() > BATCH_BYTES_KEPT {
            true => self.effects = Vec::new(),
            false => self.effects.clear(),
        }
        locked.set_changed_by(sequence);
        Some(sequence)
    }
}

impl Engine {
    /// Applies an effect to the keyspace and, for a definition, to the live catalogue. Works alike live, on replay and
    /// on a follower.
    #[inline]
    pub(crate) fn apply(
        &self,
        locked: &mut Locked<'_>,
        db: usize,
        effect: &Effect<'_>,
        thresholds: &Thresholds,
    ) -> Applied {
        let applied = locked.apply(db, effect, thresholds);
        match *effect {
            Effect::Define { what, name, definition } => self.define(locked, what, name, Some(definition)),
            Effect::Undefine { what, name } => self.define(locked, what, name, None),
            Effect::Change { .. }
            | Effect::Delete { .. }
            | Effect::Deadline { .. }
            | Effect::Rename { .. }
            | Effect::Copy { .. }
            | Effect::Move { .. }
            | Effect::Put { .. }
            | Effect::FlushDb
            | Effect::FlushAll
            | Effect::SwapDb { .. } => {}
        }
        applied
    }

    /// After a start: makes the functions of all recovered libraries callable, and hooks call them. Returns why some libraries
    /// cannot be compiled any more; those stay stored.
    pub fn revive_functions(&self) -> Vec<String> {
        let locked = self.keyspace.lock_shard(0);
        self.sessions.take_hooks(locked.definitions());
        let libraries = locked.definitions().libraries();
        let kept = libraries.map(|(name, code)| (name.to_vec(), code.clone())).collect();
        drop(locked);
        self.functions.revive(kept)
    }

    #[cold]
    fn define(&self, locked: &mut Locked<'_>, what: Definable, name: &[u8], definition: Option<&[u8]>) {
        match what {
            Definable::Index => self.define_index(locked, name, definition),
            // It matters at the next start.
            Definable::Fork | Definable::Restore => {}
            Definable::Hook => self.sessions.set_hook(name, definition),
            Definable::Library => {
                if let Err(why) = self.functions.define(name, definition) {
                    let name = name.escape_ascii();
                    self.host.log(&format!("the library '{name}' is kept but cannot be called: {why}"));
                }
            }
        }
    }

    /// Commits what the worker has recorded under `locked`, on behalf of a client or of the server itself: appends the
    /// batch, publishes its notifications, serves waiters, notes what the client's reply depends on. Returns the
    /// batch's sequence number, if there is a batch. Does nothing inside a transaction or script: those commit once, at
    /// their end.
    #[inline]
    pub(crate) fn commit(
        &self,
        worker: &mut Worker,
        client: Option<&mut Client>,
        locked: &mut Locked<'_>,
    ) -> Option<u64> {
        if worker.batch.is_atomic {
            return None;
        }
        let sequence = worker.batch.append(self, locked);
        let by = client.as_ref().map_or(0, |client| client.id());
        self.publish_and_serve(worker, sequence.unwrap_or(0), by, locked);
        if let (Some(client), Some(sequence)) = (client, sequence) {
            client.last_batch = sequence;
            client.depends_on = client.depends_on.max(sequence);
        }
        self.free(locked.take_garbage());
        sequence
    }

    /// Commits a batch that is in the journal already, under its number.
    pub(crate) fn commit_replayed(&self, worker: &mut Worker, sequence: u64, locked: &mut Locked<'_>) {
        locked.set_changed_by(sequence);
        self.publish_and_serve(worker, sequence, 0, locked);
        self.free(locked.take_garbage());
    }

    #[inline]
    fn publish_and_serve(&self, worker: &mut Worker, sequence: u64, by: u64, locked: &mut Locked<'_>) {
        if worker.batch.notifications.is_idle() {
            return;
        }
        self.publish(&worker.batch.notifications, sequence, by);
        worker.batch.notifications.make_records_ready(&self.record_waiters, locked, worker.now_ms);
        if !worker.batch.is_serving {
            self.serve_ready(worker, locked);
        }
    }
}
