//! SET and its options, SETNX, SETEX, PSETEX, GETSET.

use wire::check;

#[test]
fn set_and_get() {
    check(
        r#"
        SET a hello => +OK
        GET a => "hello"
        SET a "" => +OK
        GET a => ""
        STRLEN a => :0
        EXISTS a => :1
        SET "" "empty key" => +OK
        GET "" => "empty key"
        SET "a b" c => +OK
        GET "a b" => "c"
        > set a lower
        +OK
        > GeT a
        "lower"
        GET nosuch => (nil)
        "#,
    );
}

#[test]
fn set_may_only_create_or_only_replace_and_return_the_old_value() {
    check(
        r#"
        SET a 1 NX => +OK
        SET a 2 NX => (nil)
        GET a => "1"
        SET a 2 nx => (nil)
        GET a => "1"
        ! FLUSHALL
        SET a 1 XX => (nil)
        EXISTS a => :0
        SET a 1 => +OK
        SET a 2 XX => +OK
        GET a => "2"
        ! FLUSHALL
        SET a 1 GET => (nil)
        SET a 2 GET => "1"
        GET a => "2"
        SET a 3 get => "2"
        ! FLUSHALL
        SET a 1 XX GET => (nil)
        EXISTS a => :0
        SET a 1 NX GET => (nil)
        GET a => "1"
        SET a 2 NX GET => "1"
        GET a => "1"
        SET a 3 XX GET => "1"
        GET a => "3"
        SET a 4 GET XX => "3"
        "#,
    );
}

#[test]
fn set_with_a_deadline() {
    check(
        r#"
        SET a 1 EX 100 => +OK
        TTL a => :99..100
        SET a 1 PX 100000 => +OK
        PTTL a => :90000..100000
        SET a 1 ex 100 => +OK
        TTL a => :99..100
        SET a 1 => +OK
        TTL a => :-1
        SET a 1 EXAT 33177117420 => +OK
        EXPIRETIME a => :33177117420
        SET a 1 PXAT 33177117420123 => +OK
        PEXPIRETIME a => :33177117420123
        EXPIRETIME a => :33177117420
        SET a 1 exat 33177117421 => +OK
        PEXPIRETIME a => :33177117421000
        // An instant in the past deletes.
        SET a 1 => +OK
        SET a 2 PXAT 1 => +OK
        EXISTS a => :0
        SET a 2 EXAT 1 => +OK
        EXISTS a => :0
        SET a 1 => +OK
        SET a 2 EXAT 1 GET => "1"
        EXISTS a => :0
        ! FLUSHALL
        // KEEPTTL keeps the deadline.
        SET a 1 EX 100 => +OK
        SET a 2 KEEPTTL => +OK
        TTL a => :99..100
        GET a => "2"
        SET b 1 KEEPTTL => +OK
        TTL b => :-1
        SET a 3 => +OK
        TTL a => :-1
        SET a 4 EXAT 33177117420 => +OK
        SET a 5 XX KEEPTTL GET => "4"
        EXPIRETIME a => :33177117420
        ! FLUSHALL
        // Options in any order.
        SET a 1 EX 100 NX => +OK
        SET a 2 GET EX 100 XX => "1"
        SET a 3 XX PX 100000 GET => "2"
        GET a => "3"
        TTL a => :99..100
        ! FLUSHALL
        // What does not apply keeps the deadline.
        SET a 1 EXAT 33177117420 => +OK
        SET a 2 NX => (nil)
        EXPIRETIME a => :33177117420
        SET a 2 NX EX 10 => (nil)
        EXPIRETIME a => :33177117420
        GET a => "1"
        ! FLUSHALL
        // The last of two equal options counts.
        SET a 1 NX NX => +OK
        SET a 2 XX XX => +OK
        SET a 3 GET GET => "2"
        SET a 4 KEEPTTL KEEPTTL => +OK
        SET a 5 EXAT 33177117420 EXAT 33177117421 => +OK
        EXPIRETIME a => :33177117421
        SET a 6 PX 100000 PX 200000 => +OK
        PTTL a => :190000..200000
        GET a => "6"
        ! FLUSHALL
        // What has expired is absent.
        SET a 1 PX 20 => +OK
        # eventually
        GET a => (nil)
        EXISTS a => :0
        SET a 2 NX => +OK
        GET a => "2"
        "#,
    );
}

