//! ZPOPMIN, ZPOPMAX and ZMPOP. Those that wait are in `blocking`.

use wire::check;

#[test]
fn zpopmin_and_zpopmax() {
    check(
        r#"
        > ZADD z 1 a 2 b 2 bb 3 c 4.5 d
        :5
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
        > ZADD z 1 a 1 b 1 c
        :3
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
        > ZADD z 1 a inf b -inf c
        :3
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
        > ZADD z 1 a
        :1
        > ZPOPMIN z -1
        -ERR value is out of range, must be positive
        > ZPOPMAX z -1
        -ERR value is out of range, must be positive
        > ZPOPMIN z x
        -ERR value is out of range, must be positive
        > ZPOPMIN z 1.5
        -ERR value is out of range, must be positive
        > ZPOPMIN z ""
        -ERR value is out of range, must be positive
        > ZPOPMIN z 9223372036854775808
        -ERR value is out of range, must be positive
        > ZPOPMIN z 1 2
        -ERR syntax error
        > ZPOPMAX z 1 2
        -ERR syntax error
        > ZPOPMIN
        -ERR wrong number of arguments for 'zpopmin' command
        > ZPOPMAX
        -ERR wrong number of arguments for 'zpopmax' command
        > ZPOPMIN nosuch x
        -ERR value is out of range, must be positive
        > ZPOPMIN nosuch -1
        -ERR value is out of range, must be positive
        > SET s x
        +OK
        > ZPOPMIN s
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZPOPMAX s 1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZPOPMIN s 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZPOPMIN s -1
        -ERR value is out of range, must be positive
        > ZPOPMIN s x
        -ERR value is out of range, must be positive
        > ZCARD z
        :1
        "#,
    );
}

#[test]
fn zpop_in_resp3() {
    check(
        r#"
        > HELLO 3
        *
        > ZADD z 1 a 2.5 b 3 c inf d
        :4
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
        > ZADD a 1 x 2 y 3 z
        :3
        > ZADD b 7 q
        :1
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
        > ZADD a 1 x 2 y 3 z
        :3
        > ZADD b 7 q
        :1
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
fn zmpop_refuses_bad_arguments() {
    check(
        r#"
        > ZADD z 1 a
        :1
        > ZMPOP 0 z MIN
        -ERR numkeys should be greater than 0
        > ZMPOP -1 z MIN
        -ERR numkeys should be greater than 0
        > ZMPOP x z MIN
        -ERR numkeys should be greater than 0
        > ZMPOP 1.5 z MIN
        -ERR numkeys should be greater than 0
        > ZMPOP 9223372036854775807 z MIN
        -ERR syntax error
        > ZMPOP 9223372036854775808 z MIN
        -ERR numkeys should be greater than 0
        > ZMPOP 2 z MIN
        -ERR syntax error
        > ZMPOP 2 z z
        -ERR syntax error
        > ZMPOP 1 z z MIN
        -ERR syntax error
        > ZMPOP 1 z NOSUCH
        -ERR syntax error
        > ZMPOP 1 z
        -ERR wrong number of arguments for 'zmpop' command
        > ZMPOP 1
        -ERR wrong number of arguments for 'zmpop' command
        > ZMPOP
        -ERR wrong number of arguments for 'zmpop' command
        > ZMPOP 1 z MIN COUNT
        -ERR syntax error
        > ZMPOP 1 z MIN COUNT 0
        -ERR count should be greater than 0
        > ZMPOP 1 z MIN COUNT -1
        -ERR count should be greater than 0
        > ZMPOP 1 z MIN COUNT x
        -ERR count should be greater than 0
        > ZMPOP 1 z MIN COUNT 1.5
        -ERR count should be greater than 0
        > ZMPOP 1 z MIN COUNT 1 COUNT 1
        -ERR syntax error
        > ZMPOP 1 z MIN MAX
        -ERR syntax error
        > ZMPOP 1 z MIN 5
        -ERR syntax error
        > ZMPOP 1 z COUNT 1 MIN
        -ERR syntax error
        > SET s x
        +OK
        > ZMPOP 1 s MIN
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZMPOP 2 nosuch s MIN
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZMPOP 2 s z MIN
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZCARD z
        :1
        // The first that has members is asked, and no other.
        > ZMPOP 2 z s MIN
        ["z", [["a", "1"]]]
        > ZMPOP 1 nosuch MIN COUNT 0
        -ERR count should be greater than 0
        "#,
    );
}

#[test]
fn zmpop_in_resp3() {
    check(
        r#"
        > HELLO 3
        *
        > ZADD z 1 a 2.5 b inf c
        :3
        > ZMPOP 1 z MIN
        ["z", [["a", ,1]]]
        > ZMPOP 2 nosuch z MAX COUNT 5
        ["z", [["c", ,inf], ["b", ,2.5]]]
        > ZMPOP 1 z MIN
        _
        "#,
    );
}
