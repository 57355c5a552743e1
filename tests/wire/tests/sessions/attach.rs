//! SESSION.ATTACH and DETACH: requests that are sent as they come.

use crate::{check, must, must_all, start};
use std::collections::BTreeMap;
use wire::own::at_once;
use wire::{Reply, Session};

#[test]
fn pending_requests_come_first_and_new_ones_after() {
    check(
        r#"
        ! SESSION.OPEN ID s
        > SESSION.ATTACH s
        ~-ERR *HELLO 3*
        ! SESSION.PUSH s a
        ! SESSION.PUSH s b
        ! SESSION.PUSH s c
        ! SESSION.ACK s 1
        2! HELLO 3
        2! SESSION.ATTACH s
        2< push["session", "s", :2, "b"]
        2< push["session", "s", :3, "c"]
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :2, "last_id", :3, "attached", :1, ...]
        ! SESSION.PUSH s d
        2< push["session", "s", :4, "d"]
        ! MULTI
        ! SESSION.PUSH s e
        ! SESSION.PUSH s f
        > EXEC
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
        2! SESSION.PUSH s "to itself"
        2< push["session", "s", :9, "to itself"]
        2> SESSION.DETACH s
        :1
        2> SESSION.DETACH s
        :0
        ! SESSION.PUSH s i
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
        ! SESSION.OPEN ID s
        ! SESSION.PUSH s a
        2! HELLO 3
        3! HELLO 3
        2! SESSION.ATTACH s
        2< push["session", "s", :1, "a"]
        3! SESSION.ATTACH s
        3< push["session", "s", :1, "a"]
        ! SESSION.PUSH s b
        3< push["session", "s", :2, "b"]
        2> PING
        +PONG
        // The former's word is no longer about it.
        2> SESSION.DETACH s
        :0
        ! SESSION.PUSH s c
        3< push["session", "s", :3, "c"]
        // Once more by the same: all that is pending again.
        3! SESSION.ATTACH s
        3< push["session", "s", :1, "a"]
        3< push["session", "s", :2, "b"]
        3< push["session", "s", :3, "c"]
        ! SESSION.PUSH s d
        3< push["session", "s", :4, "d"]
        // It is the other's now.
        2! HELLO 2
        "#,
    );
}

/// RESP2 has no push frames, so a client that is attached stays with RESP3.
#[test]
fn reset_detaches_and_hello_2_is_refused() {
    check(
        r#"
        ! SESSION.OPEN ID s
        2! HELLO 3
        2! SESSION.ATTACH s
        2> HELLO 2
        ~-ERR *attached to a session*
        ! SESSION.PUSH s a
        2< push["session", "s", :1, "a"]
        2> RESET
        +RESET
        ! SESSION.PUSH s b
        2> PING
        +PONG
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :2, "last_id", :2, "attached", :0, ...]
        2! HELLO 3
        2! SESSION.ATTACH s
        2< push["session", "s", :1, "a"]
        2< push["session", "s", :2, "b"]
        2> SESSION.DETACH s
        :1
        2! HELLO 2
        // A connection that is closed is no longer attached.
        3! HELLO 3
        3! SESSION.ATTACH s
        3< push["session", "s", :1, "a"]
        3< push["session", "s", :2, "b"]
        3> QUIT
        +OK
        3< (closed)
        # eventually
        > SESSION.INFO s
        [*, *, *, *, *, *, *, *, *, *, *, *, *, *, *, *, "attached", :0, ...]
        "#,
    );
}

#[test]
fn many_sessions_can_be_attached_to_one_connection() {
    check(
        r#"
        ! SESSION.OPEN ID a
        ! SESSION.OPEN ID b
        2! HELLO 3
        2! SESSION.ATTACH a
        2! SESSION.ATTACH b
        ! SESSION.PUSH b 1
        2< push["session", "b", :1, "1"]
        ! SESSION.PUSH a 1
        2< push["session", "a", :1, "1"]
        2> SESSION.DETACH b
        :1
        ! SESSION.PUSH b 2
        ! SESSION.PUSH a 2
        2< push["session", "a", :2, "2"]
        "#,
    );
}

/// A session that goes takes the attachment with it, and RESP2 is possible again; one of the same name is another.
#[test]
fn the_end_of_the_session_ends_the_attachment() {
    for (ttl_ms, gone) in [(90000, "SESSION.CLOSE s"), (90000, "DEL s"), (90000, "FLUSHALL"), (50, "PING")] {
        check(&format!(
            r#"
            ! SESSION.OPEN ID s TTL {ttl_ms}
            2! HELLO 3
            2! SESSION.ATTACH s
            ! {gone}
            # eventually
            2> HELLO 2
            ["server", ...]
            2! HELLO 3
            ! SESSION.OPEN ID s
            ! SESSION.PUSH s new
            > SESSION.INFO s
            ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :1, "last_id", :1, "attached", :0, ...]
            2> SESSION.DETACH s
            :0
            2! SESSION.ATTACH s
            2< push["session", "s", :1, "new"]
            "#
        ));
    }
}

