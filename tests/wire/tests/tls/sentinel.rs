//! The Sentinel port of a server whose clients have no port without TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use wire::{Connection, free_address};

use crate::server::TlsServer;

#[test]
fn without_a_plain_port_the_sentinel_port_has_tls() {
    let sentinel = free_address();
    let port = sentinel.port().to_string();
    let args = ["--sentinel-port", &port, "--tls-auth-clients", "optional", "--tls-auth-clients-user", "CN"];
    let Some(server) = TlsServer::start(&args) else { return };
    let request = "SENTINEL GET-MASTER-ADDR-BY-NAME holdfast";
    let named = |port: u16| format!("[\"127.0.0.1\", \"{port}\"]");
    let mut plain = Connection::open(sentinel).expect("it listens");
    assert_eq!(plain.run(request).to_string(), named(server.address().port()));
    assert!(server.client().connect(sentinel).is_err(), "it has no TLS while clients need none");
    let mut control = server.connect_tls();
    assert_eq!(control.run("CONFIG SET requirepass secret").to_string(), "+OK");
    assert_eq!(control.run("CONFIG SET port 0").to_string(), "+OK");
    // As clients are let in: with a certificate, or with a password.
    let shown = server.authority.issue("default");
    let mut asks = server.client().showing(&shown).connect(sentinel).expect("a valid certificate");
    assert_eq!(asks.run(request).to_string(), named(server.tls_address.port()));
    let mut asks = server.client().connect(sentinel).expect("it has TLS");
    assert_eq!(asks.greeting.to_string(), "-NOAUTH Authentication required.");
    assert_eq!(asks.run("AUTH secret").to_string(), "+OK");
    assert_eq!(asks.run(request).to_string(), named(server.tls_address.port()));
    asks.request("SUBSCRIBE +switch-master");
    assert_eq!(asks.read().to_string(), "[\"subscribe\", \"+switch-master\", :1]");
    let mut plain = TcpStream::connect(sentinel).expect("it listens");
    plain.write_all(b"PING\r\n").expect("it is sent");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"+") && !answer.starts_with(b"-"), "{}", answer.escape_ascii());
}
