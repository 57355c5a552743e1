//! Deadlines of keys: EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT, TTL, PTTL, EXPIRETIME, PEXPIRETIME, PERSIST.

use wire::check;

/// Whoever waits is served when a transaction ends: what has expired by then is not there.
#[test]
fn what_expired_in_a_transaction_serves_nobody() {
    let kinds = [
        ("BLPOP k 1", "RPUSH k a", "(nil array)"),
        ("BRPOP k 1", "RPUSH k a", "(nil array)"),
        ("BLMPOP 1 1 k LEFT", "RPUSH k a", "(nil array)"),
        ("BLMOVE k l LEFT LEFT 1", "RPUSH k a", "(nil array)"),
        ("BRPOPLPUSH k l 1", "RPUSH k a", "(nil array)"),
        ("BZPOPMIN k 1", "ZADD k 1 a", "(nil array)"),
        ("BZPOPMAX k 1", "ZADD k 1 a", "(nil array)"),
        ("BZMPOP 1 1 k MIN", "ZADD k 1 a", "(nil array)"),
        ("XREAD BLOCK 1000 STREAMS k 0", "XADD k 1-1 f v", "(nil array)"),
    ];
    for (wait, write, nothing) in kinds {
        check(&format!(
            r#"
            > {wait}
            # until blocked_clients:1
            2> MULTI
            +OK
            2> {write}
            +QUEUED
            2> PEXPIRE k 20
            +QUEUED
            2> DEBUG SLEEP 0.1
            +QUEUED
            2> EXEC
            *
            1< {nothing}
            "#
        ));
    }
    check(
        r#"
        # needs redis >= 7.2
        > XGROUP CREATE k g $ MKSTREAM
        +OK
        > XREADGROUP GROUP g c BLOCK 1000 STREAMS k >
        # until blocked_clients:1
        2> MULTI
        +OK
        2> XADD k 1-1 f v
        +QUEUED
        2> PEXPIRE k 20
        +QUEUED
        2> DEBUG SLEEP 0.1
        +QUEUED
        2> EXEC
        *
        1< -NOGROUP No such key 'k' or consumer group 'g' in XREADGROUP with GROUP option
        "#,
    );
}

#[test]
fn expire_sets_a_deadline() {
    check(
        r#"
        > SET a 1
        +OK
        > EXPIRE a 100
        :1
        > TTL a
        :90..100
        > PEXPIRE a 200000
        :1
        > PTTL a
        :190000..200000
        > EXPIREAT a 33177117420
        :1
        > EXPIRETIME a
        :33177117420
        > PEXPIREAT a 33177117420123
        :1
        > PEXPIRETIME a
        :33177117420123
        > HSET h f v
        :1
        > EXPIRE h 100
        :1
        > TTL h
        :90..100
        > EXPIRE nosuch 100
        :0
        > PEXPIRE nosuch 100
        :0
        > EXPIREAT nosuch 33177117420
        :0
        > PEXPIREAT nosuch 33177117420123
        :0
        > EXISTS nosuch
        :0
        "#,
    );
}

#[test]
fn ttl_of_keys_without_a_deadline() {
    check(
        r#"
        > SET a 1
        +OK
        > TTL a
        :-1
        > PTTL a
        :-1
        > EXPIRETIME a
        :-1
        > PEXPIRETIME a
        :-1
        > TTL nosuch
        :-2
        > PTTL nosuch
        :-2
        > EXPIRETIME nosuch
        :-2
        > PEXPIRETIME nosuch
        :-2
        > TTL
        -ERR wrong number of arguments for 'ttl' command
        > PTTL a b
        -ERR wrong number of arguments for 'pttl' command
        > EXPIRETIME
        -ERR wrong number of arguments for 'expiretime' command
        > PEXPIRETIME a b
        -ERR wrong number of arguments for 'pexpiretime' command
        "#,
    );
}

