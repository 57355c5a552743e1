//! OBJECT ENCODING of sets as Redis 7.0 has them: `intset` while all members are integers and there are few of them,
//! `hashtable` otherwise. A table never becomes an intset again. Redis 7.2 added `listpack` for small sets of other members.

use crate::check_as_redis_7_0;
use wire::{Session, check};

#[test]
fn integers_make_an_intset() {
    check(
        r#"
        > CONFIG GET set-max-intset-entries
        ["set-max-intset-entries", "512"]
        > SADD s 1 2 3
        :3
        > OBJECT ENCODING s
        "intset"
        > SREM s 2
        :1
        > OBJECT ENCODING s
        "intset"
        > SADD s -9223372036854775808 9223372036854775807
        :2
        > OBJECT ENCODING s
        "intset"
        > SREM s -9223372036854775808 9223372036854775807
        :2
        > OBJECT ENCODING s
        "intset"
        > DEBUG OBJECT s
        ~+*encoding:intset*
        "#,
    );
}

#[test]
fn another_member_makes_a_table() {
    check_as_redis_7_0(
        r#"
        > SADD s 1 2
        :2
        > SADD s x
        :1
        > OBJECT ENCODING s
        "hashtable"
        > SMEMBERS s
        ~["x", "1", "2"]
        // It stays a table.
        > SREM s x
        :1
        > OBJECT ENCODING s
        "hashtable"
        > SADD s 3
        :1
        > OBJECT ENCODING s
        "hashtable"
        > SADD one x
        :1
        > OBJECT ENCODING one
        "hashtable"
        > SADD two 1 x
        :2
        > OBJECT ENCODING two
        "hashtable"
        > SADD three x 1
        :2
        > OBJECT ENCODING three
        "hashtable"
        > SADD empty ""
        :1
        > OBJECT ENCODING empty
        "hashtable"
        > DEBUG OBJECT s
        ~+*encoding:hashtable*
        > DEL s
        :1
        > SADD s 1
        :1
        > OBJECT ENCODING s
        "intset"
        "#,
    );
}

/// Asking for a member that is no integer changes nothing.
#[test]
fn reading_changes_no_encoding() {
    check(
        r#"
        > SADD s 1 2
        :2
        > SISMEMBER s x
        :0
        > SMISMEMBER s x 1
        [:0, :1]
        > SREM s x
        :0
        > SMOVE s other x
        :0
        > SINTER s s
        ~["1", "2"]
        > SRANDMEMBER s 2
        ~["1", "2"]
        > SPOP s 0
        []
        > OBJECT ENCODING s
        "intset"
        "#,
    );
}

#[test]
fn too_many_members_make_a_table() {
    check_as_redis_7_0(
        r#"
        # config set-max-intset-entries 3
        > SADD s 1 2 3
        :3
        > OBJECT ENCODING s
        "intset"
        > SADD s 1 2 3
        :0
        > OBJECT ENCODING s
        "intset"
        > SADD s 4
        :1
        > OBJECT ENCODING s
        "hashtable"
        > SMEMBERS s
        ~["1", "2", "3", "4"]
        > SREM s 4 3
        :2
        > OBJECT ENCODING s
        "hashtable"
        > SADD at-once 1 2 3 4
        :4
        > OBJECT ENCODING at-once
        "hashtable"
        > SADD repeated 1 1 1 1 2 2
        :2
        > OBJECT ENCODING repeated
        "intset"
        // A new limit does not change existing sets until a member is added.
        > SADD early 1 2 3
        :3
        # config set-max-intset-entries 2
        > OBJECT ENCODING early
        "intset"
        > SADD early 3
        :0
        > OBJECT ENCODING early
        "intset"
        > SREM early 3
        :1
        > SADD early 9
        :1
        > OBJECT ENCODING early
        "hashtable"
        # config set-max-intset-entries 0
        > SADD none 1
        :1
        > OBJECT ENCODING none
        "hashtable"
        > SMEMBERS none
        ["1"]
        # config set-max-intset-entries 512
        > SADD none 2
        :1
        > OBJECT ENCODING none
        "hashtable"
        > DEL none
        :1
        > SADD none 2
        :1
        > OBJECT ENCODING none
        "intset"
        > CONFIG SET set-max-intset-entries -1
        ~-ERR *
        > CONFIG SET set-max-intset-entries x
        ~-ERR *
        "#,
    );
}

