//! The TLS of one connection: encrypted bytes in, decrypted bytes out, and back. Does no input or output, and refuses to
//! know what the bytes mean.
//!
//! It uses rustls's interface without buffers of its own: the caller reads into a buffer that its thread shares, so that a
//! connection that waits owns no buffer. What is kept here is the beginning of a record whose rest has not arrived, bytes
//! that the socket did not take, and decrypted bytes that did not fit.

use crate::names;
use crate::options::UserField;
use rustls::ServerConfig;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError, UnbufferedStatus, WriteTraffic,
};
use std::sync::Arc;

/// The most bytes that may wait for the rest of a message. A record has at most 18,437 bytes; a message of the handshake
/// may be spread over several and has at most 65,535.
pub const INCOMING_BYTES_MAX: usize = 96 * 1024;
/// The most bytes that a client may send without a request among them: its handshake, empty records, changes of keys.
/// Without a limit it could keep the server busy with nothing.
const BYTES_WITHOUT_DATA_MAX: usize = 256 * 1024;

/// The server's side of a TLS connection.
pub struct Session {
    connection: UnbufferedServerConnection,
    user_field: UserField,
    /// The beginning of a record, or of a message of several records.
    incoming: Vec<u8>,
    /// Bytes since the last decrypted ones.
    bytes_without_data: usize,
    /// Decrypted bytes that did not fit; the first `plaintext_taken` are taken.
    plaintext: Vec<u8>,
    plaintext_taken: usize,
    /// Encrypted bytes that are to be sent before any others; the first `outgoing_sent` are sent.
    outgoing: Vec<u8>,
    outgoing_sent: usize,
    /// It has failed, or was closed.
    is_failed: bool,
    is_closed_by_peer: bool,
}

/// What became of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decrypted {
    /// Decrypted bytes in the caller's buffer.
    pub bytes: usize,
    /// The peer sends no more.
    pub is_closed: bool,
}

/// Why a session has ended. An alert that tells the peer may be in [`Session::unsent`].
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error("too many bytes without data")]
    NoData,
    #[error("the session is over")]
    HasFailed,
    #[error("cannot encrypt: {0}")]
    Encrypt(EncryptError),
}

impl SessionError {
    /// Says in plain words why a handshake has failed.
    pub fn handshake_failure(&self) -> String {
        use rustls::{AlertDescription as Alert, Error};
        let what = match self {
            SessionError::Tls(Error::AlertReceived(
                Alert::UnknownCA | Alert::BadCertificate | Alert::CertificateUnknown | Alert::CertificateExpired,
            )) => "the client does not accept the server's certificate",
            SessionError::Tls(Error::InvalidMessage(_)) => "the client does not speak TLS",
            SessionError::Tls(Error::NoCertificatesPresented) => "the client has sent no certificate",
            SessionError::Tls(Error::InvalidCertificate(_)) => "the server does not accept the client's certificate",
            SessionError::Tls(Error::PeerIncompatible(_)) => "the client has no version of TLS or cipher in common",
            _ => return self.to_string(),
        };
        format!("{what} ({self})")
    }
}

impl Session {
    pub(crate) fn new(config: Arc<ServerConfig>, user_field: UserField) -> Result<Session, rustls::Error> {
        Ok(Session {
            connection: UnbufferedServerConnection::new(config)?,
            user_field,
            incoming: Vec::new(),
            bytes_without_data: 0,
            plaintext: Vec::new(),
            plaintext_taken: 0,
            outgoing: Vec::new(),
            outgoing_sent: 0,
            is_failed: false,
            is_closed_by_peer: false,
        })
    }

