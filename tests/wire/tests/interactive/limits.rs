//! `txn-max-keys`, `txn-max-bytes` and `txn-timeout`: a transaction that exceeds one has failed.

use wire::{Session, check};

#[test]
fn a_transaction_has_at_most_so_many_keys() {
    check(
        r#"
        # holdfast only
        # config txn-max-keys 3
        > TXN.BEGIN
        +OK
        > MSET a 1 b 2
        +OK
        > MSET a 1 b 2 a 3
        +OK
        > GET c
        (nil)
        > GET d
        -ERR the transaction touches more than 3 keys (txn-max-keys) and was rolled back: begin one with fewer
        > GET a
        -ERR the transaction touches more than 3 keys (txn-max-keys) and was rolled back: begin one with fewer
        > TXN.COMMIT
        -ERR the transaction touches more than 3 keys (txn-max-keys) and was rolled back: begin one with fewer
        > DBSIZE
        :0
        "#,
    );
}

#[test]
fn a_value_that_is_too_large_is_not_copied() {
    check(
        r#"
        # holdfast only
        # config txn-max-bytes 100kb
        > SETRANGE large 200000 x
        :200001
        > TXN.BEGIN
        +OK
        > STRLEN large
        :200001
        > APPEND large y
        -ERR the transaction holds more than 102400 bytes (txn-max-bytes) and was rolled back: begin a smaller one
        > TXN.ROLLBACK
        +OK
        > STRLEN large
        :200001
        "#,
    );
}

#[test]
fn what_grows_inside_is_bounded() {
    for grow in ["SETRANGE a 200000 x", "SETBIT a 1600000 1"] {
        let transcript = r#"
        # holdfast only
        # config txn-max-bytes 100kb
        > TXN.BEGIN
        +OK
        > GROW
        -ERR the transaction holds more than 102400 bytes (txn-max-bytes) and was rolled back: begin a smaller one
        > TXN.COMMIT
        -ERR the transaction holds more than 102400 bytes (txn-max-bytes) and was rolled back: begin a smaller one
        > EXISTS a
        :0
        "#;
        check(&transcript.replace("GROW", grow));
    }
}

#[test]
fn many_small_changes_are_bounded_too() {
    let session = Session::start();
    if session.product() != wire::Product::Holdfast {
        return;
    }
    let mut client = session.connect();
    client.run("CONFIG SET txn-max-bytes 100kb");
    let unbounded = ["INCR n", "HSET h f v", "ZINCRBY z 1 m"].into_iter().find(|command| {
        client.run("TXN.BEGIN");
        let has_failed = (0..20_000).any(|_| client.run(command).is_error());
        client.run("TXN.ROLLBACK");
        !has_failed
    });
    client.run("CONFIG SET txn-max-bytes 64mb");
    assert_eq!(unbounded, None);
    assert_eq!(client.run("DBSIZE").integer(), 0);
}

#[test]
fn a_transaction_that_is_open_for_too_long_is_over_and_frees_its_memory() {
    check(
        r#"
        # holdfast only
        # config txn-timeout 200
        > CONFIG RESETSTAT
        +OK
        > TXN.BEGIN
        +OK
        > SET a 1
        +OK
        // Nothing is sent meanwhile.
        # until transactions_timed_out:1
        # until open_transactions:0
        # until total_watched_keys:0
        > GET a
        -ERR the transaction was open for more than 200 ms (txn-timeout) and was rolled back: begin a new one
        > TXN.COMMIT
        -ERR the transaction was open for more than 200 ms (txn-timeout) and was rolled back: begin a new one
        > GET a
        (nil)
        "#,
    );
}

#[test]
fn what_a_transaction_holds_counts_as_its_clients_memory() {
    let session = Session::start();
    if session.product() != wire::Product::Holdfast {
        return;
    }
    let (mut client, mut other) = (session.connect(), session.connect());
    client.run("CLIENT SETNAME holder");
    let mut memory = || {
        let list = other.run("CLIENT LIST");
        let line = list.text().lines().find(|line| line.contains("name=holder")).expect("it is connected").to_owned();
        let field = line.split(' ').find_map(|field| field.strip_prefix("tot-mem=")).expect("a field").to_owned();
        field.parse::<u64>().expect("a number")
    };
    let before = memory();
    client.run("TXN.BEGIN");
    client.run("SETRANGE a 1000000 x");
    assert!(memory() > before + 1_000_000);
    client.run("TXN.ROLLBACK");
    assert!(memory() < before + 100_000);
}

#[test]
fn memory_that_is_short_refuses_what_needs_more() {
    check(
        r#"
        # holdfast only
        > SET there 1
        +OK
        > TXN.BEGIN
        +OK
        > SET a 1
        +OK
        2> CONFIG SET maxmemory 1
        +OK
        > SET b 1
        -OOM command not allowed when used memory > 'maxmemory'.
        > GET a
        "1"
        > TXN.COMMIT
        -OOM command not allowed when used memory > 'maxmemory'.
        > TXN.BEGIN
        +OK
        > DEL there
        :1
        > TXN.COMMIT
        :1..
        2> CONFIG SET maxmemory 0
        +OK
        > EXISTS a there
        :0
        "#,
    );
}

#[test]
fn a_pause_of_writes_holds_a_commit_that_writes() {
    check(
        r#"
        # holdfast only
        > TXN.BEGIN
        +OK
        > SET a 1
        +OK
        3> TXN.BEGIN
        +OK
        3> GET a
        (nil)
        2> CLIENT PAUSE 100000 WRITE
        +OK
        3> TXN.COMMIT
        :0..
        > TXN.COMMIT
        # until blocked_clients:1
        2> GET a
        (nil)
        2> CLIENT UNPAUSE
        +OK
        1< :1..
        2> GET a
        "1"
        "#,
    );
}
