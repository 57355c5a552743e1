//! Deadlines of keys: EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT, TTL, PTTL, EXPIRETIME, PEXPIRETIME, PERSIST.

use wire::check;

/// Whoever waits is served when a transaction ends: what has expired by then is not there.
#[test]
fn what_expired_in_a_transaction_serves_nobody() {
    let kinds = [
        ("BLPOP k 1", "RPUSH k a"),
        ("BRPOP k 1", "RPUSH k a"),
        ("BLMPOP 1 1 k LEFT", "RPUSH k a"),
        ("BLMOVE k l LEFT LEFT 1", "RPUSH k a"),
        ("BRPOPLPUSH k l 1", "RPUSH k a"),
        ("BZPOPMIN k 1", "ZADD k 1 a"),
        ("BZPOPMAX k 1", "ZADD k 1 a"),
        ("BZMPOP 1 1 k MIN", "ZADD k 1 a"),
        ("XREAD BLOCK 1000 STREAMS k 0", "XADD k 1-1 f v"),
    ];
    // All wait at once, each for a key of its own, so that the time passes once.
    let (mut waits, mut writes, mut replies) = (String::new(), String::new(), String::new());
    for (peer, (wait, write)) in (1..).zip(kinds) {
        let of_peer = |request: &str| request.replace(" k", &format!(" k{peer}"));
        waits += &format!("{peer}> {}\n", of_peer(wait));
        writes += &format!("10! {}\n10! PEXPIRE k{peer} 20\n", of_peer(write));
        replies += &format!("{peer}< (nil array)\n");
    }
    let count = kinds.len();
    check(&format!(
        "
        {waits}
        # until blocked_clients:{count}
        10! MULTI
        {writes}
        10! DEBUG SLEEP 0.1
        10! EXEC
        {replies}
        "
    ));
    check(
        r#"
        # needs redis >= 7.2
        XGROUP CREATE k g $ MKSTREAM => +OK
        > XREADGROUP GROUP g c BLOCK 0 STREAMS k >
        # until blocked_clients:1
        2! MULTI
        2! XADD k 1-1 f v
        2! PEXPIRE k 20
        2! DEBUG SLEEP 0.1
        2! EXEC
        1< -NOGROUP No such key 'k' or consumer group 'g' in XREADGROUP with GROUP option
        "#,
    );
}

#[test]
fn deadlines_are_set_read_and_removed() {
    check(
        r#"
        SET a 1 => +OK
        EXPIRE a 100 => :1
        TTL a => :90..100
        PEXPIRE a 200000 => :1
        PTTL a => :190000..200000
        EXPIREAT a 33177117420 => :1
        EXPIRETIME a => :33177117420
        PEXPIREAT a 33177117420123 => :1
        PEXPIRETIME a => :33177117420123
        HSET h f v => :1
        EXPIRE h 100 => :1
        TTL h => :90..100
        EXPIRE nosuch 100 => :0
        PEXPIRE nosuch 100 => :0
        EXPIREAT nosuch 33177117420 => :0
        PEXPIREAT nosuch 33177117420123 => :0
        EXISTS nosuch => :0
        ! FLUSHALL
        // Without a deadline, or a key.
        SET a 1 => +OK
        TTL a => :-1
        PTTL a => :-1
        EXPIRETIME a => :-1
        PEXPIRETIME a => :-1
        TTL nosuch => :-2
        PTTL nosuch => :-2
        EXPIRETIME nosuch => :-2
        PEXPIRETIME nosuch => :-2
        ! FLUSHALL
        // Seconds are rounded to the nearest.
        SET a 1 => +OK
        PEXPIREAT a 33177117420499 => :1
        EXPIRETIME a => :33177117420
        PEXPIREAT a 33177117420500 => :1
        EXPIRETIME a => :33177117421
        PEXPIREAT a 33177117420999 => :1
        EXPIRETIME a => :33177117421
        ! FLUSHALL
        // PERSIST removes a deadline.
        SET a 1 EX 100 => +OK
        PERSIST a => :1
        TTL a => :-1
        PERSIST a => :0
        PERSIST nosuch => :0
        HSET h f v => :1
        EXPIRE h 100 => :1
        PERSIST h => :1
        TTL h => :-1
        "#,
    );
}

