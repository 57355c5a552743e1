//! All connected clients, as other clients may see and reach them. Knows names, ages and outboxes; refuses to know
//! sockets: a handle only wakes its connection.

use super::account::Account;
pub use super::wait_state::Unblock;
use super::wait_state::WaitState;
use arc_swap::ArcSwapOption;
use keyspace::storage::size_class::size_class;
use locks::{Mutex, RwLock, rank};
use resp::Protocol;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst,
};

/// The most bytes that a connection keeps for its client beside the handle: `execution::client` checks it.
pub const CLIENT_BYTES: usize = 512;

/// Wakes the task that owns a client's connection.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// The part of a client that other threads may read or act on.
pub struct ClientHandle {
    pub id: u64,
    pub address: Box<str>,
    pub local_address: Box<str>,
    pub fd: i32,
    pub created_ms: u64,
    /// Boxed: most clients set no name.
    labels: Mutex<Option<Box<Labels>>, { rank::CLIENT_LABELS }>,
    /// Seconds of the monotonic clock when it was last active.
    active_s: AtomicU32,
    pub db: AtomicU8,
    pub resp: AtomicU8,
    /// Index of the last command's row plus one; 0 before the first.
    pub last_command: AtomicU32,
    /// Bytes waiting to be parsed, and the size of the client's own buffer that holds them. No request reaches 4 GiB.
    query_bytes: AtomicU32,
    query_buffer_bytes: AtomicU32,
    /// Bytes waiting to be sent.
    pub output_bytes: AtomicUsize,
    /// The size of the buffers that hold them, and the number of these buffers.
    output_memory: AtomicUsize,
    output_buffers: AtomicU32,
    pub monitoring: AtomicBool,
    pub no_evict: AtomicBool,
    pub no_touch: AtomicBool,
    pub is_import_source: AtomicBool,
    /// Commands queued since MULTI; -1 when there was none.
    pub queued: AtomicI32,
    /// Memory of queued commands, of an interactive transaction, of names (subscriptions, watches, attached sessions)
    /// and of the command that waits.
    pub queued_bytes: AtomicUsize,
    pub names_bytes: AtomicUsize,
    pub blocked_bytes: AtomicUsize,
    /// Channels, patterns and shard channels subscribed to.
    pub subscriptions: [AtomicU32; 3],
    /// Keys watched.
    pub watching: AtomicU32,
    /// Its interactive transaction is open.
    pub in_transaction: AtomicBool,
    /// CLIENT PAUSE delays its next command.
    pub paused: AtomicBool,
    /// Who is at the other end.
    pub peer: Peer,
    /// It has attached to a session.
    pub has_attached: AtomicBool,
    /// How often in a row it has given a wrong password.
    pub wrong_passwords: AtomicU32,
    /// The account among whose clients it is counted: none before it has authenticated, and after its end.
    account: ArcSwapOption<Account>,
    killed: AtomicBool,
    overflowed: AtomicBool,
    /// Whether its command waits, and how the wait ends.
    pub wait_state: WaitState,
    outbox: Mutex<Outbox, { rank::CLIENT_OUTBOX }>,
    outbox_filled: AtomicBool,
    wake: Wake,
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Client,
    /// A server that follows this one.
    Replica,
    /// The server that this one follows.
    Primary,
}

/// Messages to a client that its connection has not taken yet.
#[derive(Default)]
struct Outbox {
    bytes: Vec<u8>,
    /// The newest journal batch that the messages depend on.
    depends_on: u64,
}

/// About how much memory a connection takes besides: its task, its socket, its entries in the runtime.
const CONNECTION_BYTES: usize = 760;

/// Why a client remembers a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    Channel,
    Pattern,
    Watch,
    Attachment,
}

impl NameKind {
    /// About how much memory a name of that length takes: in the client's own set, and in the shared table that leads
    /// to the client. The figures are measured: both are trees whose nodes are not full.
    pub fn bytes(self, len: usize) -> usize {
        /// The two counters of an `Arc`.
        const COUNTS: usize = 2 * size_of::<usize>();
        match self {
            // Both sets share one allocation of the name.
            NameKind::Channel => size_class(len + COUNTS) + 160,
            // Also compiled, for quick matching.
            NameKind::Pattern => size_class(len + COUNTS) + size_class(len) + 240,
            NameKind::Watch => 2 * size_class(len) + 150,
            // The session stores the client's number.
            NameKind::Attachment => size_class(len) + 56,
        }
    }
}

