//! Clients that go: in the middle of a request, with replies unread, or only half.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use wire::{Connection, Reply};

use crate::support::{Holdfast, eventually, info, ok};

#[test]
fn a_client_that_vanishes_in_the_middle_of_a_request_leaves_nothing_behind() {
    let Some((server, mut asker)) = Holdfast::start_with_client(&["--threads", "2"]) else { return };
    eventually("it is alone", || info::<u32>(&mut asker, "connected_clients") == 1);
    let before: u64 = info(&mut asker, "used_memory");
    let whole = [&b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n"[..], &[b'v'; 100_000], b"\r\n"].concat();
    for cut in [1, 3, 4, 7, 9, 13, 20, 25, 30, 60_000, whole.len() - 2, whole.len() - 1] {
        for _ in 0..5 {
            let mut client = server.connect();
            client.queue_raw(&whole[..cut]);
            client.flush();
        }
    }
    eventually("they are gone", || info::<u32>(&mut asker, "connected_clients") == 1);
    assert_eq!(asker.run("EXISTS k").integer(), 0, "half a request is none");
    eventually("their memory comes back", || info::<u64>(&mut asker, "used_memory") < before + (1 << 20));
}

#[test]
fn a_client_that_vanishes_with_replies_unread_leaves_nothing_behind() {
    let Some((server, mut asker)) = Holdfast::start_with_client(&["--threads", "2"]) else { return };
    ok(&mut asker, &format!("SET big {}", "v".repeat(64 * 1024)));
    eventually("it is alone", || info::<u32>(&mut asker, "connected_clients") == 1);
    let before: u64 = info(&mut asker, "used_memory");
    for half_close_first in [false, true] {
        for _ in 0..4 {
            let mut client = server.connect();
            for _ in 0..300 {
                client.queue_line("GET big");
            }
            client.flush();
            assert_eq!(client.read().bytes().len(), 64 * 1024);
            if half_close_first {
                client.close_sending();
            }
        }
        eventually("they are gone", || info::<u32>(&mut asker, "connected_clients") == 1);
        eventually("their memory comes back", || info::<u64>(&mut asker, "used_memory") < before + (1 << 20));
    }
}

#[test]
fn half_closed_clients_get_all_their_replies() {
    let Some(server) = Holdfast::start(&["--threads", "2"]) else { return };
    for requests in [1, 1000, 50_000] {
        let mut client = server.connect();
        for _ in 0..requests {
            client.queue_line(&format!("INCR counter:{requests}"));
        }
        client.close_sending();
        for count in 1..=requests {
            assert_eq!(client.read(), Reply::Integer(count));
        }
        assert_eq!(client.read(), Reply::Closed);
    }
}

/// More than the sockets' buffers hold: the server has to wait until its client reads.
#[test]
fn half_closed_clients_get_large_replies_too() {
    let Some(server) = Holdfast::start(&[]) else { return };
    let value = vec![b'v'; 1 << 20];
    let mut client = server.connect();
    assert_eq!(client.run_with("SET big", &[&value]).to_string(), "+OK");
    for _ in 0..40 {
        client.queue_line("GET big");
    }
    client.close_sending();
    let mut asker = server.connect();
    eventually("the server has read it all", || asker.run("GET nosuch").is_nil());
    for _ in 0..40 {
        assert_eq!(client.read().bytes().len(), value.len());
    }
    assert_eq!(client.read(), Reply::Closed);
}

/// As `printf 'PING\r\n' | nc -N` does it.
#[test]
fn inline_requests_from_a_plain_socket() {
    let Some(server) = Holdfast::start(&[]) else { return };
    let mut socket = TcpStream::connect(server.address()).expect("cannot connect");
    socket.write_all(b"PING\r\nset a \"x y\"\nGET a\r\nnosuch\r\nHSET h f 1\r\n").expect("cannot send");
    socket.shutdown(Shutdown::Write).expect("cannot shut down");
    let mut received = String::new();
    socket.read_to_string(&mut received).expect("cannot read");
    assert_eq!(
        received,
        "+PONG\r\n+OK\r\n$3\r\nx y\r\n-ERR unknown command 'nosuch', with args beginning with: \r\n:1\r\n"
    );
}

#[test]
fn connections_that_come_and_go_are_all_accounted_for() {
    let Some((server, mut asker)) = Holdfast::start_with_client(&["--threads", "2"]) else { return };
    for round in 0..10 {
        let mut crowd: Vec<Connection> = (0..50).map(|_| server.connect()).collect();
        for client in crowd.iter_mut().step_by(2) {
            assert_eq!(client.run("PING").to_string(), "+PONG", "round {round}");
        }
    }
    eventually("they are gone", || info::<u32>(&mut asker, "connected_clients") == 1);
    assert_eq!(asker.run("CLIENT LIST").text().lines().count(), 1);
}

/// One that waits with much unread input is not read from, and so its end is not read either.
#[test]
fn a_waiting_client_that_vanishes_with_much_unread_input_is_let_go() {
    let Some((server, mut asker)) = Holdfast::start_with_client(&["--threads", "2"]) else { return };
    for wait in ["WAIT 1 0", "BZPOPMIN nosuch 0"] {
        let mut client = server.connect();
        client.queue_line(wait);
        client.flush();
        eventually("it waits", || info::<u32>(&mut asker, "blocked_clients") == 1);
        for _ in 0..20 {
            client.queue_line(&format!("SET k {}", "v".repeat(10_000)));
        }
        client.flush();
        eventually("it is read from", || {
            asker.run("CLIENT LIST").text().lines().any(|line| line.contains("flags=b") && !line.contains("qbuf=0 "))
        });
        drop(client);
        eventually("it is gone", || info::<u32>(&mut asker, "connected_clients") == 1);
        assert_eq!(asker.run("EXISTS k").integer(), 0);
    }
}
