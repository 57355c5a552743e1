//! SESSION.ATTACH and DETACH: requests that are sent as they come.

use crate::{check, info, must, start};
use std::collections::BTreeMap;
use wire::Reply;

#[test]
fn pending_requests_come_first_and_new_ones_after() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        > SESSION.ATTACH s
        ~-ERR *HELLO 3*
        > SESSION.PUSH s a
        > SESSION.PUSH s b
        > SESSION.PUSH s c
        > SESSION.ACK s 1
        :1
        :2
        :3
        :1
        2> HELLO 3
        *
        2> SESSION.ATTACH s
        +OK
        2< push["session", "s", :2, "b"]
        2< push["session", "s", :3, "c"]
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :2, "last_id", :3, "attached", :1, ...]
        > SESSION.PUSH s d
        :4
        2< push["session", "s", :4, "d"]
        > MULTI
        > SESSION.PUSH s e
        > SESSION.PUSH s f
        > EXEC
        +OK
        +QUEUED
        +QUEUED
        [:5, :6]
        2< push["session", "s", :5, "e"]
        2< push["session", "s", :6, "f"]
        > EVAL "return redis.call('session.push', KEYS[1], 'g')" 1 s
        :7
        2< push["session", "s", :7, "g"]
        > SESSION.CALL s 1 LOW 1 SESSION.PUSH s h
        :8
        2< push["session", "s", :8, "h"]
        // The connection is an ordinary one meanwhile.
        2> SESSION.ACK s 7
        :6
        2> SESSION.CALL s 2 LOW 1 INCR n
        :1
        2> SESSION.PUSH s "to itself"
        :9
        2< push["session", "s", :9, "to itself"]
        2> SESSION.DETACH s
        :1
        2> SESSION.DETACH s
        :0
        > SESSION.PUSH s i
        :10
        2> PING
        +PONG
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :1, "replies", :2, "reply_bytes", :1.., "pending", :3, "last_id", :10, "attached", :0, ...]
        "#,
    );
}

#[test]
fn the_last_attach_wins() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        > SESSION.PUSH s a
        :1
        2> HELLO 3
        *
        3> HELLO 3
        *
        2> SESSION.ATTACH s
        +OK
        2< push["session", "s", :1, "a"]
        3> SESSION.ATTACH s
        +OK
        3< push["session", "s", :1, "a"]
        > SESSION.PUSH s b
        :2
        3< push["session", "s", :2, "b"]
        2> PING
        +PONG
        // The former's word is no longer about it.
        2> SESSION.DETACH s
        :0
        > SESSION.PUSH s c
        :3
        3< push["session", "s", :3, "c"]
        // Once more by the same: all that is pending again.
        3> SESSION.ATTACH s
        +OK
        3< push["session", "s", :1, "a"]
        3< push["session", "s", :2, "b"]
        3< push["session", "s", :3, "c"]
        > SESSION.PUSH s d
        :4
        3< push["session", "s", :4, "d"]
        2> PING
        +PONG
        "#,
    );
}

/// RESP2 has no push frames, so a client that is attached stays with RESP3.
#[test]
fn reset_detaches_and_hello_2_is_refused() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        2> HELLO 3
        *
        2> SESSION.ATTACH s
        +OK
        2> HELLO 2
        ~-ERR *
        > SESSION.PUSH s a
        :1
        2< push["session", "s", :1, "a"]
        2> RESET
        +RESET
        > SESSION.PUSH s b
        :2
        2> PING
        +PONG
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :2, "last_id", :2, "attached", :0, ...]
        2> HELLO 3
        *
        2> SESSION.ATTACH s
        +OK
        2< push["session", "s", :1, "a"]
        2< push["session", "s", :2, "b"]
        2> SESSION.DETACH s
        :1
        2> HELLO 2
        *
        "#,
    );
}

#[test]
fn many_sessions_can_be_attached_to_one_connection() {
    check(
        r#"
        > SESSION.OPEN ID a
        "a"
        > SESSION.OPEN ID b
        "b"
        2> HELLO 3
        *
        2> SESSION.ATTACH a
        +OK
        2> SESSION.ATTACH b
        +OK
        > SESSION.PUSH b 1
        :1
        2< push["session", "b", :1, "1"]
        > SESSION.PUSH a 1
        :1
        2< push["session", "a", :1, "1"]
        2> SESSION.DETACH b
        :1
        > SESSION.PUSH b 2
        :2
        > SESSION.PUSH a 2
        :2
        2< push["session", "a", :2, "2"]
        "#,
    );
}

