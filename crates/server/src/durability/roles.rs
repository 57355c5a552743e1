//! Whether this server writes its log or follows another's, what the other side says of itself, and which changes of
//! role were asked for. Refuses to know how a role is changed (`role_thread`) and how the two sides talk (`links`).

use super::cluster::Cluster;
use crate::platform::sockets::ListeningSocket;
use engine::persistence::{FollowerReport, Replication, Role, RoleChange, WriterReport};
use locks::{Condvar, Mutex, rank};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

/// Results that are kept for clients that have not asked for them yet.
const RESULTS_MAX: usize = 64;

/// The role of this server, shared by all threads.
pub(crate) struct Roles {
    state: Mutex<State, { rank::ROLES }>,
    changed: Condvar,
    follows: AtomicBool,
    /// How often the role has changed.
    changes: AtomicU64,
    is_loading: AtomicBool,
    /// The last batch that is applied here, and its time.
    applied: AtomicU64,
    applied_time_ms: AtomicU64,
    /// How another process gets the sockets that this one listens on.
    sockets: OnceLock<Box<dyn Fn() -> Vec<ListeningSocket> + Send + Sync>>,
    /// The servers of a log that several machines share.
    cluster: OnceLock<Arc<Cluster>>,
}

#[derive(Default)]
struct State {
    orders: VecDeque<Order>,
    is_woken: bool,
    last_number: u64,
    results: BTreeMap<u64, Result<(), String>>,
    writer: KnownWriter,
    followers: BTreeMap<u64, KnownFollower>,
    last_follower: u64,
    /// A follower was told to take over, until then.
    hands_over_until: Option<Instant>,
}

/// What the thread that changes roles is asked to do.
pub(super) enum Order {
    /// Take the log over, by force if its writer does not answer. For the client with that number.
    Promote { number: u64 },
    /// The writer has told this follower to take over (FAILOVER).
    Take,
    /// A follower asks this writer to hand the log over. It is told the last batch, or why not.
    HandOver { answer: mpsc::Sender<Result<u64, HandOverRefusal>> },
    /// The follower that the log was handed to is gone, and has not taken it.
    TakeBack,
}

/// Why a writer does not hand its log over.
pub(super) enum HandOverRefusal {
    /// It has acknowledged what is in no log: it must not be fenced either.
    Unsafe(String),
    /// It cannot, but whoever reads the log has all that it has acknowledged.
    Failed(String),
}

/// What a follower knows of its writer.
#[derive(Default)]
struct KnownWriter {
    port: u16,
    is_connected: bool,
    heard: Option<Instant>,
    tail: u64,
}

/// What a writer knows of a follower.
struct KnownFollower {
    port: u16,
    applied: u64,
    heard: Instant,
    /// Tells it to take over.
    tell: mpsc::Sender<()>,
}

/// Followers and writer are processes of one machine.
pub(super) const HOST: &str = "127.0.0.1";

impl Roles {
    pub(super) fn new() -> Roles {
        Roles {
            state: Mutex::default(),
            changed: Condvar::new(),
            follows: AtomicBool::new(false),
            changes: AtomicU64::new(0),
            is_loading: AtomicBool::new(false),
            applied: AtomicU64::new(0),
            applied_time_ms: AtomicU64::new(0),
            sockets: OnceLock::new(),
            cluster: OnceLock::new(),
        }
    }

    /// Sets how another process gets the sockets that this one listens on.
    pub(crate) fn set_sockets(&self, share: impl Fn() -> Vec<ListeningSocket> + Send + Sync + 'static) {
        let _ = self.sockets.set(Box::new(share));
    }

    /// Sets the servers that share the log.
    pub(crate) fn set_cluster(&self, cluster: Arc<Cluster>) {
        let _ = self.cluster.set(cluster);
    }

