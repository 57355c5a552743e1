//! SET and its options, SETNX, SETEX, PSETEX, GETSET.

use wire::check;

#[test]
fn set_and_get() {
    check(
        r#"
        > SET a hello
        +OK
        > GET a
        "hello"
        > SET a ""
        +OK
        > GET a
        ""
        > STRLEN a
        :0
        > EXISTS a
        :1
        > SET "" "empty key"
        +OK
        > GET ""
        "empty key"
        > SET "a b" c
        +OK
        > GET "a b"
        "c"
        > set a lower
        +OK
        > GeT a
        "lower"
        > GET nosuch
        (nil)
        "#,
    );
}

#[test]
fn set_replaces_a_value_of_any_type() {
    check(
        r#"
        > HSET h f v
        :1
        > SET h string
        +OK
        > TYPE h
        +string
        > GET h
        "string"
        "#,
    );
}

#[test]
fn set_nx_only_creates() {
    check(
        r#"
        > SET a 1 NX
        +OK
        > SET a 2 NX
        (nil)
        > GET a
        "1"
        > SET a 2 nx
        (nil)
        > GET a
        "1"
        "#,
    );
}

#[test]
fn set_xx_only_replaces() {
    check(
        r#"
        > SET a 1 XX
        (nil)
        > EXISTS a
        :0
        > SET a 1
        +OK
        > SET a 2 XX
        +OK
        > GET a
        "2"
        > HSET h f v
        :1
        > SET h 1 XX
        +OK
        > TYPE h
        +string
        > HSET g f v
        :1
        > SET g 1 NX
        (nil)
        > TYPE g
        +hash
        "#,
    );
}

#[test]
fn set_get_returns_the_old_value() {
    check(
        r#"
        > SET a 1 GET
        (nil)
        > SET a 2 GET
        "1"
        > GET a
        "2"
        > SET a 3 get
        "2"
        > HSET h f v
        :1
        > SET h 1 GET
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > TYPE h
        +hash
        "#,
    );
}

#[test]
fn set_get_with_nx_and_xx() {
    check(
        r#"
        > SET a 1 XX GET
        (nil)
        > EXISTS a
        :0
        > SET a 1 NX GET
        (nil)
        > GET a
        "1"
        > SET a 2 NX GET
        "1"
        > GET a
        "1"
        > SET a 3 XX GET
        "1"
        > GET a
        "3"
        > SET a 4 GET XX
        "3"
        > HSET h f v
        :1
        > SET h 1 NX GET
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SET h 1 XX GET
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > TYPE h
        +hash
        "#,
    );
}

#[test]
fn set_ex_and_px() {
    check(
        r#"
        > SET a 1 EX 100
        +OK
        > TTL a
        :99..100
        > SET a 1 PX 100000
        +OK
        > PTTL a
        :90000..100000
        > SET a 1 ex 100
        +OK
        > TTL a
        :99..100
        > SET a 1
        +OK
        > TTL a
        :-1
        "#,
    );
}

#[test]
fn set_exat_and_pxat() {
    check(
        r#"
        > SET a 1 EXAT 33177117420
        +OK
        > EXPIRETIME a
        :33177117420
        > SET a 1 PXAT 33177117420123
        +OK
        > PEXPIRETIME a
        :33177117420123
        > EXPIRETIME a
        :33177117420
        > SET a 1 exat 33177117421
        +OK
        > PEXPIRETIME a
        :33177117421000
        "#,
    );
}

#[test]
fn set_with_an_instant_in_the_past_deletes() {
    check(
        r#"
        > SET a 1
        +OK
        > SET a 2 PXAT 1
        +OK
        > EXISTS a
        :0
        > SET a 2 EXAT 1
        +OK
        > EXISTS a
        :0
        > SET a 1
        +OK
        > SET a 2 EXAT 1 GET
        "1"
        > EXISTS a
        :0
        "#,
    );
}

