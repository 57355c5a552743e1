//! A simulated stream, timers and a clock. Time passes when the scheduler says so, and by a tick whenever the clock is
//! read. Knows nothing of what is sent.

use crate::network::transport::Transport;
use engine::Clock;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io::{ErrorKind, Result};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Both directions of a connection, shared by its two ends.
#[derive(Default)]
pub(super) struct Pipe {
    /// Bytes that have arrived at the server and were not received yet.
    pub(super) to_server: VecDeque<u8>,
    /// Bytes that the server has sent and the client has not read.
    pub(super) to_client: VecDeque<u8>,
    /// How many of those the stream takes.
    pub(super) window: usize,
    /// The client sends no more.
    pub(super) is_half_closed: bool,
    /// The client is gone: sending fails.
    pub(super) is_reset: bool,
    /// The server has closed.
    pub(super) is_closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Pipe {
    pub(super) fn new(window: usize) -> Pipe {
        Pipe { window, ..Pipe::default() }
    }

    /// Wakes the server: bytes have arrived.
    pub(super) fn notify_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// Wakes the server: the stream takes more, or has failed.
    pub(super) fn notify_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }
}

/// The server's end.
pub(super) struct SimulatedStream(pub(super) Rc<RefCell<Pipe>>);

impl Drop for SimulatedStream {
    fn drop(&mut self) {
        self.0.borrow_mut().is_closed = true;
    }
}

impl SimulatedStream {
    /// Receives the bytes that fit into `buffer`.
    fn poll_take(&self, buffer: &mut [u8], cx: &mut Context<'_>) -> Poll<usize> {
        assert!(!buffer.is_empty(), "a receive without room looks like the end");
        let mut pipe = self.0.borrow_mut();
        if pipe.is_reset {
            return Poll::Ready(0);
        }
        if pipe.to_server.is_empty() && !pipe.is_half_closed {
            pipe.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let len = buffer.len().min(pipe.to_server.len());
        Poll::Ready(take(&mut pipe.to_server, &mut buffer[..len]))
    }
}

/// Moves as many bytes as fit from a pipe to `buffer`. Returns their number.
pub(super) fn take(pipe: &mut VecDeque<u8>, buffer: &mut [u8]) -> usize {
    let (first, second) = pipe.as_slices();
    let split = first.len().min(buffer.len());
    let (head, tail) = buffer.split_at_mut(split);
    head.copy_from_slice(&first[..head.len()]);
    tail.copy_from_slice(&second[..tail.len()]);
    pipe.drain(..buffer.len());
    buffer.len()
}

impl Transport for SimulatedStream {
    type Timer = SimulatedTimer;
    type Detached = SimulatedStream;

    fn poll_receive(&mut self, buffer: &mut [u8], cx: &mut Context<'_>) -> Poll<usize> {
        self.poll_take(buffer, cx)
    }

    fn poll_receive_into(&mut self, buffer: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<usize> {
        let (len, capacity) = (buffer.len(), buffer.capacity());
        buffer.resize(capacity, 0);
        let received = self.poll_take(&mut buffer[len..], cx);
        buffer.truncate(len + if let Poll::Ready(received) = received { received } else { 0 });
        received
    }

    fn send(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut pipe = self.0.borrow_mut();
        if pipe.is_reset {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let len = bytes.len().min(pipe.window.saturating_sub(pipe.to_client.len()));
        if len == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        pipe.to_client.extend(&bytes[..len]);
        Ok(len)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let mut pipe = self.0.borrow_mut();
        if pipe.is_reset || pipe.to_client.len() < pipe.window {
            return Poll::Ready(Ok(()));
        }
        pipe.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    fn has_hung_up(&self) -> bool {
        let pipe = self.0.borrow();
        pipe.is_half_closed || pipe.is_reset
    }

    fn local_address(&self) -> String {
        "127.0.0.1:6379".to_owned()
    }

    fn descriptor(&self) -> i32 {
        0
    }

    fn detach(self) -> Result<SimulatedStream> {
        // Its wakers are dropped, as when a socket is removed from its runtime.
        let mut pipe = self.0.borrow_mut();
        (pipe.reader, pipe.writer) = (None, None);
        drop(pipe);
        Ok(self)
    }

    fn attach(detached: SimulatedStream) -> Result<SimulatedStream> {
        Ok(detached)
    }

    fn sleep(duration: Duration) -> SimulatedTimer {
        let id = LAST_TIMER.get() + 1;
        LAST_TIMER.set(id);
        SimulatedTimer { at: (NOW_NS.get() + duration.as_nanos() as u64, id) }
    }
}

thread_local! {
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
    static TICK_NS: Cell<u64> = const { Cell::new(0) };
    static LAST_TIMER: Cell<u64> = const { Cell::new(0) };
    /// Timers that were polled, by the time at which each ends.
    static TIMERS: RefCell<BTreeMap<(u64, u64), Waker>> = const { RefCell::new(BTreeMap::new()) };
}

/// A timer of the simulation: its time, and its unique number.
pub(super) struct SimulatedTimer {
    at: (u64, u64),
}

impl Future for SimulatedTimer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if NOW_NS.get() >= self.at.0 {
            return Poll::Ready(());
        }
        TIMERS.with_borrow_mut(|timers| timers.insert(self.at, cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for SimulatedTimer {
    fn drop(&mut self) {
        TIMERS.with_borrow_mut(|timers| timers.remove(&self.at));
    }
}

/// The clock of this thread's simulation.
pub(super) struct SimulatedClock;

impl Clock for SimulatedClock {
    fn unix_us(&self) -> u64 {
        1_700_000_000_000_000 + self.monotonic_ns() / 1000
    }

    fn monotonic_ns(&self) -> u64 {
        NOW_NS.set(NOW_NS.get() + TICK_NS.get());
        NOW_NS.get()
    }
}

/// Begins the time of a simulation. Each read of the clock takes `tick_ns`.
pub(super) fn begin_time(tick_ns: u64) {
    NOW_NS.set(1_000_000_000);
    TICK_NS.set(tick_ns);
    TIMERS.with_borrow(|timers| assert!(timers.is_empty(), "timers of the simulation before"));
}

/// Lets time pass.
pub(super) fn pass_time(ns: u64) {
    NOW_NS.set(NOW_NS.get() + ns);
    let now_ns = NOW_NS.get();
    TIMERS.with_borrow_mut(|timers| {
        while let Some(entry) = timers.first_entry()
            && entry.key().0 <= now_ns
        {
            entry.remove().wake();
        }
    });
}

/// Lets time pass until the next timer ends. False when there is none.
pub(super) fn pass_time_to_next_timer() -> bool {
    let next = TIMERS.with_borrow(|timers| timers.first_key_value().map(|((at_ns, _), _)| *at_ns));
    let Some(at_ns) = next else { return false };
    pass_time(at_ns.saturating_sub(NOW_NS.get()));
    true
}
