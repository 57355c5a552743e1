//! Sets under the commands that take a key of any type.

use wire::{Session, check};

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
        ! SADD s a b c
        > DEBUG DIGEST-VALUE s
        [+593c2414786d75446e97f4ea5d4b731f3313da72]
        ! SADD other c b
        ! SADD other a
        > DEBUG DIGEST-VALUE other
        [+593c2414786d75446e97f4ea5d4b731f3313da72]
        ! SADD n 1 2 3
        > DEBUG DIGEST-VALUE n
        [+2a462a3f51a1db89738ebbeef0c47ce1bbc85246]
        ! SADD table 3 x 2 1
        > DEBUG DIGEST-VALUE table
        [+3bb087b1948bf20dd8244692cb9519e2c3947234]
        > SREM table x
        :1
        > DEBUG DIGEST-VALUE table
        [+2a462a3f51a1db89738ebbeef0c47ce1bbc85246]
        ! SADD one a
        > DEBUG DIGEST-VALUE one
        [+344e2dce84032272e136053b2083009290148e5e]
        ! SADD odd "" "\x00\xff" -9223372036854775808
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

/// Beyond maxmemory, commands that may add members are refused even if they would add none. SREM, SPOP and SMOVE run.
#[test]
fn beyond_maxmemory() {
    check(
        r#"
        ! SADD s a b c d
        ! SADD t a
        # config maxmemory 1
        -OOM command not allowed when used memory > 'maxmemory'.
            SADD s a
            SADD new a
            SUNIONSTORE to s
            SINTERSTORE to s
            SDIFFSTORE to s s
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
        ! SADD s e
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