#[test]
fn ttl_rounds_to_the_nearest_second() {
    check(
        r#"
        > SET a 1
        +OK
        > PEXPIREAT a 33177117420499
        :1
        > EXPIRETIME a
        :33177117420
        > PEXPIREAT a 33177117420500
        :1
        > EXPIRETIME a
        :33177117421
        > PEXPIREAT a 33177117420999
        :1
        > EXPIRETIME a
        :33177117421
        "#,
    );
}

#[test]
fn persist() {
    check(
        r#"
        > SET a 1 EX 100
        +OK
        > PERSIST a
        :1
        > TTL a
        :-1
        > PERSIST a
        :0
        > PERSIST nosuch
        :0
        > PERSIST
        -ERR wrong number of arguments for 'persist' command
        > PERSIST a b
        -ERR wrong number of arguments for 'persist' command
        > HSET h f v
        :1
        > EXPIRE h 100
        :1
        > PERSIST h
        :1
        > TTL h
        :-1
        "#,
    );
}

#[test]
fn expire_with_an_instant_in_the_past_deletes() {
    check(
        r#"
        > SET a 1
        +OK
        > EXPIRE a 0
        :1
        > EXISTS a
        :0
        > SET a 1
        +OK
        > EXPIRE a -100
        :1
        > EXISTS a
        :0
        > SET a 1
        +OK
        > PEXPIRE a 0
        :1
        > EXISTS a
        :0
        > SET a 1
        +OK
        > EXPIREAT a 1
        :1
        > EXISTS a
        :0
        > SET a 1
        +OK
        > EXPIREAT a -1
        :1
        > EXISTS a
        :0
        > SET a 1
        +OK
        > PEXPIREAT a 0
        :1
        > EXISTS a
        :0
        > HSET h f v
        :1
        > EXPIRE h -1
        :1
        > HGETALL h
        []
        > EXPIRE nosuch -1
        :0
        "#,
    );
}

#[test]
fn expire_nx() {
    check(
        r#"
        > SET a 1
        +OK
        > EXPIREAT a 33177117420 NX
        :1
        > EXPIREAT a 33177117421 NX
        :0
        > EXPIRETIME a
        :33177117420
        > SET b 1
        +OK
        > EXPIRE b 100 nx
        :1
        > PEXPIRE b 100 NX
        :0
        > PEXPIREAT b 33177117420123 NX
        :0
        > EXPIRE nosuch 100 NX
        :0
        > EXPIRE b -1 NX
        :0
        > EXISTS b
        :1
        "#,
    );
}

#[test]
fn expire_xx() {
    check(
        r#"
        > SET a 1
        +OK
        > EXPIREAT a 33177117420 XX
        :0
        > TTL a
        :-1
        > EXPIREAT a 33177117420
        :1
        > EXPIREAT a 33177117421 XX
        :1
        > EXPIRETIME a
        :33177117421
        > EXPIRE nosuch 100 XX
        :0
        > SET b 1
        +OK
        > EXPIRE b -1 XX
        :0
        > EXISTS b
        :1
        "#,
    );
}

#[test]
fn expire_gt() {
    check(
        r#"
        > SET a 1
        +OK
        > EXPIREAT a 33177117420 GT
        :0
        > TTL a
        :-1
        > EXPIREAT a 33177117420
        :1
        > EXPIREAT a 33177117419 GT
        :0
        > EXPIREAT a 33177117420 GT
        :0
        > EXPIREAT a 33177117421 GT
        :1
        > EXPIRETIME a
        :33177117421
        > PEXPIREAT a 33177117421001 gt
        :1
        > PEXPIRETIME a
        :33177117421001
        > EXPIREAT a 1 GT
        :0
        > EXISTS a
        :1
        > EXPIRE nosuch 100 GT
        :0
        "#,
    );
}

