//! SUBSCRIBE, PUBLISH and their kin.

use wire::{Session, check};

#[test]
fn a_message_reaches_those_who_listen() {
    check(
        r#"
        SUBSCRIBE news => ["subscribe", "news", :1]
        2> PUBLISH news hello => :1
        1< ["message", "news", "hello"]
        2> PUBLISH other hello => :0
        2> PUBLISH news "b\x00\r\n" => :1
        1< ["message", "news", "b\x00\r\n"]
        "#,
    );
}

#[test]
fn several_channels_have_a_confirmation_each() {
    check(
        r#"
        > SUBSCRIBE a b a
        ["subscribe", "a", :1]
        ["subscribe", "b", :2]
        ["subscribe", "a", :2]
        PSUBSCRIBE p* => ["psubscribe", "p*", :3]
        SSUBSCRIBE s => ["ssubscribe", "s", :1]
        > UNSUBSCRIBE a nosuch
        ["unsubscribe", "a", :2]
        ["unsubscribe", "nosuch", :2]
        UNSUBSCRIBE => ["unsubscribe", "b", :1]
        UNSUBSCRIBE => ["unsubscribe", (nil), :1]
        PUNSUBSCRIBE => ["punsubscribe", "p*", :0]
        PUNSUBSCRIBE => ["punsubscribe", (nil), :0]
        SUNSUBSCRIBE => ["sunsubscribe", "s", :0]
        SUNSUBSCRIBE => ["sunsubscribe", (nil), :0]
        GET a => (nil)
        "#,
    );
}

#[test]
fn patterns_hear_what_matches() {
    check(
        r#"
        > PSUBSCRIBE h?llo h[ae]llo *
        ["psubscribe", "h?llo", :1]
        ["psubscribe", "h[ae]llo", :2]
        ["psubscribe", "*", :3]
        SUBSCRIBE hello => ["subscribe", "hello", :4]
        2> PUBLISH hello x => :4
        1< ["message", "hello", "x"]
        1< ["pmessage", *, "hello", "x"]
        1< ["pmessage", *, "hello", "x"]
        1< ["pmessage", *, "hello", "x"]
        2> PUBLISH hullo y => :2
        1< ["pmessage", *, "hullo", "y"]
        1< ["pmessage", *, "hullo", "y"]
        2> PUBSUB NUMPAT => :3
        "#,
    );
}

#[test]
fn shard_channels_are_apart() {
    check(
        r#"
        SSUBSCRIBE c => ["ssubscribe", "c", :1]
        2> PUBLISH c x => :0
        2> SPUBLISH c x => :1
        1< ["smessage", "c", "x"]
        2> PUBSUB SHARDCHANNELS => ["c"]
        2> PUBSUB SHARDNUMSUB c d => ["c", :1, "d", :0]
        2> PUBSUB CHANNELS => []
        "#,
    );
}

#[test]
fn who_listens_in_resp2_only_listens() {
    check(
        r#"
        SUBSCRIBE c => ["subscribe", "c", :1]
        > GET a
        -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        > PUBLISH c x
        -ERR Can't execute 'publish': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        PING => ["pong", ""]
        PING hello => ["pong", "hello"]
        UNSUBSCRIBE c => ["unsubscribe", "c", :0]
        PING => +PONG
        SUBSCRIBE c => ["subscribe", "c", :1]
        RESET => +RESET
        GET a => (nil)
        SUBSCRIBE c => ["subscribe", "c", :1]
        > QUIT
        +OK
        (closed)
        2> PUBLISH c x => :0
        "#,
    );
}

#[test]
fn in_resp3_messages_are_pushes() {
    check(
        r#"
        HELLO 3 => *
        SUBSCRIBE c => push["subscribe", "c", :1]
        SET a 1 => +OK
        GET a => "1"
        PING => +PONG
        2> PUBLISH c x => :1
        1< push["message", "c", "x"]
        PSUBSCRIBE * => push["psubscribe", "*", :2]
        2> PUBLISH d y => :1
        1< push["pmessage", "*", "d", "y"]
        UNSUBSCRIBE => push["unsubscribe", "c", :1]
        PUNSUBSCRIBE => push["punsubscribe", "*", :0]
        UNSUBSCRIBE => push["unsubscribe", _, :0]
        "#,
    );
}

/// In a pipeline, messages come before the reply of the next command. After RESET and HELLO none comes that belongs to the state
/// before. Redis sends a message before the reply of its PUBLISH.
#[test]
fn messages_come_before_the_next_reply() {
    check(
        r#"
        HELLO 3 => *
        > SUBSCRIBE c
        > PUBLISH c one
        > PING
        > PUBLISH c two
        > HELLO 2
        > PING
        > RESET
        > PING
        push["subscribe", "c", :1]
        :1 | push["message", "c", "one"]
        :1 | push["message", "c", "one"]
        +PONG
        :1 | push["message", "c", "two"]
        :1 | push["message", "c", "two"]
        ["server", ...]
        ["pong", ""]
        +RESET
        +PONG
        > HELLO 3
        > PSUBSCRIBE c*
        > PUBLISH c three
        > RESET
        > PING
        {"server" => "redis", ...}
        push["psubscribe", "c*", :1]
        :1 | push["pmessage", "c*", "c", "three"]
        :1 | push["pmessage", "c*", "c", "three"]
        +RESET
        +PONG
        "#,
    );
}

