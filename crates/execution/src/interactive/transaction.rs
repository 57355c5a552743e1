//! One interactive transaction: the keys that it has touched, its private keyspace, and its effects. Knows when it
//! conflicts; refuses to know commands and locks.

use crate::error::CommandError;
use crate::instants::InstantId;
use crate::pending_batch::PendingBatch;
use crate::watches::WatchList;
use hashbrown::HashTable;
use keyspace::footprint;
use keyspace::interest::watchers::ChangeFlag;
use keyspace::shard::Shard;
use keyspace::storage::size_class::size_class;
use keyspace::{Key, KeyHashes, Locked};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A transaction between TXN.BEGIN and its end.
pub struct InteractiveTransaction {
    /// The database of all its keys: SELECT is refused.
    pub(super) db: usize,
    /// Milliseconds of the monotonic clock at TXN.BEGIN.
    pub(super) began_ms: u64,
    pub(super) keys: TouchedKeys,
    /// When the first of the touched keys, or of their fields, expires, as of the shared keyspace.
    pub(super) next_expiry_ms: u64,
    /// Copies of the keys that it has written, with its changes; created by the first write.
    pub(super) private: Option<Box<Shard>>,
    /// About how much memory the copies take.
    pub(super) copies_bytes: usize,
    /// Its effects, and the notifications of its commands.
    pub(super) batch: PendingBatch,
    /// One of its commands is refused when memory is short, so its commit is refused then, too.
    pub(super) needs_memory: bool,
    /// It only reads cells, at this instant: then it touches no keys and has no private keyspace.
    pub(super) reading: Option<Reading>,
    /// Why it has failed. A failed transaction has no other state.
    pub(super) failed: Option<CommandError>,
}

/// The instant of a read-only transaction.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) id: InstantId,
    /// The newest batch at that instant.
    pub(super) sequence: u64,
    /// The time of that instant, in unix milliseconds.
    pub(super) now_ms: u64,
}

/// The keys that a transaction has read or written, by name. All of them are watched.
#[derive(Default)]
pub(super) struct TouchedKeys {
    table: HashTable<TouchedKey>,
    /// Their names, concatenated.
    names: Vec<u8>,
    /// Set when one of them is changed by another client.
    pub(super) changed: ChangeFlag,
}

struct TouchedKey {
    /// Where its name begins.
    name_at: usize,
    name_len: usize,
    hashes: KeyHashes,
    /// The transaction has a copy of it.
    is_private: bool,
    /// About how much memory the copy takes.
    copy_bytes: usize,
}

impl TouchedKey {
    fn name<'n>(&self, names: &'n [u8]) -> &'n [u8] {
        &names[self.name_at..self.name_at + self.name_len]
    }

    fn key<'n>(&self, names: &'n [u8]) -> Key<'n> {
        Key::with_hashes(self.name(names), self.hashes)
    }
}

/// The most keys, and bytes, of a transaction that is kept for reuse.
const KEYS_KEPT_MAX: usize = 16;
const BYTES_KEPT_MAX: usize = 4096;

/// About how many bytes a touched key takes besides its name, here and in the table of watched keys.
const KEY_OVERHEAD_BYTES: usize = 144;

/// How many elements of a large value are sampled to estimate its size.
pub(super) const SAMPLES: usize = 64;

impl InteractiveTransaction {
    pub(super) fn new() -> InteractiveTransaction {
        InteractiveTransaction {
            db: 0,
            began_ms: 0,
            keys: TouchedKeys::default(),
            next_expiry_ms: u64::MAX,
            private: None,
            copies_bytes: 0,
            batch: PendingBatch::private(),
            needs_memory: false,
            reading: None,
            failed: None,
        }
    }

    /// Resets it for reuse, keeping its memory. Its keys are no longer watched. The error is the transaction itself
    /// when it is not worth keeping: free it.
    pub(super) fn emptied(mut self: Box<Self>) -> Result<Box<Self>, Box<Self>> {
        let is_small = self.keys.len() <= KEYS_KEPT_MAX
            && self.held_bytes() <= BYTES_KEPT_MAX
            && self.batch.effects.capacity() <= BYTES_KEPT_MAX;
        if !is_small || !self.keys.clear_flag() {
            return Err(self);
        }
        let InteractiveTransaction { db, keys, private, batch, .. } = &mut *self;
        if let Some(private) = private {
            private.clear_db(*db);
        }
        keys.clear();
        batch.effects.clear();
        batch.notifications.truncate(0);
        (self.next_expiry_ms, self.copies_bytes, self.needs_memory) = (u64::MAX, 0, false);
        Ok(self)
    }

    /// Begins a new transaction in this memory.
    pub(super) fn begin(&mut self, db: usize, began_ms: u64) {
        (self.db, self.began_ms) = (db, began_ms);
    }

