//! DEBUG RELOAD: everything comes back as it was.

use wire::{Session, check};

use crate::support::{assert_same, contents, furnish};

#[test]
fn everything_comes_back() {
    let session = Session::start();
    let mut connection = session.connect();
    let field_deadlines = session.has_redis("7.4");
    furnish(&mut connection, field_deadlines);
    let before = contents(&mut connection, field_deadlines);
    assert!(before.len() > 2000, "{}", before.len());
    for line in ["DEBUG RELOAD", "DEBUG RELOAD"] {
        assert_eq!(connection.run(line).to_string(), "+OK");
        assert_same(&contents(&mut connection, field_deadlines), &before, line);
    }
}

#[test]
fn encodings_come_back() {
    check(
        r#"
        > MSET int 12345 short "a few letters" long "a string that is longer than the forty-four bytes that Redis keeps beside its header"
        +OK
        HSET small f v g 1 => :2
        HSET wide f "a value of more than sixty-four bytes, with which a hash is no longer a listpack in Redis" => :1
        DEBUG RELOAD => +OK
        OBJECT ENCODING int => "int"
        OBJECT ENCODING short => "embstr"
        OBJECT ENCODING long => "raw"
        OBJECT ENCODING small => "listpack"
        OBJECT ENCODING wide => "hashtable"
        INCR int => :12346
        HINCRBY small g 1 => :2
        "#,
    );
}

/// What is loaded beside itself is there twice. (Redis ends when that is a key.)
#[test]
fn a_reload_beside_what_is_there_fails() {
    check(
        r##"
        > FUNCTION FLUSH
        +OK
        > DEBUG RELOAD NOFLUSH
        +OK
        > FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
        "lib"
        > DEBUG RELOAD NOFLUSH
        ~-ERR Error trying to load the RDB dump*
        > DEBUG RELOAD NOSAVE NOFLUSH
        ~-ERR Error trying to load the RDB dump*
        > FCALL f 0
        :1
        > DEBUG RELOAD NOFLUSH MERGE
        +OK
        > DEBUG RELOAD
        +OK
        > FCALL f 0
        :1
        > FUNCTION FLUSH
        +OK
        > SET a 1
        +OK
        > DEBUG RELOAD NOFLUSH MERGE
        +OK
        # holdfast only
        > DEBUG RELOAD NOFLUSH
        ~-ERR Error trying to load the RDB dump*
        > GET a
        "1"
        "##,
    );
}
