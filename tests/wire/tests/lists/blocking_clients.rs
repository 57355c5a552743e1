//! The clients that wait for lists: their order, how they are seen, how they are sent away.

use wire::{Connection, Session, check};

#[test]
fn first_come_first_served() {
    check(
        r#"
        > BLPOP l 0
        # until blocked_clients:1
        2> BRPOP l 0
        # until blocked_clients:2
        3> BLMPOP 0 1 l LEFT
        # until blocked_clients:3
        4> BLMOVE l {l}m LEFT RIGHT 0
        # until blocked_clients:4
        5> RPUSH l a
        :1
        1< ["l", "a"]
        # until blocked_clients:3
        5> RPUSH l b
        :1
        2< ["l", "b"]
        5> RPUSH l c
        :1
        3< ["l", ["c"]]
        5> RPUSH l d
        :1
        4< "d"
        5> EXISTS l
        :0
        "#,
    );
}

#[test]
fn several_are_served_in_turn_by_one_push() {
    check(
        r#"
        > BLPOP l 0
        # until blocked_clients:1
        2> BRPOP l 0
        # until blocked_clients:2
        3> BLMPOP 0 1 l LEFT COUNT 2
        # until blocked_clients:3
        4> BLPOP l 0
        # until blocked_clients:4
        5> RPUSH l a b c d e f
        :6
        1< ["l", "a"]
        2< ["l", "f"]
        3< ["l", ["b", "c"]]
        4< ["l", "d"]
        5> LRANGE l 0 -1
        ["e"]
        "#,
    );
}

#[test]
fn several_are_served_in_turn_by_one_transaction() {
    check(
        r#"
        > BLPOP l 0
        # until blocked_clients:1
        2> BLPOP l 0
        # until blocked_clients:2
        3> BLPOP l 0
        # until blocked_clients:3
        4> MULTI
        +OK
        4> RPUSH l a
        +QUEUED
        4> RPUSH l b
        +QUEUED
        4> EXEC
        [:1, :2]
        1< ["l", "a"]
        2< ["l", "b"]
        # until blocked_clients:1
        4> RPUSH l c d
        :2
        3< ["l", "c"]
        "#,
    );
}

/// Sends a command that waits, and waits until it does.
fn wait_for(session: &Session, connection: &mut Connection, command: &str) {
    connection.queue_line(command);
    connection.flush();
    let mut other = session.connect();
    while !other.run("INFO clients").text().contains("blocked_clients:1") {
        std::thread::yield_now();
    }
}

#[test]
fn client_unblock() {
    let session = Session::start();
    let (mut waiting, mut other) = (session.connect(), session.connect());
    let id = waiting.run("CLIENT ID").integer();
    let unblock = |other: &mut Connection, how: &str| other.run(&format!("CLIENT UNBLOCK {id} {how}")).to_string();
    assert_eq!(unblock(&mut other, ""), ":0", "nobody waits yet");
    for (command, how, reply) in [
        ("BLPOP l 0", "", "(nil array)"),
        ("BRPOP l m 0", "TIMEOUT", "(nil array)"),
        ("BLMPOP 0 1 l LEFT", "timeout", "(nil array)"),
        ("BLMOVE l m LEFT RIGHT 0", "", "(nil array)"),
        ("BRPOPLPUSH l m 0", "ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"),
        ("BLPOP l 0", "error", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"),
    ] {
        wait_for(&session, &mut waiting, command);
        assert_eq!(unblock(&mut other, how), ":1", "{command}");
        assert_eq!(waiting.read().to_string(), reply, "{command} {how}");
        assert_eq!(unblock(&mut other, how), ":0", "{command} has ended");
    }
    // A client that has been sent away takes nothing.
    assert_eq!(other.run("RPUSH l a").integer(), 1);
    assert_eq!(other.run("LLEN l").integer(), 1);
    assert_eq!(waiting.run("PING").to_string(), "+PONG");
}

#[test]
fn a_client_that_is_killed_takes_nothing() {
    let session = Session::start();
    let (mut killed, mut gone, mut other) = (session.connect(), session.connect(), session.connect());
    let id = killed.run("CLIENT ID").integer();
    wait_for(&session, &mut killed, "BLPOP l 0");
    assert_eq!(other.run(&format!("CLIENT KILL ID {id}")).integer(), 1);
    assert_eq!(killed.read().to_string(), "(closed)");
    while other.run("INFO clients").text().contains("blocked_clients:1") {}
    wait_for(&session, &mut gone, "BLMOVE l m LEFT RIGHT 0");
    drop(gone);
    while other.run("INFO clients").text().contains("blocked_clients:1") {}
    assert_eq!(other.run("RPUSH l a b").integer(), 2);
    assert_eq!(other.run("LRANGE l 0 -1").to_string(), r#"["a", "b"]"#);
    assert_eq!(other.run("EXISTS m").integer(), 0);
}

#[test]
fn a_pipeline_goes_on_behind_a_wait() {
    check(
        r#"
        > BLPOP l 0
        > RPUSH l mine
        > LRANGE l 0 -1
        # until blocked_clients:1
        2> RPUSH l a
        :1
        1< ["l", "a"]
        1< :1
        1< ["mine"]
        "#,
    );
}

#[test]
fn a_client_that_watches_sees_what_a_wait_takes() {
    check(
        r#"
        > BLPOP l 0
        # until blocked_clients:1
        2> WATCH l
        +OK
        3> RPUSH l a
        :1
        1< ["l", "a"]
        2> MULTI
        +OK
        2> PING
        +QUEUED
        2> EXEC
        (nil array)
        "#,
    );
}
