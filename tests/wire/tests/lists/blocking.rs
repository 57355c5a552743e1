//! BLPOP, BRPOP, BLMPOP, BLMOVE and BRPOPLPUSH where they do not wait, or wait in vain. What wakes them is in
//! `blocking_wakes`, their clients in `blocking_clients`.

use wire::check;

#[test]
fn where_there_is_something_nothing_waits() {
    check(
        r#"
        > RPUSH l a b c d e f g
        :7
        > BLPOP l 0
        ["l", "a"]
        > BRPOP l 0
        ["l", "g"]
        > BLPOP nosuch l 0
        ["l", "b"]
        > BRPOP nosuch l other 0.5
        ["l", "f"]
        > BLMPOP 0 2 nosuch l LEFT COUNT 2
        ["l", ["c", "d"]]
        > BLMPOP 0 1 l RIGHT
        ["l", ["e"]]
        > EXISTS l
        :0
        > RPUSH l a b c
        :3
        > BLMOVE l m LEFT RIGHT 0
        "a"
        > BRPOPLPUSH l m 0
        "c"
        > BLMOVE l l LEFT RIGHT 0
        "b"
        > LRANGE m 0 -1
        ["c", "a"]
        "#,
    );
}

#[test]
fn the_first_key_that_is_there_is_taken_from() {
    check(
        r#"
        > RPUSH b x
        :1
        > RPUSH a y z
        :2
        > BLPOP a b 0
        ["a", "y"]
        > BRPOP b a 0
        ["b", "x"]
        > BLPOP b a b 0
        ["a", "z"]
        "#,
    );
}

#[test]
fn a_wait_in_vain_ends_with_a_null_array() {
    check(
        r#"
        > BLPOP a 0.01
        (nil array)
        > BRPOP a b c 0.01
        (nil array)
        > BLMPOP 0.01 2 a b LEFT
        (nil array)
        > BLMOVE a b LEFT RIGHT 0.01
        (nil array)
        > BRPOPLPUSH a b 0.01
        (nil array)
        > BLPOP a 0.0001
        (nil array)
        > DBSIZE
        :0
        > HELLO 3
        *
        > BLPOP a 0.01
        _
        > BLMOVE a b LEFT RIGHT 0.01
        _
        "#,
    );
}

#[test]
fn bad_arguments() {
    check(
        r#"
        > BLPOP
        -ERR wrong number of arguments for 'blpop' command
        > BLPOP a
        -ERR wrong number of arguments for 'blpop' command
        > BRPOP a
        -ERR wrong number of arguments for 'brpop' command
        > BLMOVE a b LEFT RIGHT
        -ERR wrong number of arguments for 'blmove' command
        > BRPOPLPUSH a b
        -ERR wrong number of arguments for 'brpoplpush' command
        > BLMPOP 0 1 a
        -ERR wrong number of arguments for 'blmpop' command
        > BLPOP a x
        -ERR timeout is not a float or out of range
        > BLPOP a ""
        -ERR timeout is not a float or out of range
        > BLPOP a -1
        -ERR timeout is negative
        > BRPOP a -0.1
        -ERR timeout is negative
        > BLMOVE a b UP RIGHT x
        -ERR syntax error
        > BLMOVE a b LEFT UP -1
        -ERR syntax error
        > BLMOVE a b LEFT RIGHT x
        -ERR timeout is not a float or out of range
        > BLMOVE a b LEFT RIGHT -1
        -ERR timeout is negative
        > BRPOPLPUSH a b x
        -ERR timeout is not a float or out of range
        > BLMPOP x 0 a LEFT
        -ERR numkeys should be greater than 0
        > BLMPOP x 1 a UP
        -ERR syntax error
        > BLMPOP x 1 a LEFT COUNT 0
        -ERR count should be greater than 0
        > BLMPOP x 1 a LEFT
        -ERR timeout is not a float or out of range
        > BLMPOP -1 1 a LEFT
        -ERR timeout is negative
        > BLMPOP 0 2 a LEFT
        -ERR syntax error
        "#,
    );
}

#[test]
fn wrong_types() {
    check(
        r#"
        > SET s v
        +OK
        > RPUSH l a
        :1
        > BLPOP s 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > BLPOP s l 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > BLPOP nosuch s 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > BLPOP s x
        -ERR timeout is not a float or out of range
        > BLMPOP 0 1 s LEFT
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > BLMOVE s l LEFT LEFT 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > BLMOVE l s LEFT LEFT 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > BRPOPLPUSH l s 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        // Where there is nothing to move, the destination is not looked at.
        > BLMOVE nosuch s LEFT LEFT 0.01
        (nil array)
        > BLPOP l s 0
        ["l", "a"]
        "#,
    );
}

#[test]
fn inside_a_transaction_nothing_waits() {
    check(
        r#"
        > MULTI
        +OK
        > BLPOP a 0
        +QUEUED
        > BRPOP a b 0
        +QUEUED
        > BLMOVE a b LEFT RIGHT 0
        +QUEUED
        > BRPOPLPUSH a b 0
        +QUEUED
        > BLMPOP 0 1 a LEFT
        +QUEUED
        > RPUSH a x
        +QUEUED
        > BLPOP a 0
        +QUEUED
        > EXEC
        [(nil array), (nil array), (nil), (nil), (nil array), :1, ["a", "x"]]
        "#,
    );
}

#[test]
fn inside_a_script_nothing_waits() {
    check(
        r#"
        # needs redis >= 7.2
        > EVAL "return redis.call('BLPOP', KEYS[1], 0)" 1 a
        (nil)
        > EVAL "return redis.call('BLMOVE', KEYS[1], KEYS[2], 'LEFT', 'RIGHT', 0)" 2 {a} {a}b
        (nil)
        > EVAL "redis.call('RPUSH', KEYS[1], 'x') return redis.call('BRPOP', KEYS[1], 0)" 1 a
        ["a", "x"]
        "#,
    );
}
