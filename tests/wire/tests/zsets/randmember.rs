//! ZRANDMEMBER.

use std::collections::{BTreeMap, BTreeSet};

use wire::{Connection, Reply, Session, check};

#[test]
fn zrandmember() {
    check(
        r#"
        > ZADD z 1.5 a
        :1
        > ZRANDMEMBER z
        "a"
        > ZRANDMEMBER z 1
        ["a"]
        > ZRANDMEMBER z 5
        ["a"]
        > ZRANDMEMBER z -3
        ["a", "a", "a"]
        > ZRANDMEMBER z 0
        []
        > ZRANDMEMBER z 0 WITHSCORES
        []
        > ZRANDMEMBER z 1 WITHSCORES
        ["a", "1.5"]
        > ZRANDMEMBER z 5 WITHSCORES
        ["a", "1.5"]
        > ZRANDMEMBER z -2 withscores
        ["a", "1.5", "a", "1.5"]
        > ZRANDMEMBER nosuch
        (nil)
        > ZRANDMEMBER nosuch 5
        []
        > ZRANDMEMBER nosuch -5
        []
        > ZRANDMEMBER nosuch 5 WITHSCORES
        []
        > ZRANDMEMBER z 9223372036854775807
        ["a"]
        > ZADD z 2 b 3 c
        :2
        > ZRANDMEMBER z 3
        ~["a", "b", "c"]
        > ZRANDMEMBER z 10 WITHSCORES
        ~["a", "1.5", "b", "2", "c", "3"]
        "#,
    );
}

#[test]
fn zrandmember_refuses_bad_arguments() {
    check(
        r#"
        > ZADD z 1 a
        :1
        > ZRANDMEMBER z abc
        -ERR value is not an integer or out of range
        > ZRANDMEMBER z 1.5
        -ERR value is not an integer or out of range
        > ZRANDMEMBER z ""
        -ERR value is not an integer or out of range
        > ZRANDMEMBER z 1 NOSUCH
        -ERR syntax error
        > ZRANDMEMBER z WITHSCORES
        -ERR value is not an integer or out of range
        > ZRANDMEMBER z 1 WITHSCORES more
        -ERR syntax error
        > ZRANDMEMBER z -9223372036854775808
        -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        > ZRANDMEMBER z -9223372036854775807 WITHSCORES
        -ERR value is out of range
        > ZRANDMEMBER z -4611686018427387904 WITHSCORES
        -ERR value is out of range
        > ZRANDMEMBER z 9223372036854775808
        -ERR value is not an integer or out of range
        > ZRANDMEMBER z 9223372036854775807 WITHSCORES
        -ERR value is out of range
        > ZRANDMEMBER
        -ERR wrong number of arguments for 'zrandmember' command
        > ZRANDMEMBER nosuch abc
        -ERR value is not an integer or out of range
        > ZRANDMEMBER nosuch 1 NOSUCH
        -ERR syntax error
        > SET s x
        +OK
        > ZRANDMEMBER s
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZRANDMEMBER s 1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZRANDMEMBER s abc
        -ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn zrandmember_in_resp3() {
    check(
        r#"
        > HELLO 3
        *
        > ZADD z 1.5 a
        :1
        > ZRANDMEMBER z
        "a"
        > ZRANDMEMBER z 1
        ["a"]
        > ZRANDMEMBER z 1 WITHSCORES
        [["a", ,1.5]]
        > ZRANDMEMBER z -2 WITHSCORES
        [["a", ,1.5], ["a", ,1.5]]
        > ZRANDMEMBER z 0 WITHSCORES
        []
        > ZRANDMEMBER nosuch
        _
        > ZRANDMEMBER nosuch 1 WITHSCORES
        []
        "#,
    );
}

#[test]
fn zrandmember_of_a_large_set() {
    let session = Session::start();
    let mut connection = session.connect();
    let members = fill(&mut connection, 300);
    // A positive count: different members, never more than there are.
    for count in [1, 5, 90, 100, 101, 299, 300, 1000] {
        let reply = connection.run(&format!("ZRANDMEMBER z {count}"));
        let picked: BTreeSet<String> = reply.items().iter().map(|item| item.text().to_owned()).collect();
        assert_eq!(picked.len(), reply.items().len(), "a member came twice with count {count}");
        assert_eq!(picked.len(), count.min(300));
        assert!(picked.iter().all(|member| members.contains_key(member)));
    }
    // A negative count: exactly as many, the same one more than once.
    let reply = connection.run("ZRANDMEMBER z -1000");
    assert_eq!(reply.items().len(), 1000);
    assert!(reply.items().iter().all(|member| members.contains_key(member.text())));
    // Scores belong to their members.
    for count in [20, -20, 290, 1000, -1000] {
        let reply = connection.run(&format!("ZRANDMEMBER z {count} WITHSCORES"));
        assert_eq!(reply.items().len() % 2, 0);
        for pair in reply.items().chunks(2) {
            assert_eq!(members.get(pair[0].text()).map(String::as_str), Some(pair[1].text()), "{count}");
        }
    }
}

#[test]
fn zrandmember_picks_every_member_sooner_or_later() {
    const TRIES_MAX: usize = 20_000;
    let session = Session::start();
    let mut connection = session.connect();
    // Small, and too large to be kept as a small one is.
    for len in [20, 200] {
        connection.run("DEL z");
        fill(&mut connection, len);
        for command in ["ZRANDMEMBER z", "ZRANDMEMBER z 1", "ZRANDMEMBER z -1", "ZRANDMEMBER z 7"] {
            let mut seen = BTreeSet::new();
            for _ in 0..TRIES_MAX {
                match connection.run(command) {
                    Reply::Bulk(member) => seen.extend([member]),
                    reply => seen.extend(reply.items().iter().map(|item| item.bytes().to_vec())),
                }
                if seen.len() == len {
                    break;
                }
            }
            assert_eq!(seen.len(), len, "{command} leaves some out");
        }
    }
}

/// Makes `z` a set of this many members.
fn fill(connection: &mut Connection, len: usize) -> BTreeMap<String, String> {
    let members: BTreeMap<String, String> = (0..len).map(|i| (format!("m{i}"), format!("{}", i % 7))).collect();
    let commands: Vec<String> = members.iter().map(|(member, score)| format!("ZADD z {score} {member}")).collect();
    connection.pipeline(&commands);
    members
}
