//! The state that the connections of one worker share, on its thread. Knows the end of a tick: one write to the
//! journal, then all replies. Refuses to know what a request does.

use super::socket::Socket;
use super::state::Flush;
use super::stream::Stream;
use super::team::Team;
use super::transport::Transport;
use super::turns::{Turn, Turns};
use crate::durability::{Keeper, ReplyGate};
use engine::{Engine, Worker};
use resp::Pipeline;
use slab::Slab;
use std::cell::RefCell;
use std::sync::Arc;
use std::task::Waker;

/// Bytes read from a socket at once. The buffer belongs to the worker; the rest of an incomplete request is stored with
/// its client.
const READ_BYTES: usize = 64 * 1024;
/// Output buffers kept for reuse, and the largest worth keeping.
const POOL_BUFFERS: usize = 64;
pub(super) const POOL_BUFFER_BYTES_MAX: usize = 256 * 1024;
const SMALL_BUFFER_BYTES: usize = 16 * 1024;

/// The state that the connections of one worker share. It lives in a thread-local: only tasks of this thread use it.
pub(crate) struct Local<T: Transport = Stream> {
    pub(crate) engine: Arc<Engine>,
    pub(crate) worker: Worker,
    pub(crate) sockets: Slab<Socket<T>>,
    pub(crate) read_buffer: Vec<u8>,
    /// Requests of the client that is being served.
    pub(crate) pipeline: Pipeline,
    pub(super) pool: Vec<Vec<u8>>,
    /// Connections with something to send at the end of the tick.
    to_flush: Vec<usize>,
    /// How many of them are flushed before the others.
    flushed_first: usize,
    /// Connections whose output waits for the journal.
    held: Vec<usize>,
    pub(crate) keeper: Arc<Keeper>,
    pub(super) flusher: Waker,
    /// The queue of long turns.
    pub(super) turns: Turns,
    /// All workers, this one included.
    pub(crate) team: Arc<Team>,
    pub(crate) index: usize,
    /// When the server began to stop, on the monotonic clock: clients are served until they are silent, then closed.
    pub(crate) stopping_since_ns: Option<u64>,
}

thread_local! {
    static LOCAL: RefCell<Option<Local>> = const { RefCell::new(None) };
}

/// Creates the worker of this thread.
pub(super) fn begin(engine: &Arc<Engine>, keeper: &Arc<Keeper>, team: &Arc<Team>, index: usize) {
    LOCAL.with_borrow_mut(|local| *local = Some(Local::new(engine, keeper, team, index)));
}

/// Ends the worker of this thread.
pub(super) fn end() {
    LOCAL.with_borrow_mut(|local| *local = None);
}

/// Passes the worker of this thread to `work`. Never called from within itself.
pub(crate) fn with_local<T>(work: impl FnOnce(&mut Local) -> T) -> T {
    LOCAL.with_borrow_mut(|local| work(local.as_mut().expect("called on a worker thread")))
}

/// Passes the worker of this thread to `work`, unless it is gone or in use.
pub(crate) fn try_with_local<T>(work: impl FnOnce(&mut Local) -> T) -> Option<T> {
    LOCAL.try_with(|local| local.try_borrow_mut().ok()?.as_mut().map(work)).ok().flatten()
}

impl<T: Transport> Local<T> {
    pub(super) fn new(engine: &Arc<Engine>, keeper: &Arc<Keeper>, team: &Arc<Team>, index: usize) -> Local<T> {
        Local {
            worker: engine.client_worker(index),
            engine: engine.clone(),
            sockets: Slab::new(),
            read_buffer: vec![0; READ_BYTES],
            pipeline: Pipeline::default(),
            pool: Vec::new(),
            to_flush: Vec::new(),
            flushed_first: 0,
            held: Vec::new(),
            keeper: keeper.clone(),
            flusher: Waker::noop().clone(),
            turns: Turns::new(),
            team: team.clone(),
            index,
            stopping_since_ns: None,
        }
    }

    /// Begins to stop: wakes every connection.
    pub(super) fn begin_stopping(&mut self) {
        self.stopping_since_ns = Some(self.engine.clock.monotonic_ns());
        for (_, socket) in &self.sockets {
            socket.wake();
        }
    }

    /// True when no connection has any state left.
    #[cfg(test)]
    pub(super) fn is_at_rest(&self) -> bool {
        let has_work = !self.to_flush.is_empty() || !self.held.is_empty() || self.turns.are_wanted();
        let has_buffers = self.read_buffer.len() == READ_BYTES && self.pool.iter().all(Vec::is_empty);
        self.sockets.is_empty() && !has_work && has_buffers
    }

