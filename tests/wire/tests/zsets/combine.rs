//! Several sets at once: ZUNION, ZINTER, ZDIFF. Their STORE forms are in `combine_store`.

use wire::check;

#[test]
fn zunion() {
    check(
        r#"
        ! ZADD a 1 x 2 y 3 z
        ! ZADD b 10 y 20 z 30 q
        ZUNION 1 a => ["x", "y", "z"]
        ZUNION 2 a b => ["x", "y", "z", "q"]
        ZUNION 2 a b WITHSCORES => ["x", "1", "y", "12", "z", "23", "q", "30"]
        ZUNION 2 a nosuch WITHSCORES => ["x", "1", "y", "2", "z", "3"]
        ZUNION 1 nosuch => []
        ZUNION 2 nosuch nosuch2 WITHSCORES => []
        ZUNION 2 a a WITHSCORES => ["x", "2", "y", "4", "z", "6"]
        ZUNION 2 a b AGGREGATE SUM WITHSCORES => ["x", "1", "y", "12", "z", "23", "q", "30"]
        ZUNION 2 a b AGGREGATE MIN WITHSCORES => ["x", "1", "y", "2", "z", "3", "q", "30"]
        ZUNION 2 a b aggregate max withscores => ["x", "1", "y", "10", "z", "20", "q", "30"]
        ZUNION 2 a b WEIGHTS 2 3 WITHSCORES => ["x", "2", "y", "34", "z", "66", "q", "90"]
        ZUNION 2 a b WEIGHTS 2 0.5 AGGREGATE MAX WITHSCORES => ["x", "2", "y", "5", "z", "10", "q", "15"]
        ZUNION 2 a b WITHSCORES AGGREGATE MIN WEIGHTS 1 -1 => ["q", "-30", "z", "-20", "y", "-10", "x", "1"]
        ZUNION 2 a b WEIGHTS 1 1 WEIGHTS 2 2 WITHSCORES => ["x", "2", "y", "24", "z", "46", "q", "60"]
        ZUNION 2 a b AGGREGATE MIN AGGREGATE MAX WITHSCORES => ["x", "1", "y", "10", "z", "20", "q", "30"]
        ZUNION 2 a b WITHSCORES WITHSCORES => ["x", "1", "y", "12", "z", "23", "q", "30"]
        ZUNION 1 a WEIGHTS 0 WITHSCORES => ["x", "0", "y", "0", "z", "0"]
        ZUNION 1 a WEIGHTS inf WITHSCORES => ["x", "inf", "y", "inf", "z", "inf"]
        ZUNION 1 a WEIGHTS -inf => ["x", "y", "z"]
        "#,
    );
}

#[test]
fn zinter() {
    check(
        r#"
        ! ZADD a 1 x 2 y 3 z
        ! ZADD b 10 y 20 z 30 q
        ZINTER 1 a => ["x", "y", "z"]
        ZINTER 2 a b => ["y", "z"]
        ZINTER 2 a b WITHSCORES => ["y", "12", "z", "23"]
        ZINTER 2 b a WITHSCORES => ["y", "12", "z", "23"]
        ZINTER 2 a nosuch => []
        ZINTER 2 nosuch a WITHSCORES => []
        ZINTER 1 nosuch => []
        ZINTER 2 a a WITHSCORES => ["x", "2", "y", "4", "z", "6"]
        ZINTER 3 a b a WITHSCORES => ["y", "14", "z", "26"]
        ZINTER 2 a b AGGREGATE MIN WITHSCORES => ["y", "2", "z", "3"]
        ZINTER 2 a b AGGREGATE MAX WITHSCORES => ["y", "10", "z", "20"]
        ZINTER 2 a b WEIGHTS 10 1 WITHSCORES => ["y", "30", "z", "50"]
        ZINTER 2 a b WEIGHTS 10 1 AGGREGATE MAX WITHSCORES => ["y", "20", "z", "30"]
        "#,
    );
}

#[test]
fn zdiff() {
    check(
        r#"
        ! ZADD a 1 x 2 y 3 z 4 w
        ! ZADD b 10 y 20 z 30 q
        ! ZADD c 1 w
        ZDIFF 1 a => ["x", "y", "z", "w"]
        ZDIFF 1 a WITHSCORES => ["x", "1", "y", "2", "z", "3", "w", "4"]
        ZDIFF 2 a b => ["x", "w"]
        ZDIFF 2 a b WITHSCORES => ["x", "1", "w", "4"]
        ZDIFF 3 a b c WITHSCORES => ["x", "1"]
        ZDIFF 2 b a WITHSCORES => ["q", "30"]
        ZDIFF 2 a a => []
        ZDIFF 2 a nosuch => ["x", "y", "z", "w"]
        ZDIFF 2 nosuch a => []
        ZDIFF 1 nosuch WITHSCORES => []
        ZDIFF 4 a b c a => []
        ZDIFF 2 a b withscores => ["x", "1", "w", "4"]
        "#,
    );
}

