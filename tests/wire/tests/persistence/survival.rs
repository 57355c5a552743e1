//! What was acknowledged is there after the server is killed, stopped or told to leave.

use std::collections::BTreeSet;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use wire::{Reply, Server};

use crate::support::{End, Home, assert_same, contents, eventually, furnish, info, ok, unix_ms};

const POLICIES: [&str; 3] = ["everysec", "always", "no"];

#[test]
fn everything_survives_every_end() {
    let Some((home, mut server, mut connection)) = Home::serve_client(&[]) else { return };
    furnish(&mut connection, true);
    let expected = contents(&mut connection, true);
    // Each end is that of a server with another policy than the one before.
    for (end, policy) in End::ALL.iter().zip(POLICIES.into_iter().cycle()) {
        end.of(server);
        server = home.start(&["--appendfsync", policy]);
        assert_same(&contents(&mut server.connect(), true), &expected, &format!("{end:?}, then {policy}"));
    }
}

#[test]
fn other_numbers_of_shards_and_threads_read_the_same() {
    let Some((home, mut server)) = Home::serve(&["--shards", "16", "--threads", "2"]) else { return };
    furnish(&mut server.connect(), true);
    let expected = contents(&mut server.connect(), true);
    for (shards, threads) in [("1", "1"), ("512", "3"), ("2", "2")] {
        // Once from the journal alone or a snapshot, once from both.
        for line in ["SAVE", "SET int 420"] {
            assert!(!server.connect().run(line).is_error(), "{line}");
            server.kill();
            server = home.start(&["--shards", shards, "--threads", threads]);
            let when = format!("{shards} shards, {threads} threads, after {line}");
            assert_same(&contents(&mut server.connect(), true), &expected, &when);
        }
    }
}

#[test]
fn emptying_it_survives() {
    let Some((home, server, mut connection)) = Home::serve_client(&[]) else { return };
    furnish(&mut connection, true);
    ok(&mut connection, "FLUSHALL");
    ok(&mut connection, "SELECT 12");
    ok(&mut connection, "SET a 1");
    let server = home.serve_again(server, &[]);
    let kept = contents(&mut server.connect(), true);
    assert_eq!(kept.keys().collect::<Vec<_>>(), ["12 \"a\"", "a function", "libraries"], "functions stay");
}

#[test]
fn debug_populate_survives() {
    let Some((home, server)) = Home::serve(&["--enable-debug-command", "yes"]) else { return };
    ok(&mut server.connect(), "DEBUG POPULATE 1000 some 20");
    let expected = contents(&mut server.connect(), true);
    let server = home.serve_again(server, &[]);
    assert_same(&contents(&mut server.connect(), true), &expected, "after a kill");
}

#[test]
fn debug_reload_does_not_bring_back_what_was() {
    let Some((home, server, mut connection)) = Home::serve_client(&["--enable-debug-command", "yes"]) else { return };
    furnish(&mut connection, true);
    ok(&mut connection, "DEBUG RELOAD");
    ok(&mut connection, "SET after 1");
    let expected = contents(&mut connection, true);
    let server = home.serve_again(server, &[]);
    assert_same(&contents(&mut server.connect(), true), &expected, "after a kill");
}

#[test]
fn a_deadline_that_passes_while_nobody_is_there_has_passed() {
    let Some((home, server, mut connection)) = Home::serve_client(&[]) else { return };
    let deadline = unix_ms(&mut connection) + 300;
    for line in [
        format!("SET soon v PXAT {deadline}"),
        "HSET fields a 1 b 2".to_owned(),
        format!("HPEXPIREAT fields {deadline} FIELDS 1 a"),
        format!("SET later v PXAT {}", deadline + 3_600_000),
    ] {
        assert!(!connection.run(&line).is_error(), "{line}");
    }
    server.kill();
    let now_ms = || SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_millis() as u64;
    eventually("the deadline has passed", || now_ms() > deadline);
    let server = home.start(&[]);
    let mut connection = server.connect();
    assert_eq!(connection.run("GET soon"), Reply::NilBulk);
    assert_eq!(connection.run("HGETALL fields").to_string(), "[\"b\", \"2\"]");
    assert_eq!(connection.run("PEXPIRETIME later").integer() as u64, deadline + 3_600_000);
}

#[test]
fn what_has_expired_stays_away() {
    let Some((home, server, mut connection)) = Home::serve_client(&[]) else { return };
    for line in ["SET soon v PX 1", "HSET fields a 1 b 2", "HPEXPIRE fields 1 FIELDS 1 a"] {
        assert!(!connection.run(line).is_error(), "{line}");
    }
    eventually("both are gone", || {
        connection.run("DBSIZE").integer() == 1 && connection.run("HLEN fields").integer() == 1
    });
    // Had the expiry not been kept, the deadline of the old value would be the new one's.
    ok(&mut connection, "SET soon again");
    assert_eq!(connection.run("HSET fields a again").integer(), 1);
    let (_server, mut connection) = home.serve_client_again(server, &[]);
    assert_eq!(connection.run("GET soon").text(), "again");
    assert_eq!(connection.run("PTTL soon").integer(), -1);
    assert_eq!(connection.run("HPTTL fields FIELDS 2 a b").to_string(), "[:-1, :-1]");
}

