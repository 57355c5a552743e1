//! SET with IFEQ and IFNE: compare and set. Redis 8.4 has both; Valkey 8.1 has IFEQ and answers the same.

use wire::check;

#[test]
fn set_ifeq_and_ifne() {
    check(
        r#"
        # needs redis >= 8.4
        SET a 1 IFEQ 0 => (nil)
        EXISTS a => :0
        SET a 1 => +OK
        SET a 2 IFEQ 0 => (nil)
        GET a => "1"
        SET a 2 IFEQ 1 => +OK
        GET a => "2"
        SET a 3 ifeq 2 => +OK
        SET e "" => +OK
        SET e x IFEQ "" => +OK
        // Numbers are compared as the bytes they are written with.
        SET n 11 => +OK
        SET n 12 IFEQ 011 => (nil)
        SET n 12 IFEQ 11 => +OK
        ! FLUSHALL
        // With GET, it returns what was there.
        SET a 3 => +OK
        SET a 4 IFEQ 3 GET => "3"
        SET a 5 IFEQ 9 GET => "4"
        GET a => "4"
        SET a 5 GET IFEQ 4 => "4"
        GET a => "5"
        SET nosuch 5 IFEQ 4 GET => (nil)
        EXISTS nosuch => :0
        ! FLUSHALL
        // With deadlines.
        SET a 5 => +OK
        SET a 6 IFEQ 5 EXAT 33177117420 => +OK
        SET a 7 IFEQ 9 EX 200 => (nil)
        EXPIRETIME a => :33177117420
        SET a 7 IFEQ 6 KEEPTTL => +OK
        EXPIRETIME a => :33177117420
        SET a 8 IFEQ 7 => +OK
        TTL a => :-1
        SET a 1 IFEQ 9 EX 0 => -ERR invalid expire time in 'set' command
        ! FLUSHALL
        // What it refuses.
        SET a 8 => +OK
        -ERR syntax error
            SET a 1 NX IFEQ 8
            SET a 1 IFEQ 8 NX
            SET a 1 XX IFEQ 8
            SET a 1 IFEQ 8 XX
            SET a 1 IFEQ
            SET a 1 IFEQ 8 IFEQ 8
        GET a => "8"
        HSET h f v => :1
        SET h 1 IFEQ v GET => -WRONGTYPE Operation against a key holding the wrong kind of value
        TYPE h => +hash
        ! FLUSHALL
        // IFNE replaces any other value, and creates.
        SET a 1 IFNE 0 => +OK
        SET a 2 IFNE 1 => (nil)
        SET a 2 IFNE 5 => +OK
        GET a => "2"
        SET a 3 IFNE 2 IFEQ 2 => -ERR syntax error
        "#,
    );
}
