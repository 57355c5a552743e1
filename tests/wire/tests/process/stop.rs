//! Stopping: what was asked before is answered, then everybody is let go and the process ends well.

use std::net::TcpStream;
use std::thread;

use wire::{Connection, Reply};

use crate::support::{Holdfast, eventually, info, ok};

/// More replies than the sockets' buffers hold: the server has to wait for its client to read.
#[test]
fn sigterm_and_sigint_answer_what_is_in_flight() {
    const ROUNDS: usize = 2000;
    for signal in ["TERM", "INT"] {
        let Some(mut server) = Holdfast::start(&["--threads", "2", "--shutdown-timeout", "60"]) else { return };
        let value = "v".repeat(16 * 1024);
        let (mut busy, mut idle) = (server.connect(), server.connect());
        ok(&mut busy, &format!("SET big {value}"));
        assert_eq!(idle.run("PING").to_string(), "+PONG");
        for _ in 0..ROUNDS {
            busy.queue_line("INCR counter");
            busy.queue_line("GET big");
        }
        busy.flush();
        server.signal(signal);
        eventually("the listener is closed", || TcpStream::connect(server.address()).is_err());
        assert_eq!(idle.read(), Reply::Closed, "nothing is owed to an idle client");
        for round in 1..=ROUNDS {
            assert_eq!(busy.read().integer(), round as i64);
            assert_eq!(busy.read().bytes(), value.as_bytes(), "round {round}");
        }
        assert_eq!(busy.read(), Reply::Closed);
        assert_eq!(server.wait_for_end().code(), Some(0), "SIG{signal}");
    }
}

/// Requests that have reached the server's socket while its only worker was busy with something else.
#[test]
fn what_has_arrived_is_answered_even_if_nobody_has_read_it_yet() {
    const CLIENTS: usize = 200;
    const REQUESTS: usize = 50;
    let Some(mut server) = Holdfast::start(&["--threads", "1", "--enable-debug-command", "yes"]) else { return };
    let (mut sleeper, mut clients) = (server.connect(), Vec::new());
    for number in 0..CLIENTS {
        let mut client = server.connect();
        assert_eq!(client.run("PING").to_string(), "+PONG");
        for _ in 0..REQUESTS {
            client.queue_line(&format!("INCR counter:{number}"));
        }
        clients.push(client);
    }
    sleeper.queue_line("DEBUG SLEEP 0.5");
    sleeper.flush();
    clients.iter_mut().for_each(Connection::flush);
    server.signal("TERM");
    assert_eq!(sleeper.read().to_string(), "+OK");
    for (number, client) in clients.iter_mut().enumerate() {
        for request in 1..=REQUESTS {
            assert_eq!(client.read(), Reply::Integer(request as i64), "client {number}");
        }
        assert_eq!(client.read(), Reply::Closed, "client {number}");
    }
    assert_eq!(server.wait_for_end().code(), Some(0));
}

/// A pipeline so long that much of it still waits in the client's socket when the signal comes.
#[test]
fn a_pipeline_that_is_still_arriving_is_answered() {
    const REQUESTS: usize = 300;
    let Some(mut server) = Holdfast::start(&["--threads", "1"]) else { return };
    let value = vec![b'v'; 16 * 1024];
    let mut client = server.connect();
    for _ in 0..REQUESTS {
        client.queue(&[b"APPEND", &b"log"[..], &value]);
    }
    // All of it is with the kernel when this returns, and nothing more is sent.
    client.flush();
    server.signal("TERM");
    for request in 1..=REQUESTS {
        assert_eq!(client.read(), Reply::Integer((request * value.len()) as i64));
    }
    assert_eq!(client.read(), Reply::Closed);
    assert_eq!(server.wait_for_end().code(), Some(0));
}

#[test]
fn clients_that_never_fall_silent_do_not_keep_it_up() {
    let Some((mut server, mut asker)) = Holdfast::start_with_client(&["--threads", "2", "--shutdown-timeout", "600"])
    else {
        return;
    };
    let talkers: Vec<_> = (0..4)
        .map(|number| {
            let mut talker = server.connect();
            thread::spawn(move || {
                let mut said = 0;
                loop {
                    match talker.run(&format!("INCR talker:{number}")) {
                        Reply::Integer(count) => assert_eq!(count, said + 1),
                        Reply::Closed => return,
                        other => panic!("received {other}"),
                    }
                    said += 1;
                }
            })
        })
        .collect();
    eventually("all of them talk", || (0..4).all(|number| !asker.run(&format!("GET talker:{number}")).is_nil()));
    server.signal("TERM");
    assert_eq!(server.wait_for_end().code(), Some(0));
    for talker in talkers {
        talker.join().expect("every reply is the next number, up to the end");
    }
}

#[test]
fn a_client_that_does_not_read_does_not_keep_it_up_for_ever() {
    let Some((mut server, mut deaf)) = Holdfast::start_with_client(&["--shutdown-timeout", "1"]) else { return };
    ok(&mut deaf, &format!("SET big {}", "v".repeat(1 << 20)));
    for _ in 0..64 {
        deaf.queue_line("GET big");
    }
    deaf.flush();
    server.signal("TERM");
    assert_eq!(server.wait_for_end().code(), Some(0));
}

#[test]
fn waiting_clients_are_let_go() {
    let Some(mut server) = Holdfast::start(&["--shutdown-timeout", "600"]) else { return };
    let (mut blocked, mut paused, mut asker) = (server.connect(), server.connect(), server.connect());
    blocked.queue_line("WAIT 1 0");
    blocked.flush();
    eventually("it is blocked", || info::<u32>(&mut asker, "blocked_clients") == 1);
    let id = paused.run("CLIENT ID").integer();
    ok(&mut asker, "CLIENT PAUSE 600000 WRITE");
    for _ in 0..20 {
        paused.queue(&[b"SET", &b"a"[..], &[b'v'; 10_000]]);
    }
    paused.flush();
    eventually("it is held back", || !asker.run(&format!("CLIENT LIST ID {id}")).text().contains(" qbuf=0 "));
    server.signal("TERM");
    for client in [&mut blocked, &mut paused, &mut asker] {
        assert_eq!(client.read(), Reply::Closed);
    }
    assert_eq!(server.wait_for_end().code(), Some(0));
}

#[test]
fn shutdown_over_the_wire() {
    for command in ["SHUTDOWN NOSAVE", "SHUTDOWN NOSAVE NOW FORCE", "SHUTDOWN"] {
        let Some(mut server) = Holdfast::start(&[]) else { return };
        let (mut speaker, mut idle) = (server.connect(), server.connect());
        assert_eq!(idle.run("PING").to_string(), "+PONG");
        assert_eq!(speaker.run(command), Reply::Closed, "{command}: success has no reply");
        assert_eq!(idle.read(), Reply::Closed, "{command}");
        assert_eq!(server.wait_for_end().code(), Some(0), "{command}");
    }
}
