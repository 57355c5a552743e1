//! What a client may send to the port for TLS: any bytes, or a conversation of a real client with some bytes changed, in
//! pieces of any size. The session must neither panic nor keep more than its limits, a session that has failed stays so,
//! and what it decrypts is what the client has sent.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::Write;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tls::{Context, INCOMING_BYTES_MAX, Options, Session, UserField};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    /// Sizes of the pieces, less one; used again from the start when they run out.
    pieces: Vec<u8>,
    conversation: Conversation<'a>,
}

#[derive(Arbitrary, Debug)]
enum Conversation<'a> {
    Bytes(&'a [u8]),
    /// Bytes of the client that are changed, by their position, and what it sends after the handshake.
    Client {
        changes: Vec<(u16, u8)>,
        requests: &'a [u8],
        closes: bool,
    },
}

fuzz_target!(|input: Input<'_>| {
    let (context, client) = setup();
    let mut session = context.accept().expect("a new session");
    let mut pieces = input.pieces.iter().map(|less_one| usize::from(*less_one) + 1).cycle();
    let mut piece = || pieces.next().unwrap_or(1);
    match input.conversation {
        Conversation::Bytes(bytes) => drop(receive(&mut session, bytes, &mut piece)),
        Conversation::Client { changes, requests, closes } => {
            let mut client = ClientConnection::new(client.clone(), "localhost".try_into().unwrap()).unwrap();
            client.writer().write_all(requests).expect("it is buffered");
            let (mut sent, mut received, mut closes) = (0, Vec::new(), closes);
            // A handshake has fewer turns.
            for _ in 0..10 {
                // Not before: a client of rustls that has closed must not receive anything that is wrong.
                if closes && !client.is_handshaking() {
                    client.send_close_notify();
                    closes = false;
                }
                let mut bytes = Vec::new();
                while client.wants_write() {
                    client.write_tls(&mut bytes).expect("memory takes all");
                }
                for (at, value) in &changes {
                    if let Some(byte) = usize::from(*at).checked_sub(sent).and_then(|at| bytes.get_mut(at)) {
                        *byte = *value;
                    }
                }
                sent += bytes.len();
                match receive(&mut session, &bytes, &mut piece) {
                    Some(decrypted) => received.extend(decrypted),
                    None => return,
                }
                let reply = session.unsent().to_vec();
                session.advance(reply.len());
                let mut rest = &reply[..];
                while !rest.is_empty() {
                    if client.read_tls(&mut rest).is_err() || client.process_new_packets().is_err() {
                        return;
                    }
                }
            }
            if !session.is_handshaking() {
                assert!(requests.starts_with(&received));
            }
        }
    }
});

/// Lets the session receive bytes in pieces. Returns what it decrypts; `None` if it has failed.
fn receive(session: &mut Session, mut bytes: &[u8], piece: &mut impl FnMut() -> usize) -> Option<Vec<u8>> {
    let mut received = Vec::new();
    while !bytes.is_empty() && !session.has_ended() {
        let (now, rest) = bytes.split_at(piece().min(bytes.len()));
        bytes = rest;
        let mut buffer = [session.incoming(), now].concat();
        let mut into = vec![0; piece()];
        match session.decrypt(&mut buffer, &mut into) {
            Ok(decrypted) => received.extend_from_slice(&into[..decrypted.bytes]),
            Err(_) => {
                assert!(session.has_ended() && session.encrypt(b"text", &mut Vec::new()).is_err());
                return None;
            }
        }
        loop {
            match session.take_plaintext(&mut into) {
                0 => break,
                bytes => received.extend_from_slice(&into[..bytes]),
            }
        }
        assert!(session.buffered_bytes() <= 2 * INCOMING_BYTES_MAX);
        let _ = session.users();
    }
    Some(received)
}

/// A server that asks for certificates, and a client that has one.
fn setup() -> &'static (Context, Arc<ClientConfig>) {
    static SETUP: OnceLock<(Context, Arc<ClientConfig>)> = OnceLock::new();
    SETUP.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let authority_key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&authority_key).expect("an authority");
        let issuer = Issuer::new(params, authority_key);
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".into()]).expect("a name");
        let certificate = params.signed_by(&key, &issuer).expect("a certificate").pem();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path.to_str().expect("a plain path").to_owned()
        };
        let context = Context::load(&Options {
            cert_file: write("crt", &certificate),
            key_file: write("key", &key.serialize_pem()),
            ca_cert_file: write("ca", &authority.pem()),
            client_certificates: tls::ClientCertificates::Optional,
            session_cache: Some((100, Duration::from_secs(100))),
            user_field: UserField::CommonName,
            ..Options::default()
        });
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).expect("an authority");
        let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let client =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
        let client = client.with_root_certificates(roots).with_client_auth_cert(chain, key).expect("a client");
        (context.expect("a context"), Arc::new(client))
    })
}
