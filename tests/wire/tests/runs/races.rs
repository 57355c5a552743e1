//! Many clients on one run: of those that append after the same event exactly one goes on.

use crate::events::numbers;
use crate::{get, run_seq};
use std::collections::BTreeMap;
use std::sync::Barrier;
use wire::own::{at_once, start};

const CLIENTS: usize = 6;

#[test]
fn of_engines_that_append_after_the_same_event_exactly_one_goes_on() {
    const ROUNDS: usize = 100;
    let Some(session) = start() else { return };
    let barrier = Barrier::new(CLIENTS);
    let replies = at_once(&session, CLIENTS, |mut connection, client| {
        let mut replies = Vec::new();
        for round in 0..ROUNDS {
            barrier.wait();
            // The first round races for a new run. The keys are different: what decides is IFLAST alone.
            replies.push(connection.run(&format!("RUN.APPEND r c{client}-{round} t c{client} IFLAST {round}")));
            // All have their replies before the next round begins, so that the last event is known. Until the end nothing
            // is judged: a client that failed here would keep the others waiting.
            barrier.wait();
        }
        replies
    });
    let mut won = Vec::new();
    for (client, replies) in replies.iter().enumerate() {
        for (round, reply) in replies.iter().enumerate() {
            assert_eq!(run_seq(reply) as usize, round + 1, "the winner's event, or that it is the last");
            if get(reply, "persisted").integer() == 1 {
                won.push((round, client));
            } else {
                assert_eq!(get(reply, "idempotent").integer(), 0);
                assert!(get(reply, "eventId").is_nil());
            }
        }
    }
    let winners: BTreeMap<usize, usize> = won.iter().copied().collect();
    assert_eq!((won.len(), winners.len()), (ROUNDS, ROUNDS), "each round has one winner");
    let events = session.connect().run("RUN.EVENTS r");
    assert_eq!(numbers(&events), (1..=ROUNDS as i64).collect::<Vec<i64>>());
    for (round, event) in events.items().iter().enumerate() {
        assert_eq!(get(event, "idempotencyKey").text(), format!("c{}-{round}", winners[&round]));
    }
}

/// Two engines that each believe to own the run: the one that is fenced off stops, reads on, and takes over in turn.
#[test]
fn an_engine_that_was_overtaken_goes_on_only_behind_what_it_has_read() {
    const EACH: usize = 40;
    let Some(session) = start() else { return };
    at_once(&session, CLIENTS, |mut connection, client| {
        let mut seen: Vec<String> = Vec::new();
        let mut sum = 0;
        for number in 0..EACH {
            loop {
                // What an engine writes depends on all that it has read: the sum of everything before.
                let reply =
                    connection.run(&format!("RUN.APPEND r c{client}-{number} t {} IFLAST {}", sum + 1, seen.len()));
                if get(&reply, "persisted").integer() == 1 {
                    assert_eq!(run_seq(&reply) as usize, seen.len() + 1);
                    sum += 1;
                    seen.push(format!("c{client}-{number}"));
                    break;
                }
                let events = connection.run(&format!("RUN.EVENTS r AFTER {}", seen.len()));
                for event in events.items() {
                    sum += 1;
                    assert_eq!(get(event, "eventData").text(), sum.to_string());
                    seen.push(get(event, "idempotencyKey").text().to_owned());
                }
            }
        }
    });
    let events = session.connect().run("RUN.EVENTS r LIMIT 100000");
    assert_eq!(events.items().len(), CLIENTS * EACH);
    for (number, event) in (1..).zip(events.items()) {
        assert_eq!(get(event, "eventData").text(), number.to_string());
    }
}

/// Of clients that append the same key at once, one appends, and all are told the same number.
#[test]
fn of_clients_with_the_same_key_exactly_one_appends() {
    const KEYS: usize = 400;
    let Some(session) = start() else { return };
    let told = at_once(&session, CLIENTS, |mut connection, client| {
        let lines: Vec<String> = (0..KEYS).map(|key| format!("RUN.APPEND r k{key} t c{client}")).collect();
        let replies = connection.pipeline(&lines);
        replies.iter().map(|reply| (run_seq(reply), get(reply, "persisted").integer())).collect::<Vec<_>>()
    });
    for key in 0..KEYS {
        let numbers: Vec<i64> = told.iter().map(|told| told[key].0).collect();
        assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
        assert_eq!(told.iter().map(|told| told[key].1).sum::<i64>(), 1, "key {key}");
    }
}
