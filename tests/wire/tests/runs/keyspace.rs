//! Runs as keys: TYPE, TTL, DUMP, RENAME and their kin, notifications, transactions, scripts, memory.

use crate::events::append;
use crate::survival::readings;
use crate::{get, run_seq};
use wire::own::{check, check_dump, check_own_events, payload, start};

/// The binaries `types` and `replacing` have every command against every type.
#[test]
fn a_run_is_a_key_of_its_own_type() {
    check(
        r#"
        RUN.APPEND r k1 t d                     => *
        TYPE r                                  => +run
        OBJECT ENCODING r                       => "run"
        OBJECT REFCOUNT r                       => :1
        OBJECT IDLETIME r                       => :0..60
        MEMORY USAGE r                          => :60..2000
        SET s x                                 => +OK
        SCAN 0 TYPE run COUNT 1000              => ["0", ["r"]]
        SCAN 0 TYPE string COUNT 1000           => ["0", ["s"]]
        DEL r                                   => :1
        RUN.APPEND "" k1 t d                    => ["runSeq", :1, ...]
        RUN.APPEND "k\r\n\x00\xff" k1 t d       => ["runSeq", :1, ...]
        RUN.EVENTS "k\r\n\x00\xff"              => [["runId", "k\r\n\x00\xff", ...]]
        // An append keeps the deadline.
        RUN.APPEND r k1 t d                     => *
        TTL r                                   => :-1
        EXPIRE r 100                            => :1
        RUN.APPEND r k2 t d                     => ["runSeq", :2, ...]
        RUN.APPEND r k2 t d                     => ["runSeq", :2, ...]
        TTL r                                   => :99..100
        PERSIST r                               => :1
        TTL r                                   => :-1
        PEXPIRE r 1                             => :1
        # eventually
        > EXISTS r
        :0
        RUN.APPEND r k2 t d IFLAST 0            => ["runSeq", :1, "idempotent", :0, "persisted", :1, ...]
        TTL r                                   => :-1
        "#,
    );
}

#[test]
fn events_move_with_the_run() {
    check(
        r#"
        RUN.APPEND a k1 RunStarted d1 EVENTID e1     => *
        RUN.APPEND a k2 StepStarted d2 EVENTID e2 STEP s => *
        EXPIRE a 100                                 => :1
        RENAME a b                                   => +OK
        RUN.EVENTS a                                 => []
        > RUN.EVENTS b
        [["runId", "b", "runSeq", :1, "eventId", "e1", ...], ["runId", "b", "runSeq", :2, "eventId", "e2", ...]]
        TTL b                         => :99..100
        RUN.APPEND b k1 RunStarted d1 => ["runSeq", :1, "idempotent", :1, ...]
        COPY b c                      => :1
        RUN.APPEND c k3 RunPaused d3  => ["runSeq", :3, "idempotent", :0, ...]
        > RUN.SNAPSHOT c
        ["runId", "c", "status", "paused", "lastEventSeq", :3, *, *, *, *, "steps", ["s", ["status", "running", ...]], "data", "d3"]
        > RUN.SNAPSHOT b
        ["runId", "b", "status", "running", "lastEventSeq", :2, *, *, *, *, "steps", ["s", ["status", "running", ...]], "data", "d1"]
        RUN.APPEND b k3 other other    => ["runSeq", :3, "idempotent", :0, ...]
        MOVE b 3                       => :1
        SELECT 3                       => +OK
        RUN.APPEND b k2 StepStarted d2 => ["runSeq", :2, "idempotent", :1, ...]
        TTL b                          => :99..100
        > RUN.APPEND b k4 t d IFLAST 3
        ["runSeq", :4, "idempotent", :0, ...]
        "#,
    );
}

