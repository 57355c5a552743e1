//! Every type of values, and commands over several keys of which some are the transaction's own.

use wire::check;

#[test]
fn hashes_with_deadlines_of_fields_and_conditional_writes() {
    check(
        r#"
        # holdfast only
        > HSET job status queued owner nobody
        :2
        > TXN.BEGIN
        +OK
        > HCAS job IF 1 status queued SET 1 status running
        *
        > HGET job status
        "running"
        > HEXPIRE job 100 FIELDS 1 owner
        [:1]
        > HTTL job FIELDS 2 owner status
        [:1..100, :-1]
        > HINCRBY job tries 1
        :1
        > HDEL job owner
        :1
        2> HGETALL job
        ~{"status" => "queued", "owner" => "nobody"} | ["status", "queued", "owner", "nobody"]
        > TXN.COMMIT
        :1..
        2> HMGET job status owner tries
        ["running", (nil), "1"]
        "#,
    );
}

#[test]
fn sets_sorted_sets_and_bitmaps() {
    check(
        r#"
        # holdfast only
        > SADD s a b
        :2
        > ZADD z 1 a 2 b
        :2
        > TXN.BEGIN
        +OK
        > SADD s c
        :1
        > SCARD s
        :3
        > SPOP s 3
        [*, *, *]
        > EXISTS s
        :0
        > SADD s x
        :1
        > ZINCRBY z 5 a
        "6"
        > ZRANGE z 0 -1 WITHSCORES
        ["b", "2", "a", "6"]
        > ZPOPMIN z
        ["b", "2"]
        > SETBIT bits 7 1
        :0
        > BITCOUNT bits
        :1
        > BITOP NOT dest bits
        :1
        2> EXISTS s z bits dest
        :2
        > TXN.COMMIT
        :1..
        2> SMEMBERS s
        ["x"]
        2> ZRANGE z 0 -1 WITHSCORES
        ["a", "6"]
        2> GET dest
        "\xfe"
        "#,
    );
}

#[test]
fn commands_over_own_and_shared_keys() {
    check(
        r#"
        # holdfast only
        > SADD a 1 2 3
        :3
        > SADD b 2 3 4
        :3
        > ZADD z 1 1 2 2
        :2
        > TXN.BEGIN
        +OK
        > SADD a 4
        :1
        > SINTER a b
        ~["2", "3", "4"]
        > SINTERSTORE c a b
        :3
        > ZUNIONSTORE u 2 a z
        :4
        > SMOVE a b 1
        :1
        > SISMEMBER b 1
        :1
        > EXISTS a b c u z nothing
        :5
        2> EXISTS c u
        :0
        > TXN.COMMIT
        :1..
        2> SMEMBERS c
        ~["2", "3", "4"]
        2> ZSCORE u 2
        "3"
        2> SMEMBERS b
        ~["1", "2", "3", "4"]
        "#,
    );
}

#[test]
fn whole_keys_are_renamed_copied_and_restored() {
    check(
        r#"
        # holdfast only
        > HSET h f v
        :1
        > SET other x EX 100
        +OK
        > TXN.BEGIN
        +OK
        > RENAME h g
        +OK
        > EXISTS h
        :0
        > HGET g f
        "v"
        > COPY g k
        :1
        > RENAMENX g other
        :0
        > RENAME other h
        +OK
        > TTL h
        :1..100
        > PERSIST h
        :1
        > TYPE h
        +string
        > DUMP h
        *
        > DEL k
        :1
        > UNLINK nothing
        :0
        > TOUCH g h
        :2
        > OBJECT ENCODING g
        *
        2> EXISTS h other
        :2
        > TXN.COMMIT
        :1..
        2> GET h
        "x"
        2> TTL h
        :-1
        2> HGET g f
        "v"
        2> EXISTS k other
        :0
        "#,
    );
}

#[test]
fn a_value_of_the_wrong_type_is_the_commands_error() {
    check(
        r#"
        # holdfast only
        > SET a text
        +OK
        > TXN.BEGIN
        +OK
        > HGET a f
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > INCR a
        -ERR value is not an integer or out of range
        > HSET a f v
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SET b 1
        +OK
        > TXN.COMMIT
        :1..
        > MGET a b
        ["text", "1"]
        "#,
    );
}

#[test]
fn large_values_are_copied_whole() {
    let session = wire::Session::start();
    if session.product() != wire::Product::Holdfast {
        return;
    }
    let mut client = session.connect();
    for i in 0..2000 {
        client.queue_line(&format!("HSET h f{i} {i}"));
        client.queue_line(&format!("ZADD z {i} m{i}"));
        client.queue_line(&format!("SADD s m{i}"));
    }
    client.flush();
    (0..6000).for_each(|_| drop(client.read()));
    client.run("TXN.BEGIN");
    for command in ["HSET h f5 new", "ZADD z 7000 m0", "SREM s m1"] {
        assert!(!client.run(command).is_error(), "{command}");
    }
    assert_eq!(
        [client.run("HLEN h").integer(), client.run("ZCARD z").integer(), client.run("SCARD s").integer()],
        [2000, 2000, 1999]
    );
    assert_eq!(client.run("ZRANK z m0").integer(), 1999);
    client.run("TXN.COMMIT");
    let mut other = session.connect();
    assert_eq!(other.run("HGET h f5").text(), "new");
    assert_eq!(other.run("ZRANK z m0").integer(), 1999);
    assert_eq!(other.run("SCARD s").integer(), 1999);
}

#[test]
fn commands_that_could_wait_do_not() {
    check(
        r#"
        # holdfast only
        > TXN.BEGIN
        +OK
        > BZPOPMIN z 0
        (nil array)
        > ZADD z 1 a
        :1
        > BZPOPMIN z 0
        ["z", "a", "1"]
        > TXN.COMMIT
        :1..
        > EXISTS z
        :0
        "#,
    );
}
