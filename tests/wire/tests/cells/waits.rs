//! CELL.GETV … AFTER v BLOCK ms: a watch on a cell.

use wire::own::check;

#[test]
fn what_is_newer_is_there_at_once() {
    check(
        r#"
        CELL.SET a v                     => :1
        CELL.SET a w                     => :2
        CELL.GETV a AFTER 1 BLOCK 0      => ["w", :2, *]
        CELL.GETV a block 0 after 0      => ["w", :2, *]
        CELL.GETV nosuch AFTER 1 BLOCK 0 => (nil)
        CELL.GETV a AFTER 2 BLOCK 5      => (nil)
        CELL.GETV nosuch AFTER 0 BLOCK 5 => (nil)
        HELLO 3                          => *
        CELL.GETV a AFTER 2 BLOCK 5      => _
        # until blocked_clients:0
        "#,
    );
}

#[test]
fn all_watchers_learn_of_a_newer_version() {
    check(
        r#"
        CELL.SET a v => :1
        2> CELL.GETV a AFTER 1 BLOCK 0
        3> CELL.GETV a AFTER 1 BLOCK 100000
        4> CELL.GETV a AFTER 2 BLOCK 0
        # until blocked_clients:3
        CELL.CAS a 1 w => :2
        2< ["w", :2, *]
        3< ["w", :2, *]
        # until blocked_clients:1
        CELL.CAS a 1 x => (nil)
        CELL.SET a x   => :3
        4< ["x", :3, *]
        # until blocked_clients:0
        "#,
    );
}

#[test]
fn a_missing_cell_is_waited_for() {
    check(
        r#"
        2> CELL.GETV a AFTER 0 BLOCK 0
        # until blocked_clients:1
        SET a string  => +OK
        DEL a         => :1
        CELL.INIT a v => :1
        2< ["v", :1, *]
        CELL.DEL a => :1
        2> CELL.GETV a AFTER 0 BLOCK 0
        # until blocked_clients:1
        CELL.SET other o => :1
        CELL.SET other p => :2
        RENAME other a   => +OK
        2< ["p", :2, *]
        "#,
    );
}

#[test]
fn a_cell_that_goes_ends_the_wait() {
    for gone in [
        "CELL.DEL a",
        "DEL a",
        "UNLINK a",
        "FLUSHALL",
        "FLUSHDB",
        "EVAL \"redis.call('del', KEYS[1]) return redis.call('set', KEYS[1], 'string')\" 1 a",
        "RENAME a b",
        "MOVE a 1",
        "PEXPIRE a 0",
        "SWAPDB 0 1",
        "EVAL \"redis.call('del', KEYS[1]) return redis.call('cell.init', KEYS[1], 'again')\" 1 a",
    ] {
        check(&format!(
            r#"
            CELL.SET a v => :1
            CELL.SET a w => :2
            2> CELL.GETV a AFTER 2 BLOCK 0
            3> CELL.GETV a AFTER 7 BLOCK 0
            # until blocked_clients:2
            > {gone}
            *
            2< (nil)
            3< (nil)
            # until blocked_clients:0
            "#
        ));
    }
}

#[test]
fn a_cell_that_expires_ends_the_wait() {
    check(
        r#"
        CELL.SET a v PX 30 => :1
        2> CELL.GETV a AFTER 1 BLOCK 0
        2< (nil)
        # until blocked_clients:0
        CELL.SET a v PX 100 => :1
        2> CELL.GETV a AFTER 1 BLOCK 0
        # until blocked_clients:1
        CELL.SET a w PERSIST => :2
        2< ["w", :2, *]
        "#,
    );
}

/// A transaction is seen at its end: in between the cell may have gone.
#[test]
fn a_transaction_is_seen_at_its_end() {
    check(
        r#"
        CELL.SET a v => :1
        2> CELL.GETV a AFTER 1 BLOCK 0
        # until blocked_clients:1
        MULTI        => +OK
        CELL.SET a 2 => +QUEUED
        CELL.SET a 3 => +QUEUED
        EXEC         => [:2, :3]
        2< ["3", :3, *]
        "#,
    );
}

#[test]
fn another_cell_in_its_place_ends_a_watch() {
    for replacement in [
        "MULTI\n> CELL.DEL a\n> CELL.SET a new\n> EXEC\n+OK\n+QUEUED\n+QUEUED\n[:1, :1]",
        "TXN.BEGIN\n> CELL.DEL a\n> CELL.CAS a NONE new\n> TXN.COMMIT\n+OK\n:1\n:1\n:1..",
        "MULTI\n> DEL a\n> RENAME b a\n> EXEC\n+OK\n+QUEUED\n+QUEUED\n[:1, +OK]",
        "MULTI\n> DEL a\n> COPY b a\n> EXEC\n+OK\n+QUEUED\n+QUEUED\n[:1, :1]",
    ] {
        check(&format!(
            "
            CELL.SET a old => :1
            CELL.SET b new => :1
            2> CELL.GETV a AFTER 1 BLOCK 0
            3> CELL.GETV a AFTER 9 BLOCK 0
            # until blocked_clients:2
            > {replacement}
            2< (nil)
            3< (nil)
            # until blocked_clients:0
            "
        ));
    }
}
