//! SESSION.PENDING … BLOCK: a client that waits for its next request.

use crate::{check, must, start};
use std::thread;

#[test]
fn a_push_wakes_all_readers() {
    check(
        r#"
        ! SESSION.OPEN ID s
        ! SESSION.PUSH s a
        SESSION.PENDING s BLOCK 0 => [[:1, "a", *]]
        SESSION.PENDING s AFTER 1 BLOCK 5 => []
        SESSION.PENDING s AFTER 1 LIMIT 0 BLOCK 0 => []
        2> SESSION.PENDING s AFTER 1 BLOCK 0
        3> SESSION.PENDING s AFTER 1 BLOCK 100000 LIMIT 1
        4> SESSION.PENDING s AFTER 2 BLOCK 0
        # until blocked_clients:3
        > SESSION.ACK s 1
        :1
        > SESSION.ALIVE s
        :1
        ! SESSION.OPEN ID s
        # until blocked_clients:3
        ! SESSION.PUSH s b
        2< [[:2, "b", *]]
        3< [[:2, "b", *]]
        # until blocked_clients:1
        ! MULTI
        ! SESSION.PUSH s c
        ! SESSION.PUSH s d
        > EXEC
        [:3, :4]
        4< [[:3, "c", *], [:4, "d", *]]
        # until blocked_clients:0
        "#,
    );
}

/// What a reader that comes after the session has gone gets, so does one that waits.
#[test]
fn the_end_of_the_session_ends_the_wait() {
    let removals = "SESSION.CLOSE s; DEL s; UNLINK s; FLUSHALL; FLUSHDB; SWAPDB 0 1; SESSION.CALL s 1 LOW 1 DEL s";
    // It expires.
    for gone in removals.split("; ").chain(["SESSION.OPEN ID s TTL 30"]) {
        check(&format!(
            r#"
            ! SESSION.OPEN ID s
            2> SESSION.PENDING s BLOCK 0
            3> SESSION.PENDING s AFTER 7 BLOCK 0
            # until blocked_clients:2
            > {gone}
            *
            2< ~-NOSESSION *
            3< ~-NOSESSION *
            # until blocked_clients:0
            "#
        ));
    }
}

#[test]
fn another_key_in_its_place_ends_the_wait() {
    check(
        r#"
        ! SESSION.OPEN ID s
        2> SESSION.PENDING s BLOCK 0
        # until blocked_clients:1
        > EVAL "redis.call('del', KEYS[1]) return redis.call('set', KEYS[1], 'x')" 1 s
        +OK
        2< -WRONGTYPE Operation against a key holding the wrong kind of value: the key's type is string
        ! DEL s
        ! SESSION.OPEN ID s
        2> SESSION.PENDING s BLOCK 0
        # until blocked_clients:1
        > EVAL "redis.call('del', KEYS[1]) return redis.call('session.open', 'id', KEYS[1])" 1 s
        "s"
        2< []
        "#,
    );
}

#[test]
fn a_wait_can_be_ended_by_others() {
    let Some(session) = start() else { return };
    let (mut connection, mut reader) = (session.connect(), session.connect());
    must(&mut connection, "SESSION.OPEN ID s");
    for (how, expected) in [("TIMEOUT", "[]"), ("ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK")] {
        let id = reader.run("CLIENT ID").integer();
        reader.queue_line("SESSION.PENDING s BLOCK 0");
        reader.flush();
        while connection.run(&format!("CLIENT UNBLOCK {id} {how}")).integer() == 0 {
            thread::yield_now();
        }
        assert_eq!(reader.read().to_string(), expected);
    }
    // Readers that go away leave nothing behind.
    let mut readers: Vec<_> = (0..100).map(|_| session.connect()).collect();
    for reader in &mut readers {
        reader.queue_line("SESSION.PENDING s BLOCK 0");
        reader.flush();
    }
    session.check("# until blocked_clients:100");
    let mut stay = readers.split_off(50);
    drop(readers);
    session.check("# until blocked_clients:50");
    must(&mut connection, "SESSION.PUSH s x");
    for reader in &mut stay {
        assert_eq!(reader.read().items()[0].items()[1].text(), "x");
    }
}