#[test]
fn a_dump_restores_everything() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    for (name, events, len) in [("short", 1, 5), ("several", 30, 40), ("many", 1_000, 60), ("wide", 3, 100_000)] {
        for number in 0..events {
            let data = number.to_string().repeat(len);
            let (key, step) = (format!("{number:064x}"), format!("s{}", number % 500));
            let kind = ["StepStarted", "RunStarted", "StepCompleted", "custom"][number % 4];
            connection.queue(&["RUN.APPEND", name, &key, kind, &data, "STEP", &step]);
        }
        (0..events).for_each(|_| drop(connection.read()));
        check_dump(&mut connection, name, &readings(name));
        let known = connection.run(&format!("RUN.APPEND {name} {:064x} t d", events / 2));
        assert_eq!(run_seq(&known) as usize, events / 2 + 1);
        let next = connection.run(&format!("RUN.APPEND {name} next t d IFLAST {events}"));
        assert_eq!((run_seq(&next) as usize, get(&next, "persisted").integer()), (events + 1, 1));
    }
}

/// Payloads whose checksum is right and whose image is not. They were made by hand.
#[test]
fn payloads_are_not_trusted() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let mut restore = |image: &[u8]| {
        connection.run("DEL r");
        connection.run_args(&[b"RESTORE" as &[u8], b"r", b"0", &payload(6, image)]).to_string()
    };
    let key_of_digits = [&b"\x00\x40"[..], &[b'0'; 64], b"\x01e\x01td"].concat();
    for (event, why) in [
        (&b""[..], "an event without anything"),
        (b"\x00", "no key"),
        (b"\x00\x05k", "a key that is cut off"),
        (b"\x00\x01k\x01e", "no type"),
        (b"\x08\x01k\x01e\x01t", "no step"),
        (b"\x80\x40\x01k\x01e\x01td", "a part that there is not"),
        (b"\x80\x20\x01k\x01e\x01t\x02\x01nd", "an attribute without a value"),
        (b"\x80\x20\x01k\x01e\x01t\x03\x01n\x05d", "an attribute that is cut off"),
        (b"\x04\x01k\x01e\x0cd", "a known type that there is not"),
        (b"\x00\x01k\x01e\x0aRunStartedd", "a known type by its name"),
        (b"\x01short\x01e\x01t", "a packed key that is cut off"),
        (&key_of_digits, "digits that are not packed"),
        (b"\x00\x01k\x2401234567-89ab-cdef-0123-456789abcdef\x01td", "an id that is not packed"),
    ] {
        let image = [b"\x00\x01\x05", &[event.len() as u8][..], event].concat();
        assert_eq!(restore(&image), "-ERR Bad data format", "{why}");
    }
    const MAX: &[u8] = b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
    const EVENT: &[u8] = b"\x08\x00\x01k\x01e\x01td";
    let other =
        [b"\x01", &EVENT.iter().map(|byte| if *byte == b'k' { b'l' } else { *byte }).collect::<Vec<u8>>()[..]].concat();
    for image in [
        &b""[..],
        b"\x00",
        b"\x00\x00",
        &[b"\x01\x01\x05", EVENT].concat(),
        &[b"\x00\x01\x05", EVENT, b"!"].concat(),
        &[b"\x00\x02\x05", EVENT].concat(),
        &[b"\x00\xff\xff\xff\xff\x0f\x05", EVENT].concat(),
        &[b"\x00\x02", MAX, EVENT, &other].concat(),
        &[&b"\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"[..], EVENT].concat(),
        b"\x00\x01\x05\xff\xff\xff\xff\x0fkkkkkkkkkkkkkkkkkkkkkkkkkkkkk",
    ] {
        assert_eq!(restore(image), "-ERR Bad data format", "{}", image.escape_ascii());
    }
    // The latest time that there can be, and a key twice: the second event is left out.
    let latest = [b"\x00\x02", MAX, EVENT, b"\x00", EVENT].concat();
    assert_eq!(restore(&latest), "+OK");
    let events = "[[\"runId\", \"r\", \"runSeq\", :1, \"eventId\", \"e\", \"eventType\", \"t\", \"eventData\", \"d\", \
                  \"idempotencyKey\", \"k\", \"emittedAt\", \"9223372036854775807\", \"persistedAt\", :9223372036854775807]]";
    assert_eq!(connection.run("RUN.EVENTS r").to_string(), events);
    let next = connection.run("RUN.APPEND r l t d");
    assert_eq!((run_seq(&next), get(&next, "persistedAt").integer()), (2, i64::MAX));
    assert_eq!(connection.run("RUN.EVENTS r").items().len(), 2);
}