#[test]
fn expire_lt() {
    check(
        r#"
        > SET a 1
        +OK
        > EXPIREAT a 33177117420 LT
        :1
        > EXPIRETIME a
        :33177117420
        > EXPIREAT a 33177117421 LT
        :0
        > EXPIREAT a 33177117420 LT
        :0
        > EXPIREAT a 33177117419 LT
        :1
        > EXPIRETIME a
        :33177117419
        > EXPIREAT a 1 LT
        :1
        > EXISTS a
        :0
        > EXPIRE nosuch 100 LT
        :0
        "#,
    );
}

#[test]
fn expire_with_two_conditions() {
    check(
        r#"
        > SET a 1
        +OK
        > EXPIREAT a 33177117420 XX GT
        :0
        > EXPIREAT a 33177117420 XX LT
        :0
        > EXPIREAT a 33177117420
        :1
        > EXPIREAT a 33177117421 GT XX
        :1
        > EXPIREAT a 33177117420 LT XX
        :1
        > EXPIRETIME a
        :33177117420
        > EXPIRE a 100 NX XX
        -ERR NX and XX, GT or LT options at the same time are not compatible
        > EXPIRE a 100 NX GT
        -ERR NX and XX, GT or LT options at the same time are not compatible
        > EXPIRE a 100 NX LT
        -ERR NX and XX, GT or LT options at the same time are not compatible
        > EXPIRE a 100 XX NX
        -ERR NX and XX, GT or LT options at the same time are not compatible
        > EXPIRE a 100 GT LT
        -ERR GT and LT options at the same time are not compatible
        > EXPIRE a 100 GT NX
        -ERR NX and XX, GT or LT options at the same time are not compatible
        > EXPIREAT a 33177117421 XX XX
        :1
        > EXPIRETIME a
        :33177117421
        "#,
    );
}

#[test]
fn expire_refuses_bad_arguments() {
    check(
        r#"
        > SET a 1
        +OK
        > EXPIRE a abc
        -ERR value is not an integer or out of range
        > EXPIRE a 1.5
        -ERR value is not an integer or out of range
        > EXPIRE a ""
        -ERR value is not an integer or out of range
        > PEXPIRE a abc
        -ERR value is not an integer or out of range
        > EXPIREAT a abc
        -ERR value is not an integer or out of range
        > PEXPIREAT a abc
        -ERR value is not an integer or out of range
        > EXPIRE a 100 NOSUCH
        -ERR Unsupported option NOSUCH
        > EXPIRE a 100 NX NOSUCH
        -ERR Unsupported option NOSUCH
        > EXPIRE a 9223372036854775807
        -ERR invalid expire time in 'expire' command
        > EXPIRE a 9223372036854775808
        -ERR value is not an integer or out of range
        > EXPIRE a 9223372036854775
        -ERR invalid expire time in 'expire' command
        > EXPIRE a -9223372036854775808
        -ERR invalid expire time in 'expire' command
        > EXPIREAT a 9223372036854775807
        -ERR invalid expire time in 'expireat' command
        > EXPIREAT a -9223372036854775808
        -ERR invalid expire time in 'expireat' command
        > PEXPIRE a 9223372036854775807
        -ERR invalid expire time in 'pexpire' command
        > PEXPIREAT a 9223372036854775807
        :1
        > PEXPIRETIME a
        :9223372036854775807
        > PERSIST a
        :1
        > EXPIRE a
        -ERR wrong number of arguments for 'expire' command
        > EXPIRE
        -ERR wrong number of arguments for 'expire' command
        > PEXPIRE a
        -ERR wrong number of arguments for 'pexpire' command
        > EXPIREAT a
        -ERR wrong number of arguments for 'expireat' command
        > PEXPIREAT a
        -ERR wrong number of arguments for 'pexpireat' command
        > EXPIRE nosuch abc
        -ERR value is not an integer or out of range
        > EXPIRE nosuch 9223372036854775807
        -ERR invalid expire time in 'expire' command
        > EXPIRE nosuch 100 NOSUCH
        -ERR Unsupported option NOSUCH
        > TTL a
        :-1
        "#,
    );
}

