//! BITOP.

use wire::check;

#[test]
fn bitop() {
    check(
        r#"
        // Strings of one length.
        SET a "\xf0\x0f\xaa" => +OK
        SET b "\xff\x00\x0f" => +OK
        BITOP AND d a b => :3
        GET d => "\xf0\x00\n"
        BITOP OR d a b => :3
        GET d => "\xff\x0f\xaf"
        BITOP XOR d a b => :3
        GET d => "\x0f\x0f\xa5"
        BITOP NOT d a => :3
        GET d => "\x0f\xf0U"
        BITOP and d a b => :3
        GET d => "\xf0\x00\n"
        BITOP XOR d a a => :3
        GET d => "\x00\x00\x00"
        // The shorter is continued with zeros.
        SET a "\xff\xff\xff" => +OK
        SET b "\x0f" => +OK
        BITOP AND d a b => :3
        GET d => "\x0f\x00\x00"
        BITOP OR d a b => :3
        GET d => "\xff\xff\xff"
        BITOP XOR d b a => :3
        GET d => "\xf0\xff\xff"
        SET c "\x01\x02\x03\x04\x05" => +OK
        BITOP OR d a b c nosuch => :5
        GET d => "\xff\xff\xff\x04\x05"
        BITOP AND d a b c nosuch => :5
        GET d => "\x00\x00\x00\x00\x00"
        // One source.
        SET a "\x01\x02" => +OK
        BITOP AND d a => :2
        GET d => "\x01\x02"
        BITOP OR d a => :2
        GET d => "\x01\x02"
        BITOP XOR d a => :2
        GET d => "\x01\x02"
        ! FLUSHALL
        // A source may be the target.
        SET a "\x0f" => +OK
        SET b "\xf0" => +OK
        BITOP OR a a b => :1
        GET a => "\xff"
        BITOP NOT a a => :1
        GET a => "\x00"
        ! FLUSHALL
        // Many bytes.
        +OK
            SET a "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789"
            SET b "\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20\x20"
        BITOP XOR d a b => :74
        > GET d
        "\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19ABCDEF\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19ABCDEF\x10\x11\x12\x13\x14\x15\x16\x17\x189abcdef0123456789abcdef0123456789"
        BITOP AND d a b => :74
        > GET d
        "                                         \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
        BITOP OR d a b => :74
        GET d => "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789"
        BITOP NOT d a => :74
        BITOP NOT d d => :74
        GET d => "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789"
        "#,
    );
}

#[test]
fn bitop_replaces_the_target() {
    check(
        r#"
        SET a "\x01" => +OK
        SET d old EX 100 => +OK
        BITOP OR d a => :1
        TTL d => :-1
        HSET h f v => :1
        BITOP OR h a => :1
        TYPE h => +string
        SET n 12 => +OK
        BITOP OR d n => :2
        GET d => "12"
        ! FLUSHALL
        // Nothing deletes it.
        SET d old => +OK
        BITOP AND d nosuch => :0
        EXISTS d => :0
        SET d old => +OK
        BITOP NOT d nosuch => :0
        EXISTS d => :0
        SET d old => +OK
        SET e "" => +OK
        BITOP OR d e nosuch => :0
        EXISTS d => :0
        BITOP XOR d nosuch nosuch => :0
        SET a "\xff" => +OK
        BITOP OR d nosuch a => :1
        GET d => "\xff"
        BITOP AND d nosuch a => :1
        GET d => "\x00"
        ! FLUSHALL
        // What is refused.
        SET a "\x01" => +OK
        BITOP NOT d a a => -ERR BITOP NOT must be called with a single source key.
        BITOP NOSUCH d a => -ERR syntax error
        BITOP "" d a => -ERR syntax error
        HSET h f v => :1
        BITOP AND d a h => -WRONGTYPE Operation against a key holding the wrong kind of value
        BITOP NOSUCH d h => -ERR syntax error
        BITOP NOT d h h => -ERR BITOP NOT must be called with a single source key.
        EXISTS d => :0
        "#,
    );
}

#[test]
fn operations_of_redis_8_2() {
    check(
        r#"
        # needs redis >= 8.2
        // 11110000, 10101010, 00001111 and a longer one: 10000001 11111111.
        MSET x "\xf0" y "\xaa" z "\x0f" long "\x81\xff" => +OK
        // In x and in none of the others.
        BITOP DIFF d x y z => :1
        GET d => "\x50"
        BITOP DIFF d long x => :2
        GET d => "\x01\xff"
        // In one of the others, but not in x.
        BITOP DIFF1 d x y z => :1
        GET d => "\x0f"
        BITOP DIFF1 d x long nosuch => :2
        GET d => "\x01\xff"
        // In x and in one of the others.
        BITOP ANDOR d x y z => :1
        GET d => "\xa0"
        BITOP andor d long x nosuch => :2
        GET d => "\x80\x00"
        // In exactly one.
        BITOP ONE d x y z => :1
        GET d => "\x55"
        BITOP ONE d x y z long => :2
        GET d => "\x54\xff"
        BITOP ONE d x => :1
        GET d => "\xf0"
        BITOP DIFF d nosuch nosuch => :0
        EXISTS d => :0
        BITOP DIFF d x => -ERR BITOP DIFF must be called with at least two source keys.
        BITOP diff1 d x => -ERR BITOP DIFF1 must be called with at least two source keys.
        BITOP ANDOR d x => -ERR BITOP ANDOR must be called with at least two source keys.
        RPUSH l a => :1
        BITOP ONE d x l => -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}
