//! LINDEX, LSET, LINSERT and LREM.

use wire::check;

#[test]
fn lindex() {
    check(
        r#"
        > RPUSH l a b c
        :3
        > LINDEX l 0
        "a"
        > LINDEX l 2
        "c"
        > LINDEX l 3
        (nil)
        > LINDEX l -1
        "c"
        > LINDEX l -3
        "a"
        > LINDEX l -4
        (nil)
        > LINDEX l 9223372036854775807
        (nil)
        > LINDEX l -9223372036854775808
        (nil)
        > LINDEX l x
        -ERR value is not an integer or out of range
        > LINDEX l 1.0
        -ERR value is not an integer or out of range
        > LINDEX l ""
        -ERR value is not an integer or out of range
        > LINDEX nosuch 0
        (nil)
        > LINDEX nosuch x
        (nil)
        > SET s v
        +OK
        > LINDEX s 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > LINDEX s x
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > LINDEX l
        -ERR wrong number of arguments for 'lindex' command
        > LINDEX l 0 1
        -ERR wrong number of arguments for 'lindex' command
        "#,
    );
}

#[test]
fn lset() {
    check(
        r#"
        > RPUSH l a b c
        :3
        > LSET l 0 x
        +OK
        > LSET l -1 12
        +OK
        > LSET l 1 ""
        +OK
        > LRANGE l 0 -1
        ["x", "", "12"]
        > LSET l 3 y
        -ERR index out of range
        > LSET l -4 y
        -ERR index out of range
        > LSET l x y
        -ERR value is not an integer or out of range
        > LSET l 9223372036854775807 y
        -ERR index out of range
        > LSET nosuch 0 x
        -ERR no such key
        > LSET nosuch x x
        -ERR no such key
        > SET s v
        +OK
        > LSET s 0 x
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > LSET s x x
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > LSET l 0
        -ERR wrong number of arguments for 'lset' command
        > LSET l 0 a b
        -ERR wrong number of arguments for 'lset' command
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
        > RPUSH l a b a 12
        :4
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
        > LINSERT l beside a z
        -ERR syntax error
        > LINSERT nosuch beside a z
        -ERR syntax error
        > LRANGE l 0 -1
        ["x", "a", "y", "b", "a", "12", "z"]
        > SET s v
        +OK
        > LINSERT s BEFORE a x
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > LINSERT s beside a x
        -ERR syntax error
        > LINSERT l BEFORE a
        -ERR wrong number of arguments for 'linsert' command
        > LINSERT l BEFORE a b c
        -ERR wrong number of arguments for 'linsert' command
        "#,
    );
}

#[test]
fn lrem() {
    check(
        r#"
        > RPUSH l a b a c a d a
        :7
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
        > LRANGE l 0 -1
        ["b", "c", "d"]
        > LREM l 0 a
        :0
        > LREM l 5 nosuch
        :0
        > LREM nosuch 0 a
        :0
        > LREM l x a
        -ERR value is not an integer or out of range
        > LREM nosuch x a
        -ERR value is not an integer or out of range
        > LREM l 1.5 a
        -ERR value is not an integer or out of range
        > RPUSH n 1 2 1 01 1
        :5
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
        > RPUSH m a a a a
        :4
        > LREM m 3 a
        :3
        > LREM m -3 a
        :1
        > EXISTS m
        :0
        > SET s v
        +OK
        > LREM s 0 a
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > LREM s x a
        -ERR value is not an integer or out of range
        > LREM l 0
        -ERR wrong number of arguments for 'lrem' command
        > LREM l 0 a b
        -ERR wrong number of arguments for 'lrem' command
        "#,
    );
}
