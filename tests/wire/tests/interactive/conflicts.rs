//! A transaction whose keys were changed by another client fails, whatever it did with them.

use wire::check;

const CONFLICT: &str = "-CONFLICT a key that this transaction has read or written was changed by another client or has expired; nothing of \
     it was applied: begin again";

/// Checks a transcript in which `CONFLICT` stands for the whole error.
fn check_conflicts(transcript: &str) {
    check(&transcript.replace("-CONFLICT", CONFLICT));
}

#[test]
fn a_key_that_was_read_has_changed() {
    check_conflicts(
        r#"
        # holdfast only
        > SET a 1
        +OK
        > TXN.BEGIN
        +OK
        > GET a
        "1"
        > SET b 1
        +OK
        2> SET a 2
        +OK
        > TXN.COMMIT
        -CONFLICT
        > GET b
        (nil)
        > GET a
        "2"
        "#,
    );
}

#[test]
fn the_next_command_meets_the_conflict() {
    check_conflicts(
        r#"
        # holdfast only
        > MSET a 1 b 1
        +OK
        > TXN.BEGIN
        +OK
        > GET a
        "1"
        2> MSET a 2 b 2
        +OK
        // Not 2: that would belong to another state than 1.
        > GET b
        -CONFLICT
        > PING
        -CONFLICT
        > TXN.COMMIT
        -CONFLICT
        > PING
        +PONG
        "#,
    );
}

#[test]
fn a_key_that_was_written_has_changed() {
    check_conflicts(
        r#"
        # holdfast only
        > TXN.BEGIN
        +OK
        > SET a mine
        +OK
        2> SET a theirs
        +OK
        > GET a
        -CONFLICT
        > TXN.ROLLBACK
        +OK
        > GET a
        "theirs"
        "#,
    );
}

#[test]
fn a_key_that_was_absent_has_come() {
    check_conflicts(
        r#"
        # holdfast only
        > TXN.BEGIN
        +OK
        > EXISTS a
        :0
        > SET b 1
        +OK
        2> HSET a f v
        :1
        > TXN.COMMIT
        -CONFLICT
        > EXISTS b
        :0
        "#,
    );
}

#[test]
fn what_others_do_to_other_keys_is_no_conflict() {
    check_conflicts(
        r#"
        # holdfast only
        > MSET a 1 b 1
        +OK
        > TXN.BEGIN
        +OK
        > GET a
        "1"
        2> SET b 2
        +OK
        2> GET a
        "1"
        2> EXPIRE nokey 10
        :0
        2> DEL nokey
        :0
        > GET b
        "2"
        > SET a 2
        +OK
        > TXN.COMMIT
        :1..
        "#,
    );
}

#[test]
fn write_skew_is_impossible() {
    check_conflicts(
        r#"
        # holdfast only
        > MSET ann on bob on
        +OK
        > TXN.BEGIN
        +OK
        > MGET ann bob
        ["on", "on"]
        2> TXN.BEGIN
        +OK
        2> MGET ann bob
        ["on", "on"]
        > SET ann off
        +OK
        2> SET bob off
        +OK
        > TXN.COMMIT
        :1..
        2> TXN.COMMIT
        -CONFLICT
        > MGET ann bob
        ["off", "on"]
        "#,
    );
}

#[test]
fn of_two_that_write_the_same_key_one_wins() {
    check_conflicts(
        r#"
        # holdfast only
        > TXN.BEGIN
        +OK
        2> TXN.BEGIN
        +OK
        > INCR n
        :1
        2> INCR n
        :1
        2> TXN.COMMIT
        :1..
        > TXN.COMMIT
        -CONFLICT
        > GET n
        "1"
        "#,
    );
}

