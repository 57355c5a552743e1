//! How long a session lives: from its last renewal, as long as the server serves.

use crate::own_server::OwnServer;
use crate::{check, must, start};
use std::time::{Duration, Instant};

#[test]
fn a_session_that_is_not_renewed_goes_with_all_it_has() {
    check(
        r#"
        > SESSION.OPEN ID s TTL 100 CAP 1 a b
        "s"
        > SESSION.PUSH s x
        :1
        > SESSION.CALL s 1 LOW 1 SET k v
        +OK
        # eventually
        > EXISTS s
        :0
        > SESSION.ALIVE s
        :0
        > SESSION.INFO s
        (nil)
        > SESSION.CALL s 1 LOW 1 SET k v
        ~-NOSESSION *
        > SESSION.CALL s 2 LOW 1 SET k w
        ~-NOSESSION *
        > SESSION.PUSH s x
        ~-NOSESSION *
        > SESSION.PENDING s
        ~-NOSESSION *
        > SESSION.ACK s 1
        ~-NOSESSION *
        > SESSION.CLOSE s
        :0
        > EXISTS s
        :0
        > TYPE s
        +none
        > PTTL s
        :-2
        > GET k
        "v"
        > SESSION.HASRETRY 99999999999999
        :0
        > SESSION.RETRY 99999999999999
        []
        > SESSION.OPEN ID s
        "s"
        > SESSION.PUSH s y
        :1
        > SESSION.CALL s 1 LOW 1 SET k x
        +OK
        "#,
    );
}

/// A shorter TTL counts from now: the session is gone, and the hook was called, long before the old one ends.
#[test]
fn open_can_shorten_the_life_of_a_session() {
    let Some(session) = start() else { return };
    session.check(
        r##"
        > FUNCTION LOAD "#!lua name=ends\nredis.register_function('ended', function(keys) redis.call('SET', 'ended:' .. keys[1], 1) end)"
        "ends"
        > SESSION.HOOK EXPIRED ended
        +OK
        > SESSION.OPEN ID s TTL 100000000
        "s"
        // It is in the order of its time.
        # sleep 300ms
        > SESSION.OPEN ID s TTL 50
        "s"
        # eventually
        > GET ended:s
        "1"
        > DBSIZE
        :1
        > SESSION.OPEN ID s TTL 100000000
        "s"
        # sleep 300ms
        > MULTI
        > SESSION.OPEN ID s TTL 50
        > DEL ended:s
        > EXEC
        +OK
        +QUEUED
        +QUEUED
        ["s", :1]
        # eventually
        > GET ended:s
        "1"
        > SESSION.HOOK EXPIRED NONE
        +OK
        "##,
    );
}

/// A renewal begins the whole TTL again: a session that is renewed lives many times its TTL.
#[test]
fn alive_open_and_call_renew() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let renewals = [
        "SESSION.ALIVE s0",
        "SESSION.OPEN ID s1",
        "SESSION.CALL s2 1 LOW 1 PING",
        "SESSION.CALL s3 2 LOW 1 HSET k a b",
        "SESSION.CALL s4 3 LOW 1 INCR k",
        "SESSION.CALL s5 3 LOW 1 EVAL \"return 1\" 0",
        "EVAL \"return redis.call('session.alive', 's6')\" 0",
    ];
    must(&mut connection, "SET k x");
    for number in 0..renewals.len() + 1 {
        must(&mut connection, &format!("SESSION.OPEN ID s{number} TTL 3000"));
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(6_000) {
        connection.pipeline(&renewals);
        connection.pipeline(&["MULTI", "SESSION.ALIVE s7", "EXEC"]);
        std::thread::sleep(Duration::from_millis(50));
    }
    for number in 0..renewals.len() + 1 {
        assert_eq!(connection.run(&format!("EXISTS s{number}")).integer(), 1, "{number}");
    }
}

/// What does not renew: all the rest.
#[test]
fn reads_pushes_and_attach_do_not_renew() {
    let Some(session) = start() else { return };
    let (mut connection, mut attached) = (session.connect(), session.connect());
    must(&mut attached, "HELLO 3");
    must(&mut connection, "SESSION.OPEN ID s TTL 1000");
    must(&mut attached, "SESSION.ATTACH s");
    loop {
        connection.run("SESSION.PUSH s x");
        connection.run("SESSION.PENDING s");
        connection.run("SESSION.ACK s 1000000");
        connection.run("SESSION.RETRY 1");
        connection.run("TYPE s");
        connection.run("SESSION.CALL s 5 LOW 9 PING");
        if connection.run("SESSION.INFO s").is_nil() {
            return;
        }
    }
}

#[test]
fn deadlines_of_keys_say_how_long_it_would_live() {
    check(
        r#"
        > SESSION.OPEN ID s TTL 100000
        "s"
        > PTTL s
        :50000..100000
        > TTL s
        :50..100
        > EXPIRETIME s
        :1700000000..
        > PEXPIRETIME s
        :1700000000000..
        > HELLO 3
        *
        > SESSION.OPEN ID t TTL 140737488355328
        "t"
        > PTTL t
        :140737488000000..140737488355328
        > SESSION.OPEN ID u TTL 140737488355329
        ~-ERR *
        "#,
    );
}

/// While the server is down no session grows old: at start each has its whole TTL again.
#[test]
fn a_restart_gives_each_its_whole_time_again() {
    let Some(mut own) = OwnServer::start(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    let mut killer = own.killer();
    let mut connection = killer.own().connect();
    must(&mut connection, "SESSION.OPEN ID long TTL 600000");
    must(&mut connection, "SESSION.OPEN ID short TTL 5000");
    must(&mut connection, "SESSION.PUSH short x");
    let before = connection.run("PEXPIRETIME long").integer();
    std::thread::sleep(Duration::from_millis(1_000));
    killer.kill_and_start();
    connection = killer.own().connect();
    // It begins later by what had passed, whatever the clock does meanwhile.
    assert!(connection.run("PEXPIRETIME long").integer() >= before + 1_000);
    assert_eq!(connection.run("SESSION.ALIVE short").integer(), 1);
    must(&mut connection, "SAVE");
    killer.kill_and_start();
    connection = killer.own().connect();
    assert_eq!(connection.run("SESSION.PENDING short").items().len(), 1);
    while connection.run("EXISTS short").integer() == 1 {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(connection.run("SESSION.ALIVE long").integer(), 1);
    // What has expired stays so.
    killer.kill_and_start();
    connection = killer.own().connect();
    while connection.run("DBSIZE").integer() != 1 {}
}
