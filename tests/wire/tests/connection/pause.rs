//! CLIENT PAUSE and UNPAUSE, CLIENT UNBLOCK.

use super::eventually;
use wire::{Connection, Session, check};

#[test]
fn arguments_are_checked() {
    check(
        r#"
        CLIENT PAUSE x => -ERR timeout is not an integer or out of range
        CLIENT PAUSE -1 => -ERR timeout is negative
        CLIENT PAUSE 10 nonsense => -ERR CLIENT PAUSE mode must be WRITE or ALL
        CLIENT PAUSE x nonsense => -ERR CLIENT PAUSE mode must be WRITE or ALL
        CLIENT PAUSE 10 WRITE more => -ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.
        CLIENT PAUSE => -ERR wrong number of arguments for 'client|pause' command
        CLIENT PAUSE 0 => +OK
        CLIENT PAUSE 0 all => +OK
        CLIENT UNPAUSE => +OK
        CLIENT UNPAUSE now => -ERR wrong number of arguments for 'client|unpause' command
        SET a 1 => +OK
        # needs redis >= 7.2
        CLIENT PAUSE 9223372036854775807 => -ERR timeout is out of range
        "#,
    );
}

#[test]
fn writes_wait_until_unpause() {
    check(
        r#"
        > SET a 1
        +OK
        > CLIENT PAUSE 100000 WRITE
        +OK
        2> SET a 2
        2> GET a
        // Reads go on.
        > GET a
        "1"
        # eventually
        > CLIENT LIST
        ~"* flags=b *"
        > GET a
        "1"
        > CLIENT UNPAUSE
        +OK
        2< +OK
        2< "2"
        > GET a
        "2"
        "#,
    );
}

#[test]
fn a_pause_ends_by_itself() {
    check(
        r#"
        > CLIENT PAUSE 50 WRITE
        +OK
        > SET a 1
        +OK
        > CLIENT PAUSE 50 ALL
        +OK
        > GET a
        "1"
        "#,
    );
}

/// A pause of all commands holds back CLIENT, too: until it is over, none ends the wait of another client.
#[test]
fn a_pause_of_all_commands_holds_all_of_them_back() {
    let session = Session::start();
    let [mut operator, mut waiting, mut other] = [(); 3].map(|()| session.connect());
    let id = waiting.run("CLIENT ID").integer();
    waiting.queue_line("BLPOP l 0.2");
    waiting.flush();
    eventually(|| operator.run("CLIENT LIST").text().contains(" cmd=blpop "));
    assert_eq!(operator.run("CLIENT PAUSE 600 ALL").to_string(), "+OK");
    for line in ["HELLO 2", "CLIENT UNPAUSE", &format!("CLIENT UNBLOCK {id} ERROR")] {
        other.queue_line(line);
    }
    other.flush();
    // Its timeout comes first.
    assert_eq!(waiting.read().to_string(), "(nil array)");
    other.read();
    assert_eq!([other.read().to_string(), other.read().to_string()], ["+OK", ":0"]);
}

#[test]
fn a_second_pause_does_not_shorten_the_first() {
    check(
        r#"
        > CLIENT PAUSE 100000 WRITE
        +OK
        > CLIENT PAUSE 1 WRITE
        +OK
        # sleep 20ms
        2> SET a 1
        # sleep 20ms
        > EXISTS a
        :0
        > CLIENT UNPAUSE
        +OK
        2< +OK
        "#,
    );
}

#[test]
fn those_who_wait_count_as_blocked() {
    check(
        r#"
        > CLIENT PAUSE 100000 WRITE
        +OK
        2> SET a 1
        # until blocked_clients:1
        > CLIENT LIST
        ~"*flags=b * cmd=set *"
        > CLIENT UNPAUSE
        +OK
        2< +OK
        # until blocked_clients:0
        > CLIENT LIST
        ~"*flags=N * cmd=set *"
        "#,
    );
}

