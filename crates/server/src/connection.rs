//! One client's connection: bytes in, requests executed, bytes out. Knows buffers and their limits; refuses to know
//! what a request does.
//!
//! A connection that is idle owns no buffer: it reads into its worker's, and its output buffer goes back to the
//! worker's pool once it is sent. Only an unfinished request or unsent output stays with it.

use crate::worker::{Arrival, Local, try_with_local, with_local};
use engine::settings::ClientClass;
use engine::stats::WorkerStats;
use engine::{Ahead, Blocked, Client, ClientHandle, Departed, Engine, Event, Flow, Settings};
use keyspace::locked::BATCH_MAX;
use locks::{Mutex, rank};
use resp::{Limits, Reply, Scan, Scanner};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags};
use std::future::Future;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// Output after which a connection lets others run, so that a long pipeline is sent in pieces.
const OUTPUT_PIECE: usize = 256 * 1024;
/// Replies of so many bytes may wait to be sent whatever the limits say, as in Redis: they fit its static buffer.
const OUTPUT_UNLIMITED: usize = 16 * 1024;
/// Unsent output of a client that has yet to give the password, however generous the limits for others.
const OUTPUT_BEFORE_AUTH_MAX: u64 = 1024;
/// Reads after which a connection lets others run.
const READS_PER_TURN: usize = 2;
/// Input kept for a client that waits for a command of its own. With more than that nobody reads on, and then its end is
/// noticed only when the kernel tells of it.
const INPUT_WHILE_WAITING: usize = 1024 * 1024;
/// An unfinished request that is shorter than this owns what has arrived of it and no more: the rest is read into the
/// worker's buffer. A longer one is read to where its beginning is.
const SHORT_INPUT: usize = 32 * 1024;
/// Room made for a long request: at least so much, and at most so many times what has arrived. A client that announces half
/// a gigabyte gets it only as the bytes arrive. A larger factor would save copies, a smaller one memory that is counted
/// (though not touched) before there is anything in it.
const INPUT_ROOM_MIN: usize = 64 * 1024;
const INPUT_ROOM_FACTOR: usize = 7;
/// When a buffer grows beyond this, all clients are looked at: together they may take more than `maxmemory-clients`.
const LARGE_INPUT: usize = 1024 * 1024;
/// No request is longer than this, whatever the setting says: places of arguments are counted in 32 bits, and so is the
/// length of the batch in the journal that comes of it.
const REQUEST_BYTES_MAX: u64 = u32::MAX as u64 - 64 * 1024 * 1024;
/// When the server stops, it closes a client that has sent nothing for so long: what it had sent by then may still be
/// on its way through the network, or known to the kernel only.
const FAREWELL: Duration = Duration::from_millis(20);
/// From a client that does not fall silent, requests are taken for so long.
const FAREWELL_MAX: Duration = Duration::from_millis(500);

/// The socket side of a connection, where the worker can reach it at the end of a tick.
pub(crate) struct Io {
    stream: TcpStream,
    /// Replies not sent yet, of which the first `sent` bytes are, and of which `sendable` may be: what the rest tells
    /// of has yet to be kept.
    pub(crate) output: Vec<u8>,
    sent: usize,
    sendable: usize,
    pub(crate) flush_queued: bool,
    /// The newest batch of the journal that the output tells of, and the newest that was made by this client.
    pub(crate) depends_on: u64,
    pub(crate) last_batch: u64,
    /// What it tells of has to be durable, not just handed to the operating system.
    pub(crate) strict: bool,
    /// Output waits for the journal: no request is executed meanwhile.
    pub(crate) held: bool,
    /// Requests wait for that to end.
    wake_when_released: bool,
    /// A command of this client waits for something that is not its own time alone.
    pub(crate) awaits_event: bool,
    /// The connection ends when everything is sent: its task wants to know.
    closing: bool,
    /// Its last replies were not good, or nobody is there to get more: it ends.
    given_up: bool,
    /// The worker has too many connections: this one should go to another.
    pub(crate) leave: bool,
    /// The peer is gone: there is nobody to write to.
    broken: bool,
    /// CLIENT PAUSE holds a request of this client back: it is not idle.
    pub(crate) paused: bool,
    pub(crate) handle: Arc<ClientHandle>,
    task: Arc<Task>,
}

/// Wakes the task that a connection is now, from any thread. The task changes when the connection moves.
struct Task(Mutex<Waker, { rank::WAKER }>);

