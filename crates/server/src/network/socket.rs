//! The socket of a connection and its output buffer. Knows which output may be sent; refuses to know requests.

use super::limits::INPUT_WHILE_WAITING;
use engine::ClientHandle;
use engine::observability::stats::WorkerStats;
use locks::{Mutex, rank};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// The socket side of a connection, where the worker can reach it at the end of a tick.
pub(crate) struct Socket {
    pub(super) stream: TcpStream,
    /// Replies. The first `sent` bytes are sent, and the first `sendable` may be: the rest depends on changes that are not
    /// stored yet.
    pub(crate) output: Vec<u8>,
    pub(super) sent: usize,
    pub(super) sendable: usize,
    pub(crate) flush_queued: bool,
    /// The newest batch of the journal that the output depends on, and the newest that this client has made.
    pub(crate) depends_on: u64,
    pub(crate) last_batch: u64,
    /// That batch has to be durable, not just written.
    pub(crate) strict: bool,
    /// Output waits for the journal: no request is executed meanwhile.
    pub(crate) held: bool,
    /// Requests wait for the output to be released.
    pub(super) wake_when_released: bool,
    /// A command of this client waits for the journal, a snapshot or the like, not just for a timeout.
    pub(crate) awaits_event: bool,
    /// The connection ends when everything is sent: its task is woken then.
    pub(super) closing: bool,
    /// Its last replies were dropped, or its peer is gone: it ends.
    pub(super) is_ending: bool,
    /// The worker has too many connections: this one is to move to another.
    pub(crate) leave: bool,
    /// The peer is gone, or must be closed at once: nothing more is sent.
    pub(super) broken: bool,
    /// CLIENT PAUSE delays a request of this client: it is not idle.
    pub(crate) paused: bool,
    pub(crate) handle: Arc<ClientHandle>,
    pub(super) task: Arc<TaskWaker>,
}

/// Wakes the task that a connection is now, from any thread. The task changes when the connection moves.
pub(super) struct TaskWaker(pub(super) Mutex<Waker, { rank::WAKER }>);

impl TaskWaker {
    pub(super) fn register(&self, waker: &Waker) {
        *self.0.lock() = waker.clone();
    }

    pub(super) fn wake(&self) {
        self.0.lock().wake_by_ref();
    }
}

impl Socket {
    pub(super) fn new(stream: TcpStream, handle: Arc<ClientHandle>, task: Arc<TaskWaker>) -> Socket {
        let output = Vec::new();
        Socket {
            stream,
            output,
            sent: 0,
            sendable: 0,
            flush_queued: false,
            depends_on: 0,
            last_batch: 0,
            strict: false,
            held: false,
            wake_when_released: false,
            awaits_event: false,
            closing: false,
            is_ending: false,
            leave: false,
            broken: false,
            paused: false,
            handle,
            task,
        }
    }

    /// Ends the connection if its peer is gone. For one that waits with so much unread input that no more is read: a read
    /// would notice, but there is none.
    pub(crate) fn notice_hang_up(&mut self) {
        let has_stopped_reading = self.handle.input_bytes().0 > INPUT_WHILE_WAITING;
        if !has_stopped_reading || !(self.paused || self.handle.is_blocked()) {
            return;
        }
        let mut fds = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        if poll(&mut fds, Some(&Timespec::default())).is_ok_and(|count| count > 0) {
            self.is_ending = true;
            self.wake();
        }
    }

    /// Runs the connection's task.
    pub(crate) fn wake(&self) {
        self.task.wake();
    }

    /// Bytes still to be sent.
    pub(super) fn pending(&self) -> usize {
        self.output.len() - self.sent
    }

    /// All output may be sent.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.sendable = self.output.len();
        if self.held {
            self.held = false;
            if std::mem::take(&mut self.wake_when_released) {
                self.wake();
            }
        }
    }

    /// Drops the output that may not be sent. The client gets `error` instead, and the connection ends: it cannot go on, since
    /// the client does not know which of its requests were dropped.
    pub(crate) fn drop_output(&mut self, error: &str) {
        self.output.truncate(self.sendable);
        let line = format!("-{}\r\n", error.replace(['\r', '\n'], " "));
        self.output.extend_from_slice(line.as_bytes());
        self.sendable = self.output.len();
        self.held = false;
        self.is_ending = true;
        self.wake();
    }

    /// Writes as much as the socket takes. What is left waits for the connection's task to see it writable.
    pub(crate) fn send(&mut self, stats: &WorkerStats) {
        while self.sent < self.sendable && !self.broken {
            match self.stream.try_io(Interest::WRITABLE, || send(&self.stream, &self.output[self.sent..self.sendable]))
            {
                Ok(written) => {
                    self.sent += written;
                    stats.writes.add(1);
                    stats.bytes_out.add(written as u64);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.handle.output_bytes.store(self.pending(), Relaxed);
                    self.compact();
                    return self.wake();
                }
                Err(_) => {
                    self.broken = true;
                    self.wake();
                }
            }
        }
        if self.sendable == self.output.len() || self.broken {
            self.output.clear();
            self.sent = 0;
            self.sendable = 0;
        }
        let was_full = self.handle.output_bytes.load(Relaxed) != 0;
        if was_full {
            self.handle.output_bytes.store(0, Relaxed);
        }
        if was_full || self.closing {
            self.wake();
        }
    }

    /// Drops what has been sent when that is most of the buffer.
    pub(super) fn compact(&mut self) {
        if self.sent > self.output.len() / 2 {
            self.output.drain(..self.sent);
            self.sendable -= self.sent;
            self.sent = 0;
        }
    }
}

/// Sends without the C library's wrapper, which makes every send of a threaded process a cancellation point.
#[inline]
fn send(stream: &TcpStream, bytes: &[u8]) -> std::io::Result<usize> {
    Ok(rustix::net::send(stream, bytes, SendFlags::NOSIGNAL)?)
}

/// Receives once; 0 when the peer has closed or the connection has failed.
#[inline]
pub(super) fn poll_receive(stream: &TcpStream, buffer: &mut [u8], cx: &mut Context<'_>) -> Poll<usize> {
    loop {
        match stream.poll_read_ready(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(_)) => return Poll::Ready(0),
            Poll::Ready(Ok(())) => {}
        }
        let received = stream.try_io(Interest::READABLE, || {
            let (received, _) = rustix::net::recv(stream, &mut *buffer, RecvFlags::empty())?;
            Ok(received)
        });
        match received {
            Ok(len) => {
                if len < buffer.len() {
                    // The socket is empty: saying so saves the next read, which would only find that out. Bytes that
                    // arrive from now on raise a new event.
                    let _ = stream.try_io(Interest::READABLE, || Err::<(), _>(std::io::ErrorKind::WouldBlock.into()));
                }
                return Poll::Ready(len);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return Poll::Ready(0),
        }
    }
}
