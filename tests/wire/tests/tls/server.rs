//! A server with a port for TLS, its files and its authority.

use std::net::SocketAddr;
use std::ops::Deref;
use wire::{Connection, free_address};

use crate::certificates::{Authority, Files};
use crate::client::{Client, TlsConnection};
use crate::support::{Dir, Holdfast};

pub(crate) struct TlsServer {
    server: Holdfast,
    pub(crate) tls_address: SocketAddr,
    pub(crate) authority: Authority,
    pub(crate) files: Files,
    _dir: Dir,
}

impl TlsServer {
    /// Starts one with these flags more; `None` where there is no holdfast to start.
    pub(crate) fn start(args: &[&str]) -> Option<TlsServer> {
        let authority = Authority::new("authority of tests");
        let dir = Dir::fresh();
        let files = Files::write(dir.path(), &authority.issue("server"), &authority);
        let tls_address = free_address();
        let flags = flags(&files, tls_address);
        let all: Vec<&str> = flags.iter().map(String::as_str).chain(args.iter().copied()).collect();
        let server = Holdfast::start(&all)?;
        Some(TlsServer { server, tls_address, authority, files, _dir: dir })
    }

    /// The same, with a connection without TLS.
    pub(crate) fn start_with_control(args: &[&str]) -> Option<(TlsServer, Connection)> {
        let server = TlsServer::start(args)?;
        let control = server.connect();
        Some((server, control))
    }

    pub(crate) fn server_mut(&mut self) -> &mut Holdfast {
        &mut self.server
    }

    /// A client that trusts the server and shows no certificate.
    pub(crate) fn client(&self) -> Client {
        Client::trusting(&self.authority)
    }

    /// A connection of a client that shows a certificate.
    pub(crate) fn connect_tls(&self) -> TlsConnection {
        self.client().showing(&self.authority.issue("client")).connect(self.tls_address).expect("a valid certificate")
    }
}

impl Deref for TlsServer {
    type Target = Holdfast;

    fn deref(&self) -> &Holdfast {
        &self.server
    }
}

/// The flags of a server with these files.
pub(crate) fn flags(files: &Files, tls_address: SocketAddr) -> Vec<String> {
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    [
        ("--tls-port", tls_address.port().to_string()),
        ("--tls-cert-file", path(&files.certificate)),
        ("--tls-key-file", path(&files.key)),
        ("--tls-ca-cert-file", path(&files.authority)),
        ("--loglevel", "debug".to_owned()),
    ]
    .into_iter()
    .flat_map(|(name, value)| [name.to_owned(), value])
    .collect()
}
