//! The socket of a connection and its output buffer. Knows which output may be sent; refuses to know requests.

use super::limits::{INPUT_WHILE_WAITING, OUTPUT_PIECE, OUTPUT_UNLIMITED};
use super::state::{ConnectionState, Exit, Flush};
use super::transport::Transport;
use super::turns::Turn;
use engine::ClientHandle;
use engine::observability::stats::WorkerStats;
use keyspace::storage::size_class::size_class;
use locks::{Mutex, rank};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;

/// The socket side of a connection, where the worker can reach it at the end of a tick.
pub(crate) struct Socket<T: Transport> {
    pub(super) stream: T,
    /// Replies that the socket did not take, before those of `output`. Most clients have none.
    unsent: Option<Box<Unsent>>,
    /// Replies. The first `sent` bytes are sent, and the first `sendable` may be sent: the rest depends on changes that
    /// are not stored yet.
    pub(crate) output: Vec<u8>,
    pub(super) sent: usize,
    pub(super) sendable: usize,
    pub(super) flush: Flush,
    /// The newest batch of the journal that the output depends on.
    pub(crate) depends_on: u64,
    /// With `reads confirmed`: the mark that must be stored before the output is sent.
    pub(crate) confirmed_by: u64,
    /// That batch must be durable, not only written.
    pub(crate) strict: bool,
    pub(super) state: ConnectionState<T>,
    pub(super) exit: Exit,
    /// Whether the connection may run.
    pub(super) turn: Turn,
    pub(crate) handle: Arc<ClientHandle>,
    pub(super) task: Arc<TaskWaker>,
}

/// Output that may be sent and waits for a full socket: in buffers of exactly its size, so that a slow client takes no
/// more memory than its unread output, and nothing is copied while more arrives.
#[derive(Default)]
struct Unsent {
    buffers: VecDeque<Vec<u8>>,
    /// How much of the first buffer is sent.
    sent: usize,
    /// The bytes in all buffers, including sent ones, and the memory of the buffers.
    bytes: usize,
    memory: usize,
}

/// Output of at least so many bytes is moved out of its buffer when the socket is full.
const UNSENT_BYTES_MIN: usize = 64 * 1024;
/// The largest buffer that keeps unused capacity while it waits.
const ROOMY_BYTES_MAX: usize = 16 * 1024;

impl Unsent {
    fn pending(&self) -> usize {
        self.bytes - self.sent
    }

    fn push(&mut self, buffer: Vec<u8>) {
        self.bytes += buffer.len();
        self.memory += size_class(buffer.capacity());
        self.buffers.push_back(buffer);
    }

    /// The next bytes to send.
    fn next(&self) -> Option<&[u8]> {
        self.buffers.front().map(|first| &first[self.sent..])
    }

    /// Notes that so many bytes were sent.
    fn advance(&mut self, written: usize) {
        self.sent += written;
        if let Some(first) = self.buffers.pop_front_if(|first| first.len() == self.sent) {
            self.bytes -= first.len();
            self.memory -= size_class(first.capacity());
            self.sent = 0;
        }
    }
}

/// Wakes the current task of a connection, from any thread. The task changes when the connection moves.
pub(super) struct TaskWaker(Mutex<Waker, { rank::WAKER }>);

impl Default for TaskWaker {
    fn default() -> TaskWaker {
        TaskWaker(Mutex::new(Waker::noop().clone()))
    }
}

impl TaskWaker {
    pub(super) fn register(&self, waker: &Waker) {
        *self.0.lock() = waker.clone();
    }

    pub(super) fn wake(&self) {
        self.0.lock().wake_by_ref();
    }
}

impl<T: Transport> Socket<T> {
    pub(super) fn new(stream: T, handle: Arc<ClientHandle>, task: Arc<TaskWaker>) -> Socket<T> {
        let output = Vec::new();
        Socket {
            stream,
            unsent: None,
            output,
            sent: 0,
            sendable: 0,
            flush: Flush::Idle,
            depends_on: 0,
            confirmed_by: 0,
            strict: false,
            state: ConnectionState::Running,
            exit: Exit::Stay,
            turn: Turn::Free,
            handle,
            task,
        }
    }

    /// Ends the connection if its peer is gone. For a connection that waits with so much unread input that no more is
    /// read: only a read would notice.
    pub(crate) fn notice_hang_up(&mut self) {
        let has_stopped_reading = self.handle.input_bytes().0 > INPUT_WHILE_WAITING;
        if !has_stopped_reading || !self.is_waiting() {
            return;
        }
        if self.stream.has_hung_up() {
            self.leave_by(Exit::Close);
        }
    }

    /// True when a request of the client is delayed, or its command waits.
    pub(super) fn is_waiting(&self) -> bool {
        self.state.is_delayed() || self.handle.is_blocked()
    }

    /// Makes the task end the connection in this way, unless it is to end in a stronger way.
    pub(super) fn leave_by(&mut self, exit: Exit) {
        self.exit = self.exit.max(exit);
        self.wake();
    }

    /// True when the next request is executed as soon as it arrives.
    #[inline]
    pub(super) fn may_execute(&self) -> bool {
        self.state.is_running() && !self.flush.is_held()
    }

    /// True when the connection ends at once: nothing more is sent.
    #[inline]
    pub(super) fn is_cut_off(&self) -> bool {
        self.exit == Exit::Abort || self.handle.is_killed()
    }

    /// Wakes the connection's task.
    pub(crate) fn wake(&self) {
        self.task.wake();
    }

