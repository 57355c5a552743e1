//! Keys as such: DEL, UNLINK, EXISTS, TOUCH, TYPE, KEYS, RANDOMKEY, RENAME, RENAMENX, COPY, MOVE, DBSIZE.

use wire::check;

#[test]
fn keys_one_by_one() {
    check(
        r#"
        SET a 1 => +OK
        HSET h f v => :1
        EXISTS a => :1
        EXISTS a h nosuch a => :3
        EXISTS nosuch => :0
        TOUCH a h nosuch a => :3
        TOUCH nosuch => :0
        SETBIT b 0 1 => :0
        TYPE a => +string
        TYPE b => +string
        TYPE h => +hash
        TYPE nosuch => +none
        ! FLUSHALL
        MSET a 1 b 2 c 3 => +OK
        HSET h f v => :1
        DEL a nosuch b => :2
        DEL a => :0
        DEL c c => :1
        UNLINK h nosuch => :1
        DBSIZE => :0
        SET a 1 PX 20 => +OK
        # eventually
        DEL a => :0
        "#,
    );
}

#[test]
fn keys_by_pattern() {
    check(
        r#"
        MSET foo 1 foobar 2 bar 3 "a*b" 4 "a[b" 5 "\xff\x00" 6 "" 7 => +OK
        KEYS foo => ["foo"]
        KEYS foo* => ~["foo", "foobar"]
        KEYS *bar => ~["bar", "foobar"]
        KEYS f?? => ["foo"]
        KEYS nosuch* => []
        KEYS [fb]* => ~["bar", "foo", "foobar"]
        KEYS [a-f]oo => ["foo"]
        KEYS [^f]*r => ["bar"]
        KEYS [f-a]oo => ["foo"]
        KEYS "a\\*b" => ["a*b"]
        KEYS "a\\[b" => ["a[b"]
        KEYS "a[[]b" => ["a[b"]
        KEYS a?b => ~["a*b", "a[b"]
        KEYS "\xff*" => ["\xff\x00"]
        KEYS "?\x00" => ["\xff\x00"]
        KEYS "" => [""]
        KEYS ??? => ~["a*b", "bar", "foo", "a[b"]
        KEYS FOO => []
        KEYS * => ~["foo", "foobar", "bar", "a*b", "a[b", "\xff\x00", ""]
        // Only the plain * matches an empty key.
        KEYS ** => ~["foo", "foobar", "bar", "a*b", "a[b", "\xff\x00"]
        ! FLUSHALL
        // Classes that are not closed.
        MSET a 1 b 2 - 3 ] 4 ^ 5 => +OK
        KEYS [ => []
        KEYS [a => ["a"]
        KEYS [ab => ~["a", "b"]
        KEYS [^ => ~["]", "a", "-", "b", "^"]
        KEYS [^a => ~["]", "-", "b", "^"]
        KEYS [] => []
        KEYS [a-] => ~["]", "a", "^"]
        KEYS []a] => []
        KEYS [^] => ~["]", "a", "-", "b", "^"]
        KEYS "[\\]]" => ["]"]
        KEYS "[\\a]" => ["a"]
        KEYS "a\\" => []
        KEYS "\\a" => ["a"]
        ! FLUSHALL
        // A pattern that could take forever.
        SET aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1 => +OK
        KEYS a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b => []
        > KEYS a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a
        ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]
        "#,
    );
}

#[test]
fn keys_and_randomkey_of_a_database() {
    check(
        r#"
        // Of this database alone.
        SET a 1 => +OK
        SELECT 1 => +OK
        KEYS * => []
        SET b 2 => +OK
        KEYS * => ["b"]
        DBSIZE => :1
        RANDOMKEY => "b"
        SELECT 0 => +OK
        KEYS * => ["a"]
        ! FLUSHALL
        // Without what has expired.
        SET a 1 PX 20 => +OK
        SET b 2 => +OK
        # eventually
        KEYS * => ["b"]
        RANDOMKEY => "b"
        # eventually
        DBSIZE => :1
        ! FLUSHALL
        RANDOMKEY => (nil)
        SET a 1 => +OK
        RANDOMKEY => "a"
        SET b 2 => +OK
        RANDOMKEY => "a" | "b"
        HELLO 3 => {"server" => *, ...}
        FLUSHDB => +OK
        RANDOMKEY => _
        "#,
    );
}

#[test]
fn rename_and_renamenx() {
    check(
        r#"
        SET a 1 => +OK
        RENAME a b => +OK
        EXISTS a => :0
        GET b => "1"
        RENAME nosuch b => -ERR no such key
        RENAME nosuch nosuch => -ERR no such key
        RENAME b b => +OK
        GET b => "1"
        SET c 2 => +OK
        RENAME c b => +OK
        GET b => "2"
        HSET h f v => :1
        RENAME h b => +OK
        HGET b f => "v"
        ! FLUSHALL
        // The deadline goes along.
        SET a 1 EXAT 33177117420 => +OK
        SET b 2 => +OK
        RENAME a b => +OK
        EXPIRETIME b => :33177117420
        SET c 3 => +OK
        RENAME c b => +OK
        TTL b => :-1
        SET d 4 EXAT 33177117420 => +OK
        RENAME d d => +OK
        EXPIRETIME d => :33177117420
        ! FLUSHALL
        // RENAMENX replaces nothing.
        MSET a 1 b 2 => +OK
        RENAMENX a b => :0
        MGET a b => ["1", "2"]
        RENAMENX a c => :1
        MGET a c => [(nil), "1"]
        RENAMENX nosuch c => -ERR no such key
        RENAMENX nosuch nosuch => -ERR no such key
        RENAMENX b b => :0
        SET d 1 EXAT 33177117420 => +OK
        RENAMENX d e => :1
        EXPIRETIME e => :33177117420
        SET f 1 PX 20 => +OK
        # eventually
        RENAMENX b f => :1
        "#,
    );
}

#[test]
fn copy() {
    check(
        r#"
        SET a 1 => +OK
        COPY a b => :1
        GET b => "1"
        SET a 2 => +OK
        COPY a b => :0
        GET b => "1"
        COPY a b REPLACE => :1
        GET b => "2"
        COPY nosuch c => :0
        EXISTS c => :0
        COPY nosuch b REPLACE => :0
        GET b => "2"
        HSET h f v => :1
        COPY h b replace => :1
        HSET h f w => :0
        HGETALL b => ["f", "v"]
        SET e 1 EXAT 33177117420 => +OK
        COPY e e2 => :1
        EXPIRETIME e2 => :33177117420
        SET x 1 => +OK
        COPY x e2 REPLACE => :1
        TTL e2 => :-1
        ! FLUSHALL
        // Between databases.
        SET a 1 => +OK
        COPY a a DB 1 => :1
        COPY a b DB 1 => :1
        COPY a b db 1 replace => :1
        COPY a b REPLACE DB 1 => :1
        SELECT 1 => +OK
        MGET a b => ["1", "1"]
        COPY a a DB 1 => -ERR source and destination objects are the same
        COPY a a => -ERR source and destination objects are the same
        COPY a a DB 0 => :0
        COPY a a DB 0 REPLACE => :1
        COPY a c DB 0 DB 2 => :1
        SELECT 2 => +OK
        GET c => "1"
        ! FLUSHALL
        // What is refused.
        SET a 1 => +OK
        COPY a a => -ERR source and destination objects are the same
        COPY a b DB => -ERR syntax error
        COPY a b DB abc => -ERR value is not an integer or out of range
        COPY a b DB -1 => -ERR DB index is out of range
        COPY a b DB 16 => -ERR DB index is out of range
        COPY a b DB 1.5 => -ERR value is not an integer or out of range
        COPY a b DB 9223372036854775808 => -ERR value is not an integer or out of range
        COPY a b DB 3000000000 => -ERR value is out of range, value must between -2147483648 and 2147483647
        COPY a b NOSUCH => -ERR syntax error
        COPY a b REPLACE REPLACE => :1
        COPY nosuch nosuch => -ERR source and destination objects are the same
        COPY nosuch b DB 16 => -ERR DB index is out of range
        "#,
    );
}

#[test]
fn move_to_another_database() {
    check(
        r#"
        SET a 1 => +OK
        MOVE a 1 => :1
        EXISTS a => :0
        MOVE a 1 => :0
        SET a 2 => +OK
        MOVE a 1 => :0
        GET a => "2"
        SELECT 1 => +OK
        GET a => "1"
        MOVE a 1 => -ERR source and destination objects are the same
        MOVE a 16 => -ERR DB index is out of range
        MOVE a -1 => -ERR DB index is out of range
        MOVE a abc => -ERR value is not an integer or out of range
        MOVE nosuch 1 => -ERR source and destination objects are the same
        MOVE nosuch 0 => :0
        MOVE nosuch 16 => -ERR DB index is out of range
        SET e 1 EXAT 33177117420 => +OK
        MOVE e 0 => :1
        SELECT 0 => +OK
        EXPIRETIME e => :33177117420
        HSET h f v => :1
        MOVE h 5 => :1
        SELECT 5 => +OK
        HGETALL h => ["f", "v"]
        "#,
    );
}

#[test]
fn wait() {
    check(
        r#"
        WAIT 0 0 => :0
        WAIT 1 10 => :0
        WAIT -1 10 => :0
        WAIT 0 -1 => -ERR timeout is negative
        WAIT abc 10 => -ERR value is not an integer or out of range
        WAIT 0 abc => -ERR timeout is not an integer or out of range
        WAIT 1 9223372036854775808 => -ERR timeout is not an integer or out of range
        "#,
    );
}
