//! SPOP.

use std::collections::BTreeSet;

use wire::{Reply, Session, check};

#[test]
fn spop() {
    check(
        r#"
        ! SADD s a
        > SPOP s
        "a"
        > EXISTS s
        :0
        > SPOP s
        (nil)
        > SPOP nosuch
        (nil)
        ! SADD s a
        > SPOP s 1
        ["a"]
        > EXISTS s
        :0
        ! SADD s a b c
        > SPOP s 0
        []
        > SCARD s
        :3
        > SPOP s 3
        ~["a", "b", "c"]
        > EXISTS s
        :0
        ! SADD s a b c
        > SPOP s 100
        ~["a", "b", "c"]
        > EXISTS s
        :0
        > SPOP nosuch 1
        []
        > SPOP nosuch 0
        []
        ! SADD s a
        > SPOP s 9223372036854775807
        ["a"]
        > EXISTS s
        :0
        ! SADD n 1 2 3
        > SPOP n 5
        ~["1", "2", "3"]
        > EXISTS n
        :0
        ! SADD n 7
        > SPOP n
        "7"
        > EXISTS n
        :0
        "#,
    );
}

#[test]
fn in_resp3_only_a_count_gives_a_set() {
    check(
        r#"
        ! HELLO 3
        ! SADD s a b c
        > SPOP s 0
        set[]
        > SPOP s 3
        set["a", "b", "c"]
        > SPOP s
        _
        > SPOP s 2
        set[]
        > SPOP s 0
        set[]
        ! SADD s a
        > SPOP s
        "a"
        "#,
    );
}

#[test]
fn bad_counts() {
    check(
        r#"
        ! SADD s a
        -ERR value is out of range, must be positive
            SPOP s -1
            SPOP s -9223372036854775808
            SPOP s abc
            SPOP s 1.5
            SPOP s ""
            SPOP s " 1"
            SPOP s +1
            SPOP s 01
            SPOP s 9223372036854775808
        // The count is checked before the key's type, and also when there is no key.
        -ERR value is out of range, must be positive
            SPOP nosuch -1
            SPOP nosuch abc
        ! SET str x
        -ERR value is out of range, must be positive
            SPOP str abc
            SPOP str -1
        -ERR syntax error
            SPOP s 1 2
            SPOP str 1 2
        SCARD s => :1
        "#,
    );
}

#[test]
fn the_deadline_and_the_encoding_of_the_rest_stay() {
    check(
        r#"
        ! SADD s a b c d
        > EXPIRE s 1000
        :1
        > SPOP s
        *
        > TTL s
        :990..1000
        > SPOP s 2
        [*, *]
        > TTL s
        :990..1000
        > OBJECT ENCODING s
        "hashtable" | "listpack"
        ! SADD n 1 2 3 4
        > SPOP n 3
        [*, *, *]
        > OBJECT ENCODING n
        "intset"
        // When most members are popped, Redis builds a new set of the rest: the deadline stays, the encoding may change.
        ! SADD most 1 2 3 4 5 6 7 8 9 10 a
        > EXPIRE most 1000
        :1
        > SREM most a
        :1
        > OBJECT ENCODING most
        "hashtable" | "listpack"
        > SPOP most 9
        [*, *, *, *, *, *, *, *, *]
        OBJECT ENCODING most => "intset" | "hashtable" | "listpack"
        SCARD most => :1
        TTL most => :990..1000
        "#,
    );
}

/// What is popped was there, is gone, and nothing else is.
#[test]
fn popped_and_left_make_up_the_set() {
    let session = Session::start();
    let mut connection = session.connect();
    // Counts on both sides of those at which Redis changes its algorithm: a few, most, nearly all.
    for names in ["", "m"] {
        for count in [0, 1, 2, 10, 50, 66, 67, 68, 80, 99, 100, 101, 5000] {
            connection.run("DEL s");
            let all: BTreeSet<Vec<u8>> = (0..100).map(|i| format!("{names}{i}").into_bytes()).collect();
            let members: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
            connection.run_with("SADD s", &members);
            assert_eq!(connection.run("OBJECT ENCODING s").text() == "intset", names.is_empty());
            let popped = connection.run(&format!("SPOP s {count}"));
            let left = connection.run("SMEMBERS s");
            assert_eq!(popped.items().len(), count.min(100), "SPOP s {count}");
            assert_eq!(left.items().len(), 100 - count.min(100), "after SPOP s {count}");
            let both: BTreeSet<Vec<u8>> =
                popped.items().iter().chain(left.items()).map(|member| member.bytes().to_vec()).collect();
            assert_eq!(both, all, "SPOP s {count}");
            assert_eq!(connection.run("EXISTS s").integer(), i64::from(count < 100));
        }
    }
}

#[test]
fn popping_one_by_one_empties_a_set() {
    let session = Session::start();
    let mut connection = session.connect();
    for names in ["", "m"] {
        let all: BTreeSet<String> = (0..300).map(|i| format!("{names}{i}")).collect();
        let members: Vec<&[u8]> = all.iter().map(String::as_bytes).collect();
        connection.run_with("SADD s", &members);
        let mut popped = BTreeSet::new();
        for left in (0..300).rev() {
            assert!(popped.insert(connection.run("SPOP s").text().to_owned()), "a member came twice");
            assert_eq!(connection.run("SCARD s").integer(), left);
        }
        assert_eq!(popped, all);
        assert_eq!(connection.run("SPOP s"), Reply::NilBulk);
    }
}

/// Each member can be the one that is popped. That one of them is never popped in so many tries has a chance of
/// 20 * 0.95^20000, less than 1 in 10^440.
#[test]
fn every_member_is_popped_sooner_or_later() {
    const TRIES_MAX: usize = 20_000;
    let session = Session::start();
    let mut connection = session.connect();
    for names in ["", "m"] {
        for command in ["SPOP s", "SPOP s 1", "SPOP s 3", "SPOP s 17"] {
            let fill = (0..20).map(|i| format!("{names}{i}")).collect::<Vec<_>>().join(" ");
            let mut seen = BTreeSet::new();
            for _ in 0..TRIES_MAX {
                let replies = connection.pipeline(&["DEL s", &format!("SADD s {fill}"), command]);
                match &replies[2] {
                    Reply::Bulk(member) => seen.extend([member.clone()]),
                    // Of nearly all, those that stay must differ from time to time: look at these.
                    reply if reply.items().len() > 10 => {
                        let left = connection.run("SMEMBERS s");
                        seen.extend(left.items().iter().map(|member| member.bytes().to_vec()));
                    }
                    reply => seen.extend(reply.items().iter().map(|member| member.bytes().to_vec())),
                }
                if seen.len() == 20 {
                    break;
                }
            }
            assert_eq!(seen.len(), 20, "{command} of members like {names}0 leaves some out");
        }
    }
}
