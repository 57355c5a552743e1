//! INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.

use wire::check;

#[test]
fn incr_and_decr() {
    check(
        r#"
        INCR a => :1
        INCR a => :2
        GET a => "2"
        DECR a => :1
        DECR b => :-1
        DECR b => :-2
        INCRBY a 5 => :6
        INCRBY a -10 => :-4
        DECRBY a 5 => :-9
        DECRBY a -20 => :11
        INCRBY new 7 => :7
        DECRBY newer 7 => :-7
        GET a => "11"
        TYPE a => +string
        // Numbers of every width.
        SET a 127 => +OK
        INCR a => :128
        SET a 32767 => +OK
        INCR a => :32768
        SET a 2147483647 => +OK
        INCR a => :2147483648
        SET a 4294967295 => +OK
        INCR a => :4294967296
        SET a -129 => +OK
        DECR a => :-130
        GET a => "-130"
        SET a 17179869184 => +OK
        INCRBY a 17179869184 => :34359738368
        STRLEN a => :11
        // The deadline stays.
        SET a 5 EXAT 33177117420 => +OK
        INCR a => :6
        DECR a => :5
        INCRBY a 2 => :7
        DECRBY a 2 => :5
        INCRBYFLOAT a 1.5 => "6.5"
        EXPIRETIME a => :33177117420
        ! FLUSHALL
        // A sum can be read and extended as a string.
        INCRBY a 1234 => :1234
        APPEND a 5 => :5
        INCR a => :12346
        GETRANGE a 0 1 => "12"
        SETRANGE a 0 9 => :5
        INCR a => :92347
        STRLEN a => :5
        SETBIT n 1 1 => :0
        GET n => "@"
        "#,
    );
}

#[test]
fn incr_stops_at_the_ends_of_64_bits() {
    check(
        r#"
        SET a 9223372036854775807 => +OK
        INCR a => -ERR increment or decrement would overflow
        INCRBY a 1 => -ERR increment or decrement would overflow
        DECR a => :9223372036854775806
        INCRBY a 9223372036854775807 => -ERR increment or decrement would overflow
        GET a => "9223372036854775806"
        SET a -9223372036854775808 => +OK
        -ERR increment or decrement would overflow
            DECR a
            INCRBY a -1
            DECRBY a 1
        INCRBY a 9223372036854775807 => :-1
        SET a -1 => +OK
        DECRBY a -9223372036854775808 => -ERR decrement would overflow
        DECRBY a 9223372036854775807 => :-9223372036854775808
        GET a => "-9223372036854775808"
        SET a 0 => +OK
        DECRBY a 9223372036854775808 => -ERR value is not an integer or out of range
        INCRBY a 9223372036854775808 => -ERR value is not an integer or out of range
        INCRBY a -9223372036854775808 => :-9223372036854775808
        GET a => "-9223372036854775808"
        "#,
    );
}

#[test]
fn incr_refuses_what_is_no_integer() {
    check(
        r#"
        ! MSET word abc none "" before " 11" behind "11 " point 1.0 plus +1 zero 01 minus -0 hex 0x10 power 1e3 nul "1\x00" sign -
        ! MSET above 9223372036854775808 far 99999999999999999999999999
        -ERR value is not an integer or out of range
            INCR word
            DECR word
            INCRBY word 1
            INCR none
            INCR before
            INCR behind
            INCR point
            INCR plus
            INCR zero
            INCR minus
            INCR hex
            INCR power
            INCR nul
            INCR above
            INCR far
            INCR sign
        GET sign => "-"
        // The amount is looked at before the key.
        SET a 1 => +OK
        HSET h f v => :1
        -ERR value is not an integer or out of range
            INCRBY a abc
            INCRBY a ""
            INCRBY a 1.5
            INCRBY a " 1"
            INCRBY a +1
            INCRBY a 01
            DECRBY a abc
            DECRBY a 1.5
            INCRBY nosuch abc
            INCRBY h abc
        EXISTS nosuch => :0
        GET a => "1"
        "#,
    );
}

