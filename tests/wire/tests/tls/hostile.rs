//! Clients that do not speak TLS, or never finish: they cost a bounded time and memory, and delay no one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use wire::Random;

use crate::server::TlsServer;
use crate::support::{eventually, info, ok};

#[test]
fn clients_that_say_nothing_are_closed_while_others_work() {
    let Some(server) = TlsServer::start(&["--tls-handshake-timeout", "3"]) else { return };
    let mut good = server.connect_tls();
    let idle: Vec<TcpStream> = (0..1000).map(|_| TcpStream::connect(server.tls_address).unwrap()).collect();
    let mut control = server.connect();
    eventually("all are connected", || info::<usize>(&mut control, "connected_clients") == 1002);
    for number in 1..=1000 {
        assert_eq!(good.run("INCR counter").integer(), number);
    }
    // New clients get in beside them.
    assert_eq!(server.connect_tls().run("PING").to_string(), "+PONG");
    eventually("they are gone", || info::<usize>(&mut control, "connected_clients") == 2);
    for mut socket in idle {
        assert_eq!(socket.read(&mut [0; 10]).unwrap_or(0), 0);
    }
    assert_eq!(good.run("GET counter").text(), "1000", "a handshake that is over is not timed");
}

#[test]
fn handshakes_that_do_not_go_on_are_ended() {
    let Some(server) = TlsServer::start(&["--tls-handshake-timeout", "2"]) else { return };
    let hello = client_hello(&server);
    let mut control = server.connect();
    // A whole hello, half of one, and one that comes byte by byte and never ends.
    let mut whole = TcpStream::connect(server.tls_address).unwrap();
    whole.write_all(&hello).unwrap();
    let mut half = TcpStream::connect(server.tls_address).unwrap();
    half.write_all(&hello[..hello.len() / 2]).unwrap();
    let mut slow = TcpStream::connect(server.tls_address).unwrap();
    let mut bytes = hello.iter().take(hello.len() - 1);
    eventually("they are gone", || {
        let _ = bytes.next().map(|byte| slow.write_all(&[*byte]));
        info::<usize>(&mut control, "connected_clients") == 1
    });
}

#[test]
fn a_handshake_may_come_byte_by_byte() {
    let Some(server) = TlsServer::start(&["--tls-auth-clients", "no"]) else { return };
    let mut session = rustls::ClientConnection::new(server.client().config(), "localhost".try_into().unwrap()).unwrap();
    let mut socket = TcpStream::connect(server.tls_address).unwrap();
    socket.set_nodelay(true).unwrap();
    session.writer().write_all(b"PING\r\n").unwrap();
    let mut reply = Vec::new();
    while !reply.ends_with(b"\r\n") {
        let mut bytes = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut bytes).unwrap();
        }
        for byte in bytes {
            socket.write_all(&[byte]).unwrap();
        }
        session.read_tls(&mut socket).unwrap();
        session.process_new_packets().unwrap();
        let _ = session.reader().read_to_end(&mut reply);
    }
    assert_eq!(reply, b"+PONG\r\n");
}

#[test]
fn garbage_ends_a_connection_and_nothing_else() {
    let Some(server) = TlsServer::start(&[]) else { return };
    let mut random = Random::from_env();
    let hello = client_hello(&server);
    let mut good = server.connect_tls();
    for round in 0..300 {
        let mut bytes = match round % 3 {
            0 => (0..=random.below(2000)).map(|_| random.below(256) as u8).collect(),
            1 => hello.clone(),
            _ => b"*1\r\n$4\r\nPING\r\n".to_vec(),
        };
        if round % 3 == 1 {
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = random.below(256) as u8;
            }
            bytes.extend((0..random.below(100)).map(|_| random.below(256) as u8));
        }
        let mut socket = TcpStream::connect(server.tls_address).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let _ = socket.write_all(&bytes);
        let _ = socket.read(&mut [0; 100]);
        assert_eq!(good.run("PING").to_string(), "+PONG");
    }
    eventually("they are gone", || info::<usize>(&mut server.connect(), "connected_clients") == 2);
}

/// A client that has finished its handshake may send garbage as well.
#[test]
fn garbage_after_a_handshake_ends_the_connection() {
    let Some(server) = TlsServer::start(&[]) else { return };
    let mut client = server.connect_tls();
    client.socket().write_all(&[23, 3, 3, 0, 100]).unwrap();
    client.socket().write_all(&[7; 100]).unwrap();
    assert!(!client.ends_cleanly(), "an alert says why");
    assert_eq!(server.connect_tls().run("PING").to_string(), "+PONG");
}

/// Half of `maxclients` at most: the other half is left to those who say something.
#[test]
fn handshakes_take_half_of_the_clients_and_give_way_to_each_other() {
    let Some((server, mut control)) = TlsServer::start_with_control(&[]) else { return };
    let mut good = server.connect_tls();
    ok(&mut control, "CONFIG SET maxclients 12");
    let idle: Vec<TcpStream> = (0..6).map(|_| TcpStream::connect(server.tls_address).unwrap()).collect();
    eventually("all are connected", || info::<usize>(&mut control, "connected_clients") == 8);
    assert_eq!(control.run("CLIENT LIST").text().lines().count(), 8, "they are listed");
    // One that comes beside them is refused until they have had a second to say something.
    let late = server.client().showing(&server.authority.issue("client"));
    let mut late_connection = None;
    eventually("a client gets in", || {
        late_connection = late.connect(server.tls_address).ok();
        late_connection.is_some()
    });
    eventually("one has given way", || info::<usize>(&mut control, "connected_clients") == 8);
    // The plain port and those who are connected notice nothing.
    let plain: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for mut plain in plain {
        assert_eq!(plain.run("PING").to_string(), "+PONG");
    }
    assert_eq!(good.run("PING").to_string(), "+PONG");
    drop((idle, late_connection));
    eventually("they are gone", || info::<usize>(&mut control, "connected_clients") == 2);
}

#[test]
fn handshakes_count_as_clients() {
    let Some((server, mut control)) = TlsServer::start_with_control(&[]) else { return };
    let _plain: Vec<_> = (0..5).map(|_| server.connect()).collect();
    ok(&mut control, "CONFIG SET maxclients 10");
    let _idle: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(server.tls_address).unwrap()).collect();
    eventually("all are connected", || info::<usize>(&mut control, "connected_clients") == 10);
    let mut refused = TcpStream::connect(server.tls_address).unwrap();
    assert_eq!(refused.read(&mut [0; 100]).unwrap_or(0), 0, "it is closed without a word that is not TLS");
    assert_eq!(info::<usize>(&mut control, "rejected_connections"), 1);
}

#[test]
fn a_stop_does_not_wait_for_handshakes() {
    let Some(mut server) = TlsServer::start(&[]) else { return };
    let _idle: Vec<TcpStream> = (0..10).map(|_| TcpStream::connect(server.tls_address).unwrap()).collect();
    let mut control = server.connect();
    eventually("all are connected", || info::<usize>(&mut control, "connected_clients") == 11);
    server.signal("TERM");
    assert_eq!(server.server_mut().wait_for_end().code(), Some(0));
}

/// The first bytes of a client.
pub(crate) fn client_hello(server: &TlsServer) -> Vec<u8> {
    let mut session = rustls::ClientConnection::new(server.client().config(), "localhost".try_into().unwrap()).unwrap();
    let mut hello = Vec::new();
    session.write_tls(&mut hello).unwrap();
    hello
}
