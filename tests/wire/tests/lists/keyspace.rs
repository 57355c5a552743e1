//! Lists and the commands for keys of any type.

use wire::check;

#[test]
fn what_keys_do() {
    check(
        r#"
        > RPUSH l a b c 1 a
        :5
        > TYPE l
        +list
        > OBJECT ENCODING l
        "listpack" | "quicklist"
        > OBJECT REFCOUNT l
        :1
        > COPY l m
        :1
        > RPUSH m d
        :6
        > LRANGE l 0 -1
        ["a", "b", "c", "1", "a"]
        > LRANGE m 0 -1
        ["a", "b", "c", "1", "a", "d"]
        > RENAME m n
        +OK
        > EXISTS m
        :0
        > LRANGE n 0 -1
        ["a", "b", "c", "1", "a", "d"]
        > COPY l n
        :0
        > COPY l n REPLACE
        :1
        > LRANGE n 0 -1
        ["a", "b", "c", "1", "a"]
        > MOVE n 1
        :1
        > EXISTS n
        :0
        > SELECT 1
        +OK
        > LRANGE n 0 -1
        ["a", "b", "c", "1", "a"]
        > SELECT 0
        +OK
        > SCAN 0 TYPE list
        ["0", ["l"]]
        > SCAN 0 TYPE string
        ["0", []]
        > DEBUG DIGEST-VALUE l
        [+0d05db4f3385fb3b3b0e2c715cbadb591f393cf2]
        > SET l other
        +OK
        > GET l
        "other"
        "#,
    );
}

#[test]
fn other_types_refuse_lists() {
    check(
        r#"
        > RPUSH l a
        :1
        > GET l
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > APPEND l x
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > INCR l
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > HGET l f
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > HSET l f v
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SADD l m
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SMEMBERS l
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZADD l 1 m
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZRANGE l 0 -1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > GETBIT l 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SETRANGE l 0 x
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SUNION l
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZUNION 1 l
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > LRANGE l 0 -1
        ["a"]
        "#,
    );
}

#[test]
fn digests() {
    check(
        r#"
        > RPUSH l a b 12 "" 12
        :5
        > DEBUG DIGEST-VALUE l
        [+4a092e69c3bf0a91b683a9651d538f034ffe3755]
        > RPUSH m b a 12 "" 12
        :5
        > DEBUG DIGEST-VALUE m
        [+5d9f24167ede184a9433a5eb54b101e7cfff9446]
        > EXPIRE l 1000
        :1
        > DEBUG DIGEST-VALUE l
        [+ac8cd0961f86e0c57795429d58394098555076d6]
        "#,
    );
}
