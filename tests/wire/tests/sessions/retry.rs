//! SESSION.RETRY and HASRETRY: requests that were not acknowledged for long.

use crate::{check, must, must_all, start};
use std::collections::BTreeSet;
use wire::own::at_once;
use wire::{Connection, Random, Reply};

const FUTURE: &str = "99999999999999";

fn now(connection: &mut Connection) -> i64 {
    let time = connection.run("TIME");
    let part = |at: usize| time.items()[at].text().parse::<i64>().expect("a number");
    part(0) * 1_000 + part(1) / 1_000
}

/// Waits until the server's clock has passed a millisecond, and returns it.
pub(crate) fn next_ms(connection: &mut Connection) -> i64 {
    let from = now(connection);
    loop {
        let at = now(connection);
        if at > from {
            return at;
        }
    }
}

/// The rows of SESSION.RETRY without the times at which the requests were last sent.
fn without_times(reply: &Reply) -> String {
    let Reply::Array(rows) = reply else { return reply.to_string() };
    let rows = rows.iter().map(|row| {
        assert!(row.items()[3].integer() > 0, "{row}");
        Reply::Array(row.items()[..3].to_vec())
    });
    Reply::Array(rows.collect()).to_string()
}

#[test]
fn what_was_last_sent_before_is_returned_and_marked() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    assert_eq!(connection.run("SESSION.RETRY 99999999999999").to_string(), "[]");
    assert_eq!(connection.run("SESSION.HASRETRY 99999999999999").integer(), 0);
    must_all(&mut connection, "SESSION.OPEN ID a; SESSION.OPEN ID b");
    let mut times = Vec::new();
    for line in ["SESSION.PUSH b b1", "SESSION.PUSH a a1", "SESSION.PUSH b b2"] {
        times.push(next_ms(&mut connection));
        must(&mut connection, line);
    }
    let end = next_ms(&mut connection);
    // Without the times, which are between the last instant and the end.
    let ask = |connection: &mut Connection, line: String| without_times(&connection.run(&line));
    assert_eq!(ask(&mut connection, format!("SESSION.HASRETRY {}", times[0])), ":0");
    assert_eq!(ask(&mut connection, format!("SESSION.HASRETRY {}", times[1])), ":1");
    assert_eq!(ask(&mut connection, format!("SESSION.RETRY {}", times[0])), "[]");
    assert_eq!(ask(&mut connection, format!("SESSION.RETRY {end} LIMIT 0")), "[]");
    assert_eq!(ask(&mut connection, format!("SESSION.RETRY {}", times[1])), "[[\"b\", :1, \"b1\"]]");
    // It counts as sent now.
    next_ms(&mut connection);
    assert_eq!(ask(&mut connection, format!("SESSION.HASRETRY {}", times[1])), ":0");
    assert_eq!(ask(&mut connection, format!("SESSION.RETRY {end} LIMIT 1")), "[[\"a\", :1, \"a1\"]]");
    next_ms(&mut connection);
    assert_eq!(ask(&mut connection, format!("SESSION.RETRY {end} LIMIT 7")), "[[\"b\", :2, \"b2\"]]");
    assert_eq!(ask(&mut connection, format!("SESSION.RETRY {end}")), "[]");
    assert_eq!(ask(&mut connection, format!("SESSION.HASRETRY {end}")), ":0");
    assert_eq!(ask(&mut connection, format!("SESSION.HASRETRY {FUTURE}")), ":1");
    for item in connection.run("SESSION.PENDING b").items() {
        assert!(item.items()[2].integer() >= end, "{item}");
    }
    // Oldest first is now the order of the retries.
    assert_eq!(
        ask(&mut connection, format!("SESSION.RETRY {FUTURE}")),
        "[[\"b\", :1, \"b1\"], [\"a\", :1, \"a1\"], [\"b\", :2, \"b2\"]]"
    );
    must_all(&mut connection, "SESSION.ACK b 1; SESSION.CLOSE a");
    next_ms(&mut connection);
    assert_eq!(ask(&mut connection, format!("SESSION.RETRY {FUTURE}")), "[[\"b\", :2, \"b2\"]]");
    must(&mut connection, "SESSION.ACK b 2");
    assert_eq!(ask(&mut connection, format!("SESSION.HASRETRY {FUTURE}")), ":0");
    assert_eq!(ask(&mut connection, format!("SESSION.RETRY {FUTURE}")), "[]");
}

/// With a time to come both commands mean the requests that were sent until now. Within one instant, such as that of a
/// transaction, what RETRY has returned is sent after it, so that neither finds it; from the next millisecond on both do.
#[test]
fn the_question_and_the_retry_agree() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    must_all(&mut connection, "SESSION.OPEN ID s; SESSION.PUSH s p");
    let lines = ["HASRETRY", "RETRY", "HASRETRY", "RETRY", "HASRETRY"];
    for _ in 0..3 {
        next_ms(&mut connection);
        must(&mut connection, "MULTI");
        for line in lines {
            must(&mut connection, &format!("SESSION.{line} {FUTURE}"));
        }
        let reply = connection.run("EXEC");
        let found: Vec<usize> = reply
            .items()
            .iter()
            .map(|item| match item {
                Reply::Array(rows) => rows.len(),
                other => other.integer() as usize,
            })
            .collect();
        assert_eq!(found, [1, 1, 0, 0, 0], "{reply}");
        next_ms(&mut connection);
    }
}

#[test]
fn what_is_wrong_is_refused() {
    check(
        r#"
        SESSION.RETRY x => ~-ERR the time *
        SESSION.RETRY -1 => ~-ERR the time *
        SESSION.RETRY 9223372036854775808 => ~-ERR the time *
        > SESSION.RETRY 9223372036854775807
        []
        SESSION.RETRY 5 FOO => ~-ERR unknown option 'FOO'. *
        SESSION.HASRETRY x => ~-ERR the time *
        SESSION.HASRETRY -1 => ~-ERR the time *
        SESSION.HASRETRY 9223372036854775807 => :0
        "#,
    );
}