#[test]
fn at_most_512_members_are_an_intset() {
    let session = Session::start();
    let mut connection = session.connect();
    let members: Vec<String> = (0..512).map(|i| i.to_string()).collect();
    connection.run(&format!("SADD s {}", members.join(" ")));
    assert_eq!(connection.run("OBJECT ENCODING s").text(), "intset");
    connection.run("SADD s 511");
    assert_eq!(connection.run("OBJECT ENCODING s").text(), "intset");
    connection.run("SADD s 512");
    assert_eq!(connection.run("OBJECT ENCODING s").text(), "hashtable");
    assert_eq!(connection.run("SCARD s").integer(), 513);
    connection.run("SREM s 512");
    assert_eq!(connection.run("OBJECT ENCODING s").text(), "hashtable");
}

#[test]
fn copies_and_other_names_keep_the_encoding() {
    check_as_redis_7_0(
        r#"
        > SADD s 1 2 x
        :3
        > SREM s x
        :1
        > COPY s copy
        :1
        > OBJECT ENCODING copy
        "hashtable"
        > RENAME copy other
        +OK
        > OBJECT ENCODING other
        "hashtable"
        > SADD n 1 2
        :2
        > COPY n copy
        :1
        > OBJECT ENCODING copy
        "intset"
        "#,
    );
}

#[test]
fn a_reload_keeps_what_is_in_them() {
    check_as_redis_7_0(
        r#"
        > SADD n 1 2 3
        :3
        > SADD wide 1 -70000 5000000000 -9223372036854775808
        :4
        > SADD table a b 1 "" "\x00\xff"
        :5
        > SADD shrunk 1 2 x
        :3
        > SREM shrunk x
        :1
        > EXPIRE n 1000
        :1
        > DEBUG RELOAD
        +OK
        > OBJECT ENCODING n
        "intset"
        > OBJECT ENCODING wide
        "intset"
        > OBJECT ENCODING table
        "hashtable"
        // Redis chooses the encoding again when it loads a table.
        > OBJECT ENCODING shrunk
        "intset" | "hashtable"
        > SMEMBERS n
        ~["1", "2", "3"]
        > SMEMBERS wide
        ~["1", "-70000", "5000000000", "-9223372036854775808"]
        > SMEMBERS table
        ~["", "\x00\xff", "a", "b", "1"]
        > SMEMBERS shrunk
        ~["1", "2"]
        > TTL n
        :990..1000
        > SADD wide 2
        :1
        > SISMEMBER wide -9223372036854775808
        :1
        "#,
    );
}

/// What a set answers does not depend on how it is kept.
#[test]
fn intsets_and_tables_answer_alike() {
    let session = Session::start();
    let mut connection = session.connect();
    let questions = [
        "SADD s 1 2 3 4 5 -1 0 70000",
        "SADD s 1 9 9",
        "SCARD s",
        "SISMEMBER s 9",
        "SISMEMBER s 09",
        "SMISMEMBER s 1 x 70000 70001 -0 -1",
        "SREM s 1 x 2 2",
        "SINTERCARD 2 s s",
        "SINTERCARD 2 s s LIMIT 2",
        "SINTERSTORE to s other",
        "SCARD to",
        "SDIFFSTORE to s other",
        "SCARD to",
        "SUNIONSTORE to s other",
        "SCARD to",
        "SMOVE s to 70000",
        "SMOVE s to 70000",
        "SREM s 3 4 5 -1 0 9 8",
        "EXISTS s",
    ];
    let mut answers = Vec::new();
    for entries in ["512", "0"] {
        connection.run("FLUSHALL");
        connection.run("SADD other 3 4 8 x");
        connection.run(&format!("CONFIG SET set-max-intset-entries {entries}"));
        answers.push(questions.map(|question| connection.run(question).to_string()));
    }
    connection.run("CONFIG SET set-max-intset-entries 512");
    for (at, question) in questions.iter().enumerate() {
        assert_eq!(answers[0][at], answers[1][at], "{question}");
    }
}
