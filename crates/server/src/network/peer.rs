//! A client between reading and writing: what it waits for, and when its connection ends. Knows when its states change,
//! and buffers; refuses to know what a request does.

use super::input::Input;
use super::limits::{INPUT_WHILE_WAITING, class, output_max};
use super::local::{Local, POOL_BUFFER_BYTES_MAX};
use super::socket::{Socket, TaskWaker};
use super::state::{ConnectionState, Delay, Exit, Flush, Incoming};
use super::transport::Transport;
use super::turns::{self, TURN_NS};
use engine::clients::account::usage::Counts;
use engine::{Blocked, Client, ClientHandle, Departed, Engine, Event, GROWN_BYTES};
use resp::Scanner;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

/// Reads after which a connection yields to others.
const READS_PER_TURN: usize = 2;
/// When the server stops, it closes a client that has sent nothing for this long: earlier requests may still be in the
/// network, or known only to the kernel.
const DRAIN: Duration = Duration::from_millis(20);
/// After a stop, a client that keeps sending is served for this long at most.
const DRAIN_MAX: Duration = Duration::from_millis(500);

/// A client that closes looks like one that only sends no more and waits for its replies. After this long it counts as gone for
/// commands whose whole work is their reply.
const GONE_AFTER: Duration = Duration::from_secs(2);

/// How often a delayed connection is looked at: one whose client has gone ends, however much is owed.
const DELAY_LOOK_EVERY: Duration = Duration::from_secs(1);

/// A connection that has started.
pub(super) struct Peer<T: Transport> {
    /// The key of its socket at the worker, once it has one.
    pub(super) socket: usize,
    pub(super) client: Client,
    pub(super) scanner: Scanner,
    /// Input that could not be executed yet.
    pub(super) input: Input,
    /// How long the input must be before it can be executed; 0 when that is unknown.
    pub(super) wanted: usize,
    /// The cost of this turn so far.
    pub(super) turn_ns: u64,
    pub(super) incoming: Incoming<T>,
    /// When the soft output limit was first exceeded, on the monotonic clock.
    pub(super) soft_since_ns: Option<u64>,
    /// Bytes received and to be sent that are not counted yet.
    pub(super) received: u64,
    pub(super) produced: u64,
    /// The size of its unsent output when the memory of all clients was last checked.
    pub(super) output_checked: usize,
}

impl<T: Transport> Peer<T> {
    /// Registers a connection with the worker and the engine.
    pub(super) fn start(local: &mut Local<T>, stream: T, address: SocketAddr) -> Peer<T> {
        let task = Arc::new(TaskWaker::default());
        let mut peer = Peer::register(&local.engine, &stream, address, task.clone());
        let mut socket = Socket::new(stream, peer.client.handle.clone(), task);
        if let Err(error) = peer.client.begin_as_default(&local.engine.acl) {
            socket.refuse(&error.to_string());
            local.engine.clients.count_rejected();
        }
        peer.socket = local.sockets.insert(socket);
        peer
    }

    /// Registers a connection with the engine, before it has a worker.
    pub(super) fn register(engine: &Engine, stream: &T, address: SocketAddr, task: Arc<TaskWaker>) -> Peer<T> {
        let wake = Box::new(move || task.wake());
        let now_ms = engine.clock.unix_us() / 1000;
        let id = engine.clients.next_id();
        let handle = Arc::new(ClientHandle::new(
            id,
            address.to_string(),
            stream.local_address(),
            stream.descriptor(),
            now_ms,
            wake,
        ));
        handle.note_active(engine.clock.monotonic_ns());
        engine.clients.add(handle.clone());
        Peer {
            socket: usize::MAX,
            client: Client::new(handle, engine.acl.default_needs_no_password()),
            scanner: Scanner::default(),
            input: Input::default(),
            wanted: 0,
            turn_ns: 0,
            incoming: Incoming::Open,
            soft_since_ns: None,
            received: 0,
            produced: 0,
            output_checked: 0,
        }
    }

    /// Removes the client from the engine. `state` is the last state of its connection.
    pub(super) fn unregister(&mut self, engine: &Arc<Engine>, state: &ConnectionState<T>) {
        let id = self.client.id();
        // From now on no message is sent to it.
        engine.clients.remove(&self.client.handle);
        forget_in_slices(engine, engine::depart(engine, &mut self.client));
        if self.client.monitoring {
            engine.monitors.remove(id);
        }
        self.end_delay(engine, state);
    }

