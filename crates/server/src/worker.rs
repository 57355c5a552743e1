//! One worker thread: a single-threaded runtime, the connections that live on it, and what they share. Knows the
//! tick: all ready clients execute, then all replies are sent. Refuses to know what a command does.

use crate::balance::{self, AtWork, Balance, Cores};
use crate::connection::{Connection, Io, Moving};
use crate::keeper::{Keeper, Standing};
use crate::process;
use engine::settings::WorkerBalance;
use engine::{Engine, Worker};
use resp::Batch;
use slab::Slab;
use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Bytes read from a socket at once. A client's leftovers are kept by the client; this buffer is the worker's.
const READ_BYTES: usize = 64 * 1024;
/// Output buffers kept for reuse, and the largest worth keeping.
const POOL_BUFFERS: usize = 64;
const POOL_BUFFER_BYTES_MAX: usize = 256 * 1024;
/// How often the worker looks after itself.
const CRON_INTERVAL: Duration = Duration::from_millis(100);
/// Longest stretch of expiry work without letting clients in.
const EXPIRY_SLICE_NS: u64 = 500_000;

/// What the connections of one worker share. It lives in a thread-local: only tasks of this thread use it.
pub(crate) struct Local {
    pub(crate) engine: Arc<Engine>,
    pub(crate) worker: Worker,
    pub(crate) ios: Slab<Io>,
    pub(crate) read_buffer: Vec<u8>,
    /// Requests of the client that is being served.
    pub(crate) batch: Batch,
    pool: Vec<Vec<u8>>,
    /// Connections with something to send at the end of the tick.
    to_flush: Vec<usize>,
    /// Connections whose output waits for the journal.
    held: Vec<usize>,
    pub(crate) keeper: Arc<Keeper>,
    flusher: Waker,
    /// All workers, this one included.
    pub(crate) team: Arc<Team>,
    pub(crate) index: usize,
    /// Since when the server has been stopping: finish what is there, then close.
    pub(crate) stopping_since: Option<Instant>,
}

thread_local! {
    static LOCAL: RefCell<Option<Local>> = const { RefCell::new(None) };
}

/// Hands the worker of this thread to `work`. Never called from within itself.
pub(crate) fn with_local<T>(work: impl FnOnce(&mut Local) -> T) -> T {
    LOCAL.with_borrow_mut(|local| work(local.as_mut().expect("called on a worker thread")))
}

/// The same, unless the worker of this thread is gone or in use.
pub(crate) fn try_with_local<T>(work: impl FnOnce(&mut Local) -> T) -> Option<T> {
    LOCAL.try_with(|local| local.try_borrow_mut().ok()?.as_mut().map(work)).ok().flatten()
}

impl Local {
    /// An output buffer, empty.
    #[inline]
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.pool.pop().unwrap_or_default()
    }

    /// Gives an output buffer back.
    #[inline]
    pub(crate) fn give_buffer(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() > 0 && buffer.capacity() <= POOL_BUFFER_BYTES_MAX && self.pool.len() < POOL_BUFFERS {
            buffer.clear();
            self.pool.push(buffer);
        }
    }

    /// Sends a connection's output at the end of this tick.
    #[inline]
    pub(crate) fn flush_later(&mut self, io: usize) {
        if !std::mem::replace(&mut self.ios[io].flush_queued, true) {
            if self.to_flush.is_empty() {
                // Woken now, it runs behind every connection that is ready now.
                self.flusher.wake_by_ref();
            }
            self.to_flush.push(io);
        }
    }

    /// Sends what all ready connections have to say: one write to the journal and one pass of writes to sockets for
    /// the whole tick. IMPORTANT: the journal first, so that nobody hears of a change that is not kept.
    fn flush_all(&mut self) {
        let mut queue = std::mem::take(&mut self.to_flush);
        queue.append(&mut self.held);
        let newest = queue.iter().filter_map(|index| self.ios.get(*index)).map(|io| io.depends_on).max().unwrap_or(0);
        let kept = self.keeper.keep(newest);
        for index in queue.drain(..) {
            let Some(io) = self.ios.get_mut(index) else { continue };
            match kept.standing(io.depends_on, io.strict) {
                Standing::Good => io.release(),
                Standing::Waits => {
                    io.held = true;
                    self.held.push(index);
                    continue;
                }
                Standing::Lost => io.give_up(&self.keeper.loss()),
            }
            io.flush_queued = false;
            io.send(&self.worker.books.stats);
            if io.output.is_empty() {
                let buffer = std::mem::take(&mut io.output);
                self.give_buffer(buffer);
            }
        }
        self.to_flush = queue;
        if !self.held.is_empty() {
            self.keeper.await_news(self.index);
            self.engine.persistence.request_sync();
            if self.keeper.has_moved_since(kept) {
                self.flusher.wake_by_ref();
            }
        }
    }

    /// Something has happened to the journal or its snapshots: whoever waits for that looks again.
    fn wake_waiting(&mut self) {
        let mut any = false;
        for (_, io) in self.ios.iter_mut().filter(|(_, io)| io.awaits_event) {
            if io.handle.is_blocked() {
                any = true;
                io.wake();
            } else {
                io.awaits_event = false;
            }
        }
        if any {
            self.keeper.await_news(self.index);
        }
    }
}

