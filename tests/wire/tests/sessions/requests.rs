//! SESSION.PUSH, PENDING, ACK: requests to the client of a session.

use crate::{check, info, must, start};
use wire::own::at_once;

#[test]
fn requests_are_numbered_and_acknowledged_in_order() {
    check(
        r#"
        ! SESSION.OPEN ID s
        SESSION.PENDING s => []
        SESSION.PUSH s a => :1
        SESSION.PUSH s "" => :2
        SESSION.PUSH s "\x00\r\n" => :3
        SESSION.PENDING s => [[:1, "a", :1..], [:2, "", :1..], [:3, "\x00\r\n", :1..]]
        SESSION.PENDING s LIMIT 2 => [[:1, "a", *], [:2, "", *]]
        SESSION.PENDING s AFTER 1 LIMIT 1 => [[:2, "", *]]
        > session.pending s limit 5 after 2
        [[:3, "\x00\r\n", *]]
        SESSION.PENDING s AFTER 3 => []
        SESSION.PENDING s AFTER 9223372036854775807 => []
        SESSION.PENDING s LIMIT 0 => []
        SESSION.ACK s 0 => :0
        SESSION.ACK s 2 => :2
        SESSION.ACK s 2 => :0
        SESSION.ACK s 1 => :0
        SESSION.PENDING s => [[:3, "\x00\r\n", *]]
        // Beyond the last: all that are there, and none that come.
        > SESSION.ACK s 9223372036854775807
        :1
        ! SESSION.PUSH s b
        SESSION.PENDING s => [[:4, "b", *]]
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :1, "last_id", :4, ...]
        SESSION.ACK s 4 => :1
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :0, "last_id", :4, ...]
        ! HELLO 3
        ! SESSION.PUSH s c
        SESSION.PENDING s => [[:5, "c", :1..]]
        "#,
    );
}

#[test]
fn what_is_wrong_is_refused() {
    check(
        r#"
        SESSION.PUSH nosuch x => ~-NOSESSION *
        SESSION.PENDING nosuch => ~-NOSESSION *
        SESSION.PENDING nosuch BLOCK 0 => ~-NOSESSION *
        SESSION.ACK nosuch 1 => ~-NOSESSION *
        ! HELLO 3
        SESSION.ATTACH nosuch => ~-NOSESSION *
        > SESSION.DETACH nosuch
        :0
        ! SESSION.OPEN ID s
        SESSION.PENDING s FOO => ~-ERR unknown option 'FOO'. *
        SESSION.ACK s -1 => ~-ERR the id of the request *
        SESSION.ACK s x => ~-ERR the id of the request *
        SESSION.ACK s 9223372036854775808 => ~-ERR the id of the request *
        "#,
    );
}

#[test]
fn a_page_has_a_thousand_without_a_limit() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    must(&mut connection, "SESSION.OPEN ID s");
    let lines: Vec<String> = (1..=2_500).map(|number| format!("SESSION.PUSH s p{number}")).collect();
    connection.pipeline(&lines);
    let (mut after, mut found) = (0, Vec::new());
    loop {
        let page = connection.run(&format!("SESSION.PENDING s AFTER {after}"));
        if page.items().is_empty() {
            break;
        }
        assert!(page.items().len() <= 1_000);
        found.extend(page.items().iter().map(|item| item.items()[0].integer()));
        after = *found.last().expect("there is one");
    }
    assert_eq!(found, (1..=2_500).collect::<Vec<_>>());
    assert_eq!(connection.run("SESSION.PENDING s LIMIT 100000").items().len(), 2_500);
    assert_eq!(info(&mut connection, "s", "pending").integer(), 2_500);
}

/// As many as `session-pending-max` at a time; what is acknowledged makes room, and a refused one takes no number.
#[test]
fn pending_requests_have_a_limit() {
    check(
        r#"
        # config session-pending-max 3
        ! SESSION.OPEN ID s
        ! SESSION.PUSH s a
        ! SESSION.PUSH s b
        SESSION.PUSH s c => :3
        SESSION.PUSH s d => ~-ERR *
        EVAL "return redis.pcall('session.push', 's', 'd')" 0 => ~-ERR *
        > SESSION.ACK s 1
        :1
        ! SESSION.PUSH s e
        SESSION.PUSH s f => ~-ERR *
        SESSION.PENDING s => [[:2, "b", *], [:3, "c", *], [:4, "e", *]]
        // A call that fails so is a reply as any other.
        SESSION.CALL s 1 LOW 1 SESSION.PUSH s g => ~-ERR *
        SESSION.ACK s 9 => :3
        SESSION.CALL s 1 LOW 1 SESSION.PUSH s g => ~-ERR *
        SESSION.PENDING s => []
        "#,
    );
}

#[test]
fn pushes_in_transactions_and_scripts() {
    check(
        r#"
        ! SESSION.OPEN ID s
        ! MULTI
        ! SESSION.PUSH s a
        ! SESSION.PUSH s b
        ! SESSION.PENDING s BLOCK 0 AFTER 5
        ! SESSION.ACK s 1
        ! SESSION.INFO nosuch
        ! SESSION.ALIVE s
        ! SESSION.HASRETRY 1
        EXEC => [:1, :2, [], :1, (nil), :1, :0]
        EVAL "return redis.call('SESSION.PUSH', KEYS[1], 'c')" 1 s => :3
        EVAL "return redis.call('SESSION.PENDING', KEYS[1], 'AFTER', 9, 'BLOCK', 0)" 1 s => []
        > EVAL "return redis.call('SESSION.ACK', KEYS[1], 2)" 1 s
        :1
        ! TXN.BEGIN
        ! SESSION.PUSH s d
        > SESSION.PENDING s
        [[:3, "c", *], [:4, "d", *]]
        ! TXN.ROLLBACK
        > SESSION.PENDING s
        [[:3, "c", *]]
        ! TXN.BEGIN
        ! SESSION.PUSH s e
        > SESSION.ACK s 3
        :1
        ! TXN.COMMIT
        SESSION.PENDING s => [[:4, "e", *]]
        // Another client's push is a conflict.
        ! TXN.BEGIN
        ! SESSION.PUSH s mine
        2! SESSION.PUSH s theirs
        TXN.COMMIT => ~-CONFLICT *
        SESSION.PENDING s => [[:4, "e", *], [:5, "theirs", *]]
        ! WATCH s
        2! SESSION.PUSH s again
        ! MULTI
        ! SESSION.PUSH s mine
        EXEC => (nil array)
        "#,
    );
}

#[test]
fn numbers_are_unique_between_many_pushers() {
    let Some(session) = start() else { return };
    must(&mut session.connect(), "SESSION.OPEN ID s");
    let numbers = at_once(&session, 6, |mut connection, _| {
        let lines = vec!["SESSION.PUSH s x"; 50];
        (0..20).flat_map(|_| connection.pipeline(&lines)).map(|reply| reply.integer()).collect::<Vec<_>>()
    });
    let mut numbers = numbers.concat();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=6_000).collect::<Vec<_>>());
}