    /// An output buffer, empty.
    #[inline]
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.pool.pop().unwrap_or_default()
    }

    /// Returns an output buffer to the pool. Large ones are kept only while memory is free: no key is evicted for them.
    #[inline]
    pub(crate) fn give_buffer(&mut self, mut buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        let is_kept = bytes > 0 && bytes <= POOL_BUFFER_BYTES_MAX && self.pool.len() < POOL_BUFFERS;
        if is_kept && (bytes <= SMALL_BUFFER_BYTES || !engine::is_short_of_memory(&self.engine)) {
            buffer.clear();
            self.pool.push(buffer);
        }
    }

    /// Begins a turn of a connection. False if it has to wait for one: its task is woken when it may run.
    #[inline]
    pub(super) fn begin_turn(&mut self, socket: usize) -> bool {
        let turn = &mut self.sockets[socket];
        match turn.turn {
            Turn::FreeAfterLong if self.turns.are_wanted() => {
                self.queue_turn(socket);
                false
            }
            Turn::Free | Turn::FreeAfterLong => true,
            Turn::Queued => false,
            Turn::Granted => {
                turn.turn = Turn::Free;
                true
            }
        }
    }

    /// Queues a connection that has more to do than fits into this turn.
    pub(super) fn queue_turn(&mut self, socket: usize) {
        if std::mem::replace(&mut self.sockets[socket].turn, Turn::Queued) != Turn::Queued {
            self.turns.queue(socket);
        }
    }

    /// Ends a turn with this cost.
    #[inline]
    pub(super) fn end_turn(&mut self, socket: usize, cost_ns: u64) {
        let socket = &mut self.sockets[socket];
        let has_more = socket.turn == Turn::Queued;
        let was_long = self.turns.note(cost_ns, has_more);
        if !has_more {
            socket.turn = match was_long {
                true => Turn::FreeAfterLong,
                false => Turn::Free,
            };
        }
    }

    /// Lets the next connection in the queue run. False when there is none, or the sockets have to be polled first.
    pub(super) fn grant_turn(&mut self) -> bool {
        while let Some(index) = self.turns.next() {
            if let Some(socket) = self.sockets.get_mut(index)
                && socket.turn == Turn::Queued
            {
                socket.turn = Turn::Granted;
                socket.wake();
                return true;
            }
        }
        false
    }

    /// Sends a connection's output at the end of this tick.
    #[inline]
    pub(crate) fn flush_later(&mut self, socket: usize) {
        let flush = &mut self.sockets[socket].flush;
        if *flush == Flush::Idle {
            *flush = Flush::Queued;
            if self.to_flush.is_empty() {
                // Woken now, the flusher runs after every connection that is ready now.
                self.flusher.wake_by_ref();
            }
            self.to_flush.push(socket);
        }
    }

    /// Sends a connection's output at the end of this tick, before those of others: its client has waited for what
    /// another client has just written.
    pub(super) fn flush_first(&mut self, socket: usize) {
        if self.sockets[socket].flush != Flush::Idle {
            return;
        }
        self.flush_later(socket);
        let last = self.to_flush.len() - 1;
        self.to_flush.swap(self.flushed_first, last);
        self.flushed_first += 1;
    }

    /// Sends the output of all ready connections: one write to the journal and one pass of writes to sockets for the
    /// whole tick. IMPORTANT: the journal first, so that no client sees a change that is not stored.
    fn flush_all(&mut self) {
        let mut queue = std::mem::take(&mut self.to_flush);
        self.flushed_first = 0;
        if !queue.is_empty()
            && let Some(mark) = self.keeper.confirmation()
        {
            for index in &queue {
                if let Some(socket) = self.sockets.get_mut(*index) {
                    socket.confirmed_by = mark;
                }
            }
        }
        queue.append(&mut self.held);
        let newest = queue
            .iter()
            .filter_map(|index| self.sockets.get(*index))
            .map(|socket| socket.depends_on.max(socket.confirmed_by))
            .max()
            .unwrap_or(0);
        let progress = self.keeper.write_up_to(newest);
        for index in queue.drain(..) {
            let Some(socket) = self.sockets.get_mut(index) else { continue };
            match progress.gate(socket.depends_on.max(socket.confirmed_by), socket.strict) {
                ReplyGate::Send => socket.release(),
                ReplyGate::Hold => {
                    if !socket.flush.is_held() {
                        socket.flush = Flush::Held { wakes: false };
                    }
                    self.held.push(index);
                    continue;
                }
                ReplyGate::Drop => socket.drop_output(&self.keeper.dropped_replies_error()),
            }
            socket.send(&self.worker.metrics.stats);
            if socket.output.is_empty() {
                let buffer = std::mem::take(&mut socket.output);
                self.give_buffer(buffer);
            }
        }
        self.to_flush = queue;
        if !self.held.is_empty() {
            self.keeper.wake_on_move(self.index);
            self.engine.persistence.request_sync();
            if self.keeper.has_advanced_since(progress) {
                self.flusher.wake_by_ref();
            }
        }
    }

    /// Ends a tick in which a connection requested it, or after the journal has advanced; `flusher` is the task that
    /// calls it.
    pub(super) fn end_tick(&mut self, flusher: &Waker) {
        if !self.flusher.will_wake(flusher) {
            self.flusher = flusher.clone();
            self.keeper.register(self.index, flusher.clone());
        }
        self.flush_all();
        if self.keeper.take_moved(self.index) {
            self.wake_waiting();
        }
    }

    /// Wakes the connections that wait for the journal or a snapshot, which has advanced.
    fn wake_waiting(&mut self) {
        let mut any = false;
        for (_, socket) in self.sockets.iter().filter(|(_, socket)| socket.state.awaits_keeper()) {
            if socket.handle.is_blocked() {
                any = true;
                socket.wake();
            }
        }
        if any {
            self.keeper.wake_on_move(self.index);
        }
    }
}
