//! Whether this server writes its log or follows another's, what the other side says of itself, and which changes of
//! role were asked for. Refuses to know how a role is changed (`role_thread`) and how the two sides talk (`links`).

use super::cluster::Cluster;
use super::members::{Address, HOST, MEMBERS_MAX, Member};
use crate::platform::clock::unix_ms;
use crate::platform::sockets::ListeningSocket;
use engine::persistence::{FollowerReport, MemberReport, Replication, Role, RoleChange, WriterReport};
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
    /// When it has changed last, in unix time.
    changed_ms: AtomicU64,
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
    /// How often a follower has come, gone, or changed its address.
    followers_changed: u64,
    /// Of a follower: the other followers, as the writer has listed them.
    peers: Vec<Member>,
    /// Of a follower: the writer is to be asked for a hand-over.
    wants_failover: bool,
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
    /// Its port is 0 while nothing is known of it.
    address: Address,
    is_connected: bool,
    /// It lists members: it is no older version.
    lists_members: bool,
    heard: Option<Instant>,
    tail: u64,
}

/// What a writer knows of a follower.
struct KnownFollower {
    address: Address,
    applied: u64,
    heard: Instant,
    /// Tells it to take over.
    tell: mpsc::Sender<()>,
}

impl Roles {
    pub(super) fn new() -> Roles {
        Roles {
            state: Mutex::default(),
            changed: Condvar::new(),
            follows: AtomicBool::new(false),
            changes: AtomicU64::new(0),
            changed_ms: AtomicU64::new(0),
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
        state.peers.clear();
        state.wants_failover = false;
        state.hands_over_until = None;
        self.changed_ms.store(unix_ms(), SeqCst);
        self.follows.store(follows, SeqCst);
        self.changes.fetch_add(1, SeqCst);
    }

    /// Tells one time as writer or follower from the next.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(SeqCst)
    }

