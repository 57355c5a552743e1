//! Locks and rows that were looked up ahead for several pipelined requests. Refuses to know how requests are executed.

use crate::command::CommandRow;
use keyspace::locked::{AHEAD_MAX, AheadLocks};
use keyspace::{Key, Keyspace, Locked};
use smallvec::SmallVec;

/// Rows and locks of the next pipelined requests: see `execute::look_ahead`.
#[derive(Default)]
pub struct Ahead<'e> {
    pub(super) locks: Option<AheadLocks<'e>>,
    /// The rows of the next requests, in reverse order: the next one is last.
    pub(super) rows: SmallVec<[&'static CommandRow; AHEAD_MAX]>,
}

impl<'e> Ahead<'e> {
    /// Locks the shard of a key. A shard that is held already is lent; otherwise all held locks are released first.
    #[inline]
    pub fn lock_key<'s>(&'s mut self, keyspace: &'s Keyspace, key: Key<'_>) -> Option<Locked<'s>> {
        if !self.locks.as_ref().is_some_and(|locks| locks.holds(key)) {
            self.release();
        }
        match &mut self.locks {
            Some(locks) => Some(locks.lend(key)),
            None => keyspace.lock_key_unless_busy(key),
        }
    }

    /// Locks the shards of several keys, as [`lock_key`](Ahead::lock_key) does for one.
    pub fn lock_keys<'s>(&'s mut self, keyspace: &'s Keyspace, keys: &[Key<'_>]) -> Option<Locked<'s>> {
        if !self.locks.as_ref().is_some_and(|locks| keys.iter().all(|key| locks.holds(*key))) {
            self.release();
        }
        match &mut self.locks {
            Some(locks) => Some(locks.lend_keys(keys)),
            None => keyspace.lock_keys_unless_busy(keys.iter().copied()),
        }
    }

    /// Releases all locks. Called before a command that takes other locks, or that runs long.
    pub fn release(&mut self) {
        self.locks = None;
    }
}