#[test]
fn expire_with_an_instant_in_the_past_deletes() {
    check(
        r#"
        SET a 1 => +OK
        EXPIRE a 0 => :1
        EXISTS a => :0
        SET a 1 => +OK
        EXPIRE a -100 => :1
        EXISTS a => :0
        SET a 1 => +OK
        PEXPIRE a 0 => :1
        EXISTS a => :0
        SET a 1 => +OK
        EXPIREAT a 1 => :1
        EXISTS a => :0
        SET a 1 => +OK
        EXPIREAT a -1 => :1
        EXISTS a => :0
        SET a 1 => +OK
        PEXPIREAT a 0 => :1
        EXISTS a => :0
        HSET h f v => :1
        EXPIRE h -1 => :1
        HGETALL h => []
        EXPIRE nosuch -1 => :0
        "#,
    );
}

#[test]
fn expire_with_conditions() {
    check(
        r#"
        // NX: where there is none.
        SET a 1 => +OK
        EXPIREAT a 33177117420 NX => :1
        EXPIREAT a 33177117421 NX => :0
        EXPIRETIME a => :33177117420
        SET b 1 => +OK
        EXPIRE b 100 nx => :1
        PEXPIRE b 100 NX => :0
        PEXPIREAT b 33177117420123 NX => :0
        EXPIRE nosuch 100 NX => :0
        EXPIRE b -1 NX => :0
        EXISTS b => :1
        ! FLUSHALL
        // XX: where there is one.
        SET a 1 => +OK
        EXPIREAT a 33177117420 XX => :0
        TTL a => :-1
        EXPIREAT a 33177117420 => :1
        EXPIREAT a 33177117421 XX => :1
        EXPIRETIME a => :33177117421
        EXPIRE nosuch 100 XX => :0
        SET b 1 => +OK
        EXPIRE b -1 XX => :0
        EXISTS b => :1
        ! FLUSHALL
        // GT: a later one. None is the latest.
        SET a 1 => +OK
        EXPIREAT a 33177117420 GT => :0
        TTL a => :-1
        EXPIREAT a 33177117420 => :1
        EXPIREAT a 33177117419 GT => :0
        EXPIREAT a 33177117420 GT => :0
        EXPIREAT a 33177117421 GT => :1
        EXPIRETIME a => :33177117421
        PEXPIREAT a 33177117421001 gt => :1
        PEXPIRETIME a => :33177117421001
        EXPIREAT a 1 GT => :0
        EXISTS a => :1
        EXPIRE nosuch 100 GT => :0
        ! FLUSHALL
        // LT: an earlier one.
        SET a 1 => +OK
        EXPIREAT a 33177117420 LT => :1
        EXPIRETIME a => :33177117420
        EXPIREAT a 33177117421 LT => :0
        EXPIREAT a 33177117420 LT => :0
        EXPIREAT a 33177117419 LT => :1
        EXPIRETIME a => :33177117419
        EXPIREAT a 1 LT => :1
        EXISTS a => :0
        EXPIRE nosuch 100 LT => :0
        ! FLUSHALL
        // Two conditions.
        SET a 1 => +OK
        EXPIREAT a 33177117420 XX GT => :0
        EXPIREAT a 33177117420 XX LT => :0
        EXPIREAT a 33177117420 => :1
        EXPIREAT a 33177117421 GT XX => :1
        EXPIREAT a 33177117420 LT XX => :1
        EXPIRETIME a => :33177117420
        -ERR NX and XX, GT or LT options at the same time are not compatible
            EXPIRE a 100 NX XX
            EXPIRE a 100 NX GT
            EXPIRE a 100 NX LT
            EXPIRE a 100 XX NX
        EXPIRE a 100 GT LT => -ERR GT and LT options at the same time are not compatible
        EXPIRE a 100 GT NX => -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIREAT a 33177117421 XX XX => :1
        EXPIRETIME a => :33177117421
        "#,
    );
}

