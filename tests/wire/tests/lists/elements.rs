//! LINDEX, LSET, LINSERT and LREM.

use wire::check;

#[test]
fn lindex() {
    check(
        r#"
        ! RPUSH l a b c
        LINDEX l 0 => "a"
        LINDEX l 2 => "c"
        LINDEX l 3 => (nil)
        LINDEX l -1 => "c"
        LINDEX l -3 => "a"
        LINDEX l -4 => (nil)
        LINDEX l 9223372036854775807 => (nil)
        LINDEX l -9223372036854775808 => (nil)
        -ERR value is not an integer or out of range
            LINDEX l x
            LINDEX l 1.0
            LINDEX l ""
        LINDEX nosuch 0 => (nil)
        LINDEX nosuch x => (nil)
        ! SET s v
        > LINDEX s x
        -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn lset() {
    check(
        r#"
        ! RPUSH l a b c
        +OK
            LSET l 0 x
            LSET l -1 12
            LSET l 1 ""
        LRANGE l 0 -1 => ["x", "", "12"]
        -ERR index out of range
            LSET l 3 y
            LSET l -4 y
            LSET l 9223372036854775807 y
        LSET l x y => -ERR value is not an integer or out of range
        -ERR no such key
            LSET nosuch 0 x
            LSET nosuch x x
        ! SET s v
        > LSET s x x
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > LRANGE l 0 -1
        ["x", "", "12"]
        "#,
    );
}

#[test]
fn linsert() {
    check(
        r#"
        > LINSERT l BEFORE a x
        :0
        ! RPUSH l a b a 12
        > LINSERT l BEFORE a x
        :5
        > LINSERT l AFTER a y
        :6
        > LINSERT l after 12 z
        :7
        > LINSERT l before 012 z
        :-1
        > LINSERT l BEFORE nosuch z
        :-1
        -ERR syntax error
            LINSERT l beside a z
            LINSERT nosuch beside a z
        LRANGE l 0 -1 => ["x", "a", "y", "b", "a", "12", "z"]
        ! SET s v
        > LINSERT s beside a x
        -ERR syntax error
        "#,
    );
}

#[test]
fn lrem() {
    check(
        r#"
        ! RPUSH l a b a c a d a
        > LREM l 1 a
        :1
        > LRANGE l 0 -1
        ["b", "a", "c", "a", "d", "a"]
        > LREM l -1 a
        :1
        > LRANGE l 0 -1
        ["b", "a", "c", "a", "d"]
        > LREM l 0 a
        :2
        LRANGE l 0 -1 => ["b", "c", "d"]
        :0
            LREM l 0 a
            LREM l 5 nosuch
            LREM nosuch 0 a
        -ERR value is not an integer or out of range
            LREM l x a
            LREM nosuch x a
            LREM l 1.5 a
        ! RPUSH n 1 2 1 01 1
        > LREM n -9223372036854775808 1
        :3
        > LRANGE n 0 -1
        ["2", "01"]
        > LREM n 9223372036854775807 2
        :1
        > LREM n -2 01
        :1
        > EXISTS n
        :0
        ! RPUSH m a a a a
        > LREM m 3 a
        :3
        > LREM m -3 a
        :1
        > EXISTS m
        :0
        ! SET s v
        > LREM s x a
        -ERR value is not an integer or out of range
        "#,
    );
}
