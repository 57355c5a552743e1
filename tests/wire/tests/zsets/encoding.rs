//! OBJECT ENCODING of sorted sets: `listpack` while they are small, `skiplist` for good when they have been large.

use wire::{Session, check};

#[test]
fn a_small_set_is_a_listpack() {
    check(
        r#"
        > CONFIG GET zset-max-listpack-entries
        ["zset-max-listpack-entries", "128"]
        > CONFIG GET zset-max-listpack-value
        ["zset-max-listpack-value", "64"]
        ! ZADD z 1 a 2 b
        > OBJECT ENCODING z
        "listpack"
        > ZINCRBY z 1 a
        "2"
        > ZREM z b
        :1
        > OBJECT ENCODING z
        "listpack"
        ! ZADD z 1 0123456789012345678901234567890123456789012345678901234567890123
        > OBJECT ENCODING z
        "listpack"
        ! ZADD z 1 01234567890123456789012345678901234567890123456789012345678901234
        > OBJECT ENCODING z
        "skiplist"
        > ZREM z 01234567890123456789012345678901234567890123456789012345678901234
        :1
        > OBJECT ENCODING z
        "skiplist"
        > COPY z copy
        :1
        > OBJECT ENCODING copy
        "skiplist"
        > RENAME copy other
        +OK
        > OBJECT ENCODING other
        "skiplist"
        ! ZADD new 1 01234567890123456789012345678901234567890123456789012345678901234
        > OBJECT ENCODING new
        "skiplist"
        > ZINCRBY new2 1 01234567890123456789012345678901234567890123456789012345678901234
        "1"
        > OBJECT ENCODING new2
        "skiplist"
        "#,
    );
}

#[test]
fn too_many_members_make_it_a_skiplist() {
    check(
        r#"
        # config zset-max-listpack-entries 3
        ! ZADD z 1 a 2 b 3 c
        > OBJECT ENCODING z
        "listpack"
        > ZADD z 1 a 2 b 3 c
        :0
        > OBJECT ENCODING z
        "listpack"
        ! ZADD z 1 d
        > OBJECT ENCODING z
        "skiplist"
        > ZREM z d c b
        :3
        > OBJECT ENCODING z
        "skiplist"
        ! ZADD one 1 a 2 b 3 c 4 d
        > OBJECT ENCODING one
        "skiplist"
        > ZADD nx NX 1 a 2 b 3 c
        :3
        > ZADD nx NX 1 a 2 b 3 c 4 d
        :1
        OBJECT ENCODING nx => "skiplist"
        "1"
            ZINCRBY incr 1 a
            ZINCRBY incr 1 b
            ZINCRBY incr 1 c
        OBJECT ENCODING incr => "listpack"
        > ZINCRBY incr 1 d
        "1"
        > OBJECT ENCODING incr
        "skiplist"
        "#,
    );
}

#[test]
fn limits_of_encodings_can_be_changed() {
    check(
        r#"
        # config zset-max-listpack-entries 0
        ! ZADD z 1 a
        > OBJECT ENCODING z
        "skiplist"
        > ZRANGE z 0 -1 WITHSCORES
        ["a", "1"]
        # config zset-max-listpack-entries 128
        // It is too late for this one, and a new one is small again.
        ! ZADD z 1 b
        > OBJECT ENCODING z
        "skiplist"
        > DEL z
        :1
        ! ZADD z 1 a
        > OBJECT ENCODING z
        "listpack"
        # config zset-max-listpack-value 3
        ! ZADD z 1 abc
        > OBJECT ENCODING z
        "listpack"
        ! ZADD z 1 abcd
        > OBJECT ENCODING z
        "skiplist"
        "#,
    );
}

#[test]
fn what_is_stored_is_as_small_as_it_can_be() {
    check(
        r#"
        # config zset-max-listpack-entries 3
        ! ZADD large 1 a 2 b 3 c 4 d 5 e
        ! ZADD small 1 a 2 b
        > ZUNIONSTORE to 1 large
        :5
        > OBJECT ENCODING to
        "skiplist"
        > ZUNIONSTORE to 1 small
        :2
        > OBJECT ENCODING to
        "listpack"
        > ZUNIONSTORE to 2 small large
        :5
        > OBJECT ENCODING to
        "skiplist"
        > ZINTERSTORE to 2 small large
        :2
        > OBJECT ENCODING to
        "listpack"
        > ZDIFFSTORE to 2 large small
        :3
        > OBJECT ENCODING to
        "listpack"
        > ZDIFFSTORE to 1 large
        :5
        > OBJECT ENCODING to
        "skiplist"
        > ZRANGESTORE to large 0 -1
        :5
        > OBJECT ENCODING to
        "skiplist"
        > ZRANGESTORE to large 0 1
        :2
        > OBJECT ENCODING to
        "listpack"
        > ZRANGESTORE to large 2 4 BYSCORE
        :3
        > OBJECT ENCODING to
        "listpack"
        > COPY large copy
        :1
        > ZREM copy a b c
        :3
        > OBJECT ENCODING copy
        "skiplist"
        > ZPOPMIN large 3
        ["a", "1", "b", "2", "c", "3"]
        > OBJECT ENCODING large
        "skiplist"
        "#,
    );
}

