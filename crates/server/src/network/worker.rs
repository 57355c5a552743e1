//! One worker thread: a single-threaded runtime and the connections that live on it. Knows the tick: all ready clients
//! execute, then all replies are sent. Refuses to know what a command does.

use super::balance::{self, AtWork, Balance, Cores};
use super::connection::{Connection, ConnectionTask};
use super::handshakes;
use super::local::{self, Local, with_local};
use super::state::Exit;
use super::stream::Stream;
use super::team::{Arrival, Handshakes, Member, Team};
use super::transport::Transport;
use super::turns::grant_turns;
use crate::durability::Keeper;
use crate::platform::usage;
use anyhow::{Context, Result};
use engine::Engine;
use engine::host::Shutdown;
use engine::settings::WorkerBalance;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{self, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// How often the worker does its periodic work.
const CRON_INTERVAL: Duration = Duration::from_millis(100);
/// The longest slice of expiry work before clients run. As long as those of commands: a request may have to wait for
/// one of each, and for both again before its reply is sent.
const EXPIRY_SLICE_NS: u64 = 250_000;

/// The delay before another attempt to serve waiting clients.
const SERVE_AGAIN: Duration = Duration::from_millis(1);
/// Longest sleep until the clock is read again.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// Starts the worker threads, and that of TLS handshakes.
pub(crate) fn start_workers(
    engine: &Arc<Engine>,
    keeper: &Arc<Keeper>,
    count: usize,
    stopped: &watch::Receiver<Option<Shutdown>>,
    stack_bytes: usize,
) -> Result<(Arc<Team>, Vec<JoinHandle<()>>)> {
    let (mut members, mut receivers) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (arrivals, receiver) = mpsc::unbounded_channel();
        members.push(Member { arrivals, connections: Arc::default(), busy: AtomicUsize::new(0) });
        receivers.push(receiver);
    }
    let (handshakes, handshake_arrivals) = Handshakes::new();
    let team = Arc::new(Team { members, at_work: AtWork::new(), handshakes });
    let mut threads = vec![handshakes::start(engine, &team, handshake_arrivals, stopped.clone())?];
    for (index, arrivals) in receivers.into_iter().enumerate() {
        let (engine, keeper, team) = (engine.clone(), keeper.clone(), team.clone());
        let start = Start { engine, index, keeper, team, arrivals, stop: stopped.clone() };
        // Here and not on its thread: it takes descriptors, and a running server must have all its workers.
        let runtime = runtime::Builder::new_current_thread().enable_all().event_interval(128).build();
        let runtime = runtime.context("cannot start a worker")?;
        let thread = std::thread::Builder::new().name(format!("worker-{index}")).stack_size(stack_bytes);
        threads.push(thread.spawn(move || run(runtime, start)).context("cannot start a worker thread")?);
    }
    Ok((team, threads))
}

/// The parameters of a worker thread.
struct Start {
    engine: Arc<Engine>,
    index: usize,
    keeper: Arc<Keeper>,
    team: Arc<Team>,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    stop: watch::Receiver<Option<Shutdown>>,
}

/// Runs a worker until the server stops.
fn run(runtime: Runtime, start: Start) {
    local::begin(&start.engine, &start.keeper, &start.team, start.index);
    runtime.block_on(async {
        tokio::spawn(flusher());
        tokio::spawn(grant_turns());
        tokio::spawn(cron(start.engine.clone(), start.index, start.team.clone()));
        if start.index == 0 {
            tokio::spawn(serve_due_records(start.engine.clone()));
        }
        serve(start).await;
    });
    runtime.shutdown_background();
    local::end();
}