    pub(crate) fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.cluster.get()
    }

    pub(super) fn share_listeners(&self) -> Vec<ListeningSocket> {
        self.sockets.get().map(|share| share()).unwrap_or_default()
    }

    /// Notes that this server follows from now on, or writes.
    pub(super) fn set_follows(&self, follows: bool) {
        let mut state = self.state.lock();
        state.writer = KnownWriter::default();
        state.hands_over_until = None;
        self.follows.store(follows, SeqCst);
        self.changes.fetch_add(1, SeqCst);
    }

    /// Tells one time as writer or follower from the next.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(SeqCst)
    }

    pub(super) fn follows(&self) -> bool {
        self.follows.load(SeqCst)
    }

    pub(super) fn set_loading(&self, is_loading: bool) {
        self.is_loading.store(is_loading, Relaxed);
    }

    /// Notes how far a follower is.
    #[inline]
    pub(super) fn set_applied(&self, sequence: u64, time_ms: u64) {
        self.applied.store(sequence, Relaxed);
        self.applied_time_ms.store(time_ms, Relaxed);
    }

    pub(super) fn applied(&self) -> u64 {
        self.applied.load(Relaxed)
    }

    /// For ROLE and INFO; `tail` is the newest batch of a writer.
    pub(super) fn report(&self, now_ms: u64, tail: impl FnOnce() -> u64) -> Replication {
        let state = self.state.lock();
        let silent_ms = |heard: Instant| heard.elapsed().as_millis() as u64;
        let hands_over = state.hands_over_until.is_some_and(|until| Instant::now() < until);
        if !self.follows() {
            let report = |known: &KnownFollower| FollowerReport {
                host: HOST.to_owned(),
                port: known.port,
                sequence: known.applied,
                silent_ms: silent_ms(known.heard),
            };
            let followers = match self.cluster() {
                Some(cluster) => cluster.followers(),
                None => state.followers.values().map(report).collect(),
            };
            drop(state);
            return Replication { role: Role::Writer { followers }, sequence: tail(), hands_over };
        }
        let applied = self.applied();
        let known = self.cluster().map(|cluster| cluster.writer());
        let tail = known.as_ref().map_or(state.writer.tail, |(_, tail)| *tail);
        let lag_batches = tail.saturating_sub(applied);
        let lag_ms = match lag_batches {
            0 => 0,
            _ => now_ms.saturating_sub(self.applied_time_ms.load(Relaxed)),
        };
        let is_loading = self.is_loading.load(Relaxed);
        let writer = match known {
            Some((known, _)) => WriterReport { is_loading, lag_batches, lag_ms, ..known },
            None => WriterReport {
                host: HOST.to_owned(),
                port: state.writer.port,
                is_connected: state.writer.is_connected,
                is_loading,
                silent_ms: state.writer.heard.map_or(0, silent_ms),
                lag_batches,
                lag_ms,
            },
        };
        Replication { role: Role::Follower(writer), sequence: applied, hands_over }
    }

    /// How many followers have applied a batch.
    pub(super) fn followers_at(&self, sequence: u64) -> usize {
        match self.cluster() {
            Some(cluster) => cluster.followers().iter().filter(|known| known.sequence >= sequence).count(),
            None => self.state.lock().followers.values().filter(|known| known.applied >= sequence).count(),
        }
    }

    /// Takes a client's request for another role. Returns its number.
    pub(super) fn request(&self, change: RoleChange) -> Result<u64, String> {
        let mut state = self.state.lock();
        state.last_number += 1;
        let number = state.last_number;
        match change {
            RoleChange::Promote => self.order(&mut state, Order::Promote { number }),
            RoleChange::HandOver { to, timeout_ms, .. } if let Some(cluster) = self.cluster() => {
                cluster.name_successor(to.as_ref())?;
                let patience = Duration::from_millis(timeout_ms.unwrap_or(HAND_OVER_MS));
                state.hands_over_until = Some(Instant::now() + patience);
                self.order(&mut state, Order::HandOver { answer: mpsc::channel().0 });
            }
            RoleChange::HandOver { to, timeout_ms, .. } => {
                let is_meant = |known: &&KnownFollower| to.as_ref().is_none_or(|(_, port)| *port == known.port);
                let chosen = state.followers.values().filter(is_meant).max_by_key(|known| known.applied);
                let chosen = chosen.ok_or("FAILOVER requires connected replicas.")?;
                chosen.tell.send(()).map_err(|_| "the replica has just disconnected")?;
                let patience = Duration::from_millis(timeout_ms.unwrap_or(HAND_OVER_MS));
                state.hands_over_until = Some(Instant::now() + patience);
            }
            RoleChange::AbortHandOver => {
                let is_open = state.hands_over_until.take().is_some_and(|until| Instant::now() < until);
                if !is_open {
                    // The follower has asked for the log in between: it gets it.
                    return Err("No failover in progress.".to_owned());
                }
            }
        }
        Ok(number)
    }

    /// The result of a client's request; `None` until it is done.
    pub(super) fn result(&self, number: u64) -> Option<Result<(), String>> {
        self.state.lock().results.get(&number).cloned()
    }

    pub(super) fn finish(&self, number: u64, result: Result<(), String>) {
        let mut state = self.state.lock();
        state.results.insert(number, result);
        while state.results.len() > RESULTS_MAX {
            state.results.pop_first();
        }
    }

    /// A follower that was told to take over asks for the log: true if it may still have it. From then on it is too late to
    /// abort.
    pub(super) fn accept_hand_over(&self) -> bool {
        self.state.lock().hands_over_until.take().is_some_and(|until| Instant::now() < until)
    }

    pub(super) fn give(&self, order: Order) {
        self.order(&mut self.state.lock(), order);
    }

    fn order(&self, state: &mut State, order: Order) {
        state.orders.push_back(order);
        state.is_woken = true;
        self.changed.notify_all();
    }

    /// Wakes the thread that changes roles.
    pub(super) fn wake(&self) {
        self.state.lock().is_woken = true;
        self.changed.notify_all();
    }

    /// The next order; waits for one, or to be woken, no longer than this.
    pub(super) fn next_order(&self, within: Duration) -> Option<Order> {
        let mut state = self.state.lock();
        if state.orders.is_empty() && !state.is_woken && !within.is_zero() {
            self.changed.wait_for(&mut state, within);
        }
        state.is_woken = false;
        state.orders.pop_front()
    }

    // What the other side says.

    /// The writer has answered: where its clients reach it, and its newest batch.
    pub(super) fn hear_of_writer(&self, port: Option<u16>, tail: Option<u64>) {
        let mut state = self.state.lock();
        state.writer.is_connected = true;
        state.writer.heard = Some(Instant::now());
        state.writer.port = port.unwrap_or(state.writer.port);
        state.writer.tail = tail.unwrap_or(state.writer.tail);
    }

    pub(super) fn lose_writer(&self) {
        self.state.lock().writer.is_connected = false;
    }

    /// A follower has connected. Returns its number.
    pub(super) fn add_follower(&self, port: u16, tell: mpsc::Sender<()>) -> u64 {
        let mut state = self.state.lock();
        state.last_follower += 1;
        let number = state.last_follower;
        state.followers.insert(number, KnownFollower { port, applied: 0, heard: Instant::now(), tell });
        number
    }

    pub(super) fn hear_of_follower(&self, number: u64, applied: u64) {
        if let Some(known) = self.state.lock().followers.get_mut(&number) {
            (known.applied, known.heard) = (applied, Instant::now());
        }
    }

    pub(super) fn remove_follower(&self, number: u64) {
        self.state.lock().followers.remove(&number);
    }
}

/// How long FAILOVER waits for the follower that it has told, unless it is given a time.
const HAND_OVER_MS: u64 = 60_000;
