//! TLS in front of a server that has none, such as a Valkey that was built without it. Knows no protocol.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::certificates::Files;

/// How long one side is waited for before the other one is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Accepts TLS connections, and carries what they say to a server that speaks none. Returns where.
pub(crate) fn start(target: SocketAddr, files: &Files) -> SocketAddr {
    let config = Arc::new(config(files));
    let listener = TcpListener::bind("127.0.0.1:0").expect("cannot bind to a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let config = config.clone();
            thread::spawn(move || relay(client, target, config));
        }
    });
    address
}

fn config(files: &Files) -> ServerConfig {
    let read = |path| fs::read(path).expect("cannot read a file of the test");
    let certificates = CertificateDer::pem_slice_iter(&read(&files.certificate)).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)).expect("the key is in PEM");
    ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_no_client_auth()
        .with_single_cert(certificates.expect("the certificate is in PEM"), key)
        .expect("the key is that of the certificate")
}

/// `None` when one side has gone.
fn relay(client: TcpStream, target: SocketAddr, config: Arc<ServerConfig>) -> Option<()> {
    let mut server = TcpStream::connect(target).ok()?;
    for socket in [&client, &server] {
        socket.set_read_timeout(Some(LOOK_EVERY)).ok()?;
    }
    let mut client = StreamOwned::new(ServerConnection::new(config).ok()?, client);
    loop {
        carry(&mut client, &mut server)?;
        carry(&mut server, &mut client)?;
    }
}

fn carry(from: &mut impl Read, to: &mut impl Write) -> Option<()> {
    let mut buffer = [0; 16 << 10];
    match from.read(&mut buffer) {
        Ok(0) => None,
        Ok(count) => to.write_all(&buffer[..count]).and_then(|()| to.flush()).ok(),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Some(()),
        Err(_) => None,
    }
}