/// Accepts connections until told to stop, then waits for the remaining ones.
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
    with_local(|local| local.begin_stopping());
    // Until no worker has any: one may be on its way here from the listener or from another worker.
    while start.team.connections() > 0 {
        while let Ok(arrival) = start.arrivals.try_recv() {
            welcome(arrival, &start.team.members[start.index].connections);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn welcome(arrival: Arrival, connections: &Arc<AtomicUsize>) {
    let taken = match arrival {
        Arrival::New { stream, peer } => Stream::plain(stream).map(|stream| {
            tokio::spawn(ConnectionTask::new(Connection::new(stream, peer), connections.clone()));
        }),
        Arrival::Moved(take_over) => take_over(connections.clone()),
    };
    if let Err(error) = taken {
        connections.fetch_sub(1, Relaxed);
        tracing::warn!(%error, "could not take over a connection");
    }
}

/// Flushes output at the end of each tick in which a connection requested it.
pub(super) async fn flusher() {
    poll_fn(|cx| {
        with_local(|local| local.end_tick(cx.waker()));
        Poll::<()>::Pending
    })
    .await
}

/// Does periodic work: expiry, balance, idle clients.
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
        while with_local(|local| engine::expire_cycle(&engine, &mut local.worker, index, workers, EXPIRY_SLICE_NS)) {
            // In steps: when a million keys have expired, their deletions are tens of megabytes of journal.
            with_local(|local| local.keeper.write_all());
            tokio::task::yield_now().await;
        }
        while with_local(|local| engine::tidy_lua(&engine, &mut local.worker)) {
            tokio::task::yield_now().await;
        }
        // Deletions of expired keys are written even if no reply waits for them.
        with_local(|local| local.keeper.write_all());
        worked = note_busy(&team.members[index], worked);
        if index == 0 {
            if workers > 1 {
                let busy = team.members.iter().map(|member| member.busy.load(Relaxed) as f64 / 1000.0);
                let busy: Vec<f64> = busy.collect();
                let available = cores.available(usage::ticks());
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
            engine::tick(&engine);
            engine::evict_clients(&engine, 0);
            if count.is_multiple_of(10) {
                engine::wake_idle_transactions(&engine);
            }
        }
        with_local(give_surplus_away);
        if count.is_multiple_of(10) {
            with_local(check_connections);
        }
    }
}

/// Serves clients that wait for a record when it becomes due.
async fn serve_due_records(engine: Arc<Engine>) {
    let mut sleep = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
    loop {
        // Sleep until a record is due; start over when another is due earlier.
        poll_fn(|cx| {
            let Some(due_ms) = engine::next_due_record(&engine, cx.waker()) else { return Poll::Pending };
            let Some(left) = time_until(due_ms, engine.clock.unix_us()) else { return Poll::Ready(()) };
            // If the clock is set meanwhile, the periodic work notices it.
            sleep.as_mut().reset(Instant::now() + left);
            sleep.as_mut().poll(cx)
        })
        .await;
        let is_served = with_local(|local| {
            engine.begin(&mut local.worker);
            let is_served = engine::serve_due_records(&engine, &mut local.worker);
            // Replies that other workers send may wait for these changes.
            local.keeper.write_all();
            is_served
        });
        match is_served {
            // Other clients go first.
            true => tokio::task::yield_now().await,
            // Another thread is serving, or a long script holds the locks.
            false => tokio::time::sleep(SERVE_AGAIN).await,
        }
    }
}

/// How long to sleep until then; `None` when that time has come.
fn time_until(due_ms: u64, now_us: u64) -> Option<Duration> {
    let left_us = due_ms.saturating_mul(1000).saturating_sub(now_us);
    (left_us > 0).then(|| Duration::from_micros(left_us).min(SLEEP_MAX))
}

/// Records how much of the time since `before` this worker was working.
fn note_busy(member: &Member, before: (Duration, Instant)) -> (Duration, Instant) {
    let (worked, now) = (runtime::Handle::current().metrics().worker_total_busy_duration(0), Instant::now());
    let share = (worked - before.0).as_secs_f64() / (now - before.1).as_secs_f64().max(1e-6);
    member.busy.store((share * 1000.0) as usize, Relaxed);
    (worked, now)
}

/// Marks surplus connections to move to other workers. They move when they have nothing in flight.
pub(super) fn give_surplus_away<T: Transport>(local: &mut Local<T>) {
    let team = &local.team;
    let connections: Vec<usize> = team.members.iter().map(|member| member.connections.load(Relaxed)).collect();
    let surplus = balance::surplus(local.index, &connections, team.at_work.get());
    let mut asked = 0;
    for (_, socket) in &mut local.sockets {
        if socket.exit > Exit::Move {
            continue;
        }
        // A waiting connection cannot move.
        let moves = asked < surplus && !socket.is_waiting();
        socket.exit = if moves { Exit::Move } else { Exit::Stay };
        if moves {
            asked += 1;
            socket.wake();
        }
    }
}

/// Checks all connections once a second.
pub(super) fn check_connections<T: Transport>(local: &mut Local<T>) {
    // Buffers that a burst has left in the pool are freed gradually.
    local.pool.truncate(local.pool.len() / 2);
    remind_slow_readers(local);
    local.sockets.iter_mut().for_each(|(_, socket)| socket.notice_hang_up());
    close_idle(local);
}

/// Wakes connections that cannot send: the soft limit of output depends on time.
fn remind_slow_readers<T: Transport>(local: &Local<T>) {
    for (_, socket) in &local.sockets {
        if socket.handle.output_bytes.load(Relaxed) > 0 {
            socket.wake();
        }
    }
}

/// Closes clients that have sent nothing for longer than `timeout`.
fn close_idle<T: Transport>(local: &Local<T>) {
    let engine = &local.engine;
    let timeout_s = engine.settings.timeout();
    if timeout_s == 0 {
        return;
    }
    let now_ns = engine.clock.monotonic_ns();
    for (_, socket) in &local.sockets {
        let handle = &socket.handle;
        let exempt = socket.is_waiting() || handle.monitoring.load(Relaxed) || handle.is_subscriber();
        if !exempt && handle.idle_s(now_ns) > timeout_s {
            handle.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sleep of zero would never end: it is restarted each time it is polled.
    #[test]
    fn a_past_time_is_not_slept_for() {
        assert_eq!(time_until(5, 4_000), Some(Duration::from_millis(1)));
        assert_eq!(time_until(5, 5_000), None);
        assert_eq!(time_until(0, 5_000), None);
    }

    #[test]
    fn a_score_that_is_not_a_time_is_far_away() {
        assert_eq!(time_until(u64::MAX, 4_000), Some(SLEEP_MAX));
        assert_eq!(time_until(u64::MAX / 1000 + 1, 4_000), Some(SLEEP_MAX));
    }
}