    pub(crate) fn follows(&self) -> bool {
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

    /// For ROLE, INFO and the Sentinel port. `own` is what this server tells of itself, with its newest batch if it writes.
    pub(super) fn report(&self, now_ms: u64, own: Address, accepts_writes: bool, tail: u64) -> Replication {
        let state = self.state.lock();
        let silent_ms = |heard: Instant| heard.elapsed().as_millis() as u64;
        let hands_over = state.hands_over_until.is_some_and(|until| Instant::now() < until);
        let (follows, since_ms) = (self.follows(), self.changed_ms.load(SeqCst));
        let sequence = if follows { self.applied() } else { tail };
        let own = MemberReport {
            host: own.host,
            port: own.port,
            sentinel_port: own.sentinel_port,
            is_writer: !follows && accepts_writes,
            is_self: true,
            sequence,
            silent_ms: 0,
        };
        let report = |member: Member| MemberReport {
            host: member.address.host,
            port: member.address.port,
            sentinel_port: member.address.sentinel_port,
            is_writer: member.is_writer,
            is_self: false,
            sequence: member.sequence,
            silent_ms: silent_ms(member.heard),
        };
        let others = match self.cluster() {
            Some(cluster) => cluster.others(follows),
            None if follows => state.seen_by_follower(),
            None => state.seen_by_writer(None),
        };
        let members = std::iter::once(own).chain(others.into_iter().map(report)).collect();
        if !follows {
            let report = |known: &KnownFollower| FollowerReport {
                host: known.address.host.clone(),
                port: known.address.port,
                sequence: known.applied,
                silent_ms: silent_ms(known.heard),
            };
            let followers = match self.cluster() {
                Some(cluster) => cluster.followers(),
                None => state.followers.values().map(report).collect(),
            };
            return Replication { role: Role::Writer { followers }, sequence, since_ms, hands_over, members };
        }
        let in_cluster = self.cluster().map(|cluster| cluster.writer());
        let tail = in_cluster.as_ref().map_or(state.writer.tail, |(_, tail)| *tail);
        let lag_batches = tail.saturating_sub(sequence);
        let lag_ms = match lag_batches {
            0 => 0,
            _ => now_ms.saturating_sub(self.applied_time_ms.load(Relaxed)),
        };
        let is_loading = self.is_loading.load(Relaxed);
        let known = &state.writer;
        let writer = match in_cluster {
            Some((writer, _)) => WriterReport { is_loading, lag_batches, lag_ms, ..writer },
            None => WriterReport {
                host: if known.address.host.is_empty() { HOST.to_owned() } else { known.address.host.clone() },
                port: known.address.port,
                is_connected: known.is_connected,
                is_loading,
                silent_ms: known.heard.map_or(0, silent_ms),
                lag_batches,
                lag_ms,
            },
        };
        Replication { role: Role::Follower(writer), sequence, since_ms, hands_over, members }
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
            // It asks for the log itself.
            RoleChange::HandOver { .. } if self.follows() && self.cluster().is_some() => {
                self.order(&mut state, Order::Promote { number });
            }
            RoleChange::HandOver { to, timeout_ms, .. } if let Some(cluster) = self.cluster() => {
                cluster.name_successor(to.as_ref())?;
                let patience = Duration::from_millis(timeout_ms.unwrap_or(HAND_OVER_MS));
                state.hands_over_until = Some(Instant::now() + patience);
                self.order(&mut state, Order::HandOver { answer: mpsc::channel().0 });
            }
            RoleChange::HandOver { .. } if self.follows() => {
                if !state.writer.is_connected || !state.writer.lists_members {
                    return Err("the writer does not answer: REPLICAOF NO ONE makes a follower the writer".to_owned());
                }
                state.wants_failover = true;
            }
            RoleChange::HandOver { to, timeout_ms, .. } => {
                let is_meant = |known: &&KnownFollower| to.as_ref().is_none_or(|(_, port)| *port == known.address.port);
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

    /// A connection to a writer begins. It may be another version than the last one.
    pub(super) fn begin_link(&self) {
        self.state.lock().writer.lists_members = false;
    }

    /// The writer has answered: where its clients reach it, and its newest batch.
    pub(super) fn hear_of_writer(&self, port: Option<u16>, tail: Option<u64>) {
        let mut state = self.state.lock();
        state.writer.is_connected = true;
        state.writer.heard = Some(Instant::now());
        // One that lists members has said more of itself.
        if let Some(port) = port.filter(|_| !state.writer.lists_members) {
            state.writer.address = Address::of_port(port);
        }
        state.writer.tail = tail.unwrap_or(state.writer.tail);
    }

    /// The writer has listed the members of its log, without this server.
    pub(super) fn hear_of_members(&self, mut members: Vec<Member>) {
        let mut state = self.state.lock();
        if let Some(at) = members.iter().position(|member| member.is_writer) {
            state.writer.address = members.swap_remove(at).address;
            state.writer.lists_members = true;
        }
        state.peers = members;
    }

    /// The writer follows another one from now on.
    pub(super) fn writer_resigned(&self) {
        let mut state = self.state.lock();
        let known = std::mem::take(&mut state.writer);
        if known.address.port > 0 {
            let heard = known.heard.unwrap_or_else(Instant::now);
            state.peers.push(Member { address: known.address, is_writer: false, sequence: known.tail, heard });
        }
    }

    pub(super) fn lose_writer(&self) {
        self.state.lock().writer.is_connected = false;
    }

    /// True once after this follower was asked for a hand-over, which it has to ask the writer for.
    pub(super) fn take_failover_request(&self) -> bool {
        std::mem::take(&mut self.state.lock().wants_failover)
    }

    /// A follower asks for what FAILOVER does.
    pub(super) fn fail_over(&self) -> Result<(), String> {
        if self.state.lock().hands_over_until.is_some_and(|until| Instant::now() < until) {
            return Err("FAILOVER already in progress.".to_owned());
        }
        self.request(RoleChange::HandOver { to: None, timeout_ms: None, force: false }).map(drop)
    }

    /// What a writer tells the follower with this number: itself and the other followers. `None` if that is what it was told
    /// `since`, but for how far they are; else what to pass next time.
    pub(super) fn members_for(
        &self,
        number: u64,
        own: Address,
        tail: u64,
        since: Option<u64>,
    ) -> Option<(Vec<Member>, u64)> {
        let state = self.state.lock();
        if since == Some(state.followers_changed) {
            return None;
        }
        let own = Member { address: own, is_writer: true, sequence: tail, heard: Instant::now() };
        let members = std::iter::once(own).chain(state.seen_by_writer(Some(number))).take(MEMBERS_MAX).collect();
        Some((members, state.followers_changed))
    }

    /// A follower has connected. Returns its number.
    pub(super) fn add_follower(&self, port: u16, tell: mpsc::Sender<()>) -> u64 {
        let mut state = self.state.lock();
        state.last_follower += 1;
        state.followers_changed += 1;
        let (number, address) = (state.last_follower, Address::of_port(port));
        state.followers.insert(number, KnownFollower { address, applied: 0, heard: Instant::now(), tell });
        number
    }

    /// A follower has said where it is reached.
    pub(super) fn set_follower_address(&self, number: u64, address: Address) {
        let mut state = self.state.lock();
        if let Some(known) = state.followers.get_mut(&number) {
            known.address = address;
            state.followers_changed += 1;
        }
    }

    pub(super) fn hear_of_follower(&self, number: u64, applied: u64) {
        if let Some(known) = self.state.lock().followers.get_mut(&number) {
            (known.applied, known.heard) = (applied, Instant::now());
        }
    }

    pub(super) fn remove_follower(&self, number: u64) {
        let mut state = self.state.lock();
        state.followers.remove(&number);
        state.followers_changed += 1;
    }
}

impl State {
    /// The members of the log that a writer knows beside itself, but for one.
    fn seen_by_writer(&self, without: Option<u64>) -> Vec<Member> {
        let others = self.followers.iter().filter(|(number, _)| Some(**number) != without);
        let member = |(_, known): (&u64, &KnownFollower)| Member {
            address: known.address.clone(),
            is_writer: false,
            sequence: known.applied,
            heard: known.heard,
        };
        others.map(member).collect()
    }

    /// The members of the log that a follower knows beside itself.
    fn seen_by_follower(&self) -> Vec<Member> {
        let known = &self.writer;
        let writer = known.heard.filter(|_| known.address.port > 0).map(|heard| Member {
            address: known.address.clone(),
            is_writer: true,
            sequence: known.tail,
            heard,
        });
        writer.into_iter().chain(self.peers.iter().cloned()).collect()
    }
}

/// How long FAILOVER waits for the follower that it has told, unless it is given a time.
const HAND_OVER_MS: u64 = 60_000;