/// A session that goes takes the attachment with it; one of the same name is another.
#[test]
fn the_end_of_the_session_ends_the_attachment() {
    for gone in ["SESSION.CLOSE s", "DEL s", "FLUSHALL", "SET s x"] {
        check(&format!(
            r#"
            > SESSION.OPEN ID s
            "s"
            2> HELLO 3
            *
            2> SESSION.ATTACH s
            +OK
            > {gone}
            *
            > DEL s
            *
            > SESSION.OPEN ID s
            "s"
            > SESSION.PUSH s new
            :1
            > SESSION.INFO s
            ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :1, "last_id", :1, "attached", :0, ...]
            2> PING
            +PONG
            2> SESSION.DETACH s
            :0
            "#
        ));
    }
}

/// Two databases may have sessions of the same name.
#[test]
fn the_attachment_is_of_its_database() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        2> HELLO 3
        *
        2> SESSION.ATTACH s
        +OK
        > SELECT 4
        +OK
        > SESSION.OPEN ID s
        "s"
        > SESSION.PUSH s four
        :1
        2> PING
        +PONG
        2> SELECT 4
        +OK
        2> SESSION.DETACH s
        :0
        > SELECT 0
        +OK
        > SESSION.PUSH s zero
        :1
        2< push["session", "s", :1, "zero"]
        "#,
    );
}

#[test]
fn attach_and_detach_are_not_for_transactions_and_scripts() {
    check(
        r#"
        > HELLO 3
        *
        > SESSION.OPEN ID s
        "s"
        > MULTI
        +OK
        > SESSION.ATTACH s
        ~-ERR *
        > SESSION.DETACH s
        ~-ERR *
        > EXEC
        ~-EXECABORT *
        > EVAL "return redis.call('SESSION.ATTACH', 's')" 0
        ~-ERR *
        > TXN.BEGIN
        +OK
        > SESSION.ATTACH s
        ~-ERR *
        > TXN.ROLLBACK
        +OK
        > SESSION.CALL s 1 LOW 1 SESSION.ATTACH s
        ~-ERR *
        > SESSION.PUSH s a
        :1
        > PING
        +PONG
        "#,
    );
}

#[test]
fn a_client_that_comes_back_gets_what_is_pending() {
    let Some(session) = start() else { return };
    let mut pusher = session.connect();
    must(&mut pusher, "SESSION.OPEN ID s");
    let mut next = 1;
    for round in 0..20 {
        let mut client = session.connect();
        must(&mut client, "HELLO 3");
        assert_eq!(client.run("SESSION.ATTACH s").to_string(), "+OK");
        for number in 0..5 {
            must(&mut pusher, &format!("SESSION.PUSH s {}", round * 5 + number + 1));
        }
        // Reads some, and acknowledges what it has read before it goes away.
        let last = next + 2;
        while next <= last {
            let Reply::Push(parts) = client.read() else { panic!("not a push frame") };
            assert_eq!((parts[2].integer(), parts[3].text()), (next, &*next.to_string()), "round {round}");
            next += 1;
        }
        client.queue_line(&format!("SESSION.ACK s {last}"));
        while matches!(client.read(), Reply::Push(_)) {}
    }
    session.check("# until blocked_clients:0");
    while info(&mut pusher, "s", "attached").integer() == 1 {
        std::thread::yield_now();
    }
}

