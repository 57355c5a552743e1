//! INCREX, of Redis 8.8.

use wire::check;

#[test]
fn increx_adds_and_says_what_it_added() {
    check(
        r#"
        # needs redis >= 8.8
        INCREX a => [:1, :1]
        INCREX a BYINT 5 => [:6, :5]
        INCREX a byint -10 => [:-4, :-10]
        INCREX a BYINT 0 => [:-4, :0]
        OBJECT ENCODING a => "int"
        INCREX a BYFLOAT 0.25 => ["-3.75", "0.25"]
        INCREX a BYFLOAT 1 => ["-2.75", "1"]
        GET a => "-2.75"
        INCREX new BYFLOAT 3.14 => ["3.14", "3.14"]
        HELLO 3 => *
        INCREX a BYFLOAT 0.75 => [,-2, ,0.75]
        INCREX a => [:-1, :1]
        "#,
    );
}

#[test]
fn what_is_out_of_bounds_is_not_added() {
    check(
        r#"
        # needs redis >= 8.8
        SET a 10 EX 100 => +OK
        INCREX a BYINT 10 UBOUND 15 PERSIST => [:10, :0]
        INCREX a BYINT -10 LBOUND 5 EX 500 => [:10, :0]
        TTL a => :99..100
        INCREX a BYINT 5 LBOUND 0 UBOUND 15 => [:15, :5]
        INCREX a UBOUND 15 => [:15, :0]
        // A value that is out of bounds may come nearer.
        SET a 50 => +OK
        INCREX a BYINT 5 UBOUND 30 => [:50, :0]
        INCREX a BYINT -5 UBOUND 30 => [:50, :0]
        INCREX a BYINT -25 UBOUND 30 => [:25, :-25]
        // No key is made.
        INCREX new BYINT 5 LBOUND 10 => [:0, :0]
        INCREX new BYFLOAT -0.5 UBOUND -1.5 => ["0", "0"]
        INCREX new BYINT 15 UBOUND 10 EX 10 => [:0, :0]
        EXISTS new => :0
        SET f 6.5 => +OK
        INCREX f BYFLOAT 10 LBOUND 0 UBOUND 10 => ["6.5", "0"]
        INCREX f BYFLOAT 3.5 UBOUND 10.0 => ["10", "3.5"]
        // The bounds of the types.
        SET a 9223372036854775800 => +OK
        INCREX a BYINT 9223372036854775800 => [:9223372036854775800, :0]
        SET a -9223372036854775800 => +OK
        INCREX a BYINT -9 => [:-9223372036854775800, :0]
        INCREX a BYINT -8 => [:-9223372036854775808, :-8]
        SET f 1e4932 => +OK
        INCREX f BYFLOAT 1e4932 => [*, "0"]
        "#,
    );
}

#[test]
fn a_sum_saturates_at_the_bounds() {
    check(
        r#"
        # needs redis >= 8.8
        SET a 50 => +OK
        INCREX a BYINT 100 UBOUND 80 SATURATE => [:80, :30]
        INCREX a SATURATE LBOUND 0 BYINT -100 UBOUND 80 => [:0, :-80]
        INCREX a BYINT 3 UBOUND 80 SATURATE => [:3, :3]
        SET a 50 => +OK
        INCREX a BYINT 5 UBOUND 30 SATURATE => [:30, :-20]
        SET a -50 => +OK
        INCREX a BYINT -5 LBOUND -30 SATURATE => [:-30, :20]
        INCREX new LBOUND 5 SATURATE EX 100 => [:5, :5]
        TTL new => :99..100
        SET f 10 => +OK
        INCREX f BYFLOAT 100 UBOUND 42.5 SATURATE => ["42.5", "32.5"]
        INCREX f BYFLOAT -100 LBOUND -5.5 SATURATE => ["-5.5", "-48"]
        SET a 9223372036854775800 => +OK
        INCREX a BYINT 9223372036854775800 SATURATE => [:9223372036854775807, :7]
        INCREX a BYINT 1 SATURATE UBOUND -9223372036854775808 => -ERR applied increment would overflow
        GET a => "9223372036854775807"
        SET a -9223372036854775800 => +OK
        INCREX a BYINT -9223372036854775800 LBOUND -9223372036854775808 SATURATE => [:-9223372036854775808, :-8]
        "#,
    );
}

