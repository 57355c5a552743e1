//! Waiting until writes are safe: WAITAOF once, CLIENT DURABILITY for a connection.

use wire::{Product, Session, check};

#[test]
fn waitaof_refuses_what_cannot_be() {
    check(
        r#"
        # needs redis >= 7.2
        WAITAOF 2 0 0 => -ERR value is out of range, value must between 0 and 1
        WAITAOF -1 0 0 => -ERR value is out of range, value must between 0 and 1
        WAITAOF x 0 0 => -ERR value is not an integer or out of range
        WAITAOF 0 -1 0 => -ERR value is out of range, must be positive
        WAITAOF 0 x 0 => -ERR value is out of range, must be positive
        WAITAOF 0 0 -1 => -ERR timeout is negative
        WAITAOF 0 0 x => -ERR timeout is not an integer or out of range
        WAITAOF 0 0 9223372036854775807 => -ERR timeout is out of range
        "#,
    );
}

#[test]
fn waitaof_without_a_journal() {
    check(
        r#"
        # needs redis >= 7.2
        # config appendonly no
        > SET a 1
        +OK
        > WAITAOF 1 0 0
        -ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.
        > WAITAOF 1 0 -1
        -ERR timeout is negative
        > WAITAOF 0 0 0
        [:0, :0]
        > WAITAOF 0 1 10
        [:0, :0]
        "#,
    );
}

#[test]
fn waitaof_with_one() {
    check(
        r#"
        # needs redis >= 7.2
        # config appendonly yes
        # until aof_rewrite_in_progress:0
        > SET a 1
        +OK
        > WAITAOF 1 0 0
        [:1, :0]
        > WAITAOF 0 0 0
        [:1, :0]
        > WAITAOF 1 1 10
        [:1, :0]
        > SET a 2
        > WAITAOF 1 0 60000
        > GET a
        +OK
        [:1, :0]
        "2"
        "#,
    );
}

/// No replica will ever come.
#[test]
fn who_waits_for_a_replica_can_be_let_go() {
    let session = Session::start();
    if !session.has_redis("7.2") {
        return;
    }
    for (how, expected) in
        [("", "[:*, :0]"), ("TIMEOUT", "[:*, :0]"), ("ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK")]
    {
        let mut waiting = session.connect();
        let id = waiting.run("CLIENT ID").integer();
        waiting.queue_line("WAITAOF 0 1 0");
        waiting.flush();
        session.check(&format!("# until blocked_clients:1\n> CLIENT UNBLOCK {id} {how}\n:1"));
        // Whether it is durable here depends on the server's settings.
        let reply = waiting.read().to_string().replace("[:0,", "[:*,").replace("[:1,", "[:*,");
        assert_eq!(reply, expected, "{how}");
        assert_eq!(waiting.run("PING").to_string(), "+PONG");
    }
}

#[test]
fn wait_is_about_replicas_alone() {
    check(
        r#"
        SET a 1 => +OK
        WAIT 0 0 => :0
        WAIT 1 10 => :0
        WAIT 1 -1 => -ERR timeout is negative
        WAIT x 0 => -ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn client_durability_takes_four_words() {
    check(
        r#"
        # holdfast only
        # config appendonly yes
        # until aof_rewrite_in_progress:0
        > CLIENT DURABILITY always
        +OK
        > SET a 1
        +OK
        > CLIENT DURABILITY EVERYSEC
        +OK
        > CLIENT DURABILITY No
        +OK
        > SET a 2
        +OK
        > CLIENT DURABILITY DEFAULT
        +OK
        > CLIENT DURABILITY SOMETIMES
        -ERR 'SOMETIMES' is no durability: use ALWAYS, EVERYSEC, NO, or DEFAULT for what appendfsync says
        > CLIENT DURABILITY
        -ERR wrong number of arguments for 'client|durability' command. Usage: CLIENT DURABILITY <ALWAYS | EVERYSEC | NO | DEFAULT>
        > CLIENT DURABILITY always always
        -ERR wrong number of arguments for 'client|durability' command. Usage: CLIENT DURABILITY <ALWAYS | EVERYSEC | NO | DEFAULT>
        > GET a
        "2"
        "#,
    );
}

#[test]
fn client_durability_without_a_journal() {
    check(
        r#"
        # holdfast only
        # config appendonly no
        > CLIENT DURABILITY ALWAYS
        -ERR there is no journal to write to: CONFIG SET appendonly yes first
        > CLIENT DURABILITY NO
        +OK
        > CLIENT DURABILITY DEFAULT
        +OK
        "#,
    );
}

#[test]
fn client_help_tells_of_it() {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        return wire::skip("only Holdfast has CLIENT DURABILITY");
    }
    let help = session.connect().run("CLIENT HELP").to_string();
    assert!(help.contains("DURABILITY"), "{help}");
}
