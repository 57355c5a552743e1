//! Client-side caching: which clients want to know when keys that they have read change, and how they are told. Which keys
//! those are is kept beside the keys themselves (`keyspace::interest::readers`), under the locks under which they are read and
//! changed: no change slips in between.

use crate::clients::ClientHandle;
use keyspace::interest::readers::Gained;
use locks::{RwLock, rank};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// All clients that track keys.
#[derive(Default)]
pub struct Tracking {
    pub(crate) clients: RwLock<HashMap<u64, Arc<Tracker>>, { rank::TRACKING_CLIENTS }>,
    /// Prefixes, each with the numbers of the clients that hear of every change below it.
    pub(crate) prefixes: RwLock<Prefixes, { rank::TRACKING_PREFIXES }>,
    /// How many there are of each: looked at without a lock.
    client_count: AtomicUsize,
    prefix_count: AtomicUsize,
    /// Keys that are remembered, and readers of all of them.
    keys: AtomicUsize,
    readers: AtomicUsize,
    /// Clients and keys together: while it is zero, nobody has to be told of anything.
    active: AtomicUsize,
}

/// Which clients hear of every change below a prefix.
#[derive(Default)]
pub(crate) struct Prefixes {
    pub(crate) clients: BTreeMap<Arc<[u8]>, BTreeSet<u64>>,
    /// Those of each client, so that a client's end costs no more than its own.
    of_client: HashMap<u64, BTreeSet<Arc<[u8]>>>,
}

impl Prefixes {
    fn add(&mut self, prefix: &[u8], id: u64) {
        let prefix = self.clients.get_key_value(prefix).map_or_else(|| prefix.into(), |(known, _)| known.clone());
        self.of_client.entry(id).or_default().insert(prefix.clone());
        self.clients.entry(prefix).or_default().insert(id);
    }

    fn remove_client(&mut self, id: u64) {
        for prefix in self.of_client.remove(&id).unwrap_or_default() {
            let Some(ids) = self.clients.get_mut(&prefix) else { continue };
            ids.remove(&id);
            if ids.is_empty() {
                self.clients.remove(&prefix);
            }
        }
    }
}

/// A client that tracks keys, and how.
pub struct Tracker {
    pub(crate) handle: Arc<ClientHandle>,
    pub mode: Mode,
    /// It does not want to hear of what it changes itself.
    pub no_loop: bool,
    /// The client that is told in its place.
    pub redirect: Option<u64>,
    /// That client was gone when it was to be told something.
    pub(crate) redirect_broken: AtomicBool,
}

/// Which keys a client wants to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All that it reads.
    Read,
    /// Those that it reads right after CLIENT CACHING YES.
    OptIn,
    /// All that it reads but right after CLIENT CACHING NO.
    OptOut,
    /// All that begin with one of its prefixes, read or not.
    Broadcast,
}

/// Why a key is not what it was when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Changed,
    /// Nobody has changed it: its time has come.
    Expired,
    /// It may well be the same, but nobody remembers any more who has read it.
    Forgotten,
}

impl Tracker {
    /// True when the keys of a read command are remembered; `caching` when CLIENT CACHING was called right before.
    pub fn remembers(&self, caching: bool) -> bool {
        match self.mode {
            Mode::Read => true,
            Mode::OptIn => caching,
            Mode::OptOut => !caching,
            Mode::Broadcast => false,
        }
    }

    pub fn is_redirect_broken(&self) -> bool {
        self.redirect_broken.load(Relaxed)
    }
}

impl Tracking {
    /// True when there may be somebody to tell of a change. One relaxed load: asked before every one.
    #[inline]
    pub fn any(&self) -> bool {
        self.active.load(Relaxed) > 0
    }

    /// How a client tracks keys, if it does.
    pub fn of(&self, id: u64) -> Option<Arc<Tracker>> {
        if self.client_count.load(Relaxed) == 0 {
            return None;
        }
        self.clients.read().get(&id).cloned()
    }

    /// Has a client track keys, or track them in another way; in broadcast mode with these prefixes beside those it
    /// has already.
    pub fn start(
        &self,
        handle: Arc<ClientHandle>,
        mode: Mode,
        no_loop: bool,
        redirect: Option<u64>,
        prefixes: &[&[u8]],
    ) -> Arc<Tracker> {
        let id = handle.id;
        let redirect_broken = AtomicBool::new(false);
        let tracker = Arc::new(Tracker { handle, mode, no_loop, redirect, redirect_broken });
        if self.clients.write().insert(id, tracker.clone()).is_none() {
            self.client_count.fetch_add(1, Relaxed);
            self.active.fetch_add(1, Relaxed);
        }
        let mut known = self.prefixes.write();
        for prefix in prefixes {
            known.add(prefix, id);
        }
        self.prefix_count.store(known.clients.len(), Relaxed);
        tracker
    }

    /// Ends that. What the client has read stays remembered until it changes: nobody is told then.
    pub fn stop(&self, tracker: &Tracker) {
        let id = tracker.handle.id;
        if self.clients.write().remove(&id).is_some() {
            self.client_count.fetch_sub(1, Relaxed);
            self.active.fetch_sub(1, Relaxed);
        }
        if tracker.mode == Mode::Broadcast {
            let mut known = self.prefixes.write();
            known.remove_client(id);
            self.prefix_count.store(known.clients.len(), Relaxed);
        }
    }

    /// The prefixes of a client.
    pub fn prefixes_of(&self, id: u64) -> Vec<Arc<[u8]>> {
        self.prefixes.read().of_client.get(&id).into_iter().flatten().cloned().collect()
    }

    /// True when somebody wants to hear of all changes below a prefix.
    pub fn has_prefixes(&self) -> bool {
        self.prefix_count.load(Relaxed) > 0
    }

    /// Clients that track, keys that are remembered, readers of all of them, and prefixes.
    pub fn totals(&self) -> [usize; 4] {
        [&self.client_count, &self.keys, &self.readers, &self.prefix_count].map(|count| count.load(Relaxed))
    }

    /// How many keys more are remembered than `keys_max`, which is no limit when it is 0.
    pub(crate) fn keys_beyond(&self, keys_max: u64) -> usize {
        match keys_max {
            0 => 0,
            _ => (self.keys.load(Relaxed) as u64).saturating_sub(keys_max) as usize,
        }
    }

    pub(crate) fn note_remembered(&self, gained: Gained) {
        self.keys.fetch_add(gained.keys, Relaxed);
        self.active.fetch_add(gained.keys, Relaxed);
        self.readers.fetch_add(gained.readers, Relaxed);
    }

    /// A key of so many readers is no longer remembered.
    pub(crate) fn note_forgotten(&self, readers: usize) {
        self.keys.fetch_sub(1, Relaxed);
        self.active.fetch_sub(1, Relaxed);
        self.readers.fetch_sub(readers, Relaxed);
    }

    /// No key is remembered any more. All shards are locked.
    pub(crate) fn note_all_forgotten(&self) {
        self.active.fetch_sub(self.keys.swap(0, Relaxed), Relaxed);
        self.readers.store(0, Relaxed);
    }
}
