//! The stream of a client: a socket, with or without TLS. Refuses to know what the bytes mean.
//!
//! One worker serves both kinds. A connection without TLS pays for that with one comparison for each read and each write.

use super::tls_stream::TlsStream;
use super::transport::Transport;
use std::io::{Error, Result};
use std::task::{Context, Poll};
use std::time::Duration;
use tls::Session;
use tokio::net::TcpStream;
use tokio::time::Sleep;

pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

/// A stream between two workers.
pub(crate) struct DetachedStream {
    socket: std::net::TcpStream,
    tls: Option<(Session, usize)>,
}

impl Stream {
    /// The stream of a new connection without TLS, on the thread of its worker.
    pub(crate) fn plain(socket: std::net::TcpStream) -> Result<Stream> {
        Ok(Stream::Plain(TcpStream::attach(socket)?))
    }

    /// The stream of a new connection with TLS, on the thread of its handshake.
    pub(crate) fn with_tls(socket: std::net::TcpStream, context: &tls::Context) -> Result<Stream> {
        let session = context.accept().map_err(Error::other)?;
        Stream::attach(DetachedStream { socket, tls: Some((session, 0)) })
    }

    /// Continues the handshake. Ready when it has succeeded, with the users that the peer's certificate names, or failed.
    pub(crate) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<String>>> {
        match self {
            Stream::Plain(_) => Poll::Ready(Ok(Vec::new())),
            Stream::Tls(stream) => stream.poll_handshake(cx),
        }
    }

    #[inline]
    pub(super) fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => &stream.socket,
        }
    }
}

impl Transport for Stream {
    type Timer = Sleep;
    type Detached = DetachedStream;

    #[inline]
    fn poll_receive(&mut self, buffer: &mut [u8], cx: &mut Context<'_>) -> Poll<usize> {
        match self {
            Stream::Plain(socket) => socket.poll_receive(buffer, cx),
            Stream::Tls(stream) => stream.poll_receive(buffer, cx),
        }
    }

    fn poll_receive_into(&mut self, buffer: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<usize> {
        match self {
            Stream::Plain(socket) => socket.poll_receive_into(buffer, cx),
            Stream::Tls(stream) => stream.poll_receive_into(buffer, cx),
        }
    }

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            Stream::Plain(socket) => socket.send(bytes),
            Stream::Tls(stream) => stream.send(bytes),
        }
    }

    #[inline]
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.socket().poll_writable(cx)
    }

    fn close(&mut self) {
        if let Stream::Tls(stream) = self {
            stream.close();
        }
    }

    fn buffered_bytes(&self) -> usize {
        match self {
            Stream::Plain(_) => 0,
            Stream::Tls(stream) => stream.session.buffered_bytes(),
        }
    }

    fn has_hung_up(&self) -> bool {
        self.socket().has_hung_up()
    }

    fn local_address(&self) -> String {
        self.socket().local_address()
    }

    fn descriptor(&self) -> i32 {
        self.socket().descriptor()
    }

    fn detach(self) -> Result<DetachedStream> {
        let (socket, tls) = match self {
            Stream::Plain(socket) => (socket, None),
            Stream::Tls(stream) => (stream.socket, Some((stream.session, stream.accepted))),
        };
        Ok(DetachedStream { socket: socket.detach()?, tls })
    }

    fn attach(detached: DetachedStream) -> Result<Stream> {
        let socket = TcpStream::attach(detached.socket)?;
        Ok(match detached.tls {
            None => Stream::Plain(socket),
            Some((session, accepted)) => Stream::Tls(Box::new(TlsStream { socket, session, accepted })),
        })
    }

    fn sleep(duration: Duration) -> Sleep {
        TcpStream::sleep(duration)
    }
}