#[test]
fn expire_refuses_bad_arguments() {
    check(
        r#"
        SET a 1 => +OK
        -ERR value is not an integer or out of range
            EXPIRE a abc
            EXPIRE a 1.5
            EXPIRE a ""
            PEXPIRE a abc
            EXPIREAT a abc
            PEXPIREAT a abc
        EXPIRE a 100 NOSUCH => -ERR Unsupported option NOSUCH
        EXPIRE a 100 NX NOSUCH => -ERR Unsupported option NOSUCH
        EXPIRE a 9223372036854775807 => -ERR invalid expire time in 'expire' command
        EXPIRE a 9223372036854775808 => -ERR value is not an integer or out of range
        EXPIRE a 9223372036854775 => -ERR invalid expire time in 'expire' command
        EXPIRE a -9223372036854775808 => -ERR invalid expire time in 'expire' command
        EXPIREAT a 9223372036854775807 => -ERR invalid expire time in 'expireat' command
        EXPIREAT a -9223372036854775808 => -ERR invalid expire time in 'expireat' command
        PEXPIRE a 9223372036854775807 => -ERR invalid expire time in 'pexpire' command
        PEXPIREAT a 9223372036854775807 => :1
        PEXPIRETIME a => :9223372036854775807
        PERSIST a => :1
        EXPIRE nosuch abc => -ERR value is not an integer or out of range
        EXPIRE nosuch 9223372036854775807 => -ERR invalid expire time in 'expire' command
        EXPIRE nosuch 100 NOSUCH => -ERR Unsupported option NOSUCH
        TTL a => :-1
        "#,
    );
}

#[test]
fn an_expired_key_is_absent() {
    check(
        r#"
        MSET a 1 b 2 => +OK
        HSET h f v => :1
        PEXPIRE a 20 => :1
        PEXPIRE h 20 => :1
        # eventually
        EXISTS a h => :0
        GET a => (nil)
        TYPE a => +none
        TTL a => :-2
        PTTL h => :-2
        HGET h f => (nil)
        HGETALL h => []
        STRLEN a => :0
        KEYS * => ["b"]
        DEL a h => :0
        PERSIST a => :0
        EXPIRE a 100 => :0
        RENAME a c => -ERR no such key
        COPY a c => :0
        GETDEL a => (nil)
        INCR a => :1
        TTL a => :-1
        HSET h g w => :1
        HGETALL h => ["g", "w"]
        TTL h => :-1
        # eventually
        DBSIZE => :3
        ! FLUSHALL
        // Also behind a command that took long.
        SET k v PX 100 => +OK
        DEBUG SLEEP 0.3 => +OK
        GET k => (nil)
        PTTL k => :-2
        "#,
    );
}

#[test]
fn what_keeps_a_deadline_and_what_does_not() {
    check(
        r#"
        // What replaces a value takes it away.
        SET a 1 EX 100 => +OK
        SET a 2 => +OK
        TTL a => :-1
        SET a 1 EX 100 => +OK
        GETSET a 2 => "1"
        TTL a => :-1
        SET a 1 EX 100 => +OK
        MSET a 2 => +OK
        TTL a => :-1
        SET a 1 EX 100 => +OK
        DEL a => :1
        SET a 1 NX => +OK
        TTL a => :-1
        SET b 1 => +OK
        SET a 1 EX 100 => +OK
        RENAME b a => +OK
        TTL a => :-1
        SET b 1 => +OK
        SET a 1 EX 100 => +OK
        COPY b a REPLACE => :1
        TTL a => :-1
        SET a 1 EX 100 => +OK
        BITOP OR a b => :1
        TTL a => :-1
        ! FLUSHALL
        // What changes a value keeps it.
        SET a 1 EXAT 33177117420 => +OK
        INCR a => :2
        APPEND a 1 => :2
        SETRANGE a 0 9 => :2
        SETBIT a 0 0 => :0
        BITFIELD a SET u8 0 49 => [:57]
        EXPIRETIME a => :33177117420
        HSET h f 1 => :1
        EXPIREAT h 33177117420 => :1
        HSET h f 2 g 3 => :1
        HINCRBY h f 1 => :3
        HINCRBYFLOAT h f 1 => "4"
        HDEL h g => :1
        HSETNX h i 1 => :1
        EXPIRETIME h => :33177117420
        "#,
    );
}

#[test]
fn an_active_cycle_frees_what_nobody_asks_for() {
    check(
        r#"
        SET keep 1 => +OK
        PSETEX a 20 1 => +OK
        PSETEX b 20 1 => +OK
        HSET h f v => :1
        PEXPIRE h 20 => :1
        # eventually
        DBSIZE => :1
        ! FLUSHALL
        // In another database too.
        SELECT 9 => +OK
        PSETEX a 20 1 => +OK
        SELECT 0 => +OK
        SET a keep => +OK
        SELECT 9 => +OK
        # eventually
        DBSIZE => :0
        SELECT 0 => +OK
        GET a => "keep"
        "#,
    );
}
