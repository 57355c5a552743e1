//! Keys of a shard that clients watch (WATCH, and keys of interactive transactions). A side table: keys that are not
//! watched pay nothing for it. Knows which flags a change sets; refuses to know what a transaction is.

use crate::storage::Key;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set when a key that its owner watches has changed.
pub type ChangeFlag = Arc<AtomicBool>;

/// Watched keys by database and name. Names are hashed once, with the key itself: while any key of the server is
/// watched, every effect looks here.
#[derive(Default)]
pub struct Watched {
    keys: HashTable<WatchedKey>,
}

struct WatchedKey {
    db: usize,
    /// Of the name.
    hash: u64,
    name: Box<[u8]>,
    /// Sorted: there may be thousands.
    watchers: SmallVec<[Watcher; 1]>,
}

/// What a key is for readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    Absent,
    /// It is still in the table, though absent for readers.
    Expired,
    Present,
}

struct Watcher {
    flag: ChangeFlag,
    /// The key had expired when it was watched: its removal then is no change. This stays true: a write that gives the
    /// key a value sets the flag.
    was_expired: bool,
}

impl Watcher {
    /// What watchers of a key are sorted by.
    fn order(&self) -> *const AtomicBool {
        Arc::as_ptr(&self.flag)
    }
}

impl WatchedKey {
    fn is(&self, db: usize, key: Key<'_>) -> bool {
        self.db == db && *self.name == *key.name
    }
}

impl Watched {
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Has a change of the key set `flag`.
    pub fn watch(&mut self, db: usize, key: Key<'_>, flag: &ChangeFlag, was_expired: bool) {
        let hash = key.hash.get();
        let entry = self.keys.entry(hash, |known| known.is(db, key), |known| known.hash);
        let known = entry.or_insert_with(|| WatchedKey { db, hash, name: key.name.into(), watchers: SmallVec::new() });
        let watchers = &mut known.into_mut().watchers;
        let place = watchers.partition_point(|watcher| watcher.order() < Arc::as_ptr(flag));
        watchers.insert(place, Watcher { flag: flag.clone(), was_expired });
    }

    /// Ends that.
    pub fn unwatch(&mut self, db: usize, key: Key<'_>, flag: &ChangeFlag) {
        let Ok(mut known) = self.keys.find_entry(key.hash.get(), |known| known.is(db, key)) else { return };
        let watchers = &mut known.get_mut().watchers;
        if let Ok(place) = watchers.binary_search_by_key(&Arc::as_ptr(flag), Watcher::order) {
            watchers.remove(place);
        }
        if watchers.is_empty() {
            known.remove();
        }
    }

    /// True when the key had expired when it was watched with `flag`.
    pub fn was_expired(&self, db: usize, key: Key<'_>, flag: &ChangeFlag) -> bool {
        let Some(known) = self.keys.find(key.hash.get(), |known| known.is(db, key)) else { return false };
        let place = known.watchers.binary_search_by_key(&Arc::as_ptr(flag), Watcher::order);
        place.is_ok_and(|place| known.watchers[place].was_expired)
    }

    /// The key has changed, or expired parts of it were removed.
    pub fn changed(&mut self, db: usize, key: Key<'_>, expired: bool) {
        let Some(known) = self.keys.find(key.hash.get(), |known| known.is(db, key)) else { return };
        for watcher in known.watchers.iter().filter(|watcher| !(expired && watcher.was_expired)) {
            watcher.flag.store(true, Relaxed);
        }
    }

    /// All keys of a database are replaced: `states` returns the old and the new state of each.
    pub fn all_replaced(&mut self, db: usize, states: impl Fn(&[u8]) -> (KeyState, KeyState)) {
        for known in self.keys.iter_mut().filter(|known| known.db == db) {
            let (before, after) = states(&known.name);
            for watcher in &mut known.watchers {
                // A key that had expired when it was watched, and has no value now, has not changed.
                let was_present = before == KeyState::Present || before == KeyState::Expired && !watcher.was_expired;
                if was_present || after == KeyState::Present {
                    watcher.flag.store(true, Relaxed);
                } else if after == KeyState::Expired {
                    watcher.was_expired = true;
                }
            }
        }
    }
}
