//! MONITOR.

use wire::check;

#[test]
fn commands_are_shown_as_they_run() {
    check(
        r#"
        2> MONITOR
        +OK
        > SET "a b" "x\x00\n\"\\"
        +OK
        2< ~+1*.* [0 127.0.0.1:*] "SET" "a b" "x\x00\n\"\\"
        > SELECT 3
        +OK
        2< ~+1*.* [3 127.0.0.1:*] "SELECT" "3"
        > INCR "a b" x
        -ERR wrong number of arguments for 'incr' command
        > NOSUCH
        ~-ERR unknown command*
        > APPEND "a b" ""
        :0
        2< ~+1*.* [3 127.0.0.1:*] "APPEND" "a b" ""
        "#,
    );
}

#[test]
fn dangerous_commands_and_passwords_are_not_shown() {
    check(
        r#"
        2> MONITOR
        +OK
        > CONFIG GET port
        *
        > DEBUG SLEEP 0
        +OK
        > AUTH default secret
        +OK
        2< ~+* "AUTH" "(redacted)" "(redacted)"
        > HELLO 2 AUTH default secret SETNAME me
        *
        2< ~+* "HELLO" "2" "AUTH" "(redacted)" "(redacted)" "SETNAME" "me"
        "#,
    );
}

#[test]
fn a_monitor_goes_on_as_a_client() {
    check(
        r#"
        > MONITOR
        +OK
        > PING
        +PONG
        ~+* "PING"
        // A second MONITOR has no reply.
        > MONITOR
        > RESET
        +RESET
        > PING
        +PONG
        2> SET a 1
        +OK
        "#,
    );
}
