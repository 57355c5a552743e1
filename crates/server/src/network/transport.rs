//! The operating system's interface for a connection: a byte stream and timers. Refuses to know what the bytes mean.
//!
//! The server uses [`TcpStream`], alone or under TLS (`super::stream`); the simulation uses simulated streams and timers. Generic code is compiled for each,
//! so a call costs no more than a call of the stream itself.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags};
use std::future::Future;
use std::io::{ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// The byte stream of a connection, and timers.
pub(crate) trait Transport: Sized {
    /// Ends after a time.
    type Timer: Future<Output = ()>;
    /// The stream on its way to another worker.
    type Detached;

    /// Receives once; 0 when the peer has closed or the connection has failed.
    fn poll_receive(&mut self, buffer: &mut [u8], cx: &mut Context<'_>) -> Poll<usize>;

    /// Receives once into the spare capacity of `buffer`; 0 when the peer has closed or the connection has failed.
    fn poll_receive_into(&mut self, buffer: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<usize>;

    /// Sends as much as the stream takes now, or fails with `WouldBlock` if that is nothing. The next call begins with the
    /// bytes that were not taken.
    fn send(&mut self, bytes: &[u8]) -> Result<usize>;

    /// Ready when the stream takes bytes again, or has failed.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<Result<()>>;

    /// Tells the peer that no more is sent, if the stream has a message for that and takes it at once.
    fn close(&mut self) {}

    /// The memory of buffers that the stream owns.
    fn buffered_bytes(&self) -> usize {
        0
    }

    /// True when the peer has closed, even if not everything that it has sent was received.
    fn has_hung_up(&self) -> bool;

    fn local_address(&self) -> String;

    fn descriptor(&self) -> i32;

    /// Detaches the stream from the thread of its worker.
    fn detach(self) -> Result<Self::Detached>;

    /// Attaches the stream to the thread of another worker, on which this is called.
    fn attach(detached: Self::Detached) -> Result<Self>;

    /// A timer that ends in `duration`.
    fn sleep(duration: Duration) -> Self::Timer;
}

impl Transport for TcpStream {
    type Timer = Sleep;
    type Detached = std::net::TcpStream;

    #[inline]
    fn poll_receive(&mut self, buffer: &mut [u8], cx: &mut Context<'_>) -> Poll<usize> {
        loop {
            match self.poll_read_ready(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(0),
                Poll::Ready(Ok(())) => {}
            }
            let received = self.try_io(Interest::READABLE, || {
                let (received, _) = rustix::net::recv(&*self, &mut *buffer, RecvFlags::empty())?;
                Ok(received)
            });
            match received {
                Ok(len) => {
                    if len < buffer.len() {
                        // The socket is empty: reporting that saves the next read, which would fail. Bytes that arrive
                        // from now on raise a new event.
                        let _ = self.try_io(Interest::READABLE, || Err::<(), _>(ErrorKind::WouldBlock.into()));
                    }
                    return Poll::Ready(len);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return Poll::Ready(0),
            }
        }
    }

    fn poll_receive_into(&mut self, buffer: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<usize> {
        loop {
            match self.poll_read_ready(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(0),
                Poll::Ready(Ok(())) => {}
            }
            match self.try_read_buf(buffer) {
                Ok(len) => return Poll::Ready(len),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return Poll::Ready(0),
            }
        }
    }

    /// Sends without the C library's wrapper, which makes every send of a threaded process a cancellation point.
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Result<usize> {
        self.try_io(Interest::WRITABLE, || Ok(rustix::net::send(&*self, bytes, SendFlags::NOSIGNAL)?))
    }

    #[inline]
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_write_ready(cx)
    }

    fn has_hung_up(&self) -> bool {
        let mut fds = [PollFd::new(self, PollFlags::RDHUP)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|count| count > 0)
    }

    fn local_address(&self) -> String {
        self.local_addr().map(|address| address.to_string()).unwrap_or_default()
    }

    fn descriptor(&self) -> i32 {
        self.as_raw_fd()
    }

    fn detach(self) -> Result<std::net::TcpStream> {
        self.into_std()
    }

    fn attach(detached: std::net::TcpStream) -> Result<TcpStream> {
        TcpStream::from_std(detached)
    }

    fn sleep(duration: Duration) -> Sleep {
        tokio::time::sleep(duration)
    }
}
