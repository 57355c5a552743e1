//! The harness itself: a transcript that is right passes, one that is wrong says where and why.

use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use wire::{Server, Session, check, fresh_dir};

#[test]
fn a_conversation() {
    check(
        r#"
        // Replies are written one a line, in the form of the wire type.
        > SET greeting "hello\r\n\x00world"
        +OK
        > GET greeting
        "hello\r\n\x00world"
        > GET nosuch
        (nil)
        > STRLEN greeting
        :13
        > STRLEN greeting
        :1..100
        > GET greeting
        ~"hello*"
        > HSET cart apples 3 pears 4
        :2
        > HKEYS cart
        ~["pears", "apples"]
        > HGETALL cart
        ["apples", "3",
         "pears", "4"]
        > HMGET cart apples nosuch
        ["3", ...]
        > INCR cart
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > NOSUCH
        ~-ERR unknown command*
        "#,
    );
}

#[test]
fn commands_in_a_row_are_sent_as_one_pipeline() {
    check(
        "
        > SET a 1
        > INCR a
        > INCR a
        +OK
        :2
        :3
        ",
    );
}

#[test]
fn several_connections() {
    check(
        r#"
        1> SET a 1
        +OK
        2> SELECT 1
        +OK
        2> GET a
        (nil)
        1> GET a
        2> SET a 2
        2< +OK
        1< "1"
        2> DEL a
        :1
        "#,
    );
}

#[test]
fn rows_groups_and_steps() {
    check(
        r#"
        ! SET a 1
        2! SET b 2
        GET a => "1"
        2> MGET a b => ["1", "2"]
        // The reply after a row is of the same connection.
        2! MULTI
        2> GET a => +QUEUED
        2> EXEC
        ["1"]
        ~-ERR *
            INCR a b
            // A comment ends no group.
            NOSUCH
        > STRLEN a
        :1
        // Brackets close on a later line.
        [
            "1", (nil)
        ]
            MGET a nosuch
            MGET a "x => y"
        SET b "x => y"   =>   +OK
        2> SET b "2 => 3"
        +OK
        GET b => "2 => 3"
        MGET a b => [
            "1", "2 => 3"
        ]
        ! PSETEX a 30 1
        # eventually
        GET a => (nil)
        "#,
    );
}

#[test]
fn raw_bytes() {
    check(
        r#"
        >> "PING\r\n*1\r\n$4\r\nPI"
        << "+PONG\r\n"
        >> "NG\r\n"
        +PONG
        "#,
    );
}

#[test]
fn a_server_that_hangs_up() {
    check(
        r#"
        > QUIT
        +OK
        (closed)
        2> PING
        +PONG
        "#,
    );
}

#[test]
fn resp3() {
    check(
        r#"
        > HELLO 3
        {"server" => *, ...}
        > GET nosuch
        _
        > HSET cart apples 3 pears 4
        :2
        > HGETALL cart
        ~{"pears" => "4", "apples" => "3"}
        "#,
    );
}

#[test]
fn eventually() {
    check(
        "
        > SET a 1 PX 30
        +OK
        # eventually
        > EXISTS a
        :0
        ",
    );
}

#[test]
fn settings_are_put_back() {
    let session = Session::start();
    let mut connection = session.connect();
    let before = connection.run("CONFIG GET hash-max-listpack-entries");
    session.check(
        r#"
        # config hash-max-listpack-entries 7
        > CONFIG GET hash-max-listpack-entries
        ["hash-max-listpack-entries", "7"]
        "#,
    );
    assert_eq!(connection.run("CONFIG GET hash-max-listpack-entries"), before);
}

#[test]
fn what_is_wrong_is_shown_with_its_line() {
    let session = Session::start();
    let complaint = |transcript: &str| {
        let outcome = catch_unwind(AssertUnwindSafe(|| session.check(transcript)));
        *outcome.unwrap_err().downcast::<String>().unwrap()
    };

    let wrong = complaint("> SET a 1\n+OK\n> GET a\n:1\n");
    assert!(wrong.contains("--> :1"), "{wrong}");
    assert!(wrong.contains(": \"1\""), "{wrong}");
    assert!(wrong.contains("harness.rs:"), "{wrong}");

    let too_much = complaint("> PING\n> PING\n+PONG\n");
    assert!(too_much.contains("no line expects: +PONG"), "{too_much}");

    for misspelt in ["> PING\nPONG\n", "> PING\npong\n", "+PONG\nPING\nECHO a => \"a\"\nPONG\n"] {
        let misspelt = complaint(misspelt);
        assert!(misspelt.contains("expected a reply"), "{misspelt}");
    }

    let unknown = complaint("# needs luck\n");
    assert!(unknown.contains("no such directive"), "{unknown}");
}

#[test]
fn a_wrong_reply_in_a_short_form_is_shown_with_its_line() {
    let session = Session::start();
    // Each with the line that is wrong, counted from 0.
    let transcripts = [
        ("! SET a 1\n\nGET a => :1\nPING => +PONG", 2, "GET a => :1"),
        ("! SET a 1\n2> GET a => :1\nPING => +PONG", 1, "2> GET a => :1"),
        ("MGET b c => [\n(nil), (nil)\n]\n! INCRBY a x\nPING => +PONG", 3, "! INCRBY a x"),
        ("-ERR syntax error\n    SET a 1 NX XX\n    // A comment.\n    SET a 1\n    SET a 1 EX", 3, "SET a 1"),
        ("\n    +PONG\n    PING\n    ECHO a\n", 3, "ECHO a"),
    ];
    for (transcript, wrong, text) in transcripts {
        let opens = line!() + 1 + u32::from(transcript.starts_with('\n'));
        let outcome = catch_unwind(AssertUnwindSafe(|| session.check(transcript)));
        let complaint = *outcome.unwrap_err().downcast::<String>().unwrap();
        assert!(complaint.contains(&format!("harness.rs:{}\n", opens + wrong)), "{complaint}");
        assert!(complaint.contains(&format!("--> {text}\n    received from ")), "{complaint}");
    }
}

#[test]
fn the_rest_is_left_out_where_the_server_is_too_old() {
    check(
        "
        > PING
        +PONG
        # needs redis >= 99.0
        # redis only
        > NOSUCH
        +OK
        ",
    );
}

#[test]
fn a_server_of_one_s_own_can_be_killed_and_started_again() {
    if env::var_os("HOLDFAST_TEST_ADDR").is_some() {
        wire::skip("the server under test is not ours to kill");
        return;
    }
    let dir = fresh_dir();
    for _ in 0..2 {
        let server = Server::start(&dir, &[]);
        let mut connection = server.connect();
        assert_eq!(connection.run("PING").to_string(), "+PONG");
        server.kill();
        assert_eq!(connection.run("PING").to_string(), "(closed)");
    }
    fs::remove_dir_all(dir).unwrap();
}
