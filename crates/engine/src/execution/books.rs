//! Bookkeeping after a command: counters, latency histograms, slow log, MONITOR. Refuses to know how it was run.

use super::engine::Engine;
use super::worker::Worker;
use crate::execution::client::Client;
use crate::execution::command::{CommandRow, Flags};
use crate::settings::ClientClass;
use resp::Request;

impl Engine {
    /// Records how long a finished command took, for INFO, SLOWLOG, LATENCY and MONITOR.
    #[inline]
    pub(crate) fn keep_books(
        &self,
        worker: &mut Worker,
        client: &Client,
        row: &'static CommandRow,
        request: Request<'_>,
    ) {
        let ended_ns = self.clock.monotonic_ns();
        let took_ns = ended_ns.saturating_sub(worker.last_ns);
        worker.last_ns = ended_ns;
        if !worker.batch.is_atomic {
            // After a slow command, the next one in the pipeline must see the current time. Commands of a transaction
            // share one instant.
            worker.catch_up();
        }
        let books = &*worker.books;
        let counters = &books.stats.commands[row.index];
        counters.calls.add(1);
        counters.ns.add(took_ns);
        if self.settings.latency_tracking() {
            books.histograms.add(row.index, took_ns);
        }
        self.note_slow(worker, client, row, request, took_ns);
        if self.monitors.any() && !row.command.flags.has(Flags::SKIP_MONITOR.union(Flags::ADMIN)) {
            self.feed_monitors(worker, client, request);
        }
    }

    #[inline]
    pub(crate) fn note_slow(
        &self,
        worker: &Worker,
        client: &Client,
        row: &CommandRow,
        request: Request<'_>,
        took_ns: u64,
    ) {
        let took_us = took_ns / 1000;
        let slower_than_us = self.settings.slowlog_log_slower_than();
        // A command that waits is logged when it is served, as in Redis.
        if slower_than_us >= 0
            && took_us >= slower_than_us as u64
            && !row.command.flags.has(Flags::SKIP_SLOWLOG)
            && !client.wait_phase.is_queued()
        {
            self.log_slow(worker, client, request, took_us);
        }
        let threshold_ms = self.settings.latency_monitor_threshold();
        if threshold_ms > 0 && took_us >= threshold_ms.saturating_mul(1000) {
            let event = if row.command.flags.has(Flags::FAST) { "fast-command" } else { "command" };
            self.latency.add(event, worker.now_ms / 1000, took_us / 1000);
        }
    }

    #[cold]
    pub(crate) fn feed_monitors(&self, worker: &Worker, client: &Client, request: Request<'_>) {
        let limit = self.settings.client_output_buffer_limit(ClientClass::Normal).hard_bytes;
        let shown = without_secrets(worker, request);
        let origin = if worker.in_script { "lua" } else { &*client.handle.address };
        self.monitors.feed(self.clock.unix_us(), client.db, origin, shown, limit);
    }

    #[cold]
    fn log_slow(&self, worker: &Worker, client: &Client, request: Request<'_>, took_us: u64) {
        let name = client.handle.name();
        let len_max = self.settings.slowlog_max_len() as usize;
        let shown = without_secrets(worker, request);
        self.slowlog.add(shown, worker.now_ms / 1000, took_us, &client.handle.address, &name, len_max);
    }
}

/// The arguments of a request for others to see.
fn without_secrets<'a>(worker: &'a Worker, request: Request<'a>) -> impl ExactSizeIterator<Item = &'a [u8]> {
    const REDACTED: &[u8] = b"(redacted)";
    let args = request.iter().enumerate();
    args.map(|(at, arg)| if worker.secrets.contains(&at) { REDACTED } else { arg })
}
