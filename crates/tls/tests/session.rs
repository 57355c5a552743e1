//! A session and a client of rustls talk over pipes in memory, in pieces of any size, whole and damaged.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;
use test_random::Random;
use tls::{Context, INCOMING_BYTES_MAX, Options, Session, SessionError, UserField};

struct Certificates {
    context: Context,
    client: Arc<ClientConfig>,
}

fn certificates(change: impl FnOnce(&mut Options)) -> Certificates {
    let dir = tempfile::tempdir().unwrap();
    let authority_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(params, authority_key);
    let (key, mut params) = (KeyPair::generate().unwrap(), CertificateParams::new(vec!["localhost".into()]).unwrap());
    params.distinguished_name.push(rcgen::DnType::CommonName, "alice");
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let mut options = Options {
        cert_file: write("crt", &certificate),
        key_file: write("key", &key.serialize_pem()),
        ca_cert_file: write("ca", &authority.pem()),
        session_cache: Some((100, Duration::from_secs(100))),
        user_field: UserField::CommonName,
        ..Options::default()
    };
    change(&mut options);
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let client = client.with_root_certificates(roots).with_client_auth_cert(chain, key).unwrap();
    Certificates { context: Context::load(&options).unwrap(), client: Arc::new(client) }
}

/// Both ends, and what is on its way between them.
struct Talk {
    client: ClientConnection,
    server: Session,
    /// What the server has decrypted.
    received: Vec<u8>,
}

impl Talk {
    fn new(certificates: &Certificates) -> Talk {
        let client = ClientConnection::new(certificates.client.clone(), "localhost".try_into().unwrap()).unwrap();
        Talk { client, server: certificates.context.accept().unwrap(), received: Vec::new() }
    }

    /// Lets the server receive bytes in pieces of up to `piece_max`.
    fn receive(&mut self, mut bytes: &[u8], random: &mut Random, piece_max: usize) -> Result<(), SessionError> {
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at((1 + random.below(piece_max)).min(bytes.len()));
            bytes = rest;
            let mut buffer = [self.server.incoming(), piece].concat();
            // Often too short for what is decrypted.
            let mut into = vec![0; random.below(2 * piece_max)];
            let decrypted = self.server.decrypt(&mut buffer, &mut into)?;
            self.received.extend_from_slice(&into[..decrypted.bytes]);
            let mut into = [0; 7];
            loop {
                match self.server.take_plaintext(&mut into) {
                    0 => break,
                    bytes => self.received.extend_from_slice(&into[..bytes]),
                }
            }
            assert!(self.server.buffered_bytes() <= 2 * INCOMING_BYTES_MAX, "{}", self.server.buffered_bytes());
        }
        Ok(())
    }

    /// Moves bytes both ways until there are none.
    fn exchange(&mut self, random: &mut Random, piece_max: usize) {
        loop {
            let mut to_server = Vec::new();
            while self.client.wants_write() {
                self.client.write_tls(&mut to_server).unwrap();
            }
            self.receive(&to_server, random, piece_max).unwrap();
            let to_client = self.server.unsent().to_vec();
            self.server.advance(to_client.len());
            let mut rest = &to_client[..];
            while !rest.is_empty() {
                self.client.read_tls(&mut rest).unwrap();
                self.client.process_new_packets().unwrap();
            }
            if to_server.is_empty() && to_client.is_empty() {
                return;
            }
        }
    }
}

#[test]
fn bytes_go_both_ways_in_pieces_of_any_size() {
    let certificates = certificates(|_| {});
    let mut random = Random::new();
    for piece_max in [1, 2, 100, 5_000, 70_000] {
        let mut talk = Talk::new(&certificates);
        assert!(talk.server.is_handshaking());
        talk.exchange(&mut random, piece_max);
        assert!(!talk.server.is_handshaking() && !talk.server.has_ended());
        assert_eq!(talk.server.users(), ["alice"]);
        assert_eq!(talk.server.buffered_bytes(), 0, "a session at rest owns no buffer");
        let text: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        for part in text.chunks(30_000) {
            talk.client.writer().write_all(part).unwrap();
            talk.exchange(&mut random, piece_max);
        }
        assert!(talk.received == text);
        let mut encrypted = Vec::new();
        let len = talk.server.encrypt(&text, &mut encrypted).unwrap();
        let (mut rest, mut back) = (&encrypted[..len], Vec::new());
        while !rest.is_empty() {
            talk.client.read_tls(&mut rest).unwrap();
            talk.client.process_new_packets().unwrap();
            let _ = talk.client.reader().read_to_end(&mut back);
        }
        assert!(back == text);
        talk.client.send_close_notify();
        talk.exchange(&mut random, piece_max);
        assert!(talk.server.has_ended());
        // It may still answer.
        let len = talk.server.encrypt(b"bye", &mut encrypted).unwrap();
        talk.server.keep_unsent(&encrypted[..len]);
        talk.server.close();
        talk.exchange(&mut random, piece_max);
    }
}

