//! Strings as bytes: APPEND, STRLEN, GETRANGE, SUBSTR, SETRANGE, LCS.

use wire::check;

#[test]
fn append_and_strlen() {
    check(
        r#"
        APPEND a hello => :5
        APPEND a " world" => :11
        GET a => "hello world"
        STRLEN a => :11
        APPEND a "" => :11
        APPEND empty "" => :0
        EXISTS empty => :1
        GET empty => ""
        STRLEN nosuch => :0
        SET n 12 => +OK
        APPEND n 3 => :3
        GET n => "123"
        INCR n => :124
        SET e 1 EXAT 33177117420 => +OK
        APPEND e 2 => :2
        EXPIRETIME e => :33177117420
        APPEND b "\x00\xff\r\n" => :4
        APPEND b "\x00" => :5
        GET b => "\x00\xff\r\n\x00"
        "#,
    );
}

#[test]
fn getrange_and_substr() {
    check(
        r#"
        SET a "Hello World" => +OK
        GETRANGE a 0 3 => "Hell"
        GETRANGE a 0 -1 => "Hello World"
        GETRANGE a -4 -1 => "orld"
        GETRANGE a 5 3 => ""
        GETRANGE a 5 5000 => " World"
        GETRANGE a -5000 10000 => "Hello World"
        GETRANGE a 0 0 => "H"
        GETRANGE a 10 10 => "d"
        GETRANGE a 11 11 => ""
        GETRANGE a -1 -1 => "d"
        GETRANGE a -1 0 => ""
        GETRANGE a -1 -5 => ""
        GETRANGE a -100 -50 => "H"
        GETRANGE a 0 -100 => "H"
        GETRANGE a -100 0 => "H"
        GETRANGE a 9223372036854775807 9223372036854775807 => ""
        GETRANGE a -9223372036854775808 9223372036854775807 => "Hello World"
        GETRANGE a 0 -9223372036854775808 => "H"
        GETRANGE nosuch 0 -1 => ""
        SET n 1234 => +OK
        GETRANGE n 1 2 => "23"
        SET e "" => +OK
        GETRANGE e 0 -1 => ""
        SET b "\x00\x01\xff" => +OK
        GETRANGE b 1 -1 => "\x01\xff"
        // SUBSTR is its older name.
        SET a "Hello World" => +OK
        SUBSTR a 0 4 => "Hello"
        SUBSTR a -5 -1 => "World"
        SUBSTR nosuch 0 -1 => ""
        SUBSTR a x 1 => -ERR value is not an integer or out of range
        ! FLUSHALL
        // What both refuse.
        SET a abc => +OK
        -ERR value is not an integer or out of range
            GETRANGE a x 1
            GETRANGE a 0 y
            GETRANGE a 0 1.5
            GETRANGE a 0 9223372036854775808
            GETRANGE nosuch x y
        HSET h f v => :1
        GETRANGE h x y => -ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn setrange() {
    check(
        r#"
        SETRANGE a 0 foo => :3
        GET a => "foo"
        SETRANGE a 1 b => :3
        GET a => "fbo"
        SETRANGE a 0 "" => :3
        GET a => "fbo"
        SETRANGE a 2 xyz => :5
        GET a => "fbxyz"
        SETRANGE a 8 end => :11
        GET a => "fbxyz\x00\x00\x00end"
        SETRANGE new 3 foo => :6
        GET new => "\x00\x00\x00foo"
        SETRANGE nosuch 0 "" => :0
        SETRANGE nosuch 10 "" => :0
        EXISTS nosuch => :0
        SETRANGE a 100 "" => :11
        STRLEN a => :11
        SET n 1234 => +OK
        SETRANGE n 1 x => :4
        GET n => "1x34"
        SET n 1234 => +OK
        SETRANGE n 1 "" => :4
        SET e abc EXAT 33177117420 => +OK
        SETRANGE e 1 x => :3
        EXPIRETIME e => :33177117420
        ! FLUSHALL
        // What it refuses.
        SETRANGE a -1 x => -ERR offset is out of range
        SETRANGE a -1 "" => -ERR offset is out of range
        SETRANGE a abc x => -ERR value is not an integer or out of range
        SETRANGE a 1.5 x => -ERR value is not an integer or out of range
        -ERR string exceeds maximum allowed size (proto-max-bulk-len)
            SETRANGE a 536870912 x
            SETRANGE a 536870908 hello
            SETRANGE a 9223372036854775807 x
        EXISTS a => :0
        SET s foo => +OK
        SETRANGE s -1 x => -ERR offset is out of range
        SETRANGE s 536870912 x => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        SETRANGE s 536870912 "" => :3
        GET s => "foo"
        // The offset is looked at before the type, the type before the size.
        HSET h f v => :1
        SETRANGE h -1 x => -ERR offset is out of range
        SETRANGE h 536870912 x => -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[ignore = "half a gigabyte"]
#[test]
fn setrange_up_to_the_largest_string() {
    check(
        r#"
        SETRANGE a 536870911 x => :536870912
        STRLEN a => :536870912
        GETRANGE a 536870910 -1 => "\x00x"
        APPEND a y => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        SETRANGE a 536870911 yz => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        STRLEN a => :536870912
        DEL a => :1
        "#,
    );
}

#[test]
fn lcs() {
    check(
        r#"
        MSET a ohmytext b mynewtext => +OK
        LCS a b => "mytext"
        LCS a b LEN => :6
        LCS a b IDX => ["matches", [[[:4, :7], [:5, :8]], [[:2, :3], [:0, :1]]], "len", :6]
        LCS a b IDX MINMATCHLEN 4 => ["matches", [[[:4, :7], [:5, :8]]], "len", :6]
        LCS a b IDX WITHMATCHLEN => ["matches", [[[:4, :7], [:5, :8], :4], [[:2, :3], [:0, :1], :2]], "len", :6]
        LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN => ["matches", [[[:4, :7], [:5, :8], :4]], "len", :6]
        LCS a b MINMATCHLEN 4 WITHMATCHLEN IDX => ["matches", [[[:4, :7], [:5, :8], :4]], "len", :6]
        LCS a b idx minmatchlen 4 withmatchlen => ["matches", [[[:4, :7], [:5, :8], :4]], "len", :6]
        LCS a b IDX MINMATCHLEN 0 => ["matches", [[[:4, :7], [:5, :8]], [[:2, :3], [:0, :1]]], "len", :6]
        LCS a b IDX MINMATCHLEN -5 => ["matches", [[[:4, :7], [:5, :8]], [[:2, :3], [:0, :1]]], "len", :6]
        LCS a b IDX MINMATCHLEN 100 => ["matches", [], "len", :6]
        LCS a b LEN MINMATCHLEN 100 => :6
        LCS a b WITHMATCHLEN => "mytext"
        LCS b a => "mytext"
        LCS a a LEN => :8
        ! FLUSHALL
        // Nothing in common, or no value.
        SET a abc => +OK
        LCS a nosuch => ""
        LCS nosuch a LEN => :0
        LCS nosuch nosuch2 IDX => ["matches", [], "len", :0]
        LCS nosuch nosuch => ""
        SET e "" => +OK
        LCS a e => ""
        LCS a e LEN => :0
        LCS a e IDX => ["matches", [], "len", :0]
        SET x xyz => +OK
        LCS a x => ""
        LCS a x IDX => ["matches", [], "len", :0]
        SET n 12345 => +OK
        SET m 23 => +OK
        LCS n m => "23"
        LCS n m IDX WITHMATCHLEN => ["matches", [[[:1, :2], [:0, :1], :2]], "len", :2]
        ! FLUSHALL
        // What it refuses.
        MSET a abc b abd => +OK
        LCS a b LEN IDX => -ERR If you want both the length and indexes, please just use IDX.
        LCS a b IDX LEN => -ERR If you want both the length and indexes, please just use IDX.
        LCS a b NOSUCH => -ERR syntax error
        LCS a b IDX MINMATCHLEN => -ERR syntax error
        LCS a b IDX MINMATCHLEN x => -ERR value is not an integer or out of range
        LCS a b LEN LEN => :2
        LCS a b c => -ERR syntax error
        HSET h f v => :1
        -ERR The specified keys must contain string values
            LCS a h
            LCS h a LEN
            LCS h nosuch NOSUCH
            LCS nosuch h
        ! FLUSHALL
        HELLO 3 => {"server" => *, ...}
        MSET a ohmytext b mynewtext => +OK
        LCS a b IDX WITHMATCHLEN => {"matches" => [[[:4, :7], [:5, :8], :4], [[:2, :3], [:0, :1], :2]], "len" => :6}
        LCS a nosuch IDX => {"matches" => [], "len" => :0}
        LCS a b LEN => :6
        "#,
    );
}
