//! Keys of a shard that clients watch (WATCH, and keys of interactive transactions). A side table: keys that are not
//! watched pay nothing for it. Knows which flags a change sets; refuses to know what a transaction is.

use super::room_left;
use crate::storage::Key;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A flag that is set when a watched key changes.
pub type ChangeFlag = Arc<AtomicBool>;

/// Watched keys by database and name. The hash of the key is reused: while any key of the server is watched, every
/// effect looks here.
#[derive(Default)]
pub struct Watched {
    keys: HashTable<WatchedKey>,
}

struct WatchedKey {
    db: usize,
    /// The hash of the name.
    hash: u64,
    name: Box<[u8]>,
    /// Sorted, since there may be thousands.
    watchers: SmallVec<[Watcher; 1]>,
}

/// The state of a key as readers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    Absent,
    /// Still in the table, but absent for readers.
    Expired,
    Present,
}

struct Watcher {
    flag: ChangeFlag,
    /// The key had expired when it was watched, so its removal is not a change. This stays true: a write that gives the
    /// key a value sets the flag.
    was_expired: bool,
}

impl Watcher {
    /// The sort key of a watcher.
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

    /// Adds a watch: a change of the key sets `flag`.
    pub fn watch(&mut self, db: usize, key: Key<'_>, flag: &ChangeFlag, was_expired: bool) {
        let hash = key.hash.get();
        let entry = self.keys.entry(hash, |known| known.is(db, key), |known| known.hash);
        let known = entry.or_insert_with(|| WatchedKey { db, hash, name: key.name.into(), watchers: SmallVec::new() });
        let watchers = &mut known.into_mut().watchers;
        let place = watchers.partition_point(|watcher| watcher.order() < Arc::as_ptr(flag));
        watchers.insert(place, Watcher { flag: flag.clone(), was_expired });
    }

    /// Removes a watch.
    pub fn unwatch(&mut self, db: usize, key: Key<'_>, flag: &ChangeFlag) {
        let Ok(mut known) = self.keys.find_entry(key.hash.get(), |known| known.is(db, key)) else { return };
        let watchers = &mut known.get_mut().watchers;
        if let Ok(place) = watchers.binary_search_by_key(&Arc::as_ptr(flag), Watcher::order) {
            watchers.remove(place);
        }
        if watchers.is_empty() {
            known.remove();
            if let Some(room) = room_left(self.keys.len(), self.keys.capacity()) {
                self.keys.shrink_to(room, |known| known.hash);
            }
        } else if room_left(watchers.len(), watchers.capacity()).is_some() {
            watchers.shrink_to_fit();
        }
    }

    /// True when the key had expired when it was watched with `flag`.
    pub fn was_expired(&self, db: usize, key: Key<'_>, flag: &ChangeFlag) -> bool {
        let Some(known) = self.keys.find(key.hash.get(), |known| known.is(db, key)) else { return false };
        let place = known.watchers.binary_search_by_key(&Arc::as_ptr(flag), Watcher::order);
        place.is_ok_and(|place| known.watchers[place].was_expired)
    }

    /// Sets the flags of a key that has changed, or whose expired parts were removed.
    pub fn changed(&mut self, db: usize, key: Key<'_>, expired: bool) {
        let Some(known) = self.keys.find(key.hash.get(), |known| known.is(db, key)) else { return };
        for watcher in known.watchers.iter().filter(|watcher| !(expired && watcher.was_expired)) {
            watcher.flag.store(true, Relaxed);
        }
    }

    /// Sets the flags of a database whose keys are all replaced: `states` returns the old and the new state of each.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_gives_its_memory_back() {
        let (mut watched, flag) = (Watched::default(), ChangeFlag::default());
        let names: Vec<[u8; 4]> = (0..10_000_u32).map(u32::to_le_bytes).collect();
        names.iter().for_each(|name| watched.watch(0, Key::new(name), &flag, false));
        let (stays, leave) = names.split_first().unwrap();
        leave.iter().for_each(|name| watched.unwatch(0, Key::new(name), &flag));
        assert!(watched.keys.capacity() < 100, "{}", watched.keys.capacity());
        watched.changed(0, Key::new(stays), false);
        assert!(flag.load(Relaxed));
        watched.unwatch(0, Key::new(stays), &flag);
        assert!(watched.is_empty());
    }

    #[test]
    fn a_key_of_many_watchers_gives_their_memory_back() {
        let mut watched = Watched::default();
        let flags: Vec<ChangeFlag> = (0..1_000).map(|_| ChangeFlag::default()).collect();
        flags.iter().for_each(|flag| watched.watch(0, Key::new(b"key"), flag, false));
        flags[1..].iter().for_each(|flag| watched.unwatch(0, Key::new(b"key"), flag));
        let known = watched.keys.iter().next().unwrap();
        assert!(known.watchers.len() == 1 && known.watchers.capacity() < 100);
    }
}
