//! How long a session lives: from its last renewal, as long as the server serves.

use crate::retry::next_ms;
use crate::{check, must, must_all, start};
use std::time::Duration;
use wire::own::OwnServer;

#[test]
fn a_session_that_is_not_renewed_goes_with_all_it_has() {
    check(
        r#"
        ! SESSION.OPEN ID s TTL 100 CAP 1 a b
        ! SESSION.PUSH s x
        SESSION.CALL s 1 LOW 1 SET k v => +OK
        # eventually
        > EXISTS s
        :0
        SESSION.ALIVE s => :0
        SESSION.INFO s => (nil)
        SESSION.CALL s 1 LOW 1 SET k v => ~-NOSESSION *
        SESSION.CALL s 2 LOW 1 SET k w => ~-NOSESSION *
        SESSION.PUSH s x => ~-NOSESSION *
        SESSION.PENDING s => ~-NOSESSION *
        SESSION.ACK s 1 => ~-NOSESSION *
        > SESSION.CLOSE s
        :0
        EXISTS s => :0
        TYPE s => +none
        PTTL s => :-2
        GET k => "v"
        SESSION.HASRETRY 99999999999999 => :0
        > SESSION.RETRY 99999999999999
        []
        ! SESSION.OPEN ID s
        ! SESSION.PUSH s y
        SESSION.CALL s 1 LOW 1 SET k x => +OK
        "#,
    );
}

/// A shorter TTL counts from now: the session is gone, and the hook was called, long before the old one ends.
#[test]
fn open_can_shorten_the_life_of_a_session() {
    check(
        r##"
        > FUNCTION LOAD "#!lua name=ends\nredis.register_function('ended', function(keys) redis.call('SET', 'ended:' .. keys[1], 1) end)"
        "ends"
        ! SESSION.HOOK EXPIRED ended
        ! SESSION.OPEN ID s TTL 100000000
        // It is in the order of its time.
        # sleep 300ms
        ! SESSION.OPEN ID s TTL 50
        # eventually
        > GET ended:s
        "1"
        > DBSIZE
        :1
        ! SESSION.OPEN ID s TTL 100000000
        # sleep 300ms
        ! MULTI
        ! SESSION.OPEN ID s TTL 50
        ! DEL ended:s
        EXEC => ["s", :1]
        # eventually
        > GET ended:s
        "1"
        ! SESSION.HOOK EXPIRED NONE
        "##,
    );
}

/// What renews a session begins its whole TTL again; all the rest leaves its deadline as it is.
#[test]
fn alive_open_and_call_renew_and_nothing_else() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    must_all(&mut connection, "HELLO 3; SET k x; SESSION.OPEN ID s");
    for (line, renews) in [
        ("SESSION.ALIVE s", true),
        ("SESSION.OPEN ID s", true),
        ("SESSION.CALL s 1 LOW 1 PING", true),
        ("SESSION.CALL s 1 LOW 1 PING", true),
        ("SESSION.CALL s 2 LOW 1 HSET k a b", true),
        ("SESSION.CALL s 3 LOW 1 INCR k", true),
        ("SESSION.CALL s 4 LOW 1 EVAL \"return 1\" 0", true),
        ("EVAL \"return redis.call('session.alive', 's')\" 0", true),
        ("MULTI; SESSION.ALIVE s; EXEC", true),
        ("SESSION.CALL s 5 LOW 9 PING", false),
        ("SESSION.PUSH s x", false),
        ("SESSION.PENDING s", false),
        ("SESSION.ACK s 1000000", false),
        ("SESSION.RETRY 99999999999999", false),
        ("SESSION.INFO s", false),
        ("TYPE s", false),
        ("SESSION.ATTACH s", false),
        ("SESSION.DETACH s", false),
    ] {
        let before = connection.run("PEXPIRETIME s").integer();
        next_ms(&mut connection);
        connection.pipeline(&line.split("; ").collect::<Vec<_>>());
        let after = connection.run("PEXPIRETIME s").integer();
        assert_eq!(after > before, renews, "{line}: {before} {after}");
        assert!(after >= before, "{line}: {before} {after}");
    }
}

#[test]
fn deadlines_of_keys_say_how_long_it_would_live() {
    check(
        r#"
        ! SESSION.OPEN ID s TTL 100000
        PTTL s => :50000..100000
        TTL s => :50..100
        EXPIRETIME s => :1700000000..
        PEXPIRETIME s => :1700000000000..
        ! HELLO 3
        ! SESSION.OPEN ID t TTL 140737488355328
        PTTL t => :140737488000000..140737488355328
        SESSION.OPEN ID u TTL 140737488355329 => ~-ERR *
        "#,
    );
}

/// While the server is down no session grows old: at start each has its whole TTL again.
#[test]
fn a_restart_gives_each_its_whole_time_again() {
    let Some(own) = OwnServer::start(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    let mut connection = own.connect();
    must_all(&mut connection, "SESSION.OPEN ID long TTL 600000; SESSION.OPEN ID short TTL 5000; SESSION.PUSH short x");
    let before = connection.run("PEXPIRETIME long").integer();
    std::thread::sleep(Duration::from_millis(1_000));
    own.kill_and_start();
    connection = own.connect();
    // It begins later by what had passed, whatever the clock does meanwhile.
    assert!(connection.run("PEXPIRETIME long").integer() >= before + 1_000);
    assert_eq!(connection.run("SESSION.ALIVE short").integer(), 1);
    must(&mut connection, "SAVE");
    own.kill_and_start();
    connection = own.connect();
    assert_eq!(connection.run("SESSION.PENDING short").items().len(), 1);
    while connection.run("EXISTS short").integer() == 1 {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(connection.run("SESSION.ALIVE long").integer(), 1);
    // What has expired stays so.
    own.kill_and_start();
    connection = own.connect();
    while connection.run("DBSIZE").integer() != 1 {}
}
