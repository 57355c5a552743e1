//! SCAN: what it returns, what it refuses, and what it guarantees while keys come and go.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use wire::{Connection, Product, Reply, Session, check};

#[test]
fn scan_of_few_keys() {
    check(
        r#"
        SCAN 0 => ["0", []]
        SET a 1 => +OK
        SCAN 0 => ["0", ["a"]]
        SCAN 0 COUNT 1000 => ["0", ["a"]]
        SCAN 0 MATCH a COUNT 1000 => ["0", ["a"]]
        SCAN 0 MATCH b COUNT 1000 => ["0", []]
        SCAN 0 TYPE string COUNT 1000 => ["0", ["a"]]
        SCAN 0 TYPE STRING COUNT 1000 => ["0", ["a"]]
        SCAN 0 TYPE hash COUNT 1000 => ["0", []]
        SCAN 0 type string match a count 10 => ["0", ["a"]]
        SCAN 0 COUNT 10 COUNT 20 MATCH b MATCH a => ["0", ["a"]]
        ! FLUSHALL
        // With the patterns of KEYS.
        MSET "a*b" 1 "a[b" 2 "\xff\x00" 3 => +OK
        SCAN 0 MATCH "a\\*b" COUNT 1000 => ["0", ["a*b"]]
        SCAN 0 MATCH "a[[]b" COUNT 1000 => ["0", ["a[b"]]
        SCAN 0 MATCH "\xff?" COUNT 1000 => ["0", ["\xff\x00"]]
        SCAN 0 MATCH nosuch COUNT 1000 => ["0", []]
        ! FLUSHALL
        // Of this database alone.
        SET a 1 => +OK
        SELECT 1 => +OK
        SCAN 0 => ["0", []]
        SET b 1 => +OK
        SCAN 0 COUNT 1000 => ["0", ["b"]]
        ! FLUSHALL
        // Without what has expired.
        SET a 1 PX 20 => +OK
        SET b 1 => +OK
        # eventually
        SCAN 0 COUNT 1000 => ["0", ["b"]]
        ! FLUSHALL
        // Any cursor.
        SET a 1 => +OK
        SCAN 18446744073709551615 => [*, *]
        SCAN 12345 => [*, *]
        ! FLUSHALL
        HELLO 3 => {"server" => *, ...}
        SET a 1 => +OK
        SCAN 0 COUNT 1000 => ["0", ["a"]]
        "#,
    );
}

#[test]
fn scan_refuses_bad_arguments() {
    check(
        r#"
        SCAN abc => -ERR invalid cursor
        SCAN 1.5 => -ERR invalid cursor
        SCAN 0 COUNT 0 => -ERR syntax error
        SCAN 0 COUNT -1 => -ERR syntax error
        SCAN 0 COUNT abc => -ERR value is not an integer or out of range
        -ERR syntax error
            SCAN 0 COUNT
            SCAN 0 MATCH
            SCAN 0 TYPE
            SCAN 0 NOSUCH
            SCAN 0 NOSUCH x
        SCAN 0 COUNT 9223372036854775808 => -ERR value is not an integer or out of range
        // Redis 7 has no type that is unknown, and takes more cursors.
        # needs redis >= 8.0
        SET a 1 => +OK
        SCAN 0 TYPE nosuch => ["0", []]
        -ERR invalid cursor
            SCAN ""
            SCAN -1
            SCAN 18446744073709551616
        "#,
    );
}

#[test]
fn scan_visits_every_key() {
    let session = Session::start();
    let mut connection = session.connect();
    let keys = fill(&mut connection, 3000);
    for options in ["", "COUNT 1", "COUNT 7", "COUNT 1000", "COUNT 100000", "TYPE string"] {
        assert_eq!(scan(&mut connection, options, |_, _| {}), keys, "SCAN 0 {options}");
    }
    let matching = scan(&mut connection, "MATCH key:1?5 COUNT 100", |_, _| {});
    let expected = keys.into_iter().filter(|key| key.len() == 7 && key.starts_with("key:1") && key.ends_with('5'));
    assert_eq!(matching, expected.collect());
}

