//! Walks over the keyspace for a snapshot, a few keys at a time, while commands continue. Knows which keys form a part
//! and the batch up to which it is complete; refuses to know files.
//!
//! A walk visits keys in the order of their hashes. The keys that it visits under one lock are a *part*: a range of
//! hashes in a shard, in all databases, as it was when the batch of the part's sequence number had just been applied.
//! So each part is exact, though parts are of different instants. A reader of the snapshot applies a batch only to keys
//! whose part is older than the batch: see `replay`.

use crate::engine::Engine;
use keyspace::NameHasher;
pub use keyspace::snapshot::{Placement, SnapshotPart};
use std::time::Duration;

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

/// Begins a walk over all keys.
pub fn walk(engine: &Engine) -> Walk<'_> {
    Walk { engine, shard: 0, from: 0, spoiled_before: engine.walks.begin() }
}

/// How often a walk checks whether a long script has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

impl Walk<'_> {
    /// How this process places keys, which a reader of the parts needs.
    pub fn placement(&self) -> Placement {
        let hasher = NameHasher::of_process();
        Placement { family: NameHasher::FAMILY, seed: hasher.seed(), shards: self.engine.keyspace.shard_count() as u32 }
    }

    /// Appends the keys of the next part, as effects that create them; `None` when the walk is complete.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Option<SnapshotPart> {
        self.next_unless(out, || false)
    }

    /// Like [`next`](Walk::next). Also `None` when `is_given_up` returns true while a long script holds the lock of the
    /// next part.
    pub fn next_unless(&mut self, out: &mut Vec<u8>, is_given_up: impl Fn() -> bool) -> Option<SnapshotPart> {
        if self.shard == self.engine.keyspace.shard_count() {
            return None;
        }
        let locked = loop {
            match self.engine.keyspace.lock_shard_unless_busy(self.shard) {
                Some(locked) => break locked,
                None if is_given_up() => return None,
                None => std::thread::sleep(LOOK_AGAIN),
            }
        };
        // All changes of this shard so far have at most this number, and later ones have a higher one.
        let sequence = self.engine.persistence.tail();
        let (_, shard) = locked.shards().next().expect("the shard was just locked");
        let (end, keys) = shard.image_from(self.from, KEYS_PER_LOCK, BYTES_PER_LOCK, out);
        drop(locked);
        let part = SnapshotPart { shard: self.shard as u32, end, sequence, keys };
        match end.checked_add(1) {
            Some(next) => self.from = next,
            None => {
                self.shard += 1;
                self.from = 0;
            }
        }
        Some(part)
    }

    /// True when its parts are useless: begin another walk.
    pub fn is_spoiled(&self) -> bool {
        self.engine.walks.spoiled() != self.spoiled_before
    }

    /// How much of the keyspace has been visited, from 0 to 1.
    pub fn progress(&self) -> f64 {
        let shards = self.engine.keyspace.shard_count() as f64;
        ((self.shard as f64 + f64::from(self.from) / f64::from(u32::MAX)) / shards).min(1.0)
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        self.engine.walks.end();
    }
}
