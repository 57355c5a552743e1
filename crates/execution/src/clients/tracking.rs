//! Client-side caching: which clients track keys, and in which mode. The keys that each client has read are kept in the
//! keys' shards (`keyspace::interest::readers`), under the locks under which keys are read and changed, so that no
//! change is missed. Refuses to know how messages are sent.

use crate::clients::ClientHandle;
use keyspace::interest::readers::Gained;
use locks::{RwLock, rank};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// All clients that track keys.
#[derive(Default)]
pub struct Tracking {
    pub clients: RwLock<HashMap<u64, Arc<Tracker>>, { rank::TRACKING_CLIENTS }>,
    /// Broadcast mode: prefixes, each with the ids of the clients that track it.
    pub prefixes: RwLock<Prefixes, { rank::TRACKING_PREFIXES }>,
    /// The sizes of both, readable without a lock.
    client_count: AtomicUsize,
    prefix_count: AtomicUsize,
    /// Tracked keys, and the readers of all of them.
    keys: AtomicUsize,
    readers: AtomicUsize,
    /// Clients plus keys: while it is zero, no change needs an invalidation.
    active: AtomicUsize,
}

/// The clients that track each prefix.
#[derive(Default)]
pub struct Prefixes {
    pub clients: BTreeMap<Arc<[u8]>, BTreeSet<u64>>,
    /// The prefixes of each client, so that removing a client visits only its own.
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
    pub handle: Arc<ClientHandle>,
    pub mode: Mode,
    /// NOLOOP: it gets no invalidations for its own changes.
    pub no_loop: bool,
    /// REDIRECT: the client that gets its invalidations.
    pub redirect: Option<u64>,
    /// The REDIRECT target was disconnected when an invalidation was due.
    pub redirect_broken: AtomicBool,
    /// Tracking was turned off: invalidations that are on their way are not sent.
    stopped: AtomicBool,
}

/// Which keys a client tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All keys that it reads.
    Read,
    /// Keys that it reads right after CLIENT CACHING YES.
    OptIn,
    /// All keys that it reads, except right after CLIENT CACHING NO.
    OptOut,
    /// All keys that begin with one of its prefixes, read or not.
    Broadcast,
}

/// Why an invalidation is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Changed,
    /// The key has expired.
    Expired,
    /// The key may be unchanged, but its readers are no longer remembered.
    Forgotten,
}

impl Tracker {
    /// True when the keys of a read command are to be tracked; `caching` when CLIENT CACHING was called right before.
    pub fn remembers(&self, caching: bool) -> bool {
        match self.mode {
            Mode::Read => true,
            Mode::OptIn => caching,
            Mode::OptOut => !caching,
            Mode::Broadcast => false,
        }
    }

    /// True when the client no longer tracks keys.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    pub fn is_redirect_broken(&self) -> bool {
        self.redirect_broken.load(Relaxed)
    }
}

impl Tracking {
    /// True when a change may need an invalidation. One relaxed load: checked for every change.
    #[inline]
    pub fn any(&self) -> bool {
        self.active.load(Relaxed) > 0
    }

    /// True when a client tracks keys.
    pub fn has_clients(&self) -> bool {
        self.client_count.load(Relaxed) > 0
    }

    /// How a client tracks keys, if it does.
    pub fn of(&self, id: u64) -> Option<Arc<Tracker>> {
        if !self.has_clients() {
            return None;
        }
        self.clients.read().get(&id).cloned()
    }

    /// Turns tracking on for a client, or changes its mode; in broadcast mode these prefixes are added to those it has.
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
        let stopped = AtomicBool::new(false);
        let tracker = Arc::new(Tracker { handle, mode, no_loop, redirect, redirect_broken, stopped });
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

    /// Turns tracking off. The keys that the client has read stay in the tables until they change, or no client tracks
    /// keys; no message is sent then.
    pub fn stop(&self, tracker: &Tracker) {
        let id = tracker.handle.id;
        tracker.stopped.store(true, Relaxed);
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

    /// True when a client tracks a prefix.
    pub fn has_prefixes(&self) -> bool {
        self.prefix_count.load(Relaxed) > 0
    }

    /// Tracking clients, tracked keys, readers of all of them, and prefixes.
    pub fn totals(&self) -> [usize; 4] {
        [&self.client_count, &self.keys, &self.readers, &self.prefix_count].map(|count| count.load(Relaxed))
    }

    /// By how many keys the tracking table exceeds `keys_max`; 0 means no limit.
    pub fn keys_beyond(&self, keys_max: u64) -> usize {
        match keys_max {
            0 => 0,
            _ => (self.keys.load(Relaxed) as u64).saturating_sub(keys_max) as usize,
        }
    }

    pub fn note_remembered(&self, gained: Gained) {
        self.keys.fetch_add(gained.keys, Relaxed);
        self.active.fetch_add(gained.keys, Relaxed);
        self.readers.fetch_add(gained.readers, Relaxed);
    }

    /// Notes that a key with so many readers is no longer tracked.
    pub fn note_forgotten(&self, readers: usize) {
        self.keys.fetch_sub(1, Relaxed);
        self.active.fetch_sub(1, Relaxed);
        self.readers.fetch_sub(readers, Relaxed);
    }

    /// Notes that no key is tracked any more. All shards are locked.
    pub fn note_all_forgotten(&self) {
        self.active.fetch_sub(self.keys.swap(0, Relaxed), Relaxed);
        self.readers.store(0, Relaxed);
    }
}