    /// Removes the client from those that wait for the end of a pause, of a delay or of a long script, if it was in such a
    /// state.
    fn end_delay(&self, engine: &Engine, state: &ConnectionState<T>) {
        match state {
            ConnectionState::Paused(_) => engine.pause.forget(&self.client.handle),
            ConnectionState::Delayed(delay) => end_delay(engine, delay),
            ConnectionState::AwaitsScript => engine.scripting.long.forget(self.client.id()),
            ConnectionState::Running
            | ConnectionState::Blocked(..)
            | ConnectionState::Yielding
            | ConnectionState::Closing => {}
        }
    }

    /// True when the connection is to move to another worker and has nothing in flight.
    pub(super) fn may_leave(&self, local: &Local<T>) -> bool {
        let socket = &local.sockets[self.socket];
        socket.exit == Exit::Move
            && local.stopping_since_ns.is_none()
            && socket.state.is_running()
            && socket.pending() == 0
            && socket.flush == Flush::Idle
    }

    pub(super) fn poll(&mut self, local: &mut Local<T>, cx: &mut Context<'_>) -> Poll<()> {
        if !local.begin_turn(self.socket) {
            return if local.sockets[self.socket].is_cut_off() { Poll::Ready(()) } else { Poll::Pending };
        }
        self.turn_ns = 0;
        let polled = self.poll_turn(local, cx);
        self.settle(&local.engine, local.index);
        local.end_turn(self.socket, self.turn_ns);
        polled
    }

    /// Runs until there is nothing to do, or the turn is over.
    fn poll_turn(&mut self, local: &mut Local<T>, cx: &mut Context<'_>) -> Poll<()> {
        let state = &mut local.sockets[self.socket].state;
        match state {
            ConnectionState::Yielding => *state = ConnectionState::Running,
            // Before messages: invalidations that a served command causes follow its reply, as in Redis.
            ConnectionState::Blocked(..) => self.poll_waiting(local, cx),
            _ => {}
        }
        if self.poll_output(local, cx).is_ready() {
            return Poll::Ready(());
        }
        if let Incoming::Ended { since_ns } = self.incoming {
            let silent_ns = local.engine.clock.monotonic_ns().saturating_sub(since_ns);
            self.client.is_gone = Duration::from_nanos(silent_ns) >= GONE_AFTER;
        }
        if self.client.interactive.is_some() {
            engine::end_if_overdue(&local.engine, &mut self.client, local.engine.clock.monotonic_ms());
        }
        let is_stopping = local.stopping_since_ns.is_some();
        let mut reads = 0;
        loop {
            let mut socket = &mut local.sockets[self.socket];
            if socket.state.is_waiting() {
                self.poll_waiting(local, cx);
                socket = &mut local.sockets[self.socket];
            }
            if socket.exit == Exit::Close {
                self.begin_closing(local);
                socket = &mut local.sockets[self.socket];
            }
            // A client that asks for nothing is not delayed: so its end is noticed. Nor is one whose command has begun.
            let has_request = !self.input.is_empty() && self.client.unfinished.is_none();
            if has_request && socket.state.is_running() && self.owes(&local.engine) {
                self.delay(local, cx);
                socket = &mut local.sockets[self.socket];
            }
            let held = socket.flush.is_held();
            // Even for an incomplete request: while output is held, no more may be read.
            if held && !self.input.is_empty() {
                socket.flush = Flush::Held { wakes: true };
            }
            if self.input.len() > self.wanted && socket.may_execute() {
                self.execute_input(local);
                socket = &mut local.sockets[self.socket];
            }
            if socket.exit == Exit::Abort {
                return Poll::Ready(());
            }
            match &socket.state {
                ConnectionState::Closing => return self.poll_closing(local),
                ConnectionState::Running if held && self.input.len() > INPUT_WHILE_WAITING => return Poll::Pending,
                ConnectionState::Running if !held && self.input.len() > self.wanted => {
                    // There is more to execute than fits into one turn.
                    local.queue_turn(self.socket);
                    return Poll::Pending;
                }
                // A command in slices is in flight: it is finished first.
                ConnectionState::Yielding if is_stopping => return Poll::Pending,
                // A script on the script thread is in flight: its client gets the reply.
                ConnectionState::Blocked(Blocked { event: Event::Background(_), .. }, _) if is_stopping => {}
                // Its command is being served on its behalf: the client gets that reply, too.
                ConnectionState::Blocked(Blocked { event: Event::Value, .. }, _)
                    if is_stopping && !self.client.handle.end_wait() => {}
                ConnectionState::Blocked(..)
                | ConnectionState::Paused(_)
                | ConnectionState::Delayed(_)
                | ConnectionState::AwaitsScript
                    if is_stopping =>
                {
                    self.begin_closing(local);
                    continue;
                }
                // The client waits until its requests are read: what it has sent is not lost.
                ConnectionState::Delayed(_) => return Poll::Pending,
                ConnectionState::Blocked(..)
                | ConnectionState::Paused(_)
                | ConnectionState::AwaitsScript
                | ConnectionState::Yielding
                    if self.input.len() > INPUT_WHILE_WAITING =>
                {
                    return Poll::Pending;
                }
                _ => {}
            }
            if self.incoming.has_ended() {
                // An earlier request is in flight, or waits for a lock or for the journal.
                if socket.state.has_request_in_flight()
                    || socket.state.is_running() && held && self.input.len() > self.wanted
                {
                    return Poll::Pending;
                }
                self.begin_closing(local);
                continue;
            }
            if reads == READS_PER_TURN || self.turn_ns >= TURN_NS {
                local.queue_turn(self.socket);
                return Poll::Pending;
            }
            match self.poll_read(local, cx) {
                Poll::Ready(true) => {
                    if is_stopping {
                        self.incoming = Incoming::Open;
                    }
                    reads += 1;
                }
                // The peer has sent its last request, or one that is too large. Earlier requests are executed first,
                // and the replies may still reach the peer.
                Poll::Ready(false) if self.has_request_left(local) => {
                    self.incoming = Incoming::Ended { since_ns: local.engine.clock.monotonic_ns() };
                }
                Poll::Ready(false) => self.begin_closing(local),
                Poll::Pending if held && is_stopping => {
                    // There may be more to execute once the held output is sent.
                    local.sockets[self.socket].flush = Flush::Held { wakes: true };
                    return Poll::Pending;
                }
                // The server stops after the script has ended.
                Poll::Pending
                    if is_stopping
                        && !local.engine.restrictions.is_busy()
                        && local.sockets[self.socket].state.runs_script() =>
                {
                    return self.poll_look_again(cx);
                }
                Poll::Pending => match local.stopping_since_ns {
                    Some(since_ns) if self.poll_drained(since_ns, local.engine.clock.monotonic_ns(), cx).is_ready() => {
                        self.begin_closing(local);
                    }
                    _ => return Poll::Pending,
                },
            }
        }
    }

