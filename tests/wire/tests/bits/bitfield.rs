//! BITFIELD, BITFIELD_RO.

use wire::{Connection, Session, check};

#[test]
fn bitfield_set_and_get() {
    check(
        r#"
        BITFIELD a SET u8 0 255 => [:0]
        BITFIELD a GET u8 0 => [:255]
        BITFIELD a GET i8 0 => [:-1]
        BITFIELD a SET i8 0 -100 => [:-1]
        BITFIELD a GET u8 0 => [:156]
        BITFIELD a GET u4 0 GET u4 4 GET i4 0 => [:9, :12, :-7]
        BITFIELD a SET u8 0 1 SET u8 8 2 GET u16 0 => [:156, :0, :258]
        GET a => "\x01\x02"
        BITFIELD a set u8 0 7 get u8 0 => [:1, :7]
        BITFIELD a => []
        BITFIELD nosuch => []
        BITFIELD nosuch GET u8 0 => [:0]
        BITFIELD nosuch GET u8 100 GET i64 0 => [:0, :0]
        EXISTS nosuch => :0
        BITFIELD new SET u8 0 0 => [:0]
        GET new => "\x00"
        ! FLUSHALL
        // With a hash sign, the offset counts in types.
        BITFIELD a SET u8 #0 65 => [:0]
        BITFIELD a SET u8 #1 66 => [:0]
        BITFIELD a SET u8 #2 67 => [:0]
        GET a => "ABC"
        BITFIELD a GET u8 #1 GET u16 #0 GET u4 #1 => [:66, :16706, :1]
        BITFIELD a SET u5 #3 31 => [:4]
        GET a => "AC\xf3"
        ! FLUSHALL
        // Over the borders of bytes.
        BITFIELD a SET u1 3 1 SET u3 7 5 SET i17 20 -12345 GET u1 3 GET u3 7 GET i17 20 => [:0, :0, :0, :1, :5, :-12345]
        GET a => "\x11@\x0e~8"
        BITFIELD a SET u63 5 9223372036854775807 => [:1441406845049634816]
        GET a => "\x17\xff\xff\xff\xff\xff\xff\xff\xf0"
        > BITFIELD a GET u63 5 GET i63 5 GET i64 4 GET u1 4 GET u1 68
        [:9223372036854775807, :-1, :9223372036854775807, :0, :0]
        SET n 12345 => +OK
        BITFIELD n GET u8 0 GET u16 8 => [:49, :12851]
        BITFIELD n SET u8 0 50 => [:49]
        GET n => "22345"
        ! FLUSHALL
        // Beyond the end are zeros.
        SET a "\xff" => +OK
        BITFIELD a GET u16 0 GET i16 0 GET u8 8 GET u16 4 GET u8 4294967280 => [:65280, :-256, :0, :61440, :0]
        STRLEN a => :1
        BITFIELD a SET u8 15 0 => [:0]
        STRLEN a => :3
        ! FLUSHALL
        // The deadline stays.
        SET a abc EXAT 33177117420 => +OK
        BITFIELD a SET u8 0 65 => [:97]
        EXPIRETIME a => :33177117420
        GET a => "Abc"
        ! FLUSHALL
        HELLO 3 => {"server" => *, ...}
        BITFIELD a SET u8 0 255 OVERFLOW FAIL INCRBY u8 0 1 => [:0, _]
        "#,
    );
}

