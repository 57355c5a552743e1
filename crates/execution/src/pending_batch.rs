//! The effects and notifications that a worker has not committed yet. Refuses to know when they are committed.

use crate::notifications::pending::PendingNotifications;
use crate::persistence::Persistence;
use keyspace::Locked;

/// The effects and notifications that a worker has not committed yet.
#[derive(Default)]
pub struct PendingBatch {
    /// Encoded effects, as the journal stores them.
    pub effects: Vec<u8>,
    /// Notifications that are pending until the commit.
    pub notifications: PendingNotifications,
    /// Several commands make one batch: a transaction or a script.
    pub is_atomic: bool,
    /// Waiters are being served: the same loop serves the keys that their commands make ready.
    pub is_serving: bool,
    /// It belongs to an interactive transaction: the effects are on its private keyspace, and other clients do not see
    /// them.
    pub is_private: bool,
    /// A command of the transaction has panicked.
    pub has_panicked: bool,
    /// A script of the transaction has touched a key that it did not declare.
    pub touched_undeclared_key: bool,
    /// A script on this thread was stopped because it took too long.
    pub script_was_cut_short: bool,
    /// A script has called a command that writes: from then on it is not refused when memory is short.
    pub script_has_written: bool,
}

/// The largest buffer for effects that is kept for the next batch.
const BATCH_BYTES_KEPT: usize = 256 * 1024;

impl PendingBatch {
    /// The batch of an interactive transaction.
    pub fn private() -> PendingBatch {
        PendingBatch { is_atomic: true, is_private: true, ..PendingBatch::default() }
    }

    /// Appends the effects to the journal, if there are any. IMPORTANT: call this while the changed shards are locked,
    /// so that the journal has the changes of every key in the order in which they were made.
    #[inline]
    pub fn append(&mut self, persistence: &dyn Persistence, locked: &mut Locked<'_>, time_ms: u64) -> Option<u64> {
        if self.effects.is_empty() {
            return None;
        }
        let sequence = persistence.append(&self.effects, time_ms);
        match self.effects.capacity() > BATCH_BYTES_KEPT {
            true => self.effects = Vec::new(),
            false => self.effects.clear(),
        }
        locked.set_changed_by(sequence);
        Some(sequence)
    }
}
