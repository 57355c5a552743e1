//! A transaction that has failed answers everything with its error until it is ended, so that commands which were
//! already on their way never run outside it.

use crate::check;

#[test]
fn nothing_in_a_pipeline_runs_outside_a_failed_transaction() {
    check(
        r#"
        ! TXN.BEGIN
        ! GET a
        2! SET a 1
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
        "#,
    );
}

#[test]
fn a_failed_transaction_ends_with_rollback_reset_or_commit() {
    for (end, reply) in [("TXN.ROLLBACK", "+OK"), ("RESET", "+RESET"), ("TXN.COMMIT", "-CONFLICT")] {
        check(&format!(
            r#"
            ! TXN.BEGIN
            ! GET a
            2! SET a 1
            GET a => -CONFLICT
            // It holds nothing any more.
            # until open_transactions:0
            # until total_watched_keys:0
            > {end}
            {reply}
            GET a => "1"
            ! TXN.BEGIN
            INCR a => :2
            ! TXN.COMMIT
            "#
        ));
    }
}

#[test]
fn each_transaction_is_counted_once() {
    check(
        r#"
        ! CONFIG RESETSTAT
        ! TXN.BEGIN
        ! SET a 1
        ! TXN.COMMIT
        ! TXN.BEGIN
        ! GET a
        2! SET a 2
        GET a => -CONFLICT
        GET a => -CONFLICT
        ! TXN.ROLLBACK
        ! TXN.BEGIN
        ! TXN.ROLLBACK
        # until transactions_committed:1
        # until transactions_conflicted:1
        # until transactions_rolled_back:1
        # until transactions_timed_out:0
        # until open_transactions:0
        "#,
    );
}