impl Task {
    fn register(&self, waker: &Waker) {
        *self.0.lock() = waker.clone();
    }

    fn wake(&self) {
        self.0.lock().wake_by_ref();
    }
}

impl Io {
    fn new(stream: TcpStream, handle: Arc<ClientHandle>, task: Arc<Task>) -> Io {
        let output = Vec::new();
        Io {
            stream,
            output,
            sent: 0,
            sendable: 0,
            flush_queued: false,
            depends_on: 0,
            last_batch: 0,
            strict: false,
            held: false,
            wake_when_released: false,
            awaits_event: false,
            closing: false,
            given_up: false,
            leave: false,
            broken: false,
            paused: false,
            handle,
            task,
        }
    }

    /// Ends the connection if its peer is gone. For one that waits with so much unread input that no more is read: reading
    /// would tell, but nobody reads.
    pub(crate) fn notice_hang_up(&mut self) {
        let reads_no_more = self.handle.input_bytes().0 > INPUT_WHILE_WAITING;
        if !reads_no_more || !(self.paused || self.handle.is_blocked()) {
            return;
        }
        let mut fds = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        if poll(&mut fds, Some(&Timespec::default())).is_ok_and(|count| count > 0) {
            self.given_up = true;
            self.wake();
        }
    }

    /// Makes the connection's task look around.
    pub(crate) fn wake(&self) {
        self.task.wake();
    }

    /// Bytes still to be sent.
    fn pending(&self) -> usize {
        self.output.len() - self.sent
    }

    /// All output may be sent: what it tells of is kept.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.sendable = self.output.len();
        if self.held {
            self.held = false;
            if std::mem::take(&mut self.wake_when_released) {
                self.wake();
            }
        }
    }

    /// What the output tells of was not kept: the client learns that instead, and the connection ends. It cannot go
    /// on, since nobody knows which of the replies were good.
    pub(crate) fn give_up(&mut self, reason: &str) {
        self.output.truncate(self.sendable);
        let line = format!("-MISCONF {}\r\n", reason.replace(['\r', '\n'], " "));
        self.output.extend_from_slice(line.as_bytes());
        self.sendable = self.output.len();
        self.held = false;
        self.given_up = true;
        self.wake();
    }

    /// Writes as much as the socket takes. What is left waits for the connection's task to see it writable.
    pub(crate) fn send(&mut self, stats: &WorkerStats) {
        while self.sent < self.sendable && !self.broken {
            match self.stream.try_io(Interest::WRITABLE, || send(&self.stream, &self.output[self.sent..self.sendable]))
            {
                Ok(written) => {
                    self.sent += written;
                    stats.writes.add(1);
                    stats.bytes_out.add(written as u64);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.handle.output_bytes.store(self.pending(), Relaxed);
                    self.compact();
                    return self.wake();
                }
                Err(_) => {
                    self.broken = true;
                    self.wake();
                }
            }
        }
        if self.sendable == self.output.len() || self.broken {
            self.output.clear();
            self.sent = 0;
            self.sendable = 0;
        }
        let was_full = self.handle.output_bytes.load(Relaxed) != 0;
        if was_full {
            self.handle.output_bytes.store(0, Relaxed);
        }
        if was_full || self.closing {
            self.wake();
        }
    }

    /// Drops what has been sent when that is most of the buffer.
    fn compact(&mut self) {
        if self.sent > self.output.len() / 2 {
            self.output.drain(..self.sent);
            self.sendable -= self.sent;
            self.sent = 0;
        }
    }
}

