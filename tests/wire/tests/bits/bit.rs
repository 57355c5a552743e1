//! GETBIT, SETBIT, BITCOUNT, BITPOS.

use wire::check;

#[test]
fn setbit_and_getbit() {
    check(
        r#"
        SETBIT a 1 1 => :0
        GET a => "@"
        GETBIT a 0 => :0
        GETBIT a 1 => :1
        GETBIT a 2 => :0
        GETBIT a 1000 => :0
        SETBIT a 1 0 => :1
        SETBIT a 1 0 => :0
        GET a => "\x00"
        SETBIT a 7 1 => :0
        SETBIT a 15 1 => :0
        GET a => "\x01\x01"
        SETBIT b 7 0 => :0
        GET b => "\x00"
        GETBIT nosuch 0 => :0
        SET n 1234 => +OK
        SETBIT n 3 0 => :1
        GET n => "!234"
        GETBIT n 2 => :1
        SETBIT n 40 1 => :0
        STRLEN n => :6
        SET e a EXAT 33177117420 => +OK
        SETBIT e 0 1 => :0
        EXPIRETIME e => :33177117420
        ! FLUSHALL
        // A string grows with zeros.
        SETBIT a 100 1 => :0
        STRLEN a => :13
        GET a => "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\b"
        BITCOUNT a => :1
        SETBIT a 200 0 => :0
        STRLEN a => :26
        ! FLUSHALL
        // What both refuse, whatever the key has.
        -ERR bit offset is not an integer or out of range
            SETBIT a -1 0
            SETBIT a abc 0
            SETBIT a 4294967296 1
            SETBIT a 9223372036854775807 1
        -ERR bit is not an integer or out of range
            SETBIT a 0 2
            SETBIT a 0 -1
            SETBIT a 0 20
            SETBIT a 0 x
            SETBIT a 0 ""
        EXISTS a => :0
        -ERR bit offset is not an integer or out of range
            GETBIT a -1
            GETBIT a x
            GETBIT a 4294967296
        GETBIT a 4294967295 => :0
        HSET h f v => :1
        SETBIT h -1 1 => -ERR bit offset is not an integer or out of range
        SETBIT h 0 2 => -ERR bit is not an integer or out of range
        GETBIT h -1 => -ERR bit offset is not an integer or out of range
        "#,
    );
}

#[test]
fn bitcount() {
    check(
        r#"
        SET a foobar => +OK
        BITCOUNT a => :26
        BITCOUNT a 0 0 => :4
        BITCOUNT a 1 1 => :6
        BITCOUNT a 0 -1 => :26
        BITCOUNT a -2 -1 => :7
        BITCOUNT a -2 -100 => :0
        BITCOUNT a -2 2 => :0
        BITCOUNT a 1 -2 => :18
        BITCOUNT a 3 1 => :0
        BITCOUNT a 0 1000 => :26
        BITCOUNT a 10 20 => :0
        BITCOUNT a -1000 0 => :4
        BITCOUNT a 9223372036854775807 9223372036854775807 => :0
        BITCOUNT a -9223372036854775808 9223372036854775807 => :26
        BITCOUNT nosuch => :0
        BITCOUNT nosuch 0 100 => :0
        SET e "" => +OK
        BITCOUNT e => :0
        BITCOUNT e 0 -1 => :0
        SET z "\x00\x00\x00" => +OK
        BITCOUNT z => :0
        SET f "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" => +OK
        BITCOUNT f => :152
        BITCOUNT f 1 17 => :136
        SET n 1234 => +OK
        BITCOUNT n => :13
        // By byte and by bit.
        SET a foobar => +OK
        BITCOUNT a 1 1 BYTE => :6
        BITCOUNT a 5 30 BIT => :17
        BITCOUNT a 0 0 BIT => :0
        BITCOUNT a 1 1 bit => :1
        BITCOUNT a 0 -1 BIT => :26
        BITCOUNT a 0 -1 BYTE => :26
        BITCOUNT a -1 -1 BIT => :0
        BITCOUNT a -8 -1 BIT => :4
        BITCOUNT a 40 1000 BIT => :4
        BITCOUNT a 48 1000 BIT => :0
        BITCOUNT a 7 3 BIT => :0
        BITCOUNT a -100 -50 BIT => :0
        BITCOUNT nosuch 0 10 BIT => :0
        // What it refuses.
        SET a foobar => +OK
        BITCOUNT a 0 1 hello => -ERR syntax error
        BITCOUNT a 0 1 BIT more => -ERR syntax error
        -ERR value is not an integer or out of range
            BITCOUNT a x 1
            BITCOUNT a 0 y
            BITCOUNT a 0 1.5
        // Arguments are read before the key.
        # needs redis >= 8.0
        BITCOUNT nosuch 0 => -ERR syntax error
        BITCOUNT nosuch x y => -ERR value is not an integer or out of range
        BITCOUNT nosuch 0 1 hello => -ERR syntax error
        HSET h f v => :1
        BITCOUNT h x y => -ERR value is not an integer or out of range
        BITCOUNT h 0 1 hello => -ERR syntax error
        BITCOUNT h 0 => -ERR syntax error
        "#,
    );
}