#[test]
fn scan_finds_keys_of_one_type() {
    let session = Session::start();
    let mut connection = session.connect();
    fill(&mut connection, 200);
    let hashes: BTreeSet<String> = (0..100).map(|i| format!("hash:{i}")).collect();
    let commands: Vec<String> = hashes.iter().map(|key| format!("HSET {key} f v")).collect();
    connection.pipeline(&commands);
    assert_eq!(scan(&mut connection, "TYPE hash", |_, _| {}), hashes);
    assert_eq!(scan(&mut connection, "TYPE hash MATCH key:*", |_, _| {}), BTreeSet::new());
}

#[test]
fn scan_returns_an_empty_step_rather_than_search_on() {
    let session = Session::start();
    let mut connection = session.connect();
    fill(&mut connection, 3000);
    let Reply::Array(step) = connection.run("SCAN 0 MATCH nosuch COUNT 10") else { panic!("no array") };
    assert_ne!(step[0].text(), "0", "3000 keys in one step of about 10");
    assert_eq!(step[1].items(), []);
}

#[test]
fn count_bounds_the_work_of_a_step() {
    let session = Session::start();
    let mut connection = session.connect();
    fill(&mut connection, 3000);
    for count in [1, 10, 100] {
        let step = connection.run(&format!("SCAN 0 COUNT {count}"));
        // A hint, not a limit: a bucket is returned whole.
        assert!(
            step.items()[1].items().len() <= count + 50,
            "COUNT {count} returned {}",
            step.items()[1].items().len()
        );
    }
}

/// How many keys come or go while a scan is under way.
const OTHERS: usize = 5000;

#[test]
fn scan_visits_what_stays_while_the_keyspace_grows() {
    let session = Session::start();
    let mut connection = session.connect();
    let keys = fill(&mut connection, 1000);
    let mut next = 0;
    let seen = scan(&mut connection, "COUNT 5", |connection, _| {
        // Not for ever: a scan need not end while keys come faster than it goes.
        if next < OTHERS {
            let commands: Vec<String> = (next..next + 10).map(|i| format!("SET other:{i} x")).collect();
            connection.pipeline(&commands);
            next += 10;
        }
    });
    assert_eq!(keys.difference(&seen).collect::<Vec<_>>(), Vec::<&String>::new(), "keys that were there all the time");
}

#[test]
fn scan_visits_what_stays_while_the_keyspace_shrinks() {
    let session = Session::start();
    let mut connection = session.connect();
    let keys = fill(&mut connection, 500);
    let others: Vec<String> = (0..OTHERS).map(|i| format!("SET other:{i} x")).collect();
    connection.pipeline(&others);
    let mut next = 0;
    let seen = scan(&mut connection, "COUNT 5", |connection, _| {
        let commands: Vec<String> = (0..10).map(|i| format!("DEL other:{}", next + i)).collect();
        connection.pipeline(&commands);
        next += 10;
    });
    assert_eq!(keys.difference(&seen).collect::<Vec<_>>(), Vec::<&String>::new(), "keys that were there all the time");
}

#[test]
fn scan_visits_what_stays_while_another_client_writes() {
    // Ends by itself should the scan fail and never say that it is done.
    const WRITER_ROUNDS_MAX: usize = 2000;
    let session = Session::start();
    let mut connection = session.connect();
    let keys = fill(&mut connection, 1000);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // The keyspace doubles and halves, again and again.
            let mut writer = session.connect();
            for _ in 0..WRITER_ROUNDS_MAX {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                for command in ["SET", "DEL"] {
                    let value = if command == "SET" { "x" } else { "" };
                    let commands: Vec<String> = (0..1000).map(|i| format!("{command} other:{i} {value}")).collect();
                    writer.pipeline(&commands);
                }
            }
        });
        let mut missed = BTreeSet::new();
        for _ in 0..20 {
            let seen = scan(&mut connection, "COUNT 50", |_, _| {});
            missed.extend(keys.difference(&seen).cloned());
        }
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(missed, BTreeSet::new(), "keys that were there all the time");
    });
}