#[test]
fn bitfield_incrby_and_overflow() {
    check(
        r#"
        BITFIELD a SET u8 #0 10 => [:0]
        BITFIELD a INCRBY u8 #0 100 INCRBY u8 #0 100 => [:110, :210]
        BITFIELD a GET u8 0 => [:210]
        BITFIELD a INCRBY u8 #0 -300 => [:166]
        BITFIELD b INCRBY i5 100 1 GET u4 0 => [:1, :0]
        STRLEN b => :14
        BITFIELD b INCRBY i5 100 -3 => [:-2]
        BITFIELD c INCRBY u63 0 -1 => [:9223372036854775807]
        BITFIELD c INCRBY i64 0 9223372036854775807 => [:9223372036854775805]
        ! FLUSHALL
        // WRAP is the default.
        BITFIELD a SET u2 0 3 => [:0]
        BITFIELD a INCRBY u2 0 1 => [:0]
        BITFIELD a OVERFLOW WRAP INCRBY u2 0 -1 => [:3]
        BITFIELD a SET i8 0 127 => [:-64]
        BITFIELD a INCRBY i8 0 1 => [:-128]
        BITFIELD a INCRBY i8 0 -1 => [:127]
        BITFIELD a SET u8 0 257 => [:127]
        BITFIELD a GET u8 0 => [:1]
        BITFIELD a SET i8 0 200 => [:1]
        BITFIELD a GET i8 0 => [:-56]
        BITFIELD a SET i64 0 9223372036854775807 => [:-4035225266123964416]
        BITFIELD a INCRBY i64 0 1 => [:-9223372036854775808]
        BITFIELD a INCRBY i64 0 -1 => [:9223372036854775807]
        ! FLUSHALL
        // SAT.
        BITFIELD a OVERFLOW SAT SET u8 0 300 => [:0]
        BITFIELD a GET u8 0 => [:255]
        BITFIELD a OVERFLOW SAT INCRBY u8 0 10 => [:255]
        BITFIELD a OVERFLOW SAT INCRBY u8 0 -1000 => [:0]
        BITFIELD a OVERFLOW SAT SET i8 0 -1000 => [:0]
        BITFIELD a GET i8 0 => [:-128]
        BITFIELD a OVERFLOW SAT INCRBY i8 0 1000 => [:127]
        BITFIELD a OVERFLOW SAT INCRBY i8 0 -1000 => [:-128]
        BITFIELD b SET i64 0 9223372036854775807 => [:0]
        BITFIELD b OVERFLOW SAT INCRBY i64 0 1 => [:9223372036854775807]
        BITFIELD b SET i64 0 -9223372036854775808 => [:9223372036854775807]
        BITFIELD b OVERFLOW SAT INCRBY i64 0 -1 => [:-9223372036854775808]
        BITFIELD b OVERFLOW SAT SET u63 0 -1 => [:4611686018427387904]
        BITFIELD b GET u63 0 => [:9223372036854775807]
        ! FLUSHALL
        // FAIL.
        BITFIELD a OVERFLOW FAIL SET u8 0 300 => [(nil)]
        BITFIELD a SET u8 0 250 => [:0]
        BITFIELD a OVERFLOW FAIL INCRBY u8 0 10 => [(nil)]
        BITFIELD a GET u8 0 => [:250]
        BITFIELD a OVERFLOW FAIL INCRBY u8 0 5 INCRBY u8 0 1 => [:255, (nil)]
        BITFIELD a OVERFLOW FAIL INCRBY i8 0 -128 GET i8 0 => [(nil), :-1]
        BITFIELD nosuch OVERFLOW FAIL INCRBY u8 0 -1 => [(nil)]
        EXISTS nosuch => :1
        BITFIELD nosuch2 OVERFLOW FAIL SET u8 0 256 => [(nil)]
        EXISTS nosuch2 => :1
        ! FLUSHALL
        // Each holds for what follows.
        BITFIELD a SET u8 0 255 SET u8 8 255 SET u8 16 255 => [:0, :0, :0]
        > BITFIELD a INCRBY u8 0 1 OVERFLOW SAT INCRBY u8 8 1 OVERFLOW FAIL INCRBY u8 16 1 OVERFLOW WRAP INCRBY u8 16 1
        [:0, :255, (nil), :0]
        BITFIELD a OVERFLOW sat OVERFLOW fail INCRBY u8 8 1 => [(nil)]
        BITFIELD a OVERFLOW SAT => []
        "#,
    );
}

