//! Sockets that the server listens on, as one process hands them to another. Refuses to know what is said on them.

use std::net::TcpListener;

/// A socket that is listened on, and whether its connections speak TLS.
pub(crate) struct ListeningSocket {
    pub(crate) socket: TcpListener,
    pub(crate) is_tls: bool,
}
