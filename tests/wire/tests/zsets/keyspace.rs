//! Sorted sets under the commands that take a key of any type.

use wire::check;

#[test]
fn copy_and_rename() {
    check(
        r#"
        > ZADD z 1 a 2 b
        :2
        > COPY z copy
        :1
        > ZADD z 9 a
        :0
        > ZRANGE copy 0 -1 WITHSCORES
        ["a", "1", "b", "2"]
        > ZREM copy a
        :1
        > ZCARD z
        :2
        > COPY z copy
        :0
        > COPY z copy REPLACE
        :1
        > ZRANGE copy 0 -1 WITHSCORES
        ["b", "2", "a", "9"]
        > RENAME copy other
        +OK
        > ZRANGE other 0 -1 WITHSCORES
        ["b", "2", "a", "9"]
        > EXISTS copy
        :0
        > RENAMENX other z
        :0
        > SET s x
        +OK
        > RENAME other s
        +OK
        > TYPE s
        +zset
        > MOVE s 1
        :1
        > SELECT 1
        +OK
        > ZRANGE s 0 -1 WITHSCORES
        ["b", "2", "a", "9"]
        > COPY s z DB 0
        :0
        > COPY s new DB 0
        :1
        > SELECT 0
        +OK
        > ZRANGE new 0 -1 WITHSCORES
        ["b", "2", "a", "9"]
        > DEL z new nosuch
        :2
        > UNLINK z
        :0
        > DBSIZE
        :0
        "#,
    );
}

#[test]
fn deadlines() {
    check(
        r#"
        > ZADD z 1 a
        :1
        > EXPIRE z 1000
        :1
        > TTL z
        :990..1000
        > COPY z copy
        :1
        > TTL copy
        :990..1000
        > PERSIST z
        :1
        > TTL z
        :-1
        > PEXPIRE z 1
        :1
        # eventually
        > EXISTS z
        :0
        > ZSCORE z a
        (nil)
        > ZADD z 2 b
        :1
        > ZRANGE z 0 -1
        ["b"]
        > TTL z
        :-1
        > PEXPIREAT z 1
        :1
        > ZCARD z
        :0
        > ZADD z XX 1 a
        :0
        > TYPE z
        +none
        "#,
    );
}

#[test]
fn other_types_refuse_a_sorted_set() {
    check(
        r#"
        > ZADD z 1 a
        :1
        > GET z
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SET z x GET
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > STRLEN z
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > GETSET z x
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > INCRBY z 1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > HSET z f v
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > HGETALL z
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > HLEN z
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SETBIT z 1 1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > MGET z
        [(nil)]
        > SETNX z x
        :0
        > ZRANGE z 0 -1
        ["a"]
        > SET z x
        +OK
        > TYPE z
        +string
        > ZADD z 1 a
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SUBSTR z 0 0
        "x"
        > DEL z
        :1
        > ZADD z 1 a
        :1
        > TYPE z
        +zset
        "#,
    );
}

#[test]
fn facts_of_a_key() {
    check(
        r#"
        > ZADD z 1 a 2 b
        :2
        > TYPE z
        +zset
        > EXISTS z z nosuch
        :2
        > TOUCH z
        :1
        > OBJECT REFCOUNT z
        :1
        > OBJECT IDLETIME z
        :0..
        > MEMORY USAGE z
        :1..
        > KEYS *
        ["z"]
        > RANDOMKEY
        "z"
        > DBSIZE
        :1
        > DEBUG OBJECT z
        ~+*encoding:listpack*
        "#,
    );
}
