//! The stream of a connection with TLS: a socket and a session. Knows what to do with bytes that the socket does not take;
//! refuses to know what they mean.
//!
//! Buffers belong to the thread: a connection that waits owns none, as without TLS.

use super::transport::Transport;
use std::cell::RefCell;
use std::io::{Error, ErrorKind, Result};
use std::task::{Context, Poll, ready};
use tls::{INCOMING_BYTES_MAX, Session, SessionError};
use tokio::net::TcpStream;

/// The most bytes that are received or encrypted at once: four full records.
const BYTES_AT_ONCE: usize = 64 * 1024;
/// At least so many bytes are received at once: a full record.
const RECEIVE_MIN: usize = 17 * 1024;

thread_local! {
    /// Received bytes, which are decrypted in place.
    static RECEIVED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Encrypted bytes on their way to the socket.
    static ENCRYPTED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

pub(crate) struct TlsStream {
    pub(super) socket: TcpStream,
    pub(super) session: Session,
    /// So many bytes of the next `send` are encrypted already, and wait in the session: the socket did not take them. They
    /// count as sent when the socket has taken them.
    pub(super) accepted: usize,
}

impl TlsStream {
    /// Continues the handshake. Returns the users that the client's certificate names.
    pub(super) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<String>>> {
        loop {
            while let Err(error) = self.flush() {
                if error.kind() != ErrorKind::WouldBlock {
                    return Poll::Ready(Err(error));
                }
                ready!(self.socket.poll_writable(cx))?;
            }
            if !self.session.is_handshaking() {
                return Poll::Ready(Ok(self.session.users()));
            }
            // Requests that come with the end of the handshake are kept for the first read.
            match ready!(self.poll_decrypt(&mut [], cx)) {
                Ok(_) if self.session.has_ended() => return Poll::Ready(Err(ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) => {
                    // The alert says why, if the client still listens.
                    let _ = self.flush();
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    /// Receives once; 0 when the peer has closed or the connection has failed.
    // Never inlined, as `send`: what connections without TLS execute stays as short as it was.
    #[inline(never)]
    pub(super) fn poll_receive(&mut self, buffer: &mut [u8], cx: &mut Context<'_>) -> Poll<usize> {
        loop {
            let left = self.session.take_plaintext(buffer);
            if left > 0 || self.session.has_ended() {
                return Poll::Ready(left);
            }
            let decrypted = ready!(self.poll_decrypt(buffer, cx));
            // Messages of the session itself. If the socket is full, the next `send` sends them.
            let _ = self.flush();
            match decrypted {
                Ok(0) => {}
                Ok(bytes) => return Poll::Ready(bytes),
                Err(_) => return Poll::Ready(0),
            }
        }
    }

    /// Receives into the spare capacity of `buffer`.
    #[inline(never)]
    pub(super) fn poll_receive_into(&mut self, buffer: &mut Vec<u8>, cx: &mut Context<'_>) -> Poll<usize> {
        let len = buffer.len();
        buffer.resize(buffer.capacity().min(len + BYTES_AT_ONCE), 0);
        let received = self.poll_receive(&mut buffer[len..], cx);
        let bytes = if let Poll::Ready(bytes) = received { bytes } else { 0 };
        buffer.truncate(len + bytes);
        received
    }

    /// Encrypts and sends. What the socket does not take is kept, and its plaintext counts as sent once it is taken: so the
    /// next call must begin with the same bytes.
    #[inline(never)]
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<usize> {
        self.flush()?;
        if self.accepted > 0 {
            let sent = self.accepted.min(bytes.len());
            self.accepted -= sent;
            return Ok(sent);
        }
        if self.session.is_handshaking() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = &bytes[..bytes.len().min(BYTES_AT_ONCE)];
        ENCRYPTED.with_borrow_mut(|encrypted| {
            let len = self.session.encrypt(taken, encrypted).map_err(Error::other)?;
            let encrypted = &encrypted[..len];
            let sent = if self.session.unsent().is_empty() { self.socket.send(encrypted) } else { Ok(0) };
            match sent {
                Ok(sent) if sent == len => return Ok(taken.len()),
                Ok(sent) => self.session.keep_unsent(&encrypted[sent..]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.session.keep_unsent(encrypted),
                Err(error) => return Err(error),
            }
            self.accepted = taken.len();
            Err(ErrorKind::WouldBlock.into())
        })
    }

    /// Tells the peer that no more is sent, if the socket takes it at once.
    pub(super) fn close(&mut self) {
        if self.session.unsent().is_empty() {
            self.session.close();
            let _ = self.flush();
        }
    }

    /// Sends what was encrypted before.
    fn flush(&mut self) -> Result<()> {
        while !self.session.unsent().is_empty() {
            let sent = self.socket.send(self.session.unsent())?;
            self.session.advance(sent);
        }
        Ok(())
    }

    /// Receives once and decrypts. Returns the number of decrypted bytes in `buffer`, which may be 0.
    fn poll_decrypt(&mut self, buffer: &mut [u8], cx: &mut Context<'_>) -> Poll<Result<usize>> {
        RECEIVED.with_borrow_mut(|received| {
            received.resize(INCOMING_BYTES_MAX + BYTES_AT_ONCE, 0);
            let kept = self.session.incoming().len();
            // If no more is received than fits, nothing is left over.
            let end = buffer.len().clamp(kept + RECEIVE_MIN, kept + BYTES_AT_ONCE);
            received[..kept].copy_from_slice(self.session.incoming());
            match ready!(self.socket.poll_receive(&mut received[kept..end], cx)) {
                0 => Poll::Ready(Err(ErrorKind::UnexpectedEof.into())),
                bytes => Poll::Ready(self.decrypt(&mut received[..kept + bytes], buffer)),
            }
        })
    }

    fn decrypt(&mut self, received: &mut [u8], buffer: &mut [u8]) -> Result<usize> {
        match self.session.decrypt(received, buffer) {
            Ok(decrypted) => Ok(decrypted.bytes),
            Err(error @ SessionError::NoData) => Err(Error::new(ErrorKind::InvalidData, error)),
            Err(error) => Err(Error::other(error)),
        }
    }
}
