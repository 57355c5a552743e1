//! Keys of a shard that clients watch (WATCH). A side table: keys that are not watched pay nothing for it. Knows which
//! flags a change sets; refuses to know what a transaction is.

use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set when a key that its owner watches has changed.
pub type ChangeFlag = Arc<AtomicBool>;

/// Watched keys by database and name.
#[derive(Default)]
pub struct Watched {
    /// The watchers of one key are sorted: there may be thousands.
    keys: HashMap<DbKey, SmallVec<[Watcher; 1]>>,
}

/// A database and a name.
type DbKey = (usize, Box<[u8]>);

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

impl Watched {
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Has a change of the key set `flag`.
    pub fn watch(&mut self, db: usize, name: &[u8], flag: &ChangeFlag, was_expired: bool) {
        let watchers = self.keys.entry((db, name.into())).or_default();
        let place = watchers.partition_point(|watcher| watcher.order() < Arc::as_ptr(flag));
        watchers.insert(place, Watcher { flag: flag.clone(), was_expired });
    }

    /// Ends that.
    pub fn unwatch(&mut self, db: usize, name: &[u8], flag: &ChangeFlag) {
        let key = (db, name.into());
        let Some(watchers) = self.keys.get_mut(&key) else { return };
        if let Ok(place) = watchers.binary_search_by_key(&Arc::as_ptr(flag), Watcher::order) {
            watchers.remove(place);
        }
        if watchers.is_empty() {
            self.keys.remove(&key);
        }
    }

    /// True when the key had expired when it was watched with `flag`.
    pub fn was_expired(&self, db: usize, name: &[u8], flag: &ChangeFlag) -> bool {
        let Some(watchers) = self.keys.get(&(db, name.into())) else { return false };
        let place = watchers.binary_search_by_key(&Arc::as_ptr(flag), Watcher::order);
        place.is_ok_and(|place| watchers[place].was_expired)
    }

    /// The key has changed, or expired parts of it were removed.
    pub fn changed(&mut self, db: usize, name: &[u8], expired: bool) {
        let Some(watchers) = self.keys.get_mut(&(db, name.into())) else { return };
        for watcher in watchers.iter().filter(|watcher| !(expired && watcher.was_expired)) {
            watcher.flag.store(true, Relaxed);
        }
    }

    /// All keys of a database are replaced: `states` returns the old and the new state of each.
    pub fn all_replaced(&mut self, db: usize, states: impl Fn(&[u8]) -> (KeyState, KeyState)) {
        for ((_, name), watchers) in self.keys.iter_mut().filter(|((of, _), _)| *of == db) {
            let (before, after) = states(name);
            for watcher in watchers {
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
