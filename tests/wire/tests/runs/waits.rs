//! RUN.EVENTS … BLOCK: readers that wait for the next event.

use crate::events::{append, numbers};
use crate::get;
use std::thread;
use wire::own::{check, start, wait_for_blocked};

#[test]
fn what_is_there_is_returned_at_once() {
    check(
        r#"
        RUN.APPEND r k1 t d => *
        RUN.APPEND r k2 t d => *
        > RUN.EVENTS r BLOCK 0
        [["runId", "r", "runSeq", :1, ...], ["runId", "r", "runSeq", :2, ...]]
        RUN.EVENTS r block 0 after 1         => [["runId", "r", "runSeq", :2, ...]]
        RUN.EVENTS r AFTER 0 LIMIT 1 BLOCK 0 => [["runId", "r", "runSeq", :1, ...]]
        // Nothing is wanted: there is nothing to wait for.
        RUN.EVENTS r AFTER 2 LIMIT 0 BLOCK 0 => []
        RUN.EVENTS nosuch LIMIT 0 BLOCK 0    => []
        RUN.EVENTS r AFTER 2 BLOCK 5         => []
        RUN.EVENTS nosuch BLOCK 5            => []
        RUN.EVENTS nosuch AFTER 3 BLOCK 5    => []
        HELLO 3                              => *
        RUN.EVENTS r AFTER 2 BLOCK 5         => []
        # until blocked_clients:0
        "#,
    );
}

#[test]
fn all_readers_get_the_next_event() {
    check(
        r#"
        RUN.APPEND r k1 t d => *
        2> RUN.EVENTS r AFTER 1 BLOCK 0
        3> HELLO 3
        *
        3> RUN.EVENTS r AFTER 1 BLOCK 100000 LIMIT 5
        4> RUN.EVENTS other BLOCK 0
        # until blocked_clients:3
        // What is no new event wakes no reader.
        RUN.APPEND r k1 t d          => ["runSeq", :1, "idempotent", :1, ...]
        RUN.APPEND r k2 t d IFLAST 0 => ["runSeq", :1, "idempotent", :0, "persisted", :0, ...]
        EXPIRE r 1000                => :1
        SET another x                => +OK
        # until blocked_clients:3
        RUN.APPEND r k2 t d2 => ["runSeq", :2, ...]
        2< [["runId", "r", "runSeq", :2, *, *, *, *, "eventData", "d2", ...]]
        3< [{"runId" => "r", "runSeq" => :2, "eventId" => *, "eventType" => "t", "eventData" => "d2", "idempotencyKey" => "k2", "emittedAt" => *, "persistedAt" => *}]
        # until blocked_clients:1
        RUN.APPEND other k t d => *
        4< [["runId", "other", "runSeq", :1, ...]]
        # until blocked_clients:0
        "#,
    );
}

#[test]
fn a_missing_run_is_waited_for() {
    for made in [
        "RUN.APPEND r k t d",
        "RENAME other r",
        "COPY other r",
        "EVAL \"return redis.call('run.append', KEYS[1], 'k', 't', 'd')\" 1 r",
        "SWAPDB 0 1",
    ] {
        check(&format!(
            r#"
            RUN.APPEND other k t d => *
            COPY other r DB 1      => :1
            2> RUN.EVENTS r BLOCK 0
            3> RUN.EVENTS r AFTER 0 BLOCK 0
            # until blocked_clients:2
            SET r string => +OK
            DEL r        => :1
            > {made}
            *
            2< [["runId", "r", "runSeq", :1, ...]]
            3< [["runId", "r", "runSeq", :1, ...]]
            # until blocked_clients:0
            "#
        ));
    }
}

/// Whatever makes a run anew ends the wait of a reader whose watermark is of the run before, with an error: it would wait
/// for ever, or miss the first events.
#[test]
fn a_run_that_is_made_anew_ends_the_wait_with_an_error() {
    for (replacement, last) in [
        ("DEL r\n> RUN.APPEND r k t d\n:1\n*", 1),
        ("MULTI\n> DEL r\n> RUN.APPEND r k t d\n> RUN.APPEND r k2 t d\n> EXEC\n+OK\n+QUEUED\n+QUEUED\n+QUEUED\n*", 2),
        ("MULTI\n> DEL r\n> RENAME b r\n> EXEC\n+OK\n+QUEUED\n+QUEUED\n[:1, +OK]", 2),
        ("MULTI\n> DEL r\n> COPY b r\n> EXEC\n+OK\n+QUEUED\n+QUEUED\n[:1, :1]", 2),
        ("SWAPDB 0 1\n+OK", 2),
        ("TXN.BEGIN\n> DEL r\n> RUN.APPEND r k t d\n> TXN.COMMIT\n+OK\n:1\n*\n:1..", 1),
    ] {
        let how = match last {
            1 => ": its last runSeq is 1, and AFTER is 2; read it again from AFTER 0",
            _ => " while it was waited for: read it again from AFTER 0",
        };
        check(&format!(
            r#"
            RUN.APPEND r k t d  => *
            RUN.APPEND r k2 t d => *
            RUN.APPEND b k t d  => *
            RUN.APPEND b k2 t d => *
            COPY b r DB 1       => :1
            2> RUN.EVENTS r AFTER 2 BLOCK 0
            # until blocked_clients:1
            > {replacement}
            2< -ERR the run has been made anew{how}
            # until blocked_clients:0
            > RUN.EVENTS r AFTER 0 LIMIT 1
            [["runId", "r", "runSeq", :1, ...]]
            "#
        ));
    }
}