#[test]
fn scan_may_delete_what_it_visits() {
    let session = Session::start();
    let mut connection = session.connect();
    let keys = fill(&mut connection, 2000);
    let seen = scan(&mut connection, "COUNT 10", |connection, key| {
        connection.run_args(&["DEL", key]);
    });
    assert_eq!(seen, keys);
    assert_eq!(connection.run("DBSIZE").integer(), 0);
}

#[test]
fn scans_do_not_disturb_each_other() {
    let session = Session::start();
    let mut connection = session.connect();
    let keys = fill(&mut connection, 500);
    let mut other = session.connect();
    let mut other_cursor = "0".to_owned();
    let mut other_seen = BTreeSet::new();
    let mut other_is_done = false;
    let seen = scan(&mut connection, "COUNT 3", |_, _| {
        if !other_is_done {
            other_is_done = scan_step(&mut other, &mut other_cursor, "COUNT 11", &mut other_seen);
        }
    });
    while !other_is_done {
        other_is_done = scan_step(&mut other, &mut other_cursor, "COUNT 11", &mut other_seen);
    }
    assert_eq!(seen, keys);
    assert_eq!(other_seen, keys);
}

fn fill(connection: &mut Connection, len: usize) -> BTreeSet<String> {
    let keys: BTreeSet<String> = (0..len).map(|i| format!("key:{i}")).collect();
    let commands: Vec<String> = keys.iter().map(|key| format!("SET {key} x")).collect();
    connection.pipeline(&commands);
    keys
}

/// Scans from 0 to 0 and calls `visit` for every key on the way.
fn scan(connection: &mut Connection, options: &str, mut visit: impl FnMut(&mut Connection, &str)) -> BTreeSet<String> {
    const STEPS_MAX: usize = 100_000;
    let mut cursor = "0".to_owned();
    let mut seen = BTreeSet::new();
    for _ in 0..STEPS_MAX {
        let mut step = BTreeSet::new();
        let is_done = scan_step(connection, &mut cursor, options, &mut step);
        for key in step {
            visit(connection, &key);
            seen.insert(key);
        }
        if is_done {
            return seen;
        }
    }
    panic!("SCAN does not come to an end");
}

/// One step; true if it was the last.
fn scan_step(connection: &mut Connection, cursor: &mut String, options: &str, seen: &mut BTreeSet<String>) -> bool {
    let step = connection.run(&format!("SCAN {cursor} {options}"));
    let [next, keys] = step.items() else { panic!("{step}") };
    seen.extend(keys.items().iter().map(|key| key.text().to_owned()));
    *cursor = next.text().to_owned();
    cursor == "0"
}

#[test]
fn a_pattern_with_a_huge_class_is_looked_at_once() {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        wire::skip("Redis compares each byte with the whole class, for longer than a reply may take");
        return;
    }
    let mut connection = session.connect();
    for key in 0..2_000 {
        connection.queue_line(&format!("SET k:{key} {key}"));
    }
    (0..2_000).for_each(|_| drop(connection.read()));
    // No key has one of these bytes, so each byte of each key is compared with the whole class.
    let class = ["*[", &"xyz".repeat(350_000), "]*"].concat();
    assert_eq!(connection.run_with("KEYS", &[class.as_bytes()]).to_string(), "[]");
    assert_eq!(connection.run_with("SCAN 0 COUNT 10000 MATCH", &[class.as_bytes()]).to_string(), r#"["0", []]"#);
    drop(connection.run_with("PSUBSCRIBE", &[class.as_bytes()]));
    let mut publisher = session.connect();
    for channel in 0..200 {
        publisher.queue_line(&format!("PUBLISH channel:{channel} text"));
    }
    (0..200).for_each(|_| assert_eq!(publisher.read().integer(), 0));
}