/// The largest outbox that is kept for the next message.
const OUTBOX_KEPT_BYTES: usize = 16 * 1024;

/// The name of a client; empty when it has none.
#[derive(Default, Clone)]
pub struct Labels {
    pub name: Box<[u8]>,
    /// The user that it is; empty for the default user.
    pub user: Box<[u8]>,
    pub library: Box<[u8]>,
    pub library_version: Box<[u8]>,
}

impl Labels {
    fn heap_bytes(&self) -> usize {
        size_of::<Labels>() + self.name.len() + self.user.len() + self.library.len() + self.library_version.len()
    }
}

impl ClientHandle {
    /// A handle that belongs to no registry yet; `now_ms` is unix time.
    pub fn new(id: u64, address: String, local_address: String, fd: i32, now_ms: u64, wake: Wake) -> ClientHandle {
        ClientHandle {
            id,
            address: address.into(),
            local_address: local_address.into(),
            fd,
            created_ms: now_ms,
            labels: Mutex::default(),
            active_s: AtomicU32::new(0),
            db: AtomicU8::new(0),
            resp: AtomicU8::new(2),
            last_command: AtomicU32::new(0),
            query_bytes: AtomicU32::new(0),
            query_buffer_bytes: AtomicU32::new(0),
            output_bytes: AtomicUsize::new(0),
            output_memory: AtomicUsize::new(0),
            output_buffers: AtomicU32::new(0),
            monitoring: AtomicBool::new(false),
            no_evict: AtomicBool::new(false),
            no_touch: AtomicBool::new(false),
            is_import_source: AtomicBool::new(false),
            queued: AtomicI32::new(-1),
            queued_bytes: AtomicUsize::new(0),
            names_bytes: AtomicUsize::new(0),
            blocked_bytes: AtomicUsize::new(0),
            subscriptions: Default::default(),
            watching: AtomicU32::new(0),
            in_transaction: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            peer: Peer::Client,
            has_attached: AtomicBool::new(false),
            wrong_passwords: AtomicU32::new(0),
            account: ArcSwapOption::const_empty(),
            killed: AtomicBool::new(false),
            overflowed: AtomicBool::new(false),
            wait_state: WaitState::default(),
            outbox: Mutex::default(),
            outbox_filled: AtomicBool::new(false),
            wake,
        }
    }

    /// Notes which user it is.
    pub fn set_user(&self, name: &[u8]) {
        self.set_labels(|labels| labels.user = name.into());
    }

    /// Counts it among the clients of an account, and no longer among those of another. False when the account has as many
    /// clients as it may have: then nothing changes.
    pub fn enter(&self, account: &Arc<Account>) -> bool {
        let is_in = self.is_of(account);
        if !is_in && account.enter() {
            self.move_to(account);
            return true;
        }
        is_in
    }

    /// Counts it among the clients of an account, whatever the limit is, unless it is counted already.
    pub fn enter_if_none(&self, account: &Arc<Account>) {
        account.enter_anyway();
        let before = self.account.compare_and_swap(&None::<Arc<Account>>, Some(account.clone()));
        match before.is_some() {
            true => account.leave(),
            false if self.killed.load(SeqCst) => self.leave(),
            false => {}
        }
    }

    fn move_to(&self, account: &Arc<Account>) {
        if let Some(before) = self.account.swap(Some(account.clone())) {
            before.leave();
        }
        // IMPORTANT: after the swap. `kill` sets this before it leaves: one of the two sees what the other has done.
        if self.killed.load(SeqCst) {
            self.leave();
        }
    }

    /// Counts it among nobody's clients.
    pub fn leave(&self) {
        if let Some(account) = self.account.swap(None) {
            account.leave();
        }
    }

    /// True when it is counted among the clients of this account.
    pub fn is_of(&self, account: &Arc<Account>) -> bool {
        self.account.load().as_ref().is_some_and(|known| Arc::ptr_eq(known, account))
    }

    /// The account among whose clients it is counted.
    pub fn account(&self) -> Option<Arc<Account>> {
        self.account.load_full()
    }

    /// Another server, not a client.
    #[must_use]
    pub fn of_server(mut self, peer: Peer) -> ClientHandle {
        self.peer = peer;
        self
    }

    /// Notes that the client is active at this instant of the monotonic clock.
    #[inline]
    pub fn note_active(&self, monotonic_ns: u64) {
        self.active_s.store((monotonic_ns / 1_000_000_000) as u32, Relaxed);
    }

