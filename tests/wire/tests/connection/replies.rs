//! CLIENT REPLY: which replies a client wants.

use wire::check;

#[test]
fn off_is_silent_until_on() {
    check(
        r#"
        > CLIENT REPLY OFF
        > SET a 1
        > NOSUCH
        > CLIENT REPLY nonsense
        > CLIENT REPLY SKIP
        > PING
        > CLIENT REPLY ON
        +OK
        > GET a
        "1"
        "#,
    );
}

#[test]
fn skip_swallows_one_reply() {
    check(
        r#"
        > CLIENT REPLY SKIP
        > SET a 1
        > GET a
        "1"
        > CLIENT REPLY SKIP
        > NOSUCH
        > PING
        +PONG
        > CLIENT REPLY SKIP
        > CLIENT REPLY SKIP
        > PING one
        > PING two
        "two"
        "#,
    );
}

#[test]
fn on_is_answered_whatever_was_before() {
    check(
        r#"
        > CLIENT REPLY ON
        +OK
        > CLIENT REPLY SKIP
        > CLIENT REPLY ON
        +OK
        > PING
        +PONG
        > CLIENT REPLY nonsense
        -ERR syntax error
        > CLIENT REPLY
        -ERR wrong number of arguments for 'client|reply' command
        "#,
    );
}

#[test]
fn reset_turns_replies_on_again() {
    check(
        r#"
        > CLIENT REPLY OFF
        > PING
        > RESET
        +RESET
        > CLIENT REPLY SKIP
        > RESET
        > PING
        +PONG
        "#,
    );
}

#[test]
fn the_protocol_changes_behind_a_skipped_reply() {
    check(
        r#"
        > CLIENT REPLY SKIP
        > HELLO 3
        > GET nosuch
        _
        "#,
    );
}