/// A copy is another run, though it began with the same events.
#[test]
fn a_copy_that_takes_the_place_of_a_run_ends_the_wait_with_an_error() {
    check(
        r#"
        RUN.APPEND r k1 t d       => *
        COPY r copy               => :1
        RUN.APPEND r k2 t d       => *
        RUN.APPEND copy other t d => *
        2> RUN.EVENTS r AFTER 2 BLOCK 0
        # until blocked_clients:1
        MULTI         => +OK
        DEL r         => +QUEUED
        RENAME copy r => +QUEUED
        EXEC          => [:1, +OK]
        2< -ERR the run has been made anew while it was waited for: read it again from AFTER 0
        "#,
    );
}

/// A reader goes on waiting while its run is gone.
#[test]
fn a_run_that_goes_keeps_its_readers() {
    for gone in ["DEL r", "UNLINK r", "FLUSHALL", "RENAME r x", "MOVE r 1", "PEXPIRE r 0"] {
        check(&format!(
            r#"
            RUN.APPEND r k t d => *
            2> RUN.EVENTS r AFTER 1 BLOCK 0
            3> RUN.EVENTS nosuch AFTER 1 BLOCK 0
            # until blocked_clients:2
            > {gone}
            *
            DEL r => *
            PING  => +PONG
            # until blocked_clients:2
            // Where 3 waits, there has been no run: its watermark may be of this one.
            RUN.APPEND nosuch k t d  => *
            RUN.APPEND nosuch k2 t d => *
            3< [["runId", "nosuch", "runSeq", :2, ...]]
            # until blocked_clients:1
            RUN.APPEND r k2 t d => *
            2< -ERR the run has been made anew while it was waited for: read it again from AFTER 0
            # until blocked_clients:0
            "#
        ));
    }
}

/// What touches a run and leaves its events as they are does not concern its readers.
#[test]
fn a_run_that_stays_keeps_its_readers() {
    for change in [
        "EXPIRE r 1000\n:1",
        "TXN.BEGIN\n> EXPIRE r 1000\n> TXN.COMMIT\n+OK\n:1\n:1..",
        "TXN.BEGIN\n> EXPIRE r 1000\n> RUN.APPEND r k t d\n> TXN.COMMIT\n+OK\n:1\n[\"runSeq\", :1, \"idempotent\", :1, ...]\n:1..",
        "TXN.BEGIN\n> RUN.APPEND r k9 t d\n> TXN.ROLLBACK\n+OK\n*\n+OK",
        "MULTI\n> RENAME r x\n> RENAME x r\n> EXEC\n+OK\n+QUEUED\n+QUEUED\n[+OK, +OK]",
        "RENAME r r\n+OK",
        "MOVE r 0\n~-ERR *",
        "BGSAVE\n*",
        "DEBUG DIGEST\n*",
    ] {
        check(&format!(
            r#"
            RUN.APPEND r k t d => *
            2> RUN.EVENTS r AFTER 1 BLOCK 0
            # until blocked_clients:1
            > {change}
            PING => +PONG
            # until blocked_clients:1
            RUN.APPEND r k2 t d => ["runSeq", :2, ...]
            2< [["runId", "r", "runSeq", :2, ...]]
            # until blocked_clients:0
            "#
        ));
    }
}