/// A connection on its way to a worker.
pub(crate) enum Arrival {
    /// From the listener.
    New { stream: std::net::TcpStream, peer: SocketAddr },
    /// From another worker.
    Moved(Box<Moving>),
}

/// The workers as they know of each other.
pub(crate) struct Team {
    pub(crate) members: Vec<Member>,
    pub(crate) at_work: AtWork,
}

/// What others know of a worker.
pub(crate) struct Member {
    pub(crate) arrivals: mpsc::UnboundedSender<Arrival>,
    pub(crate) connections: Arc<AtomicUsize>,
    /// How much of the last tick it was working, in thousandths.
    pub(crate) busy: AtomicUsize,
}

impl Team {
    /// How many connections there are.
    pub(crate) fn connections(&self) -> usize {
        self.members.iter().map(|member| member.connections.load(Relaxed)).sum()
    }

    /// Sends a connection to the worker at work that has the fewest.
    pub(crate) fn assign(&self, arrival: Arrival) {
        let at_work = self.members.iter().take(self.at_work.get());
        let Some(member) = at_work.min_by_key(|member| member.connections.load(Relaxed)) else { return };
        member.connections.fetch_add(1, Relaxed);
        if member.arrivals.send(arrival).is_err() {
            member.connections.fetch_sub(1, Relaxed);
        }
    }
}

/// What a worker thread is started with.
pub(crate) struct Start {
    pub(crate) engine: Arc<Engine>,
    pub(crate) index: usize,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) team: Arc<Team>,
    pub(crate) arrivals: mpsc::UnboundedReceiver<Arrival>,
    pub(crate) stop: tokio::sync::watch::Receiver<Option<engine::host::Shutdown>>,
}

/// Runs a worker until the server stops.
pub(crate) fn run(start: Start) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().event_interval(128).build()?;
    LOCAL.with_borrow_mut(|local| {
        *local = Some(Local {
            worker: start.engine.worker(start.index),
            engine: start.engine.clone(),
            ios: Slab::new(),
            read_buffer: vec![0; READ_BYTES],
            batch: Batch::default(),
            pool: Vec::new(),
            to_flush: Vec::new(),
            held: Vec::new(),
            keeper: start.keeper.clone(),
            flusher: Waker::noop().clone(),
            team: start.team.clone(),
            index: start.index,
            stopping_since: None,
        });
    });
    runtime.block_on(async {
        tokio::spawn(flusher());
        tokio::spawn(cron(start.engine.clone(), start.index, start.team.clone()));
        serve(start).await;
    });
    runtime.shutdown_background();
    LOCAL.with_borrow_mut(|local| *local = None);
    Ok(())
}

