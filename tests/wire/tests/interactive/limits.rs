//! `txn-max-keys`, `txn-max-bytes` and `txn-timeout`: a transaction that exceeds one has failed.

use crate::{check, start};

#[test]
fn a_transaction_has_at_most_so_many_keys() {
    check(
        r#"
        # config txn-max-keys 3
        ! TXN.BEGIN
        ! MSET a 1 b 2
        ! MSET a 1 b 2 a 3
        GET c => (nil)
        > GET d
        -ERR the transaction touches more than 3 keys (txn-max-keys) and was rolled back: begin one with fewer
        > TXN.COMMIT
        -ERR the transaction touches more than 3 keys (txn-max-keys) and was rolled back: begin one with fewer
        DBSIZE => :0
        "#,
    );
}

/// What is too large is not copied, and what grows inside is bounded.
#[test]
fn a_transaction_holds_at_most_so_many_bytes() {
    for grow in ["APPEND large y", "SETRANGE a 200000 x", "SETBIT a 1600000 1"] {
        check(&format!(
            r#"
            # config txn-max-bytes 100kb
            ! SETRANGE large 200000 x
            ! TXN.BEGIN
            STRLEN large => :200001
            > {grow}
            -ERR the transaction holds more than 102400 bytes (txn-max-bytes) and was rolled back: begin a smaller one
            > TXN.COMMIT
            -ERR the transaction holds more than 102400 bytes (txn-max-bytes) and was rolled back: begin a smaller one
            STRLEN large => :200001
            EXISTS a => :0
            "#
        ));
    }
}

#[test]
fn many_small_changes_are_bounded_too() {
    let Some(session) = start() else { return };
    let mut client = session.connect();
    client.run("CONFIG SET txn-max-bytes 100kb");
    let unbounded = ["INCR n", "HSET h f v", "ZINCRBY z 1 m"].into_iter().find(|command| {
        client.run("TXN.BEGIN");
        let has_failed = (0..40).any(|_| client.pipeline(&[command; 500]).iter().any(wire::Reply::is_error));
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
        # config txn-timeout 200
        ! CONFIG RESETSTAT
        ! TXN.BEGIN
        ! SET a 1
        // Nothing is sent meanwhile.
        # until transactions_timed_out:1
        # until open_transactions:0
        # until total_watched_keys:0
        > GET a
        -ERR the transaction was open for more than 200 ms (txn-timeout) and was rolled back: begin a new one
        > TXN.COMMIT
        -ERR the transaction was open for more than 200 ms (txn-timeout) and was rolled back: begin a new one
        GET a => (nil)
        "#,
    );
}

#[test]
fn what_a_transaction_holds_counts_as_its_clients_memory() {
    let Some(session) = start() else { return };
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
        ! SET there 1
        ! TXN.BEGIN
        ! SET a 1
        2! CONFIG SET maxmemory 1
        SET b 1 => -OOM command not allowed when used memory > 'maxmemory'.
        GET a => "1"
        TXN.COMMIT => -OOM command not allowed when used memory > 'maxmemory'.
        ! TXN.BEGIN
        ! DEL there
        ! TXN.COMMIT
        2! CONFIG SET maxmemory 0
        > EXISTS a there
        :0
        "#,
    );
}

#[test]
fn a_pause_of_writes_holds_a_commit_that_writes() {
    check(
        r#"
        ! TXN.BEGIN
        ! SET a 1
        3! TXN.BEGIN
        3> GET a
        (nil)
        2! CLIENT PAUSE 100000 WRITE
        3! TXN.COMMIT
        > TXN.COMMIT
        # until blocked_clients:1
        2> GET a
        (nil)
        2! CLIENT UNPAUSE
        1< :1..
        2> GET a
        "1"
        "#,
    );
}
