//! SRANDMEMBER.

use std::collections::BTreeSet;

use wire::{Connection, Reply, Session, check};

#[test]
fn srandmember() {
    check(
        r#"
        > SADD s a
        :1
        > SRANDMEMBER s
        "a"
        > SRANDMEMBER s 1
        ["a"]
        > SRANDMEMBER s 5
        ["a"]
        > SRANDMEMBER s -1
        ["a"]
        > SRANDMEMBER s -3
        ["a", "a", "a"]
        > SRANDMEMBER s 0
        []
        > SRANDMEMBER s -0
        -ERR value is not an integer or out of range
        > SRANDMEMBER nosuch
        (nil)
        > SRANDMEMBER nosuch 5
        []
        > SRANDMEMBER nosuch -5
        []
        > SRANDMEMBER nosuch 0
        []
        > SRANDMEMBER s 9223372036854775807
        ["a"]
        > SADD s b c
        :2
        > SRANDMEMBER s 3
        ~["a", "b", "c"]
        > SRANDMEMBER s 10
        ~["a", "b", "c"]
        > SADD n 1 2
        :2
        > SRANDMEMBER n 2
        ~["1", "2"]
        > SRANDMEMBER n 3
        ~["1", "2"]
        > SCARD s
        :3
        > EXISTS nosuch
        :0
        "#,
    );
}

#[test]
fn in_resp3_it_is_an_array() {
    check(
        r#"
        > HELLO 3
        *
        > SADD s a
        :1
        > SRANDMEMBER s
        "a"
        > SRANDMEMBER s 1
        ["a"]
        > SRANDMEMBER s 10
        ["a"]
        > SRANDMEMBER s -2
        ["a", "a"]
        > SRANDMEMBER s 0
        []
        > SRANDMEMBER nosuch
        _
        > SRANDMEMBER nosuch 1
        []
        > SRANDMEMBER nosuch -1
        []
        > SADD s b c d e f
        :5
        > SRANDMEMBER s 2
        [*, *]
        > SRANDMEMBER s 5
        [*, *, *, *, *]
        // All of them: different members, so a set would do, but it is an array.
        > SRANDMEMBER s 6
        ~["a", "b", "c", "d", "e", "f"]
        > SRANDMEMBER s -6
        [*, *, *, *, *, *]
        "#,
    );
}

#[test]
fn bad_arguments() {
    check(
        r#"
        > SADD s a
        :1
        > SRANDMEMBER s abc
        -ERR value is not an integer or out of range
        > SRANDMEMBER s 1.5
        -ERR value is not an integer or out of range
        > SRANDMEMBER s ""
        -ERR value is not an integer or out of range
        > SRANDMEMBER s +1
        -ERR value is not an integer or out of range
        > SRANDMEMBER s 9223372036854775808
        -ERR value is not an integer or out of range
        > SRANDMEMBER s -9223372036854775809
        -ERR value is not an integer or out of range
        > SRANDMEMBER s -9223372036854775808
        -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        > SRANDMEMBER nosuch -9223372036854775808
        -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        > SRANDMEMBER nosuch abc
        -ERR value is not an integer or out of range
        > SRANDMEMBER s 1 more
        -ERR syntax error
        > SRANDMEMBER nosuch abc more
        -ERR syntax error
        > SRANDMEMBER
        -ERR wrong number of arguments for 'srandmember' command
        > SET str x
        +OK
        > SRANDMEMBER str
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SRANDMEMBER str 1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SRANDMEMBER str 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SRANDMEMBER str abc
        -ERR value is not an integer or out of range
        > SRANDMEMBER str 1 more
        -ERR syntax error
        "#,
    );
}

