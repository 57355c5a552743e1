//! Which keys of a shard somebody watches (WATCH). A side table: keys that nobody watches pay nothing for it. Knows who
//! is to be told of a change; refuses to know what a transaction is.

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

struct Watcher {
    flag: ChangeFlag,
    /// The key's time had come when it was watched: that it is removed then changes nothing.
    was_overdue: bool,
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
    pub fn watch(&mut self, db: usize, name: &[u8], flag: &ChangeFlag, was_overdue: bool) {
        let watchers = self.keys.entry((db, name.into())).or_default();
        let place = watchers.partition_point(|watcher| watcher.order() < Arc::as_ptr(flag));
        watchers.insert(place, Watcher { flag: flag.clone(), was_overdue });
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

    /// True when the key's time had come when it was watched with `flag`.
    pub fn was_overdue(&self, db: usize, name: &[u8], flag: &ChangeFlag) -> bool {
        let Some(watchers) = self.keys.get(&(db, name.into())) else { return false };
        let place = watchers.binary_search_by_key(&Arc::as_ptr(flag), Watcher::order);
        place.is_ok_and(|place| watchers[place].was_overdue)
    }

    /// The key has changed; or it was removed because its time had come.
    pub fn changed(&mut self, db: usize, name: &[u8], expired: bool) {
        let Some(watchers) = self.keys.get_mut(&(db, name.into())) else { return };
        for watcher in watchers {
            if !(expired && std::mem::take(&mut watcher.was_overdue)) {
                watcher.flag.store(true, Relaxed);
            }
        }
    }

    /// Those watched keys of a database have changed for which `test` holds.
    pub fn all_changed(&self, db: usize, test: impl Fn(&[u8]) -> bool) {
        for ((_, name), watchers) in self.keys.iter().filter(|((of, _), _)| *of == db) {
            if test(name) {
                watchers.iter().for_each(|watcher| watcher.flag.store(true, Relaxed));
            }
        }
    }
}