    /// False when it has failed.
    pub(super) fn is_open(&self) -> bool {
        self.failed.is_none()
    }

    /// True when it has recorded changes.
    pub fn has_written(&self) -> bool {
        !self.batch.effects.is_empty()
    }

    /// True when another client has changed a touched key, or a touched key has expired: the state that its replies
    /// have shown is gone. Keys to which it has set a deadline itself count too.
    pub(super) fn conflicts(&self, now_ms: u64) -> bool {
        let has_expired = |private: &Shard| private.db(self.db).has_expired(now_ms);
        self.keys.changed.load(Relaxed)
            || now_ms >= self.next_expiry_ms
            || self.private.as_deref().is_some_and(has_expired)
    }

    /// Updates the sizes of the copies of these keys.
    pub(super) fn measure(&mut self, keys: &[Key<'_>]) {
        let Some(private) = &self.private else { return };
        for key in keys {
            let entry = private.db(self.db).entry(*key);
            let bytes = entry.map_or(0, |entry| footprint::bytes_of(entry, SAMPLES));
            let known = self.keys.find_mut(*key);
            self.copies_bytes = self.copies_bytes - known.copy_bytes + bytes;
            known.copy_bytes = bytes;
        }
    }

    /// The bytes that `txn-max-bytes` limits.
    pub(super) fn held_bytes(&self) -> usize {
        self.copies_bytes + self.keys.names.len() + self.batch.effects.len() + self.batch.notifications.bytes()
    }

    /// About how much memory it takes in total.
    pub(super) fn memory_bytes(&self) -> usize {
        let private = if self.private.is_some() { size_of::<Shard>() } else { 0 };
        let buffers = size_class(self.keys.names.capacity()) + size_class(self.batch.effects.capacity());
        let kept = self.copies_bytes + buffers + self.batch.notifications.bytes();
        size_of::<InteractiveTransaction>() + private + kept + self.keys.len() * KEY_OVERHEAD_BYTES
    }
}

impl TouchedKeys {
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// True when the transaction has a copy of a key.
    pub(super) fn is_private(&self, key: Key<'_>) -> bool {
        self.find(key).is_some_and(|known| known.is_private)
    }

    /// True when it has read or written the key.
    pub(super) fn has(&self, key: Key<'_>) -> bool {
        self.find(key).is_some()
    }

    fn find(&self, key: Key<'_>) -> Option<&TouchedKey> {
        self.table.find(key.hash.get(), |known| known.name(&self.names) == key.name)
    }

    /// Adds a key. False when it was added before.
    pub(super) fn add(&mut self, key: Key<'_>) -> bool {
        if self.has(key) {
            return false;
        }
        let (name_at, name_len) = (self.names.len(), key.name.len());
        self.names.extend_from_slice(key.name);
        let added = TouchedKey { name_at, name_len, hashes: key.hashes(), is_private: false, copy_bytes: 0 };
        self.table.insert_unique(key.hash.get(), added, |known| known.hashes.hash.get());
        true
    }

    /// Notes that the transaction has a copy of a key that was added before.
    pub(super) fn set_private(&mut self, key: Key<'_>) {
        self.find_mut(key).is_private = true;
    }

    fn find_mut(&mut self, key: Key<'_>) -> &mut TouchedKey {
        let known = self.table.find_mut(key.hash.get(), |known| known.name(&self.names) == key.name);
        known.expect("a key is watched before it is copied")
    }

    /// All touched keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = Key<'_>> {
        self.table.iter().map(|known| known.key(&self.names))
    }

    /// The keys of which the transaction has copies.
    pub(super) fn private(&self) -> impl Iterator<Item = Key<'_>> {
        self.table.iter().filter(|known| known.is_private).map(|known| known.key(&self.names))
    }

    fn clear(&mut self) {
        self.table.clear();
        self.names.clear();
    }

    /// Clears the flag. False when a table of watched keys still refers to it.
    fn clear_flag(&mut self) -> bool {
        let flag = Arc::get_mut(&mut self.changed);
        flag.map(|flag| *flag.get_mut() = false).is_some()
    }

    /// The watches, to be removed from the tables of their shards.
    pub(super) fn into_watches(self, db: usize) -> WatchList {
        let names = self.table.iter().map(|known| (db, known.name(&self.names).into()));
        WatchList::new(names.collect(), self.names.len(), self.changed)
    }
}

/// About how many bytes these keys take.
pub(super) fn bytes_of(locked: &Locked<'_>, db: usize, keys: &[Key<'_>]) -> usize {
    let entries = keys.iter().filter_map(|key| locked.db(db, *key).entry(*key));
    entries.map(|entry| footprint::bytes_of(entry, SAMPLES)).fold(0, usize::saturating_add)
}