#[test]
fn changes_are_told_and_nothing_else() {
    check_own_events(
        r#"
        RUN.APPEND r k1 t d => new r, run.append r
        RUN.APPEND r k2 t d => run.append r
        RUN.APPEND r k2 t d =>
        RUN.APPEND r k1 other other =>
        RUN.APPEND r k3 t d IFLAST 1 =>
        RUN.APPEND r k3 t d IFLAST 2 => run.append r
        RUN.APPEND nosuch k t d IFLAST 1 =>
        RUN.EVENTS r =>
        RUN.EVENTS nosuch => keymiss nosuch
        RUN.SNAPSHOT nosuch => keymiss nosuch
        RUN.PROJECT nosuch => keymiss nosuch
        RUN.INFO nosuch => keymiss nosuch
        RUN.SNAPSHOT r =>
        RUN.PROJECT r =>
        RUN.INFO r =>
        RUN.LIST =>
        EXPIRE r 100 => expire r
        RUN.APPEND r k4 t d => run.append r
        DEL r => del r
        "#,
    );
}

#[test]
fn the_class_of_the_event_is_d() {
    check(
        r#"
        # config notify-keyspace-events Kd
        2> PSUBSCRIBE *
        ["psubscribe", "*", :1]
        RUN.APPEND r k t d => *
        2< ["pmessage", "*", "__keyspace@0__:r", "run.append"]
        # config notify-keyspace-events KEghzsxt$l
        RUN.APPEND r k2 t d => *
        2> PING
        ["pong", ""]
        "#,
    );
}

#[test]
fn runs_work_in_transactions_and_scripts() {
    check(
        r#"
        MULTI                               => +OK
        RUN.APPEND r k1 RunStarted d        => +QUEUED
        RUN.APPEND r k1 RunStarted d        => +QUEUED
        RUN.APPEND r k2 t d IFLAST 7        => +QUEUED
        RUN.EVENTS r AFTER 1 BLOCK 0        => +QUEUED
        RUN.EVENTS nosuch BLOCK 0           => +QUEUED
        RUN.EVENTS r AFTER 2 BLOCK 0        => +QUEUED
        RUN.INFO r                          => +QUEUED
        RUN.LIST                            => +QUEUED
        > EXEC
        [["runSeq", :1, "idempotent", :0, ...], ["runSeq", :1, "idempotent", :1, ...], ["runSeq", :1, "idempotent", :0, "persisted", :0, ...], [], [],
         -"ERR the run has been made anew: its last runSeq is 1, and AFTER is 2; read it again from AFTER 0", ["runId", "r", "status", "running", ...], ["0", ["r"]]]
        > EVAL "return redis.call('run.append', KEYS[1], ARGV[1], 't', 'd')" 1 r k2
        ["runSeq", :2, "idempotent", :0, "persisted", :1, ...]
        EVAL "return redis.call('run.events', KEYS[1], 'AFTER', 2, 'BLOCK', 0)" 1 r => []
        EVAL "return redis.call('run.events', KEYS[1], 'AFTER', 1)[1][10]" 1 r => "d"
        EVAL "return redis.call('run.snapshot', KEYS[1])[4]" 1 r => "running"
        EVAL "redis.setresp(3) return redis.call('run.project', KEYS[1]).map.lastEventSeq" 1 r => :2
        > EVAL_RO "return redis.call('run.append', KEYS[1], 'k9', 't', 'd')" 1 r
        ~-ERR Write commands are not allowed from read-only scripts.*
        WATCH r => +OK
        2> RUN.APPEND r k2 t d
        ["runSeq", :2, "idempotent", :1, ...]
        MULTI               => +OK
        RUN.APPEND r k3 t d => +QUEUED
        EXEC                => [["runSeq", :3, ...]]
        WATCH r             => +OK
        2> RUN.APPEND r k4 t d
        ["runSeq", :4, "idempotent", :0, ...]
        MULTI               => +OK
        RUN.APPEND r k5 t d => +QUEUED
        > EXEC
        (nil array)
        "#,
    );
}