#[test]
fn infinities_are_added_to_zero() {
    check(
        r#"
        ! ZADD a inf x -inf y 0 z
        ! ZADD b -inf x inf y inf z
        ZUNION 2 a b WITHSCORES => ["x", "0", "y", "0", "z", "inf"]
        ZINTER 2 a b WITHSCORES => ["x", "0", "y", "0", "z", "inf"]
        ZUNION 2 a b AGGREGATE MIN WITHSCORES => ["x", "-inf", "y", "-inf", "z", "0"]
        ZUNION 2 a b AGGREGATE MAX WITHSCORES => ["x", "inf", "y", "inf", "z", "inf"]
        ZUNION 2 a b WEIGHTS 0 1 WITHSCORES => ["x", "-inf", "y", "inf", "z", "inf"]
        ZUNION 2 a b WEIGHTS 0 0 WITHSCORES => ["x", "0", "y", "0", "z", "0"]
        ZINTER 2 a b WEIGHTS -inf 1 WITHSCORES => ["x", "-inf", "y", "inf", "z", "inf"]
        ZUNION 1 a WEIGHTS -1 WITHSCORES => ["x", "-inf", "z", "-0" | "0", "y", "inf"]
        "#,
    );
}

#[test]
fn combinations_refuse_bad_arguments() {
    check(
        r#"
        ! ZADD z 1 a
        -ERR at least 1 input key is needed for 'zunion' command
            ZUNION 0 z
            ZUNION -1 z
        ZINTER 0 z => -ERR at least 1 input key is needed for 'zinter' command
        ZDIFF 0 z => -ERR at least 1 input key is needed for 'zdiff' command
        -ERR value is not an integer or out of range
            ZUNION x z
            ZUNION 1.5 z
            ZUNION 9223372036854775808 z
        -ERR syntax error
            ZUNION 9223372036854775807 z
            ZUNION 2 z
            ZINTER 2 z
            ZDIFF 2 z
        ZUNION 2 z WITHSCORES => ["a"]
        -ERR syntax error
            ZUNION 1 z NOSUCH
            ZUNION 1 z z
            ZINTER 1 z NOSUCH
            ZUNION 1 z WEIGHTS
            ZUNION 1 z WEIGHTS 1 2
            ZUNION 2 z z WEIGHTS 1
            ZUNION 1 z AGGREGATE
            ZUNION 1 z AGGREGATE NOSUCH
            ZUNION 1 z AGGREGATE AVG WITHSCORES
            ZUNION 1 z LIMIT 1
            ZDIFF 1 z WEIGHTS 1
            ZDIFF 1 z AGGREGATE SUM
            ZDIFF 1 z NOSUCH
        -ERR weight value is not a float
            ZUNION 1 z WEIGHTS x
            ZUNION 1 z WEIGHTS nan
            ZUNION 1 z WEIGHTS ""
            ZUNION 2 z z WEIGHTS 1 WITHSCORES
        ! SET s x
        -WRONGTYPE Operation against a key holding the wrong kind of value
            ZUNION 2 z s
            ZUNION 2 nosuch s
            ZINTER 2 z s
            ZDIFF 2 z s
            ZDIFF 2 s z
            ZUNION 1 s WEIGHTS x
            ZUNION 1 s NOSUCH
            ZUNION 2 s z WEIGHTS 1
        "#,
    );
}

#[test]
fn combinations_in_resp3() {
    check(
        r#"
        ! HELLO 3
        ! ZADD a 1 x 2.5 y
        ! ZADD b inf x 1 z
        ZUNION 2 a b => ["z", "y", "x"]
        ZUNION 2 a b WITHSCORES => [["z", ,1], ["y", ,2.5], ["x", ,inf]]
        ZINTER 2 a b => ["x"]
        ZINTER 2 a b WITHSCORES => [["x", ,inf]]
        ZDIFF 2 a b => ["y"]
        ZDIFF 2 a b WITHSCORES => [["y", ,2.5]]
        ZUNION 1 nosuch WITHSCORES => []
        ZINTER 2 a nosuch WITHSCORES => []
        ZDIFF 1 nosuch => []
        ZINTERCARD 2 a b => :1
        > ZUNIONSTORE to 2 a b
        :3
        "#,
    );
}

#[test]
fn zintercard() {
    check(
        r#"
        ! ZADD a 1 x 2 y 3 z
        ! ZADD b 10 y 20 z 30 q
        ZINTERCARD 1 a => :3
        ZINTERCARD 2 a b => :2
        ZINTERCARD 2 a nosuch => :0
        ZINTERCARD 1 nosuch => :0
        ZINTERCARD 2 a b LIMIT 1 => :1
        ZINTERCARD 2 a b LIMIT 2 => :2
        ZINTERCARD 2 a b LIMIT 10 => :2
        ZINTERCARD 2 a b LIMIT 0 => :2
        ZINTERCARD 2 a b limit 1 => :1
        ZINTERCARD 3 a a a => :3
        ZINTERCARD 2 a b LIMIT 1 LIMIT 0 => :2
        -ERR LIMIT can't be negative
            ZINTERCARD 2 a b LIMIT -1
            ZINTERCARD 2 a b LIMIT x
            ZINTERCARD 2 a b LIMIT 1.5
        -ERR syntax error
            ZINTERCARD 2 a b LIMIT
            ZINTERCARD 2 a b NOSUCH
            ZINTERCARD 2 a b WITHSCORES
            ZINTERCARD 2 a b WEIGHTS 1 2
            ZINTERCARD 2 a b AGGREGATE SUM
            ZINTERCARD 2 a
        -ERR at least 1 input key is needed for 'zintercard' command
            ZINTERCARD 0 a
            ZINTERCARD -1 a
        ZINTERCARD x a => -ERR value is not an integer or out of range
        ! SET s x
        -WRONGTYPE Operation against a key holding the wrong kind of value
            ZINTERCARD 2 nosuch s
            ZINTERCARD 2 a s LIMIT -1
        "#,
    );
}