    /// Seconds since it was last active.
    pub fn idle_s(&self, monotonic_ns: u64) -> u64 {
        (monotonic_ns / 1_000_000_000).saturating_sub(self.active_s.load(Relaxed).into())
    }

    /// Notes how many channels, patterns and shard channels it has subscribed to.
    pub fn note_subscriptions(&self, counts: [usize; 3]) {
        self.subscriptions.iter().zip(counts).for_each(|(slot, count)| slot.store(count as u32, Relaxed));
    }

    /// True when the client has subscribed to anything.
    pub fn is_subscriber(&self) -> bool {
        self.subscriptions.iter().any(|count| count.load(Relaxed) > 0)
    }

    /// Notes how many commands are queued and their bytes, or that there is no transaction.
    pub fn note_queued(&self, queue: Option<(usize, usize)>) {
        self.queued.store(queue.map_or(-1, |(count, _)| count as i32), Relaxed);
        self.queued_bytes.store(queue.map_or(0, |(_, bytes)| bytes), Relaxed);
    }

    /// Notes the size of its interactive transaction, or that none is open.
    pub fn note_transaction(&self, bytes: Option<usize>) {
        self.in_transaction.store(bytes.is_some(), Relaxed);
        self.queued_bytes.store(bytes.unwrap_or(0), Relaxed);
    }

    /// Notes how many bytes wait to be parsed, and the size of their buffer.
    #[inline]
    pub fn note_input(&self, bytes: usize, buffer_bytes: usize) {
        self.query_bytes.store(bytes.try_into().unwrap_or(u32::MAX), Relaxed);
        self.query_buffer_bytes.store(buffer_bytes.try_into().unwrap_or(u32::MAX), Relaxed);
    }

    /// Bytes waiting to be parsed, and the size of the client's own buffer that holds them.
    pub fn input_bytes(&self) -> (usize, usize) {
        (self.query_bytes.load(Relaxed) as usize, self.query_buffer_bytes.load(Relaxed) as usize)
    }

    /// Notes how many bytes wait to be sent, the size of their buffers, and the number of buffers.
    #[inline]
    pub fn note_output(&self, bytes: usize, memory: usize, buffers: usize) {
        self.output_bytes.store(bytes, Relaxed);
        self.output_memory.store(memory, Relaxed);
        self.output_buffers.store(buffers as u32, Relaxed);
    }

    /// Notes that the client waits, with a command of that size.
    pub fn add_blocked(&self, bytes: usize) {
        self.blocked_bytes.fetch_add(bytes, Relaxed);
    }

    /// Notes that the client no longer waits.
    pub fn remove_blocked(&self, bytes: usize) {
        self.blocked_bytes.fetch_sub(bytes, Relaxed);
    }

    /// Adds the memory of a name that the client remembers: see [`NameKind::bytes`].
    pub fn add_name(&self, bytes: usize) {
        self.names_bytes.fetch_add(bytes, Relaxed);
    }

    /// Subtracts the memory of names that the client no longer remembers.
    pub fn remove_names(&self, bytes: usize) {
        self.names_bytes.fetch_sub(bytes, Relaxed);
    }

    /// Asks the connection to close.
    pub fn kill(&self) {
        self.end();
        // No commit may serve it from now on.
        self.wait_state.end();
        self.wake();
    }

    /// Notes that its connection ends: its user may have another one in its place.
    fn end(&self) {
        self.killed.store(true, SeqCst);
        self.leave();
    }

    /// True when the connection is to be closed.
    #[inline]
    pub fn is_killed(&self) -> bool {
        self.killed.load(Relaxed)
    }

    /// True when it is to be closed because its output exceeds the limit.
    pub fn has_overflowed(&self) -> bool {
        self.overflowed.load(Relaxed)
    }

    /// Makes the connection's task look at this handle.
    pub fn wake(&self) {
        (self.wake)();
    }

    /// Sends bytes that are not a reply: monitor lines, messages. Beyond `bytes_max` (0 = no limit) the client is
    /// disconnected; senders never wait.
    pub fn send(&self, bytes: &[u8], bytes_max: u64) {
        self.send_after(0, bytes, bytes_max);
    }

    /// Sends bytes that depend on a journal batch: they are held until it is persisted.
    pub fn send_after(&self, sequence: u64, bytes: &[u8], bytes_max: u64) {
        self.send_if(sequence, bytes, bytes_max, |_| true);
    }