/// What the connection is doing.
enum State {
    Running,
    /// A command of this client waits, for a time or for ever.
    Blocked(Blocked, Option<Pin<Box<Sleep>>>),
    /// CLIENT PAUSE holds the next request back.
    Paused(Pin<Box<Sleep>>),
    /// The next request goes on when others have had their turn.
    Yielding(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// Send what is left, then close.
    Closing,
}

/// How to go on after a request.
enum Step {
    /// With the next one.
    Next,
    /// Not now; the request is done.
    Stop,
    /// Not now, and then with the same request again.
    Again,
    /// Not at all: what else has come is dropped.
    End,
}

/// A connection between two workers.
pub(crate) struct Moving {
    stream: std::net::TcpStream,
    peer: Peer,
    task: Arc<Task>,
}

impl Moving {
    /// Goes on at another worker, on whose thread this is called.
    pub(crate) fn arrive(self: Box<Self>, connections: Arc<AtomicUsize>) -> std::io::Result<Connection> {
        let Moving { stream, mut peer, task } = *self;
        let handle = peer.client.handle.clone();
        let stream = TcpStream::from_std(stream).inspect_err(|_| with_local(|local| peer.unregister(&local.engine)))?;
        let io = Io::new(stream, handle, task);
        peer.io = with_local(|local| local.ios.insert(io));
        Ok(Connection { arrival: None, peer: Some(peer), connections, registered: false })
    }
}

/// A connection as a task of its worker.
pub(crate) struct Connection {
    /// Until the first poll, which is the first moment on the worker's thread.
    arrival: Option<(TcpStream, SocketAddr)>,
    peer: Option<Peer>,
    connections: Arc<AtomicUsize>,
    /// Its handle wakes this task.
    registered: bool,
}

/// A connection that has started.
struct Peer {
    /// Key of its `Io` with the worker.
    io: usize,
    client: Client,
    scanner: Scanner,
    /// Input that could not be executed yet.
    input: Vec<u8>,
    /// How long the input has to be before it can be; 0 when that is not known.
    wanted: usize,
    state: State,
    /// Runs while the server stops and the client is silent.
    farewell: Option<Pin<Box<Sleep>>>,
    /// When the soft output limit was first exceeded.
    soft_since: Option<Instant>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, peer: SocketAddr, connections: Arc<AtomicUsize>) -> Connection {
        Connection { arrival: Some((stream, peer)), peer: None, connections, registered: false }
    }
}

impl Future for Connection {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        with_local(|local| {
            if let Some((stream, address)) = this.arrival.take() {
                this.peer = Some(Peer::start(local, stream, address));
            }
            if let Some(peer) = &this.peer
                && !std::mem::replace(&mut this.registered, true)
            {
                local.ios[peer.io].task.register(cx.waker());
            }
            if let Some(peer) = this.peer.take_if(|peer| peer.may_leave(local)) {
                peer.leave(local);
                return Poll::Ready(());
            }
            this.peer.as_mut().map_or(Poll::Ready(()), |peer| peer.poll(local, cx))
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Relaxed);
        let Some(mut peer) = self.peer.take() else { return };
        // Dropped by the runtime while the worker ends, there is no worker any more.
        let _ = try_with_local(|local| {
            peer.unregister(&local.engine);
            let io = local.ios.remove(peer.io);
            local.give_buffer(io.output);
        });
    }
}

impl Peer {
    /// Registers with the worker and the engine.
    fn start(local: &mut Local, stream: TcpStream, address: SocketAddr) -> Peer {
        let engine = &local.engine;
        let task = Arc::new(Task(Mutex::new(Waker::noop().clone())));
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
        let io = Io::new(stream, handle, task);
        Peer {
            io: local.ios.insert(io),
            client,
            scanner: Scanner::default(),
            input: Vec::new(),
            wanted: 0,
            state: State::Running,
            farewell: None,
            soft_since: None,
        }
    }

    /// The engine forgets this client.
    fn unregister(&mut self, engine: &Arc<Engine>) {
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

    /// True when the connection was asked to go to another worker and has nothing in flight.
    fn may_leave(&self, local: &Local) -> bool {
        let io = &local.ios[self.io];
        io.leave
            && local.stopping_since.is_none()
            && matches!(self.state, State::Running)
            && io.pending() == 0
            && !io.flush_queued
            && !io.broken
    }

    /// Goes to another worker.
    fn leave(mut self, local: &mut Local) {
        let io = local.ios.remove(self.io);
        local.give_buffer(io.output);
        match io.stream.into_std() {
            Ok(stream) => local.team.assign(Arrival::Moved(Box::new(Moving { stream, peer: self, task: io.task }))),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be moved");
                self.unregister(&local.engine);
            }
        }
    }

