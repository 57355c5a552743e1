//! ZRANGESTORE.

use wire::check;

#[test]
fn zrangestore() {
    check(
        r#"
        ! ZADD z 1 a 2 b 3 c 4 d
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
        ! ZADD l 0 a 0 b 0 c
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
fn the_target_may_be_the_source() {
    check(
        r#"
        ! ZADD z 1 a 2 b 3 c
        > ZRANGESTORE z z 1 1
        :1
        > ZRANGE z 0 -1 WITHSCORES
        ["b", "2"]
        "#,
    );
}

#[test]
fn zrangestore_refuses_bad_arguments() {
    check(
        r#"
        ! ZADD z 1 a
        ! ZADD to 1 x
        -ERR syntax error
            ZRANGESTORE to z 0 -1 WITHSCORES
            ZRANGESTORE to z 0 1 BYSCORE WITHSCORES
            ZRANGESTORE to z 0 -1 NOSUCH
            ZRANGESTORE to z - + BYSCORE BYLEX
            ZRANGESTORE to z 0 1 BYSCORE LIMIT 0
        > ZRANGESTORE to z 0 -1 LIMIT 0 1
        -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        -ERR value is not an integer or out of range
            ZRANGESTORE to z x 1
            ZRANGESTORE to z 0 x
            ZRANGESTORE to z 0 1 BYSCORE LIMIT x y
        ZRANGESTORE to z x 1 BYSCORE => -ERR min or max is not a float
        ZRANGESTORE to z a b BYLEX => -ERR min or max not valid string range item
        ! SET s x
        ZRANGESTORE to s 0 -1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        ZRANGESTORE to s x 1 => -ERR value is not an integer or out of range
        ZRANGE to 0 -1 => ["x"]
        ZRANGESTORE to nosuch x 1 => -ERR value is not an integer or out of range
        ! HELLO 3
        > ZRANGESTORE to z 0 -1
        :1
        > ZRANGESTORE to z 5 6
        :0
        "#,
    );
}
