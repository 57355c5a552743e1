//! Clients of the port for operators that never finish, say too much, say nonsense or come in crowds: they hold nothing up,
//! neither there nor for clients of Redis's protocol.

use std::io::{Read, Write};
use std::net::TcpStream;

use wire::Random;

use crate::http::{Watched, get, send};
use crate::support::{eventually, ok};

#[test]
fn silent_and_half_said_requests_keep_nobody_out() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    let mut sockets: Vec<TcpStream> = Vec::new();
    // Ten times as many as may be connected.
    for number in 0..640 {
        let mut socket = TcpStream::connect(server.admin).unwrap();
        let beginning: &[u8] = match number % 4 {
            0 => b"",
            1 => b"GET /metr",
            2 => b"GET /metrics HTTP/1.1\r\nHost: a\r\nX: ",
            _ => b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n",
        };
        let _ = socket.write_all(beginning);
        sockets.push(socket);
        if number % 64 == 0 {
            ok(&mut client, "SET a 1");
            assert_eq!(get(server.admin, "/metrics").status, 200);
        }
    }
    assert_eq!(get(server.admin, "/health/ready").status, 200);
    assert_eq!(server.metrics().plain("redis_connected_clients"), 1.0, "they are no clients of the server");
    // All of them are closed, without another word from them.
    for mut socket in sockets {
        let _ = socket.read_to_end(&mut Vec::new());
    }
    eventually("their descriptors are free", || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", server.process_id())).expect("/proc is there").count();
        open < 64
    });
    ok(&mut client, "SET a 2");
}

#[test]
fn large_heads_are_refused() {
    let Some(server) = Watched::start(&[]) else { return };
    let long = format!("GET /metrics HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("GET /metrics HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(1000));
    let path = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(1 << 20));
    for text in [long, many, path] {
        // Refused with an answer, or in the middle of the request.
        let answer = send(server.admin, text.as_bytes()).unwrap_or_default();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&answer));
        assert_eq!(get(server.admin, "/metrics").status, 200);
    }
    let endless = std::thread::spawn({
        let address = server.admin;
        move || {
            let mut socket = TcpStream::connect(address).unwrap();
            while socket.write_all(&[b'a'; 4096]).is_ok() {}
        }
    });
    endless.join().expect("the server has closed the connection");
    ok(&mut server.connect(), "SET a 1");
}

#[test]
fn nonsense_is_refused_and_a_body_is_not_read() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    let mut random = Random::from_env();
    for round in 0..300 {
        let mut bytes = match round % 3 {
            0 => Vec::new(),
            1 => b"GET /metrics HTTP/1.1\r\n".to_vec(),
            _ => b"*1\r\n$4\r\nPING\r\n".to_vec(),
        };
        bytes.extend((0..random.below(400)).map(|_| random.below(256) as u8));
        bytes.extend(b"\r\n\r\n");
        let mut socket = TcpStream::connect(server.admin).unwrap();
        let _ = socket.write_all(&bytes);
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{bytes:?}");
        if round % 50 == 0 {
            ok(&mut client, "SET a 1");
        }
    }
    let answer =
        send(server.admin, b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\nabc").unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 405"), "{}", String::from_utf8_lossy(&answer));
    // Two requests in one write: the first is answered, and that is all.
    let twice = b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2);
    let answer = String::from_utf8(send(server.admin, &twice).unwrap_or_default()).unwrap();
    assert!(answer.matches("HTTP/1.1").count() <= 1, "{answer}");
    assert_eq!(get(server.admin, "/metrics").status, 200);
}

/// A crowd asks for metrics all the time, and does not read them: a client of Redis's protocol goes on.
#[test]
fn a_crowd_of_scrapers_does_not_hold_clients_up() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    let mut crowd = Vec::new();
    for number in 0..200 {
        let mut socket = TcpStream::connect(server.admin).unwrap();
        let _ = socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        crowd.push(socket);
        assert_eq!(client.run("INCR counter").integer(), number + 1);
    }
    drop(crowd);
    eventually("metrics are served", || get(server.admin, "/metrics").status == 200);
    assert_eq!(client.run("GET counter").text(), "200");
}