/// A script with a loop runs apart from its connection; its reply waits for the journal all the same.
#[test]
fn what_a_script_with_a_loop_did_survives() {
    for policy in POLICIES {
        let Some(home) = Home::fresh() else { return };
        for round in 1..=3 {
            let server = home.start(&["--appendfsync", policy]);
            let script = "for _ = 1, 1 do redis.call('INCR', KEYS[1]) end return redis.call('GET', KEYS[1])";
            let told = server.connect().run(&format!("EVAL \"{script}\" 1 a"));
            let server = home.serve_again(server, &["--appendfsync", policy]);
            assert_eq!(told.text(), round.to_string());
            assert_eq!(server.connect().run("GET a"), told, "{policy}, round {round}");
        }
    }
}

/// Killed in the middle of pipelines: what was answered is there, and nothing that was not asked for.
#[test]
fn killed_at_work() {
    for policy in POLICIES {
        let Some(home) = Home::fresh() else { return };
        let mut expected = [0_i64; 8];
        for round in 0..2 {
            let server = home.start(&["--appendfsync", policy]);
            let clients: Vec<_> = (0..8).map(|number| incr_until_the_end(&server, number)).collect();
            let mut asker = server.connect();
            eventually("all are at work", || {
                (0..8).all(|number| {
                    let reply = asker.run(&format!("GET counter:{number}"));
                    !reply.is_nil() && reply.text().parse::<i64>().is_ok_and(|count| count > expected[number] + 50)
                })
            });
            server.kill();
            let acknowledged: Vec<i64> =
                clients.into_iter().map(|client| client.join().expect("a client failed")).collect();
            let server = home.start(&["--appendfsync", policy]);
            let mut asker = server.connect();
            for (number, acknowledged) in acknowledged.iter().enumerate() {
                let kept: i64 = asker.run(&format!("GET counter:{number}")).text().parse().expect("it is a number");
                assert!(
                    (*acknowledged..=acknowledged + PIPELINE).contains(&kept),
                    "{policy}, round {round}, client {number}: {acknowledged} were acknowledged, {kept} are there"
                );
                expected[number] = kept;
            }
            End::Kill.of(server);
        }
    }
}

/// Requests in one write.
const PIPELINE: i64 = 20;

/// The last number that a client was told.
fn incr_until_the_end(server: &Server, number: usize) -> thread::JoinHandle<i64> {
    let mut client = server.connect();
    thread::spawn(move || {
        let mut last = 0;
        loop {
            for _ in 0..PIPELINE {
                client.queue_line(&format!("INCR counter:{number}"));
            }
            for _ in 0..PIPELINE {
                match client.read() {
                    Reply::Integer(count) => last = count,
                    Reply::Closed => return last,
                    other => panic!("received {other}"),
                }
            }
        }
    })
}

/// Each start goes on with the numbers where the last one ended, and what each wrote is there.
#[test]
fn many_starts() {
    let Some(home) = Home::fresh() else { return };
    let mut last = 0;
    for round in 0..12_usize {
        let server = home.start(&[]);
        let mut connection = server.connect();
        assert_eq!(connection.run("DBSIZE").integer(), round as i64);
        ok(&mut connection, &format!("SET round:{round} {round}"));
        let sequence = info::<u64>(&mut connection, "journal_sequence");
        assert!(sequence > last, "{sequence} after {last}");
        last = sequence;
        End::ALL[round % End::ALL.len()].of(server);
    }
    let names: BTreeSet<String> = home.files_named(".seg").into_iter().collect();
    assert!(names.len() <= 13, "{names:?}");
}

#[test]
fn a_second_server_is_kept_out() {
    let Some((home, server, mut connection)) = Home::serve_client(&[]) else { return };
    ok(&mut connection, "SET a 1");
    // The first server goes on to mark what it syncs.
    let files = || home.files().into_iter().filter(|(name, _)| name != "MARKS").collect::<Vec<_>>();
    let before = files();
    let told = home.fail_to_start(&[]);
    assert!(told.contains(&format!("is in use by process {}", server.process_id())), "{told}");
    assert_eq!(files(), before);
    ok(&mut connection, "SET b 2");
    let server = home.serve_again(server, &[]);
    assert_eq!(server.connect().run("MGET a b").to_string(), "[\"1\", \"2\"]");
}

/// The lock is on the directory: that somebody tidies up does not let a second server in.
#[test]
fn a_second_server_is_kept_out_though_the_lock_file_is_deleted() {
    let Some((home, server, mut connection)) = Home::serve_client(&[]) else { return };
    ok(&mut connection, "SET a 1");
    std::fs::remove_file(home.data().join("LOCK")).expect("cannot remove the lock file");
    let told = home.fail_to_start(&[]);
    assert!(told.contains("is in use by process (unknown)"), "{told}");
    ok(&mut connection, "SET b 2");
    let server = home.serve_again(server, &[]);
    assert_eq!(server.connect().run("MGET a b").to_string(), "[\"1\", \"2\"]");
}

#[test]
fn large_values_survive() {
    let Some((home, server, mut connection)) = Home::serve_client(&[]) else { return };
    let value: Vec<u8> = (0..20_000_000_u32).map(|number| (number % 251) as u8).collect();
    connection.run_with("SET large", &[&value]);
    connection.run_with("HSET hash field", &[&value]);
    connection.run("APPEND large end");
    let (server, mut connection) = home.serve_client_again(server, &[]);
    assert!(connection.run("GET large").bytes().strip_suffix(b"end") == Some(&value[..]));
    assert!(connection.run("HGET hash field").bytes() == value);
    eventually("saved", || connection.run("SAVE").to_string() == "+OK");
    let (_server, mut connection) = home.serve_client_again(server, &[]);
    assert_eq!(connection.run("STRLEN large").integer(), 20_000_003);
    assert!(connection.run("HGET hash field").bytes() == value);
}