    /// True when a complete request is not answered yet: it is in flight, its turn was over, or output is held.
    fn has_request_left(&self, local: &Local<T>) -> bool {
        let state = &local.sockets[self.socket].state;
        state.has_request_in_flight() || state.is_running() && self.input.len() > self.wanted
    }

    /// Sends the remaining output, then closes. IMPORTANT: from now on no waiting command is served on its behalf.
    pub(super) fn begin_closing(&mut self, local: &mut Local<T>) {
        engine::stop_waiting(&local.engine, &mut self.client);
        let state = std::mem::replace(&mut local.sockets[self.socket].state, ConnectionState::Closing);
        self.end_delay(&local.engine, &state);
    }

    /// Polls this connection again after a short time.
    fn poll_look_again(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut moment = Box::pin(T::sleep(DRAIN));
        if moment.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        self.incoming = Incoming::Draining(moment);
        Poll::Pending
    }

    /// Ready when the server stops and all earlier requests of this client are executed, as far as is known.
    pub(super) fn poll_drained(&mut self, since_ns: u64, now_ns: u64, cx: &mut Context<'_>) -> Poll<()> {
        if !matches!(self.incoming, Incoming::Draining(_)) {
            let left = DRAIN_MAX.saturating_sub(Duration::from_nanos(now_ns.saturating_sub(since_ns)));
            self.incoming = Incoming::Draining(Box::pin(T::sleep(left.min(DRAIN))));
        }
        match &mut self.incoming {
            Incoming::Draining(silence) => silence.as_mut().poll(cx),
            Incoming::Open | Incoming::Ended { .. } => Poll::Pending,
        }
    }