#[test]
fn looking_at_who_listens() {
    check(
        r#"
        2> PUBSUB CHANNELS => []
        2> PUBSUB NUMSUB => []
        2> PUBSUB NUMPAT => :0
        > SUBSCRIBE one two three
        ["subscribe", "one", :1]
        ["subscribe", "two", :2]
        ["subscribe", "three", :3]
        3> SUBSCRIBE one => ["subscribe", "one", :1]
        2> PUBSUB CHANNELS => ~["one", "two", "three"]
        2> PUBSUB CHANNELS t* => ~["two", "three"]
        2> PUBSUB NUMSUB one two nosuch => ["one", :2, "two", :1, "nosuch", :0]
        2> PUBLISH one x => :2
        1< ["message", "one", "x"]
        3< ["message", "one", "x"]
        2> PUBSUB NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try PUBSUB HELP.
        2> PUBSUB NUMPAT x => -ERR wrong number of arguments for 'pubsub|numpat' command
        2> PUBLISH one => -ERR wrong number of arguments for 'publish' command
        2> SUBSCRIBE => -ERR wrong number of arguments for 'subscribe' command
        2> CLIENT LIST TYPE pubsub => ~"*flags=P*sub=3*flags=P*sub=1*"
        "#,
    );
}

#[test]
fn publishing_in_a_transaction() {
    check(
        r#"
        SUBSCRIBE c => ["subscribe", "c", :1]
        2! MULTI
        2> PUBLISH c one => +QUEUED
        2> SET a 1 => +QUEUED
        2> PUBLISH c two => +QUEUED
        2> EXEC => [:1, +OK, :1]
        1< ["message", "c", "one"]
        1< ["message", "c", "two"]
        3! MULTI
        3> SUBSCRIBE d => +QUEUED
        3> EXEC => [["subscribe", "d", :1]]
        "#,
    );
}

#[test]
fn many_messages_come_in_their_order_and_before_the_end() {
    const MESSAGES: usize = 20_000;
    let session = Session::start();
    let (mut listener, mut speaker) = (session.connect(), session.connect());
    listener.run("SUBSCRIBE c");
    let requests: Vec<String> = (0..MESSAGES).map(|number| format!("PUBLISH c {number}")).collect();
    for some in requests.chunks(500) {
        let some: Vec<&str> = some.iter().map(String::as_str).collect();
        assert!(speaker.pipeline(&some).iter().all(|reply| reply.to_string() == ":1"));
    }
    listener.queue(&["UNSUBSCRIBE", "c"]);
    for number in 0..MESSAGES {
        assert_eq!(listener.read().to_string(), format!(r#"["message", "c", "{number}"]"#));
    }
    assert_eq!(listener.read().to_string(), r#"["unsubscribe", "c", :0]"#);
}

/// What tells of subscriptions and messages is no reply.
#[test]
fn a_client_without_replies_hears_of_its_subscriptions() {
    for hello in ["HELLO 2", "HELLO 3"] {
        let push = if hello.ends_with('3') { "push" } else { "" };
        check(&format!(
            r##"
            > {hello}
            *
            > CLIENT REPLY OFF
            > SUBSCRIBE news
            {push}["subscribe", "news", :1]
            2> PUBLISH news hello
            :1
            1< {push}["message", "news", "hello"]
            > UNSUBSCRIBE news
            {push}["unsubscribe", "news", :0]
            > SUBSCRIBE
            > CLIENT REPLY ON
            +OK
            "##
        ));
    }
}

/// CLIENT REPLY SKIP is for one command, also if what that sends is no reply.
#[test]
fn a_skipped_reply_is_that_of_one_command() {
    for hello in ["HELLO 2", "HELLO 3"] {
        let push = if hello.ends_with('3') { "push" } else { "" };
        let (pong, null) = if hello.ends_with('3') { ("+PONG", "_") } else { (r#"["pong", ""]"#, "(nil)") };
        check(&format!(
            r##"
            > {hello}
            *
            > CLIENT REPLY SKIP
            > SUBSCRIBE news
            > PING
            {push}["subscribe", "news", :1]
            {pong}
            > UNSUBSCRIBE
            {push}["unsubscribe", "news", :0]
            > CLIENT REPLY SKIP
            > UNSUBSCRIBE news
            > GET nosuch
            {push}["unsubscribe", "news", :0]
            {null}
            > CLIENT REPLY SKIP
            > SUBSCRIBE
            > GET nosuch
            {null}
            "##
        ));
    }
}

/// CLIENT LIST tells of all that a client has not taken, also of what came after its socket was full.
#[test]
fn what_a_slow_listener_has_not_taken_is_counted() {
    let session = Session::start();
    let (mut listener, mut speaker) = (session.connect(), session.connect());
    listener.run("SUBSCRIBE c");
    let message = format!("PUBLISH c {}", "x".repeat(100_000));
    let mut unsent = 0;
    // The systems between the two take a few megabytes. A client with 32 MB that it has not taken is closed.
    for _ in 0..300 {
        assert_eq!(speaker.run(&message).to_string(), ":1");
        let line = speaker.run("CLIENT LIST TYPE pubsub").text().to_owned();
        unsent = line.split_once(" omem=").unwrap().1.split(' ').next().unwrap().parse().unwrap();
        if unsent > 1_000_000 {
            return;
        }
    }
    panic!("omem={unsent}");
}
