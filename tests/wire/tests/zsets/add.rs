//! ZADD and its options.

use wire::check;

#[test]
fn zadd() {
    check(
        r#"
        > ZADD z 1 a
        :1
        > ZADD z 2 b 3 c
        :2
        > ZADD z 5 a
        :0
        > ZADD z 5 a
        :0
        > ZADD z 4 a 9 d
        :1
        ZRANGE z 0 -1 WITHSCORES => ["b", "2", "c", "3", "a", "4", "d", "9"]
        TYPE z => +zset
        ZCARD z => :4
        > ZADD z 1 "" 2 "\x00\xff"
        :2
        > ZSCORE z ""
        "1"
        > ZSCORE z "\x00\xff"
        "2"
        > zadd z 1 A
        :1
        > ZCARD z
        :7
        // The last score of a member that comes twice holds; it is new once.
        > ZADD twice 1 a 2 a 3 a
        :1
        > ZSCORE twice a
        "3"
        > ZADD twice CH 1 a 3 a
        :2
        > ZADD twice CH 4 a 3 a
        :2
        "#,
    );
}

#[test]
fn members_with_the_same_score_are_in_the_order_of_their_bytes() {
    check(
        r#"
        > ZADD z 1 b 1 a 1 ab 1 "" 1 B 1 "\xff" 1 "\x00" 0 z 2 "!"
        :9
        > ZRANGE z 0 -1
        ["z", "", "\x00", "B", "a", "ab", "b", "\xff", "!"]
        > ZADD z 1 z 1 "!"
        :0
        > ZRANGE z 0 -1
        ["", "\x00", "!", "B", "a", "ab", "b", "z", "\xff"]
        > ZREVRANGE z 0 -1
        ["\xff", "z", "b", "ab", "a", "B", "!", "\x00", ""]
        "#,
    );
}

#[test]
fn zadd_nx_and_xx() {
    check(
        r#"
        > ZADD z NX 1 a
        :1
        > ZADD z NX 2 a 2 b
        :1
        > ZRANGE z 0 -1 WITHSCORES
        ["a", "1", "b", "2"]
        > ZADD z XX 3 a 3 c
        :0
        > ZRANGE z 0 -1 WITHSCORES
        ["b", "2", "a", "3"]
        > ZADD z XX CH 4 a 4 b 4 c
        :2
        > ZADD z NX CH 9 a 9 c
        :1
        > ZADD nosuch XX 1 a
        :0
        > EXISTS nosuch
        :0
        > ZADD nosuch XX CH 1 a
        :0
        > ZADD z nx 1 q
        :1
        :0
            ZADD z xx 2 q
            ZADD z XX XX 5 q
            ZADD z NX NX 6 q
        ZSCORE z q => "5"
        "#,
    );
}

#[test]
fn zadd_gt_and_lt() {
    check(
        r#"
        > ZADD z 5 a 5 b
        :2
        > ZADD z GT 4 a 6 b 1 c
        :1
        > ZRANGE z 0 -1 WITHSCORES
        ["c", "1", "a", "5", "b", "6"]
        > ZADD z LT 4 a 9 b 2 d
        :1
        > ZRANGE z 0 -1 WITHSCORES
        ["c", "1", "d", "2", "a", "4", "b", "6"]
        > ZADD z GT CH 4 a 100 b 1 e 1 c
        :2
        :1
            ZADD z LT CH 4 a 100 b 0 c
            ZADD z GT XX CH 5 a 5 new
            ZADD z XX LT CH 1 a 5 new
        ZRANGE z 0 -1 WITHSCORES => ["c", "0", "a", "1", "e", "1", "d", "2", "b", "100"]
        > ZADD z GT inf a
        :0
        > ZADD z LT -inf a
        :0
        > ZSCORE z a
        "-inf"
        > ZADD z gt 3 a
        :0
        > ZSCORE z a
        "3"
        "#,
    );
}

#[test]
fn zadd_ch_counts_what_changed() {
    check(
        r#"
        > ZADD z CH 1 a 2 b
        :2
        > ZADD z CH 1 a 3 b 4 c
        :2
        > ZADD z CH 1 a
        :0
        > ZADD z ch 1 a 2 a
        :1
        > ZADD z CH CH 5 a
        :1
        > ZADD z 6 a
        :0
        > ZADD z CH 0 z
        :1
        > ZADD z CH -0 z
        :0
        > ZSCORE z z
        "0"
        "#,
    );
}

