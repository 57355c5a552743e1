//! Commands that may wait for elements, where they do not wait or wait in vain: BLPOP, BRPOP, BLMPOP, BZPOPMIN, BZPOPMAX,
//! BZMPOP. Their clients are in `blocking_clients`, and what wakes them in `blocking_wakes`.

use crate::check_each;
use crate::waiting::KINDS;

#[test]
fn what_is_there_is_taken_at_once() {
    check_each(
        KINDS,
        r#"
        > GIVE k a b c d e f g
        :7
        > FIRST k 0
        GOT k a
        > LAST k 0
        GOT k g
        > FIRST nosuch k 0
        GOT k b
        > LAST nosuch k other 0.5
        GOT k f
        > SEVERAL_OF nosuch k
        GOT_ALL k c
        > SEVERAL k COUNT 2
        GOT_ALL k d e
        > EXISTS k
        :0
        > GIVE b x
        :1
        > GIVE a y z
        :2
        // The first key that is there counts, not the first element.
        > FIRST a b 0
        GOT a y
        > LAST b a 0
        GOT b x
        > FIRST b a b 0
        GOT a z
        > GIVE a x y z
        :3
        > FIRST a a 5
        GOT a x
        > SEVERAL a COUNT 9223372036854775807
        GOT_ALL a y z
        > DBSIZE
        :0
        # until blocked_clients:0
        > GIVE k a b c
        :3
        ! HELLO 3
        > FIRST k 0
        GOT_RESP3 k a
        > LAST k 0
        GOT_RESP3 k c
        "#,
    );
}

#[test]
fn nothing_in_time() {
    check_each(
        KINDS,
        r#"
        (nil array)
            FIRST a 0.01
            LAST a 0.01
            FIRST a b c 0.01
            BMPOP 0.01 1 a FROM_START
            BMPOP 0.01 2 a b FROM_START COUNT 5
            FIRST a 1e-2
            FIRST a 0.0000001
            FIRST a .01
            FIRST a +0.01
            FIRST a 0x0.01p0
        > DBSIZE
        :0
        // A value whose time has come is none.
        > GIVE k a
        :1
        > PEXPIREAT k 1
        :1
        > FIRST k 0.01
        (nil array)
        ! HELLO 3
        _
            FIRST k 0.01
            LAST k 0.01
            BMPOP 0.01 1 k FROM_START
        "#,
    );
}

#[test]
fn bad_timeouts() {
    check_each(
        KINDS,
        r#"
        > SET str x
        +OK
        > GIVE k a
        :1
        // Also when there is something to take.
        -ERR timeout is negative
            FIRST k -1
            FIRST nosuch -0.5
            FIRST nosuch -inf
            FIRST str -1
            LAST k -1
            BMPOP -1 1 k FROM_START
        -ERR timeout is not a float or out of range
            FIRST k x
            FIRST nosuch ""
            FIRST nosuch nan
            FIRST nosuch 1x
            FIRST nosuch "1\x00"
            FIRST nosuch "\x201"
            FIRST str x
            LAST k x
            BMPOP x 1 k FROM_START
        ~-ERR timeout is *
            FIRST k inf
            FIRST k 1e300
            FIRST k 9223372036854775807
            BMPOP inf 1 k FROM_START
            BMPOP 9223372036854775807 1 k FROM_START
        SHOW k => ["a"]
        "#,
    );
}

#[test]
fn bad_arguments() {
    check_each(
        KINDS,
        r#"
        > GIVE k a
        :1
        > SET str x
        +OK
        -ERR numkeys should be greater than 0
            MPOP 0 k FROM_START
            MPOP -1 k FROM_START
            MPOP x k FROM_START
            MPOP 1.5 k FROM_START
            MPOP 9223372036854775808 k FROM_START
            BMPOP 0 0 k FROM_START
            BMPOP 0 -1 k FROM_START
            BMPOP 0 x k FROM_START
            BMPOP x 0 k NOSUCH
            BMPOP -1 0 k FROM_START
        -ERR syntax error
            MPOP 9223372036854775807 k FROM_START
            MPOP 2 k FROM_START
            MPOP 3 k FROM_START
            MPOP 2 k k
            MPOP 1 k k FROM_START
            MPOP 1 k NOSUCH
            MPOP 1 k FROM_START x
            MPOP 1 k FROM_START FROM_START
            MPOP 1 k FROM_START COUNT
            MPOP 1 k FROM_START COUNT 1 x
            MPOP 1 k FROM_START COUNT 1 COUNT 2
            MPOP 1 k COUNT 1 FROM_START
            BMPOP 0 2 k FROM_START
            BMPOP 0 9223372036854775807 k FROM_START
            BMPOP x 1 k NOSUCH
            BMPOP 0 1 k FROM_START NOSUCH
            BMPOP 0 1 k FROM_START COUNT
            BMPOP 0 1 k FROM_START COUNT 1 COUNT 1
            BMPOP 0 1 k COUNT 1 FROM_START
        -ERR count should be greater than 0
            MPOP 1 k FROM_START COUNT 0
            MPOP 1 k FROM_START COUNT -1
            MPOP 1 k FROM_START COUNT x
            MPOP 1 k FROM_START COUNT 1.5
            MPOP 1 nosuch FROM_START COUNT 0
            BMPOP 0 1 k FROM_START COUNT 0
            BMPOP 0 1 k FROM_START COUNT -1
            BMPOP x 1 k FROM_START COUNT x
        -WRONGTYPE Operation against a key holding the wrong kind of value
            MPOP 2 str k FROM_START
            MPOP 2 nosuch str FROM_START
            FIRST str k 0
            FIRST nosuch str 0
            BMPOP 0 2 str k FROM_START
        SHOW k => ["a"]
        // The first that has elements is asked, and no other.
        > MPOP 2 k str FROM_START
        GOT_ALL k a
        > GIVE k a
        :1
        > FIRST k str 0
        GOT k a
        "#,
    );
}

#[test]
fn nobody_waits_in_a_transaction() {
    check_each(
        KINDS,
        r#"
        > MULTI
        +OK
        +QUEUED
            FIRST k 0
            LAST k other 0
            BMPOP 0 1 k FROM_START
            FIRST k -1
            GIVE k a b c
        > EXEC
        [(nil array), (nil array), (nil array), -"ERR timeout is negative", :3]
        > MULTI
        +OK
        > LAST other k 0
        +QUEUED
        > EXEC
        [*]
        > SHOW k
        ["a", "b"]
        ! HELLO 3
        > MULTI
        +OK
        > FIRST nosuch 0
        +QUEUED
        > EXEC
        [_]
        "#,
    );
}

#[test]
fn nobody_waits_in_a_script() {
    check_each(
        KINDS,
        r#"
        // Redis refused most of them up to 7.0; later it answers as if the time were up.
        > EVAL "return redis.pcall(LUA_FIRST)" 1 k
        (nil) | -"ERR This Redis command is not allowed from script"
        > EVAL "return redis.pcall(LUA_SEVERAL)" 1 k
        (nil) | -"ERR This Redis command is not allowed from script"
        > EVAL "redis.call(LUA_GIVE, 'a'); return redis.pcall(LUA_SEVERAL)" 1 k
        GOT_ALL k a
        "#,
    );
}
