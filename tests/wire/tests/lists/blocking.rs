//! BLMOVE and BRPOPLPUSH where they do not wait, or wait in vain. What wakes them is in `blocking_wakes`. All other commands that
//! wait for elements are in `collections`.

use wire::check;

#[test]
fn moves_that_need_not_wait() {
    check(
        r#"
        ! RPUSH l a b c
        > BLMOVE l m LEFT RIGHT 0
        "a"
        > BRPOPLPUSH l m 0
        "c"
        > BLMOVE l l LEFT RIGHT 0
        "b"
        > LRANGE m 0 -1
        ["c", "a"]
        (nil array)
            BLMOVE a b LEFT RIGHT 0.01
            BRPOPLPUSH a b 0.01
        > MULTI
        +OK
        +QUEUED
            BLMOVE a b LEFT RIGHT 0
            BRPOPLPUSH a b 0
        > EXEC
        [(nil), (nil)]
        ! HELLO 3
        > BLMOVE a b LEFT RIGHT 0.01
        _
        # needs redis >= 7.2
        > EVAL "return redis.call('BLMOVE', KEYS[1], KEYS[2], 'LEFT', 'RIGHT', 0)" 2 {a} {a}b
        _
        "#,
    );
}

#[test]
fn moves_that_are_refused() {
    check(
        r#"
        ! SET s v
        ! RPUSH l a
        -ERR timeout is not a float or out of range
            BLMOVE a b LEFT RIGHT x
            BRPOPLPUSH a b x
        -ERR timeout is negative
            BLMOVE a b LEFT RIGHT -1
        -ERR syntax error
            BLMOVE a b UP RIGHT x
            BLMOVE a b LEFT UP -1
        -WRONGTYPE Operation against a key holding the wrong kind of value
            BLMOVE s l LEFT LEFT 0
            BLMOVE l s LEFT LEFT 0
            BRPOPLPUSH l s 0
        // Where there is nothing to move, the destination is not looked at.
        BLMOVE nosuch s LEFT LEFT 0.01 => (nil array)
        "#,
    );
}
