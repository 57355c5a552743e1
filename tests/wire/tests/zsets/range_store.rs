//! ZRANGESTORE.

use wire::check;

#[test]
fn zrangestore() {
    check(
        r#"
        > ZADD z 1 a 2 b 3 c 4 d
        :4
        > ZRANGESTORE to z 0 -1
        :4
        > ZRANGE to 0 -1 WITHSCORES
        ["a", "1", "b", "2", "c", "3", "d", "4"]
        > ZRANGESTORE to z 1 2
        :2
        > ZRANGE to 0 -1 WITHSCORES
        ["b", "2", "c", "3"]
        > ZRANGESTORE to z 0 1 REV
        :2
        > ZRANGE to 0 -1 WITHSCORES
        ["c", "3", "d", "4"]
        > ZRANGESTORE to z 2 3 BYSCORE
        :2
        > ZRANGE to 0 -1 WITHSCORES
        ["b", "2", "c", "3"]
        > ZRANGESTORE to z (1 +inf BYSCORE LIMIT 1 1
        :1
        > ZRANGE to 0 -1 WITHSCORES
        ["c", "3"]
        > ZRANGESTORE to z 3 2 BYSCORE REV LIMIT 0 1
        :1
        > ZRANGE to 0 -1 WITHSCORES
        ["c", "3"]
        > ZRANGESTORE to z -inf inf BYSCORE LIMIT 2 -1
        :2
        > ZRANGE to 0 -1 WITHSCORES
        ["c", "3", "d", "4"]
        > ZADD l 0 a 0 b 0 c
        :3
        > ZRANGESTORE to l [b + BYLEX
        :2
        > ZRANGE to 0 -1 WITHSCORES
        ["b", "0", "c", "0"]
        > ZRANGESTORE to l + - BYLEX REV LIMIT 0 2
        :2
        > ZRANGE to 0 -1 WITHSCORES
        ["b", "0", "c", "0"]
        > TYPE to
        +zset
        "#,
    );
}

#[test]
fn an_empty_range_removes_the_target() {
    check(
        r#"
        > ZADD z 1 a 2 b
        :2
        > ZADD to 9 x
        :1
        > ZRANGESTORE to z 5 6
        :0
        > EXISTS to
        :0
        > ZADD to 9 x
        :1
        > ZRANGESTORE to nosuch 0 -1
        :0
        > EXISTS to
        :0
        > ZADD to 9 x
        :1
        > ZRANGESTORE to z 2 1 BYSCORE
        :0
        > EXISTS to
        :0
        > ZRANGESTORE to z 3 4 BYSCORE
        :0
        > ZADD to 9 x
        :1
        > ZRANGESTORE to z + - BYLEX
        :0
        > EXISTS to
        :0
        > ZADD to 9 x
        :1
        > ZRANGESTORE to z -inf inf BYSCORE LIMIT 5 1
        :0
        > EXISTS to
        :0
        > ZADD to 9 x
        :1
        > ZRANGESTORE to z -inf inf BYSCORE LIMIT 0 0
        :0
        > EXISTS to
        :0
        > ZADD to 9 x
        :1
        > ZRANGESTORE to z -inf inf BYSCORE LIMIT -1 1
        :0
        > EXISTS to
        :0
        "#,
    );
}

#[test]
fn the_target_may_be_anything() {
    check(
        r#"
        > ZADD z 1 a 2 b 3 c
        :3
        > SET to x EX 1000
        +OK
        > ZRANGESTORE to z 0 0
        :1
        > ZRANGE to 0 -1
        ["a"]
        > TTL to
        :-1
        > EXPIRE to 1000
        :1
        > ZRANGESTORE to z 0 -1
        :3
        > TTL to
        :-1
        > EXPIRE z 1000
        :1
        > ZRANGESTORE z z 1 1
        :1
        > ZRANGE z 0 -1 WITHSCORES
        ["b", "2"]
        > TTL z
        :-1
        > HSET h f v
        :1
        > ZRANGESTORE h z 7 8
        :0
        > EXISTS h
        :0
        "#,
    );
}

#[test]
fn zrangestore_refuses_bad_arguments() {
    check(
        r#"
        > ZADD z 1 a
        :1
        > ZADD to 1 x
        :1
        > ZRANGESTORE to z 0 -1 WITHSCORES
        -ERR syntax error
        > ZRANGESTORE to z 0 1 BYSCORE WITHSCORES
        -ERR syntax error
        > ZRANGESTORE to z 0 -1 LIMIT 0 1
        -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        > ZRANGESTORE to z 0 -1 NOSUCH
        -ERR syntax error
        > ZRANGESTORE to z x 1
        -ERR value is not an integer or out of range
        > ZRANGESTORE to z 0 x
        -ERR value is not an integer or out of range
        > ZRANGESTORE to z x 1 BYSCORE
        -ERR min or max is not a float
        > ZRANGESTORE to z a b BYLEX
        -ERR min or max not valid string range item
        > ZRANGESTORE to z - + BYSCORE BYLEX
        -ERR syntax error
        > ZRANGESTORE to z 0 1 BYSCORE LIMIT 0
        -ERR syntax error
        > ZRANGESTORE to z 0 1 BYSCORE LIMIT x y
        -ERR value is not an integer or out of range
        > ZRANGESTORE to z 0
        -ERR wrong number of arguments for 'zrangestore' command
        > ZRANGESTORE to z
        -ERR wrong number of arguments for 'zrangestore' command
        > ZRANGESTORE
        -ERR wrong number of arguments for 'zrangestore' command
        > SET s x
        +OK
        > ZRANGESTORE to s 0 -1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZRANGESTORE to s x 1
        -ERR value is not an integer or out of range
        > ZRANGE to 0 -1
        ["x"]
        > ZRANGESTORE to nosuch x 1
        -ERR value is not an integer or out of range
        > HELLO 3
        *
        > ZRANGESTORE to z 0 -1
        :1
        > ZRANGESTORE to z 5 6
        :0
        "#,
    );
}
