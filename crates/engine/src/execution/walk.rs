//! Walks over the keyspace for a snapshot, a few keys at a time, while commands go on. Knows which keys form a part and
//! the batch up to which it is complete; refuses to know files.
//!
//! A walk visits keys in the order of their hashes. What it finds under one lock is a *part*: a range of hashes in a
//! shard, in all databases, as it was when the batch of the part's sequence number had just been applied. Parts are
//! therefore of different instants, each exact. A reader of the snapshot applies a batch only to keys whose part is
//! older than the batch: see `replay`.

use crate::execution::engine::Engine;
use keyspace::NameHasher;
pub use keyspace::snapshot::{Part, Placement};
use std::sync::atomic::Ordering::SeqCst;

/// Keys encoded under one lock: ten microseconds or so.
const KEYS_PER_LOCK: u32 = 32;
/// Bytes encoded under one lock, for large values; a value is never split.
const BYTES_PER_LOCK: usize = 64 * 1024;

/// A walk over all keys. While there is one, batches in the journal do not refer from one key to another.
pub struct Walk<'e> {
    engine: &'e Engine,
    shard: usize,
    /// Where the next part begins.
    from: u32,
    /// How many walks had been spoiled when it began.
    spoiled_before: usize,
}

impl Engine {
    /// Begins a walk over all keys.
    pub fn walk(&self) -> Walk<'_> {
        // IMPORTANT: before the first lock is taken, so that every thread that changes a key after the walk has seen it
        // finds the walk counted.
        self.walks.fetch_add(1, SeqCst);
        Walk { engine: self, shard: 0, from: 0, spoiled_before: self.walks_spoiled.load(SeqCst) }
    }

    /// Notes that a batch refers from one key to another during a walk: the parts of all walks so far are of no use.
    /// Better than carrying a huge value in the batch.
    pub(crate) fn spoil_walks(&self) {
        self.walks_spoiled.fetch_add(1, SeqCst);
    }

    /// True while a walk is under way.
    #[inline]
    pub(crate) fn is_walked(&self) -> bool {
        self.walks.load(SeqCst) > 0
    }
}

impl Walk<'_> {
    /// What a reader of the parts needs: how this process places keys.
    pub fn placement(&self) -> Placement {
        let hasher = NameHasher::of_process();
        Placement { family: NameHasher::FAMILY, seed: hasher.seed(), shards: self.engine.keyspace.shard_count() as u32 }
    }

    /// Appends the keys of the next part, as effects that create them; `None` when the walk is complete.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Option<Part> {
        if self.shard == self.engine.keyspace.shard_count() {
            return None;
        }
        let locked = self.engine.keyspace.lock_shard(self.shard);
        // Whatever has changed this shard has its number by now, and whatever will gets a later one.
        let sequence = self.engine.persistence.tail();
        let (_, shard) = locked.shards().next().expect("the shard was just locked");
        let (end, keys) = shard.image_from(self.from, KEYS_PER_LOCK, BYTES_PER_LOCK, out);
        drop(locked);
        let part = Part { shard: self.shard as u32, end, sequence, keys };
        match end.checked_add(1) {
            Some(next) => self.from = next,
            None => {
                self.shard += 1;
                self.from = 0;
            }
        }
        Some(part)
    }

    /// True when its parts are of no use any more: begin another one.
    pub fn is_spoiled(&self) -> bool {
        self.engine.walks_spoiled.load(SeqCst) != self.spoiled_before
    }

    /// How much of the keyspace has been visited, from 0 to 1.
    pub fn progress(&self) -> f64 {
        let shards = self.engine.keyspace.shard_count() as f64;
        ((self.shard as f64 + f64::from(self.from) / f64::from(u32::MAX)) / shards).min(1.0)
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        self.engine.walks.fetch_sub(1, SeqCst);
    }
}
