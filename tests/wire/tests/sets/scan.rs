//! SSCAN, and SCAN of sets.

use std::collections::BTreeSet;

use wire::{Connection, Product, Session, check};

#[test]
fn sscan() {
    check(
        r#"
        > SADD s a b ab
        :3
        > SSCAN s 0 COUNT 1000
        ["0", ~["a", "ab", "b"]]
        > SSCAN s 0 COUNT 1000 MATCH a*
        ["0", ~["a", "ab"]]
        > SSCAN s 0 MATCH ? COUNT 1000
        ["0", ~["a", "b"]]
        > SSCAN s 0 MATCH nosuch COUNT 1000
        ["0", []]
        > SSCAN s 0 match a count 1000
        ["0", ["a"]]
        > SSCAN s 0 COUNT 1000 MATCH a MATCH b
        ["0", ["b"]]
        > SSCAN s 0 COUNT 1 COUNT 1000 MATCH *
        ["0", ~["a", "ab", "b"]]
        > SSCAN s 0 COUNT 1000 MATCH ""
        ["0", []]
        > SSCAN nosuch 0
        ["0", []]
        > SSCAN nosuch 5
        ["0", []]
        > SSCAN nosuch 0 MATCH x COUNT 5
        ["0", []]
        > HELLO 3
        *
        > SSCAN s 0 COUNT 1000 MATCH a
        ["0", ["a"]]
        > SSCAN nosuch 0
        ["0", []]
        "#,
    );
}

#[test]
fn an_intset_is_scanned_in_one_step() {
    check(
        r#"
        > SADD n 5 1 -3 200 70000
        :5
        > SSCAN n 0
        ["0", ~["1", "5", "-3", "200", "70000"]]
        > SSCAN n 0 COUNT 1
        ["0", ~["1", "5", "-3", "200", "70000"]]
        > SSCAN n 0 MATCH *0*
        ["0", ~["200", "70000"]]
        > SSCAN n 0 MATCH -*
        ["0", ["-3"]]
        // Whatever the cursor is.
        > SSCAN n 17
        ["0", ~["1", "5", "-3", "200", "70000"]]
        "#,
    );
    let session = Session::start();
    let mut connection = session.connect();
    let members: Vec<String> = (0..512).map(|i| i.to_string()).collect();
    connection.run(&format!("SADD n {}", members.join(" ")));
    let reply = connection.run("SSCAN n 0 COUNT 1");
    assert_eq!(reply.items()[0].text(), "0");
    assert_eq!(reply.items()[1].items().len(), 512);
}

#[test]
fn a_listpack_is_scanned_in_one_step() {
    let session = Session::start();
    if session.product() != Product::Holdfast && !session.has_redis("7.2") {
        return wire::skip("older than Redis 7.2");
    }
    let mut connection = session.connect();
    let members = fill(&mut connection, 128);
    for cursor in [0, 17] {
        let reply = connection.run(&format!("SSCAN s {cursor} COUNT 1"));
        assert_eq!(reply.items()[0].text(), "0");
        let found: BTreeSet<String> = reply.items()[1].items().iter().map(|member| member.text().to_owned()).collect();
        assert_eq!(found, members);
    }
    connection.run("SADD s one-more");
    assert_ne!(connection.run("SSCAN s 0 COUNT 1").items()[0].text(), "0");
}