#[test]
fn incrbyfloat() {
    check(
        r#"
        INCRBYFLOAT a 1 => "1"
        INCRBYFLOAT a 0.25 => "1.25"
        GET a => "1.25"
        SET a 1.5 => +OK
        INCRBYFLOAT a 1.5 => "3"
        SET a 10.50 => +OK
        INCRBYFLOAT a 0.1 => "10.6"
        INCRBYFLOAT a -5 => "5.6"
        SET a 5.0e3 => +OK
        INCRBYFLOAT a 2.0e2 => "5200"
        SET a 3.0 => +OK
        INCRBYFLOAT a 0 => "3"
        INCRBYFLOAT a 1e0 => "4"
        SET a 1 => +OK
        INCRBYFLOAT a -1 => "0"
        GET a => "0"
        INCRBYFLOAT a -0 => "0"
        SET a 0.1 => +OK
        INCRBYFLOAT a 0.2 => "0.3"
        SET a -1.1 => +OK
        INCRBYFLOAT a 1.1 => "0"
        SET a 1 => +OK
        INCRBYFLOAT a .5 => "1.5"
        INCRBYFLOAT a 5. => "6.5"
        INCRBYFLOAT a +1 => "7.5"
        INCRBYFLOAT a 0x10 => "23.5"
        GET a => "23.5"
        ! FLUSHALL
        // No exponent is ever written.
        SET a 1 => +OK
        INCRBYFLOAT a 1e15 => "1000000000000001"
        INCRBYFLOAT a 1e18 => "1001000000000000001"
        SET a 0 => +OK
        INCRBYFLOAT a 1e17 => "100000000000000000"
        SET a 0 => +OK
        INCRBYFLOAT a 1e-5 => "0.00001"
        SET a 0 => +OK
        INCRBYFLOAT a 1e-17 => "0.00000000000000001"
        SET a 0 => +OK
        INCRBYFLOAT a 1e-18 => "0"
        ! FLUSHALL
        // It is more precise than a double.
        // Redis computes in the long double of its machine; digits beyond the 17th differ between machines.
        SET a 17179869184 => +OK
        INCRBYFLOAT a 1.5 => "17179869185.5"
        SET a 0 => +OK
        INCRBYFLOAT a 3.141592653589793 => "3.141592653589793"
        SET a 100000000000 => +OK
        INCRBYFLOAT a 0.000001 => ~"100000000000.00000*"
        SET a 0 => +OK
        INCRBYFLOAT a 123456789.123456789 => ~"123456789.12345678*"
        SET a 0 => +OK
        INCRBYFLOAT a 1e40 => "9999999999999999999783686092270256259072" | "10000000000000000000000000000000000000000"
        SET a 9007199254740993 => +OK
        INCRBYFLOAT a 0 => "9007199254740993"
        SET a 9223372036854775807 => +OK
        INCRBYFLOAT a 1 => "9223372036854775808"
        SET a 1.1 => +OK
        INCRBYFLOAT a 2.2 => "3.3"
        "#,
    );
}

#[test]
fn incrbyfloat_refuses_what_is_no_number() {
    check(
        r#"
        ! MSET word abc none "" before " 11" behind "11 " nul "1\x00" nan nan inf inf a 1
        -ERR value is not a valid float
            INCRBYFLOAT word 1
            INCRBYFLOAT none 1
            INCRBYFLOAT before 1
            INCRBYFLOAT behind 1
            INCRBYFLOAT nul 1
            INCRBYFLOAT nan 1
            INCRBYFLOAT a abc
            INCRBYFLOAT a ""
            INCRBYFLOAT a " 1"
            INCRBYFLOAT a "1 "
            INCRBYFLOAT a 1e
            INCRBYFLOAT a nan
            INCRBYFLOAT nosuch abc
        -ERR increment would produce NaN or Infinity
            INCRBYFLOAT inf 1
            INCRBYFLOAT a +inf
            INCRBYFLOAT a -inf
        GET a => "1"
        EXISTS nosuch => :0
        // Unlike INCRBY, it looks at the type before the amount.
        HSET h f v => :1
        INCRBYFLOAT h abc => -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}