#[test]
fn deadlines() {
    check(
        r#"
        # needs redis >= 8.8
        INCREX a EX 100 BYINT 5 => [:5, :5]
        TTL a => :99..100
        INCREX a => [:6, :1]
        TTL a => :99..100
        // ENX: only if there is none.
        INCREX a PX 500000 ENX => [:7, :1]
        TTL a => :99..100
        INCREX a EXAT 1 ENX => [:8, :1]
        INCREX a PERSIST => [:9, :1]
        TTL a => :-1
        INCREX a ENX EXAT 33177117420 => [:10, :1]
        EXPIRETIME a => :33177117420
        INCREX a PXAT 33177117420123 => [:11, :1]
        PEXPIRETIME a => :33177117420123
        INCREX a PX 200000 => [:12, :1]
        PTTL a => :190000..200000
        // A deadline that has passed deletes the key, and makes none.
        INCREX a PXAT 1 => [:13, :1]
        INCREX new EXAT 1 => [:1, :1]
        EXISTS a new => :0
        SET soon 5 PX 1 => +OK
        # sleep 5ms
        INCREX soon => [:1, :1]
        TTL soon => :-1
        "#,
    );
}

#[test]
fn increx_refuses() {
    check(
        r#"
        # needs redis >= 8.8
        SET a 1 => +OK
        -ERR syntax error
            INCREX a NOSUCH
            INCREX a BYINT
            INCREX a BYINT 1 BYFLOAT 1
            INCREX a BYINT 1 BYINT 1
            INCREX a LBOUND 0 LBOUND 0
            INCREX a UBOUND 9 UBOUND 9
            INCREX a SATURATE SATURATE
            INCREX a EX 10 EX 10
            INCREX a EX 10 PX 10
            INCREX a EX 10 PERSIST
            INCREX a PERSIST PXAT 10
            INCREX a PERSIST PERSIST
            INCREX a PERSIST ENX
            INCREX a ENX PERSIST
            INCREX a ENX ENX EX 10
        INCREX a ENX => -ERR ENX flag requires an expiration
        INCREX a BYINT 1.5 => -ERR Increment is not an integer or out of range
        INCREX a BYFLOAT x => -ERR Increment is not a valid float
        INCREX a UBOUND 1.5 => -ERR UBOUND is not an integer or out of range
        INCREX a LBOUND x => -ERR LBOUND is not an integer or out of range
        INCREX a LBOUND x BYFLOAT 1 => -ERR LBOUND is not a valid float
        INCREX a LBOUND 10 UBOUND 5 => -ERR LBOUND can't be greater than UBOUND
        INCREX a BYFLOAT 1 LBOUND 10.5 UBOUND 10.25 SATURATE => -ERR LBOUND can't be greater than UBOUND
        INCREX a BYFLOAT +inf => -ERR BYFLOAT increment cannot be Infinity
        INCREX a BYFLOAT -inf => -ERR BYFLOAT increment cannot be Infinity
        INCREX a EX 0 => -ERR invalid expire time in 'increx' command
        INCREX a PX -1 => -ERR invalid expire time in 'increx' command
        INCREX a EX x => -ERR value is not an integer or out of range
        GET a => "1"
        SET text hello => +OK
        INCREX text => -ERR value is not an integer or out of range
        INCREX text BYFLOAT 1 => -ERR value is not a valid float
        SET inf inf => +OK
        INCREX inf BYFLOAT 1 => -ERR value cannot be Infinity
        RPUSH l a => :1
        INCREX l => -WRONGTYPE Operation against a key holding the wrong kind of value
        INCREX l BYFLOAT 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn in_transactions_and_scripts() {
    check(
        r#"
        # needs redis >= 8.8
        MULTI => +OK
        INCREX a UBOUND 2 EX 100 ENX => +QUEUED
        INCREX a UBOUND 2 EX 100 ENX => +QUEUED
        INCREX a UBOUND 2 EX 100 ENX => +QUEUED
        EXEC => [[:1, :1], [:2, :1], [:2, :0]]
        EVAL "return redis.call('INCREX', KEYS[1], 'BYINT', 3)" 1 a => [:5, :3]
        TTL a => :99..100
        WATCH a => +OK
        2> INCREX a UBOUND 5 => [:5, :0]
        MULTI => +OK
        EXEC => []
        "#,
    );
}