#[test]
fn bad_arguments() {
    check(
        r#"
        > SADD s a
        :1
        > SSCAN s abc
        -ERR invalid cursor
        > SSCAN s 1.5
        -ERR invalid cursor
        > SSCAN s 99999999999999999999999
        -ERR invalid cursor
        > SSCAN s 0 COUNT
        -ERR syntax error
        > SSCAN s 0 COUNT 0
        -ERR syntax error
        > SSCAN s 0 COUNT -5
        -ERR syntax error
        > SSCAN s 0 COUNT abc
        -ERR value is not an integer or out of range
        > SSCAN s 0 COUNT 9223372036854775808
        -ERR value is not an integer or out of range
        > SSCAN s 0 MATCH
        -ERR syntax error
        > SSCAN s 0 NOSUCH
        -ERR syntax error
        > SSCAN s 0 NOSUCH x
        -ERR syntax error
        > SSCAN s 0 TYPE set
        -ERR syntax error
        > SSCAN s 0 MATCH a COUNT
        -ERR syntax error
        > SSCAN s
        -ERR wrong number of arguments for 'sscan' command
        > SSCAN
        -ERR wrong number of arguments for 'sscan' command
        // The cursor is read first, then the key's type, and options only if there is a key.
        > SSCAN nosuch abc
        -ERR invalid cursor
        > SSCAN nosuch 0 COUNT 0
        ["0", []]
        > SSCAN nosuch 0 NOSUCH
        ["0", []]
        > SET str x
        +OK
        > SSCAN str 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SSCAN str abc
        -ERR invalid cursor
        > SSCAN str 0 COUNT 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn scan_by_type() {
    check(
        r#"
        > SADD s a
        :1
        > SET str x
        +OK
        > HSET h f v
        :1
        > ZADD z 1 a
        :1
        > SCAN 0 TYPE set COUNT 1000
        ["0", ["s"]]
        > SCAN 0 TYPE SET COUNT 1000
        ["0", ["s"]]
        > SCAN 0 MATCH s* TYPE set COUNT 1000
        ["0", ["s"]]
        > SCAN 0 MATCH s* TYPE string COUNT 1000
        ["0", ["str"]]
        > SCAN 0 TYPE zset COUNT 1000
        ["0", ["z"]]
        > DEL s
        :1
        > SCAN 0 TYPE set COUNT 1000
        ["0", []]
        "#,
    );
}

#[test]
fn every_member_of_a_large_set_is_visited() {
    let session = Session::start();
    let mut connection = session.connect();
    let members = fill(&mut connection, 1000);
    for options in ["", "COUNT 1", "COUNT 37", "COUNT 100000", "MATCH m*"] {
        assert_eq!(scan(&mut connection, options, |_, _| {}), members, "SSCAN s 0 {options}");
    }
    let matching = scan(&mut connection, "MATCH m?5", |_, _| {});
    let expected = members.into_iter().filter(|member| member.len() == 3 && member.ends_with('5')).collect();
    assert_eq!(matching, expected);
}

#[test]
fn a_count_bounds_a_step() {
    let session = Session::start();
    let mut connection = session.connect();
    fill(&mut connection, 10_000);
    let step = |connection: &mut Connection, options: &str| {
        let reply = connection.run(&format!("SSCAN s 0 {options}"));
        (reply.items()[0].text().to_owned(), reply.items()[1].items().len())
    };
    // Not exactly as many: a step ends between two chains of the table.
    let (cursor, len) = step(&mut connection, "COUNT 100");
    assert!(cursor != "0" && (50..1000).contains(&len), "{len} members with COUNT 100");
    let (cursor, len) = step(&mut connection, "");
    assert!(cursor != "0" && len < 100, "{len} members without a COUNT");
    let (cursor, len) = step(&mut connection, "COUNT 100000");
    assert_eq!((cursor.as_str(), len), ("0", 10_000));
}

#[test]
fn what_stays_is_visited_while_others_come_and_go() {
    let session = Session::start();
    let mut connection = session.connect();
    let members = fill(&mut connection, 500);
    let mut round = 0;
    let seen = scan(&mut connection, "COUNT 5", |connection, _| {
        // Grows the set to several times its size, then shrinks it again.
        let mut changes = vec![format!("SADD s {}", others(round))];
        if round > 50 {
            changes.push(format!("SREM s {}", others(round - 50)));
        }
        connection.pipeline(&changes);
        round += 1;
    });
    for member in &members {
        assert!(seen.contains(member), "{member} was there all the time and was not returned");
    }
}

#[test]
fn a_set_that_shrinks_far_below_its_size_is_scanned_to_the_end() {
    let session = Session::start();
    let mut connection = session.connect();
    let members = fill(&mut connection, 5000);
    let stay: BTreeSet<String> = members.iter().filter(|member| member.ends_with("77")).cloned().collect();
    let mut shrunk = false;
    let seen = scan(&mut connection, "COUNT 20", |connection, _| {
        if !shrunk {
            let gone: Vec<&[u8]> = members.difference(&stay).map(|member| member.as_bytes()).collect();
            connection.run_with("SREM s", &gone);
            shrunk = true;
        }
    });
    assert!(stay.is_subset(&seen), "{:?} were there all the time", stay.difference(&seen));
}

/// An intset becomes a table, and a table is replaced by an intset, between two steps.
#[test]
fn the_encoding_may_change_on_the_way() {
    let session = Session::start();
    let mut connection = session.connect();
    let members = fill(&mut connection, 600);
    let first = connection.run("SSCAN s 0 COUNT 5");
    let cursor = first.items()[0].text().to_owned();
    assert_ne!(cursor, "0");
    connection.run("DEL s");
    connection.run("SADD s 1 2 3");
    let next = connection.run(&format!("SSCAN s {cursor}"));
    assert_eq!(next.to_string(), r#"["0", ["1", "2", "3"]]"#);
    connection.run("DEL s");
    let next = connection.run(&format!("SSCAN s {cursor}"));
    assert_eq!(next.to_string(), r#"["0", []]"#);
    connection.run("DEL s");
    assert_eq!(fill(&mut connection, 600), members);
    assert_eq!(scan(&mut connection, "COUNT 7", |_, _| {}), members);
}

#[test]
fn what_is_visited_may_be_removed() {
    let session = Session::start();
    let mut connection = session.connect();
    let members = fill(&mut connection, 1000);
    let seen = scan(&mut connection, "COUNT 10", |connection, member| {
        connection.run_args(&["SREM", "s", member]);
    });
    assert_eq!(seen, members);
    assert_eq!(connection.run("EXISTS s").integer(), 0);
}

fn others(round: usize) -> String {
    (0..20).map(|i| format!("other{round}:{i}")).collect::<Vec<_>>().join(" ")
}

/// Makes `s` a set of this many members.
fn fill(connection: &mut Connection, len: usize) -> BTreeSet<String> {
    let members: BTreeSet<String> = (0..len).map(|i| format!("m{i}")).collect();
    connection.run_with("SADD s", &members.iter().map(String::as_bytes).collect::<Vec<_>>());
    members
}

/// Scans `s` from 0 to 0 and calls `visit` for every member on the way.
fn scan(connection: &mut Connection, options: &str, mut visit: impl FnMut(&mut Connection, &str)) -> BTreeSet<String> {
    const STEPS_MAX: usize = 100_000;
    let mut found = BTreeSet::new();
    let mut cursor = "0".to_owned();
    for _ in 0..STEPS_MAX {
        let step = connection.run(&format!("SSCAN s {cursor} {options}"));
        let [next, members] = step.items() else { panic!("{step}") };
        for member in members.items() {
            visit(connection, member.text());
            found.insert(member.text().to_owned());
        }
        cursor = next.text().to_owned();
        if cursor == "0" {
            return found;
        }
    }
    panic!("SSCAN does not come to an end");
}
