//! OBJECT ENCODING of lists, as Redis has them since 7.2: `listpack` up to `list-max-listpack-size`, `quicklist` beyond, and a
//! listpack again at half of that.

use wire::{Product, Session, check};

#[test]
fn a_count_of_elements() {
    check(
        r#"
        # needs redis >= 7.2
        > CONFIG GET list-max-listpack-size
        ["list-max-listpack-size", "-2"]
        # config list-max-listpack-size 3
        ! RPUSH l a b c
        > OBJECT ENCODING l
        "listpack"
        > COPY l full
        :1
        > LPUSH l d
        :4
        > OBJECT ENCODING l
        "quicklist"
        > RPOP l
        "c"
        > OBJECT ENCODING l
        "quicklist"
        > LTRIM l 0 0
        +OK
        > OBJECT ENCODING l
        "listpack"
        > LRANGE l 0 -1
        ["d"]
        // Of a full list: what is inserted, and, as in Redis, what replaces an element.
        > COPY full other
        :1
        > LINSERT full BEFORE b x
        :4
        > OBJECT ENCODING full
        "quicklist"
        > LSET other 0 x
        +OK
        > OBJECT ENCODING other
        "quicklist"
        > LRANGE other 0 -1
        ["x", "b", "c"]
        > LREM other 0 b
        :1
        > LREM other 0 c
        :1
        > OBJECT ENCODING other
        "listpack"
        ! RPUSH at-once a b c d
        > OBJECT ENCODING at-once
        "quicklist"
        > LMOVE full new LEFT RIGHT
        "a"
        > OBJECT ENCODING new
        "listpack"
        "#,
    );
}

#[test]
fn a_class_of_bytes() {
    let session = Session::start();
    if session.product() != Product::Holdfast && !session.has_redis("7.2") {
        return wire::skip("older than Redis 7.2");
    }
    let mut connection = session.connect();
    let element = "x".repeat(1_000);
    for _ in 0..8 {
        connection.run(&format!("RPUSH l {element}"));
    }
    assert_eq!(connection.run("OBJECT ENCODING l").text(), "listpack");
    connection.run("COPY l copy");
    connection.run(&format!("RPUSH l {element}"));
    assert_eq!(connection.run("OBJECT ENCODING l").text(), "quicklist");
    connection.run("DEBUG RELOAD");
    assert_eq!(connection.run("OBJECT ENCODING copy").text(), "listpack");
    assert_eq!(connection.run("OBJECT ENCODING l").text(), "quicklist");
    // It becomes a listpack again at half the limit.
    assert_eq!(connection.run("RPOP l").text(), element);
    assert_eq!(connection.run("OBJECT ENCODING l").text(), "quicklist");
    assert_eq!(connection.run("LTRIM l 0 2").to_string(), "+OK");
    assert_eq!(connection.run("OBJECT ENCODING l").text(), "listpack");
    connection.run(&format!("RPUSH long {}", "x".repeat(8_192)));
    assert_eq!(connection.run("OBJECT ENCODING long").text(), "quicklist");
    assert_eq!(connection.run("LLEN l").integer(), 3);
}

/// The same data has the same signature, and the same one as in Redis.
#[test]
fn digests() {
    check(
        r#"
        ! RPUSH l a b 12 "" 12
        DEBUG DIGEST-VALUE l => [+4a092e69c3bf0a91b683a9651d538f034ffe3755]
        ! RPUSH m b a 12 "" 12
        DEBUG DIGEST-VALUE m => [+5d9f24167ede184a9433a5eb54b101e7cfff9446]
        ! EXPIRE l 1000
        DEBUG DIGEST-VALUE l => [+ac8cd0961f86e0c57795429d58394098555076d6]
        "#,
    );
}