/// Only the sessions of the selected database. (A time to come stands for now: what was returned is returned again a millisecond later.)
#[test]
fn each_database_is_retried_alone() {
    check(
        r#"
        ! SESSION.OPEN ID s
        ! SESSION.PUSH s zero
        ! SELECT 2
        SESSION.HASRETRY 99999999999999 => :0
        > SESSION.RETRY 99999999999999
        []
        ! SESSION.OPEN ID s
        ! SESSION.PUSH s two
        > SESSION.RETRY 99999999999999
        [["s", :1, "two", :1700000000000..]]
        ! SWAPDB 0 2
        # sleep 20ms
        > SESSION.RETRY 99999999999999
        [["s", :1, "zero", :1700000000000..]]
        ! FLUSHDB
        > SESSION.HASRETRY 99999999999999
        :0
        ! SELECT 0
        SESSION.RETRY 99999999999999 => [["s", :1, "two", :1700000000000..]]
        # sleep 20ms
        ! MULTI
        ! SESSION.RETRY 99999999999999
        ! SESSION.HASRETRY 99999999999999
        EXEC => [[["s", :1, "two", :1700000000000..]], :0]
        # sleep 20ms
        SESSION.HASRETRY 99999999999999 => :1
        > EVAL "return {redis.call('SESSION.RETRY', 99999999999999, 'LIMIT', 5), redis.call('SESSION.HASRETRY', 99999999999999)}" 0
        [[["s", :1, "two", :1700000000000..]], :0]
        # sleep 20ms
        EVAL "return redis.call('SESSION.HASRETRY', 99999999999999)" 0 => :1
        "#,
    );
}

/// Of a fixed time each request goes to one of the callers, and each caller gets its own oldest first.
#[test]
fn callers_share_the_requests() {
    const SESSIONS: usize = 40;
    const EACH: usize = 100;
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    for number in 0..SESSIONS {
        must(&mut connection, &format!("SESSION.OPEN ID s{number}"));
    }
    let mut left: Vec<usize> = (0..SESSIONS).flat_map(|number| [number; EACH]).collect();
    while !left.is_empty() {
        let at = random.below(left.len());
        connection.queue_line(&format!("SESSION.PUSH s{} p", left.swap_remove(at)));
    }
    (0..SESSIONS * EACH).for_each(|_| assert!(!connection.read().is_error()));
    let before = next_ms(&mut connection) + 1;
    while now(&mut connection) <= before {}
    let found: Vec<Vec<(String, i64)>> = at_once(&session, 6, |mut connection, number| {
        let mut found = Vec::new();
        loop {
            let reply = connection.run(&format!("SESSION.RETRY {before} LIMIT {}", 3 + number * 7));
            if reply.items().is_empty() {
                return found;
            }
            let part = |item: &Reply| (item.items()[0].text().to_owned(), item.items()[1].integer());
            found.extend(reply.items().iter().map(part));
        }
    });
    let all: Vec<&(String, i64)> = found.iter().flatten().collect();
    assert_eq!(all.len(), SESSIONS * EACH);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), SESSIONS * EACH, "some were returned twice");
    for of_one in &found {
        for number in 0..SESSIONS {
            let name = format!("s{number}");
            let ids: Vec<i64> = of_one.iter().filter(|(sid, _)| *sid == name).map(|(_, id)| *id).collect();
            assert!(ids.is_sorted(), "{name}: {ids:?}");
        }
    }
    assert_eq!(connection.run(&format!("SESSION.HASRETRY {before}")).integer(), 0);
}

/// The whole order, against what PENDING says was sent when.
#[test]
fn the_oldest_come_first() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    for number in 0..30 {
        must(&mut connection, &format!("SESSION.OPEN ID s{number}"));
    }
    for round in 0..40 {
        for _ in 0..random.below(40) {
            let number = random.below(30);
            match random.below(6) {
                0 => must(&mut connection, &format!("SESSION.ACK s{number} {}", random.below(20))),
                1 => must(&mut connection, &format!("SESSION.RETRY {FUTURE} LIMIT {}", random.below(10))),
                _ => must(&mut connection, &format!("SESSION.PUSH s{number} p")),
            };
            if random.one_in(3) {
                next_ms(&mut connection);
            }
        }
        let mut sent: Vec<(i64, String, i64)> = Vec::new();
        for number in 0..30 {
            for item in connection.run(&format!("SESSION.PENDING s{number}")).items() {
                sent.push((item.items()[2].integer(), format!("s{number}"), item.items()[0].integer()));
            }
        }
        sent.sort();
        let limit = random.below(60) + 1;
        let before = sent.get(random.below(sent.len().max(1))).map_or(1, |(at, ..)| *at);
        next_ms(&mut connection);
        let expected: Vec<i64> = sent.iter().map(|(at, ..)| *at).filter(|at| *at < before).take(limit).collect();
        let reply = connection.run(&format!("SESSION.RETRY {before} LIMIT {limit}"));
        let found: Vec<i64> = reply
            .items()
            .iter()
            .map(|item| {
                let (sid, id) = (item.items()[0].text(), item.items()[1].integer());
                let sent_ms = sent.iter().find(|(_, s, i)| s == sid && *i == id).expect("it was pending").0;
                // The time before it was marked.
                assert_eq!(item.items()[3].integer(), sent_ms, "{item}");
                sent_ms
            })
            .collect();
        assert_eq!(found, expected, "round {round}, before {before}, limit {limit}");
    }
}
