//! What is taken for clients that wait: gone for good once they have heard of it, and never given twice.

use std::collections::BTreeSet;
use std::thread::{self, JoinHandle};

use wire::{Connection, Reply, Server};

use crate::support::{End, Home, eventually, info};

const POLICIES: [&str; 3] = ["everysec", "always", "no"];
const GIVERS: usize = 2;
const TAKERS: usize = 4;

#[test]
fn what_was_taken_for_one_who_waited_stays_taken() {
    for policy in POLICIES {
        let Some(home) = Home::fresh() else { return };
        let args = ["--appendfsync", policy, "--threads", "2"];
        let server = home.start(&args);
        let (mut giver, mut waiting) = (server.connect(), server.connect());
        wait_for(&mut giver, &mut waiting, "BZPOPMIN other z 0");
        assert_eq!(giver.run("ZADD z 1 first 2 second 3 third").integer(), 3);
        assert_eq!(waiting.read().to_string(), r#"["z", "first", "1"]"#);
        if policy == "always" {
            // Two batches: what was added, and what was taken.
            assert_eq!(info::<u64>(&mut giver, "journal_sequence"), info(&mut giver, "journal_durable_sequence"));
        }
        let (server, mut asker) = home.serve_client_again(server, &args);
        assert_eq!(asker.run("ZRANGE z 0 -1").to_string(), r#"["second", "third"]"#, "{policy}");
        // The last one goes with its key.
        let mut waiting = server.connect();
        wait_for(&mut asker, &mut waiting, "BZMPOP 0 1 last MAX");
        assert_eq!(asker.run("ZADD last 1 only").integer(), 1);
        assert_eq!(waiting.read().to_string(), r#"["last", [["only", "1"]]]"#);
        let server = home.serve_again(server, &args);
        assert_eq!(server.connect().run("EXISTS last z").integer(), 1, "{policy}");
    }
}

#[test]
fn who_waits_when_the_server_stops_takes_nothing() {
    for end in End::ALL {
        let Some((home, server)) = Home::serve(&[]) else { return };
        let (mut asker, mut waiting) = (server.connect(), server.connect());
        wait_for(&mut asker, &mut waiting, "BZPOPMIN z 0");
        end.of(server);
        assert_eq!(waiting.read(), Reply::Closed, "{end:?}");
        let server = home.start(&[]);
        let mut connection = server.connect();
        assert_eq!(connection.run("ZADD z 1 m").integer(), 1);
        assert_eq!(connection.run("ZCARD z").integer(), 1, "{end:?}");
    }
}

/// Ended while some add and others wait: whoever heard of a member has it alone, and of those that were acknowledged no
/// more are missing than clients may have been about to hear of.
#[test]
fn ended_while_clients_are_served() {
    for (policy, end) in POLICIES.into_iter().zip([End::Kill, End::Term, End::Kill]) {
        let Some(home) = Home::fresh() else { return };
        let args = ["--appendfsync", policy, "--threads", "2"];
        let (mut added, mut taken, mut lost_max) = (BTreeSet::new(), Vec::new(), 0);
        for round in 0..2 {
            let server = home.start(&args);
            let givers: Vec<_> = (0..GIVERS).map(|giver| give_until_the_end(&server, round, giver)).collect();
            let takers: Vec<_> = (0..TAKERS).map(|_| take_until_the_end(&server)).collect();
            let mut asker = server.connect();
            eventually("all are at work", || {
                let reply = asker.run("GET taken");
                assert_ne!(reply, Reply::Closed, "the server has ended: {}", home.stderr());
                !reply.is_nil() && reply.text().parse::<u64>().is_ok_and(|taken| taken > 500)
            });
            assert_eq!(asker.run("DEL taken").integer(), 1);
            end.of(server);
            givers.into_iter().for_each(|giver| added.extend(giver.join().expect("a giver failed")));
            takers.into_iter().for_each(|taker| taken.extend(taker.join().expect("a taker failed")));
            // A server that is told to stop still tells those whose members it has taken.
            lost_max += if matches!(end, End::Kill) { TAKERS } else { 0 };
        }
        let server = home.start(&args);
        let left = server.connect().run("ZRANGE z 0 -1");
        let left: BTreeSet<String> = left.items().iter().map(|member| member.text().to_owned()).collect();
        let heard_of: BTreeSet<String> = taken.iter().cloned().collect();
        let what = format!("{policy}, {end:?}: {} added, {} taken, {} left", added.len(), taken.len(), left.len());
        assert_eq!(heard_of.len(), taken.len(), "{what}: one was given twice");
        assert!(heard_of.is_disjoint(&left), "{what}: one was given and is still there");
        let lost = added.iter().filter(|member| !heard_of.contains(*member) && !left.contains(*member)).count();
        assert!(lost <= lost_max, "{what}: {lost} are missing");
    }
}

/// Adds members until the server ends. Those that were acknowledged.
fn give_until_the_end(server: &Server, round: usize, giver: usize) -> JoinHandle<Vec<String>> {
    let mut connection = server.connect();
    thread::spawn(move || {
        let mut added = Vec::new();
        for number in 0.. {
            let member = format!("{round}:{giver}:{number}");
            match connection.run(&format!("ZADD z {number} {member}")) {
                Reply::Integer(1) => added.push(member),
                Reply::Closed => return added,
                other => panic!("received {other}"),
            }
        }
        added
    })
}

/// Waits for members until the server ends. Those that it heard of.
fn take_until_the_end(server: &Server) -> JoinHandle<Vec<String>> {
    let mut connection = server.connect();
    thread::spawn(move || {
        let mut taken = Vec::new();
        loop {
            let reply = connection.run("BZPOPMIN z 0");
            if reply == Reply::Closed {
                return taken;
            }
            taken.push(reply.items()[1].text().to_owned());
            if connection.run("INCR taken") == Reply::Closed {
                return taken;
            }
        }
    })
}

/// Sends a command and returns when its connection waits for it.
fn wait_for(asker: &mut Connection, connection: &mut Connection, command: &str) {
    connection.queue_line(command);
    connection.flush();
    eventually("it waits", || info::<u64>(asker, "blocked_clients") == 1);
}