#[test]
fn an_expired_key_is_absent() {
    check(
        r#"
        > MSET a 1 b 2
        +OK
        > HSET h f v
        :1
        > PEXPIRE a 20
        :1
        > PEXPIRE h 20
        :1
        # eventually
        > EXISTS a h
        :0
        > GET a
        (nil)
        > TYPE a
        +none
        > TTL a
        :-2
        > PTTL h
        :-2
        > HGET h f
        (nil)
        > HGETALL h
        []
        > STRLEN a
        :0
        > KEYS *
        ["b"]
        > DEL a h
        :0
        > PERSIST a
        :0
        > EXPIRE a 100
        :0
        > RENAME a c
        -ERR no such key
        > COPY a c
        :0
        > GETDEL a
        (nil)
        > INCR a
        :1
        > TTL a
        :-1
        > HSET h g w
        :1
        > HGETALL h
        ["g", "w"]
        > TTL h
        :-1
        # eventually
        > DBSIZE
        :3
        "#,
    );
}

#[test]
fn what_replaces_a_value_takes_its_deadline_away() {
    check(
        r#"
        > SET a 1 EX 100
        +OK
        > SET a 2
        +OK
        > TTL a
        :-1
        > SET a 1 EX 100
        +OK
        > GETSET a 2
        "1"
        > TTL a
        :-1
        > SET a 1 EX 100
        +OK
        > MSET a 2
        +OK
        > TTL a
        :-1
        > SET a 1 EX 100
        +OK
        > DEL a
        :1
        > SET a 1 NX
        +OK
        > TTL a
        :-1
        > SET b 1
        +OK
        > SET a 1 EX 100
        +OK
        > RENAME b a
        +OK
        > TTL a
        :-1
        > SET b 1
        +OK
        > SET a 1 EX 100
        +OK
        > COPY b a REPLACE
        :1
        > TTL a
        :-1
        > SET a 1 EX 100
        +OK
        > BITOP OR a b
        :1
        > TTL a
        :-1
        "#,
    );
}

#[test]
fn what_changes_a_value_keeps_its_deadline() {
    check(
        r#"
        > SET a 1 EXAT 33177117420
        +OK
        > INCR a
        :2
        > APPEND a 1
        :2
        > SETRANGE a 0 9
        :2
        > SETBIT a 0 0
        :0
        > BITFIELD a SET u8 0 49
        [:57]
        > EXPIRETIME a
        :33177117420
        > HSET h f 1
        :1
        > EXPIREAT h 33177117420
        :1
        > HSET h f 2 g 3
        :1
        > HINCRBY h f 1
        :3
        > HINCRBYFLOAT h f 1
        "4"
        > HDEL h g
        :1
        > HSETNX h i 1
        :1
        > EXPIRETIME h
        :33177117420
        "#,
    );
}

#[test]
fn an_active_cycle_frees_what_nobody_asks_for() {
    check(
        r#"
        > SET keep 1
        +OK
        > PSETEX a 20 1
        +OK
        > PSETEX b 20 1
        +OK
        > HSET h f v
        :1
        > PEXPIRE h 20
        :1
        # eventually
        > DBSIZE
        :1
        "#,
    );
}

#[test]
fn expiry_of_many_keys_in_another_database() {
    check(
        r#"
        > SELECT 9
        +OK
        > PSETEX a 20 1
        +OK
        > SELECT 0
        +OK
        > SET a keep
        +OK
        > SELECT 9
        +OK
        # eventually
        > DBSIZE
        :0
        > SELECT 0
        +OK
        > GET a
        "keep"
        "#,
    );
}

#[test]
fn a_long_command_does_not_make_the_next_one_see_the_past() {
    check(
        r#"
        > SET k v PX 100
        +OK
        > DEBUG SLEEP 0.3
        +OK
        > GET k
        (nil)
        > PTTL k
        :-2
        "#,
    );
}