/// Pushes from many connections, plain and in transactions, while connections attach and go away: each of those gets every pending
/// request in order and without a gap, with the payload that its pusher was told the number of.
#[test]
fn frames_are_in_order_under_concurrent_pushes() {
    const EACH: usize = 600;
    const PUSHERS: usize = 4;
    let Some(session) = start() else { return };
    must(&mut session.connect(), "SESSION.OPEN ID s");
    let (told, frames) = std::thread::scope(|scope| {
        let pushers: Vec<_> = (0..PUSHERS)
            .map(|pusher| {
                let session = &session;
                scope.spawn(move || {
                    let (mut connection, mut told) = (session.connect(), BTreeMap::new());
                    for number in 0..EACH {
                        let payload = format!("{pusher}:{number}");
                        let id = match number % 3 {
                            0 => must(&mut connection, &format!("SESSION.PUSH s {payload}")),
                            1 => must(
                                &mut connection,
                                &format!("EVAL \"return redis.call('session.push', 's', ARGV[1])\" 0 {payload}"),
                            ),
                            _ => {
                                let push = format!("SESSION.PUSH s {payload}");
                                connection.pipeline(&["MULTI", &push, "EXEC"])[2].items()[0].clone()
                            }
                        };
                        told.insert(id.integer(), payload);
                    }
                    told
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut all = BTreeMap::new();
            let mut round = 0;
            while all.len() < PUSHERS * EACH {
                let mut client = session.connect();
                must(&mut client, "HELLO 3");
                assert_eq!(client.run("SESSION.ATTACH s").to_string(), "+OK");
                round += 1;
                let mut next = 1;
                while all.len() < PUSHERS * EACH && next < 150 * round {
                    let Reply::Push(parts) = client.read() else { panic!("not a push frame") };
                    assert_eq!(parts[2].integer(), next, "round {round}");
                    next += 1;
                    let payload = parts[3].text().to_owned();
                    let before = all.insert(parts[2].integer(), payload.clone());
                    assert!(before.is_none_or(|before| before == payload));
                }
            }
            all
        });
        let told: BTreeMap<i64, String> =
            pushers.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
        (told, reader.join().expect("no panic"))
    });
    assert_eq!(told, frames);
}

/// An attachment ends with its session, however that ends; RESP2 is then possible again.
#[test]
fn an_attachment_ends_with_its_session() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        2> HELLO 3
        *
        2> SESSION.ATTACH s
        +OK
        2> HELLO 2
        ~-ERR *attached to a session*
        > SESSION.CLOSE s
        :1
        2> HELLO 2
        *
        > SESSION.OPEN ID s
        "s"
        2> HELLO 3
        *
        2> SESSION.ATTACH s
        +OK
        > DEL s
        :1
        // Another session of the same name is not that one.
        > SESSION.OPEN ID s
        "s"
        > SESSION.PUSH s x
        :1
        2> HELLO 2
        *
        2> HELLO 3
        *
        2> SESSION.ATTACH s
        +OK
        2< push["session", "s", :1, "x"]
        > FLUSHALL
        +OK
        2> HELLO 2
        *
        > SESSION.OPEN ID s TTL 50
        "s"
        2> HELLO 3
        *
        2> SESSION.ATTACH s
        +OK
        # eventually
        2> HELLO 2
        ["server", ...]
        > SESSION.OPEN ID s
        "s"
        2> HELLO 3
        *
        2> SESSION.ATTACH s
        +OK
        3> HELLO 3
        *
        3> SESSION.ATTACH s
        +OK
        // The last attach wins: it is the other's now.
        2> HELLO 2
        *
        "#,
    );
}

/// SWAPDB moves a session with its attachment.
#[test]
fn an_attachment_follows_its_session_to_another_database() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        2> HELLO 3
        *
        2> SESSION.ATTACH s
        +OK
        > SWAPDB 0 5
        +OK
        2> HELLO 2
        ~-ERR *attached to a session*
        > SELECT 5
        +OK
        > SESSION.PUSH s a
        :1
        2< push["session", "s", :1, "a"]
        2> RESET
        +RESET
        > SESSION.PUSH s b
        :2
        // It is sent nothing more, in RESP3 either.
        2> HELLO 3
        *
        > SESSION.PUSH s c
        :3
        2> PING
        +PONG
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :3, "last_id", :3, "attached", :0, ...]
        "#,
    );
}

/// What was sent before comes before the reply that ends the attachment.
#[test]
fn no_request_comes_after_the_end_of_an_attachment() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        2> HELLO 3
        *
        2> SESSION.ATTACH s
        2> SESSION.PUSH s a
        2> SESSION.DETACH s
        2> PING
        +OK
        :1
        push["session", "s", :1, "a"]
        :1
        +PONG
        2> SESSION.ACK s 1
        :1
        2> SESSION.ATTACH s
        2> SESSION.PUSH s b
        2> RESET
        2> PING
        +OK
        :2
        push["session", "s", :2, "b"]
        +RESET
        +PONG
        "#,
    );
}