#[test]
fn zadd_incr() {
    check(
        r#"
        > ZADD z INCR 5 a
        "5"
        > ZADD z INCR 2.5 a
        "7.5"
        > ZADD z incr -10 a
        "-2.5"
        > ZADD z NX INCR 1 a
        (nil)
        > ZADD z NX INCR 1 b
        "1"
        > ZADD z XX INCR 1 c
        (nil)
        > ZADD z XX INCR 1 b
        "2"
        > ZADD z GT INCR -1 b
        (nil)
        > ZADD z GT INCR 1 b
        "3"
        > ZADD z GT INCR 0 b
        (nil)
        > ZADD z LT INCR 1 b
        (nil)
        > ZADD z LT INCR -1 b
        "2"
        > ZADD z LT INCR 0 b
        (nil)
        > ZADD z GT INCR -1 new
        "-1"
        > ZADD z LT INCR 1 new2
        "1"
        > ZADD z CH INCR 1 b
        "3"
        > ZADD z INCR CH 0 b
        "3"
        > ZADD nosuch XX INCR 1 a
        (nil)
        > EXISTS nosuch
        :0
        > ZADD z XX GT INCR 1 b
        "4"
        > ZADD z INCR 1 a 2 b
        -ERR INCR option supports a single increment-element pair
        > ZADD z INCR INCR 1 b
        "5"
        > ZSCORE z b
        "5"
        > ZADD z INCR inf b
        "inf"
        > ZADD z INCR -inf b
        -ERR resulting score is not a number (NaN)
        > ZADD z INCR inf b
        "inf"
        > ZSCORE z b
        "inf"
        "#,
    );
}

#[test]
fn zadd_in_resp3() {
    check(
        r#"
        ! HELLO 3
        > ZADD z 1 a
        :1
        > ZADD z INCR 1.5 a
        ,2.5
        > ZADD z INCR inf b
        ,inf
        > ZADD z INCR -inf c
        ,-inf
        > ZADD z INCR -inf b
        -ERR resulting score is not a number (NaN)
        > ZADD z NX INCR 1 a
        _
        > ZADD z XX INCR 1 d
        _
        > ZADD z CH 1 a 2 e
        :2
        > ZINCRBY z 1 a
        ,2
        > ZINCRBY z -inf new
        ,-inf
        ZSCORE z a => ,2
        ZSCORE z b => ,inf
        ZSCORE z c => ,-inf
        ZSCORE z nosuch => _
        ZSCORE nosuch a => _
        ZMSCORE z a nosuch c => [,2, _, ,-inf]
        ZMSCORE nosuch a b => [_, _]
        > ZREM z a nosuch
        :1
        > ZCARD z
        :4
        "#,
    );
}

#[test]
fn zadd_refuses_options_that_contradict() {
    check(
        r#"
        -ERR XX and NX options at the same time are not compatible
            ZADD z NX XX 1 a
            ZADD z XX NX 1 a
            ZADD z XX NX GT LT CH INCR 1 a
            ZADD z NX XX x a
            ZADD z NX XX INCR 1 a 2 b
        -ERR GT, LT, and/or NX options at the same time are not compatible
            ZADD z NX GT 1 a
            ZADD z NX LT 1 a
            ZADD z GT LT 1 a
            ZADD z NX GT LT 1 a
            ZADD z XX GT LT 1 a
            ZADD z NX GT INCR 1 a
            ZADD z INCR NX GT 1 a 2 b
        ZADD z NX XX 1 a 2 => -ERR syntax error
        -ERR INCR option supports a single increment-element pair
            ZADD z INCR 1 a 2 b
            ZADD z INCR x a y b
        EXISTS z => :0
        "#,
    );
}

#[test]
fn zadd_refuses_odd_arguments() {
    check(
        r#"
        -ERR value is not a valid float
            ZADD z a 1
            ZADD z 1 a CH 2
        -ERR syntax error
            ZADD z NX 1
            ZADD z NX XX
            ZADD z NX CH INCR
            ZADD z 1 a 2
            ZADD z 1 a b
            ZADD z NX 1 a 2
            ZADD z CH a
            ZADD z NOSUCH 1 a
            ZADD z 1 a NX
        > ZADD z 1 NX
        :1
        ZSCORE z NX => "1"
        -ERR value is not a valid float
            ZADD z 1 a NX 1
            ZADD z XX 1 a INCR 5
        > DEL z
        :1
        // All scores are read before anything changes.
        -ERR value is not a valid float
            ZADD z 1 a 2 b x c
            ZADD z 1 a nan b
        EXISTS z => :0
        ! SET s x
        > ZADD s x a
        -ERR value is not a valid float
        > ZADD s NX XX 1 a
        -ERR XX and NX options at the same time are not compatible
        "#,
    );
}
