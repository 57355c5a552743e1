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
            let replacement = match random.below(6) {
                0 => None,
                1 => Some("SET r string".to_owned()),
                _ => Some(format!("COPY {from} r")),
            };
            let lines = ["MULTI".to_owned(), "DEL r".to_owned()].into_iter().chain(replacement);
            let lines: Vec<String> = lines.chain(["EXEC".to_owned()]).collect();
            writer.pipeline(&lines);
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

/// A client that caches what it reads can rely on the order of replies and invalidations: whatever changed a run after the
/// reply was made is told after the reply. A long reply is made before it is sent.
#[test]
fn a_long_reply_that_is_out_of_date_is_invalidated_after_it() {
    const ROUNDS: usize = 30;
    let Some(session) = start() else { return };
    let (mut writer, mut reader) = (session.connect(), session.connect());
    let lines: Vec<String> =
        (1..=EVENTS).map(|number| format!("RUN.APPEND r k{number} StepStarted d STEP s{number}")).collect();
    lines.chunks(500).for_each(|lines| drop(writer.pipeline(lines)));
    reader.run("HELLO 3");
    reader.run("CLIENT TRACKING ON");
    for command in ["RUN.EVENTS r LIMIT 1000000", "RUN.PROJECT r", "RUN.SNAPSHOT r"] {
        let mut were_late = 0;
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
                    wire::Reply::Push(_) => {}
                    reply => break reply,
                }
            };
            let seen = match reply {
                wire::Reply::Array(events) => events.len() as i64,
                snapshot => get(&snapshot, "lastEventSeq").integer(),
            };
            reader.queue_line("PING");
            let mut is_invalidated = false;
            while let wire::Reply::Push(_) = reader.read() {
                is_invalidated = true;
            }
            assert!(
                is_invalidated || seen == last,
                "{command}: {seen} of {last} events, and nothing is told of the rest"
            );
            were_late += usize::from(seen < last);
        }
        println!("{command}: {were_late} of {ROUNDS} were out of date");
    }
}

/// The client has said all that it will say: the long reply and those behind it still come.
#[test]
fn a_client_that_sends_no_more_gets_its_long_replies() {
    let Some(session) = start() else { return };
    let mut writer = session.connect();
    let lines: Vec<String> =
        (1..=EVENTS).map(|number| format!("RUN.APPEND r k{number} StepStarted d{number} STEP s{number}")).collect();
    lines.chunks(500).for_each(|lines| drop(writer.pipeline(lines)));
    for _ in 0..5 {
        let mut connection = session.connect();
        for line in ["RUN.EVENTS r LIMIT 1000000", "RUN.PROJECT r", "PING", "RUN.SNAPSHOT r"] {
            connection.queue_line(line);
        }
        connection.flush();
        connection.close_sending();
        assert_eq!(connection.read().items().len(), EVENTS);
        assert_eq!(get(&connection.read(), "lastEventSeq").integer() as usize, EVENTS);
        assert_eq!(connection.read().to_string(), "+PONG");
        assert_eq!(get(&connection.read(), "lastEventSeq").integer() as usize, EVENTS);
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
    let lines: Vec<String> = (0..20_000).map(|number| format!("RUN.APPEND r k{number} t d")).collect();
    lines.chunks(500).for_each(|lines| drop(writer.pipeline(lines)));
    let used = |connection: &mut wire::Connection, which: &str| -> u64 {
        let reply = connection.run("INFO memory");
        let info = reply.text();
        let line = info.lines().find_map(|line| line.strip_prefix(which)).expect("INFO tells it");
        line.trim_start_matches(':').trim().parse().expect("it is a number")
    };
    let before = used(&mut writer, "used_memory:");
    let mut readers: Vec<_> = (0..8).map(|_| session.connect()).collect();
    for reader in &mut readers {
        assert_eq!(reader.run("RUN.EVENTS r LIMIT 1000000").items().len(), 20_064);
    }
    let after = used(&mut writer, "used_memory:");
    assert!(after < before + 10_000_000, "replies of 11 MB that were read: {before} bytes, then {after}");
    let peak = used(&mut writer, "used_memory_peak:");
    assert!(peak < before + 60_000_000, "a reply of 11 MB at a time: {before} bytes, at most {peak}");
}
