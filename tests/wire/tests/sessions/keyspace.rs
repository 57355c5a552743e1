//! Sessions as keys: TYPE, SCAN, what is refused, notifications, COMMAND.

use crate::{check, must, must_all, start};
use wire::check_events;

#[test]
fn a_session_is_a_key_of_its_own_type() {
    check(
        r#"
        ! SESSION.OPEN ID s
        TYPE s => +session
        OBJECT ENCODING s => "session"
        OBJECT REFCOUNT s => :1
        MEMORY USAGE s => :50..400
        SCAN 0 TYPE session COUNT 1000 => ["0", ["s"]]
        KEYS * => ["s"]
        DBSIZE => :1
        TOUCH s => :1
        SET s x => -WRONGTYPE Operation against a key holding the wrong kind of value
        SESSION.LIST => ["0", ["s"]]
        ! DEL s
        SESSION.LIST => ["0", []]
        "#,
    );
}

/// Its name is its id, and its life its own.
#[test]
fn what_would_give_it_another_name_or_life_is_refused() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    must_all(&mut connection, "SESSION.OPEN ID s TTL 60000; SESSION.CALL s 1 LOW 1 SET k v");
    let dump = must(&mut connection, "DUMP k").bytes().to_vec();
    for line in "RENAME s t; RENAME s s; RENAMENX s t; COPY s t; COPY s t DB 1 REPLACE; MOVE s 1; EXPIRE s 100; \
         EXPIRE s -1; EXPIRE s 0; EXPIRE s 100 NX; EXPIRE s 100 XX; EXPIRE s 100 GT; EXPIRE s 100000 LT; \
         PEXPIRE s 100; EXPIREAT s 1; PEXPIREAT s 1; PEXPIREAT s 99999999999999; PERSIST s"
        .split("; ")
    {
        let reply = connection.run(line).to_string();
        assert!(reply.starts_with("-ERR"), "{line}: {reply}");
        let via = connection.run(&format!("SESSION.CALL s 2 LOW 1 {line}")).to_string();
        assert_eq!(via, reply, "{line}");
        let again = connection.run(&format!("SESSION.CALL s 2 LOW 1 {line}")).to_string();
        assert_eq!(again, reply, "{line}");
        // The reply is kept; the next line has an id of its own.
        must_all(&mut connection, "SESSION.CLOSE s; SESSION.OPEN ID s TTL 60000; SESSION.CALL s 1 LOW 1 SET k v");
    }
    for line in ["GETEX s EX 100", "GETEX s PERSIST", "GETDEL s"] {
        let reply = connection.run(line).to_string();
        assert!(reply.starts_with("-WRONGTYPE"), "{line}: {reply}");
    }
    let before = connection.run("SESSION.INFO s");
    assert_eq!(connection.run_with("RESTORE s 0", &[&dump]).to_string(), "-BUSYKEY Target key name already exists.");
    assert_eq!(connection.run("SESSION.INFO s"), before);
    assert_eq!(connection.run("EXISTS t").integer(), 0);
    // As in Redis nothing happens to what is not there.
    for (line, expected) in [("EXPIRE nosuch 1", ":0"), ("PERSIST nosuch", ":0"), ("MOVE nosuch 1", ":0")] {
        assert_eq!(connection.run(line).to_string(), expected);
    }
}

#[test]
fn a_change_is_notified_and_nothing_else_is() {
    if start().is_none() {
        return;
    }
    check_events(
        r#"
        SESSION.OPEN ID s => new s, session.open s
        SESSION.PUSH s x => session.push s
        SESSION.PUSH s y => session.push s
        SESSION.PENDING s =>
        SESSION.ACK s 0 =>
        SESSION.ACK s 1 => session.ack s
        SESSION.ACK s 1 =>
        SESSION.INFO s =>
        SESSION.LIST =>
        SESSION.HASRETRY 5 =>
        SESSION.RETRY 5 =>
        SESSION.CALL s 1 LOW 1 SET k v => new k, set k, session.call s
        SESSION.CALL s 1 LOW 1 SET k v =>
        SESSION.CLOSE s => session.close s
        SESSION.CLOSE s =>
        "#,
    );
}

#[test]
fn expiry_is_notified() {
    check(
        r#"
        # config notify-keyspace-events Ex
        2> SUBSCRIBE __keyevent@0__:expired
        ["subscribe", "__keyevent@0__:expired", :1]
        ! SESSION.OPEN ID s TTL 30
        2< ["message", "__keyevent@0__:expired", "s"]
        "#,
    );
}

/// COMMAND knows the keys: that of the session, and those of the command.
#[test]
fn keys_are_found() {
    check(
        r#"
        COMMAND GETKEYS SESSION.CALL s 1 LOW 1 HSET h a b => ["s", "h"]
        COMMAND GETKEYS SESSION.CALL s 1 LOW 1 MSET a 1 b 2 => ["s", "a", "b"]
        COMMAND GETKEYS SESSION.CALL s 1 LOW 1 EVAL x 2 k1 k2 arg => ["s", "k1", "k2"]
        COMMAND GETKEYS SESSION.CALL s 1 LOW 1 PING => ["s"]
        COMMAND GETKEYS SESSION.OPEN TTL 5 ID x => ["x"]
        COMMAND GETKEYS SESSION.PUSH s x => ["s"]
        COMMAND GETKEYS SESSION.PENDING s BLOCK 0 => ["s"]
        COMMAND GETKEYS SESSION.RETRY 5 => -ERR The command has no key arguments
        "#,
    );
}