    /// Bytes still to be sent.
    #[inline]
    pub(super) fn pending(&self) -> usize {
        self.unsent.as_ref().map_or(0, |unsent| unsent.pending()) + self.output.len() - self.sent
    }

    /// True when there is nothing to send, and no buffer.
    #[cfg(test)]
    pub(super) fn is_at_rest(&self) -> bool {
        let has_buffer = self.unsent.is_some() || self.output.capacity() > 0;
        !has_buffer && self.flush == Flush::Idle && self.handle.output_bytes.load(Relaxed) == 0
    }

    /// Where in `output` a reply must end, so that at most `bytes_max` wait to be sent.
    pub(super) fn output_end_max(&self, bytes_max: usize) -> usize {
        let waiting = self.unsent.as_ref().map_or(0, |unsent| unsent.pending());
        bytes_max.saturating_sub(waiting).max(OUTPUT_UNLIMITED).saturating_add(self.sent)
    }

    /// The memory of unsent replies, as the limits count it: without unused capacity of the last buffer.
    pub(super) fn unsent_memory(&self) -> usize {
        self.unsent.as_ref().map_or(0, |unsent| unsent.memory) + size_class(self.output.len())
    }

    /// True when so much output may not be sent yet that it should not wait in one buffer.
    pub(super) fn has_much_unreleased(&self) -> bool {
        self.output.len() - self.sendable > UNSENT_BYTES_MIN
    }

    /// Updates the figures that CLIENT LIST, the limits and client eviction use. The socket is full.
    pub(super) fn note_output(&self) {
        let (memory, buffers) = self.unsent.as_ref().map_or((0, 0), |unsent| (unsent.memory, unsent.buffers.len()));
        let memory = memory + size_class(self.output.capacity()) + self.stream.buffered_bytes();
        self.handle.note_output(self.pending(), memory, buffers + usize::from(self.output.capacity() > 0));
    }

    /// Allows all output to be sent.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.sendable = self.output.len();
        self.confirmed_by = 0;
        if std::mem::replace(&mut self.flush, Flush::Idle) == (Flush::Held { wakes: true }) {
            self.wake();
        }
    }

    /// Sends an error and nothing else, then closes.
    pub(super) fn refuse(&mut self, error: &str) {
        self.output.extend_from_slice(format!("-{error}\r\n").as_bytes());
        self.state = ConnectionState::Closing;
    }

    /// Drops the output that may not be sent. The client gets `error` instead, and the connection ends: the client does
    /// not know which of its requests were dropped.
    pub(crate) fn drop_output(&mut self, error: &str) {
        self.output.truncate(self.sendable);
        let line = format!("-{}\r\n", error.replace(['\r', '\n'], " "));
        self.output.extend_from_slice(line.as_bytes());
        self.sendable = self.output.len();
        self.flush = Flush::Idle;
        self.leave_by(Exit::Close);
    }

    /// Writes as much as the socket takes, up to one piece. The rest waits until the connection's task sees the socket
    /// writable.
    pub(crate) fn send(&mut self, stats: &WorkerStats) {
        let mut left = OUTPUT_PIECE;
        while self.exit != Exit::Abort {
            let next = match self.unsent.as_ref().and_then(|unsent| unsent.next()) {
                Some(bytes) => bytes,
                None if self.sent < self.sendable => &self.output[self.sent..self.sendable],
                None => break,
            };
            if left == 0 {
                return self.send_later();
            }
            let next = &next[..next.len().min(left)];
            match self.stream.send(next) {
                Ok(written) => {
                    left -= written;
                    match &mut self.unsent {
                        None => self.sent += written,
                        Some(unsent) => {
                            unsent.advance(written);
                            self.unsent.take_if(|unsent| unsent.buffers.is_empty());
                        }
                    }
                    stats.writes.add(1);
                    stats.bytes_out.add(written as u64);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return self.send_later(),
                Err(_) => self.leave_by(Exit::Abort),
            }
        }
        let is_aborted = self.exit == Exit::Abort;
        if is_aborted {
            self.unsent = None;
        }
        if self.sendable == self.output.len() || is_aborted {
            self.output.clear();
            self.sent = 0;
            self.sendable = 0;
        }
        let was_full = self.handle.output_bytes.load(Relaxed) != 0;
        if was_full {
            self.handle.note_output(0, 0, 0);
        }
        if was_full || matches!(self.state, ConnectionState::Closing) {
            self.wake();
        }
    }

    /// Leaves the unsent output to the connection's task.
    fn send_later(&mut self) {
        self.keep_unsent();
        self.note_output();
        self.wake();
    }

    /// Keeps output that the socket did not take in as little memory as possible: sent bytes are removed when they are
    /// most of the buffer, and long output is moved out of the buffer.
    fn keep_unsent(&mut self) {
        if self.sent > self.output.len() / 2 {
            self.output.drain(..self.sent);
            self.sendable -= self.sent;
            self.sent = 0;
        }
        if self.output.capacity() > ROOMY_BYTES_MAX && self.output.len() < self.output.capacity() / 8 * 7 {
            self.output.shrink_to_fit();
        }
        if self.sendable == self.output.len() && self.output.len() >= UNSENT_BYTES_MIN {
            let (sent, buffer) = (std::mem::take(&mut self.sent), std::mem::take(&mut self.output));
            self.sendable = 0;
            let unsent = self.unsent.get_or_insert_default();
            unsent.push(buffer);
            // If some of it is sent, it is the first buffer.
            unsent.sent += sent;
        }
    }
}
