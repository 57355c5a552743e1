//! A connection's client between reading and writing: what it waits for, and when it ends. Knows states and buffers; refuses
//! to know what a request does.

use super::limits::{INPUT_WHILE_WAITING, class, output_max};
use super::local::{Local, POOL_BUFFER_BYTES_MAX};
use super::socket::{Socket, TaskWaker};
use engine::{Blocked, Client, ClientHandle, Departed, Engine, Event};
use locks::Mutex;
use resp::Scanner;
use std::future::Future;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// Reads after which a connection yields to others.
const READS_PER_TURN: usize = 2;
/// When the server stops, it closes a client that has sent nothing for so long: what it had sent by then may still be
/// on its way through the network, or known to the kernel only.
const FAREWELL: Duration = Duration::from_millis(20);
/// A client that keeps sending is served for so long after the stop.
const FAREWELL_MAX: Duration = Duration::from_millis(500);

/// What the connection is doing.
pub(super) enum State {
    Running,
    /// A command of this client waits, with or without a timeout.
    Blocked(Blocked, Option<Pin<Box<Sleep>>>),
    /// CLIENT PAUSE delays the next request.
    Paused(Pin<Box<Sleep>>),
    /// The command works in slices: its next slice runs after other tasks have run.
    Yielding(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// Send what is left, then close.
    Closing,
}

/// A connection that has started.
pub(super) struct Peer {
    /// Key of its socket with the worker.
    pub(super) socket: usize,
    pub(super) client: Client,
    pub(super) scanner: Scanner,
    /// Input that could not be executed yet.
    pub(super) input: Vec<u8>,
    /// How long the input has to be before it can be; 0 when that is not known.
    pub(super) wanted: usize,
    pub(super) state: State,
    /// The peer sends no more: what it has sent is executed, and the connection ends.
    pub(super) has_ended: bool,
    /// Runs while the server stops and the client is silent.
    pub(super) farewell: Option<Pin<Box<Sleep>>>,
    /// When the soft output limit was first exceeded.
    pub(super) soft_since: Option<Instant>,
}

impl Peer {
    /// Registers with the worker and the engine.
    pub(super) fn start(local: &mut Local, stream: TcpStream, address: SocketAddr) -> Peer {
        let engine = &local.engine;
        let task = Arc::new(TaskWaker(Mutex::new(Waker::noop().clone())));
        let waker = task.clone();
        let wake = Box::new(move || waker.wake());
        let local_address = stream.local_addr().map(|address| address.to_string()).unwrap_or_default();
        let now_ms = engine.clock.unix_us() / 1000;
        let id = engine.clients.next_id();
        let handle =
            Arc::new(ClientHandle::new(id, address.to_string(), local_address, stream.as_raw_fd(), now_ms, wake));
        handle.note_active(engine.clock.monotonic_ns());
        engine.clients.add(handle.clone());
        let client = Client::new(handle.clone(), !engine.settings.requires_password());
        let socket = Socket::new(stream, handle, task);
        Peer {
            socket: local.sockets.insert(socket),
            client,
            scanner: Scanner::default(),
            input: Vec::new(),
            wanted: 0,
            state: State::Running,
            has_ended: false,
            farewell: None,
            soft_since: None,
        }
    }

    /// The engine forgets this client.
    pub(super) fn unregister(&mut self, engine: &Arc<Engine>) {
        let id = self.client.id();
        // From now on nothing is sent to it.
        engine.clients.remove(&self.client.handle);
        forget_in_slices(engine, engine.depart(&mut self.client));
        if self.client.monitoring {
            engine.monitors.remove(id);
        }
        if matches!(self.state, State::Paused(_)) {
            engine.pause.forget(id);
        }
    }

    /// True when the connection is to move to another worker and has nothing in flight.
    pub(super) fn may_leave(&self, local: &Local) -> bool {
        let socket = &local.sockets[self.socket];
        socket.leave
            && local.stopping_since.is_none()
            && matches!(self.state, State::Running)
            && socket.pending() == 0
            && !socket.flush_queued
            && !socket.broken
    }

