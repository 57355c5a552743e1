//! The thread of TLS handshakes: a connection comes from the listener, agrees on keys with its client, and goes on to a worker. Knows
//! how many handshakes there may be, how long one may take and how much they may keep; refuses to know requests.
//!
//! Signing with an RSA key takes up to a millisecond, and clients that begin handshakes without end cost themselves next to
//! nothing. So handshakes have a thread of their own, with a low priority: it gets what the workers leave over. The tasks of the
//! thread take turns, each until its client has to send more.
//!
//! Rejected: handshakes on the workers, even if only one falls between two polls of the sockets. Each request of another client
//! waited for one.

use super::connection::Moving;
use super::peer::Peer;
use super::socket::TaskWaker;
use super::state::ConnectionState;
use super::stream::Stream;
use super::team::{NewHandshake, Team};
use super::transport::Transport;
use crate::platform::threads;
use anyhow::{Context as _, Result};
use engine::host::Shutdown;
use engine::{ClientHandle, Engine};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;

/// Handshakes take at most this share of `maxclients`: whoever begins them without end leaves the rest to others.
const SHARE_OF_CLIENTS: u64 = 2;
/// When there are too many, one gives its place to a new one if it has waited for its client for so long…
const GIVES_WAY_AFTER: Duration = Duration::from_secs(1);
/// …and is among so many of the oldest.
const EXAMINED_MAX: usize = 16;
/// The most bytes of unfinished messages that all handshakes keep together…
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// …beyond which one that keeps more than this ends. Clients without a long chain of certificates keep less.
const KEPT_BYTES_SMALL: usize = 4 * 1024;
/// Failed handshakes have at most so many lines in the server log…
const FAILURES_LOGGED_MAX: u32 = 10;
/// …in so long.
const FAILURES_PERIOD: Duration = Duration::from_secs(60);
/// How often handshakes are checked that take too long.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Starts the thread.
pub(super) fn start(
    engine: &Arc<Engine>,
    team: &Arc<Team>,
    arrivals: mpsc::UnboundedReceiver<NewHandshake>,
    stop: watch::Receiver<Option<Shutdown>>,
) -> Result<JoinHandle<()>> {
    let (engine, team) = (engine.clone(), team.clone());
    // Here and not on its thread, as those of the workers.
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the thread of TLS handshakes")?;
    let run = move || {
        threads::lower_priority();
        let room =
            Room { engine, team, running: RefCell::default(), kept_bytes: Cell::new(0), failures: Cell::default() };
        let tasks = LocalSet::new();
        runtime.block_on(tasks.run_until(serve(Rc::new(room), arrivals, stop)));
        // Ends those that are left.
        drop(tasks);
    };
    std::thread::Builder::new().name("handshakes".to_owned()).spawn(run).context("cannot start a thread")
}

/// Begins handshakes until the server stops.
async fn serve(
    room: Rc<Room>,
    mut arrivals: mpsc::UnboundedReceiver<NewHandshake>,
    mut stop: watch::Receiver<Option<Shutdown>>,
) {
    let mut checks = tokio::time::interval(CHECK_INTERVAL);
    checks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            new = arrivals.recv() => match new {
                Some(new) => room.begin(new),
                None => break,
            },
            _ = checks.tick() => {
                room.end_long();
                room.end_failures_period();
            }
            _ = stop.changed() => break,
        }
    }
    arrivals.close();
    while arrivals.try_recv().is_ok() {
        room.team.handshakes.count_end();
    }
}

/// All handshakes.
struct Room {
    engine: Arc<Engine>,
    team: Arc<Team>,
    /// By the client's id, so the oldest come first.
    running: RefCell<BTreeMap<u64, Running>>,
    /// The bytes that they keep together.
    kept_bytes: Cell<usize>,
    failures: Cell<Failures>,
}

/// The failed handshakes of a period.
#[derive(Clone, Copy, Default)]
struct Failures {
    begun_ns: u64,
    logged: u32,
    suppressed: u64,
}

/// A handshake as the others see it.
struct Running {
    handle: Arc<ClientHandle>,
    progress: Arc<Progress>,
}

impl Room {
    fn begin(self: &Rc<Room>, new: NewHandshake) {
        if !self.has_place() {
            self.engine.clients.count_rejected();
            return self.team.handshakes.count_end();
        }
        match Stream::with_tls(new.stream, &new.context) {
            Ok(stream) => {
                let progress = Arc::new(Progress::default());
                let peer = Peer::register(&self.engine, &stream, new.peer, progress.task.clone());
                let running = Running { handle: peer.client.handle.clone(), progress: progress.clone() };
                self.running.borrow_mut().insert(peer.client.id(), running);
                let room = self.clone();
                let waker = progress.clone().into();
                tokio::task::spawn_local(Handshake {
                    room,
                    connection: Some((stream, peer)),
                    progress,
                    waker,
                    kept: 0,
                });
            }
            Err(error) => {
                tracing::warn!(%error, "could not begin a TLS handshake");
                self.team.handshakes.count_end();
            }
        }
    }

    /// True when one more may begin. If there are too many, one that waits for its client gives way.
    fn has_place(&self) -> bool {
        let count_max = (self.engine.settings.maxclients() / SHARE_OF_CLIENTS).max(1) as usize;
        let mut running = self.running.borrow_mut();
        if running.len() < count_max {
            return true;
        }
        let now_ns = self.engine.clock.monotonic_ns();
        let mut oldest = running.iter().take(EXAMINED_MAX);
        let Some(id) = oldest.find(|(_, one)| one.progress.has_waited(now_ns)).map(|(id, _)| *id) else { return false };
        if let Some(one) = running.remove(&id) {
            tracing::debug!(client = id, "closed: there are too many TLS handshakes");
            one.handle.kill();
        }
        true
    }