    /// Like `send_after`, if the condition holds; otherwise returns false. IMPORTANT: the condition is checked under
    /// the lock of the outbox. The client changes its protocol or what it listens to, and then calls `settle_outbox`:
    /// so nothing that belongs to its former state is sent after that.
    pub fn send_if(
        &self,
        sequence: u64,
        bytes: &[u8],
        bytes_max: u64,
        condition: impl FnOnce(&ClientHandle) -> bool,
    ) -> bool {
        if self.is_killed() {
            return true;
        }
        let mut outbox = self.outbox.lock();
        if !condition(self) {
            return false;
        }
        let waiting = outbox.bytes.len() + self.output_bytes.load(Relaxed) + bytes.len();
        if bytes_max > 0 && waiting as u64 > bytes_max {
            self.overflowed.store(true, Relaxed);
            outbox.bytes.clear();
            drop(outbox);
            self.kill();
            return true;
        }
        outbox.bytes.extend_from_slice(bytes);
        outbox.depends_on = outbox.depends_on.max(sequence);
        // Under the lock, where `drain_outbox` clears it: if it is set already, a wake-up is on its way.
        let is_woken = self.outbox_filled.swap(true, Relaxed);
        drop(outbox);
        if !is_woken {
            self.wake();
        }
        true
    }

    /// True when other threads have sent something.
    #[inline]
    pub fn has_mail(&self) -> bool {
        self.outbox_filled.load(Relaxed)
    }

    /// Moves pending messages to the end of `out`. Returns the newest journal batch that they depend on.
    #[inline]
    pub fn drain_outbox(&self, out: &mut Vec<u8>) -> u64 {
        match self.outbox_filled.load(Relaxed) {
            false => 0,
            true => self.settle_outbox(out),
        }
    }

    /// Like `drain_outbox`, also when nothing seems to be there: a sender may be about to add a message. The client
    /// calls it after a change of what it may be sent: see `send_if`.
    pub fn settle_outbox(&self, out: &mut Vec<u8>) -> u64 {
        let mut outbox = self.outbox.lock();
        match out.is_empty() {
            true => std::mem::swap(out, &mut outbox.bytes),
            false => out.append(&mut outbox.bytes),
        }
        if outbox.bytes.capacity() > OUTBOX_KEPT_BYTES {
            outbox.bytes = Vec::new();
        }
        self.outbox_filled.store(false, Relaxed);
        outbox.depends_on
    }

    /// The protocol that the client has chosen.
    pub fn protocol(&self) -> Protocol {
        if self.resp.load(Relaxed) == 3 { Protocol::Resp3 } else { Protocol::Resp2 }
    }

    /// True when a command of this client waits for any reason.
    pub fn is_waiting(&self) -> bool {
        self.is_blocked() || self.is_paused()
    }

    /// True while CLIENT PAUSE, or data that is loading, delays a request of this client.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Relaxed)
    }

    /// True when a command of this client waits for an event.
    pub fn is_blocked(&self) -> bool {
        self.wait_state.is_waiting()
    }

    /// Claims the client's wait of that number, in order to serve it. False when the wait has ended, or its connection
    /// is closing.
    pub fn claim(&self, wait: u64) -> bool {
        !self.is_killed() && self.wait_state.claim(wait)
    }

    /// Ends the client's wait. False when a commit is serving it, or has served it and the client has not noticed yet.
    pub fn end_wait(&self) -> bool {
        self.wait_state.end()
    }

    /// Ends the wait of a blocked client; false when it is not blocked.
    pub fn unblock(&self, how: Unblock) -> bool {
        let unblocked = self.wait_state.unblock(how);
        if unblocked {
            self.wake();
        }
        unblocked
    }

    /// How the client was unblocked since the last call.
    pub fn take_unblock(&self) -> Unblock {
        self.wait_state.take_unblock()
    }

    /// The client's name, and the name and version of its library.
    pub fn labels(&self) -> Labels {
        self.labels.lock().as_deref().cloned().unwrap_or_default()
    }

    /// The client's name; empty when it has none.
    pub fn name(&self) -> Vec<u8> {
        self.labels.lock().as_ref().map(|labels| labels.name.to_vec()).unwrap_or_default()
    }

    /// Changes the client's labels.
    pub fn set_labels(&self, change: impl FnOnce(&mut Labels)) {
        change(self.labels.lock().get_or_insert_default());
    }

    /// The size of the buffers with replies and messages that the client has not received yet, and the number of
    /// buffers.
    pub fn unsent(&self) -> (usize, usize) {
        let (output, buffers) = (self.output_memory.load(Relaxed), self.output_buffers.load(Relaxed) as usize);
        let outbox = size_class(self.outbox.lock().bytes.capacity());
        (output + outbox, buffers + usize::from(outbox > 0))
    }

    /// Memory of the client's buffers: incomplete requests, and replies and messages that it has not received.
    pub fn buffer_bytes(&self) -> usize {
        self.input_bytes().1 + self.unsent().0
    }

    /// Memory of the client's buffers, of its transaction, and of what it waits for and listens to.
    pub fn held_bytes(&self) -> usize {
        let kept = [&self.queued_bytes, &self.names_bytes, &self.blocked_bytes];
        self.buffer_bytes() + kept.iter().map(|bytes| bytes.load(Relaxed)).sum::<usize>()
    }

    /// Bytes of memory that this client uses, as far as its handle knows.
    pub fn memory_bytes(&self) -> usize {
        let labels = self.labels.lock().as_ref().map_or(0, |labels| labels.heap_bytes());
        let own = size_class(size_of::<ClientHandle>()) + CLIENT_BYTES + CONNECTION_BYTES;
        own + self.address.len() + self.local_address.len() + labels + self.held_bytes()
    }

    /// Resets to a new connection's state, except the library's name and version, which RESET leaves.
    pub fn reset(&self) {
        if let Some(labels) = self.labels.lock().as_mut() {
            labels.name = Box::default();
            labels.user = Box::default();
        }
        self.db.store(0, Relaxed);
        self.resp.store(2, Relaxed);
        self.monitoring.store(false, Relaxed);
        self.no_touch.store(false, Relaxed);
        self.is_import_source.store(false, Relaxed);
        self.no_evict.store(false, Relaxed);
    }
}