#[test]
fn a_client_that_waits_may_leave() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.run("CLIENT PAUSE 100000 WRITE");
    for _ in 0..10 {
        let mut other = session.connect();
        other.queue_line("SET a 1");
        other.flush();
    }
    connection.run("CLIENT UNPAUSE");
    assert_eq!(connection.run("PING").to_string(), "+PONG");
}

#[test]
fn unblock_ends_a_wait() {
    check(
        r#"
        > CLIENT ID
        :1..
        > WAIT 1 0
        # until blocked_clients:1
        2> CLIENT LIST
        ~"*flags=b * cmd=wait *"
        "#,
    );
    let session = Session::start();
    let (mut waiting, mut other) = (session.connect(), session.connect());
    let id = waiting.run("CLIENT ID").integer();
    for (how, reply) in
        [("", ":0"), ("TIMEOUT", ":0"), ("ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK"), ("timeout", ":0")]
    {
        waiting.queue_line("WAIT 1 0");
        waiting.queue_line("PING after");
        waiting.flush();
        eventually(|| other.run(&format!("CLIENT UNBLOCK {id} {how}")).integer() == 1);
        assert_eq!(waiting.read().to_string(), reply, "{how}");
        assert_eq!(waiting.read().to_string(), "\"after\"", "{how}");
    }
    assert_eq!(other.run(&format!("CLIENT UNBLOCK {id}")).integer(), 0);
}

#[test]
fn unblock_checks_its_arguments() {
    check(
        r#"
        CLIENT UNBLOCK 999999 => :0
        CLIENT UNBLOCK -1 ERROR => :0
        CLIENT UNBLOCK x => -ERR value is not an integer or out of range
        CLIENT UNBLOCK x nonsense => -ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR
        CLIENT UNBLOCK 1 ERROR more => -ERR unknown subcommand or wrong number of arguments for 'UNBLOCK'. Try CLIENT HELP.
        "#,
    );
}

/// Sends these on a second connection while writes are paused, and finds that they wait.
fn waits_while_writes_are_paused(before: &[&str], held: &str) {
    let session = Session::start();
    let (mut operator, mut client) = (session.connect(), session.connect());
    before.iter().for_each(|command| {
        client.run(command);
    });
    operator.run("CLIENT PAUSE 100000 WRITE");
    client.queue_line(held);
    client.flush();
    let list = |operator: &mut Connection| String::from_utf8_lossy(operator.run("CLIENT LIST").bytes()).into_owned();
    eventually(|| list(&mut operator).contains(" flags=b ") || list(&mut operator).contains(" flags=xb "));
    operator.run("CLIENT UNPAUSE");
    let _ = client.read();
    assert_eq!(client.run("PING"), operator.run("PING"));
}

#[test]
fn whatever_may_write_waits() {
    waits_while_writes_are_paused(&["MULTI", "GET a", "PUBLISH ch m"], "EXEC");
    waits_while_writes_are_paused(&["MULTI", "SET a 1"], "EXEC");
    waits_while_writes_are_paused(&[], "EVAL 'return 1' 0");
    waits_while_writes_are_paused(&["EVAL 'return 1' 0"], "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0");
    waits_while_writes_are_paused(&[], "PUBLISH ch m");
    waits_while_writes_are_paused(&[], "SPUBLISH ch m");
}

#[test]
fn what_cannot_write_goes_on_while_writes_are_paused() {
    check(
        r##"
        > CLIENT PAUSE 100000 WRITE
        +OK
        2> MULTI
        +OK
        2> GET a
        +QUEUED
        2> EXEC
        [(nil)]
        2> EVAL_RO "return 1" 0
        :1
        2> EVAL "#!lua flags=no-writes\nreturn 2" 0
        :2
        > CLIENT UNPAUSE
        +OK
        "##,
    );
}

#[test]
fn nothing_expires_during_a_pause() {
    check(
        r#"
        > SET a 1 PX 30
        +OK
        > CLIENT PAUSE 100000 WRITE
        +OK
        # sleep 60ms
        // It is absent for readers, and still there.
        > GET a
        (nil)
        > DBSIZE
        :1
        > CLIENT UNPAUSE
        +OK
        # eventually
        > DBSIZE
        :0
        "#,
    );
}
