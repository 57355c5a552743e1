//! BZPOPMIN, BZPOPMAX and BZMPOP: what they answer at once, what they refuse, and that they give up in time.
//! Who is served when a set gets members is in `blocking_wakes`, the clients that wait are in `blocking_clients`.

use wire::check;

#[test]
fn what_is_there_is_taken_at_once() {
    check(
        r#"
        > ZADD a 1 x 2 y 3.5 z
        :3
        > ZADD b 7 q
        :1
        > BZPOPMIN a 0
        ["a", "x", "1"]
        > BZPOPMAX a 0
        ["a", "z", "3.5"]
        > BZPOPMIN nosuch b a 0
        ["b", "q", "7"]
        > EXISTS b
        :0
        > BZPOPMAX nosuch b a 0
        ["a", "y", "2"]
        > EXISTS a
        :0
        > ZADD a 1 x 2 y 3 z
        :3
        > BZPOPMIN a a 5
        ["a", "x", "1"]
        > bzpopmax a 0.5
        ["a", "z", "3"]
        > ZRANGE a 0 -1
        ["y"]
        # until blocked_clients:0
        "#,
    );
}

#[test]
fn bzmpop_takes_what_is_there() {
    check(
        r#"
        > ZADD a 1 x 2 y 3.5 z
        :3
        > ZADD b 7 q
        :1
        > BZMPOP 0 1 a MIN
        ["a", [["x", "1"]]]
        > BZMPOP 0 2 nosuch b MAX
        ["b", [["q", "7"]]]
        > BZMPOP 1 2 b a max count 10
        ["a", [["z", "3.5"], ["y", "2"]]]
        > ZADD a 1 x 2 y 3 z
        :3
        > BZMPOP 0.5 1 a MIN COUNT 2
        ["a", [["x", "1"], ["y", "2"]]]
        > BZMPOP 0 2 a a MIN COUNT 9223372036854775807
        ["a", [["z", "3"]]]
        > DBSIZE
        :0
        "#,
    );
}

#[test]
fn nothing_in_time() {
    check(
        r#"
        > BZPOPMIN nosuch 0.01
        (nil array)
        > BZPOPMAX nosuch 0.01
        (nil array)
        > BZPOPMIN a b c 0.01
        (nil array)
        > BZMPOP 0.01 1 nosuch MIN
        (nil array)
        > BZMPOP 0.01 2 a b MAX COUNT 5
        (nil array)
        > BZPOPMIN nosuch 1e-2
        (nil array)
        > BZPOPMIN nosuch 0.0000001
        (nil array)
        > BZPOPMIN nosuch .01
        (nil array)
        > BZPOPMIN nosuch +0.01
        (nil array)
        > BZPOPMIN nosuch 0x0.01p0
        (nil array)
        > DBSIZE
        :0
        // A set whose time has come is none.
        > ZADD z 1 a
        :1
        > PEXPIREAT z 1
        :1
        > BZPOPMIN z 0.01
        (nil array)
        > PING
        +PONG
        "#,
    );
}

#[test]
fn waiting_in_resp3() {
    check(
        r#"
        > HELLO 3
        *
        > ZADD z 1 a 2.5 b inf c 4 d
        :4
        > BZPOPMIN z 0
        ["z", "a", ,1]
        > BZPOPMAX z 0
        ["z", "c", ,inf]
        > BZMPOP 0 1 z MIN
        ["z", [["b", ,2.5]]]
        > BZMPOP 0 2 nosuch z MAX COUNT 5
        ["z", [["d", ,4]]]
        > BZPOPMIN z 0.01
        _
        > BZPOPMAX z 0.01
        _
        > BZMPOP 0.01 1 z MIN
        _
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZADD z 1.5 a
        :1
        1< ["z", "a", ,1.5]
        > BZMPOP 0 1 z MAX COUNT 2
        # until blocked_clients:1
        2> ZADD z 1.5 a 2 b inf c
        :3
        1< ["z", [["c", ,inf], ["b", ,2]]]
        "#,
    );
}

