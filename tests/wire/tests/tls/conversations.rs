//! What clients do, over TLS: it is the same as without.

use rustls::version::{TLS12, TLS13};
use std::io::Write;
use std::net::Shutdown;
use wire::Reply;

use crate::server::TlsServer;
use crate::support::{eventually, info, ok};

#[test]
fn large_values_go_both_ways() {
    let Some(server) = TlsServer::start(&["--tls-auth-clients", "no"]) else { return };
    for version in [&TLS12, &TLS13] {
        let mut client = server.client().speaking(version).connect(server.tls_address).unwrap();
        for bytes in [1, 16_383, 16_384, 16_385, 100_000, 5_000_000] {
            let value: Vec<u8> = (0..bytes).map(|at: u32| (at % 251) as u8).collect();
            client.request_args(&[b"SET", &b"a"[..], &value]);
            assert_eq!(client.read().to_string(), "+OK");
            client.request("GET a");
            assert!(client.read().bytes() == value, "{bytes}");
        }
        // Small and large ones in one pipeline.
        for _ in 0..20 {
            client.request("GET a");
            client.request("STRLEN a");
        }
        for _ in 0..20 {
            assert_eq!(client.read().bytes().len(), 5_000_000);
            assert_eq!(client.read().integer(), 5_000_000);
        }
    }
}

#[test]
fn a_long_pipeline_is_answered_in_order() {
    let Some(server) = TlsServer::start(&[]) else { return };
    let mut client = server.connect_tls();
    let requests: String = (0..20_000).map(|number| format!("ECHO {number}\r\n")).collect();
    let mut sender = requests.as_bytes();
    // In pieces, since the server stops to read from a client that does not.
    for number in 0..20_000 {
        if number % 100 == 0 && !sender.is_empty() {
            let (now, later) = sender.split_at(sender.len().min(2_000));
            client.send(now).unwrap();
            sender = later;
        }
        assert_eq!(client.read().text(), number.to_string());
    }
}

#[test]
fn requests_may_come_byte_by_byte() {
    let Some(server) = TlsServer::start(&[]) else { return };
    let mut client = server.connect_tls();
    for byte in b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nhello\r\n" {
        client.send(&[*byte]).unwrap();
    }
    assert_eq!(client.read().to_string(), "+OK");
}

#[test]
fn messages_are_pushed() {
    let Some(server) = TlsServer::start(&[]) else { return };
    let (mut subscriber, mut publisher) = (server.connect_tls(), server.connect());
    subscriber.run("SUBSCRIBE news");
    for number in 0..1000 {
        assert_eq!(publisher.run(&format!("PUBLISH news {number}")).integer(), 1);
    }
    for number in 0..1000 {
        assert_eq!(subscriber.read().items()[2].text(), number.to_string());
    }
    let mut tracker = server.connect_tls();
    assert!(!tracker.run("HELLO 3").is_error());
    assert_eq!(tracker.run("CLIENT TRACKING ON").to_string(), "+OK");
    tracker.run("GET a");
    ok(&mut publisher, "SET a 1");
    assert!(tracker.read().to_string().contains("invalidate"));
}

#[test]
fn commands_may_wait() {
    let Some(server) = TlsServer::start(&[]) else { return };
    let (mut waiting, mut other) = (server.connect_tls(), server.connect());
    waiting.request("BLPOP jobs 0");
    eventually("it waits", || info::<u32>(&mut other, "blocked_clients") == 1);
    assert_eq!(other.run("RPUSH jobs 1").integer(), 1);
    assert_eq!(waiting.read().items()[1].text(), "1");
    waiting.request("BLPOP jobs 0.05");
    assert!(waiting.read().is_nil());
    // One that goes away no longer waits.
    waiting.request("BLPOP jobs 0");
    eventually("it waits", || info::<u32>(&mut other, "blocked_clients") == 1);
    drop(waiting);
    eventually("it is gone", || info::<u32>(&mut other, "blocked_clients") == 0);
}

#[test]
fn both_sides_say_that_they_close() {
    let Some(server) = TlsServer::start(&[]) else { return };
    let mut client = server.connect_tls();
    assert_eq!(client.run("QUIT").to_string(), "+OK");
    assert!(client.ends_cleanly(), "the server says that no more comes");

    // A client that sends no more gets its replies.
    let mut client = server.connect_tls();
    for _ in 0..100 {
        client.request("PING");
    }
    client.send_close_notify();
    for _ in 0..100 {
        assert_eq!(client.read().to_string(), "+PONG");
    }
    assert!(client.ends_cleanly());

    // One that only closes its socket is a client that has gone.
    let mut client = server.connect_tls();
    client.request("PING");
    client.socket().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read().to_string(), "+PONG");
    assert!(client.ends_cleanly());
}

#[test]
fn a_client_that_reads_slowly_gets_all_and_takes_bounded_memory() {
    let Some(server) = TlsServer::start(&[]) else { return };
    let mut client = server.connect_tls();
    let value = vec![b'x'; 1_000_000];
    client.request_args(&[b"SET", &b"a"[..], &value]);
    client.read();
    let requests = "GET a\r\n".repeat(50);
    client.send(requests.as_bytes()).unwrap();
    let mut control = server.connect();
    let line = |control: &mut wire::Connection| {
        let all = control.run("CLIENT LIST").text().to_owned();
        all.lines().find(|line| !line.contains("cmd=client|list")).unwrap_or_default().to_owned()
    };
    eventually("its output waits", || !line(&mut control).contains(" omem=0 "));
    for _ in 0..50 {
        assert_eq!(client.read().bytes().len(), value.len());
    }
    eventually("nothing waits", || line(&mut control).contains(" omem=0 "));
    assert_eq!(client.run("PING").to_string(), "+PONG");
}

#[test]
fn clients_are_listed_killed_and_moved_like_others() {
    let Some((server, mut control)) = TlsServer::start_with_control(&["--threads", "2", "--worker-balance", "gather"])
    else {
        return;
    };
    let mut clients: Vec<_> = (0..8).map(|_| server.connect_tls()).collect();
    let list = control.run("CLIENT LIST TYPE normal").text().to_owned();
    let port = format!("laddr=127.0.0.1:{} ", server.tls_address.port());
    assert_eq!(list.lines().filter(|line| line.contains(&port)).count(), 8, "{list}");
    for setting in ["spread", "gather", "spread"] {
        ok(&mut control, &format!("CONFIG SET worker-balance {setting}"));
        std::thread::sleep(std::time::Duration::from_millis(300));
        for client in &mut clients {
            assert_eq!(client.run("PING").to_string(), "+PONG");
        }
    }
    let id = clients[0].run("CLIENT ID").integer();
    assert_eq!(control.run(&format!("CLIENT KILL ID {id}")).integer(), 1);
    clients[0].send(b"PING\r\n").unwrap_or_default();
    assert!(matches!(Reply::read(&mut std::io::BufReader::new(Closing(&mut clients[0]))), Ok(Reply::Closed) | Err(_)));
}

/// A connection of which only the end is of interest.
struct Closing<'c>(&'c mut crate::client::TlsConnection);

impl std::io::Read for Closing<'_> {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        self.0.ends_cleanly();
        self.0.socket().flush()?;
        Ok(0)
    }
}
