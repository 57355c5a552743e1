//! TXN.BEGIN READONLY: cells as they were at one instant, beside writers with which it never conflicts.

use crate::check;

#[test]
fn it_reads_cells_as_they_were() {
    check(
        r#"
        ! CELL.SET a 1
        ! CELL.SET a 2
        ! CELL.SET gone x
        ! CELL.SET same s
        ! TXN.BEGIN READONLY
        2! MULTI
        2! CELL.SET a 3
        2! CELL.DEL gone
        2! CELL.SET new 1
        2> EXEC
        [:3, :1, :1]
        CELL.GET a => "2"
        CELL.GETV a VERSION 3 => (nil)
        CELL.GETV a AFTER 2 => (nil)
        CELL.HISTORY a => [["2", :2, :1..], ["1", :1, :1..]]
        CELL.MGET a gone new same => [["2", :2, :1..], ["x", :1, :1..], (nil), ["s", :1, :1..]]
        CELL.LIST PREFIX gone => ["0", ["gone"]]
        CELL.LIST PREFIX new => ["0", []]
        2! FLUSHALL
        > CELL.MGET a gone new same
        [["2", :2, :1..], ["x", :1, :1..], (nil), ["s", :1, :1..]]
        ! TXN.COMMIT
        > CELL.MGET a gone new same
        [(nil), (nil), (nil), (nil)]
        "#,
    );
}

#[test]
fn time_stands_still_in_it() {
    check(
        r#"
        ! CELL.SET a 1 PX 1000
        ! CELL.SET b 1
        ! TXN.BEGIN READONLY
        2! CELL.SET b 2 PX 1
        # eventually
        2> EXISTS a b
        :0
        CELL.GET a => "1"
        CELL.GET b => "1"
        ! TXN.ROLLBACK
        CELL.GET a => (nil)
        "#,
    );
}

#[test]
fn its_database_may_be_swapped() {
    check(
        r#"
        ! CELL.SET a 1
        ! TXN.BEGIN READONLY
        2! SWAPDB 0 3
        2! CELL.SET a other
        > CELL.GET a
        "1"
        2! SELECT 3
        2! CELL.SET a 2
        > CELL.GET a
        "1"
        > CELL.LIST
        ["0", ["a"]]
        ! TXN.COMMIT
        > CELL.GET a
        "other"
        "#,
    );
}

#[test]
fn it_has_only_commands_that_read_cells() {
    check(
        r#"
        ! CELL.SET a 1
        ! SET s 1
        TXN.BEGIN READ => ~-ERR unknown option 'READ'. *
        TXN.BEGIN READONLY READONLY => ~-ERR *
        ! TXN.BEGIN READONLY
        > GET s
        -ERR GET cannot be part of a read-only transaction: it has only CELL.GET, CELL.GETV, CELL.MGET, CELL.HISTORY and CELL.LIST; end it, or begin one without READONLY
        CELL.SET a 2 => ~-ERR CELL.SET cannot be part of a read-only transaction: *
        EVAL "return 1" 0 => ~-ERR EVAL cannot be part of a read-only transaction: *
        EXISTS a => ~-ERR EXISTS cannot be part of a read-only transaction: *
        SCAN 0 => ~-ERR SCAN cannot be part of an interactive transaction: its keys are not all arguments*
        TXN.BEGIN READONLY => ~-ERR TXN.BEGIN cannot be part of an interactive transaction: *
        > CELL.GETV a AFTER 1 BLOCK 10
        -ERR BLOCK cannot wait in a read-only transaction, which sees no new version: leave it out
        CELL.GET s => ~-WRONGTYPE *
        PING => +PONG
        CELL.GET a => "1"
        ! TXN.COMMIT
        "#,
    );
}

#[test]
fn what_cannot_be_kept_is_a_conflict() {
    check(
        r#"
        # config txn-max-bytes 1024
        ! CELL.SET a 1
        ! CELL.SET b 1
        ! TXN.BEGIN READONLY
        2! CELL.SET a 2
        > CELL.GET a
        "1"
        2! EVAL "for i = 1, 20 do redis.call('CELL.SET', 'n' .. i, 1) end" 0
        > CELL.GET b
        -CONFLICT cells that changed since TXN.BEGIN READONLY could not be kept for this transaction: begin a new one, keep it shorter, or raise txn-max-bytes
        PING => ~-CONFLICT *
        TXN.COMMIT => ~-CONFLICT *
        CELL.GET a => "2"
        "#,
    );
}

#[test]
fn it_ends_after_its_time() {
    check(
        r#"
        # config txn-timeout 50
        ! CELL.SET a 1
        ! TXN.BEGIN READONLY
        # eventually
        > CELL.GET a
        -ERR the transaction was open for more than 50 ms (txn-timeout) and was rolled back: begin a new one
        ! TXN.ROLLBACK
        "#,
    );
}

#[test]
fn a_caching_client_does_not_keep_what_it_reads_in_it() {
    check(
        r#"
        ! HELLO 3
        ! CLIENT TRACKING ON
        ! CELL.SET a 1
        ! TXN.BEGIN READONLY
        2! CELL.SET a 2
        > CELL.GET a
        "1"
        push["invalidate", ["a"]]
        ! TXN.COMMIT
        "#,
    );
}
