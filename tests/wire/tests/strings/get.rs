//! GETEX, GETDEL, MGET, MSET, MSETNX.

use wire::check;

#[test]
fn getex() {
    check(
        r#"
        // Without options it is GET.
        SET a 1 EXAT 33177117420 => +OK
        GETEX a => "1"
        EXPIRETIME a => :33177117420
        GETEX nosuch => (nil)
        SET b 1 => +OK
        GETEX b => "1"
        TTL b => :-1
        ! FLUSHALL
        SET a 1 => +OK
        GETEX a EX 100 => "1"
        TTL a => :99..100
        GETEX a PX 200000 => "1"
        PTTL a => :190000..200000
        GETEX a EXAT 33177117420 => "1"
        EXPIRETIME a => :33177117420
        GETEX a PXAT 33177117420123 => "1"
        PEXPIRETIME a => :33177117420123
        GETEX a exat 33177117421 => "1"
        EXPIRETIME a => :33177117421
        GETEX nosuch EX 100 => (nil)
        EXISTS nosuch => :0
        SET a 1 EX 100 => +OK
        GETEX a PERSIST => "1"
        TTL a => :-1
        GETEX a persist => "1"
        GETEX nosuch PERSIST => (nil)
        // An instant in the past deletes.
        SET a 1 => +OK
        GETEX a EXAT 1 => "1"
        EXISTS a => :0
        SET a 2 => +OK
        GETEX a PXAT 1 => "2"
        EXISTS a => :0
        ! FLUSHALL
        // What it refuses.
        SET a 1 => +OK
        -ERR syntax error
            GETEX a EX 10 PX 10
            GETEX a EX 10 PERSIST
            GETEX a PERSIST EX 10
        GETEX a PERSIST PERSIST => "1"
        -ERR syntax error
            GETEX a EX
            GETEX a NOSUCH
            GETEX a KEEPTTL
            GETEX a NX
            GETEX a GET
        -ERR invalid expire time in 'getex' command
            GETEX a EX 0
            GETEX a EX -1
            GETEX a PX 0
            GETEX a EXAT 0
            GETEX a PXAT -1
        GETEX a EX abc => -ERR value is not an integer or out of range
        GETEX a EX 9223372036854775807 => -ERR invalid expire time in 'getex' command
        GETEX a PX 9223372036854775807 => -ERR invalid expire time in 'getex' command
        TTL a => :-1
        GETEX nosuch EX 0 => (nil)
        GETEX nosuch EX abc => (nil)
        // The type is looked at before the value of the deadline.
        HSET h f v => :1
        GETEX h EX 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
        TTL h => :-1
        "#,
    );
}

#[test]
fn getdel_and_nulls_in_resp3() {
    check(
        r#"
        SET a 1 => +OK
        GETDEL a => "1"
        EXISTS a => :0
        GETDEL a => (nil)
        ! FLUSHALL
        HELLO 3 => {"server" => *, ...}
        SET a 1 => +OK
        MGET a nosuch => ["1", _]
        GET nosuch => _
        GETDEL nosuch => _
        SET nosuch 1 XX => _
        SET nosuch 1 XX GET => _
        "#,
    );
}

#[test]
fn many_keys_at_once() {
    check(
        r#"
        SET a 1 => +OK
        SET b 2 => +OK
        HSET h f v => :1
        MGET a b nosuch h a => ["1", "2", (nil), (nil), "1"]
        MGET a => ["1"]
        MGET nosuch => [(nil)]
        ! FLUSHALL
        MSET a 1 b 2 => +OK
        MGET a b => ["1", "2"]
        MSET a x a y => +OK
        GET a => "y"
        SET c 1 EX 100 => +OK
        HSET h f v => :1
        MSET c 2 h 3 => +OK
        TTL c => :-1
        GET h => "3"
        MSET a 1 b => -ERR wrong number of arguments for 'mset' command
        MSET a 1 b 2 c => -ERR wrong number of arguments for 'mset' command
        GET a => "y"
        ! FLUSHALL
        MSETNX a 1 b 2 => :1
        MSETNX b 3 c 4 => :0
        MGET a b c => ["1", "2", (nil)]
        MSETNX c 1 c 2 => :1
        GET c => "2"
        HSET h f v => :1
        MSETNX d 1 h 2 => :0
        EXISTS d => :0
        MSETNX a 1 b => -ERR wrong number of arguments for 'msetnx' command
        MSETNX e 1 f => -ERR wrong number of arguments for 'msetnx' command
        EXISTS e => :0
        ! FLUSHALL
        // A key that has expired is absent.
        SET a 1 PX 20 => +OK
        # eventually
        MSETNX a 2 b 3 => :1
        MGET a b => ["2", "3"]
        TTL a => :-1
        "#,
    );
}