#[test]
fn set_keepttl() {
    check(
        r#"
        > SET a 1 EX 100
        +OK
        > SET a 2 KEEPTTL
        +OK
        > TTL a
        :99..100
        > GET a
        "2"
        > SET b 1 KEEPTTL
        +OK
        > TTL b
        :-1
        > SET a 3
        +OK
        > TTL a
        :-1
        > SET a 4 EXAT 33177117420
        +OK
        > SET a 5 XX KEEPTTL GET
        "4"
        > EXPIRETIME a
        :33177117420
        "#,
    );
}

#[test]
fn set_takes_options_in_any_order() {
    check(
        r#"
        > SET a 1 EX 100 NX
        +OK
        > SET a 2 GET EX 100 XX
        "1"
        > SET a 3 XX PX 100000 GET
        "2"
        > GET a
        "3"
        > TTL a
        :99..100
        "#,
    );
}

#[test]
fn set_that_does_not_apply_keeps_the_ttl() {
    check(
        r#"
        > SET a 1 EXAT 33177117420
        +OK
        > SET a 2 NX
        (nil)
        > EXPIRETIME a
        :33177117420
        > SET a 2 NX EX 10
        (nil)
        > EXPIRETIME a
        :33177117420
        > GET a
        "1"
        "#,
    );
}

#[test]
fn set_expires() {
    check(
        r#"
        > SET a 1 PX 20
        +OK
        # eventually
        > GET a
        (nil)
        > EXISTS a
        :0
        > SET a 2 NX
        +OK
        > GET a
        "2"
        "#,
    );
}

#[test]
fn set_refuses_options_that_exclude_each_other() {
    check(
        r#"
        > SET a 1 NX XX
        -ERR syntax error
        > SET a 1 XX NX
        -ERR syntax error
        > SET a 1 EX 10 PX 10000
        -ERR syntax error
        > SET a 1 EX 10 KEEPTTL
        -ERR syntax error
        > SET a 1 KEEPTTL EX 10
        -ERR syntax error
        > SET a 1 PXAT 33177117420123 KEEPTTL
        -ERR syntax error
        > SET a 1 EXAT 33177117420 EX 10
        -ERR syntax error
        > SET a 1 EX 10 EXAT 33177117420
        -ERR syntax error
        > SET a 1 PXAT 33177117420123 EXAT 33177117420
        -ERR syntax error
        > SET a 1 PERSIST
        -ERR syntax error
        > SET a 1 NX GET XX
        -ERR syntax error
        > EXISTS a
        :0
        "#,
    );
}

#[test]
fn set_accepts_a_repeated_option() {
    check(
        r#"
        > SET a 1 NX NX
        +OK
        > SET a 2 XX XX
        +OK
        > SET a 3 GET GET
        "2"
        > SET a 4 KEEPTTL KEEPTTL
        +OK
        > SET a 5 EXAT 33177117420 EXAT 33177117421
        +OK
        > EXPIRETIME a
        :33177117421
        > SET a 6 PX 100000 PX 200000
        +OK
        > PTTL a
        :190000..200000
        > GET a
        "6"
        "#,
    );
}

#[test]
fn set_refuses_what_it_does_not_know() {
    check(
        r#"
        > SET a 1 NOSUCH
        -ERR syntax error
        > SET a 1 2
        -ERR syntax error
        > SET a 1 EX
        -ERR syntax error
        > SET a 1 PX
        -ERR syntax error
        > SET a 1 EXAT
        -ERR syntax error
        > SET a 1 PXAT
        -ERR syntax error
        > SET a 1 NX EX
        -ERR syntax error
        > SET a 1 ""
        -ERR syntax error
        > EXISTS a
        :0
        "#,
    );
}