#[test]
fn bad_timeouts() {
    check(
        r#"
        > BZPOPMIN z -1
        -ERR timeout is negative
        > BZPOPMIN z -0.5
        -ERR timeout is negative
        > BZPOPMIN z x
        -ERR timeout is not a float or out of range
        > BZPOPMIN z ""
        -ERR timeout is not a float or out of range
        > BZPOPMIN z " 1"
        -ERR timeout is not a float or out of range
        > BZPOPMIN z nan
        -ERR timeout is not a float or out of range
        > BZPOPMIN z inf
        ~-ERR timeout is *
        > BZPOPMIN z -inf
        -ERR timeout is negative
        > BZPOPMIN z 1e300
        ~-ERR timeout is *
        > BZPOPMIN z 9223372036854775807
        ~-ERR timeout is *
        > BZPOPMIN z 1x
        -ERR timeout is not a float or out of range
        > BZPOPMIN z "1\x00"
        -ERR timeout is not a float or out of range
        > BZPOPMAX z -1
        -ERR timeout is negative
        > BZPOPMAX z x
        -ERR timeout is not a float or out of range
        > BZMPOP -1 1 z MIN
        -ERR timeout is negative
        > BZMPOP x 1 z MIN
        -ERR timeout is not a float or out of range
        > BZMPOP inf 1 z MIN
        ~-ERR timeout is *
        > BZMPOP 9223372036854775807 1 z MIN
        ~-ERR timeout is *
        > ZADD z 1 a
        :1
        // Also when there is something to take.
        > BZPOPMIN z -1
        -ERR timeout is negative
        > BZPOPMIN z x
        -ERR timeout is not a float or out of range
        > BZMPOP -1 1 z MIN
        -ERR timeout is negative
        > ZCARD z
        :1
        "#,
    );
}