#[test]
fn a_reload_keeps_what_is_in_them() {
    check(
        r#"
        # config zset-max-listpack-entries 3
        ! ZADD large 0.1 a 1e21 b inf c -inf d 3 e
        ! ZADD small 0.5 a -inf b
        ! ZADD shrunk 1 a 2 b 3 c 4 d 5 e
        > ZPOPMIN shrunk 3
        ["a", "1", "b", "2", "c", "3"]
        > DEBUG RELOAD
        +OK
        > OBJECT ENCODING large
        "skiplist"
        > OBJECT ENCODING small
        "listpack"
        // Redis looks again at what has been large.
        OBJECT ENCODING shrunk => "listpack" | "skiplist"
        ZRANGE large 0 -1 => ["d", "a", "e", "b", "c"]
        ZRANGEBYSCORE large 3 inf WITHSCORES => ["e", "3", "b", "1e+21", "c", "inf"]
        ZRANGE small 0 -1 WITHSCORES => ["b", "-inf", "a", "0.5"]
        ZRANGE shrunk 0 -1 WITHSCORES => ["d", "4", "e", "5"]
        "#,
    );
}

#[test]
fn the_old_names_of_the_limits() {
    check(
        r#"
        > CONFIG GET zset-max-ziplist-*
        ~["zset-max-ziplist-entries", "128", "zset-max-ziplist-value", "64"]
        # config zset-max-ziplist-entries 1
        > CONFIG GET zset-max-listpack-entries
        ["zset-max-listpack-entries", "1"]
        ! ZADD z 1 a 2 b
        > OBJECT ENCODING z
        "skiplist"
        > CONFIG SET zset-max-listpack-entries -1
        ~-ERR *
        > CONFIG SET zset-max-listpack-value x
        ~-ERR *
        "#,
    );
}

/// What a set answers does not depend on how it is kept.
#[test]
fn small_and_large_sets_answer_alike() {
    let session = Session::start();
    let mut connection = session.connect();
    let scores = ["0", "-1", "1.5", "inf", "-inf", "1e17", "9007199254740993", "0.1", "3.0e-7", "2", "2", "1.5"];
    let pairs: Vec<String> = scores.iter().enumerate().map(|(i, score)| format!("{score} m{i:02}")).collect();
    let questions = [
        "ZRANGE z 0 -1 WITHSCORES",
        "ZRANGE z 2 5 REV WITHSCORES",
        "ZRANGEBYSCORE z (0 (2 WITHSCORES LIMIT 1 2",
        "ZRANGEBYSCORE z -inf +inf WITHSCORES",
        "ZREVRANGEBYSCORE z 1.5 -1 LIMIT 1 3",
        "ZCOUNT z 0 1.5",
        "ZCOUNT z (0 inf",
        "ZRANK z m09",
        "ZREVRANK z m09",
        "ZMSCORE z m03 m04 m05 m06 m07 m08 nosuch",
        "ZINCRBY z 0.2 m07",
        "ZADD z GT CH 5 m00 1 m03 -5 m09",
        "ZREMRANGEBYRANK z 1 2",
        "ZREMRANGEBYSCORE z 1 1.5",
        "ZPOPMAX z 2",
        "ZPOPMIN z 2",
        "ZRANGE z 0 -1 WITHSCORES",
    ];
    let mut answers = Vec::new();
    for entries in ["128", "0"] {
        connection.run("DEL z");
        connection.run(&format!("CONFIG SET zset-max-listpack-entries {entries}"));
        connection.run(&format!("ZADD z {}", pairs.join(" ")));
        answers.push(questions.map(|question| connection.run(question).to_string()));
    }
    connection.run("CONFIG SET zset-max-listpack-entries 128");
    for (at, question) in questions.iter().enumerate() {
        assert_eq!(answers[0][at], answers[1][at], "{question}");
    }
}
