//! Long replies of runs are made in slices, between which other clients are served. `crates/engine/tests/slices.rs` tests
//! what happens between two of them; here many clients do it at once.

use crate::events::{append, numbers};
use crate::{get, start};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use wire::Random;

const EVENTS: usize = 4_000;

/// Commands behind a long one in a pipeline run after it, and are answered after it.
#[test]
fn a_pipeline_keeps_its_order() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let lines: Vec<String> =
        (1..=EVENTS).map(|number| format!("RUN.APPEND r k{number} StepStarted d{number} STEP s{number}")).collect();
    lines.chunks(500).for_each(|lines| drop(connection.pipeline(lines)));
    for long in ["RUN.EVENTS r LIMIT 1000000", "RUN.PROJECT r", "RUN.SNAPSHOT r"] {
        let before = connection.run("RUN.INFO r");
        let last = get(&before, "lastEventSeq").integer();
        let replies = connection.pipeline(&[
            long,
            &format!("RUN.APPEND r next{last} StepStarted d STEP s{}", last + 1),
            "PING",
            long,
            "RUN.INFO r",
            "RUN.EVENTS r LIMIT 1",
        ]);
        let reached = |reply: &wire::Reply| match long.starts_with("RUN.EVENTS") {
            true => reply.items().len() as i64,
            false => {
                assert_eq!(get(reply, "steps").items().len() as i64, 2 * get(reply, "lastEventSeq").integer());
                get(reply, "lastEventSeq").integer()
            }
        };
        assert_eq!(reached(&replies[0]), last, "{long}");
        assert_eq!(get(&replies[1], "runSeq").integer(), last + 1);
        assert_eq!(replies[2].to_string(), "+PONG");
        assert_eq!(reached(&replies[3]), last + 1, "{long}");
        assert_eq!(get(&replies[4], "events").integer(), last + 1);
        assert_eq!(numbers(&replies[5]), [1]);
    }
}

/// While another client appends, and now and then puts another run in its place, deletes it or makes it a string, each
/// reply is of one run, from its first event on and without a gap, as far as it was at some instant.
#[test]
fn a_reply_is_of_one_run_whatever_others_do_to_it() {
    const ROUNDS: usize = 40;
    let Some(session) = start() else { return };
    let mut writer = session.connect();
    for run in ["x", "y"] {
        let lines: Vec<String> = (1..=EVENTS)
            .map(|number| format!("RUN.APPEND {run} {run}{number} StepStarted {run}{number} STEP {run}{number}"))
            .collect();
        lines.chunks(500).for_each(|lines| drop(writer.pipeline(lines)));
    }
    let (is_over, mut random) = (AtomicBool::new(false), Random::from_env());
    thread::scope(|scope| {
        for commands in
            [["RUN.EVENTS r LIMIT 1000000", "RUN.PROJECT r"], ["RUN.SNAPSHOT r", "RUN.EVENTS r AFTER 7 LIMIT 1000000"]]
        {
            let (mut reader, is_over) = (session.connect(), &is_over);
            scope.spawn(move || {
                while !is_over.load(Relaxed) {
                    for command in commands {
                        let reply = reader.run(command);
                        check_reply(command, &reply);
                    }
                }
            });
        }
        for round in 0..ROUNDS {
            let from = random.pick(&["x", "y"]);
            writer.run(&match random.below(6) {
                0 => "DEL r".to_owned(),
                1 => "SET r string".to_owned(),
                _ => format!("COPY {from} r REPLACE"),
            });
            for number in 0..random.below(60) {
                // As further events of that run, if it is one.
                let next = EVENTS + 1 + number;
                writer.run(&format!("RUN.APPEND r {from}{next} StepStarted {from}{next} STEP {from}{next}"));
            }
            if round % 4 == 0 {
                thread::sleep(std::time::Duration::from_millis(random.below(20) as u64));
            }
        }
        is_over.store(true, Relaxed);
    });
}

fn check_reply(command: &str, reply: &wire::Reply) {
    if reply.is_nil() || reply.is_error() {
        let text = reply.to_string();
        assert!(reply.is_nil() || text.starts_with("-WRONGTYPE") || text.contains("made anew"), "{text}");
        return;
    }
    let (first, names): (usize, Vec<&str>) = match command.starts_with("RUN.EVENTS") {
        true => {
            let events = reply.items();
            let first = if command.contains("AFTER") { 8 } else { 1 };
            let found: Vec<i64> = numbers(reply);
            assert_eq!(found, (first as i64..).take(events.len()).collect::<Vec<i64>>());
            (first, events.iter().map(|event| get(event, "eventData").text()).collect())
        }
        false => {
            let steps: Vec<&str> = get(reply, "steps").items().chunks(2).map(|step| step[0].text()).collect();
            assert_eq!(get(reply, "lastEventSeq").integer() as usize, steps.len());
            (1, steps)
        }
    };
    // Of a run that began with an append in place of one that had been deleted, the numbers begin higher.
    let Some(head) = names.first() else { return };
    let (run, began) = head.split_at(1);
    let began: usize = began.parse().expect("a number");
    assert!(began == first || began >= EVENTS, "{head} is first");
    for (number, name) in (began..).zip(&names) {
        assert_eq!(*name, format!("{run}{number}"), "{command}");
    }
}

/// A client that leaves in the middle of a long reply takes nothing with it.
#[test]
fn a_reader_may_leave_in_the_middle() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    append(&mut connection, "r", 1, EVENTS);
    for _ in 0..20 {
        let mut reader = session.connect();
        reader.queue_line("RUN.EVENTS r LIMIT 1000000");
        reader.queue_line("RUN.PROJECT r");
        reader.flush();
        drop(reader);
    }
    assert_eq!(connection.run("RUN.EVENTS r LIMIT 1000000").items().len(), EVENTS);
}
