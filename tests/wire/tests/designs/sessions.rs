//! Sessions: request ids by session, requests to clients as part of a request, times of sending, size.

use crate::{check, start};
use wire::Connection;

fn now_ms(connection: &mut Connection) -> i64 {
    let time = connection.run("TIME");
    let part = |at: usize| time.items()[at].text().parse::<i64>().expect("a number");
    part(0) * 1_000 + part(1) / 1_000
}

#[test]
fn a_request_id_is_known_within_its_session_alone() {
    check(
        r#"
        > SESSION.OPEN ID a
        "a"
        > SESSION.OPEN ID b
        "b"
        > SESSION.CALL a 1 LOW 1 INCR n
        :1
        > SESSION.CALL b 1 LOW 1 INCR n
        :2
        > SESSION.CALL a 1 LOW 1 INCR n
        :1
        > SESSION.CALL b 1 LOW 1 INCR n
        :2
        > SESSION.PUSH a x
        :1
        > SESSION.PUSH b y
        :1
        > SESSION.ACK a 1
        :1
        > SESSION.PENDING b
        [[:1, "y", *]]
        > SESSION.CLOSE a
        :1
        > SESSION.CALL b 1 LOW 1 INCR n
        :2
        > SESSION.PUSH b z
        :2
        > GET n
        "2"
        "#,
    );
}

/// What a request writes and the requests that it makes to clients are one step, once: a retry makes none.
#[test]
fn a_request_and_the_requests_that_it_makes_take_effect_once() {
    let Some(session) = start() else { return };
    session.check(
        r#"
        > SESSION.OPEN ID a
        "a"
        > SESSION.OPEN ID b
        "b"
        > SESSION.CALL a 1 LOW 1 EVAL "redis.call('session.push', KEYS[1], 'one') redis.call('session.push', KEYS[1], 'two') redis.call('session.push', KEYS[2], 'three') return redis.call('incr', KEYS[3])" 3 a b n
        :1
        > SESSION.CALL a 1 LOW 1 EVAL "redis.call('session.push', KEYS[1], 'one') redis.call('session.push', KEYS[1], 'two') redis.call('session.push', KEYS[2], 'three') return redis.call('incr', KEYS[3])" 3 a b n
        :1
        > SESSION.PENDING a
        [[:1, "one", *], [:2, "two", *]]
        > SESSION.PENDING b
        [[:1, "three", *]]
        > GET n
        "1"
        "#,
    );
}

/// A request that errs is answered the same way for ever, and its session goes on.
#[test]
fn an_error_is_a_reply_and_the_session_goes_on() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        > SET text x
        +OK
        > SESSION.CALL s 1 LOW 1 INCR text
        -ERR value is not an integer or out of range
        > SESSION.CALL s 2 LOW 1 EVAL "return redis.error_reply('MY refusal')" 0
        -MY refusal
        > SET text 1
        +OK
        > SESSION.CALL s 1 LOW 1 INCR text
        -ERR value is not an integer or out of range
        > SESSION.CALL s 2 LOW 1 EVAL "return redis.error_reply('MY refusal')" 0
        -MY refusal
        > SESSION.CALL s 3 LOW 1 INCR text
        :2
        "#,
    );
}

/// A request counts as sent when it is made. To ask whether there are some to send again changes nothing.
#[test]
fn a_request_counts_as_sent_when_it_is_made_and_a_question_marks_nothing() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.run("SESSION.OPEN ID s");
    let before = now_ms(&mut connection);
    connection.run("SESSION.PUSH s x");
    let after = now_ms(&mut connection);
    let pending = connection.run("SESSION.PENDING s");
    let last_sent = pending.items()[0].items()[2].integer();
    assert!((before..=after).contains(&last_sent), "{before} {last_sent} {after}");
    // Before it, strictly.
    assert_eq!(connection.run(&format!("SESSION.HASRETRY {last_sent}")).integer(), 0);
    assert_eq!(connection.run(&format!("SESSION.RETRY {last_sent}")).to_string(), "[]");
    for _ in 0..3 {
        assert_eq!(connection.run(&format!("SESSION.HASRETRY {}", last_sent + 1)).integer(), 1);
    }
    while now_ms(&mut connection) <= last_sent + 1 {}
    let retried = connection.run(&format!("SESSION.RETRY {}", last_sent + 1));
    assert_eq!(retried.to_string(), format!("[[\"s\", :1, \"x\", :{last_sent}]]"));
    assert!(connection.run("SESSION.PENDING s").items()[0].items()[2].integer() > last_sent);
    assert_eq!(connection.run(&format!("SESSION.HASRETRY {}", last_sent + 1)).integer(), 0);
}

/// The room for replies grows by doubling, so sixteen short ones fill it.
#[test]
fn a_session_takes_a_few_hundred_bytes_and_a_short_reply_less_than_a_hundred() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let sid = "session:0123456789abcdef0123456789abcdef";
    connection.run(&format!("SESSION.OPEN ID {sid}"));
    let empty = connection.run(&format!("MEMORY USAGE {sid}")).integer();
    assert!((1..400).contains(&empty), "{empty}");
    for id in 1..=16 {
        connection.run(&format!("SESSION.CALL {sid} {id} LOW 1 INCR n"));
    }
    let full = connection.run(&format!("MEMORY USAGE {sid}")).integer();
    assert!(full - empty < 16 * 100, "{empty} {full}");
}