#[test]
fn keys_may_be_changed_at_any_time() {
    let certificates = certificates(|_| {});
    let mut random = Random::new();
    let mut talk = Talk::new(&certificates);
    talk.exchange(&mut random, 1000);
    for round in 0..20 {
        talk.client.refresh_traffic_keys().unwrap();
        talk.client.writer().write_all(b"request").unwrap();
        talk.exchange(&mut random, 50);
        assert_eq!(talk.received.len(), 7 * (round + 1));
        let mut encrypted = Vec::new();
        let len = talk.server.encrypt(b"reply", &mut encrypted).unwrap();
        let mut before = talk.server.unsent().to_vec();
        talk.server.advance(before.len());
        before.extend_from_slice(&encrypted[..len]);
        let (mut rest, mut back) = (&before[..], Vec::new());
        talk.client.read_tls(&mut rest).unwrap();
        talk.client.process_new_packets().unwrap();
        let _ = talk.client.reader().read_to_end(&mut back);
        assert_eq!(back, b"reply");
    }
}

#[test]
fn damaged_handshakes_fail_and_say_why() {
    let certificates = certificates(|_| {});
    let mut random = Random::new();
    for _ in 0..300 {
        let mut talk = Talk::new(&certificates);
        let mut hello = Vec::new();
        talk.client.write_tls(&mut hello).unwrap();
        for _ in 0..=random.below(3) {
            let at = random.below(hello.len());
            hello[at] = random.next() as u8;
        }
        if talk.receive(&hello, &mut random, 200).is_err() {
            assert!(talk.server.has_ended());
            assert!(talk.receive(b"more", &mut random, 10).is_err(), "a session that has failed stays so");
            assert!(talk.server.encrypt(b"text", &mut Vec::new()).is_err());
        }
    }
}

#[test]
fn a_client_cannot_send_for_ever_without_a_request() {
    let certificates = certificates(|_| {});
    let mut random = Random::new();
    // A record that announces a message of 16 megabytes, and goes on.
    let mut talk = Talk::new(&certificates);
    let mut bytes = vec![22, 3, 1, 0x40, 0];
    bytes.extend([1, 0xff, 0xff, 0xff]);
    bytes.resize(5 + 0x4000, 0);
    let endless = bytes.repeat(100);
    assert!(talk.receive(&endless, &mut random, 20_000).is_err());
    // Empty records after the handshake.
    let mut talk = Talk::new(&certificates);
    talk.exchange(&mut random, 1000);
    let outcome = (0..100_000).find_map(|_| {
        talk.client.refresh_traffic_keys().unwrap();
        let mut bytes = Vec::new();
        talk.client.write_tls(&mut bytes).unwrap();
        talk.receive(&bytes, &mut random, 20_000).err()
    });
    assert!(outcome.is_some());
}

#[test]
fn a_certificate_and_a_key_must_belong_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for name in ["a", "b"] {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".into()]).unwrap().self_signed(&key).unwrap();
        std::fs::write(path(&format!("{name}.crt")), certificate.pem()).unwrap();
        std::fs::write(path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    let load = |certificate: &str, key: &str| {
        let (cert_file, key_file) = (path(certificate), path(key));
        let client_certificates = tls::ClientCertificates::Ignored;
        Context::load(&Options { cert_file, key_file, client_certificates, ..Options::default() })
    };
    assert!(load("a.crt", "a.key").is_ok());
    assert!(matches!(load("a.crt", "b.key"), Err(tls::LoadError::Mismatch(_))));
    assert!(matches!(load("a.key", "a.key"), Err(tls::LoadError::Certificate { .. })));
    assert!(matches!(load("a.crt", "b.crt"), Err(tls::LoadError::Key { .. })));
}