    pub(super) fn poll(&mut self, local: &mut Local, cx: &mut Context<'_>) -> Poll<()> {
        // Before messages: what a served command has changed itself makes the client's cache invalid after its reply, as in Redis.
        if matches!(self.state, State::Blocked(..)) {
            self.poll_waiting(local, cx);
        }
        if self.poll_output(local, cx).is_ready() {
            return Poll::Ready(());
        }
        if self.client.interactive.is_some() {
            local.engine.end_if_overdue(&mut self.client, local.engine.clock.monotonic_ms());
        }
        let mut reads = 0;
        loop {
            self.poll_waiting(local, cx);
            let socket = &mut local.sockets[self.socket];
            if socket.is_ending {
                self.begin_closing(&local.engine);
            }
            // Also for half a request: while output is held, perhaps nothing more is read.
            if socket.held && !self.input.is_empty() {
                socket.wake_when_released = true;
            }
            let held = socket.held;
            if matches!(self.state, State::Running) && !held && self.input.len() > self.wanted {
                self.execute_input(local);
            }
            if local.sockets[self.socket].broken {
                return Poll::Ready(());
            }
            match self.state {
                State::Closing => return self.poll_closing(local),
                State::Running if held && self.input.len() > INPUT_WHILE_WAITING => return Poll::Pending,
                State::Running if !held && self.input.len() > self.wanted => {
                    // Other tasks first: there is more to execute than fits into one turn.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                // A command that works in slices is in flight: it ends first.
                State::Yielding(_) if local.stopping_since.is_some() => return Poll::Pending,
                // A script on the script thread is in flight: its client gets the reply.
                State::Blocked(Blocked { event: Event::Background(_), .. }, _) if local.stopping_since.is_some() => {}
                // Its command is being served on its behalf: it gets that reply, too.
                State::Blocked(Blocked { event: Event::Value, .. }, _)
                    if local.stopping_since.is_some() && !self.client.handle.end_wait() => {}
                State::Blocked(..) | State::Paused(_) if local.stopping_since.is_some() => {
                    self.begin_closing(&local.engine);
                    continue;
                }
                State::Blocked(..) | State::Paused(_) | State::Yielding(_)
                    if self.input.len() > INPUT_WHILE_WAITING =>
                {
                    return Poll::Pending;
                }
                _ => {}
            }
            if self.has_ended {
                match self.state {
                    State::Yielding(_) => return Poll::Pending,
                    State::Running if held && self.input.len() > self.wanted => return Poll::Pending,
                    _ => {
                        self.begin_closing(&local.engine);
                        continue;
                    }
                }
            }
            match self.poll_read(local, cx) {
                Poll::Ready(true) => {
                    self.farewell = None;
                    reads += 1;
                    if reads == READS_PER_TURN {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
                // The peer has sent its last request, or too large a one; the replies to those before may still reach it.
                Poll::Ready(false) if matches!(self.state, State::Yielding(_)) => self.has_ended = true,
                Poll::Ready(false) => self.begin_closing(&local.engine),
                Poll::Pending if held && local.stopping_since.is_some() => {
                    // There may be more to execute once the held output is sent.
                    local.sockets[self.socket].wake_when_released = true;
                    return Poll::Pending;
                }
                Poll::Pending => match local.stopping_since {
                    Some(since) if self.poll_farewell(since, cx).is_ready() => self.begin_closing(&local.engine),
                    _ => return Poll::Pending,
                },
            }
        }
    }

    /// Sends what is left, then closes. IMPORTANT: from now on no waiting command is served on its behalf.
    pub(super) fn begin_closing(&mut self, engine: &Engine) {
        engine.stop_waiting(&mut self.client);
        self.state = State::Closing;
    }

    /// Ready when the server stops and all that this client has sent before is executed, as far as can be known.
    pub(super) fn poll_farewell(&mut self, since: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let until = (Instant::now() + FAREWELL).min(since + FAREWELL_MAX);
        self.farewell.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until))).as_mut().poll(cx)
    }