#[test]
fn bad_arguments() {
    check(
        r#"
        > BZPOPMIN
        -ERR wrong number of arguments for 'bzpopmin' command
        > BZPOPMIN z
        -ERR wrong number of arguments for 'bzpopmin' command
        > BZPOPMAX z
        -ERR wrong number of arguments for 'bzpopmax' command
        > BZMPOP
        -ERR wrong number of arguments for 'bzmpop' command
        > BZMPOP 0 1 z
        -ERR wrong number of arguments for 'bzmpop' command
        > BZMPOP 0 1
        -ERR wrong number of arguments for 'bzmpop' command
        > BZMPOP 0 0 z MIN
        -ERR numkeys should be greater than 0
        > BZMPOP 0 -1 z MIN
        -ERR numkeys should be greater than 0
        > BZMPOP 0 x z MIN
        -ERR numkeys should be greater than 0
        > BZMPOP 0 2 z MIN
        -ERR syntax error
        > BZMPOP 0 9223372036854775807 z MIN
        -ERR syntax error
        > BZMPOP 0 1 z NOSUCH
        -ERR syntax error
        > BZMPOP 0 1 z MIN NOSUCH
        -ERR syntax error
        > BZMPOP 0 1 z MIN COUNT
        -ERR syntax error
        > BZMPOP 0 1 z MIN COUNT 0
        -ERR count should be greater than 0
        > BZMPOP 0 1 z MIN COUNT -1
        -ERR count should be greater than 0
        > BZMPOP 0 1 z MIN COUNT x
        -ERR count should be greater than 0
        > BZMPOP 0 1 z MIN COUNT 1 COUNT 1
        -ERR syntax error
        > BZMPOP 0 1 z COUNT 1 MIN
        -ERR syntax error
        > BZMPOP x 0 z NOSUCH
        -ERR numkeys should be greater than 0
        > BZMPOP x 1 z MIN COUNT x
        -ERR count should be greater than 0
        > BZMPOP -1 0 z MIN
        -ERR numkeys should be greater than 0
        > SET s x
        +OK
        > BZPOPMIN s 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > BZPOPMAX s 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > BZPOPMIN nosuch s 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > BZMPOP 0 1 s MIN
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > BZMPOP 0 2 nosuch s MIN
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > BZPOPMIN s -1
        -ERR timeout is negative
        > BZPOPMIN s x
        -ERR timeout is not a float or out of range
        > ZADD z 1 a 2 b
        :2
        > BZPOPMIN z s 0
        ["z", "a", "1"]
        > BZMPOP 0 2 z s MIN
        ["z", [["b", "2"]]]
        > BZPOPMIN s z 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn nobody_waits_in_a_transaction() {
    check(
        r#"
        > MULTI
        +OK
        > BZPOPMIN nosuch 0
        +QUEUED
        > BZPOPMAX nosuch other 0
        +QUEUED
        > BZMPOP 0 1 nosuch MIN
        +QUEUED
        > ZADD z 1 a 2 b 3 c
        +QUEUED
        > BZPOPMIN z 0
        +QUEUED
        > BZMPOP 0 2 nosuch z MAX
        +QUEUED
        > BZPOPMIN nosuch -1
        +QUEUED
        > BZPOPMIN s x
        +QUEUED
        > EXEC
        [(nil array), (nil array), (nil array), :3, ["z", "a", "1"], ["z", [["c", "3"]]], -"ERR timeout is negative", -"ERR timeout is not a float or out of range"]
        > ZRANGE z 0 -1
        ["b"]
        > HELLO 3
        *
        > MULTI
        +OK
        > BZPOPMIN nosuch 0
        +QUEUED
        > BZMPOP 0 1 nosuch MIN
        +QUEUED
        > BZPOPMAX z 0
        +QUEUED
        > EXEC
        [_, _, ["z", "b", ,2]]
        "#,
    );
}

#[test]
fn nobody_waits_in_a_script() {
    check(
        r#"
        // Redis refused two of the three up to 7.0; later it answers as if the time were up.
        > EVAL "return redis.pcall('BZPOPMIN', KEYS[1], 0)" 1 nosuch
        (nil) | -"ERR This Redis command is not allowed from script"
        > EVAL "return redis.pcall('BZPOPMAX', KEYS[1], 0)" 1 nosuch
        (nil) | -"ERR This Redis command is not allowed from script"
        > EVAL "return redis.pcall('BZMPOP', 0, 1, KEYS[1], 'MIN')" 1 nosuch
        (nil)
        > ZADD z 1 a
        :1
        > EVAL "return redis.pcall('BZMPOP', 0, 1, KEYS[1], 'MIN')" 1 z
        ["z", [["a", "1"]]]
        "#,
    );
}

#[test]
fn the_keys_of_each_command() {
    check(
        r#"
        > COMMAND GETKEYS BZPOPMIN a b 0
        ["a", "b"]
        > COMMAND GETKEYS BZPOPMAX a 0
        ["a"]
        > COMMAND GETKEYS BZMPOP 0 2 a b MIN
        ["a", "b"]
        > COMMAND GETKEYS ZMPOP 2 a b MIN COUNT 5
        ["a", "b"]
        > COMMAND GETKEYS ZUNION 2 a b WITHSCORES
        ["a", "b"]
        > COMMAND GETKEYS ZINTER 1 a
        ["a"]
        > COMMAND GETKEYS ZDIFF 2 a b
        ["a", "b"]
        > COMMAND GETKEYS ZINTERCARD 2 a b LIMIT 1
        ["a", "b"]
        > COMMAND GETKEYS ZUNIONSTORE to 2 a b WEIGHTS 1 2
        ["to", "a", "b"]
        > COMMAND GETKEYS ZINTERSTORE to 1 a
        ["to", "a"]
        > COMMAND GETKEYS ZDIFFSTORE to 2 a b
        ["to", "a", "b"]
        > COMMAND GETKEYS ZRANGESTORE to a 0 -1
        ["to", "a"]
        > COMMAND GETKEYS ZADD z 1 a
        ["z"]
        > COMMAND GETKEYS ZUNION 5 a b
        -ERR Invalid arguments specified for command
        > COMMAND GETKEYS ZMPOP 0 a MIN
        -ERR Invalid arguments specified for command
        > COMMAND GETKEYSANDFLAGS BZMPOP 0 2 a b MIN
        [["a", [+RW, +access, +delete]], ["b", [+RW, +access, +delete]]]
        > COMMAND GETKEYSANDFLAGS ZRANGESTORE to a 0 -1
        [["to", [+OW, +update]], ["a", [+RO, +access]]]
        > COMMAND GETKEYSANDFLAGS ZUNIONSTORE to 1 a
        [["to", [+OW, +update]], ["a", [+RO, +access]]]
        "#,
    );
}
