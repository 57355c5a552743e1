//! Executes the requests that have arrived on a connection, and does what each asks of the connection. Refuses to know
//! what a request does to the data.

use super::limits::{OUTPUT_PIECE, OUTPUT_UNLIMITED, is_unauthenticated, output_max, request_limits};
use super::local::Local;
use super::peer::Peer;
use super::socket::Socket;
use super::state::{ConnectionState, Exit};
use super::transport::Transport;
use super::turns::{self, TURN_NS};
use engine::{Ahead, Engine, Flow};
use keyspace::locked::AHEAD_MAX;
use resp::{Reply, Scan};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

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

impl<T: Transport> Peer<T> {
    /// Executes the complete requests at the start of `input` and returns how many bytes they took.
    pub(super) fn execute(&mut self, local: &mut Local<T>, input: &[u8]) -> usize {
        if local.sockets[self.socket].output.capacity() == 0 {
            local.sockets[self.socket].output = local.take_buffer();
        }
        let engine = &local.engine;
        engine.begin(&mut local.worker);
        let began_ns = local.worker.last_ns();
        let turn_ends_ns = began_ns + TURN_NS.saturating_sub(self.turn_ns);
        let socket = &mut local.sockets[self.socket];
        let pending = socket.pending();
        // The output of this turn: a client that does not read may have more pending already.
        let output_max_in_turn = pending + OUTPUT_PIECE;
        let mut limits = request_limits(&engine.settings);
        let mut at = 0;
        self.wanted = 0;
        socket.handle.note_input(input.len(), self.input.capacity());
        self.client.output_bytes_max = match output_max(&self.client, engine) as usize {
            0 => usize::MAX,
            max => socket.output_end_max(max),
        };
        self.client.follow_limits(&engine.acl);
        let mut pipeline = std::mem::take(&mut local.pipeline);
        let mut step = NextStep::Next;
        let (mut seen_ns, mut reached_ns) = (began_ns, began_ns);
        // How much of the output is counted.
        let mut counted = pending;
        while at < input.len() && matches!(step, NextStep::Next) {
            if at > 0 {
                // Most requests read the clock when they end, but not all do.
                let last_ns = local.worker.last_ns();
                reached_ns = if last_ns == seen_ns { engine.clock.monotonic_ns() } else { last_ns };
                if reached_ns >= turn_ends_ns {
                    break;
                }
                seen_ns = last_ns;
            }
            let rest = &input[at..];
            limits.unauthenticated = is_unauthenticated(&self.client, &engine.acl);
            // Before AUTH, requests are scanned one by one: AUTH changes the limits.
            let count_max = if limits.unauthenticated { 0 } else { AHEAD_MAX };
            self.scanner.scan_pipeline(rest, &limits, count_max, &mut pipeline);
            if pipeline.is_empty() {
                let (flow, len) = match self.scanner.scan(rest, &limits) {
                    Scan::Complete(request, len) => {
                        (engine::execute(engine, &mut local.worker, &mut self.client, request, &mut socket.output), len)
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
                step = self.after_request(flow, socket, engine, local.worker.now_ms, output_max_in_turn);
                if self.client.has_rates {
                    step = self.stop_if_owed(step, socket, &mut counted, engine, local.index);
                }
                at += if matches!(step, NextStep::Again) { 0 } else { len };
                continue;
            }
            let mut ahead = match pipeline.len() {
                1 => Ahead::default(),
                _ => engine::look_ahead(engine, &self.client, pipeline.requests(rest)),
            };
            let mut done = 0;
            for index in 0..pipeline.len() {
                let request = pipeline.request(rest, index);
                let flow = engine::execute_ahead(
                    engine,
                    &mut local.worker,
                    &mut self.client,
                    request,
                    &mut socket.output,
                    &mut ahead,
                );
                step = self.after_request(flow, socket, engine, local.worker.now_ms, output_max_in_turn);
                if self.client.has_rates {
                    step = self.stop_if_owed(step, socket, &mut counted, engine, local.index);
                }
                if !matches!(step, NextStep::Again) {
                    done = pipeline.bytes_through(index);
                }
                if matches!(step, NextStep::Next) && local.worker.last_ns() >= turn_ends_ns {
                    step = NextStep::Stop;
                }
                if !matches!(step, NextStep::Next) {
                    // The requests after it are scanned again.
                    self.scanner.restart();
                    break;
                }
            }
            at += done;
        }
        local.pipeline = pipeline;
        let took_ns = local.worker.last_ns().max(reached_ns).saturating_sub(began_ns);
        let socket = &mut local.sockets[self.socket];
        self.turn_ns += turns::cost_ns(took_ns, socket.pending().saturating_sub(pending));
        self.produced += socket.pending().saturating_sub(counted) as u64;
        socket.depends_on = self.client.depends_on;
        socket.strict = self.client.waits_for_disk(&local.engine.settings);
        if socket.state.awaits_keeper() {
            // Before the task checks whether the event has happened already: see `after_request`.
            local.keeper.wake_on_move(local.index);
        }
        if matches!(step, NextStep::Again) {
            // The changes of a slice are written before the next slice: all slices together may be tens of megabytes,
            // and the first reply after them would wait for the write.
            local.keeper.write_all();
        }
        if matches!(socket.state, ConnectionState::Yielding) {
            local.queue_turn(self.socket);
        }
        if matches!(step, NextStep::End) {
            at = input.len();
        }
        if local.sockets[self.socket].exit == Exit::Abort {
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
            socket.note_output();
            if socket.has_much_unreleased() {
                local.flush_later(self.socket);
            }
            self.check_growth(local);
        }
        at
    }

    /// Counts a request, and stops before the next one if the client's user has taken more than it may in a second. The
    /// connection is delayed then: see `Peer::delay`.
    #[cold]
    fn stop_if_owed(
        &mut self,
        step: NextStep,
        socket: &Socket<T>,
        counted: &mut usize,
        engine: &Engine,
        worker: usize,
    ) -> NextStep {
        self.produced += socket.pending().saturating_sub(*counted) as u64;
        *counted = socket.pending();
        self.settle(engine, worker);
        match step {
            NextStep::Next if self.owes(engine) => NextStep::Stop,
            step => step,
        }
    }

    /// Does what a request asks of the connection, and returns the next step.
    #[inline]
    fn after_request(
        &mut self,
        flow: Flow,
        socket: &mut Socket<T>,
        engine: &Engine,
        now_ms: u64,
        output_max_in_turn: usize,
    ) -> NextStep {
        match flow {
            Flow::Continue => {}
            Flow::Close => {
                socket.state = ConnectionState::Closing;
                return NextStep::End;
            }
            Flow::Block(blocked) => {
                let until = blocked.until_ms.map(|until_ms| Box::pin(T::sleep(time_until(until_ms, now_ms))));
                socket.state = ConnectionState::Blocked(blocked, until);
                // The timer is not polled yet; the next call of `poll` does that.
                socket.task.wake();
                return NextStep::Stop;
            }
            Flow::Again => {
                socket.state = ConnectionState::Yielding;
                return NextStep::Again;
            }
            Flow::AwaitScript => {
                socket.state = ConnectionState::AwaitsScript;
                return NextStep::Again;
            }
            Flow::Paused(until_ms) => {
                socket.state =
                    ConnectionState::Paused(Box::pin(T::sleep(time_until(until_ms, engine.clock.monotonic_ms()))));
                socket.task.wake();
                return NextStep::Again;
            }
        }
        if socket.pending() <= OUTPUT_UNLIMITED {
            return NextStep::Next;
        }
        let output_max = output_max(&self.client, engine);
        if output_max > 0 && socket.unsent_memory() as u64 > output_max {
            engine.clients.count_output_overflow();
            tracing::warn!(client = self.client.id(), "closed: its replies exceed client-output-buffer-limit");
            socket.leave_by(Exit::Abort);
            return NextStep::End;
        }
        if socket.pending() > output_max_in_turn { NextStep::Stop } else { NextStep::Next }
    }
}

fn time_until(until_ms: u64, now_ms: u64) -> Duration {
    Duration::from_millis(until_ms.saturating_sub(now_ms))
}
