//! Sets under the commands that take a key of any type.

use wire::{Session, check};

#[test]
fn copy_rename_and_move() {
    check(
        r#"
        > SADD s a b
        :2
        > COPY s copy
        :1
        > SADD s c
        :1
        > SMEMBERS copy
        ~["a", "b"]
        > SREM copy a
        :1
        > SCARD s
        :3
        > COPY s copy
        :0
        > COPY s copy REPLACE
        :1
        > SMEMBERS copy
        ~["a", "b", "c"]
        > RENAME copy other
        +OK
        > SMEMBERS other
        ~["a", "b", "c"]
        > EXISTS copy
        :0
        > RENAMENX other s
        :0
        > SET str x
        +OK
        > RENAME other str
        +OK
        > TYPE str
        +set
        > MOVE str 1
        :1
        > SELECT 1
        +OK
        > SMEMBERS str
        ~["a", "b", "c"]
        > COPY str s DB 0
        :0
        > COPY str new DB 0
        :1
        > SELECT 0
        +OK
        > SMEMBERS new
        ~["a", "b", "c"]
        > SADD n 1 2
        :2
        > COPY n m
        :1
        > SADD m 3
        :1
        > SMEMBERS n
        ~["1", "2"]
        > MOVE n 1
        :1
        > SMEMBERS n
        []
        > SELECT 1
        +OK
        > SMEMBERS n
        ~["1", "2"]
        > SWAPDB 0 1
        +OK
        > SMEMBERS m
        ~["1", "2", "3"]
        > DEL s new m
        :3
        > UNLINK s
        :0
        > DBSIZE
        :0
        "#,
    );
}

#[test]
fn deadlines() {
    check(
        r#"
        > SADD s a
        :1
        > EXPIRE s 1000
        :1
        > SADD s b
        :1
        > TTL s
        :990..1000
        > SREM s b
        :1
        > TTL s
        :990..1000
        > COPY s copy
        :1
        > TTL copy
        :990..1000
        > PERSIST s
        :1
        > TTL s
        :-1
        > PEXPIRE s 1
        :1
        # eventually
        > EXISTS s
        :0
        > SISMEMBER s a
        :0
        > SCARD s
        :0
        > SPOP s
        (nil)
        > SADD s b
        :1
        > SMEMBERS s
        ["b"]
        > TTL s
        :-1
        > PEXPIREAT s 1
        :1
        > SCARD s
        :0
        > TYPE s
        +none
        // The last member takes the deadline with it.
        > SADD s a
        :1
        > EXPIRE s 1000
        :1
        > SREM s a
        :1
        > SADD s a
        :1
        > TTL s
        :-1
        > EXPIRE s 1000
        :1
        > SPOP s
        "a"
        > SADD s a
        :1
        > TTL s
        :-1
        "#,
    );
}

#[test]
fn facts_of_a_key() {
    check(
        r#"
        > SADD s a b
        :2
        > TYPE s
        +set
        > EXISTS s s nosuch
        :2
        > TOUCH s
        :1
        > OBJECT REFCOUNT s
        :1
        > OBJECT IDLETIME s
        :0..
        > KEYS *
        ["s"]
        > RANDOMKEY
        "s"
        > DBSIZE
        :1
        > MEMORY USAGE s
        :1..
        > MEMORY USAGE s SAMPLES 0
        :1..
        > SADD n 1
        :1
        > MEMORY USAGE n
        :1..
        "#,
    );
}

/// More members take more memory, and integers that are kept as such take little.
#[test]
fn memory_usage_grows_with_the_set() {
    let session = Session::start();
    let mut connection = session.connect();
    let mut usage = |members: Vec<String>| {
        connection.run("DEL s");
        connection.run(&format!("SADD s {}", members.join(" ")));
        connection.run("MEMORY USAGE s SAMPLES 0").integer()
    };
    let few = usage((0..10).map(|i| i.to_string()).collect());
    let integers = usage((0..500).map(|i| i.to_string()).collect());
    let words = usage((0..500).map(|i| format!("m{i}")).collect());
    let long_words = usage((0..500).map(|i| format!("m{i:0100}")).collect());
    assert!(few < integers && integers < words && words < long_words, "{few} {integers} {words} {long_words}");
    // Two bytes each, and long members at least their length.
    assert!(integers >= 1000 && long_words >= 50_000, "{integers} {long_words}");
}

