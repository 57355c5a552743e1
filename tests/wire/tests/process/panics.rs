//! Commands with a bug: one that has changed nothing costs its client an error, any other ends the server.

use crate::support::{Dir, Holdfast, can_start_holdfast, info};
use wire::Server;

const INTERNAL: &str =
    "-ERR internal error: this command has met a bug and changed nothing; the server's log tells where";

#[test]
fn a_command_that_panics_before_it_has_changed_anything_is_answered() {
    let Some(server) = Holdfast::start(&["--enable-debug-command", "yes"]) else { return };
    let (mut connection, mut other) = (server.connect(), server.connect());
    for round in 1..=3 {
        assert_eq!(connection.run("DEBUG PANIC BEFORE-EFFECT").to_string(), INTERNAL);
        // All shards were locked, and are free again.
        assert_eq!(other.run(&format!("SET k {round}")).to_string(), "+OK");
        assert_eq!(info::<u64>(&mut other, "unexpected_error_replies"), round);
    }
    // The others of a transaction go on.
    for line in ["MULTI", "SET a 1", "DEBUG PANIC BEFORE-EFFECT", "SET b 2"] {
        connection.run(line);
    }
    assert_eq!(connection.run("EXEC").to_string(), format!("[+OK, -\"{}\", +OK]", &INTERNAL[1..]));
    assert_eq!(other.run("MGET a b").to_string(), "[\"1\", \"2\"]");
    connection.run("DEBUG SET-DISABLE-DENY-SCRIPTS 1");
    for script in ["", "for i = 1, 2 do end "] {
        let script =
            format!("{script}redis.call('SET', KEYS[1], 3) return redis.pcall('DEBUG', 'PANIC', 'BEFORE-EFFECT')");
        let reply = connection.run_args(&["EVAL", &script, "1", "a"]);
        assert!(reply.to_string().starts_with(INTERNAL), "{reply}");
        assert_eq!(other.run("GET a").to_string(), "\"3\"");
    }
    assert!(server.stderr().contains("internal error in a command that has changed nothing"), "{}", server.stderr());
}

#[test]
fn a_command_that_panics_behind_a_change_ends_the_server_and_is_not_kept() {
    if !can_start_holdfast() {
        return;
    }
    let dir = Dir::fresh();
    let data = dir.path().join("data");
    let start = || {
        let args = ["--enable-debug-command", "yes", "--appendfsync", "always"];
        Server::start_with(&data, |command| dir.keep_output(command.args(args)))
    };
    let mut server = start();
    let mut connection = server.connect();
    assert_eq!(connection.run("SET k 1").to_string(), "+OK");
    for line in ["MULTI", "SET k 2", "DEBUG PANIC AFTER-EFFECT"] {
        connection.run(line);
    }
    connection.queue_line("EXEC");
    connection.flush();
    let ended = server.wait_for_end();
    assert_eq!(ended.code(), None, "it was ended by a signal");
    assert!(dir.read("stderr").contains("internal error, the server stops"), "{}", dir.read("stderr"));
    assert_eq!(start().connect().run("GET k").to_string(), "\"1\"");
}
