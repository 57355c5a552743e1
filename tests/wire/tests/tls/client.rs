//! A client of TLS: rustls and a blocking socket. Knows nothing of the server.

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CipherSuite, ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use wire::{Reply, split_args};

use crate::certificates::{Authority, Issued};

/// What a client trusts, shows and speaks.
pub(crate) struct Client {
    roots: RootCertStore,
    shown: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    versions: Vec<&'static SupportedProtocolVersion>,
    provider: CryptoProvider,
}

impl Client {
    pub(crate) fn trusting(authority: &Authority) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(authority.der()).unwrap();
        Client { roots, shown: None, versions: rustls::ALL_VERSIONS.to_vec(), provider: aws_lc_rs::default_provider() }
    }

    pub(crate) fn showing(mut self, issued: &Issued) -> Client {
        let chain = CertificateDer::pem_slice_iter(issued.certificate.as_bytes()).map(Result::unwrap).collect();
        self.shown = Some((chain, PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap()));
        self
    }

    pub(crate) fn speaking(mut self, version: &'static SupportedProtocolVersion) -> Client {
        self.versions = vec![version];
        self
    }

    pub(crate) fn with_cipher(mut self, suite: CipherSuite) -> Client {
        self.provider.cipher_suites.retain(|known| known.suite() == suite);
        self
    }

    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(Arc::new(self.provider.clone()))
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(self.roots.clone());
        Arc::new(match &self.shown {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder.with_client_auth_cert(chain.clone(), key.clone_key()).unwrap(),
        })
    }

    /// Connects and waits for the reply to a PING: with TLS 1.3 a client learns only then that it is not let in.
    pub(crate) fn connect(&self, address: SocketAddr) -> io::Result<TlsConnection> {
        TlsConnection::open(address, self.config())
    }
}

pub(crate) struct TlsConnection {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    /// The first reply.
    pub(crate) greeting: Reply,
}

impl TlsConnection {
    pub(crate) fn open(address: SocketAddr, config: Arc<ClientConfig>) -> io::Result<TlsConnection> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        let session = ClientConnection::new(config, "localhost".try_into().unwrap()).map_err(io::Error::other)?;
        let stream = BufReader::new(StreamOwned::new(session, socket));
        let mut connection = TlsConnection { stream, greeting: Reply::Closed };
        connection.send(b"PING\r\n")?;
        connection.greeting = Reply::read(&mut connection.stream)?;
        match connection.greeting {
            Reply::Closed => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(connection),
        }
    }

    pub(crate) fn session(&self) -> &ClientConnection {
        &self.stream.get_ref().conn
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.stream.get_ref().sock
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(bytes)?;
        stream.flush()
    }

    pub(crate) fn request(&mut self, line: &str) {
        let args = split_args(line).unwrap();
        self.request_args(&args);
    }

    pub(crate) fn request_args(&mut self, args: &[impl AsRef<[u8]>]) {
        let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
        for arg in args {
            let arg = arg.as_ref();
            bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            bytes.extend_from_slice(arg);
            bytes.extend_from_slice(b"\r\n");
        }
        self.send(&bytes).unwrap();
    }

    pub(crate) fn read(&mut self) -> Reply {
        Reply::read(&mut self.stream).unwrap()
    }

    pub(crate) fn run(&mut self, line: &str) -> Reply {
        self.request(line);
        self.read()
    }

    /// Says that no more is sent.
    pub(crate) fn send_close_notify(&mut self) {
        let stream = self.stream.get_mut();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
    }

    /// Reads to the end. True if the server has said that there is no more.
    pub(crate) fn ends_cleanly(&mut self) -> bool {
        // Without the server's message, rustls makes the end an error.
        self.stream.read_to_end(&mut Vec::new()).is_ok()
    }
}