/// The same data has the same signature, whatever the order and the encoding, and the same one as in Redis.
#[test]
fn signatures() {
    check(
        r#"
        > SADD s a b c
        :3
        > DEBUG DIGEST-VALUE s
        [+593c2414786d75446e97f4ea5d4b731f3313da72]
        > SADD other c b
        :2
        > SADD other a
        :1
        > DEBUG DIGEST-VALUE other
        [+593c2414786d75446e97f4ea5d4b731f3313da72]
        > SADD n 1 2 3
        :3
        > DEBUG DIGEST-VALUE n
        [+2a462a3f51a1db89738ebbeef0c47ce1bbc85246]
        > SADD table 3 x 2 1
        :4
        > DEBUG DIGEST-VALUE table
        [+3bb087b1948bf20dd8244692cb9519e2c3947234]
        > SREM table x
        :1
        > DEBUG DIGEST-VALUE table
        [+2a462a3f51a1db89738ebbeef0c47ce1bbc85246]
        > SADD one a
        :1
        > DEBUG DIGEST-VALUE one
        [+344e2dce84032272e136053b2083009290148e5e]
        > SADD odd "" "\x00\xff" -9223372036854775808
        :3
        > DEBUG DIGEST-VALUE odd
        [+a364ef1fc88096308cd5322a06d0f0b60d7ac036]
        > DEBUG DIGEST
        +542faff355fcd09fae0c18c0d707038c3d665550
        > PEXPIREAT s 9999999999999
        :1
        > DEBUG DIGEST-VALUE s
        [+bfb9daeba4549f10af811f121821bc8429bd9bf1]
        > DEBUG DIGEST
        +b847cc13c21cbbf35589ad09509b2bcb87b10750
        > FLUSHALL
        +OK
        > DEBUG DIGEST
        +0000000000000000000000000000000000000000
        "#,
    );
}

#[test]
fn a_flush_empties_them() {
    check(
        r#"
        > SADD s a b
        :2
        > SADD n 1
        :1
        > FLUSHDB
        +OK
        > SCARD s
        :0
        > SMEMBERS n
        []
        > SADD n x
        :1
        > SMEMBERS n
        ["x"]
        "#,
    );
}

/// Beyond maxmemory, commands that may add members are refused even if they would add none. SREM, SPOP and SMOVE run.
#[test]
fn beyond_maxmemory() {
    check(
        r#"
        > SADD s a b c d
        :4
        > SADD t a
        :1
        # config maxmemory 1
        > SADD s a
        -OOM command not allowed when used memory > 'maxmemory'.
        > SADD new a
        -OOM command not allowed when used memory > 'maxmemory'.
        > SUNIONSTORE to s
        -OOM command not allowed when used memory > 'maxmemory'.
        > SINTERSTORE to s
        -OOM command not allowed when used memory > 'maxmemory'.
        > SDIFFSTORE to s s
        -OOM command not allowed when used memory > 'maxmemory'.
        > SMOVE s new b
        :1
        > SREM s a
        :1
        > SPOP s 1
        [*]
        > SMEMBERS t
        ["a"]
        > SINTER s t
        []
        > SPOP t
        "a"
        # config maxmemory 0
        > SADD s e
        :1
        > DBSIZE
        :2
        "#,
    );
}

/// INFO counts each key that is looked up to be read, as often as it is named. What looks one up to write counts nothing.
#[test]
fn hits_and_misses() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.run("SADD k a b");
    for (command, hits, misses) in [
        ("SCARD k", 1, 0),
        ("SCARD none", 0, 1),
        ("SMEMBERS none", 0, 1),
        ("SISMEMBER k nosuch", 1, 0),
        ("SISMEMBER none a", 0, 1),
        ("SMISMEMBER none a b c", 0, 1),
        ("SRANDMEMBER none", 0, 1),
        ("SRANDMEMBER k 2", 1, 0),
        ("SSCAN k 0", 1, 0),
        ("SSCAN none 0", 0, 1),
        ("SINTER k k", 2, 0),
        ("SINTER none none2 none", 0, 3),
        ("SINTERCARD 2 k none", 1, 1),
        ("SUNION none k", 1, 1),
        ("SDIFF none none", 0, 2),
        ("SUNIONSTORE to k none", 1, 1),
        ("SINTERSTORE to k k", 2, 0),
        ("SDIFFSTORE to none", 0, 1),
        ("SADD k a c", 0, 0),
        ("SADD new a", 0, 0),
        ("SREM none a", 0, 0),
        ("SREM k c", 0, 0),
        ("SPOP none", 0, 0),
        ("SPOP k 1", 0, 0),
        ("SMOVE k other nosuch", 0, 0),
        ("SMOVE none k a", 0, 0),
        ("SPOP k 0", 0, 0),
    ] {
        connection.run("CONFIG RESETSTAT");
        let reply = connection.run(command);
        assert!(!reply.is_error(), "{command}: {reply}");
        let info = connection.run("INFO stats");
        let expected = format!("keyspace_hits:{hits}\r\nkeyspace_misses:{misses}\r\n");
        let counted: String = info.text().split_inclusive('\n').filter(|line| line.starts_with("keyspace_")).collect();
        assert_eq!(counted, expected, "{command}");
    }
}
