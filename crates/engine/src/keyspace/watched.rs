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
    keys: HashMap<DbKey, SmallVec<[Watcher; 1]>>,
}

/// A database and a name.
type DbKey = (usize, Box<[u8]>);

struct Watcher {
    flag: ChangeFlag,
    /// The key's time had come when it was watched: that it is removed then changes nothing.
    was_overdue: bool,
}

impl Watched {
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Has a change of the key set `flag`.
    pub fn watch(&mut self, db: usize, name: &[u8], flag: &ChangeFlag, was_overdue: bool) {
        let watchers = self.keys.entry((db, name.into())).or_default();
        watchers.push(Watcher { flag: flag.clone(), was_overdue });
    }

    /// Ends that.
    pub fn unwatch(&mut self, db: usize, name: &[u8], flag: &ChangeFlag) {
        let key = (db, name.into());
        let Some(watchers) = self.keys.get_mut(&key) else { return };
        watchers.retain(|watcher| !Arc::ptr_eq(&watcher.flag, flag));
        if watchers.is_empty() {
            self.keys.remove(&key);
        }
    }

    /// True when the key's time had come when it was watched with `flag`.
    pub fn was_overdue(&self, db: usize, name: &[u8], flag: &ChangeFlag) -> bool {
        let watchers = self.keys.get(&(db, name.into())).into_iter().flatten();
        watchers.into_iter().any(|watcher| watcher.was_overdue && Arc::ptr_eq(&watcher.flag, flag))
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
