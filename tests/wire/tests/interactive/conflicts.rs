//! A transaction whose keys were changed by another client fails, whatever it did with them.

use crate::check;

/// What there is before, what the transaction does, and what another client does then.
const CHANGES: &[(&str, &str, &str)] = &[
    ("SET a 1", "GET a", "SET a 2"),
    ("SET a 1", "GET a", "APPEND a x"),
    ("SET a 1", "GET a", "DEL a"),
    ("SET a 1", "GET a", "RENAME a b"),
    ("SET a 1", "GET a", "MOVE a 1"),
    ("SET a 1", "GET a", "EXPIRE a 100"),
    ("SET a 1", "GET a", "FLUSHALL"),
    ("SET a 1", "GET a", "FLUSHDB"),
    ("SET a 1", "GET a", "SWAPDB 0 1"),
    ("SET a 1", "EVAL \"return redis.call('get', KEYS[1])\" 1 a", "SET a 2"),
    ("PING", "SET a mine", "SET a theirs"),
    // A key that was absent has come.
    ("PING", "EXISTS a", "HSET a f v"),
    ("PING", "SET txn:idx 1", "IDX.CREATE txn:idx PREFIX 1 txn:record: FIELD at"),
];

#[test]
fn a_key_that_was_read_or_written_has_changed() {
    for (before, inside, change) in CHANGES {
        check(&format!(
            r#"
            ! {before}
            ! TXN.BEGIN
            ! {inside}
            ! SET other 1
            2! {change}
            TXN.COMMIT => -CONFLICT
            EXISTS other => :0
            ! IDX.DROP txn:idx
            "#
        ));
    }
}

#[test]
fn the_next_command_meets_the_conflict() {
    check(
        r#"
        ! MSET a 1 b 1
        ! TXN.BEGIN
        ! GET a
        2! MSET a 2 b 2
        // Not 2: that would belong to another state than 1.
        GET b => -CONFLICT
        PING => -CONFLICT
        TXN.COMMIT => -CONFLICT
        PING => +PONG
        "#,
    );
}

#[test]
fn what_others_do_to_other_keys_is_no_conflict() {
    check(
        r#"
        ! MSET a 1 b 1
        ! TXN.BEGIN
        ! GET a
        2! SET b 2
        2! GET a
        2! EXPIRE nokey 10
        2! DEL nokey
        GET b => "2"
        SET a 2 => +OK
        TXN.COMMIT => :1..
        "#,
    );
}

#[test]
fn write_skew_is_impossible() {
    check(
        r#"
        ! MSET ann on bob on
        ! TXN.BEGIN
        ! MGET ann bob
        2! TXN.BEGIN
        2! MGET ann bob
        ! SET ann off
        2! SET bob off
        ! TXN.COMMIT
        2> TXN.COMMIT
        -CONFLICT
        > MGET ann bob
        ["off", "on"]
        "#,
    );
}

#[test]
fn a_key_that_expires_has_changed_though_it_is_still_there() {
    // Its own clock: the key may have expired before the transaction meets it.
    for command in ["GET a", "APPEND a x", "PERSIST a", "RENAME a b"] {
        check(&format!(
            r#"
            ! DEBUG SET-ACTIVE-EXPIRE 0
            ! SET a 1 PX 1000
            ! TXN.BEGIN
            > {command}
            *
            # eventually
            2> PTTL a
            :-2
            TXN.COMMIT => -CONFLICT
            EXISTS b => :0
            ! DEBUG SET-ACTIVE-EXPIRE 1
            "#
        ));
    }
}

#[test]
fn a_field_that_expires_is_a_change() {
    for command in ["HGET h f", "HSET h g 2"] {
        check(&format!(
            r#"
            ! DEBUG SET-ACTIVE-EXPIRE 0
            ! HSET h f 1 g 1
            ! HPEXPIRE h 1000 FIELDS 1 f
            ! TXN.BEGIN
            ! {command}
            # eventually
            2> HPTTL h FIELDS 1 f
            [:-2]
            > PING
            -CONFLICT
            ! TXN.ROLLBACK
            // Now it has expired before the transaction sees it.
            ! TXN.BEGIN
            ! {command}
            > HGETALL h
            ["g", *]
            ! TXN.COMMIT
            ! DEBUG SET-ACTIVE-EXPIRE 1
            "#
        ));
    }
}

#[test]
fn a_deadline_of_the_transactions_own_that_passes_is_a_conflict() {
    check(
        r#"
        ! TXN.BEGIN
        ! SET a 1 PX 20
        # eventually
        > PTTL a
        -CONFLICT
        TXN.COMMIT => -CONFLICT
        ! TXN.BEGIN
        ! SET a 1 PXAT 1
        ! SET b 1
        ! TXN.COMMIT
        MGET a b => [(nil), "1"]
        "#,
    );
}

#[test]
fn a_key_that_had_expired_before_is_absent() {
    check(
        r#"
        ! DEBUG SET-ACTIVE-EXPIRE 0
        ! HSET h f 1 g 2
        ! PEXPIRE h 1
        # eventually
        > EXISTS h
        :0
        ! TXN.BEGIN
        HSET h x y => :1
        HGETALL h => ["x", "y"]
        TXN.COMMIT => :1..
        HGETALL h => ["x", "y"]
        TTL h => :-1
        ! DEBUG SET-ACTIVE-EXPIRE 1
        "#,
    );
}

/// Watches from before the transaction are apart from it; the keys that it has written change for others at its commit.
#[test]
fn a_commit_is_a_change_for_those_who_watch() {
    check(
        r#"
        ! WATCH w
        2! WATCH a
        ! TXN.BEGIN
        ! SET a 1
        // Nothing has changed yet.
        2! MULTI
        2! GET a
        2> EXEC
        [(nil)]
        2! WATCH a
        2! SET w 1
        ! TXN.COMMIT
        2! MULTI
        2! GET a
        2> EXEC
        (nil array)
        ! MULTI
        > EXEC
        (nil array)
        "#,
    );
}