/// Accepts connections until told to stop, then waits for those that are left.
async fn serve(mut start: Start) {
    loop {
        tokio::select! {
            arrival = start.arrivals.recv() => match arrival {
                Some(arrival) => welcome(arrival, &start.team.members[start.index].connections),
                None => break,
            },
            _ = start.stop.changed() => break,
        }
    }
    with_local(|local| {
        local.stopping_since = Some(Instant::now());
        for (_, io) in &local.ios {
            io.wake();
        }
    });
    // Until there is none anywhere: one may be on its way here from the listener or from another worker.
    while start.team.connections() > 0 {
        while let Ok(arrival) = start.arrivals.try_recv() {
            welcome(arrival, &start.team.members[start.index].connections);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn welcome(arrival: Arrival, connections: &Arc<AtomicUsize>) {
    let connection = match arrival {
        Arrival::New { stream, peer } => {
            TcpStream::from_std(stream).map(|stream| Connection::new(stream, peer, connections.clone()))
        }
        Arrival::Moved(moving) => moving.arrive(connections.clone()),
    };
    match connection {
        Ok(connection) => {
            tokio::spawn(connection);
        }
        Err(error) => {
            connections.fetch_sub(1, Relaxed);
            tracing::warn!(%error, "could not take over a connection");
        }
    }
}

/// Runs at the end of each tick in which a connection asked for it.
async fn flusher() {
    poll_fn(|cx| {
        with_local(|local| {
            if !local.flusher.will_wake(cx.waker()) {
                local.flusher = cx.waker().clone();
                local.keeper.register(local.index, cx.waker().clone());
            }
            local.flush_all();
            if local.keeper.take_news(local.index) {
                local.wake_waiting();
            }
        });
        Poll::<()>::Pending
    })
    .await
}

/// Regular work: expiry, balance, idle clients.
async fn cron(engine: Arc<Engine>, index: usize, team: Arc<Team>) {
    let workers = team.members.len();
    let mut balance = Balance::default();
    let mut cores = Cores::new(std::thread::available_parallelism().map_or(1, usize::from));
    let mut worked = (Duration::ZERO, Instant::now());
    let mut ticks = tokio::time::interval(CRON_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut count = 0u64;
    loop {
        ticks.tick().await;
        count += 1;
        while with_local(|local| engine.expire_cycle(&mut local.worker, index, workers, EXPIRY_SLICE_NS)) {
            // Bit by bit: when a million keys have expired, what tells of it is tens of megabytes.
            with_local(|local| local.keeper.keep_all());
            tokio::task::yield_now().await;
        }
        // What has expired waits for no client's reply to be written.
        with_local(|local| local.keeper.keep_all());
        worked = note_busy(&team.members[index], worked);
        if index == 0 {
            if workers > 1 {
                let busy = team.members.iter().map(|member| member.busy.load(Relaxed) as f64 / 1000.0);
                let busy: Vec<f64> = busy.collect();
                let available = cores.available(process::ticks());
                let at_work = match engine.settings.worker_balance() {
                    WorkerBalance::Elastic => balance.decide(&busy, team.at_work.get(), available),
                    WorkerBalance::Spread => workers,
                    WorkerBalance::Gather => 1,
                };
                if at_work != team.at_work.get() {
                    tracing::debug!(at_work, available, "workers");
                    team.at_work.set(at_work);
                }
            }
            engine.sample();
            engine.evict_clients();
        }
        with_local(give_surplus_away);
        if count.is_multiple_of(10) {
            with_local(|local| {
                // What a burst has left in the pool is given back bit by bit.
                local.pool.truncate(local.pool.len() / 2);
                remind_slow_readers(local);
                local.ios.iter_mut().for_each(|(_, io)| io.notice_hang_up());
                close_idle(local, &engine);
            });
        }
    }
}

/// Notes how much of the time since `before` this worker was working.
fn note_busy(member: &Member, before: (Duration, Instant)) -> (Duration, Instant) {
    let (worked, now) = (tokio::runtime::Handle::current().metrics().worker_total_busy_duration(0), Instant::now());
    let share = (worked - before.0).as_secs_f64() / (now - before.1).as_secs_f64().max(1e-6);
    member.busy.store((share * 1000.0) as usize, Relaxed);
    (worked, now)
}

/// Asks as many connections to move as this worker has too many. They go when they have nothing in flight.
fn give_surplus_away(local: &mut Local) {
    let team = &local.team;
    let connections: Vec<usize> = team.members.iter().map(|member| member.connections.load(Relaxed)).collect();
    let surplus = balance::surplus(local.index, &connections, team.at_work.get());
    let mut asked = 0;
    for (_, io) in &mut local.ios {
        // One that waits cannot go.
        let waits = io.paused || io.handle.is_blocked();
        io.leave = !waits && asked < surplus;
        if io.leave {
            asked += 1;
            io.wake();
        }
    }
}

/// Has connections look around that cannot send: the soft limit of output is one of time.
fn remind_slow_readers(local: &Local) {
    for (_, io) in &local.ios {
        if io.handle.output_bytes.load(Relaxed) > 0 {
            io.wake();
        }
    }
}

/// Closes clients that said nothing for longer than `timeout`.
fn close_idle(local: &mut Local, engine: &Engine) {
    let timeout_s = engine.settings.timeout();
    if timeout_s == 0 {
        return;
    }
    let now_ns = engine.clock.monotonic_ns();
    for (_, io) in &local.ios {
        let handle = &io.handle;
        let exempt = io.paused || handle.monitoring.load(Relaxed) || handle.is_blocked() || handle.is_subscriber();
        if !exempt && handle.idle_s(now_ns) > timeout_s {
            handle.kill();
        }
    }
}
