//! OBJECT ENCODING of sets as Redis has them since 7.2: `intset` while all members are integers and there are few of them,
//! `listpack` while the members are few and short, `hashtable` otherwise. A set never returns to a
//! smaller form, unless SPOP with a count leaves few of its members.

use wire::{Product, Session, check};

#[test]
fn integers_make_an_intset() {
    check(
        r#"
        > CONFIG GET set-max-intset-entries
        ["set-max-intset-entries", "512"]
        ! SADD s 1 2 3
        > OBJECT ENCODING s
        "intset"
        > SREM s 2
        :1
        > OBJECT ENCODING s
        "intset"
        ! SADD s -9223372036854775808 9223372036854775807
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
fn another_member_makes_a_listpack() {
    check(
        r#"
        # needs redis >= 7.2
        ! SADD s 1 2
        ! SADD s x
        > OBJECT ENCODING s
        "listpack"
        > SMEMBERS s
        ~["x", "1", "2"]
        // It stays a listpack.
        > SREM s x
        :1
        > OBJECT ENCODING s
        "listpack"
        ! SADD s 3
        > OBJECT ENCODING s
        "listpack"
        ! SADD one x
        > OBJECT ENCODING one
        "listpack"
        ! SADD two 1 x
        > OBJECT ENCODING two
        "listpack"
        ! SADD three x 1
        > OBJECT ENCODING three
        "listpack"
        ! SADD empty ""
        > OBJECT ENCODING empty
        "listpack"
        > DEBUG OBJECT s
        ~+*encoding:listpack*
        > DEL s
        :1
        ! SADD s 1
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
        ! SADD s 1 2
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
    check(
        r#"
        # needs redis >= 7.2
        # config set-max-intset-entries 3
        ! SADD s 1 2 3
        > OBJECT ENCODING s
        "intset"
        > SADD s 1 2 3
        :0
        > OBJECT ENCODING s
        "intset"
        ! SADD s 4
        > OBJECT ENCODING s
        "hashtable"
        > SMEMBERS s
        ~["1", "2", "3", "4"]
        > SREM s 4 3
        :2
        > OBJECT ENCODING s
        "hashtable"
        // How many are given at once decides how a set begins.
        ! SADD at-once 1 2 3 4
        > OBJECT ENCODING at-once
        "listpack"
        ! SADD repeated 1 1 2
        > OBJECT ENCODING repeated
        "intset"
        ! SADD more-given 1 1 1 1 2 2
        > OBJECT ENCODING more-given
        "listpack"
        // A new limit does not change existing sets until a member is added.
        ! SADD early 1 2 3
        # config set-max-intset-entries 2
        > OBJECT ENCODING early
        "intset"
        > SADD early 3
        :0
        > OBJECT ENCODING early
        "intset"
        > SREM early 3
        :1
        ! SADD early 9
        > OBJECT ENCODING early
        "hashtable"
        # config set-max-intset-entries 0
        ! SADD none 1
        > OBJECT ENCODING none
        "listpack"
        > SMEMBERS none
        ["1"]
        # config set-max-intset-entries 512
        ! SADD none 2
        > OBJECT ENCODING none
        "listpack"
        > DEL none
        :1
        ! SADD none 2
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
    check(
        r#"
        # needs redis >= 7.2
        ! SADD s 1 2 x
        > SREM s x
        :1
        > COPY s copy
        :1
        > OBJECT ENCODING copy
        "listpack"
        > RENAME copy other
        +OK
        > OBJECT ENCODING other
        "listpack"
        ! SADD n 1 2
        > COPY n copy
        :1
        > OBJECT ENCODING copy
        "intset"
        "#,
    );
}

#[test]
fn a_reload_keeps_what_is_in_them() {
    check(
        r#"
        # needs redis >= 7.2
        ! SADD n 1 2 3
        ! SADD wide 1 -70000 5000000000 -9223372036854775808
        ! SADD small a b 1 "" "\x00\xff"
        ! SADD shrunk 1 2 x
        > SREM shrunk x
        :1
        > EXPIRE n 1000
        :1
        > DEBUG RELOAD
        +OK
        OBJECT ENCODING n => "intset"
        OBJECT ENCODING wide => "intset"
        OBJECT ENCODING small => "listpack"
        OBJECT ENCODING shrunk => "listpack"
        SMEMBERS n => ~["1", "2", "3"]
        SMEMBERS wide => ~["1", "-70000", "5000000000", "-9223372036854775808"]
        SMEMBERS small => ~["", "\x00\xff", "a", "b", "1"]
        SMEMBERS shrunk => ~["1", "2"]
        TTL n => :990..1000
        ! SADD wide 2
        > SISMEMBER wide -9223372036854775808
        :1
        "#,
    );
}

#[test]
fn too_many_members_of_a_listpack_make_a_table() {
    check(
        r#"
        # needs redis >= 7.2
        > CONFIG GET set-max-listpack-*
        ~["set-max-listpack-entries", "128", "set-max-listpack-value", "64"]
        # config set-max-listpack-entries 3
        # config set-max-listpack-value 4
        ! SADD s a b c
        > OBJECT ENCODING s
        "listpack"
        > SADD s a b c
        :0
        ! SADD s d
        > OBJECT ENCODING s
        "hashtable"
        > SREM s b c d
        :3
        > OBJECT ENCODING s
        "hashtable"
        // A long member.
        ! SADD long a 1234
        > OBJECT ENCODING long
        "listpack"
        ! SADD long 12345
        > OBJECT ENCODING long
        "hashtable"
        ! SADD begins-long abcde
        > OBJECT ENCODING begins-long
        "hashtable"
        // An intset that is asked to hold a text: its integers and the text must fit.
        ! SADD n 1 2
        ! SADD n a
        > OBJECT ENCODING n
        "listpack"
        ! SADD three 1 2 3
        ! SADD three a
        > OBJECT ENCODING three
        "hashtable"
        ! SADD wide -1234
        ! SADD wide a
        > OBJECT ENCODING wide
        "hashtable"
        ! SADD text 1
        ! SADD text abcde
        > OBJECT ENCODING text
        "hashtable"
        // A new limit does not change existing sets until a member is added.
        ! SADD early a b c
        # config set-max-listpack-entries 2
        > SADD early a
        :0
        > SREM early b
        :1
        > OBJECT ENCODING early
        "listpack"
        ! SADD early d
        > OBJECT ENCODING early
        "hashtable"
        # config set-max-listpack-entries 0
        ! SADD none a
        > OBJECT ENCODING none
        "hashtable"
        "#,
    );
}

#[test]
fn at_most_128_members_of_64_bytes_are_a_listpack() {
    let session = Session::start();
    if session.product() != Product::Holdfast && !session.has_redis("7.2") {
        return wire::skip("older than Redis 7.2");
    }
    let mut connection = session.connect();
    let members: Vec<String> = (0..128).map(|number| format!("{number:m>64}")).collect();
    for (number, member) in members.iter().enumerate() {
        assert_eq!(connection.run(&format!("SADD s {member}")).integer(), 1);
        assert_eq!(connection.run("OBJECT ENCODING s").text(), "listpack", "{number}");
    }
    connection.run(&format!("SADD at-once {}", members.join(" ")));
    for key in ["s", "at-once"] {
        assert_eq!(connection.run(&format!("OBJECT ENCODING {key}")).text(), "listpack");
        assert_eq!(connection.run(&format!("SADD {key} {}", members[70])).integer(), 0);
        connection.run(&format!("COPY {key} copy REPLACE"));
        connection.run("DEBUG RELOAD");
        assert_eq!(connection.run("OBJECT ENCODING copy").text(), "listpack");
        assert_eq!(connection.run("SADD copy x").integer(), 1);
        assert_eq!(connection.run("OBJECT ENCODING copy").text(), "hashtable");
        assert_eq!(connection.run(&format!("SREM {key} {}", members[7])).integer(), 1);
        assert_eq!(connection.run(&format!("SADD {key} {}", "x".repeat(65))).integer(), 1);
        assert_eq!(connection.run(&format!("OBJECT ENCODING {key}")).text(), "hashtable");
        assert_eq!(connection.run(&format!("SCARD {key}")).integer(), 128);
    }
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

/// SPOP that removes at least five times as many members as it leaves makes a new set of these.
#[test]
fn few_members_that_spop_leaves_of_many_are_a_listpack() {
    check(
        r#"
        # needs redis >= 7.2
        # config set-max-listpack-value 4
        # config set-max-intset-entries 3
        ! SADD many a b c d e f longer
        > SREM many longer
        :1
        > OBJECT ENCODING many
        "hashtable"
        > COPY many fewer
        :1
        > EVAL "return #redis.call('SPOP', KEYS[1], ARGV[1])" 1 many 4
        :4
        > OBJECT ENCODING many
        "hashtable"
        > EVAL "return #redis.call('SPOP', KEYS[1], ARGV[1])" 1 fewer 5
        :5
        > OBJECT ENCODING fewer
        "listpack"
        ! SADD fewer longer
        > OBJECT ENCODING fewer
        "hashtable"
        // One by one they stay a table.
        ! SADD single a b c d e longer
        > SREM single a b c d longer
        :5
        > EVAL "redis.call('SADD', KEYS[1], 'x') redis.call('SPOP', KEYS[1])" 1 single
        (nil)
        > OBJECT ENCODING single
        "hashtable"
        // Integers that were a table become a listpack, and those that were an intset stay one.
        ! SADD numbers 1 2 3
        ! SADD numbers 4 5 6
        > OBJECT ENCODING numbers
        "hashtable"
        > EVAL "return #redis.call('SPOP', KEYS[1], ARGV[1])" 1 numbers 5
        :5
        > OBJECT ENCODING numbers
        "listpack"
        # config set-max-intset-entries 512
        ! SADD few 1 2 3 4 5 6
        > EVAL "return #redis.call('SPOP', KEYS[1], ARGV[1])" 1 few 5
        :5
        > OBJECT ENCODING few
        "intset"
        // What is left is too long.
        ! SADD long longer1 longer2 longer3 longer4 longer5 longer6
        > EVAL "return #redis.call('SPOP', KEYS[1], ARGV[1])" 1 long 5
        :5
        > OBJECT ENCODING long
        "hashtable"
        // There are too many.
        # config set-max-listpack-entries 1
        ! SADD two a b c d e f g h i j k l
        > EVAL "return #redis.call('SPOP', KEYS[1], ARGV[1])" 1 two 10
        :10
        > OBJECT ENCODING two
        "hashtable"
        "#,
    );
}