    #[inline]
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// True when the peer has said that it sends no more, or when the session has failed.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.is_closed_by_peer || self.is_failed
    }

    /// The users that the client's certificate names, the preferred first. None before the end of the handshake.
    pub fn users(&self) -> Vec<String> {
        match self.connection.peer_certificates() {
            Some([own, ..]) if !self.is_handshaking() => names::users(self.user_field, own),
            _ => Vec::new(),
        }
    }

    /// Bytes that were received and wait for more. The caller puts them before the bytes that it receives.
    #[inline]
    pub fn incoming(&self) -> &[u8] {
        &self.incoming
    }

    /// Decrypts `received`, which begins with [`Session::incoming`], into `into`. What does not fit is kept for
    /// [`Session::take_plaintext`]: nothing is, if `into` is as long as `received`.
    pub fn decrypt(&mut self, received: &mut [u8], into: &mut [u8]) -> Result<Decrypted, SessionError> {
        if self.is_failed {
            return Err(SessionError::HasFailed);
        }
        self.bytes_without_data += received.len() - self.incoming.len();
        let (mut at, mut bytes) = (0, 0);
        let outcome = loop {
            let UnbufferedStatus { discard, state, .. } = self.connection.process_tls_records(&mut received[at..]);
            let is_done = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let payload = match record {
                            Ok(record) => record.payload,
                            Err(_) => break,
                        };
                        if !payload.is_empty() {
                            self.bytes_without_data = 0;
                        }
                        let fits = payload.len().min(into.len() - bytes);
                        into[bytes..bytes + fits].copy_from_slice(&payload[..fits]);
                        bytes += fits;
                        self.plaintext.extend_from_slice(&payload[fits..]);
                    }
                    false
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    encode(&mut data, &mut self.outgoing);
                    false
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    false
                }
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                    self.is_closed_by_peer = true;
                    true
                }
                // Early data is never accepted, since it can be replayed; there are no other states.
                Ok(_) => true,
                Err(error) => break Err(SessionError::Tls(error)),
            };
            at += discard;
            if is_done {
                break Ok(());
            }
        };
        let rest = &received[at.min(received.len())..];
        let is_over = self.is_closed_by_peer || outcome.is_err();
        self.incoming.clear();
        if rest.is_empty() || is_over {
            // Idle connections own no buffer.
            self.incoming = Vec::new();
        } else {
            self.incoming.reserve_exact(rest.len());
            self.incoming.extend_from_slice(rest);
        }
        if let Err(error) = outcome {
            self.fail();
            return Err(error);
        }
        if self.incoming.len() > INCOMING_BYTES_MAX || self.bytes_without_data > BYTES_WITHOUT_DATA_MAX {
            self.is_failed = true;
            return Err(SessionError::NoData);
        }
        Ok(Decrypted { bytes, is_closed: self.is_closed_by_peer })
    }

    /// Moves decrypted bytes that did not fit before. Returns their number.
    pub fn take_plaintext(&mut self, into: &mut [u8]) -> usize {
        let left = &self.plaintext[self.plaintext_taken..];
        let bytes = left.len().min(into.len());
        into[..bytes].copy_from_slice(&left[..bytes]);
        self.plaintext_taken += bytes;
        if self.plaintext_taken == self.plaintext.len() {
            (self.plaintext, self.plaintext_taken) = (Vec::new(), 0);
        }
        bytes
    }

    /// Encrypts `plaintext` at the start of `into`, which grows as needed. Returns the number of encrypted bytes. They are to
    /// be sent after [`Session::unsent`].
    pub fn encrypt(&mut self, plaintext: &[u8], into: &mut Vec<u8>) -> Result<usize, SessionError> {
        self.when_open(into, |traffic, room| traffic.encrypt(plaintext, room))
    }

    /// Adds the message that no more is sent to the bytes that are to be sent. From then on nothing is received either.
    pub fn close(&mut self) {
        if self.is_failed || self.is_handshaking() {
            return;
        }
        let mut message = Vec::new();
        if let Ok(bytes) = self.when_open(&mut message, |traffic, room| traffic.queue_close_notify(room)) {
            self.keep_unsent(&message[..bytes]);
        }
        self.is_failed = true;
    }

    /// Encrypted bytes that are to be sent before any others.
    #[inline]
    pub fn unsent(&self) -> &[u8] {
        &self.outgoing[self.outgoing_sent..]
    }

    /// Notes that the first bytes of [`Session::unsent`] were sent.
    pub fn advance(&mut self, sent: usize) {
        self.outgoing_sent += sent;
        if self.outgoing_sent == self.outgoing.len() {
            (self.outgoing, self.outgoing_sent) = (Vec::new(), 0);
        }
    }

    /// Keeps encrypted bytes that the socket did not take.
    pub fn keep_unsent(&mut self, bytes: &[u8]) {
        self.outgoing.reserve_exact(bytes.len());
        self.outgoing.extend_from_slice(bytes);
    }

    /// The memory of the buffers that it owns now.
    pub fn buffered_bytes(&self) -> usize {
        self.incoming.capacity() + self.plaintext.capacity() + self.outgoing.capacity()
    }

    /// Lets `work` encrypt into a buffer that is long enough. Messages of the session itself come before.
    fn when_open(
        &mut self,
        into: &mut Vec<u8>,
        work: impl Fn(&mut WriteTraffic<'_, ServerConnectionData>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> Result<usize, SessionError> {
        if self.is_failed {
            return Err(SessionError::HasFailed);
        }
        loop {
            // IMPORTANT: with the bytes that wait, since rustls knows positions in them.
            let UnbufferedStatus { state, .. } = self.connection.process_tls_records(&mut self.incoming);
            match state? {
                ConnectionState::WriteTraffic(mut traffic) => match work(&mut traffic, into) {
                    Err(EncryptError::InsufficientSize(InsufficientSizeError { required_size })) => {
                        into.resize(required_size, 0);
                    }
                    encrypted => return encrypted.map_err(SessionError::Encrypt),
                },
                ConnectionState::EncodeTlsData(mut data) => encode(&mut data, &mut self.outgoing),
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => {}
                _ => return Err(SessionError::HasFailed),
            }
        }
    }

    /// Ends the session. An alert that says why is to be sent.
    fn fail(&mut self) {
        self.is_failed = true;
        // IMPORTANT: only while there are messages: beyond them rustls would look for the bytes that were received.
        while self.connection.wants_write() {
            match self.connection.process_tls_records(&mut []).state {
                Ok(ConnectionState::EncodeTlsData(mut data)) => encode(&mut data, &mut self.outgoing),
                Ok(ConnectionState::ReadTraffic(mut traffic)) => while traffic.next_record().is_some() {},
                _ => return,
            }
        }
    }
}

/// Appends a message of the session itself.
fn encode(data: &mut EncodeTlsData<'_, ServerConnectionData>, into: &mut Vec<u8>) {
    let (at, mut room) = (into.len(), 0);
    loop {
        into.resize(at + room, 0);
        match data.encode(&mut into[at..]) {
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => room = required_size,
            Ok(_) | Err(EncodeError::AlreadyEncoded) => return,
        }
    }
}