#[test]
fn runs_work_in_interactive_transactions() {
    check(
        r#"
        RUN.APPEND r k1 t d                  => *
        TXN.BEGIN                            => +OK
        RUN.APPEND r k2 RunStarted d2 STEP s => ["runSeq", :2, "idempotent", :0, "persisted", :1, ...]
        RUN.APPEND r k2 RunStarted d2        => ["runSeq", :2, "idempotent", :1, ...]
        RUN.EVENTS r AFTER 1 BLOCK 0         => [["runId", "r", "runSeq", :2, ...]]
        RUN.EVENTS r AFTER 2 BLOCK 0         => []
        RUN.SNAPSHOT r                       => ["runId", "r", "status", "running", "lastEventSeq", :2, ...]
        RUN.PROJECT r UPTO 1                 => ["runId", "r", "status", "pending", "lastEventSeq", :1, ...]
        RUN.LIST                             => ~-ERR *
        2> RUN.EVENTS r
        [["runId", "r", "runSeq", :1, ...]]
        TXN.COMMIT => :1..
        2> RUN.EVENTS r
        [["runId", "r", "runSeq", :1, ...], ["runId", "r", "runSeq", :2, ...]]
        2> RUN.SNAPSHOT r
        ["runId", "r", "status", "running", "lastEventSeq", :2, ...]
        TXN.BEGIN           => +OK
        RUN.APPEND r k3 t d => ["runSeq", :3, ...]
        2> RUN.APPEND r k4 t d
        ["runSeq", :3, "idempotent", :0, ...]
        TXN.COMMIT          => ~-CONFLICT *
        TXN.BEGIN           => +OK
        RUN.APPEND r k5 t d => ["runSeq", :4, ...]
        TXN.ROLLBACK        => +OK
        RUN.INFO r          => ["runId", "r", "status", "running", "events", :3, ...]
        > RUN.APPEND r k5 t d
        ["runSeq", :4, "idempotent", :0, ...]
        "#,
    );
}

#[test]
fn a_tracking_client_learns_of_a_new_event() {
    check(
        r#"
        HELLO 3             => *
        CLIENT TRACKING on  => +OK
        RUN.APPEND r k1 t d => *
        RUN.SNAPSHOT r      => *
        2> RUN.APPEND r k1 t d
        *
        2> RUN.APPEND r k2 t d
        *
        1< push["invalidate", ["r"]]
        RUN.EVENTS r => *
        2> RUN.APPEND r k3 t d
        *
        1< push["invalidate", ["r"]]
        "#,
    );
}

/// Also under a policy that evicts: an append is refused, and what is there stays.
#[test]
fn a_run_is_never_evicted() {
    check(
        r#"
        RUN.APPEND r k1 t d => *
        EXPIRE r 1000       => :1
        # config maxmemory-policy allkeys-lru
        # config maxmemory 1
        RUN.APPEND r k2 t d   => -OOM command not allowed when used memory > 'maxmemory'.
        RUN.APPEND new k2 t d => -OOM command not allowed when used memory > 'maxmemory'.
        RUN.EVENTS r          => [["runId", "r", "runSeq", :1, ...]]
        # config maxmemory-policy volatile-ttl
        RUN.APPEND r k2 t d => -OOM command not allowed when used memory > 'maxmemory'.
        RUN.INFO r          => ["runId", "r", "status", "pending", "events", :1, ...]
        # config maxmemory 0
        > RUN.APPEND r k2 t d
        ["runSeq", :2, ...]
        "#,
    );
}

#[test]
fn memory_grows_with_the_events_and_is_freed_with_the_run() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let usage = |connection: &mut wire::Connection| connection.run("MEMORY USAGE r SAMPLES 0").integer();
    append(&mut connection, "r", 1, 1);
    let one = usage(&mut connection);
    append(&mut connection, "r", 2, 10_000);
    let many = usage(&mut connection);
    // Key, type and data take a dozen bytes of each, its id 16.
    assert!(many > 10_000 * 24 && many < 10_000 * 100, "{one} bytes, then {many}");
    assert_eq!(connection.run("DEL r").integer(), 1);
    append(&mut connection, "r", 1, 1);
    assert_eq!(usage(&mut connection), one);
}