/// Two databases may have sessions of the same name.
#[test]
fn the_attachment_is_of_its_database() {
    check(
        r#"
        ! SESSION.OPEN ID s
        2! HELLO 3
        2! SESSION.ATTACH s
        ! SELECT 4
        ! SESSION.OPEN ID s
        ! SESSION.PUSH s four
        2> PING
        +PONG
        2! SELECT 4
        2> SESSION.DETACH s
        :0
        ! SELECT 0
        ! SESSION.PUSH s zero
        2< push["session", "s", :1, "zero"]
        "#,
    );
}

#[test]
fn attach_and_detach_are_not_for_transactions_and_scripts() {
    check(
        r#"
        ! HELLO 3
        ! SESSION.OPEN ID s
        ! MULTI
        SESSION.ATTACH s => ~-ERR *
        SESSION.DETACH s => ~-ERR *
        EXEC => ~-EXECABORT *
        EVAL "return redis.call('SESSION.ATTACH', 's')" 0 => ~-ERR *
        ! TXN.BEGIN
        > SESSION.ATTACH s
        ~-ERR *
        ! TXN.ROLLBACK
        > SESSION.CALL s 1 LOW 1 SESSION.ATTACH s
        ~-ERR *
        ! SESSION.PUSH s a
        PING => +PONG
        "#,
    );
}

/// Pushes from many connections, plain and in transactions, while connections attach and go away: each of those gets every pending
/// request in order and without a gap, with the payload that its pusher was told the number of.
#[test]
fn frames_are_in_order_under_concurrent_pushes() {
    const EACH: usize = 600;
    const PUSHERS: usize = 4;
    let Some(session) = start() else { return };
    must(&mut session.connect(), "SESSION.OPEN ID s");
    let mut numbered = at_once(&session, PUSHERS + 1, |mut connection, client| {
        if client == 0 {
            return attached_again_and_again(&session, PUSHERS * EACH);
        }
        let mut told = BTreeMap::new();
        for number in 0..EACH {
            let payload = format!("{client}:{number}");
            let push = format!("SESSION.PUSH s {payload}");
            let script = format!("EVAL \"return redis.call('session.push', 's', ARGV[1])\" 0 {payload}");
            let id = match number % 3 {
                0 => must(&mut connection, &push),
                1 => must(&mut connection, &script),
                _ => connection.pipeline(&["MULTI", &push, "EXEC"])[2].items()[0].clone(),
            };
            told.insert(id.integer(), payload);
        }
        told
    });
    let frames = numbered.remove(0);
    assert_eq!(frames, numbered.into_iter().flatten().collect());
}

/// Connections that attach one after the other until all these requests were sent, each from the first to a later one.
fn attached_again_and_again(session: &Session, requests: usize) -> BTreeMap<i64, String> {
    let (mut all, mut round) = (BTreeMap::new(), 0);
    while all.len() < requests {
        let mut client = session.connect();
        must_all(&mut client, "HELLO 3; SESSION.ATTACH s");
        round += 1;
        let mut next = 1;
        while all.len() < requests && next < 150 * round {
            let Reply::Push(parts) = client.read() else { panic!("not a push frame") };
            assert_eq!(parts[2].integer(), next, "round {round}");
            next += 1;
            let payload = parts[3].text().to_owned();
            let before = all.insert(parts[2].integer(), payload.clone());
            assert!(before.is_none_or(|before| before == payload));
        }
    }
    all
}

/// SWAPDB moves a session with its attachment.
#[test]
fn an_attachment_follows_its_session_to_another_database() {
    check(
        r#"
        ! SESSION.OPEN ID s
        2! HELLO 3
        2! SESSION.ATTACH s
        ! SWAPDB 0 5
        2> HELLO 2
        ~-ERR *attached to a session*
        ! SELECT 5
        ! SESSION.PUSH s a
        2< push["session", "s", :1, "a"]
        2> RESET
        +RESET
        ! SESSION.PUSH s b
        // It is sent nothing more, in RESP3 either.
        2! HELLO 3
        ! SESSION.PUSH s c
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
        ! SESSION.OPEN ID s
        2! HELLO 3
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
