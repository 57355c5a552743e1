//! SHUTDOWN.

use std::fs;
use wire::{Connection, Server, check, fresh_dir};

#[test]
fn shutdown_refuses_options_that_contradict() {
    check(
        r#"
        SHUTDOWN NOSUCH => -ERR syntax error
        SHUTDOWN SAVE NOSAVE => -ERR syntax error
        SHUTDOWN ABORT NOW => -ERR syntax error
        SHUTDOWN ABORT => -ERR No shutdown in progress.
        PING => +PONG
        "#,
    );
}

#[test]
fn debug_needs_permission() {
    let refused = "-ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it \
        from a local connection, otherwise you need to set this option in the configuration file, and then restart the \
        server.";
    let dir = fresh_dir();
    let ask = |allowed: &str, line: &str| -> String {
        let server = Server::start(&dir, &["--enable-debug-command", allowed]);
        let mut connection: Connection = server.connect();
        connection.run(line).to_string()
    };
    assert_eq!(ask("no", "DEBUG SLEEP 0"), refused);
    assert_eq!(ask("no", "DEBUG HELP"), refused);
    assert_eq!(ask("local", "DEBUG SLEEP 0"), "+OK");
    assert_eq!(ask("yes", "DEBUG SLEEP 0"), "+OK");
    let _ = fs::remove_dir_all(dir);
}

#[test]
fn holdfast_says_what_it_is() {
    check(
        r##"
        # holdfast only
        > INFO server
        ~"# Server\r\nredis_version:7.4.0\r\nholdfast_version:*"
        "##,
    );
}
