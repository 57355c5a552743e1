//! Executes the requests that have arrived on a connection, and does what each asks of the connection. Refuses to know what
//! a request does to the data.

use super::limits::{OUTPUT_PIECE, OUTPUT_UNLIMITED, is_unauthenticated, output_max, request_limits};
use super::local::Local;
use super::peer::{Peer, State};
use super::socket::Socket;
use engine::{Ahead, Engine, Event, Flow};
use keyspace::locked::BATCH_MAX;
use resp::{Reply, Scan};
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::Sleep;

/// What to do after a request.
enum NextStep {
    /// Execute the next one.
    Next,
    /// Yield; the request is done.
    Stop,
    /// Yield, and then execute the same request again.
    Again,
    /// End the connection and drop the rest of the input.
    End,
}

impl Peer {
    /// Executes the complete requests at the start of `input` and returns how many bytes they took.
    pub(super) fn execute(&mut self, local: &mut Local, input: &[u8]) -> usize {
        if local.sockets[self.socket].output.capacity() == 0 {
            local.sockets[self.socket].output = local.take_buffer();
        }
        let engine = &local.engine;
        engine.begin(&mut local.worker);
        let socket = &mut local.sockets[self.socket];
        let mut limits = request_limits(&engine.settings);
        let mut at = 0;
        self.wanted = 0;
        socket.handle.note_input(input.len(), self.input.capacity());
        self.client.output_bytes_max = match output_max(&self.client, &engine.settings) as usize {
            0 => usize::MAX,
            max => max.max(OUTPUT_UNLIMITED).saturating_add(socket.sent),
        };
        let mut batch = std::mem::take(&mut local.batch);
        let mut step = NextStep::Next;
        while at < input.len() && matches!(step, NextStep::Next) {
            let rest = &input[at..];
            limits.unauthenticated = is_unauthenticated(&self.client, &engine.settings);
            // Before AUTH requests are scanned one by one: the limits change with it.
            let count_max = if limits.unauthenticated { 0 } else { BATCH_MAX };
            self.scanner.scan_batch(rest, &limits, count_max, &mut batch);
            if batch.is_empty() {
                let (flow, len) = match self.scanner.scan(rest, &limits) {
                    Scan::Complete(request, len) => {
                        (engine.execute(&mut local.worker, &mut self.client, request, &mut socket.output), len)
                    }
                    Scan::Empty(len) => (Flow::Continue, len),
                    Scan::Incomplete(needed) => {
                        self.wanted = needed - 1;
                        break;
                    }
                    Scan::Broken(error) => {
                        tracing::debug!(client = self.client.id(), %error, "closed");
                        Reply::new(&mut socket.output, self.client.protocol).error(&format!("ERR {error}"));
                        (Flow::Close, rest.len())
                    }
                };
                step = self.after_request(flow, socket, engine, local.worker.now_ms);
                at += if matches!(step, NextStep::Again) { 0 } else { len };
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
                    engine.execute_ahead(&mut local.worker, &mut self.client, request, &mut socket.output, &mut ahead);
                step = self.after_request(flow, socket, engine, local.worker.now_ms);
                if !matches!(step, NextStep::Again) {
                    done = batch.bytes_through(index);
                }
                if !matches!(step, NextStep::Next) {
                    // The requests behind it are scanned again.
                    self.scanner.restart();
                    break;
                }
            }
            at += done;
        }
        local.batch = batch;
        let socket = &mut local.sockets[self.socket];
        socket.depends_on = self.client.depends_on;
        socket.last_batch = self.client.last_batch;
        socket.strict = self.client.waits_for_disk(&local.engine.settings);
        if socket.awaits_event {
            // Before the task checks whether it has happened already: see `after_request`.
            local.keeper.wake_on_move(local.index);
        }
        if matches!(step, NextStep::Again) {
            // What a slice has changed is written before the next one: all slices together may be tens of megabytes,
            // which the first reply after them would wait for.
            local.keeper.write_all();
        }
        if matches!(step, NextStep::End) {
            at = input.len();
        }
        if local.sockets[self.socket].broken {
            return at;
        }
        let socket = &mut local.sockets[self.socket];
        self.scanner.shrink();
        if socket.pending() > 0 && socket.handle.output_bytes.load(Relaxed) == 0 {
            local.flush_later(self.socket);
        } else if socket.pending() == 0 {
            let buffer = std::mem::take(&mut socket.output);
            local.give_buffer(buffer);
        } else {
            socket.handle.output_bytes.store(socket.pending(), Relaxed);
        }
        at
    }

    /// Does what a request asks of the connection, and returns the next step.
    #[inline]
    fn after_request(&mut self, flow: Flow, socket: &mut Socket, engine: &Engine, now_ms: u64) -> NextStep {
        match flow {
            Flow::Continue => {}
            Flow::Close => {
                self.state = State::Closing;
                return NextStep::End;
            }
            Flow::Block(blocked) => {
                socket.awaits_event = !matches!(blocked.event, Event::Never(_) | Event::Background(_) | Event::Value);
                let until = blocked.until_ms.map(|until_ms| sleep_until(until_ms, now_ms));
                self.state = State::Blocked(blocked, until);
                // The timer is not polled yet; a pass through `poll` does that.
                socket.task.wake();
                return NextStep::Stop;
            }
            Flow::Again => {
                // Ready once the runtime has polled for I/O: waking the task would run it again before that.
                self.state = State::Yielding(Box::pin(tokio::task::yield_now()));
                socket.task.wake();
                return NextStep::Again;
            }
            Flow::Paused(until_ms) => {
                socket.paused = true;
                self.state = State::Paused(sleep_until(until_ms, engine.clock.monotonic_ms()));
                socket.task.wake();
                return NextStep::Again;
            }
        }
        if socket.pending() <= OUTPUT_UNLIMITED {
            return NextStep::Next;
        }
        let output_max = output_max(&self.client, &engine.settings);
        if output_max > 0 && socket.pending() as u64 > output_max {
            engine.clients.count_output_overflow();
            tracing::warn!(client = self.client.id(), "closed: its replies exceed client-output-buffer-limit");
            socket.broken = true;
            socket.task.wake();
            return NextStep::End;
        }
        if socket.pending() > OUTPUT_PIECE { NextStep::Stop } else { NextStep::Next }
    }
}

fn sleep_until(until_ms: u64, now_ms: u64) -> Pin<Box<Sleep>> {
    Box::pin(tokio::time::sleep(Duration::from_millis(until_ms.saturating_sub(now_ms))))
}