#[test]
fn set_refuses_bad_options() {
    check(
        r#"
        // Options that exclude each other.
        -ERR syntax error
            SET a 1 NX XX
            SET a 1 XX NX
            SET a 1 EX 10 PX 10000
            SET a 1 EX 10 KEEPTTL
            SET a 1 KEEPTTL EX 10
            SET a 1 PXAT 33177117420123 KEEPTTL
            SET a 1 EXAT 33177117420 EX 10
            SET a 1 EX 10 EXAT 33177117420
            SET a 1 PXAT 33177117420123 EXAT 33177117420
            SET a 1 PERSIST
            SET a 1 NX GET XX
        EXISTS a => :0
        // Unknown ones, and such without a value.
        -ERR syntax error
            SET a 1 NOSUCH
            SET a 1 2
            SET a 1 EX
            SET a 1 PX
            SET a 1 EXAT
            SET a 1 PXAT
            SET a 1 NX EX
            SET a 1 ""
        EXISTS a => :0
        // Deadlines that are none.
        -ERR invalid expire time in 'set' command
            SET a 1 EX 0
            SET a 1 EX -1
            SET a 1 PX 0
            SET a 1 PX -1
            SET a 1 EXAT 0
            SET a 1 EXAT -1
            SET a 1 PXAT 0
            SET a 1 PXAT -5
        -ERR value is not an integer or out of range
            SET a 1 EX abc
            SET a 1 PX 1.5
            SET a 1 EX ""
            SET a 1 EX 9223372036854775808
        -ERR invalid expire time in 'set' command
            SET a 1 EX 9223372036854775807
            SET a 1 EX 9223372036854775
            SET a 1 PX 9223372036854775807
            SET a 1 EXAT 9223372036854775807
        SET a 1 PXAT 9223372036854775807 => +OK
        PEXPIRETIME a => :9223372036854775807
        -ERR value is not an integer or out of range
            SET a 1 EX " 10"
            SET a 1 EX +10
            SET a 1 EX 010
            SET a 1 EX 0x10
        SET b 1 EX 10 NOSUCH => -ERR syntax error
        EXISTS b => :0
        ! FLUSHALL
        // The deadline is looked at before the condition and the type.
        SET a 1 => +OK
        SET a 2 NX EX 0 => -ERR invalid expire time in 'set' command
        SET a 2 NX EX abc => -ERR value is not an integer or out of range
        SET b 2 XX PX -1 => -ERR invalid expire time in 'set' command
        HSET h f v => :1
        SET h 1 GET EX 0 => -ERR invalid expire time in 'set' command
        "#,
    );
}

#[test]
fn older_forms_of_set() {
    check(
        r#"
        SETNX a 1 => :1
        SETNX a 2 => :0
        GET a => "1"
        SET b 1 PX 20 => +OK
        # eventually
        SETNX b 2 => :1
        GET b => "2"
        TTL b => :-1
        ! FLUSHALL
        SETEX a 100 hello => +OK
        GET a => "hello"
        TTL a => :99..100
        PSETEX a 100000 world => +OK
        GET a => "world"
        PTTL a => :90000..100000
        SETEX a 0 v => -ERR invalid expire time in 'setex' command
        SETEX a -10 v => -ERR invalid expire time in 'setex' command
        SETEX a abc v => -ERR value is not an integer or out of range
        SETEX a 1.5 v => -ERR value is not an integer or out of range
        SETEX a 9223372036854775807 v => -ERR invalid expire time in 'setex' command
        SETEX a 9223372036854775808 v => -ERR value is not an integer or out of range
        PSETEX a 0 v => -ERR invalid expire time in 'psetex' command
        PSETEX a -10 v => -ERR invalid expire time in 'psetex' command
        PSETEX a abc v => -ERR value is not an integer or out of range
        PSETEX a 9223372036854775807 v => -ERR invalid expire time in 'psetex' command
        PTTL a => :90000..100000
        SETEX a v 10 => -ERR value is not an integer or out of range
        ! FLUSHALL
        GETSET a 1 => (nil)
        GETSET a 2 => "1"
        GET a => "2"
        SET b 1 EX 100 => +OK
        GETSET b 2 => "1"
        TTL b => :-1
        "#,
    );
}