/// Every connected client by its number.
#[derive(Default)]
pub struct Clients {
    by_id: RwLock<BTreeMap<u64, Arc<ClientHandle>>, { rank::CLIENTS }>,
    last_id: AtomicU64,
    accepted: AtomicU64,
    rejected: AtomicU64,
    closed_for_output: AtomicU64,
    closed_for_query: AtomicU64,
    evicted: AtomicU64,
    /// Held by the thread that looks for clients to evict.
    pub evicting: Mutex<(), { rank::EVICTION }>,
}

impl Clients {
    /// A number for a new client.
    pub fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Relaxed) + 1
    }

    /// Adds a client.
    pub fn add(&self, handle: Arc<ClientHandle>) {
        self.accepted.fetch_add(1, Relaxed);
        self.by_id.write().insert(handle.id, handle);
    }

    /// Closes a client's connection. The client leaves the list at once; its task may take a moment to end.
    pub fn kill(&self, handle: &ClientHandle) {
        self.by_id.write().remove(&handle.id);
        handle.kill();
    }

    /// Removes a client whose connection has ended. No message is sent to it any more, though some of its subscriptions
    /// may remain for a moment.
    pub fn remove(&self, handle: &ClientHandle) {
        handle.end();
        if handle.has_overflowed() {
            self.closed_for_output.fetch_add(1, Relaxed);
        }
        self.by_id.write().remove(&handle.id);
    }

    /// Counts a rejected connection.
    pub fn count_rejected(&self) {
        self.rejected.fetch_add(1, Relaxed);
    }

    /// Counts a client that was closed because it did not read its replies.
    pub fn count_output_overflow(&self) {
        self.closed_for_output.fetch_add(1, Relaxed);
    }

    /// Counts a client that was closed because its unfinished request was too large.
    pub fn count_query_overflow(&self) {
        self.closed_for_query.fetch_add(1, Relaxed);
    }

    /// Counts a client that was closed to make room (`maxmemory-clients`).
    pub fn count_evicted(&self) {
        self.evicted.fetch_add(1, Relaxed);
    }

    /// Clients that were closed to make room.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    /// The client of that number.
    pub fn get(&self, id: u64) -> Option<Arc<ClientHandle>> {
        self.by_id.read().get(&id).cloned()
    }

    /// All clients, oldest first.
    pub fn all(&self) -> Vec<Arc<ClientHandle>> {
        self.by_id.read().values().cloned().collect()
    }

    /// How many are connected.
    pub fn len(&self) -> usize {
        self.by_id.read().len()
    }

    /// True when no client is connected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Connections accepted, rejected, closed for unread output, closed for too large requests.
    pub fn totals(&self) -> (u64, u64, u64, u64) {
        (
            self.accepted.load(Relaxed),
            self.rejected.load(Relaxed),
            self.closed_for_output.load(Relaxed),
            self.closed_for_query.load(Relaxed),
        )
    }

    /// Resets the totals (CONFIG RESETSTAT).
    pub fn reset_totals(&self) {
        let totals = [&self.accepted, &self.rejected, &self.closed_for_output, &self.closed_for_query, &self.evicted];
        totals.iter().for_each(|total| total.store(0, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(id: u64) -> Arc<ClientHandle> {
        Arc::new(ClientHandle::new(id, "1.2.3.4:5".into(), "6.7.8.9:10".into(), 1, 0, Box::new(|| {})))
    }

    #[test]
    fn an_idle_client_is_small() {
        assert!(size_of::<ClientHandle>() <= 240, "{}", size_of::<ClientHandle>());
        let handle = handle(1);
        let anonymous = handle.memory_bytes();
        handle.set_labels(|labels| labels.name = b"jobs"[..].into());
        assert!(handle.memory_bytes() > anonymous);
    }

    #[test]
    fn a_killed_client_is_no_longer_listed() {
        let clients = Clients::default();
        let (first, second) = (handle(1), handle(2));
        clients.add(first.clone());
        clients.add(second);
        clients.kill(&first);
        assert!(first.is_killed() && clients.get(1).is_none());
        assert_eq!(clients.all().iter().map(|handle| handle.id).collect::<Vec<_>>(), [2]);
        clients.remove(&first);
        assert_eq!(clients.len(), 1);
    }

    /// Clients change their users while others kill them, and while the default user loses its password.
    #[test]
    fn a_client_is_counted_once_or_not_at_all() {
        use super::super::account::limits::{Limit, Limits};
        let accounts: Vec<Arc<Account>> = (0..3).map(|_| Arc::default()).collect();
        let mut limits = Limits::default();
        limits.set(Limit::Clients, 2);
        accounts[1].set_limits(&limits);
        for round in 0..200 {
            let handles: Vec<_> = (0..6).map(handle).collect();
            std::thread::scope(|scope| {
                for handle in &handles {
                    scope.spawn(|| {
                        for step in 0..20 {
                            handle.enter(&accounts[(handle.id as usize + step + round) % 3]);
                        }
                    });
                }
                scope.spawn(|| handles.iter().step_by(2).for_each(|handle| handle.kill()));
                scope.spawn(|| handles.iter().for_each(|handle| handle.enter_if_none(&accounts[0])));
            });
            for account in &accounts {
                let counted = handles.iter().filter(|handle| handle.is_of(account)).count();
                assert_eq!(account.clients(), counted as u64);
            }
            assert!(accounts[1].clients() <= 2);
            assert!(handles.iter().step_by(2).all(|handle| handle.account().is_none()), "they are gone");
            handles.iter().for_each(|handle| handle.kill());
            assert!(accounts.iter().all(|account| account.clients() == 0));
        }
    }

    #[test]
    fn only_a_blocked_client_can_be_unblocked() {
        let handle = handle(1);
        assert!(!handle.unblock(Unblock::Error));
        handle.wait_state.begin(0);
        assert!(handle.is_blocked() && handle.unblock(Unblock::Error) && !handle.is_blocked());
        assert_eq!((handle.take_unblock(), handle.take_unblock()), (Unblock::Error, Unblock::No));
    }

    #[test]
    fn a_killed_client_is_not_served() {
        let (before, after) = (handle(1), handle(2));
        before.wait_state.begin(1);
        before.kill();
        after.kill();
        after.wait_state.begin(2);
        assert!(!before.claim(1) && !after.claim(2));
    }

    #[test]
    fn a_message_for_the_former_protocol_is_not_sent() {
        let handle = handle(1);
        let is_resp3 = |handle: &ClientHandle| handle.protocol() == Protocol::Resp3;
        handle.resp.store(3, Relaxed);
        assert!(handle.send_if(0, b"before", 0, is_resp3));
        handle.resp.store(2, Relaxed);
        let mut out = Vec::new();
        handle.settle_outbox(&mut out);
        assert!(!handle.send_if(0, b"after", 0, is_resp3));
        assert_eq!((&*out, handle.has_mail()), (&b"before"[..], false));
    }

    #[test]
    fn a_client_that_does_not_read_is_disconnected() {
        let handle = handle(1);
        handle.send(b"12345", 8);
        assert!(!handle.is_killed());
        handle.send(b"6789", 8);
        assert!(handle.is_killed() && handle.has_overflowed());
    }
}
