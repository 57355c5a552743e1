//! Reads requests from a connection's socket. Knows where an unfinished request is stored; refuses to know what a request says.
//!
//! A connection that is idle owns no buffer: it reads into its worker's. Only an unfinished request stays with it.

use super::limits::REQUEST_BYTES_MAX;
use super::local::Local;
use super::peer::{Peer, State};
use super::socket::poll_receive;
use std::task::{Context, Poll};

/// The bytes of an unfinished request that is shorter than this are copied to a buffer of their own size, and its rest is
/// read into the worker's buffer. A longer one is read into its own buffer.
const SHORT_INPUT: usize = 32 * 1024;
/// The growth of a long request's buffer: at least so much, and at most so many times what has arrived. A client that announces half
/// a gigabyte gets it only as the bytes arrive. A larger factor would save copies, a smaller one memory that is counted
/// (though not touched) before there is anything in it.
const INPUT_ROOM_MIN: usize = 64 * 1024;
const INPUT_ROOM_FACTOR: usize = 7;
/// When a buffer grows beyond this, the memory of all clients is compared with `maxmemory-clients`.
const LARGE_INPUT: usize = 1024 * 1024;

impl Peer {
    /// Reads once; what arrives is executed at once or stored. False when the peer has closed or must be closed.
    pub(super) fn poll_read(&mut self, local: &mut Local, cx: &mut Context<'_>) -> Poll<bool> {
        if self.input.len() >= SHORT_INPUT {
            return self.poll_read_more(local, cx);
        }
        let mut buffer = std::mem::take(&mut local.read_buffer);
        let stream = &local.sockets[self.socket].stream;
        // Leave space in front for what is stored, so that the whole request can be executed in place.
        let stored = self.input.len();
        let read = match poll_receive(stream, &mut buffer[stored..], cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(0) => Poll::Ready(false),
            Poll::Ready(received) => {
                let len = stored + received;
                self.count_read(local, received);
                if stored > 0 {
                    self.client.handle.note_active(local.engine.clock.monotonic_ns());
                }
                let executed = match self.state {
                    State::Running if !local.sockets[self.socket].held && len > self.wanted => {
                        buffer[..stored].copy_from_slice(&self.input);
                        self.execute(local, &buffer[..len])
                    }
                    _ => 0,
                };
                match executed {
                    0 => {
                        self.input.reserve_exact(received);
                        self.input.extend_from_slice(&buffer[stored..len]);
                    }
                    _ => self.input = buffer[executed..len].to_vec(),
                }
                self.note_input();
                Poll::Ready(true)
            }
        };
        local.read_buffer = buffer;
        read
    }

    /// Reads the rest of a long request into its own buffer.
    pub(super) fn poll_read_more(&mut self, local: &mut Local, cx: &mut Context<'_>) -> Poll<bool> {
        let len = self.input.len();
        if self.input.capacity() == len {
            let missing = (self.wanted + 1).saturating_sub(len);
            // In proportion to what is there, even if little is missing: another million arguments may follow.
            self.input.reserve_exact(missing.clamp(INPUT_ROOM_MIN.max(len / 2), INPUT_ROOM_FACTOR * len));
            if self.input.capacity() >= LARGE_INPUT {
                self.note_input();
                local.engine.evict_clients();
            }
        }
        loop {
            let stream = &local.sockets[self.socket].stream;
            match stream.poll_read_ready(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(false),
                Poll::Ready(Ok(())) => {}
            }
            match stream.try_read_buf(&mut self.input) {
                Ok(0) => return Poll::Ready(false),
                Ok(len) => {
                    self.count_read(local, len);
                    self.note_input();
                    self.client.handle.note_active(local.engine.clock.monotonic_ns());
                    let limit = local.engine.settings.client_query_buffer_limit().min(REQUEST_BYTES_MAX);
                    let fits = self.input.len() as u64 <= limit;
                    if !fits {
                        local.sockets[self.socket].broken = true;
                        local.engine.clients.count_query_overflow();
                        tracing::warn!(
                            client = self.client.id(),
                            "closed: its request exceeds client-query-buffer-limit"
                        );
                    }
                    return Poll::Ready(fits);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return Poll::Ready(false),
            }
        }
    }

    #[inline]
    pub(super) fn count_read(&self, local: &Local, len: usize) {
        let stats = &local.worker.books.stats;
        stats.reads.add(1);
        stats.bytes_in.add(len as u64);
    }

    /// Executes the stored input.
    pub(super) fn execute_input(&mut self, local: &mut Local) {
        let input = std::mem::take(&mut self.input);
        let executed = self.execute(local, &input);
        if executed == 0 {
            self.input = input;
        } else if executed < input.len() {
            self.keep_rest(input, executed);
        }
        self.note_input();
    }

    /// Updates the figures that CLIENT LIST and client eviction use.
    #[inline]
    pub(super) fn note_input(&self) {
        self.client.handle.note_input(self.input.len(), self.input.capacity() + self.scanner.heap_bytes());
    }

    /// Keeps what follows the first `executed` bytes: in a buffer of its own size where the old one is much too large.
    pub(super) fn keep_rest(&mut self, mut input: Vec<u8>, executed: usize) {
        if input.len() - executed < input.capacity() / 4 {
            self.input = input[executed..].to_vec();
        } else {
            input.drain(..executed);
            self.input = input;
        }
    }
}
