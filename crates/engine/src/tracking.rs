//! Client-side caching: which clients want to know when keys that they have read change, and how they are told. Which keys
//! those are is kept beside the keys themselves (`keyspace::interest::readers`), under the locks under which they are read and
//! changed: no change slips in between.

use crate::client::Client;
use crate::clients::ClientHandle;
use crate::engine::Engine;
use crate::settings::ClientClass;
use keyspace::interest::readers::Gained;
use locks::{RwLock, rank};
use resp::{Protocol, Reply};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// All clients that track keys.
#[derive(Default)]
pub struct Tracking {
    clients: RwLock<HashMap<u64, Arc<Tracker>>, { rank::TRACKING_CLIENTS }>,
    /// Prefixes, each with the numbers of the clients that hear of every change below it.
    prefixes: RwLock<Prefixes, { rank::TRACKING_PREFIXES }>,
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
struct Prefixes {
    clients: BTreeMap<Arc<[u8]>, BTreeSet<u64>>,
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
    handle: Arc<ClientHandle>,
    pub mode: Mode,
    /// It does not want to hear of what it changes itself.
    pub no_loop: bool,
    /// The client that is told in its place.
    pub redirect: Option<u64>,
    /// That client was gone when it was to be told something.
    redirect_broken: AtomicBool,
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

/// What a message tells of.
pub enum Stale<'a> {
    Keys(&'a [&'a [u8]]),
    Everything,
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
    pub fn start(&self, client: &mut Client, mode: Mode, no_loop: bool, redirect: Option<u64>, prefixes: &[&[u8]]) {
        let id = client.id();
        let redirect_broken = AtomicBool::new(false);
        let handle = client.handle.clone();
        let tracker = Arc::new(Tracker { handle, mode, no_loop, redirect, redirect_broken });
        client.tracker = Some(tracker.clone());
        if self.clients.write().insert(id, tracker).is_none() {
            self.client_count.fetch_add(1, Relaxed);
            self.active.fetch_add(1, Relaxed);
        }
        let mut known = self.prefixes.write();
        for prefix in prefixes {
            known.add(prefix, id);
        }
        self.prefix_count.store(known.clients.len(), Relaxed);
    }

    /// Ends that. What the client has read stays remembered until it changes: nobody is told then.
    pub fn stop(&self, client: &mut Client) {
        let Some(tracker) = client.tracker.take() else { return };
        client.caching = false;
        let id = client.id();
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

impl Engine {
    /// Tells those who have read a key that it has changed. `by` is the client whose command is running, or 0.
    pub(crate) fn tell_readers(&self, name: &[u8], readers: &[u64], by: u64) {
        for id in readers {
            // Who does not track any more, or tracks prefixes now, does not want to hear of it.
            let Some(tracker) = self.tracking.of(*id).filter(|tracker| tracker.mode != Mode::Broadcast) else {
                continue;
            };
            if !(tracker.no_loop && *id == by) {
                self.tell_tracker(&tracker, &Stale::Keys(&[name]));
            }
        }
    }

    /// Tells all who track that everything has changed.
    pub(crate) fn tell_all_trackers(&self) {
        let trackers: Vec<Arc<Tracker>> = self.tracking.clients.read().values().cloned().collect();
        for tracker in trackers {
            self.tell_tracker(&tracker, &Stale::Everything);
        }
    }

    /// Tells those who track prefixes of keys that have changed: a message for each prefix. Each key comes with whether
    /// it was changed by the client `by`.
    pub(crate) fn tell_below_prefixes(&self, changed: &BTreeMap<&[u8], bool>, by: u64) {
        for (prefix, ids) in &self.tracking.prefixes.read().clients {
            let below = || changed.iter().filter(|(name, _)| name.starts_with(prefix));
            let all: Vec<&[u8]> = below().map(|(name, _)| *name).collect();
            for tracker in ids.iter().filter_map(|id| self.tracking.of(*id)) {
                let others: Vec<&[u8]>;
                let keys = match tracker.no_loop && tracker.handle.id == by {
                    true => {
                        others = below().filter(|(_, own)| !**own).map(|(name, _)| *name).collect();
                        &others
                    }
                    false => &all,
                };
                if !keys.is_empty() {
                    self.tell_tracker(&tracker, &Stale::Keys(keys));
                }
            }
        }
    }

    /// Sends a message to a client that tracks, or to the one it has named. A push where the protocol has such; in RESP2
    /// a message on a channel, to a client that was named and listens.
    fn tell_tracker(&self, tracker: &Tracker, stale: &Stale<'_>) {
        let target = match tracker.redirect {
            None => tracker.handle.clone(),
            Some(id) => match self.clients.get(id) {
                Some(target) => target,
                None => return self.tell_of_broken_redirect(tracker, id),
            },
        };
        let mut bytes = Vec::new();
        let mut message = Reply::new(&mut bytes, protocol(&target));
        if message.protocol() == Protocol::Resp3 {
            message.push(2);
            message.bulk(b"invalidate");
        } else if tracker.redirect.is_some() && target.is_subscriber() {
            message.push(3);
            message.bulk(b"message");
            message.bulk(b"__redis__:invalidate");
        } else {
            return;
        }
        match stale {
            Stale::Keys(keys) => {
                message.array(keys.len());
                keys.iter().for_each(|key| message.bulk(key));
            }
            // As in Redis: the null of the client that tracks, whoever is told.
            Stale::Everything => {
                message.set_protocol(protocol(&tracker.handle));
                message.null();
            }
        }
        self.send_unasked(&target, &bytes);
    }

    fn tell_of_broken_redirect(&self, tracker: &Tracker, id: u64) {
        tracker.redirect_broken.store(true, Relaxed);
        if protocol(&tracker.handle) == Protocol::Resp3 {
            let mut bytes = Vec::new();
            let mut message = Reply::new(&mut bytes, Protocol::Resp3);
            message.push(2);
            message.bulk(b"tracking-redir-broken");
            message.integer(id as i64);
            self.send_unasked(&tracker.handle, &bytes);
        }
    }

    fn send_unasked(&self, target: &ClientHandle, bytes: &[u8]) {
        let class = if target.is_subscriber() { ClientClass::Pubsub } else { ClientClass::Normal };
        // That something has changed may be told at once: whoever reads it again waits for what has changed to be kept.
        target.send(bytes, self.settings.client_output_buffer_limit(class).hard_bytes);
    }
}

fn protocol(handle: &ClientHandle) -> Protocol {
    if handle.resp.load(Relaxed) == 3 { Protocol::Resp3 } else { Protocol::Resp2 }
}