    /// Logs why a handshake has failed, unless the period has its lines already.
    fn report_failure(&self, address: &str, error: &std::io::Error) {
        self.end_failures_period();
        let mut failures = self.failures.get();
        if failures.logged == FAILURES_LOGGED_MAX {
            failures.suppressed += 1;
        } else {
            if failures.logged == 0 {
                failures.begun_ns = self.engine.clock.monotonic_ns();
            }
            failures.logged += 1;
            tracing::warn!(address, reason = failure_reason(error), "a TLS handshake has failed");
        }
        self.failures.set(failures);
    }

    /// Says how many failures were not logged, once their period is over.
    fn end_failures_period(&self) {
        let Failures { begun_ns, logged, suppressed } = self.failures.get();
        let is_over = self.engine.clock.monotonic_ns().saturating_sub(begun_ns) >= FAILURES_PERIOD.as_nanos() as u64;
        if logged == 0 || !is_over {
            return;
        }
        self.failures.set(Failures::default());
        if suppressed > 0 {
            tracing::warn!(suppressed, "more TLS handshakes have failed, which were not logged");
        }
    }

    /// Ends handshakes that take too long, whatever their clients send.
    fn end_long(&self) {
        let timeout_s = self.engine.settings.tls_handshake_timeout();
        let now_ns = self.engine.clock.monotonic_ns();
        for (id, one) in self.running.borrow().iter() {
            // Only a request makes a client active, so it has been idle since it came.
            if one.handle.idle_s(now_ns) >= timeout_s {
                tracing::debug!(client = id, "closed: its TLS handshake has taken too long");
                one.handle.kill();
            }
        }
    }
}

/// Says in plain words why a handshake has failed.
fn failure_reason(error: &std::io::Error) -> String {
    let of_session = error.get_ref().and_then(|inner| inner.downcast_ref::<tls::SessionError>());
    match of_session {
        Some(error) => error.handshake_failure(),
        None if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the client has closed the connection before the handshake was complete".to_owned()
        }
        None => error.to_string(),
    }
}

/// Whether a handshake waits for its client.
#[derive(Default)]
struct Progress {
    /// Since when, on the monotonic clock; 0 when there is something to do.
    waits_since_ns: AtomicU64,
    task: Arc<TaskWaker>,
}

impl Progress {
    fn has_waited(&self, now_ns: u64) -> bool {
        let since_ns = self.waits_since_ns.load(Relaxed);
        since_ns > 0 && now_ns.saturating_sub(since_ns) >= GIVES_WAY_AFTER.as_nanos() as u64
    }
}

impl Wake for Progress {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.waits_since_ns.store(0, Relaxed);
        self.task.wake();
    }
}

/// One handshake, as a task.
struct Handshake {
    room: Rc<Room>,
    /// `None` once it has gone on to a worker.
    connection: Option<(Stream, Peer<Stream>)>,
    progress: Arc<Progress>,
    /// Wakes the task by way of `progress`.
    waker: Waker,
    /// The bytes that it keeps, as far as they are in the room's sum.
    kept: usize,
}

impl Handshake {
    fn note_kept(&mut self, kept: usize) {
        let sum = &self.room.kept_bytes;
        sum.set(sum.get() - self.kept + kept);
        self.kept = kept;
    }

    /// Sends the connection on to a worker.
    fn finish(&mut self, users: &[String]) {
        let Some((stream, mut peer)) = self.connection.take() else { return };
        let engine = &self.room.engine;
        self.room.running.borrow_mut().remove(&peer.client.id());
        let mut refusal = None;
        match engine::authenticate_by_certificate(engine, &mut peer.client, users) {
            Ok(None) => {}
            Ok(Some(user)) => tracing::debug!(client = peer.client.id(), user, "authenticated by its certificate"),
            Err(error) => {
                engine.clients.count_rejected();
                refusal = Some(error.to_string());
            }
        }
        match stream.detach() {
            Ok(stream) => {
                let moving = Moving::new(stream, peer, self.progress.task.clone(), refusal);
                self.room.team.assign(moving.into_arrival());
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be moved");
                peer.unregister(engine, &ConnectionState::Running);
            }
        }
    }
}

impl Future for Handshake {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let Some((stream, peer)) = &mut this.connection else { return Poll::Ready(()) };
        this.progress.task.register(cx.waker());
        if peer.client.handle.is_killed() {
            return Poll::Ready(());
        }
        let polled = stream.poll_handshake(&mut Context::from_waker(&this.waker));
        let (id, kept) = (peer.client.id(), stream.buffered_bytes());
        this.note_kept(kept);
        match polled {
            Poll::Ready(Ok(users)) => this.finish(&users),
            Poll::Ready(Err(error)) => {
                let address = this.connection.as_ref().map_or("", |(_, peer)| &peer.client.handle.address);
                this.room.report_failure(address, &error);
            }
            Poll::Pending if this.room.kept_bytes.get() > KEPT_BYTES_MAX && kept > KEPT_BYTES_SMALL => {
                tracing::debug!(client = id, "closed: TLS handshakes keep too much");
            }
            Poll::Pending => {
                this.progress.waits_since_ns.store(this.room.engine.clock.monotonic_ns(), Relaxed);
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.note_kept(0);
        if let Some((mut stream, mut peer)) = self.connection.take() {
            self.room.running.borrow_mut().remove(&peer.client.id());
            stream.close();
            peer.unregister(&self.room.engine, &ConnectionState::Running);
        }
        self.room.team.handshakes.count_end();
    }
}
