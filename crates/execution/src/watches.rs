//! Keys that clients watch, with WATCH or in an interactive transaction. Knows the shards' tables of watched keys;
//! refuses to know what a change leads to.

use crate::clients::{ClientHandle, NameKind};
use keyspace::db::Db;
use keyspace::interest::watchers::{ChangeFlag, Watched};
use keyspace::{Key, Keyspace, Locked};
use locks::{Mutex, rank};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How many watches are removed in one slice.
const REMOVED_AT_ONCE: usize = 512;

/// What all watches have in common.
#[derive(Default)]
pub struct WatchedKeys {
    count: Apart,
    /// Watches that no client needs any more, and that are still in the tables: there were too many to remove them at
    /// once, or a shard could not be locked.
    orphaned: Mutex<VecDeque<WatchList>, { rank::ORPHANED_WATCHES }>,
}

/// A counter alone on its cache lines: every transaction writes it, and its neighbours are read by every command.
#[derive(Default)]
#[repr(align(128))]
struct Apart(AtomicUsize);

impl WatchedKeys {
    /// True when a key is watched.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.0.load(Relaxed) > 0
    }

    /// How many keys are watched.
    pub fn count(&self) -> usize {
        self.count.0.load(Relaxed)
    }

    /// Counts one more watch.
    pub fn add(&self) {
        self.count.0.fetch_add(1, Relaxed);
    }

    /// Counts so many watches less.
    pub fn subtract(&self, count: usize) {
        self.count.0.fetch_sub(count, Relaxed);
    }

    /// Takes a client's watches. They are still in the tables of their shards.
    pub fn take(&self, watches: &mut Watches, handle: &ClientHandle) -> Option<WatchList> {
        let list = *watches.0.take()?;
        self.subtract(list.keys.len());
        handle.watching.store(0, Relaxed);
        handle.remove_names(list.name_bytes);
        Some(list)
    }

    /// Removes watches from the tables of their shards: a slice of them at once, the others in the background. Until
    /// then a change sets a flag that is not read any more.
    pub fn remove(&self, keyspace: &Keyspace, list: WatchList) {
        if let Some(list) = self.remove_some(keyspace, list) {
            self.orphaned.lock().push_back(list);
        }
    }

    /// Removes a slice of watches from the tables of their shards, and returns those that are left. Watches in locked
    /// shards are removed in the background.
    pub fn remove_some(&self, keyspace: &Keyspace, list: WatchList) -> Option<WatchList> {
        match remove_slice(keyspace, list) {
            Removed::All => None,
            Removed::Some(rest) => Some(rest),
            Removed::UpToLocked(rest) => {
                self.orphaned.lock().push_back(rest);
                None
            }
        }
    }

    /// Removes a slice of the watches that no client needs any more. True when more can be removed now.
    pub fn remove_orphaned(&self, keyspace: &Keyspace) -> bool {
        let Some(list) = self.orphaned.lock().pop_front() else { return false };
        let removed = remove_slice(keyspace, list);
        let mut orphaned = self.orphaned.lock();
        match removed {
            Removed::All => !orphaned.is_empty(),
            Removed::Some(rest) => {
                orphaned.push_front(rest);
                true
            }
            // Last: a list that waits for a script does not keep the others here.
            Removed::UpToLocked(rest) => {
                orphaned.push_back(rest);
                false
            }
        }
    }
}

/// The result of one slice.
enum Removed {
    All,
    /// The slice is over.
    Some(WatchList),
    /// The shard of the next one is locked for long.
    UpToLocked(WatchList),
}

/// Removes a slice of watches from the tables of their shards. Never block on a shard lock here: a long script may hold
/// it, and the client that could SCRIPT KILL it may be on this thread.
fn remove_slice(keyspace: &Keyspace, mut list: WatchList) -> Removed {
    for _ in 0..REMOVED_AT_ONCE {
        let Some((db, name)) = list.keys.pop_first() else { return Removed::All };
        let key = Key::new(&name);
        match keyspace.lock_key_unless_busy(key) {
            Some(mut locked) => locked.watched_mut(key).unwatch(db, key, &list.changed),
            None => {
                list.keys.insert((db, name));
                return Removed::UpToLocked(list);
            }
        }
    }
    Removed::Some(list)
}

/// Keys that a client watches. A client without watches pays one pointer.
#[derive(Default)]
pub struct Watches(Option<Box<WatchList>>);

#[derive(Default)]
pub struct WatchList {
    /// By database and name: there may be very many.
    pub(super) keys: BTreeSet<(usize, Box<[u8]>)>,
    /// The memory of their names.
    name_bytes: usize,
    /// Set when one of them changes.
    changed: ChangeFlag,
}

impl WatchList {
    /// A list of keys that are in the tables of their shards, with the memory of their names and the flag that is set
    /// there.
    pub fn new(keys: BTreeSet<(usize, Box<[u8]>)>, name_bytes: usize, changed: ChangeFlag) -> WatchList {
        WatchList { keys, name_bytes, changed }
    }
}

impl Watches {
    /// Watches one more key of a database, whose shard is locked. False when it is watched already.
    pub fn add(&mut self, db: usize, key: Key<'_>, watched: &mut Watched, was_expired: bool) -> bool {
        let list = self.0.get_or_insert_default();
        let is_new = list.keys.insert((db, key.name.into()));
        if is_new {
            watched.watch(db, key, &list.changed, was_expired);
            list.name_bytes += NameKind::Watch.bytes(key.name.len());
        }
        is_new
    }

    pub fn keys(&self) -> impl Iterator<Item = &(usize, Box<[u8]>)> {
        self.0.iter().flat_map(|list| &list.keys)
    }

    /// How many keys are watched.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |list| list.keys.len())
    }

    /// True when no key is watched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when one of them has changed.
    pub fn have_changed(&self) -> bool {
        self.0.as_ref().is_some_and(|list| list.changed.load(Relaxed))
    }

    /// True when a watched key has expired but is not removed yet. The keys are locked.
    pub fn any_has_expired(&self, locked: &Locked<'_>, now_ms: u64) -> bool {
        let Some(list) = &self.0 else { return false };
        list.keys.iter().any(|(db, name)| {
            let key = Key::new(name);
            let overdue = locked.db(*db, key).entry(key).is_some_and(|entry| Db::is_expired(entry, now_ms));
            overdue && !locked.shard(key).watched.was_expired(*db, key, &list.changed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(keyspace: &Keyspace, first: usize, count: usize) -> WatchList {
        let mut watches = Watches::default();
        for number in first..first + count {
            let name = format!("k{number}");
            let key = Key::new(name.as_bytes());
            watches.add(0, key, keyspace.lock_key(key).watched_mut(key), false);
        }
        *watches.0.expect("there are some")
    }

    /// Many clients leave lists of any length: none waits for the next cycle because another one has ended.
    #[test]
    fn all_orphaned_watches_are_removed_without_a_pause() {
        let (keyspace, watches) = (Keyspace::new(4), WatchedKeys::default());
        for number in 0..20 {
            let list = list(&keyspace, number * 2_000, 1 + number * 100);
            watches.orphaned.lock().push_back(list);
        }
        let mut slices = 1;
        while watches.remove_orphaned(&keyspace) {
            slices += 1;
        }
        assert!(watches.orphaned.lock().is_empty());
        assert!(slices > 20, "{slices}");
    }
}