#[test]
fn bitpos() {
    check(
        r#"
        SET a "\xff\xf0\x00" => +OK
        BITPOS a 0 => :12
        BITPOS a 1 => :0
        SET b "\x00\x0f\x00" => +OK
        BITPOS b 1 => :12
        BITPOS b 0 => :0
        BITPOS b 1 1 => :12
        BITPOS b 1 2 => :-1
        BITPOS b 1 0 0 => :-1
        BITPOS b 0 1 1 => :8
        BITPOS b 1 -2 => :12
        BITPOS b 1 -2 -1 => :12
        BITPOS b 1 -1 -2 => :-1
        BITPOS b 1 100 => :-1
        BITPOS b 0 100 => :-1
        BITPOS b 1 0 100 => :12
        BITPOS b 1 -100 100 => :12
        SET n 1234 => +OK
        BITPOS n 1 => :2
        BITPOS n 0 => :0
        ! FLUSHALL
        // Of nothing, and of an empty string.
        BITPOS nosuch 0 => :0
        BITPOS nosuch 1 => :-1
        BITPOS nosuch 0 5 => :0
        BITPOS nosuch 1 5 10 => :-1
        SET e "" => +OK
        BITPOS e 0 => :-1
        BITPOS e 1 => :-1
        BITPOS e 0 0 -1 => :-1
        SET z "\x00\x00" => +OK
        BITPOS z 1 => :-1
        BITPOS z 1 0 -1 => :-1
        ! FLUSHALL
        // It looks for a zero beyond the end only if no end is given.
        SET a "\xff\xff\xff" => +OK
        BITPOS a 0 => :24
        BITPOS a 0 0 => :24
        BITPOS a 0 2 => :24
        BITPOS a 0 0 -1 => :-1
        BITPOS a 0 0 2 => :-1
        BITPOS a 0 0 100 => :-1
        BITPOS a 0 3 => :-1
        BITPOS a 0 5 => :-1
        // By bit.
        SET a "\x00\xff\xf0" => +OK
        BITPOS a 1 0 -1 BIT => :8
        BITPOS a 0 0 -1 BIT => :0
        BITPOS a 0 8 -1 BIT => :20
        BITPOS a 0 8 19 BIT => :-1
        BITPOS a 1 9 9 BIT => :9
        BITPOS a 1 0 7 BIT => :-1
        BITPOS a 1 20 -1 BIT => :-1
        BITPOS a 1 -16 -1 BIT => :8
        BITPOS a 0 -4 -1 bit => :20
        BITPOS a 1 7 8 BIT => :8
        BITPOS a 1 0 -1 BYTE => :8
        BITPOS a 0 1 1 byte => :-1
        BITPOS a 1 100 200 BIT => :-1
        BITPOS a 1 3 2 BIT => :-1
        // What it refuses.
        SET a abc => +OK
        BITPOS a 2 => -ERR The bit argument must be 1 or 0.
        BITPOS a -1 => -ERR The bit argument must be 1 or 0.
        -ERR value is not an integer or out of range
            BITPOS a x
            BITPOS a ""
            BITPOS a 0 x
            BITPOS a 0 0 y
        BITPOS a 0 0 1 hello => -ERR syntax error
        BITPOS a 0 0 BIT => -ERR value is not an integer or out of range
        BITPOS a 0 0 1 BIT more => -ERR syntax error
        BITPOS nosuch 2 => -ERR The bit argument must be 1 or 0.
        HSET h f v => :1
        BITPOS h 2 => -ERR The bit argument must be 1 or 0.
        "#,
    );
}
