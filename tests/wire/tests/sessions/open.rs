//! SESSION.OPEN, ALIVE, INFO, LIST, CLOSE.

use crate::{check, info, must, must_all, start};
use wire::own::pages;

#[test]
fn a_session_is_opened_once_and_renewed_after_that() {
    check(
        r#"
        ! SESSION.OPEN ID s TTL 60000 CAP 2 color blue "no name" ""
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :60000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :0, "last_id", :0, "attached", :0, "capabilities", ["color", "blue", "no name", ""]]
        // What is there is renewed, and but for the TTL nothing of it changes.
        ! SESSION.OPEN ID s
        > session.open cap 1 color red ttl 55000 id s
        "s"
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :55000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :0, "last_id", :0, "attached", :0, "capabilities", ["color", "blue", "no name", ""]]
        PTTL s => :50000..55000
        SESSION.ALIVE s => :1
        SESSION.CLOSE s => :1
        > SESSION.CLOSE s
        :0
        SESSION.ALIVE s => :0
        SESSION.INFO s => (nil)
        EXISTS s => :0
        SESSION.OPEN => ~"session:????????????????????????????????"
        SESSION.OPEN CAP 0 => ~"session:????????????????????????????????"
        > DBSIZE
        :2
        ! SESSION.OPEN ID ""
        > SESSION.INFO ""
        ["sid", "", "created_at", :1.., "ttl_ms", :90000, ...]
        ! HELLO 3
        ! SESSION.OPEN ID t CAP 1 a b
        > SESSION.INFO t
        {"sid" => "t", "created_at" => :1.., "ttl_ms" => :90000, "low" => :0, "replies" => :0, "reply_bytes" => :0, "pending" => :0, "last_id" => :0, "attached" => :0, "capabilities" => {"a" => "b"}}
        SESSION.INFO nosuch => _
        "#,
    );
}

#[test]
fn what_is_wrong_is_refused_and_opens_nothing() {
    check(
        r#"
        SESSION.OPEN FOO => ~-ERR unknown option 'FOO'. *
        SESSION.OPEN ID => ~-ERR missing: the id of the session. Usage: *
        SESSION.OPEN ID a TTL => ~-ERR *
        SESSION.OPEN ID a TTL 0 => -ERR the time behind TTL must be a whole number from 1 to 140737488355328, not '0'
        SESSION.OPEN ID a TTL -5 => ~-ERR the time behind TTL *
        SESSION.OPEN ID a TTL soon => ~-ERR the time behind TTL *
        SESSION.OPEN ID a TTL 9223372036854775807 => ~-ERR the time behind TTL *
        SESSION.OPEN ID a CAP 9223372036854775807 x y => ~-ERR *
        DBSIZE => :0
        ! SET a string
        SESSION.OPEN ID a => ~-WRONGTYPE * wrong kind of value: the key's type is *
        GET a => "string"
SESSION.PUSH a x => ~-WRONGTYPE * wrong kind of value: the key's type is *
        "#,
    );
}

#[test]
fn random_ids_differ() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let ids: std::collections::BTreeSet<String> =
        (0..500).map(|_| connection.run("SESSION.OPEN").text().to_owned()).collect();
    assert_eq!(ids.len(), 500);
    for id in ids {
        let hex = id.strip_prefix("session:").expect("it begins so");
        assert!(hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)));
    }
}

#[test]
fn all_sessions_are_listed_once() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    for number in 0..1_500 {
        let id = if number % 3 == 0 { format!("job:{number}") } else { format!("s{number}") };
        must_all(&mut connection, &format!("SESSION.OPEN ID {id}; SET other:{number} x"));
    }
    for (options, limit, expected) in
        [("", 1, 1_500), ("", 100_000, 1_500), (" PREFIX job:", 10, 500), (" PREFIX other:", 10, 0)]
    {
        let listed = pages(&mut connection, &format!("SESSION.LIST{options}"), limit, |_| {});
        assert_eq!(listed, expected, "{options} LIMIT {limit}");
    }
    session.check(
        r#"
        SESSION.LIST CURSOR x => ~-ERR *
        SESSION.LIST LIMIT -1 => ~-ERR *
        SESSION.LIST LIMIT 0 => [*, []]
        SESSION.LIST FOO => ~-ERR *
        ! FLUSHALL
        SESSION.LIST => ["0", []]
        "#,
    );
}

/// Each database has sessions of its own.
#[test]
fn sessions_belong_to_their_database() {
    check(
        r#"
        ! SESSION.OPEN ID s CAP 1 db zero
        ! SELECT 3
        SESSION.ALIVE s => :0
        SESSION.CALL s 1 LOW 1 PING => ~-NOSESSION *
        SESSION.LIST => ["0", []]
        ! SESSION.OPEN ID s
        ! SESSION.CALL s 1 LOW 1 SET k three
        ! SESSION.PUSH s p
        ! SELECT 0
        EXISTS k => :0
        SESSION.CALL s 1 LOW 1 SET k zero => +OK
        SESSION.PENDING s => []
        ! SWAPDB 0 3
        SESSION.CALL s 1 LOW 1 SET k three => +OK
        GET k => "three"
        SESSION.PENDING s => [[:1, "p", *]]
        ! FLUSHDB
        SESSION.ALIVE s => :0
        ! SELECT 3
        SESSION.CALL s 1 LOW 1 SET k zero => +OK
        GET k => "zero"
        ! FLUSHALL
        SESSION.ALIVE s => :0
        "#,
    );
}

#[test]
fn what_is_closed_begins_anew() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    for gone in ["SESSION.CLOSE s", "DEL s", "UNLINK s", "FLUSHALL", "GETDEL s"] {
        must(&mut connection, "SESSION.OPEN ID s CAP 1 a b");
        must_all(&mut connection, "SESSION.CALL s 5 LOW 3 SET k 1; SESSION.PUSH s x; SESSION.PUSH s y");
        let reply = connection.run(gone);
        if gone == "GETDEL s" {
            assert!(reply.to_string().starts_with("-WRONGTYPE"), "{reply}");
            assert_eq!(connection.run("DEL s").integer(), 1);
        }
        must(&mut connection, "SESSION.OPEN ID s");
        for name in ["low", "replies", "reply_bytes", "pending", "last_id"] {
            assert_eq!(info(&mut connection, "s", name).integer(), 0, "{name} after {gone}");
        }
        assert_eq!(info(&mut connection, "s", "ttl_ms").integer(), 90_000, "after {gone}");
        assert_eq!(info(&mut connection, "s", "capabilities").to_string(), "[]", "after {gone}");
        assert_eq!(connection.run("SESSION.CALL s 5 LOW 1 SET k 2").to_string(), "+OK");
        assert_eq!(connection.run("SESSION.PUSH s z").integer(), 1);
        let retried = connection.run("SESSION.RETRY 99999999999999").to_string();
        assert!(retried.starts_with("[[\"s\", :1, \"z\", :"), "{retried}");
        must(&mut connection, "SESSION.CLOSE s");
        assert_eq!(connection.run("SESSION.HASRETRY 99999999999999").integer(), 0);
    }
}