    fn poll(&mut self, local: &mut Local, cx: &mut Context<'_>) -> Poll<()> {
        if self.awaits_script() {
            self.poll_waiting(local, cx);
        }
        if self.poll_output(local, cx).is_ready() {
            return Poll::Ready(());
        }
        let mut reads = 0;
        loop {
            self.poll_waiting(local, cx);
            let io = &mut local.ios[self.io];
            if io.given_up {
                self.begin_closing(&local.engine);
            }
            // Whatever has come, even half a request: while output is held, perhaps nothing more is read.
            if io.held && !self.input.is_empty() {
                io.wake_when_released = true;
            }
            let held = io.held;
            if matches!(self.state, State::Running) && !held && self.input.len() > self.wanted {
                self.execute_input(local);
            }
            if local.ios[self.io].broken {
                return Poll::Ready(());
            }
            match self.state {
                State::Closing => return self.poll_closing(local),
                State::Running if held && self.input.len() > INPUT_WHILE_WAITING => return Poll::Pending,
                State::Running if !held && self.input.len() > self.wanted => {
                    // Others first: there is more to execute than fits into one turn.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                // A command that works in slices is in flight: it ends first.
                State::Yielding(_) if local.stopping_since.is_some() => return Poll::Pending,
                // A script that runs apart is in flight: its client hears how it ends.
                State::Blocked(Blocked { event: Event::Apart(_), .. }, _) if local.stopping_since.is_some() => {}
                // What it waited for is being taken for it: it hears that too.
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
                Poll::Ready(false) => self.begin_closing(&local.engine),
                Poll::Pending if held && local.stopping_since.is_some() => {
                    // There may be more to execute once what is held is sent.
                    local.ios[self.io].wake_when_released = true;
                    return Poll::Pending;
                }
                Poll::Pending => match local.stopping_since {
                    Some(since) if self.poll_farewell(since, cx).is_ready() => self.begin_closing(&local.engine),
                    _ => return Poll::Pending,
                },
            }
        }
    }

    /// Sends what is left, then closes. IMPORTANT: whatever it waited for, nothing is taken for it from now on.
    fn begin_closing(&mut self, engine: &Engine) {
        engine.stop_waiting(&mut self.client);
        self.state = State::Closing;
    }

    /// Ready when the server stops and all that this client has sent before is executed, as far as one can know.
    fn poll_farewell(&mut self, since: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let until = (Instant::now() + FAREWELL).min(since + FAREWELL_MAX);
        self.farewell.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until))).as_mut().poll(cx)
    }

    /// Takes what others have sent to this client, and goes on sending if the socket was full. Ready when the
    /// connection is over.
    fn poll_output(&mut self, local: &mut Local, cx: &mut Context<'_>) -> Poll<()> {
        let io = &mut local.ios[self.io];
        if io.broken || io.handle.is_killed() {
            return Poll::Ready(());
        }
        // What has happened since a script read something is heard after the script's reply, or a client that caches would
        // keep what it was told not to.
        if io.handle.has_mail() && !self.awaits_script() {
            if local.ios[self.io].output.capacity() == 0 {
                local.ios[self.io].output = local.take_buffer();
            }
            let io = &mut local.ios[self.io];
            let depends_on = io.handle.drain_outbox(&mut io.output);
            self.client.depends_on = self.client.depends_on.max(depends_on);
            io.depends_on = self.client.depends_on;
            io.strict = self.client.waits_for_disk(&local.engine.settings);
        }
        let io = &mut local.ios[self.io];
        if io.handle.output_bytes.load(Relaxed) > 0 {
            // The socket was full: learn when it is not.
            match io.stream.poll_write_ready(cx) {
                Poll::Ready(Ok(())) => {
                    io.send(&local.worker.books.stats);
                    // Slow is not idle.
                    io.handle.note_active(local.engine.clock.monotonic_ns());
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => {}
            }
            if self.exceeds_output_limit(local) {
                local.engine.clients.count_output_overflow();
                return Poll::Ready(());
            }
        } else if io.pending() > 0 {
            local.flush_later(self.io);
        }
        Poll::Pending
    }

    /// True while a script of this client runs apart.
    fn awaits_script(&self) -> bool {
        matches!(&self.state, State::Blocked(Blocked { event: Event::Apart(_), .. }, _))
    }

    /// Ready when nothing is left to be sent. A peer that is gone altogether makes sending fail, which ends this too.
    fn poll_closing(&mut self, local: &mut Local) -> Poll<()> {
        let io = &mut local.ios[self.io];
        let is_full = io.handle.output_bytes.load(Relaxed) > 0;
        if io.pending() == 0 {
            return Poll::Ready(());
        }
        io.closing = true;
        if !is_full {
            local.flush_later(self.io);
        }
        Poll::Pending
    }

    /// Ends a wait whose time is up or that somebody has ended.
    fn poll_waiting(&mut self, local: &mut Local, cx: &mut Context<'_>) {
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
                    local.ios[self.io].paused = false;
                    self.state = State::Running;
                }
            }
            State::Blocked(blocked, until) => {
                let over = until.as_mut().is_some_and(|until| until.as_mut().poll(cx).is_ready());
                let io = &mut local.ios[self.io];
                let outcome = local.engine.outcome(&local.worker, &mut self.client, &blocked.event, over);
                let Some(reply) = outcome else { return };
                if !blocked.silent {
                    io.output.extend_from_slice(&reply);
                }
                // IMPORTANT: what was done elsewhere on its behalf has changed things: the reply waits for the journal as any
                // other does.
                io.depends_on = self.client.depends_on;
                io.last_batch = self.client.last_batch;
                self.state = State::Running;
                local.flush_later(self.io);
            }
        }
    }

    /// Reads once; what comes is executed at once or kept. False when the peer has closed or must be closed.
    fn poll_read(&mut self, local: &mut Local, cx: &mut Context<'_>) -> Poll<bool> {
        if self.input.len() >= SHORT_INPUT {
            return self.poll_read_more(local, cx);
        }
        let mut buffer = std::mem::take(&mut local.read_buffer);
        let stream = &local.ios[self.io].stream;
        // What is kept comes first, so that its rest can be executed with it where it has been read.
        let kept = self.input.len();
        let outcome = match poll_receive(stream, &mut buffer[kept..], cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(0) => Poll::Ready(false),
            Poll::Ready(received) => {
                let len = kept + received;
                self.count_read(local, received);
                if kept > 0 {
                    self.client.handle.note_active(local.engine.clock.monotonic_ns());
                }
                let executed = match self.state {
                    State::Running if !local.ios[self.io].held && len > self.wanted => {
                        buffer[..kept].copy_from_slice(&self.input);
                        self.execute(local, &buffer[..len])
                    }
                    _ => 0,
                };
                match executed {
                    0 => {
                        self.input.reserve_exact(received);
                        self.input.extend_from_slice(&buffer[kept..len]);
                    }
                    _ => self.input = buffer[executed..len].to_vec(),
                }
                self.note_input();
                Poll::Ready(true)
            }
        };
        local.read_buffer = buffer;
        outcome
    }

    /// Reads the rest of a long request to where its beginning is.
    fn poll_read_more(&mut self, local: &mut Local, cx: &mut Context<'_>) -> Poll<bool> {
        let len = self.input.len();
        if self.input.capacity() == len {
            let missing = (self.wanted + 1).saturating_sub(len);
            // In proportion even if little is missing: behind that may come another million arguments.
            self.input.reserve_exact(missing.clamp(INPUT_ROOM_MIN.max(len / 2), INPUT_ROOM_FACTOR * len));
            if self.input.capacity() >= LARGE_INPUT {
                self.note_input();
                local.engine.evict_clients();
            }
        }
        loop {
            let stream = &local.ios[self.io].stream;
            match stream.poll_read_ready(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(false),
                Poll::Ready(Ok(())) => {}
            }
            match stream.try_read_buf(&mut self.input) {
                Ok(0) => return Poll::Ready(false),
                Ok(len) => {
                    self.count_read(local, len);
                    self.note_input();
                    self.client.handle.note_active(local.engine.clock.monotonic_ns());
                    let limit = local.engine.settings.client_query_buffer_limit().min(REQUEST_BYTES_MAX);
                    let fits = self.input.len() as u64 <= limit;
                    if !fits {
                        local.ios[self.io].broken = true;
                        local.engine.clients.count_query_overflow();
                        tracing::warn!(
                            client = self.client.id(),
                            "closed: its request exceeds client-query-buffer-limit"
                        );
                    }
                    return Poll::Ready(fits);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return Poll::Ready(false),
            }
        }
    }

    #[inline]
    fn count_read(&self, local: &Local, len: usize) {
        let stats = &local.worker.books.stats;
        stats.reads.add(1);
        stats.bytes_in.add(len as u64);
    }

    /// Executes what was kept.
    fn execute_input(&mut self, local: &mut Local) {
        let input = std::mem::take(&mut self.input);
        let executed = self.execute(local, &input);
        if executed == 0 {
            self.input = input;
        } else if executed < input.len() {
            self.keep_rest(input, executed);
        }
        self.note_input();
    }

    /// Tells others how much this client has yet to be served.
    #[inline]
    fn note_input(&self) {
        self.client.handle.note_input(self.input.len(), self.input.capacity() + self.scanner.heap_bytes());
    }

    /// Keeps what follows the first `executed` bytes: in a buffer of its own size where the old one is much too large.
    fn keep_rest(&mut self, mut input: Vec<u8>, executed: usize) {
        if input.len() - executed < input.capacity() / 4 {
            self.input = input[executed..].to_vec();
        } else {
            input.drain(..executed);
            self.input = input;
        }
    }

    /// Executes the complete requests at the start of `input` and returns how many bytes they took.
    fn execute(&mut self, local: &mut Local, input: &[u8]) -> usize {
        if local.ios[self.io].output.capacity() == 0 {
            local.ios[self.io].output = local.take_buffer();
        }
        let engine = &local.engine;
        engine.begin(&mut local.worker);
        let io = &mut local.ios[self.io];
        let mut limits = request_limits(&engine.settings);
        let mut at = 0;
        self.wanted = 0;
        io.handle.note_input(input.len(), self.input.capacity());
        self.client.output_bytes_max = match output_max(&self.client, &engine.settings) as usize {
            0 => usize::MAX,
            max => max.max(OUTPUT_UNLIMITED).saturating_add(io.sent),
        };
        let mut batch = std::mem::take(&mut local.batch);
        let mut step = Step::Next;
        while at < input.len() && matches!(step, Step::Next) {
            let rest = &input[at..];
            limits.unauthenticated = is_unauthenticated(&self.client, &engine.settings);
            // What a stranger sends is looked at one by one: its limits change when it has authenticated.
            let count_max = if limits.unauthenticated { 0 } else { BATCH_MAX };
            self.scanner.scan_batch(rest, &limits, count_max, &mut batch);
            if batch.is_empty() {
                let (flow, len) = match self.scanner.scan(rest, &limits) {
                    Scan::Complete(request, len) => {
                        (engine.execute(&mut local.worker, &mut self.client, request, &mut io.output), len)
                    }
                    Scan::Empty(len) => (Flow::Continue, len),
                    Scan::Incomplete(needed) => {
                        self.wanted = needed - 1;
                        break;
                    }
                    Scan::Broken(error) => {
                        tracing::debug!(client = self.client.id(), %error, "closed");
                        Reply::new(&mut io.output, self.client.protocol).error(&format!("ERR {error}"));
                        (Flow::Close, rest.len())
                    }
                };
                step = self.settle(flow, io, engine, local.worker.now_ms);
                at += if matches!(step, Step::Again) { 0 } else { len };
                continue;
            }
            let mut ahead = match batch.len() {
                1 => Ahead::default(),
                _ => engine.look_ahead(&self.client, batch.requests(rest)),
            };
            let mut done = 0;
            for index in 0..batch.len() {
                let request = batch.request(rest, index);
                let flow =
                    engine.execute_ahead(&mut local.worker, &mut self.client, request, &mut io.output, &mut ahead);
                step = self.settle(flow, io, engine, local.worker.now_ms);
                if !matches!(step, Step::Again) {
                    done = batch.bytes_through(index);
                }
                if !matches!(step, Step::Next) {
                    // What was scanned beyond is scanned again from its beginning.
                    self.scanner.restart();
                    break;
                }
            }
            at += done;
        }
        local.batch = batch;
        let io = &mut local.ios[self.io];
        io.depends_on = self.client.depends_on;
        io.last_batch = self.client.last_batch;
        io.strict = self.client.waits_for_disk(&local.engine.settings);
        if io.awaits_event {
            // Before the task looks whether it has happened already: see `settle`.
            local.keeper.await_news(local.index);
        }
        if matches!(step, Step::End) {
            at = input.len();
        }
        if local.ios[self.io].broken {
            return at;
        }
        let io = &mut local.ios[self.io];
        self.scanner.shrink();
        if io.pending() > 0 && io.handle.output_bytes.load(Relaxed) == 0 {
            local.flush_later(self.io);
        } else if io.pending() == 0 {
            let buffer = std::mem::take(&mut io.output);
            local.give_buffer(buffer);
        } else {
            io.handle.output_bytes.store(io.pending(), Relaxed);
        }
        at
    }

    /// Does what a request asks of the connection, and says how to go on.
    #[inline]
    fn settle(&mut self, flow: Flow, io: &mut Io, engine: &Engine, now_ms: u64) -> Step {
        match flow {
            Flow::Continue => {}
            Flow::Close => {
                self.state = State::Closing;
                return Step::End;
            }
            Flow::Block(blocked) => {
                io.awaits_event = !matches!(blocked.event, Event::Never(_) | Event::Apart(_) | Event::Value);
                let until = blocked.until_ms.map(|until_ms| sleep_until(until_ms, now_ms));
                self.state = State::Blocked(blocked, until);
                // The timer is not polled yet; a pass through `poll` does that.
                io.task.wake();
                return Step::Stop;
            }
            Flow::Again => {
                // Ready once the runtime has looked for what others have sent: waking the task by itself would not do.
                self.state = State::Yielding(Box::pin(tokio::task::yield_now()));
                io.task.wake();
                return Step::Again;
            }
            Flow::Paused(until_ms) => {
                io.paused = true;
                self.state = State::Paused(sleep_until(until_ms, engine.clock.monotonic_ms()));
                io.task.wake();
                return Step::Again;
            }
        }
        if io.pending() <= OUTPUT_UNLIMITED {
            return Step::Next;
        }
        let output_max = output_max(&self.client, &engine.settings);
        if output_max > 0 && io.pending() as u64 > output_max {
            engine.clients.count_output_overflow();
            tracing::warn!(client = self.client.id(), "closed: its replies exceed client-output-buffer-limit");
            io.broken = true;
            io.task.wake();
            return Step::End;
        }
        if io.pending() > OUTPUT_PIECE { Step::Stop } else { Step::Next }
    }

    /// The limits of `client-output-buffer-limit`, hard and soft.
    fn exceeds_output_limit(&mut self, local: &Local) -> bool {
        let limit = local.engine.settings.client_output_buffer_limit(class(&self.client));
        let pending = local.ios[self.io].pending() as u64;
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

/// Takes back what a client has left behind. Much of it is done a slice at a time, between the turns of other clients.
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

/// Most output that may wait for a client; 0 = no limit.
fn output_max(client: &Client, settings: &Settings) -> u64 {
    match is_unauthenticated(client, settings) {
        true => OUTPUT_BEFORE_AUTH_MAX,
        false => settings.client_output_buffer_limit(class(client)).hard_bytes,
    }
}

/// Whose limits apply to a client.
fn class(client: &Client) -> ClientClass {
    if client.subscriptions.is_empty() { ClientClass::Normal } else { ClientClass::Pubsub }
}

/// True for a client that has yet to give the password.
fn is_unauthenticated(client: &Client, settings: &Settings) -> bool {
    !client.authenticated && settings.requires_password()
}

/// Sends without the C library's wrapper, which makes every send of a threaded process a cancellation point.
#[inline]
fn send(stream: &TcpStream, bytes: &[u8]) -> std::io::Result<usize> {
    Ok(rustix::net::send(stream, bytes, SendFlags::NOSIGNAL)?)
}

/// Receives once; 0 when the peer has closed or the connection has failed.
#[inline]
fn poll_receive(stream: &TcpStream, buffer: &mut [u8], cx: &mut Context<'_>) -> Poll<usize> {
    loop {
        match stream.poll_read_ready(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(_)) => return Poll::Ready(0),
            Poll::Ready(Ok(())) => {}
        }
        let received = stream.try_io(Interest::READABLE, || {
            let (received, _) = rustix::net::recv(stream, &mut *buffer, RecvFlags::empty())?;
            Ok(received)
        });
        match received {
            Ok(len) => {
                if len < buffer.len() {
                    // The socket is empty: saying so saves the next read, which would only find that out. Bytes that
                    // arrive from now on raise a new event.
                    let _ = stream.try_io(Interest::READABLE, || Err::<(), _>(std::io::ErrorKind::WouldBlock.into()));
                }
                return Poll::Ready(len);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return Poll::Ready(0),
        }
    }
}

/// The limits of the protocol as they are set now.
fn request_limits(settings: &Settings) -> Limits {
    Limits {
        inline_bytes_max: settings.proto_max_inline_len() as usize,
        args_max: settings.proto_max_args() as usize,
        bulk_bytes_max: settings.proto_max_bulk_len() as usize,
        unauthenticated: false,
    }
}

fn sleep_until(until_ms: u64, now_ms: u64) -> Pin<Box<Sleep>> {
    Box::pin(tokio::time::sleep(Duration::from_millis(until_ms.saturating_sub(now_ms))))
}
