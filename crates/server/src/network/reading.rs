//! Reads requests from a connection's socket. Knows where an incomplete request is stored; refuses to know its meaning.
//!
//! An idle connection owns no buffer: it reads into its worker's. Only an incomplete request stays with it.

use super::input::Input;
use super::limits::REQUEST_BYTES_MAX;
use super::local::Local;
use super::peer::Peer;
use super::state::Exit;
use super::transport::Transport;
use keyspace::storage::size_class::size_class;
use std::task::{Context, Poll};

/// An incomplete request shorter than this is copied to a buffer of exactly its size, and its rest is read into the
/// worker's buffer. A longer one is read into its own buffer.
const SHORT_INPUT: usize = 32 * 1024;
/// The growth of a long request's buffer: at least the minimum, and at most this factor of what has arrived. A client
/// that announces half a gigabyte gets memory only as the bytes arrive. A larger factor would save copies, a smaller
/// one memory that is counted (though not touched) before it is used.
const INPUT_ROOM_MIN: usize = 64 * 1024;
const INPUT_ROOM_FACTOR: usize = 7;
/// When a buffer grows beyond this, the memory of all clients is checked against `maxmemory-clients`.
const LARGE_INPUT: usize = 1024 * 1024;

impl<T: Transport> Peer<T> {
    /// Reads once; complete requests are executed, the rest is stored. False when the peer has closed or must be
    /// closed.
    pub(super) fn poll_read(&mut self, local: &mut Local<T>, cx: &mut Context<'_>) -> Poll<bool> {
        if self.input.len() >= SHORT_INPUT {
            return self.poll_read_more(local, cx);
        }
        let mut buffer = std::mem::take(&mut local.read_buffer);
        let stream = &mut local.sockets[self.socket].stream;
        // Leave space in front for the stored bytes, so that the whole request can be executed in place.
        let stored = self.input.len();
        let read = match stream.poll_receive(&mut buffer[stored..], cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(0) => Poll::Ready(false),
            Poll::Ready(received) => {
                let len = stored + received;
                self.count_read(local, received);
                if stored > 0 {
                    self.client.handle.note_active(local.engine.clock.monotonic_ns());
                }
                let may_execute = local.sockets[self.socket].may_execute() && !self.owes(&local.engine);
                let executed = match len > self.wanted && may_execute {
                    true => {
                        buffer[..stored].copy_from_slice(self.input.bytes());
                        self.execute(local, &buffer[..len])
                    }
                    false => 0,
                };
                match executed {
                    0 => self.input.extend_exact(&buffer[stored..len]),
                    _ => self.input = Input::copy_of(&buffer[executed..len]),
                }
                self.note_input();
                Poll::Ready(true)
            }
        };
        local.read_buffer = buffer;
        read
    }

    /// Reads the rest of a long request into its own buffer.
    pub(super) fn poll_read_more(&mut self, local: &mut Local<T>, cx: &mut Context<'_>) -> Poll<bool> {
        let len = self.input.len();
        if self.input.buffer().capacity() == len {
            let missing = (self.wanted + 1).saturating_sub(len);
            // In proportion to what has arrived, even if little is missing: another million arguments may follow.
            let room = missing.clamp(INPUT_ROOM_MIN.max(len / 2), INPUT_ROOM_FACTOR * len);
            if len + room >= LARGE_INPUT {
                // Before the memory is reserved: no key is evicted for the buffer of a client that is closed itself.
                self.client.handle.note_input(len, size_class(len + room) + self.scanner.heap_bytes());
                engine::evict_clients(&local.engine, room as u64);
                if self.client.handle.is_killed() {
                    return Poll::Ready(false);
                }
            }
            self.input.buffer().reserve_exact(room);
        }
        let len = match local.sockets[self.socket].stream.poll_receive_into(self.input.buffer(), cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(0) => return Poll::Ready(false),
            Poll::Ready(len) => len,
        };
        self.count_read(local, len);
        self.note_input();
        self.client.handle.note_active(local.engine.clock.monotonic_ns());
        let limit = local.engine.settings.client_query_buffer_limit().min(REQUEST_BYTES_MAX);
        let fits = self.input.len() as u64 <= limit;
        if !fits {
            local.sockets[self.socket].leave_by(Exit::Abort);
            local.engine.clients.count_query_overflow();
            tracing::warn!(client = self.client.id(), "closed: its request exceeds client-query-buffer-limit");
        }
        Poll::Ready(fits)
    }

    #[inline]
    pub(super) fn count_read(&mut self, local: &Local<T>, len: usize) {
        self.received += len as u64;
        let stats = &local.worker.metrics.stats;
        stats.reads.add(1);
        stats.bytes_in.add(len as u64);
    }

    /// Executes the stored input.
    pub(super) fn execute_input(&mut self, local: &mut Local<T>) {
        let mut input = std::mem::take(&mut self.input);
        let executed = self.execute(local, input.bytes());
        if executed > 0 {
            input.consume(executed);
        }
        self.input = input;
        self.note_input();
    }

    /// Updates the figures that CLIENT LIST and client eviction use.
    #[inline]
    pub(super) fn note_input(&self) {
        let buffer = size_class(self.input.capacity()) + self.scanner.heap_bytes();
        self.client.handle.note_input(self.input.len(), buffer);
    }
}