#[test]
fn flushes_swaps_renames_and_deadlines_are_changes() {
    for change in ["FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "RENAME a b", "EXPIRE a 100", "DEL a", "APPEND a x", "MOVE a 1"]
    {
        let transcript = r#"
        # holdfast only
        > SET a 1
        +OK
        > TXN.BEGIN
        +OK
        > GET a
        "1"
        2> CHANGE
        *
        > TXN.COMMIT
        -CONFLICT
        "#;
        check_conflicts(&transcript.replace("CHANGE", change));
    }
}

#[test]
fn a_key_that_expires_has_changed_though_it_is_still_there() {
    let transcript = r#"
        # holdfast only
        > DEBUG SET-ACTIVE-EXPIRE 0
        +OK
        > SET a 1 PX 30
        +OK
        > TXN.BEGIN
        +OK
        > COMMAND
        REPLY
        # eventually
        2> PTTL a
        :-2
        > TXN.COMMIT
        -CONFLICT
        > EXISTS b
        :0
        > DEBUG SET-ACTIVE-EXPIRE 1
        +OK
    "#;
    // Its own clock: the key may have expired before it is read.
    for (command, reply) in [("GET a", "*"), ("APPEND a x", "*"), ("PERSIST a", "*"), ("RENAME a b", "*")] {
        let transcript = transcript.replace("COMMAND", command).replace("REPLY", reply);
        let transcript = transcript.replace("PX 30", "PX 300");
        check_conflicts(&transcript);
    }
}

#[test]
fn a_field_that_expires_is_a_change() {
    for command in ["HGET h f", "HSET h g 2"] {
        let transcript = r#"
        # holdfast only
        > DEBUG SET-ACTIVE-EXPIRE 0
        +OK
        > HSET h f 1 g 1
        :2
        > HPEXPIRE h 300 FIELDS 1 f
        [:1]
        > TXN.BEGIN
        +OK
        > COMMAND
        *
        # eventually
        2> HPTTL h FIELDS 1 f
        [:-2]
        > PING
        -CONFLICT
        > TXN.ROLLBACK
        +OK
        // Now it has expired before the transaction sees it.
        > TXN.BEGIN
        +OK
        > COMMAND
        *
        > HGETALL h
        ["g", *]
        > TXN.COMMIT
        :0..
        > DEBUG SET-ACTIVE-EXPIRE 1
        +OK
        "#;
        check_conflicts(&transcript.replace("COMMAND", command));
    }
}

#[test]
fn a_deadline_of_the_transactions_own_that_passes_is_a_conflict() {
    check_conflicts(
        r#"
        # holdfast only
        > TXN.BEGIN
        +OK
        > SET a 1 PX 20
        +OK
        # sleep 40ms
        > TXN.COMMIT
        -CONFLICT
        > TXN.BEGIN
        +OK
        > SET a 1 PXAT 1
        +OK
        > SET b 1
        +OK
        > TXN.COMMIT
        :1..
        > MGET a b
        [(nil), "1"]
        "#,
    );
}

#[test]
fn a_key_that_had_expired_before_is_absent() {
    check_conflicts(
        r#"
        # holdfast only
        > DEBUG SET-ACTIVE-EXPIRE 0
        +OK
        > HSET h f 1 g 2
        :2
        > PEXPIRE h 1
        :1
        # sleep 20ms
        > TXN.BEGIN
        +OK
        > HSET h x y
        :1
        > HGETALL h
        ["x", "y"]
        > TXN.COMMIT
        :1..
        > HGETALL h
        ["x", "y"]
        > TTL h
        :-1
        > DEBUG SET-ACTIVE-EXPIRE 1
        +OK
        "#,
    );
}

#[test]
fn a_commit_is_a_change_for_those_who_watch() {
    check_conflicts(
        r#"
        # holdfast only
        2> WATCH a
        +OK
        > TXN.BEGIN
        +OK
        > SET a 1
        +OK
        // Nothing has changed yet.
        2> MULTI
        +OK
        2> GET a
        +QUEUED
        2> EXEC
        [(nil)]
        2> WATCH a
        +OK
        > TXN.COMMIT
        :1..
        2> MULTI
        +OK
        2> GET a
        +QUEUED
        2> EXEC
        (nil array)
        "#,
    );
}

#[test]
fn watches_from_before_are_kept_apart() {
    check_conflicts(
        r#"
        # holdfast only
        > WATCH w
        +OK
        > TXN.BEGIN
        +OK
        > WATCH x
        -ERR WATCH cannot be part of an interactive transaction: it is not about data; send it outside of one
        > UNWATCH
        -ERR UNWATCH cannot be part of an interactive transaction: it is not about data; send it outside of one
        > SET a 1
        +OK
        2> SET w 1
        +OK
        > TXN.COMMIT
        :1..
        > MULTI
        +OK
        > EXEC
        (nil array)
        "#,
    );
}

#[test]
fn an_index_that_takes_the_name_of_a_key_is_a_change() {
    check_conflicts(
        r#"
        # holdfast only
        > TXN.BEGIN
        +OK
        > SET txn:idx 1
        +OK
        2> IDX.CREATE txn:idx PREFIX 1 txn:record: FIELD at
        +OK
        > TXN.COMMIT
        -CONFLICT
        > IDX.DROP txn:idx
        *
        "#,
    );
}