/// A transaction is seen at its end, and so is a script.
#[test]
fn a_transaction_is_seen_at_its_end() {
    check(
        r#"
        RUN.APPEND r k1 t d => *
        2> RUN.EVENTS r AFTER 1 BLOCK 0
        3> RUN.EVENTS r AFTER 1 BLOCK 0 LIMIT 1
        # until blocked_clients:2
        MULTI               => +OK
        RUN.APPEND r k2 t d => +QUEUED
        RUN.APPEND r k3 t d => +QUEUED
        EXEC                => [["runSeq", :2, ...], ["runSeq", :3, ...]]
        2< [["runId", "r", "runSeq", :2, ...], ["runId", "r", "runSeq", :3, ...]]
        3< [["runId", "r", "runSeq", :2, ...]]
        2> RUN.EVENTS r AFTER 3 BLOCK 0
        # until blocked_clients:1
        TXN.BEGIN           => +OK
        RUN.APPEND r k4 t d => ["runSeq", :4, ...]
        RUN.APPEND r k5 t d => ["runSeq", :5, ...]
        TXN.COMMIT          => :1..
        2< [["runId", "r", "runSeq", :4, ...], ["runId", "r", "runSeq", :5, ...]]
        2> RUN.EVENTS nosuch BLOCK 0
        # until blocked_clients:1
        MULTI                   => +OK
        RUN.APPEND nosuch k t d => +QUEUED
        DEL nosuch              => +QUEUED
        EXEC                    => [*, :1]
        # until blocked_clients:1
        RUN.APPEND nosuch k9 t d => *
        2< [["runId", "nosuch", "runSeq", :1, *, *, *, *, *, *, "idempotencyKey", "k9", ...]]
        "#,
    );
}

/// A reader that is served gets all that it asked for, however much one script has appended.
#[test]
fn many_events_at_once_reach_a_reader_whole() {
    let Some(session) = start() else { return };
    let (mut connection, mut reader) = (session.connect(), session.connect());
    append(&mut connection, "r", 1, 3);
    reader.queue_line("RUN.EVENTS r AFTER 3 LIMIT 100000 BLOCK 0");
    reader.queue_line("PING");
    reader.flush();
    wait_for_blocked(&mut connection, 1);
    let script = "for number = 4, 5003 do redis.call('run.append', KEYS[1], 'k' .. number, 't', 'd') end";
    connection.run_args(&["EVAL", script, "1", "r"]);
    assert_eq!(numbers(&reader.read()), (4..=5_003).collect::<Vec<i64>>());
    assert_eq!(reader.read().to_string(), "+PONG");
}

#[test]
fn a_wait_can_be_ended_by_others() {
    let Some(session) = start() else { return };
    let (mut connection, mut reader) = (session.connect(), session.connect());
    append(&mut connection, "r", 1, 1);
    for run in ["r", "nosuch"] {
        for (how, expected) in [("TIMEOUT", "[]"), ("ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK")] {
            let id = reader.run("CLIENT ID").integer();
            reader.queue_line(&format!("RUN.EVENTS {run} AFTER 1 BLOCK 0"));
            reader.flush();
            while connection.run(&format!("CLIENT UNBLOCK {id} {how}")).integer() == 0 {
                thread::yield_now();
            }
            assert_eq!(reader.read().to_string(), expected);
        }
    }
}

/// Readers come and go, many of them at once; those that stay get the event, and none is left behind.
#[test]
fn many_readers_and_some_that_leave() {
    const READERS: usize = 100;
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    append(&mut connection, "r", 1, 1);
    let mut readers: Vec<_> = (0..READERS).map(|_| session.connect()).collect();
    for (number, reader) in readers.iter_mut().enumerate() {
        reader.queue_line(["RUN.EVENTS r AFTER 1 BLOCK 0", "RUN.EVENTS new BLOCK 0"][number % 2]);
        reader.flush();
    }
    wait_for_blocked(&mut connection, READERS);
    let stay = readers.split_off(READERS / 2);
    drop(readers);
    wait_for_blocked(&mut connection, READERS / 2);
    connection.run("RUN.APPEND r k2 t d");
    connection.run("RUN.APPEND new k2 t d");
    for mut reader in stay {
        let reply = reader.read();
        assert_eq!(get(&reply.items()[0], "idempotencyKey").text(), "k2");
    }
    wait_for_blocked(&mut connection, 0);
}

/// What a reader has waited for is what it may keep: it is told of the next change, as of any key that it has read.
#[test]
fn a_client_that_caches_is_told_of_changes_after_its_wait() {
    check(
        r#"
        2> HELLO 3
        *
        2> CLIENT TRACKING ON
        +OK
        2> RUN.EVENTS r BLOCK 0
        # until blocked_clients:1
        RUN.APPEND r k1 t d => *
        2< *
        2< push["invalidate", ["r"]]
        RUN.APPEND r k2 t d => *
        2< push["invalidate", ["r"]]
        2> CELL.GETV c AFTER 0 BLOCK 0
        # until blocked_clients:1
        CELL.SET c v => :1
        2< ["v", :1, *]
        2< push["invalidate", ["c"]]
        CELL.SET c w => :2
        2< push["invalidate", ["c"]]
        "#,
    );
}
