//! ZUNIONSTORE, ZINTERSTORE and ZDIFFSTORE.

use wire::check;

#[test]
fn zunionstore() {
    check(
        r#"
        > ZADD a 1 x 2 y 3 z
        :3
        > ZADD b 10 y 20 z 30 q
        :3
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
        > ZADD a 1 x 2 y 3 z
        :3
        > ZADD b 10 y 20 z 30 q
        :3
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
        > ZADD a 1 x 2 y 3 z
        :3
        > ZADD b 10 y 20 z 30 q
        :3
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
fn the_target_may_be_anything() {
    check(
        r#"
        > ZADD a 1 x 2 y
        :2
        > ZADD b 10 y
        :1
        > SET to x EX 1000
        +OK
        > ZUNIONSTORE to 2 a b
        :2
        > TYPE to
        +zset
        > TTL to
        :-1
        > EXPIRE a 1000
        :1
        > ZUNIONSTORE a 2 a b
        :2
        > ZRANGE a 0 -1 WITHSCORES
        ["x", "1", "y", "12"]
        > TTL a
        :-1
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
        > HSET h f v
        :1
        > ZINTERSTORE h 2 a nosuch
        :0
        > EXISTS h
        :0
        > HSET h f v
        :1
        > ZDIFFSTORE h 2 a b
        :1
        > TYPE h
        +zset
        "#,
    );
}

#[test]
fn storing_refuses_bad_arguments() {
    check(
        r#"
        > ZADD z 1 a
        :1
        > ZADD to 1 x
        :1
        > ZUNIONSTORE to 0 z
        -ERR at least 1 input key is needed for 'zunionstore' command
        > ZINTERSTORE to 0 z
        -ERR at least 1 input key is needed for 'zinterstore' command
        > ZDIFFSTORE to 0 z
        -ERR at least 1 input key is needed for 'zdiffstore' command
        > ZUNIONSTORE to -1 z
        -ERR at least 1 input key is needed for 'zunionstore' command
        > ZUNIONSTORE to x z
        -ERR value is not an integer or out of range
        > ZUNIONSTORE to 2 z
        -ERR syntax error
        > ZINTERSTORE to 9223372036854775807 z
        -ERR syntax error
        > ZUNIONSTORE to 1 z WITHSCORES
        -ERR syntax error
        > ZINTERSTORE to 1 z WITHSCORES
        -ERR syntax error
        > ZDIFFSTORE to 1 z WITHSCORES
        -ERR syntax error
        > ZUNIONSTORE to 1 z WEIGHTS
        -ERR syntax error
        > ZUNIONSTORE to 1 z WEIGHTS x
        -ERR weight value is not a float
        > ZUNIONSTORE to 1 z WEIGHTS nan
        -ERR weight value is not a float
        > ZUNIONSTORE to 2 z z WEIGHTS 1
        -ERR syntax error
        > ZUNIONSTORE to 1 z AGGREGATE
        -ERR syntax error
        > ZUNIONSTORE to 1 z AGGREGATE NOSUCH
        -ERR syntax error
        > ZDIFFSTORE to 1 z WEIGHTS 1
        -ERR syntax error
        > ZDIFFSTORE to 1 z AGGREGATE MAX
        -ERR syntax error
        > ZUNIONSTORE to 1
        -ERR wrong number of arguments for 'zunionstore' command
        > ZINTERSTORE to 1
        -ERR wrong number of arguments for 'zinterstore' command
        > ZDIFFSTORE to 1
        -ERR wrong number of arguments for 'zdiffstore' command
        > ZUNIONSTORE
        -ERR wrong number of arguments for 'zunionstore' command
        > SET s x
        +OK
        > ZUNIONSTORE to 1 s
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZINTERSTORE to 2 nosuch s
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZDIFFSTORE to 2 z s
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZUNIONSTORE to 1 s AGGREGATE NOSUCH
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZRANGE to 0 -1
        ["x"]
        "#,
    );
}
