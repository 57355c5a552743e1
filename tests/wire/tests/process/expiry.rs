//! Expiry on a large scale: the server clears up by itself, and lets clients in while it does.

use std::env;

use wire::{Connection, Reply};

use crate::support::{Holdfast, eventually, info, ok, unix_ms};

/// Keys, if HOLDFAST_TEST_STEPS does not ask for more.
const KEYS: usize = 20_000;
const HASHES: usize = 50;
const FIELDS: usize = 100;

#[test]
fn everything_expires_at_once_and_nobody_waits_for_it() {
    let Some(server) = Holdfast::start(&["--threads", "2"]) else { return };
    let keys = env::var("HOLDFAST_TEST_STEPS").map_or(KEYS, |steps| steps.parse().expect("a number of keys"));
    let (mut loader, mut other) = (server.connect(), server.connect());
    ok(&mut other, "SELECT 2");
    // Loaded before the deadline, or it is no test of the cycle: a slow machine gets more time.
    let mut lead_ms = 3000;
    loop {
        ok(&mut loader, "FLUSHALL");
        ok(&mut loader, "CONFIG RESETSTAT");
        let deadline_ms = unix_ms(&mut loader) + lead_ms;
        load(&mut loader, keys, deadline_ms);
        if unix_ms(&mut loader) < deadline_ms {
            break;
        }
        lead_ms *= 2;
    }
    assert_eq!(loader.run("DBSIZE").integer(), (keys + HASHES + 1) as i64);

    let mut round = 0;
    eventually("all is gone but one field", || {
        for _ in 0..20 {
            round += 1;
            other.queue_line("PING");
            other.queue_line(&format!("SET round {round}"));
            other.queue_line("GET round");
            assert_eq!(other.read().to_string(), "+PONG");
            assert_eq!(other.read().to_string(), "+OK");
            assert_eq!(other.read().text(), round.to_string());
        }
        loader.run("DBSIZE").integer() == 1
    });
    assert_eq!(info::<usize>(&mut other, "expired_keys"), keys);
    eventually("the fields are gone", || info::<usize>(&mut other, "expired_subkeys") == HASHES * FIELDS + 1);
    assert_eq!(loader.run("HGETALL kept").to_string(), r#"["stays", "1"]"#);
}

/// Many keys, many fields, and one hash that keeps a field.
fn load(connection: &mut Connection, keys: usize, deadline_ms: u64) {
    const BATCH: usize = 2000;
    for first in (0..keys).step_by(BATCH) {
        let batch = first..keys.min(first + BATCH);
        for number in batch.clone() {
            connection.queue_line(&format!("SET key:{number} {number} PXAT {deadline_ms}"));
        }
        batch.for_each(|_| assert_eq!(connection.read().to_string(), "+OK"));
    }
    let fields: Vec<String> = (0..FIELDS).map(|number| format!("f{number}")).collect();
    let (names, pairs) = (fields.join(" "), fields.join(" 1 ") + " 1");
    for number in 0..HASHES {
        assert_eq!(connection.run(&format!("HSET hash:{number} {pairs}")).integer(), FIELDS as i64);
        connection.run(&format!("HPEXPIREAT hash:{number} {deadline_ms} FIELDS {FIELDS} {names}"));
    }
    connection.run("HSET kept stays 1 goes 1");
    connection.run(&format!("HPEXPIREAT kept {deadline_ms} FIELDS 1 goes"));
}

#[test]
fn without_the_cycle_the_expired_are_absent_all_the_same() {
    const KEYS: usize = 1000;
    let Some((_server, mut client)) = Holdfast::start_with_client(&["--enable-debug-command", "yes"]) else { return };
    ok(&mut client, "DEBUG SET-ACTIVE-EXPIRE 0");
    for number in 0..KEYS {
        client.queue_line(&format!("SET key:{number} v PX 1"));
    }
    for _ in 0..KEYS {
        assert_eq!(client.read().to_string(), "+OK");
    }
    client.run("HSET hash f 1");
    client.run("HPEXPIRE hash 1 FIELDS 1 f");
    eventually("the last one is past its time", || client.run("EXISTS key:999 hash").integer() == 0);
    // In this order: what only looks comes first, for what finds an expired key may remove it.
    assert_eq!(client.run("KEYS *").to_string(), "[]");
    assert_eq!(scan(&mut client), Vec::<String>::new());
    for (command, reply) in [
        ("TTL key:1", ":-2"),
        ("PTTL key:1", ":-2"),
        ("EXISTS key:2", ":0"),
        ("TYPE key:2", "+none"),
        ("GET key:3", "(nil)"),
        ("STRLEN key:4", ":0"),
        ("TOUCH key:5", ":0"),
        ("PERSIST key:6", ":0"),
        ("DEL key:7", ":0"),
        ("GETDEL key:8", "(nil)"),
        ("RENAME key:9 other", "-ERR no such key"),
        ("SET key:10 w XX", "(nil)"),
        ("INCR key:11", ":1"),
        ("HGETALL hash", "[]"),
        ("HLEN hash", ":0"),
        ("DEL key:11", ":1"),
        ("RANDOMKEY", "(nil)"),
    ] {
        assert_eq!(client.run(command).to_string(), reply, "{command}");
    }
    ok(&mut client, "DEBUG SET-ACTIVE-EXPIRE 1");
    eventually("the cycle clears up", || client.run("DBSIZE").integer() == 0);
    // Each counts once, whoever finds it; the one that INCR wrote over need not count.
    let expired: usize = info(&mut client, "expired_keys");
    assert!((KEYS - 1..=KEYS).contains(&expired), "{expired} of {KEYS} have expired");
    let expired: usize = info(&mut client, "expired_subkeys");
    assert_eq!(expired, 1, "a hash that goes with its last field is no expired key");
}

fn scan(client: &mut Connection) -> Vec<String> {
    let (mut cursor, mut keys) = ("0".to_owned(), Vec::new());
    loop {
        let reply = client.run(&format!("SCAN {cursor} COUNT 100"));
        let [next, found] = reply.items() else { panic!("received {reply}") };
        keys.extend(found.items().iter().map(Reply::to_string));
        cursor = next.text().to_owned();
        if cursor == "0" {
            return keys;
        }
    }
}
