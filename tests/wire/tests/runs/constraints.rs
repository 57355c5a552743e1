//! The constraints that the design of runs calls normative, each as a test: uniqueness, order, append only, idempotency,
//! and what a reader with a watermark sees.

use crate::events::{append, numbers};
use crate::{check, get, run_seq, start};
use std::collections::BTreeSet;
use wire::Random;

#[test]
fn a_run_seq_is_unique_and_strictly_increasing_without_gaps() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    let mut last = [0; 3];
    for number in 0..3_000 {
        let run = random.below(3);
        // Refused and repeated appends in between take no number.
        match random.below(4) {
            0 => drop(connection.run(&format!("RUN.APPEND r{run} k{number} t d IFLAST {}", last[run] + 1))),
            1 => drop(connection.run(&format!("RUN.APPEND r{run} * t d STEP '|'"))),
            2 if last[run] > 0 => {
                let known = 1 + random.below(last[run]);
                let reply = connection.run(&format!("RUN.APPEND r{run} number-{known} t d"));
                assert_eq!(run_seq(&reply) as usize, known);
            }
            _ => {
                last[run] += 1;
                let reply = connection.run(&format!("RUN.APPEND r{run} number-{} t d", last[run]));
                assert_eq!(run_seq(&reply) as usize, last[run]);
            }
        }
    }
    for (run, last) in last.into_iter().enumerate() {
        let events = connection.run(&format!("RUN.EVENTS r{run} LIMIT 10000"));
        assert_eq!(numbers(&events), (1..=last as i64).collect::<Vec<i64>>());
    }
}

#[test]
fn an_idempotency_key_is_unique_within_its_run() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    for _ in 0..4_000 {
        let (run, key) = (random.below(2), random.below(500));
        connection.run(&format!("RUN.APPEND r{run} k{key} t d"));
    }
    for run in 0..2 {
        let events = connection.run(&format!("RUN.EVENTS r{run} LIMIT 10000"));
        let keys: BTreeSet<&str> = events.items().iter().map(|event| get(event, "idempotencyKey").text()).collect();
        assert_eq!(keys.len(), events.items().len());
        assert!(keys.len() > 400, "the same keys in both runs");
    }
}

#[test]
fn a_duplicate_returns_the_existing_run_seq_and_does_not_fail() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    append(&mut connection, "r", 1, 1_000);
    let before = connection.run("RUN.EVENTS r LIMIT 10000");
    for _ in 0..2_000 {
        let known = 1 + random.below(1_000);
        let (event_type, data) = (random.pick(&["t", "other"]), random.pick(&["", "x"]));
        let reply = connection.run(&format!("RUN.APPEND r k{known} {event_type} d{known}{data} STEP new EVENTID new"));
        let first = &before.items()[known - 1];
        assert_eq!(run_seq(&reply) as usize, known);
        assert_eq!((get(&reply, "idempotent").integer(), get(&reply, "persisted").integer()), (1, 0));
        assert_eq!(get(&reply, "mismatch").integer() == 1, event_type == "other" || data == "x");
        assert_eq!(get(&reply, "eventId"), get(first, "eventId"));
        assert_eq!(get(&reply, "persistedAt"), get(first, "persistedAt"));
    }
    assert_eq!(connection.run("RUN.EVENTS r LIMIT 10000"), before);
}

