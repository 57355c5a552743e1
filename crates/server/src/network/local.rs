//! What the connections of one worker share, on its thread. Knows the end of a tick: one write to the journal, then all
//! replies. Refuses to know what a request does.

use super::socket::Socket;
use super::team::Team;
use crate::durability::{Keeper, ReplyGate};
use engine::{Engine, Worker};
use resp::Batch;
use slab::Slab;
use std::cell::RefCell;
use std::sync::Arc;
use std::task::Waker;
use tokio::time::Instant;

/// Bytes read from a socket at once. The rest of an unfinished request is stored with its client; this buffer is the worker's.
const READ_BYTES: usize = 64 * 1024;
/// Output buffers kept for reuse, and the largest worth keeping.
const POOL_BUFFERS: usize = 64;
pub(super) const POOL_BUFFER_BYTES_MAX: usize = 256 * 1024;
const SMALL_BUFFER_BYTES: usize = 16 * 1024;

/// What the connections of one worker share. It lives in a thread-local: only tasks of this thread use it.
pub(crate) struct Local {
    pub(crate) engine: Arc<Engine>,
    pub(crate) worker: Worker,
    pub(crate) sockets: Slab<Socket>,
    pub(crate) read_buffer: Vec<u8>,
    /// Requests of the client that is being served.
    pub(crate) batch: Batch,
    pub(super) pool: Vec<Vec<u8>>,
    /// Connections with something to send at the end of the tick.
    to_flush: Vec<usize>,
    /// How many of them come before the others.
    flushed_first: usize,
    /// Connections whose output waits for the journal.
    held: Vec<usize>,
    pub(crate) keeper: Arc<Keeper>,
    pub(super) flusher: Waker,
    /// All workers, this one included.
    pub(crate) team: Arc<Team>,
    pub(crate) index: usize,
    /// When the server began to stop: clients are served until they are silent, then closed.
    pub(crate) stopping_since: Option<Instant>,
}

thread_local! {
    static LOCAL: RefCell<Option<Local>> = const { RefCell::new(None) };
}

/// Makes the worker of this thread.
pub(super) fn begin(engine: &Arc<Engine>, keeper: &Arc<Keeper>, team: &Arc<Team>, index: usize) {
    LOCAL.with_borrow_mut(|local| {
        *local = Some(Local {
            worker: engine.worker(index),
            engine: engine.clone(),
            sockets: Slab::new(),
            read_buffer: vec![0; READ_BYTES],
            batch: Batch::default(),
            pool: Vec::new(),
            to_flush: Vec::new(),
            flushed_first: 0,
            held: Vec::new(),
            keeper: keeper.clone(),
            flusher: Waker::noop().clone(),
            team: team.clone(),
            index,
            stopping_since: None,
        });
    });
}

/// Ends the worker of this thread.
pub(super) fn end() {
    LOCAL.with_borrow_mut(|local| *local = None);
}

/// Hands the worker of this thread to `work`. Never called from within itself.
pub(crate) fn with_local<T>(work: impl FnOnce(&mut Local) -> T) -> T {
    LOCAL.with_borrow_mut(|local| work(local.as_mut().expect("called on a worker thread")))
}

/// Hands the worker of this thread to `work`, unless it is gone or in use.
pub(crate) fn try_with_local<T>(work: impl FnOnce(&mut Local) -> T) -> Option<T> {
    LOCAL.try_with(|local| local.try_borrow_mut().ok()?.as_mut().map(work)).ok().flatten()
}

impl Local {
    /// An output buffer, empty.
    #[inline]
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.pool.pop().unwrap_or_default()
    }

    /// Gives an output buffer back. Large ones are kept only while there is room: no key goes for them.
    #[inline]
    pub(crate) fn give_buffer(&mut self, mut buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        let is_kept = bytes > 0 && bytes <= POOL_BUFFER_BYTES_MAX && self.pool.len() < POOL_BUFFERS;
        if is_kept && (bytes <= SMALL_BUFFER_BYTES || !self.engine.is_short_of_memory()) {
            buffer.clear();
            self.pool.push(buffer);
        }
    }

    /// Sends a connection's output at the end of this tick.
    #[inline]
    pub(crate) fn flush_later(&mut self, socket: usize) {
        if !std::mem::replace(&mut self.sockets[socket].flush_queued, true) {
            if self.to_flush.is_empty() {
                // Woken now, it runs after every connection that is ready now.
                self.flusher.wake_by_ref();
            }
            self.to_flush.push(socket);
        }
    }

    /// Sends a connection's output at the end of this tick, before those of others: its client has waited for what another has just
    /// brought.
    pub(super) fn flush_first(&mut self, socket: usize) {
        if self.sockets[socket].flush_queued {
            return;
        }
        self.flush_later(socket);
        let last = self.to_flush.len() - 1;
        self.to_flush.swap(self.flushed_first, last);
        self.flushed_first += 1;
    }

    /// Sends the output of all ready connections: one write to the journal and one pass of writes to sockets for the whole
    /// tick. IMPORTANT: the journal first, so that no client sees a change that is not stored.
    pub(super) fn flush_all(&mut self) {
        let mut queue = std::mem::take(&mut self.to_flush);
        self.flushed_first = 0;
        queue.append(&mut self.held);
        let newest = queue
            .iter()
            .filter_map(|index| self.sockets.get(*index))
            .map(|socket| socket.depends_on)
            .max()
            .unwrap_or(0);
        let progress = self.keeper.write_up_to(newest);
        for index in queue.drain(..) {
            let Some(socket) = self.sockets.get_mut(index) else { continue };
            match progress.gate(socket.depends_on, socket.strict) {
                ReplyGate::Send => socket.release(),
                ReplyGate::Hold => {
                    socket.held = true;
                    self.held.push(index);
                    continue;
                }
                ReplyGate::Drop => socket.drop_output(&self.keeper.dropped_replies_error()),
            }
            socket.flush_queued = false;
            socket.send(&self.worker.books.stats);
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

    /// The journal or a snapshot has moved: wakes the connections that wait for that.
    pub(super) fn wake_waiting(&mut self) {
        let mut any = false;
        for (_, socket) in self.sockets.iter_mut().filter(|(_, socket)| socket.awaits_event) {
            if socket.handle.is_blocked() {
                any = true;
                socket.wake();
            } else {
                socket.awaits_event = false;
            }
        }
        if any {
            self.keeper.wake_on_move(self.index);
        }
    }
}
