//! ZSCAN, and SCAN of sorted sets.

use std::collections::BTreeMap;

use crate::check_as_redis_7_0;
use wire::{Connection, Session, check};

#[test]
fn zscan_of_a_small_set_is_one_step() {
    check(
        r#"
        > ZADD z 1 a 2.5 b 3 ab inf c
        :4
        > ZSCAN z 0
        ["0", ~["a", "1", "b", "2.5", "ab", "3", "c", "inf"]]
        > ZSCAN z 0 COUNT 1
        ["0", ~["a", "1", "b", "2.5", "ab", "3", "c", "inf"]]
        > ZSCAN z 0 MATCH a*
        ["0", ~["a", "1", "ab", "3"]]
        > ZSCAN z 0 MATCH ?
        ["0", ~["a", "1", "b", "2.5", "c", "inf"]]
        > ZSCAN z 0 MATCH nosuch
        ["0", []]
        > ZSCAN z 0 match a count 100
        ["0", ["a", "1"]]
        > ZSCAN z 0 MATCH a MATCH b
        ["0", ["b", "2.5"]]
        > ZSCAN nosuch 0
        ["0", []]
        > ZSCAN nosuch 5
        ["0", []]
        "#,
    );
}

#[test]
fn zscan_refuses_bad_arguments() {
    check(
        r#"
        > ZADD z 1 a
        :1
        > ZSCAN z abc
        -ERR invalid cursor
        > ZSCAN z 1.5
        -ERR invalid cursor
        > ZSCAN z 0 COUNT
        -ERR syntax error
        > ZSCAN z 0 COUNT 0
        -ERR syntax error
        > ZSCAN z 0 COUNT -5
        -ERR syntax error
        > ZSCAN z 0 COUNT abc
        -ERR value is not an integer or out of range
        > ZSCAN z 0 MATCH
        -ERR syntax error
        > ZSCAN z 0 NOSUCH
        -ERR syntax error
        > ZSCAN z 0 TYPE zset
        -ERR syntax error
        > ZSCAN z
        -ERR wrong number of arguments for 'zscan' command
        > ZSCAN
        -ERR wrong number of arguments for 'zscan' command
        > ZSCAN nosuch 0 COUNT 0
        ["0", []]
        > ZSCAN nosuch abc
        -ERR invalid cursor
        > ZSCAN nosuch 0 NOSUCH
        ["0", []]
        > SET s x
        +OK
        > ZSCAN s 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZSCAN s abc
        -ERR invalid cursor
        > ZSCAN s 0 COUNT 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn zscan_in_resp3() {
    check(
        r#"
        > HELLO 3
        *
        > ZADD z 1.5 a
        :1
        > ZSCAN z 0
        ["0", ["a", "1.5"]]
        > ZSCAN nosuch 0
        ["0", []]
        "#,
    );
}

#[test]
fn zscan_has_no_values_to_leave_out() {
    check(
        r#"
        # needs redis >= 7.4
        > ZADD z 1 a
        :1
        > ZSCAN z 0 NOVALUES
        -ERR NOVALUES option can only be used in HSCAN
        > ZSCAN z 0 NOSCORES
        -ERR syntax error
        "#,
    );
}

#[test]
fn scan_by_type() {
    check(
        r#"
        > ZADD z 1 a
        :1
        > SET s x
        +OK
        > HSET h f v
        :1
        > SCAN 0 TYPE zset
        ["0", ["z"]]
        > SCAN 0 TYPE ZSET
        ["0", ["z"]]
        > SCAN 0 TYPE string
        ["0", ["s"]]
        > SCAN 0 MATCH z* TYPE zset COUNT 100
        ["0", ["z"]]
        "#,
    );
}

#[test]
fn scores_of_a_scan() {
    check_as_redis_7_0(
        r#"
        > ZADD z 0.1 a 1e21 b 3.0e-7 c 2.5 d
        :4
        > ZSCAN z 0 MATCH a
        ["0", ["a", "0.10000000000000001"]]
        > ZSCAN z 0 MATCH b
        ["0", ["b", "1e+21"]]
        > ZSCAN z 0 MATCH c
        ["0", ["c", "2.9999999999999999e-07"]]
        > ZSCAN z 0 MATCH d
        ["0", ["d", "2.5"]]
        // A small set keeps what is an integer as one, and tells it so.
        > ZADD whole 1e17 a 123456789012345678 b 1e19 c
        :3
        > ZSCAN whole 0 MATCH a
        ["0", ["a", "100000000000000000"]]
        > ZSCAN whole 0 MATCH b
        ["0", ["b", "123456789012345680"]]
        > ZSCAN whole 0 MATCH c
        ["0", ["c", "1e+19"]]
        > ZMSCORE whole a b c
        ["1e+17", "1.2345678901234568e+17", "1e+19"]
        # config zset-max-listpack-entries 0
        > ZADD large 0.1 a 1e17 b 2.5 c 3 d
        :4
        > ZSCAN large 0 MATCH a COUNT 1000
        ["0", ["a", "0.10000000000000001"]]
        > ZSCAN large 0 MATCH b COUNT 1000
        ["0", ["b", "1e+17"]]
        > ZSCAN large 0 MATCH c COUNT 1000
        ["0", ["c", "2.5"]]
        > ZSCAN large 0 MATCH d COUNT 1000
        ["0", ["d", "3"]]
        "#,
    );
}

#[test]
fn zscan_visits_every_member_of_a_large_set() {
    let session = Session::start();
    let mut connection = session.connect();
    let members = fill(&mut connection, 1000);
    for options in ["", "COUNT 1", "COUNT 37", "COUNT 100000", "MATCH m*"] {
        assert_eq!(scan(&mut connection, options, |_, _| {}), members, "ZSCAN z 0 {options}");
    }
    let matching = scan(&mut connection, "MATCH m?5", |_, _| {});
    let expected = members.into_iter().filter(|(member, _)| member.len() == 3 && member.ends_with('5')).collect();
    assert_eq!(matching, expected);
}

#[test]
fn zscan_visits_what_stays_while_others_come_and_go() {
    let session = Session::start();
    let mut connection = session.connect();
    let members = fill(&mut connection, 500);
    let mut round = 0;
    let seen = scan(&mut connection, "COUNT 5", |connection, member| {
        // Grows the set to several times its size, then shrinks it again; what stays moves from rank to rank.
        for i in 0..20 {
            connection.run(&format!("ZADD z {} other{round}:{i}", (round * 7 + i) % 500));
            if round > 50 {
                connection.run(&format!("ZREM z other{}:{i}", round - 50));
            }
        }
        if member.starts_with('m') {
            connection.run(&format!("ZINCRBY z 0 {member}"));
        }
        round += 1;
    });
    for (member, score) in &members {
        assert_eq!(seen.get(member), Some(score), "{member} was there all the time and was not returned");
    }
}

#[test]
fn zscan_visits_members_whose_scores_change() {
    let session = Session::start();
    let mut connection = session.connect();
    let members = fill(&mut connection, 600);
    let seen = scan(&mut connection, "COUNT 10", |connection, member| {
        // From the front to the back, and from the back to the front.
        let score = if member.ends_with('0') { -5000 } else { 5000 };
        connection.run(&format!("ZADD z XX {score} {member}"));
    });
    assert_eq!(seen.len(), members.len());
}

#[test]
fn zscan_may_delete_what_it_visits() {
    let session = Session::start();
    let mut connection = session.connect();
    let members = fill(&mut connection, 1000);
    let seen = scan(&mut connection, "COUNT 10", |connection, member| {
        connection.run_args(&["ZREM", "z", member]);
    });
    assert_eq!(seen, members);
    assert_eq!(connection.run("EXISTS z").integer(), 0);
}

/// Makes `z` a set of this many members.
fn fill(connection: &mut Connection, len: usize) -> BTreeMap<String, String> {
    let members: BTreeMap<String, String> = (0..len).map(|i| (format!("m{i}"), format!("{}", i * 31 % 500))).collect();
    let commands: Vec<String> = members.iter().map(|(member, score)| format!("ZADD z {score} {member}")).collect();
    connection.pipeline(&commands);
    members
}

/// Scans `z` from 0 to 0 and calls `visit` for every member on the way.
fn scan(
    connection: &mut Connection,
    options: &str,
    mut visit: impl FnMut(&mut Connection, &str),
) -> BTreeMap<String, String> {
    const STEPS_MAX: usize = 100_000;
    let mut found = BTreeMap::new();
    let mut cursor = "0".to_owned();
    for _ in 0..STEPS_MAX {
        let step = connection.run(&format!("ZSCAN z {cursor} {options}"));
        let [next, members] = step.items() else { panic!("{step}") };
        for pair in members.items().chunks(2) {
            let (member, score) = (pair[0].text().to_owned(), pair[1].text().to_owned());
            visit(connection, &member);
            found.insert(member, score);
        }
        cursor = next.text().to_owned();
        if cursor == "0" {
            return found;
        }
    }
    panic!("ZSCAN does not come to an end");
}