    /// Takes the messages that were published to this client, and goes on sending if the socket was full. Ready when the
    /// connection is over.
    pub(super) fn poll_output(&mut self, local: &mut Local, cx: &mut Context<'_>) -> Poll<()> {
        let socket = &mut local.sockets[self.socket];
        if socket.broken || socket.handle.is_killed() {
            return Poll::Ready(());
        }
        // Invalidations that came after a script's read are sent after the script's reply. Sent before it, they would not stop
        // the client from caching what the reply says.
        if socket.handle.has_mail() && !self.awaits_script() {
            if local.sockets[self.socket].output.capacity() == 0 {
                local.sockets[self.socket].output = local.take_buffer();
            }
            let socket = &mut local.sockets[self.socket];
            let depends_on = socket.handle.drain_outbox(&mut socket.output);
            self.client.depends_on = self.client.depends_on.max(depends_on);
            socket.depends_on = self.client.depends_on;
            socket.strict = self.client.waits_for_disk(&local.engine.settings);
        }
        let socket = &mut local.sockets[self.socket];
        if socket.handle.output_bytes.load(Relaxed) > 0 {
            // The socket was full: wait until it is writable.
            match socket.stream.poll_write_ready(cx) {
                Poll::Ready(Ok(())) => {
                    socket.send(&local.worker.books.stats);
                    // Slow is not idle.
                    socket.handle.note_active(local.engine.clock.monotonic_ns());
                    if socket.pending() == 0 {
                        // It may be large, and the client silent from now on.
                        let buffer = std::mem::take(&mut socket.output);
                        local.give_buffer(buffer);
                    }
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                // Messages may have been added.
                Poll::Pending => socket.handle.output_bytes.store(socket.pending(), Relaxed),
            }
            if self.exceeds_output_limit(local) {
                local.engine.clients.count_output_overflow();
                return Poll::Ready(());
            }
        } else if socket.pending() > 0 {
            local.flush_later(self.socket);
        }
        Poll::Pending
    }

    /// True while a script of this client runs on the script thread.
    pub(super) fn awaits_script(&self) -> bool {
        matches!(&self.state, State::Blocked(Blocked { event: Event::Background(_), .. }, _))
    }

    /// Ready when nothing is left to be sent. A peer that is gone makes sending fail, which ends this too.
    pub(super) fn poll_closing(&mut self, local: &mut Local) -> Poll<()> {
        let socket = &mut local.sockets[self.socket];
        let is_full = socket.handle.output_bytes.load(Relaxed) > 0;
        if socket.pending() == 0 {
            return Poll::Ready(());
        }
        socket.closing = true;
        if !is_full {
            local.flush_later(self.socket);
        }
        Poll::Pending
    }

    /// Ends a wait that has timed out, was served, or was ended by CLIENT UNBLOCK.
    pub(super) fn poll_waiting(&mut self, local: &mut Local, cx: &mut Context<'_>) {
        match &mut self.state {
            State::Running | State::Closing => {}
            State::Yielding(turn) => {
                if turn.as_mut().poll(cx).is_ready() {
                    self.state = State::Running;
                }
            }
            State::Paused(until) => {
                let over = until.as_mut().poll(cx).is_ready();
                if over || !local.engine.pause.is_on(local.engine.clock.monotonic_ms()) {
                    local.sockets[self.socket].paused = false;
                    self.state = State::Running;
                }
            }
            State::Blocked(blocked, until) => {
                let over = until.as_mut().is_some_and(|until| until.as_mut().poll(cx).is_ready());
                let socket = &mut local.sockets[self.socket];
                let outcome = local.engine.outcome(&local.worker, &mut self.client, &blocked.event, over);
                let Some(reply) = outcome else { return };
                match blocked.silent {
                    true => {}
                    // Copying a long one would keep other clients waiting.
                    false if socket.output.is_empty() && reply.len() > POOL_BUFFER_BYTES_MAX => socket.output = reply,
                    false => socket.output.extend_from_slice(&reply),
                }
                // IMPORTANT: the command that was served on its behalf may have changed keys: the reply waits for the journal
                // as any other does.
                socket.depends_on = self.client.depends_on;
                socket.last_batch = self.client.last_batch;
                self.state = State::Running;
                local.flush_first(self.socket);
            }
        }
    }

    /// The limits of `client-output-buffer-limit`, hard and soft.
    pub(super) fn exceeds_output_limit(&mut self, local: &Local) -> bool {
        let limit = local.engine.settings.client_output_buffer_limit(class(&self.client));
        let pending = local.sockets[self.socket].pending() as u64;
        let output_max = output_max(&self.client, &local.engine.settings);
        if output_max > 0 && pending > output_max {
            return true;
        }
        if limit.soft_bytes == 0 || pending <= limit.soft_bytes {
            self.soft_since = None;
            return false;
        }
        let since = *self.soft_since.get_or_insert_with(Instant::now);
        since.elapsed() > Duration::from_secs(limit.soft_seconds)
    }
}

/// Removes the subscriptions, watches and waits of a client that is gone, a slice at a time between other tasks if there are many.
fn forget_in_slices(engine: &Arc<Engine>, mut departed: Departed) {
    if !engine.forget_some(&mut departed) {
        return;
    }
    // Without a runtime the worker is ending, and everything with it.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let engine = engine.clone();
    runtime.spawn(async move {
        while engine.forget_some(&mut departed) {
            tokio::task::yield_now().await;
        }
    });
}