    /// Takes the messages for this client, and continues sending if the socket was full. Ready when the connection is
    /// over.
    pub(super) fn poll_output(&mut self, local: &mut Local<T>, cx: &mut Context<'_>) -> Poll<()> {
        let socket = &mut local.sockets[self.socket];
        if socket.is_cut_off() {
            return Poll::Ready(());
        }
        // Invalidations that come after a script's read are sent after the script's reply. Sent before it, they would
        // not stop the client from caching the stale reply.
        if socket.handle.has_mail() && !socket.state.runs_script() {
            if local.sockets[self.socket].output.capacity() == 0 {
                local.sockets[self.socket].output = local.take_buffer();
            }
            let socket = &mut local.sockets[self.socket];
            let before = socket.output.len();
            let depends_on = socket.handle.drain_outbox(&mut socket.output);
            self.produced += (socket.output.len() - before) as u64;
            self.client.depends_on = self.client.depends_on.max(depends_on);
            socket.depends_on = self.client.depends_on;
            socket.strict = self.client.waits_for_disk(&local.engine.settings);
        }
        let socket = &mut local.sockets[self.socket];
        if socket.handle.output_bytes.load(Relaxed) > 0 {
            // The socket was full: wait until it is writable.
            match socket.stream.poll_writable(cx) {
                Poll::Ready(Ok(())) => {
                    let before = socket.pending();
                    socket.send(&local.worker.metrics.stats);
                    self.turn_ns += turns::cost_ns(0, before - socket.pending());
                    // A client that reads slowly is not idle.
                    socket.handle.note_active(local.engine.clock.monotonic_ns());
                    if socket.pending() == 0 {
                        // The buffer may be large, and the client idle from now on.
                        let buffer = std::mem::take(&mut socket.output);
                        local.give_buffer(buffer);
                    }
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                // Messages may have been added.
                Poll::Pending => {
                    socket.note_output();
                    if socket.has_much_unreleased() {
                        local.flush_later(self.socket);
                    }
                }
            }
            self.check_growth(local);
            if self.exceeds_output_limit(local) {
                local.engine.clients.count_output_overflow();
                return Poll::Ready(());
            }
        } else if socket.pending() > 0 {
            local.flush_later(self.socket);
        }
        Poll::Pending
    }

    /// Ready when all output is sent. If the peer is gone, sending fails, which ends this too.
    pub(super) fn poll_closing(&mut self, local: &mut Local<T>) -> Poll<()> {
        let socket = &mut local.sockets[self.socket];
        let is_full = socket.handle.output_bytes.load(Relaxed) > 0;
        if socket.pending() == 0 {
            return Poll::Ready(());
        }
        if !is_full {
            local.flush_later(self.socket);
        }
        Poll::Pending
    }

    /// Ends a wait that has timed out, was served, or was ended by CLIENT UNBLOCK.
    pub(super) fn poll_waiting(&mut self, local: &mut Local<T>, cx: &mut Context<'_>) {
        let socket = &mut local.sockets[self.socket];
        match &mut socket.state {
            ConnectionState::Running | ConnectionState::Yielding | ConnectionState::Closing => {}
            ConnectionState::Paused(until) => {
                let over = until.as_mut().poll(cx).is_ready();
                if over || !self.client.handle.is_paused() {
                    local.engine.pause.forget(&self.client.handle);
                    socket.state = ConnectionState::Running;
                }
            }
            ConnectionState::Delayed(delay) => {
                let now_ns = local.engine.clock.monotonic_ns();
                // Its limits may have changed.
                if now_ns >= delay.until_ns || delay.account.wait_ns(now_ns) == 0 {
                    end_delay(&local.engine, delay);
                    socket.state = ConnectionState::Running;
                    return;
                }
                while delay.look.as_mut().poll(cx).is_ready() {
                    if socket.stream.has_hung_up() {
                        // Nobody waits for the replies, and its place is wanted.
                        self.client.handle.kill();
                    }
                    let left = Duration::from_nanos(delay.until_ns.saturating_sub(now_ns).max(1));
                    delay.look = Box::pin(T::sleep(left.min(DELAY_LOOK_EVERY)));
                }
            }
            ConnectionState::AwaitsScript => {
                // The task may have been woken for another reason. If the script still runs, the request waits for it
                // again.
                local.engine.scripting.long.forget(self.client.id());
                socket.state = ConnectionState::Running;
            }
            ConnectionState::Blocked(blocked, until) => {
                let over = until.as_mut().is_some_and(|until| until.as_mut().poll(cx).is_ready());
                let outcome = engine::outcome(&local.engine, &local.worker, &mut self.client, &blocked.event, over);
                let Some(reply) = outcome else { return };
                let is_silent = blocked.silent;
                socket.state = ConnectionState::Running;
                if let Some(request) = self.client.take_given_back() {
                    self.input.put_first(&request.as_request().encoded());
                    (self.scanner, self.wanted) = (Scanner::default(), 0);
                    return;
                }
                self.produced += if is_silent { 0 } else { reply.len() as u64 };
                match is_silent {
                    true => {}
                    // Copying a long reply would delay other clients.
                    false if socket.output.is_empty() && reply.len() > POOL_BUFFER_BYTES_MAX => socket.output = reply,
                    false => socket.output.extend_from_slice(&reply),
                }
                // IMPORTANT: the served command may have changed keys: the reply waits for the journal like any other.
                socket.depends_on = self.client.depends_on;
                local.flush_first(self.socket);
                if self.client.take_closes() {
                    self.begin_closing(local);
                }
            }
        }
    }

    /// Counts what the client has taken since the last time, and takes it from what its user may take in a second.
    #[inline]
    pub(super) fn settle(&mut self, engine: &Engine, worker: usize) {
        let (received, produced) = (std::mem::take(&mut self.received), std::mem::take(&mut self.produced));
        let counts = std::mem::take(&mut self.client.tally).with_bytes(received, produced);
        if counts == Counts::default() {
            return;
        }
        let account = self.client.account(&engine.acl);
        account.counters.add(worker, &counts);
        if account.has_rates() {
            account.charge(&counts, engine.clock.monotonic_ns());
        }
    }

    /// True when the client's user has taken more than it may in a second.
    #[inline]
    pub(super) fn owes(&self, engine: &Engine) -> bool {
        let account = self.client.account(&engine.acl);
        account.has_rates() && account.wait_ns(engine.clock.monotonic_ns()) > 0
    }

    /// Delays the next request. Holds no thread: a timer wakes the connection.
    #[cold]
    fn delay(&mut self, local: &mut Local<T>, cx: &mut Context<'_>) {
        let account = self.client.account(&local.engine.acl);
        let now_ns = local.engine.clock.monotonic_ns();
        let wait = Duration::from_nanos(account.begin_delay(now_ns));
        let until_ns = now_ns.saturating_add(wait.as_nanos() as u64);
        let look = Box::pin(T::sleep(wait.min(DELAY_LOOK_EVERY)));
        let delay = Delay { account: account.clone(), since_ns: now_ns, until_ns, look };
        local.sockets[self.socket].state = ConnectionState::Delayed(delay);
        // This starts the timer.
        self.poll_waiting(local, cx);
    }

    /// Checks the memory limits of clients when the output of this one, whose socket is full, has grown by much.
    pub(super) fn check_growth(&mut self, local: &Local<T>) {
        let memory = local.sockets[self.socket].unsent_memory();
        if memory >= self.output_checked + GROWN_BYTES {
            engine::evict_clients(&local.engine, 0);
            self.output_checked = memory;
        } else {
            self.output_checked = self.output_checked.min(memory);
        }
    }

    /// Checks the hard and the soft limit of `client-output-buffer-limit`.
    pub(super) fn exceeds_output_limit(&mut self, local: &Local<T>) -> bool {
        let limit = local.engine.settings.client_output_buffer_limit(class(&self.client));
        let unsent = local.sockets[self.socket].unsent_memory() as u64;
        let output_max = output_max(&self.client, &local.engine);
        if output_max > 0 && unsent > output_max {
            return true;
        }
        if limit.soft_bytes == 0 || unsent <= limit.soft_bytes {
            self.soft_since_ns = None;
            return false;
        }
        let now_ns = local.engine.clock.monotonic_ns();
        let since_ns = *self.soft_since_ns.get_or_insert(now_ns);
        Duration::from_nanos(now_ns.saturating_sub(since_ns)) > Duration::from_secs(limit.soft_seconds)
    }
}

fn end_delay<T: Transport>(engine: &Engine, delay: &Delay<T>) {
    delay.account.end_delay(engine.clock.monotonic_ns().saturating_sub(delay.since_ns));
}

/// Removes the subscriptions, watches and waits of a disconnected client; in slices between other tasks if there are
/// many.
fn forget_in_slices(engine: &Arc<Engine>, mut departed: Departed) {
    if !engine::forget_some(engine, &mut departed) {
        return;
    }
    // Without a runtime the worker is ending, and everything with it.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let engine = engine.clone();
    runtime.spawn(async move {
        while engine::forget_some(&engine, &mut departed) {
            tokio::task::yield_now().await;
        }
    });
}
