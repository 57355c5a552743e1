//! ZPOPMIN, ZPOPMAX and ZMPOP. Those that wait, and what all refuse, are in `collections`.

use wire::check;

#[test]
fn zpopmin_and_zpopmax() {
    check(
        r#"
        ! ZADD z 1 a 2 b 2 bb 3 c 4.5 d
        > ZPOPMIN z
        ["a", "1"]
        > ZPOPMAX z
        ["d", "4.5"]
        > ZPOPMIN z 2
        ["b", "2", "bb", "2"]
        > ZRANGE z 0 -1
        ["c"]
        > ZPOPMIN z 10
        ["c", "3"]
        > EXISTS z
        :0
        > ZPOPMIN z
        []
        > ZPOPMAX z
        []
        > ZPOPMIN nosuch 5
        []
        ! ZADD z 1 a 1 b 1 c
        > ZPOPMAX z 2
        ["c", "1", "b", "1"]
        > ZPOPMIN z 0
        []
        > ZPOPMAX z 0
        []
        > ZPOPMAX nosuch 0
        []
        > ZPOPMAX z 1
        ["a", "1"]
        > EXISTS z
        :0
        ! ZADD z 1 a inf b -inf c
        > ZPOPMIN z 9223372036854775807
        ["c", "-inf", "a", "1", "b", "inf"]
        > ZPOPMIN z
        []
        "#,
    );
}

#[test]
fn zpop_refuses_bad_arguments() {
    check(
        r#"
        ! ZADD z 1 a
        -ERR value is out of range, must be positive
            ZPOPMIN z -1
            ZPOPMAX z -1
            ZPOPMIN z x
            ZPOPMIN z 1.5
            ZPOPMIN z ""
            ZPOPMIN z 9223372036854775808
            ZPOPMIN nosuch x
            ZPOPMIN nosuch -1
        -ERR syntax error
            ZPOPMIN z 1 2
            ZPOPMAX z 1 2
        ! SET s x
        ZPOPMIN s 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
        -ERR value is out of range, must be positive
            ZPOPMIN s -1
            ZPOPMIN s x
        ZCARD z => :1
        "#,
    );
}

#[test]
fn zpop_in_resp3() {
    check(
        r#"
        ! HELLO 3
        ! ZADD z 1 a 2.5 b 3 c inf d
        > ZPOPMIN z
        ["a", ,1]
        > ZPOPMAX z
        ["d", ,inf]
        > ZPOPMIN z 1
        [["b", ,2.5]]
        > ZPOPMAX z 5
        [["c", ,3]]
        > ZPOPMIN z
        []
        > ZPOPMIN z 5
        []
        > ZPOPMAX nosuch 0
        []
        "#,
    );
}

#[test]
fn zmpop() {
    check(
        r#"
        ! ZADD a 1 x 2 y 3 z
        ! ZADD b 7 q
        > ZMPOP 1 a MIN
        ["a", [["x", "1"]]]
        > ZMPOP 1 a MAX
        ["a", [["z", "3"]]]
        > ZMPOP 2 nosuch b MIN
        ["b", [["q", "7"]]]
        > EXISTS b
        :0
        > ZMPOP 2 nosuch b MIN
        (nil array)
        > ZMPOP 2 b a min count 10
        ["a", [["y", "2"]]]
        > EXISTS a
        :0
        > ZMPOP 1 a MAX
        (nil array)
        ! ZADD a 1 x 2 y 3 z
        ! ZADD b 7 q
        > ZMPOP 2 b a MAX COUNT 2
        ["b", [["q", "7"]]]
        > ZMPOP 2 b a MAX COUNT 2
        ["a", [["z", "3"], ["y", "2"]]]
        > ZMPOP 2 a a MIN COUNT 9223372036854775807
        ["a", [["x", "1"]]]
        > DBSIZE
        :0
        "#,
    );
}

#[test]
fn zmpop_in_resp3() {
    check(
        r#"
        ! HELLO 3
        ! ZADD z 1 a 2.5 b inf c
        > ZMPOP 1 z MIN
        ["z", [["a", ,1]]]
        > ZMPOP 2 nosuch z MAX COUNT 5
        ["z", [["c", ,inf], ["b", ,2.5]]]
        > ZMPOP 1 z MIN
        _
        "#,
    );
}