#[test]
fn set_refuses_a_bad_expiry() {
    check(
        r#"
        > SET a 1 EX 0
        -ERR invalid expire time in 'set' command
        > SET a 1 EX -1
        -ERR invalid expire time in 'set' command
        > SET a 1 PX 0
        -ERR invalid expire time in 'set' command
        > SET a 1 PX -1
        -ERR invalid expire time in 'set' command
        > SET a 1 EXAT 0
        -ERR invalid expire time in 'set' command
        > SET a 1 EXAT -1
        -ERR invalid expire time in 'set' command
        > SET a 1 PXAT 0
        -ERR invalid expire time in 'set' command
        > SET a 1 PXAT -5
        -ERR invalid expire time in 'set' command
        > SET a 1 EX abc
        -ERR value is not an integer or out of range
        > SET a 1 PX 1.5
        -ERR value is not an integer or out of range
        > SET a 1 EX ""
        -ERR value is not an integer or out of range
        > SET a 1 EX 9223372036854775808
        -ERR value is not an integer or out of range
        > SET a 1 EX 9223372036854775807
        -ERR invalid expire time in 'set' command
        > SET a 1 EX 9223372036854775
        -ERR invalid expire time in 'set' command
        > SET a 1 PX 9223372036854775807
        -ERR invalid expire time in 'set' command
        > SET a 1 EXAT 9223372036854775807
        -ERR invalid expire time in 'set' command
        > SET a 1 PXAT 9223372036854775807
        +OK
        > PEXPIRETIME a
        :9223372036854775807
        > SET a 1 EX " 10"
        -ERR value is not an integer or out of range
        > SET a 1 EX +10
        -ERR value is not an integer or out of range
        > SET a 1 EX 010
        -ERR value is not an integer or out of range
        > SET a 1 EX 0x10
        -ERR value is not an integer or out of range
        > SET b 1 EX 10 NOSUCH
        -ERR syntax error
        > EXISTS b
        :0
        "#,
    );
}

#[test]
fn set_checks_the_expiry_before_the_condition() {
    check(
        r#"
        > SET a 1
        +OK
        > SET a 2 NX EX 0
        -ERR invalid expire time in 'set' command
        > SET a 2 NX EX abc
        -ERR value is not an integer or out of range
        > SET b 2 XX PX -1
        -ERR invalid expire time in 'set' command
        > HSET h f v
        :1
        > SET h 1 GET EX 0
        -ERR invalid expire time in 'set' command
        "#,
    );
}

#[test]
fn setnx() {
    check(
        r#"
        > SETNX a 1
        :1
        > SETNX a 2
        :0
        > GET a
        "1"
        > HSET h f v
        :1
        > SETNX h 1
        :0
        > TYPE h
        +hash
        > SET b 1 PX 20
        +OK
        # eventually
        > SETNX b 2
        :1
        > GET b
        "2"
        > TTL b
        :-1
        "#,
    );
}

#[test]
fn setex_and_psetex() {
    check(
        r#"
        > SETEX a 100 hello
        +OK
        > GET a
        "hello"
        > TTL a
        :99..100
        > PSETEX a 100000 world
        +OK
        > GET a
        "world"
        > PTTL a
        :90000..100000
        > HSET h f v
        :1
        > SETEX h 100 s
        +OK
        > GET h
        "s"
        "#,
    );
}

#[test]
fn setex_and_psetex_refuse_a_bad_expiry() {
    check(
        r#"
        > SETEX a 0 v
        -ERR invalid expire time in 'setex' command
        > SETEX a -10 v
        -ERR invalid expire time in 'setex' command
        > SETEX a abc v
        -ERR value is not an integer or out of range
        > SETEX a 1.5 v
        -ERR value is not an integer or out of range
        > SETEX a 9223372036854775807 v
        -ERR invalid expire time in 'setex' command
        > SETEX a 9223372036854775808 v
        -ERR value is not an integer or out of range
        > PSETEX a 0 v
        -ERR invalid expire time in 'psetex' command
        > PSETEX a -10 v
        -ERR invalid expire time in 'psetex' command
        > PSETEX a abc v
        -ERR value is not an integer or out of range
        > PSETEX a 9223372036854775807 v
        -ERR invalid expire time in 'psetex' command
        > EXISTS a
        :0
        > SETEX a 10
        -ERR wrong number of arguments for 'setex' command
        > SETEX a 10 v x
        -ERR wrong number of arguments for 'setex' command
        > SETEX a v 10
        -ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn getset() {
    check(
        r#"
        > GETSET a 1
        (nil)
        > GETSET a 2
        "1"
        > GET a
        "2"
        > SET b 1 EX 100
        +OK
        > GETSET b 2
        "1"
        > TTL b
        :-1
        > HSET h f v
        :1
        > GETSET h 1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > HGET h f
        "v"
        "#,
    );
}
