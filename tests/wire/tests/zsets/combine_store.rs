//! ZUNIONSTORE, ZINTERSTORE and ZDIFFSTORE.

use wire::check;

#[test]
fn zunionstore() {
    check(
        r#"
        ! ZADD a 1 x 2 y 3 z
        ! ZADD b 10 y 20 z 30 q
        > ZUNIONSTORE to 2 a b
        :4
        > ZRANGE to 0 -1 WITHSCORES
        ["x", "1", "y", "12", "z", "23", "q", "30"]
        > ZUNIONSTORE to 2 a b WEIGHTS 2 3
        :4
        > ZRANGE to 0 -1 WITHSCORES
        ["x", "2", "y", "34", "z", "66", "q", "90"]
        > ZUNIONSTORE to 2 a b AGGREGATE MIN
        :4
        > ZRANGE to 0 -1 WITHSCORES
        ["x", "1", "y", "2", "z", "3", "q", "30"]
        > ZUNIONSTORE to 2 a b AGGREGATE MAX WEIGHTS 1 -1
        :4
        > ZRANGE to 0 -1 WITHSCORES
        ["q", "-30", "x", "1", "y", "2", "z", "3"]
        > ZUNIONSTORE to 1 nosuch
        :0
        > EXISTS to
        :0
        > ZUNIONSTORE to 2 nosuch a
        :3
        > ZCARD to
        :3
        > TYPE to
        +zset
        "#,
    );
}

#[test]
fn zinterstore() {
    check(
        r#"
        ! ZADD a 1 x 2 y 3 z
        ! ZADD b 10 y 20 z 30 q
        > ZINTERSTORE to 2 a b
        :2
        > ZRANGE to 0 -1 WITHSCORES
        ["y", "12", "z", "23"]
        > ZINTERSTORE to 2 a b WEIGHTS 2 3
        :2
        > ZRANGE to 0 -1 WITHSCORES
        ["y", "34", "z", "66"]
        > ZINTERSTORE to 2 a b AGGREGATE MIN
        :2
        > ZRANGE to 0 -1 WITHSCORES
        ["y", "2", "z", "3"]
        > ZINTERSTORE to 2 a b AGGREGATE MAX
        :2
        > ZRANGE to 0 -1 WITHSCORES
        ["y", "10", "z", "20"]
        > ZINTERSTORE to 2 a nosuch
        :0
        > EXISTS to
        :0
        "#,
    );
}

#[test]
fn zdiffstore() {
    check(
        r#"
        ! ZADD a 1 x 2 y 3 z
        ! ZADD b 10 y 20 z 30 q
        > ZDIFFSTORE to 2 a b
        :1
        > ZRANGE to 0 -1 WITHSCORES
        ["x", "1"]
        > ZDIFFSTORE to 2 b a
        :1
        > ZRANGE to 0 -1 WITHSCORES
        ["q", "30"]
        > ZDIFFSTORE to 1 a
        :3
        > ZRANGE to 0 -1 WITHSCORES
        ["x", "1", "y", "2", "z", "3"]
        > ZDIFFSTORE to 2 a a
        :0
        > EXISTS to
        :0
        > ZDIFFSTORE to 2 nosuch a
        :0
        "#,
    );
}

#[test]
fn the_target_may_be_a_source() {
    check(
        r#"
        ! ZADD a 1 x 2 y
        ! ZADD b 10 y
        > ZUNIONSTORE a 2 a b
        :2
        > ZRANGE a 0 -1 WITHSCORES
        ["x", "1", "y", "12"]
        > ZUNIONSTORE a 2 a a
        :2
        > ZRANGE a 0 -1 WITHSCORES
        ["x", "2", "y", "24"]
        > ZINTERSTORE b 2 a b
        :1
        > ZRANGE b 0 -1 WITHSCORES
        ["y", "34"]
        > ZDIFFSTORE a 2 a b
        :1
        > ZRANGE a 0 -1 WITHSCORES
        ["x", "2"]
        "#,
    );
}

#[test]
fn storing_refuses_bad_arguments() {
    check(
        r#"
        ! ZADD z 1 a
        ! ZADD to 1 x
        -ERR at least 1 input key is needed for 'zunionstore' command
            ZUNIONSTORE to 0 z
            ZUNIONSTORE to -1 z
        ZINTERSTORE to 0 z => -ERR at least 1 input key is needed for 'zinterstore' command
        ZDIFFSTORE to 0 z => -ERR at least 1 input key is needed for 'zdiffstore' command
        ZUNIONSTORE to x z => -ERR value is not an integer or out of range
        -ERR syntax error
            ZUNIONSTORE to 2 z
            ZINTERSTORE to 9223372036854775807 z
            ZUNIONSTORE to 1 z WITHSCORES
            ZINTERSTORE to 1 z WITHSCORES
            ZDIFFSTORE to 1 z WITHSCORES
            ZUNIONSTORE to 1 z WEIGHTS
            ZUNIONSTORE to 2 z z WEIGHTS 1
            ZUNIONSTORE to 1 z AGGREGATE
            ZUNIONSTORE to 1 z AGGREGATE NOSUCH
            ZDIFFSTORE to 1 z WEIGHTS 1
            ZDIFFSTORE to 1 z AGGREGATE MAX
        -ERR weight value is not a float
            ZUNIONSTORE to 1 z WEIGHTS x
            ZUNIONSTORE to 1 z WEIGHTS nan
        ! SET s x
        -WRONGTYPE Operation against a key holding the wrong kind of value
            ZUNIONSTORE to 1 s
            ZINTERSTORE to 2 nosuch s
            ZDIFFSTORE to 2 z s
            ZUNIONSTORE to 1 s AGGREGATE NOSUCH
        ZRANGE to 0 -1 => ["x"]
        "#,
    );
}