#[test]
fn bitfield_refuses() {
    check(
        r#"
        // Types that are none.
        -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
            BITFIELD a GET u64 0
            BITFIELD a GET i65 0
            BITFIELD a GET u0 0
            BITFIELD a GET i0 0
            BITFIELD a GET u-1 0
            BITFIELD a GET x8 0
            BITFIELD a GET U8 0
            BITFIELD a GET I8 0
            BITFIELD a GET 8 0
            BITFIELD a GET u 0
            BITFIELD a GET "" 0
            BITFIELD a GET u8x 0
        BITFIELD a GET i64 0 => [:0]
        BITFIELD a GET u63 0 => [:0]
        ! FLUSHALL
        // Offsets that are none.
        -ERR bit offset is not an integer or out of range
            BITFIELD a GET u8 -1
            BITFIELD a GET u8 abc
            BITFIELD a GET u8 #-1
            BITFIELD a GET u8 #abc
            BITFIELD a GET u8 #
            BITFIELD a GET u8 ""
            BITFIELD a GET u8 4294967296
        BITFIELD a GET u8 4294967295 => [:0]
        -ERR bit offset is not an integer or out of range
            BITFIELD a SET u8 4294967296 1
            BITFIELD a SET u8 #536870912 1
            BITFIELD a SET u8 9223372036854775807 1
            BITFIELD a GET u8 #1152921504606846976
        EXISTS a => :0
        ! FLUSHALL
        // Subcommands that are none.
        -ERR syntax error
            BITFIELD a NOSUCH u8 0
            BITFIELD a GET u8
            BITFIELD a GET
            BITFIELD a SET u8 0
        BITFIELD a SET u8 0 abc => -ERR value is not an integer or out of range
        BITFIELD a SET u8 0 1.5 => -ERR value is not an integer or out of range
        BITFIELD a INCRBY u8 0 => -ERR syntax error
        BITFIELD a INCRBY u8 0 abc => -ERR value is not an integer or out of range
        BITFIELD a INCRBY u8 0 9223372036854775808 => -ERR value is not an integer or out of range
        BITFIELD a OVERFLOW => -ERR syntax error
        BITFIELD a OVERFLOW NOSUCH => -ERR Invalid OVERFLOW type specified
        BITFIELD a OVERFLOW NOSUCH INCRBY u8 0 1 => -ERR Invalid OVERFLOW type specified
        EXISTS a => :0
        // It does all, or nothing.
        > BITFIELD a SET u8 0 1 SET u64 0 1
        -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        EXISTS a => :0
        BITFIELD a SET u8 0 1 NOSUCH => -ERR syntax error
        EXISTS a => :0
        HSET h f v => :1
        BITFIELD h => -WRONGTYPE Operation against a key holding the wrong kind of value
        BITFIELD h NOSUCH => -ERR syntax error
        TYPE h => +hash
        "#,
    );
}

#[test]
fn bitfield_ro() {
    check(
        r#"
        SET a abc => +OK
        BITFIELD_RO a GET u8 0 GET u8 8 => [:97, :98]
        BITFIELD_RO a => []
        BITFIELD_RO nosuch GET u8 0 => [:0]
        -ERR BITFIELD_RO only supports the GET subcommand
            BITFIELD_RO a SET u8 0 1
            BITFIELD_RO a INCRBY u8 0 1
            BITFIELD_RO a GET u8 0 SET u8 0 1
        BITFIELD_RO a OVERFLOW SAT GET u8 0 => [:97]
        BITFIELD_RO a NOSUCH => -ERR syntax error
        HSET h f v => :1
        BITFIELD_RO h SET u8 0 1 => -ERR BITFIELD_RO only supports the GET subcommand
        GET a => "abc"
        "#,
    );
}

#[test]
fn bitfield_counts_only_what_it_changes() {
    let session = Session::start();
    let mut connection = session.connect();
    for (command, changes) in [
        ("BITFIELD a SET i5 0 0", 1),
        ("BITFIELD a SET i5 0 0", 0),
        ("BITFIELD a SET i5 0 1", 1),
        ("BITFIELD a SET i5 0 1", 0),
        ("BITFIELD a GET i5 0", 0),
        ("BITFIELD b INCRBY i5 0 1", 1),
        ("BITFIELD b INCRBY i5 0 1", 1),
        ("BITFIELD a SET i5 90 0", 1),
        ("BITFIELD a OVERFLOW FAIL SET u8 0 256", 0),
    ] {
        let before = changes_of(&mut connection);
        connection.run(command);
        assert_eq!(changes_of(&mut connection) - before, changes, "{command}");
    }
}

/// How many changes the server has counted.
fn changes_of(connection: &mut Connection) -> i64 {
    let info = connection.run("INFO persistence").text().to_owned();
    let line = info.lines().find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
    line.expect("INFO has the line").parse().expect("it is a number")
}
