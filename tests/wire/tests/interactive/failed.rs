//! A transaction that has failed answers everything with its error until it is ended, so that commands which were
//! already on their way never run outside it.

use wire::check;

const CONFLICT: &str = "-CONFLICT a key that this transaction has read or written was changed by another client or has expired; nothing of \
     it was applied: begin again";

#[test]
fn nothing_in_a_pipeline_runs_outside_a_failed_transaction() {
    let transcript = r#"
        # holdfast only
        > TXN.BEGIN
        +OK
        > GET a
        (nil)
        2> SET a 1
        +OK
        > SET b 1
        > PING
        > NOSUCH
        > GET
        > FLUSHALL
        > SELECT 1
        > MULTI
        > SUBSCRIBE channel
        > TXN.BEGIN
        > SET c 1
        > TXN.COMMIT
        > SET d 1
        -CONFLICT
        -CONFLICT
        -CONFLICT
        -CONFLICT
        -CONFLICT
        -CONFLICT
        -CONFLICT
        -CONFLICT
        -CONFLICT
        -CONFLICT
        -CONFLICT
        +OK
        > MGET a b c d
        ["1", (nil), (nil), "1"]
    "#;
    check(&transcript.replace("-CONFLICT", CONFLICT));
}

#[test]
fn a_failed_transaction_ends_with_rollback_reset_or_commit() {
    for (end, reply) in [("TXN.ROLLBACK", "+OK"), ("RESET", "+RESET"), ("TXN.COMMIT", CONFLICT)] {
        let transcript = r#"
        # holdfast only
        > TXN.BEGIN
        +OK
        > GET a
        (nil)
        2> SET a 1
        +OK
        > GET a
        -CONFLICT
        // It holds nothing any more.
        # until open_transactions:0
        # until total_watched_keys:0
        > END
        REPLY
        > GET a
        "1"
        > TXN.BEGIN
        +OK
        > INCR a
        :2
        > TXN.COMMIT
        :1..
        "#;
        check(&transcript.replace("-CONFLICT", CONFLICT).replace("END", end).replace("REPLY", reply));
    }
}

#[test]
fn each_transaction_is_counted_once() {
    check(
        &r#"
        # holdfast only
        > CONFIG RESETSTAT
        +OK
        > TXN.BEGIN
        +OK
        > SET a 1
        +OK
        > TXN.COMMIT
        :1..
        > TXN.BEGIN
        +OK
        > GET a
        "1"
        2> SET a 2
        +OK
        > GET a
        -CONFLICT
        > GET a
        -CONFLICT
        > TXN.ROLLBACK
        +OK
        > TXN.BEGIN
        +OK
        > TXN.ROLLBACK
        +OK
        # until transactions_committed:1
        # until transactions_conflicted:1
        # until transactions_rolled_back:1
        # until transactions_timed_out:0
        # until open_transactions:0
        "#
        .replace("-CONFLICT", CONFLICT),
    );
}
