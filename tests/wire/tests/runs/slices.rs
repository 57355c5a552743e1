//! Long replies of runs are made in slices, between which other clients are served. `crates/engine/tests/slices.rs` and `databases.rs` test
//! what happens between two of them; here is what a connection does with it.

use crate::events::numbers;
use crate::get;
use wire::own::{run_all, start};
use wire::{Connection, Reply, Session};

const EVENTS: usize = 2_500;

/// Replies that are long, of a run with so many events that each begin a step.
const LONG: [&str; 3] = ["RUN.EVENTS r LIMIT 1000000", "RUN.PROJECT r", "RUN.SNAPSHOT r"];

fn filled() -> Option<(Session, Connection)> {
    let session = start()?;
    let mut connection = session.connect();
    let line = |number| format!("RUN.APPEND r k{number} StepStarted d{number} STEP s{number}");
    run_all(&mut connection, (1..=EVENTS).map(line));
    Some((session, connection))
}

/// How many events a long reply is of.
fn reached(reply: &Reply) -> i64 {
    match reply {
        Reply::Map(_) => get(reply, "lastEventSeq").integer(),
        reply if matches!(reply.items()[0], Reply::Bulk(_)) => get(reply, "lastEventSeq").integer(),
        events => events.items().len() as i64,
    }
}

/// Commands behind a long one in a pipeline run after it, and are answered after it.
#[test]
fn a_pipeline_keeps_its_order() {
    let Some((_session, mut connection)) = filled() else { return };
    for (last, long) in (EVENTS as i64..).zip(LONG) {
        let replies = connection.pipeline(&[
            long,
            &format!("RUN.APPEND r next{last} StepStarted d STEP s{}", last + 1),
            "PING",
            long,
            "RUN.INFO r",
            "RUN.EVENTS r LIMIT 1",
        ]);
        assert_eq!(reached(&replies[0]), last, "{long}");
        assert_eq!(get(&replies[1], "runSeq").integer(), last + 1);
        assert_eq!(replies[2].to_string(), "+PONG");
        assert_eq!(reached(&replies[3]), last + 1, "{long}");
        assert_eq!(get(&replies[4], "events").integer(), last + 1);
        assert_eq!(numbers(&replies[5]), [1]);
    }
}

/// A client that leaves in the middle of a long reply takes nothing with it, and one that has said all that it will say still gets it.
#[test]
fn a_reader_may_leave_in_the_middle() {
    let Some((session, _connection)) = filled() else { return };
    for leaves in [true, true, true, false] {
        let mut reader = session.connect();
        LONG.iter().for_each(|line| reader.queue_line(line));
        reader.queue_line("PING");
        reader.flush();
        if leaves {
            continue;
        }
        reader.close_sending();
        LONG.iter().for_each(|long| assert_eq!(reached(&reader.read()), EVENTS as i64, "{long}"));
        assert_eq!(reader.read().to_string(), "+PONG");
    }
}

/// A client that caches what it reads can rely on the order of replies and invalidations: whatever changed a run after the
/// reply was made is told after the reply. A long reply is made before it is sent.
#[test]
fn a_long_reply_that_is_out_of_date_is_invalidated_after_it() {
    const ROUNDS: usize = 4;
    let Some((session, mut writer)) = filled() else { return };
    let mut reader = session.connect();
    reader.pipeline(&["HELLO 3", "CLIENT TRACKING ON"]);
    for command in LONG {
        for round in 0..ROUNDS {
            reader.queue_line(command);
            reader.flush();
            for number in 0..3 {
                writer.run_args(&["RUN.APPEND", "r", &format!("{command} {round} {number}"), "t", "d"]);
            }
            let last = get(&writer.run("RUN.INFO r"), "events").integer();
            let reply = loop {
                match reader.read() {
                    // Of what it has read before.
                    Reply::Push(_) => {}
                    reply => break reply,
                }
            };
            let seen = reached(&reply);
            reader.queue_line("PING");
            let mut is_invalidated = false;
            while let Reply::Push(_) = reader.read() {
                is_invalidated = true;
            }
            assert!(
                is_invalidated || seen == last,
                "{command}: {seen} of {last} events, and nothing is told of the rest"
            );
        }
    }
}

/// Long events first: what is reserved for the rest is not as much as if all were so long. And a long reply that was read
/// takes no memory any more, though its client sends nothing.
#[test]
fn a_long_reply_takes_no_more_memory_than_it_needs() {
    let Some(session) = start() else { return };
    let mut writer = session.connect();
    let long = "x".repeat(100_000);
    for number in 0..64 {
        writer.run(&format!("RUN.APPEND r long{number} t {long}"));
    }
    run_all(&mut writer, (0..5_000).map(|number| format!("RUN.APPEND r k{number} t d")));
    let used = |connection: &mut Connection, which: &str| -> u64 {
        let reply = connection.run("INFO memory");
        let info = reply.text();
        let line = info.lines().find_map(|line| line.strip_prefix(which)).expect("INFO tells it");
        line.trim_start_matches(':').trim().parse().expect("it is a number")
    };
    let before = used(&mut writer, "used_memory:");
    let mut readers: Vec<_> = (0..8).map(|_| session.connect()).collect();
    for reader in &mut readers {
        assert_eq!(reader.run("RUN.EVENTS r LIMIT 1000000").items().len(), 5_064);
    }
    let after = used(&mut writer, "used_memory:");
    assert!(after < before + 10_000_000, "replies of 7 MB that were read: {before} bytes, then {after}");
    let peak = used(&mut writer, "used_memory_peak:");
    assert!(peak < before + 60_000_000, "a reply of 7 MB at a time: {before} bytes, at most {peak}");
}