#[test]
fn a_positive_count_gives_different_members() {
    let session = Session::start();
    let mut connection = session.connect();
    for (names, encoding) in [("", "intset"), ("m", "hashtable")] {
        let members = fill(&mut connection, names, 300);
        assert_eq!(connection.run("OBJECT ENCODING s").text(), encoding);
        // Counts on both sides of those at which Redis changes its algorithm: a third of the members, all of them.
        for count in [1, 2, 5, 90, 99, 100, 101, 150, 299, 300, 301, 1000] {
            let reply = connection.run(&format!("SRANDMEMBER s {count}"));
            let picked = texts(&reply);
            assert_eq!(picked.len(), reply.items().len(), "a member came twice with count {count}");
            assert_eq!(picked.len(), count.min(300), "SRANDMEMBER s {count}");
            assert!(picked.is_subset(&members), "SRANDMEMBER s {count}");
        }
        // A negative count: exactly as many.
        for count in [1, 2, 299, 300, 301, 1000] {
            let reply = connection.run(&format!("SRANDMEMBER s -{count}"));
            assert_eq!(reply.items().len(), count, "SRANDMEMBER s -{count}");
            assert!(texts(&reply).is_subset(&members), "SRANDMEMBER s -{count}");
        }
        assert_eq!(texts(&connection.run("SMEMBERS s")), members);
    }
}

#[test]
fn every_member_is_picked_sooner_or_later() {
    const TRIES_MAX: usize = 20_000;
    let session = Session::start();
    let mut connection = session.connect();
    for (names, len) in [("", 20), ("m", 20), ("m", 200)] {
        let members = fill(&mut connection, names, len);
        for command in ["SRANDMEMBER s", "SRANDMEMBER s 1", "SRANDMEMBER s -1", "SRANDMEMBER s 7", "SRANDMEMBER s -7"] {
            let mut seen = BTreeSet::new();
            for _ in 0..TRIES_MAX {
                match connection.run(command) {
                    Reply::Bulk(member) => seen.extend([String::from_utf8(member).expect("a plain name")]),
                    reply => seen.extend(texts(&reply)),
                }
                if seen.len() == len {
                    break;
                }
            }
            assert_eq!(seen, members, "{command} leaves some out");
        }
    }
}

/// No member is picked far more or far less often than others. Of 20,000 picks among 10 members each gets about 2,000, with a
/// standard deviation of 42; Redis's own choice among the members of a table is uneven by a factor of less than
/// three (it picks a chain first). The bounds of 200 and 8,000 are dozens of deviations away from either.
#[test]
fn picks_are_spread() {
    let session = Session::start();
    let mut connection = session.connect();
    for names in ["", "m"] {
        let members = fill(&mut connection, names, 10);
        for command in ["SRANDMEMBER s -20000", "SRANDMEMBER s"] {
            let picks: Vec<Reply> = match command {
                "SRANDMEMBER s" => connection.pipeline(&vec![command; 20_000]),
                _ => connection.run(command).items().to_vec(),
            };
            for member in &members {
                let times = picks.iter().filter(|pick| pick.text() == member).count();
                assert!((200..8000).contains(&times), "{command} picked {member} {times} times of 20000");
            }
        }
    }
}

/// A set that has shrunk from very many members to a few still finds these.
#[test]
fn a_set_that_has_shrunk() {
    let session = Session::start();
    let mut connection = session.connect();
    let members = fill(&mut connection, "m", 20_000);
    let gone: Vec<&[u8]> = members.iter().skip(3).map(|member| member.as_bytes()).collect();
    assert_eq!(connection.run_with("SREM s", &gone).integer(), 19_997);
    let left: BTreeSet<String> = members.iter().take(3).cloned().collect();
    assert_eq!(texts(&connection.run("SRANDMEMBER s 5")), left);
    assert!(left.contains(connection.run("SRANDMEMBER s").text()));
    assert!(texts(&connection.run("SRANDMEMBER s -10")).is_subset(&left));
    assert_eq!(texts(&connection.run("SPOP s 2")).len(), 2);
    assert_eq!(connection.run("SCARD s").integer(), 1);
}

/// Makes `s` a set of this many members: these letters and a number.
fn fill(connection: &mut Connection, letters: &str, len: usize) -> BTreeSet<String> {
    let members: BTreeSet<String> = (0..len).map(|i| format!("{letters}{i}")).collect();
    connection.run("DEL s");
    connection.run_with("SADD s", &members.iter().map(String::as_bytes).collect::<Vec<_>>());
    members
}

fn texts(reply: &Reply) -> BTreeSet<String> {
    reply.items().iter().map(|item| item.text().to_owned()).collect()
}
