//! Metrics of commands: counters, latency histograms, slow log, MONITOR. Refuses to know how a command was run.

use super::engine::Engine;
use super::worker::Worker;
use crate::client::Client;
use crate::command::{CommandRow, Flags, registry};
use crate::settings::ClientClass;
use resp::Request;

/// Records how long a finished command took, for INFO, SLOWLOG, LATENCY, MONITOR and HOTKEYS.
#[inline]
pub fn record_command(
    engine: &Engine,
    worker: &mut Worker,
    client: &mut Client,
    row: &'static CommandRow,
    request: Request<'_>,
    reply_bytes: impl FnOnce() -> usize,
) {
    let ended_ns = engine.clock.monotonic_ns();
    let took_ns = ended_ns.saturating_sub(worker.last_ns);
    worker.last_ns = ended_ns;
    client.tally.operations += 1;
    client.tally.busy_ns += took_ns;
    if !worker.batch.is_atomic {
        // After a slow command, the next one in the pipeline must see the current time. Commands of a transaction
        // share one instant.
        worker.catch_up();
    }
    // A command that waits counts when its wait is over, as in Redis 7.2.
    if !client.wait_phase.is_queued() {
        count_call(engine, worker, row, took_ns);
    }
    record_slow(engine, worker, client, row, request, took_ns);
    if engine.monitors.is_watched() {
        show(engine, worker, client, row, request, (took_ns, reply_bytes()));
    }
}

/// Shows a finished command to those that look at each: clients in MONITOR, and HOTKEYS.
#[cold]
fn show(
    engine: &Engine,
    worker: &Worker,
    client: &Client,
    row: &CommandRow,
    request: Request<'_>,
    (took_ns, reply_bytes): (u64, usize),
) {
    // A command that waits counts when it is served; what a script calls, and a command within another, once.
    if !client.wait_phase.is_queued() && !worker.in_script {
        count_keys(engine, worker, client.db, row, request, (took_ns, reply_bytes));
    }
    if engine.monitors.any() && !row.command.flags.has(Flags::SKIP_MONITOR.union(Flags::ADMIN)) {
        feed_monitors(engine, worker, client, request);
    }
}

/// Counts the keys of a finished command, while HOTKEYS counts.
#[inline]
pub fn count_keys(
    engine: &Engine,
    worker: &Worker,
    db: usize,
    row: &CommandRow,
    request: Request<'_>,
    (took_ns, reply_bytes): (u64, usize),
) {
    let keys = &row.command.keys;
    // SESSION.CALL: the command that it calls has been counted.
    if !engine.monitors.counts_keys() || !keys.has_any() || keys.are_channels() || row.command.calls_behind.is_some() {
        return;
    }
    if let Some(counts) = &mut *worker.metrics.hot_keys.lock() {
        let found = row.found_keys(request);
        let positions = || found.ranges.iter().flat_map(|range| range.positions());
        let bytes = (request.encoded_len() + reply_bytes) as u64;
        counts.add(db, positions().map(|at| request.arg(at)), positions().count(), took_ns, bytes);
    }
}

/// Counts a call that is over.
#[inline]
pub fn count_call(engine: &Engine, worker: &Worker, row: &CommandRow, took_ns: u64) {
    let metrics = &*worker.metrics;
    let counters = &metrics.stats.commands[row.index];
    counters.calls.add(1);
    counters.ns.add(took_ns);
    if engine.settings.latency_tracking() {
        metrics.histograms.add(row.index, took_ns);
    }
}

#[inline]
pub fn record_slow(
    engine: &Engine,
    worker: &Worker,
    client: &Client,
    row: &CommandRow,
    request: Request<'_>,
    took_ns: u64,
) {
    let took_us = took_ns / 1000;
    let slower_than_us = engine.settings.slowlog_log_slower_than();
    // A command that waits is logged when it is served, as in Redis.
    if slower_than_us >= 0
        && took_us >= slower_than_us as u64
        && !row.command.flags.has(Flags::SKIP_SLOWLOG)
        && !client.wait_phase.is_queued()
    {
        log_slow(engine, worker, client, request, took_us);
    }
    let threshold_ms = engine.settings.latency_monitor_threshold();
    if threshold_ms > 0 && took_us >= threshold_ms.saturating_mul(1000) {
        let event = if row.command.flags.has(Flags::FAST) { "fast-command" } else { "command" };
        engine.latency.add(event, worker.now_ms / 1000, took_us / 1000);
    }
}

#[cold]
pub fn feed_monitors(engine: &Engine, worker: &Worker, client: &Client, request: Request<'_>) {
    let limit = engine.settings.client_output_buffer_limit(ClientClass::Normal).hard_bytes;
    let shown = without_secrets(worker, request);
    let origin = if worker.in_script { "lua" } else { &*client.handle.address };
    engine.monitors.feed(engine.clock.unix_us(), client.db, origin, shown, limit);
}

#[cold]
fn log_slow(engine: &Engine, worker: &Worker, client: &Client, request: Request<'_>, took_us: u64) {
    let name = client.handle.name();
    let len_max = engine.settings.slowlog_max_len() as usize;
    let shown = without_secrets(worker, request);
    engine.slowlog.add(shown, worker.now_ms / 1000, took_us, &client.handle.address, &name, len_max);
}

/// The arguments of a request without secrets, for SLOWLOG and MONITOR.
fn without_secrets<'a>(worker: &'a Worker, request: Request<'a>) -> impl ExactSizeIterator<Item = &'a [u8]> {
    const REDACTED: &[u8] = b"(redacted)";
    let args = request.iter().enumerate();
    args.map(|(at, arg)| if worker.secrets.contains(&at) { REDACTED } else { arg })
}

/// Counts a request that was refused before its command ran, such as one with the wrong number of arguments.
#[cold]
pub fn count_rejected(worker: &Worker, request: Request<'_>) {
    let Some(command) = registry().find(request.arg(0)) else { return };
    let row = match command.subcommands.is_empty() || request.len() == 1 {
        true => Some(command),
        false => command.subcommand(request.arg(1)),
    };
    if let Some(row) = row {
        worker.metrics.stats.commands[row.index].rejected.add(1);
    }
}
