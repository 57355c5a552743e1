//! SLOWLOG.

use wire::{Session, check};

#[test]
fn slow_commands_are_logged_newest_first() {
    check(
        r#"
        # config slowlog-log-slower-than 0
        # config slowlog-max-len 128
        > CLIENT SETNAME me
        +OK
        > SLOWLOG RESET
        +OK
        > SET a 1
        +OK
        > GET a
        "1"
        > SLOWLOG LEN
        :3
        > SLOWLOG GET 3
        [[:0.., :1600000000.., :0.., ["SLOWLOG", "LEN"], ~"127.0.0.1:*", "me"], [:0.., :0.., :0.., ["GET", "a"], ~"*:*", "me"], [:0.., :0.., :0.., ["SET", "a", "1"], ~"*:*", "me"]]
        > SLOWLOG GET 1
        [[:0.., :0.., :0.., ["SLOWLOG", "GET", "3"], ~"*:*", "me"]]
        > SLOWLOG GET 0
        []
        > CONFIG SET slowlog-log-slower-than -1
        +OK
        > SLOWLOG RESET
        +OK
        > SET a 1
        +OK
        > SLOWLOG GET -1
        []
        "#,
    );
}

#[test]
fn the_log_has_a_length() {
    check(
        r#"
        # config slowlog-log-slower-than 0
        # config slowlog-max-len 2
        > SLOWLOG RESET
        +OK
        > SET a 1
        +OK
        > SET a 2
        +OK
        > SET a 3
        +OK
        > SLOWLOG GET -1
        [[:0.., :0.., :0.., ["SET", "a", "3"], *, ""], [:0.., :0.., :0.., ["SET", "a", "2"], *, ""]]
        "#,
    );
}

#[test]
fn a_log_of_no_length_stays_empty() {
    check(
        r#"
        # config slowlog-log-slower-than 0
        # config slowlog-max-len 0
        > SLOWLOG RESET
        +OK
        > SET a 1
        +OK
        > SLOWLOG LEN
        :0
        "#,
    );
}

#[test]
fn ten_entries_are_shown_unless_asked_otherwise() {
    let session = Session::start();
    let mut connection = session.connect();
    session.check(
        r#"
        # config slowlog-log-slower-than 0
        > SLOWLOG RESET
        +OK
        > MSET a 1 b 2 c 3 d 4 e 5 f 6
        +OK
        > GET a
        *
        > GET a
        *
        > GET a
        *
        > GET a
        *
        > GET a
        *
        > GET a
        *
        > GET a
        *
        > GET a
        *
        > GET a
        *
        > GET a
        *
        > GET a
        *
        > SLOWLOG GET
        [*, *, *, *, *, *, *, *, *, *]
        "#,
    );
    connection.run("SLOWLOG RESET");
}

#[test]
fn long_requests_are_cut() {
    let session = Session::start();
    let mut connection = session.connect();
    let long = vec![b'x'; 200];
    session.check(
        r#"
        > CONFIG SET slowlog-log-slower-than 0
        +OK
        > SLOWLOG RESET
        +OK
        "#,
    );
    connection.run_with("SET a", &[&long]);
    let many: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    connection.run(&format!("MGET {}", many.join(" ")));
    session.check(
        r#"
        > CONFIG SET slowlog-log-slower-than 10000
        +OK
        > SLOWLOG GET 2
        [[*, *, *, ["MGET", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "... (10 more arguments)"], *, *], [*, *, *, ["SET", "a", ~"xxxxx*... (72 more bytes)"], *, *]]
        "#,
    );
}

#[test]
fn passwords_are_not_logged() {
    check(
        r#"
        # config slowlog-log-slower-than 0
        > SLOWLOG RESET
        +OK
        > CONFIG SET timeout 0 masterauth secret
        +OK
        > SLOWLOG GET 1
        [[*, *, *, ["CONFIG", "SET", "timeout", "0", "masterauth", "(redacted)"], *, *]]
        > AUTH default secret
        +OK
        > HELLO 2 AUTH default secret
        *
        > SLOWLOG GET 2
        [[*, *, *, ["HELLO", "2", "AUTH", "(redacted)", "(redacted)"], *, *], [*, *, *, ["AUTH", "(redacted)", "(redacted)"], *, *]]
        > CONFIG SET masterauth ""
        +OK
        "#,
    );
}

#[test]
fn wrong_requests() {
    check(
        r#"
        SLOWLOG => -ERR wrong number of arguments for 'slowlog' command
        SLOWLOG NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try SLOWLOG HELP.
        SLOWLOG GET -2 => -ERR count should be greater than or equal to -1
        SLOWLOG GET x => -ERR count should be greater than or equal to -1
        SLOWLOG GET 1 2 => -ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.
        SLOWLOG LEN x => -ERR wrong number of arguments for 'slowlog|len' command
        SLOWLOG HELP => [+"SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", ...]
        "#,
    );
}