/// Whatever a client sends, an event that is there stays as it is, at its place. Only the whole run can go.
#[test]
fn no_command_edits_or_removes_a_single_event() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    append(&mut connection, "r", 1, 20);
    let before = connection.run("RUN.EVENTS r");
    for command in [
        "HSET r 1 x",
        "HDEL r 1",
        "SETRANGE r 0 x",
        "APPEND r x",
        "INCR r",
        "SETBIT r 0 1",
        "GETDEL r",
        "GETEX r",
        "GETSET r x",
        "SADD r x",
        "SREM r x",
        "SPOP r",
        "ZADD r 1 x",
        "ZREM r x",
        "ZPOPMIN r",
        "ZREMRANGEBYRANK r 0 -1",
        "HCAS r f a b",
        "CELL.SET r x",
        "CELL.INIT r x",
        "CELL.CAS r 20 x",
        "CELL.DEL r",
        "SMOVE r other x",
        "HINCRBY r f 1",
        "PFADD r x",
        "XADD r * f v",
        "XDEL r 1",
        "XTRIM r MAXLEN 0",
        "LPOP r",
        "RUN.APPEND r k1 t other",
        "RUN.APPEND r new t d IFLAST 3",
        "RUN.APPEND r '' t d",
        "RUN.DEL r 1",
        "RUN.TRIM r 1",
        "RUN.SET r 1 x",
        "MSETNX r x other x",
        "SET r x NX",
        "RENAMENX r r",
        "COPY nosuch r",
        "SETEX r 0 x",
    ] {
        connection.run(command);
        assert_eq!(connection.run("RUN.EVENTS r"), before, "{command}");
    }
    // Every command of the server that is about runs is known here: a new one that edits would have to be judged.
    let mut commands: Vec<String> = connection
        .run("COMMAND LIST FILTERBY PATTERN run.*")
        .items()
        .iter()
        .map(|name| name.text().to_owned())
        .collect();
    commands.sort();
    assert_eq!(commands, ["run.append", "run.events", "run.info", "run.list", "run.project", "run.snapshot"]);
}

#[test]
fn a_whole_run_can_go_and_begins_anew_at_1() {
    for gone in ["DEL r", "UNLINK r", "PEXPIRE r 0", "RENAME r x", "MOVE r 1", "FLUSHDB", "FLUSHALL", "SWAPDB 0 1"] {
        check(&format!(
            r#"
            > RUN.APPEND r k1 t d
            > RUN.APPEND r k2 t d
            *
            *
            > {gone}
            *
            > RUN.EVENTS r
            []
            > RUN.EVENTS r AFTER 2
            []
            > RUN.SNAPSHOT r
            (nil)
            > RUN.INFO r
            (nil)
            > RUN.APPEND r k2 t d
            ["runSeq", :1, "idempotent", :0, "persisted", :1, ...]
            > RUN.EVENTS r AFTER 2
            -ERR the run has been made anew: its last runSeq is 1, and AFTER is 2; read it again from AFTER 0
            > RUN.EVENTS r
            [["runId", "r", "runSeq", :1, *, *, *, *, *, *, "idempotencyKey", "k2", ...]]
            "#
        ));
    }
}

#[test]
fn events_are_in_order_and_after_is_strictly_greater() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    append(&mut connection, "r", 1, 700);
    for after in (0..=700).step_by(7) {
        let events = connection.run(&format!("RUN.EVENTS r AFTER {after}"));
        assert_eq!(numbers(&events), (after + 1..=700).collect::<Vec<i64>>());
        for event in events.items().iter().take(2) {
            assert_eq!(get(event, "eventData").text(), format!("d{}", run_seq(event)));
        }
    }
}

#[test]
fn limit_0_is_empty_negative_is_an_error_and_the_default_is_1000() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    append(&mut connection, "r", 1, 1_001);
    assert_eq!(connection.run("RUN.EVENTS r LIMIT 0").to_string(), "[]");
    assert!(connection.run("RUN.EVENTS r LIMIT -1").is_error());
    assert_eq!(connection.run("RUN.EVENTS r").items().len(), 1_000);
    assert_eq!(connection.run("RUN.EVENTS r LIMIT 1001").items().len(), 1_001);
}

/// `persistedAt` is the server's and does not go back along a run; `emittedAt` is the caller's, whatever it says.
#[test]
fn persisted_at_is_the_servers_and_emitted_at_the_callers() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    for (number, emitted_at) in
        ["2020-01-01T00:00:00Z", "1", "not a time", "9999-12-31T23:59:59.999Z"].iter().enumerate()
    {
        connection.run_args(&["RUN.APPEND", "r", &format!("k{number}"), "t", "d", "EMITTEDAT", emitted_at]);
    }
    append(&mut connection, "r", 5, 400);
    let events = connection.run("RUN.EVENTS r");
    let emitted: Vec<&str> = events.items()[..4].iter().map(|event| get(event, "emittedAt").text()).collect();
    assert_eq!(emitted, ["2020-01-01T00:00:00Z", "1", "not a time", "9999-12-31T23:59:59.999Z"]);
    let times: Vec<i64> = events.items().iter().map(|event| get(event, "persistedAt").integer()).collect();
    assert!(times.is_sorted() && times[0] > 1_700_000_000_000, "{times:?}");
}
