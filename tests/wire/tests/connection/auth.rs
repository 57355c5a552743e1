//! AUTH, HELLO AUTH and what a client may do before.

use wire::{Connection, Reply, Session, check};

/// The server asks for the password "secret" while this lives. It was there before, so it needs none.
struct Locked {
    insider: Connection,
}

impl Locked {
    fn new(session: &Session) -> Locked {
        let mut insider = session.connect();
        assert_eq!(insider.run("CONFIG SET requirepass secret").to_string(), "+OK");
        Locked { insider }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.insider.run("CONFIG SET requirepass \"\"");
    }
}

/// Runs a transcript on a server that asks for a password.
#[track_caller]
fn check_locked(transcript: &str) {
    let session = Session::start();
    let _locked = Locked::new(&session);
    session.check(transcript);
}

#[test]
fn without_a_password_auth_is_a_mistake() {
    check(
        "
        > AUTH x
        -ERR AUTH <password> called without any password configured for the default user. \
         Are you sure your configuration is correct?
        AUTH default x => +OK
        AUTH Default x => -WRONGPASS invalid username-password pair or user is disabled.
        AUTH nobody x => -WRONGPASS invalid username-password pair or user is disabled.
        AUTH => -ERR wrong number of arguments for 'auth' command
        AUTH a b c => -ERR syntax error
        ",
    );
}

#[test]
fn a_stranger_may_only_introduce_itself() {
    check_locked(
        "
        > PING
        -NOAUTH Authentication required.
        > GET a
        -NOAUTH Authentication required.
        > CLIENT ID
        -NOAUTH Authentication required.
        > COMMAND COUNT
        -NOAUTH Authentication required.
        // What is no command at all is told even to strangers.
        > GET
        -ERR wrong number of arguments for 'get' command
        > CLIENT nosuch
        -ERR unknown subcommand 'nosuch'. Try CLIENT HELP.
        > RESET
        +RESET
        > QUIT
        +OK
        (closed)
        ",
    );
}

#[test]
fn the_right_password_opens_the_door() {
    check_locked(
        "
        > AUTH secret
        +OK
        > PING
        +PONG
        2> AUTH default secret
        +OK
        2> PING
        +PONG
        // A wrong one does not close it again.
        > AUTH wrong
        -WRONGPASS invalid username-password pair or user is disabled.
        > PING
        +PONG
        > RESET
        +RESET
        > PING
        -NOAUTH Authentication required.
        ",
    );
}

#[test]
fn nothing_but_the_right_password_opens_it() {
    check_locked(
        r#"
        > AUTH wrong!
        -WRONGPASS invalid username-password pair or user is disabled.
        > AUTH ""
        -WRONGPASS invalid username-password pair or user is disabled.
        > AUTH secre
        -WRONGPASS invalid username-password pair or user is disabled.
        > AUTH secretsecret
        -WRONGPASS invalid username-password pair or user is disabled.
        > AUTH SECRET
        -WRONGPASS invalid username-password pair or user is disabled.
        > AUTH "secret\x00"
        -WRONGPASS invalid username-password pair or user is disabled.
        > AUTH nobody secret
        -WRONGPASS invalid username-password pair or user is disabled.
        > AUTH default secret extra
        -ERR syntax error
        > PING
        -NOAUTH Authentication required.
        "#,
    );
}

#[test]
fn hello_can_bring_the_password() {
    check_locked(
        r#"
        > HELLO
        ~-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO * option can be used *
        > HELLO 3
        ~-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO * option can be used *
        > HELLO 3 AUTH default wrong
        -WRONGPASS invalid username-password pair or user is disabled.
        > HELLO 3 AUTH default secret SETNAME jobs
        {"server" => *, "version" => *, "proto" => :3, "id" => *, "mode" => *, "role" => *, "modules" => *}
        > CLIENT GETNAME
        "jobs"
        > HELLO 2
        ["server", ...]
        "#,
    );
}

#[test]
fn a_hello_without_the_password_leaves_nothing_behind() {
    check_locked(
        "
        # needs redis >= 7.2
        > HELLO 3 SETNAME jobs
        -NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
         <pass> option can be used to authenticate the client and select the RESP protocol version at the same time
        > HELLO 3 AUTH default secret nonsense
        -ERR Syntax error in HELLO option 'nonsense'
        > PING
        -NOAUTH Authentication required.
        > AUTH secret
        +OK
        > CLIENT GETNAME
        (nil)
        ",
    );
}

#[test]
fn those_inside_stay_inside() {
    let session = Session::start();
    let mut before = session.connect();
    before.run("PING");
    let mut locked = Locked::new(&session);
    assert_eq!(before.run("PING").to_string(), "+PONG");
    let mut outside = session.connect();
    assert_eq!(outside.run("PING").to_string(), "-NOAUTH Authentication required.");
    // And with the password gone, everybody is inside.
    locked.insider.run("CONFIG SET requirepass \"\"");
    assert_eq!(outside.run("PING").to_string(), "+PONG");
}

#[test]
fn strangers_may_only_send_small_requests() {
    for (request, error) in [
        (&b"*11\r\n"[..], "-ERR Protocol error: unauthenticated multibulk length"),
        (b"*1\r\n$16385\r\n", "-ERR Protocol error: unauthenticated bulk length"),
    ] {
        let session = Session::start();
        let _locked = Locked::new(&session);
        let mut stranger = session.connect();
        stranger.queue_raw(request);
        assert_eq!(stranger.read().to_string(), error);
        assert_eq!(stranger.read().to_string(), "(closed)");
        let mut known = session.connect();
        known.run("AUTH secret");
        let (key, value) = ("k".repeat(20_000), "v".repeat(100_000));
        assert_eq!(known.run_args(&["SET", &key, &value]).to_string(), "+OK");
    }
}

#[test]
fn strangers_may_not_let_replies_pile_up() {
    // Their replies are more than the buffers of a socket hold, and nothing is read until all are sent.
    const REQUESTS: usize = 3_000_000;
    let session = Session::start();
    let _locked = Locked::new(&session);
    let mut stranger = session.connect();
    stranger.queue_raw(&b"PING\r\n".repeat(REQUESTS));
    stranger.flush();
    let answered = (0..REQUESTS).take_while(|_| stranger.read_until_killed() != Reply::Closed).count();
    assert!(answered < REQUESTS, "all were answered");
}
