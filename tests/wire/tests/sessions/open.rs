//! SESSION.OPEN, ALIVE, INFO, LIST, CLOSE.

use crate::{check, info, must, start};

#[test]
fn a_session_is_opened_once_and_renewed_after_that() {
    check(
        r#"
        > SESSION.OPEN ID s TTL 60000 CAP 2 color blue "no name" ""
        "s"
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :60000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :0, "last_id", :0, "attached", :0, "capabilities", ["color", "blue", "no name", ""]]
        // What is there is renewed, and but for the TTL nothing of it changes.
        > SESSION.OPEN ID s
        "s"
        > session.open cap 1 color red ttl 55000 id s
        "s"
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :55000, "low", :0, "replies", :0, "reply_bytes", :0, "pending", :0, "last_id", :0, "attached", :0, "capabilities", ["color", "blue", "no name", ""]]
        > PTTL s
        :50000..55000
        > SESSION.ALIVE s
        :1
        > SESSION.CLOSE s
        :1
        > SESSION.CLOSE s
        :0
        > SESSION.ALIVE s
        :0
        > SESSION.INFO s
        (nil)
        > EXISTS s
        :0
        > SESSION.OPEN
        ~"session:????????????????????????????????"
        > SESSION.OPEN CAP 0
        ~"session:????????????????????????????????"
        > DBSIZE
        :2
        > SESSION.OPEN ID ""
        ""
        > SESSION.INFO ""
        ["sid", "", "created_at", :1.., "ttl_ms", :90000, ...]
        > HELLO 3
        *
        > SESSION.OPEN ID t CAP 1 a b
        "t"
        > SESSION.INFO t
        {"sid" => "t", "created_at" => :1.., "ttl_ms" => :90000, "low" => :0, "replies" => :0, "reply_bytes" => :0, "pending" => :0, "last_id" => :0, "attached" => :0, "capabilities" => {"a" => "b"}}
        > SESSION.INFO nosuch
        _
        "#,
    );
}

#[test]
fn what_is_wrong_is_refused_and_opens_nothing() {
    check(
        r#"
        > SESSION.OPEN FOO
        ~-ERR unknown option 'FOO'. *
        > SESSION.OPEN ID
        ~-ERR missing: the id of the session. Usage: *
        > SESSION.OPEN ID a ID b
        -ERR ID is given twice
        > SESSION.OPEN ID a TTL
        ~-ERR *
        > SESSION.OPEN ID a TTL 0
        -ERR the time behind TTL must be a whole number from 1 to 140737488355328, not '0'
        > SESSION.OPEN ID a TTL -5
        ~-ERR the time behind TTL *
        > SESSION.OPEN ID a TTL soon
        ~-ERR the time behind TTL *
        > SESSION.OPEN ID a TTL 9223372036854775807
        ~-ERR the time behind TTL *
        > SESSION.OPEN ID a TTL 5 TTL 5
        -ERR TTL is given twice
        > SESSION.OPEN ID a CAP
        ~-ERR *
        > SESSION.OPEN ID a CAP x
        ~-ERR the count behind CAP *
        > SESSION.OPEN ID a CAP -1
        ~-ERR the count behind CAP *
        > SESSION.OPEN ID a CAP 2 x y z
        ~-ERR CAP counts 2 items of 2, but 3 *
        > SESSION.OPEN ID a CAP 9223372036854775807 x y
        ~-ERR *
        > SESSION.OPEN ID a CAP 1 x y CAP 1 x z
        -ERR CAP is given twice
        > DBSIZE
        :0
        > SET a string
        +OK
        > SESSION.OPEN ID a
        ~-WRONGTYPE * wrong kind of value: the key's type is *
        > GET a
        "string"
        > SESSION.INFO a
        ~-WRONGTYPE * wrong kind of value: the key's type is *
        > SESSION.ALIVE a
        ~-WRONGTYPE * wrong kind of value: the key's type is *
        > SESSION.CLOSE a
        ~-WRONGTYPE * wrong kind of value: the key's type is *
        > SESSION.CALL a 1 LOW 1 SET b 1
        ~-WRONGTYPE * wrong kind of value: the key's type is *
        > SESSION.PUSH a x
        ~-WRONGTYPE * wrong kind of value: the key's type is *
        > SESSION.PENDING a
        ~-WRONGTYPE * wrong kind of value: the key's type is *
        > SESSION.ACK a 1
        ~-WRONGTYPE * wrong kind of value: the key's type is *
        > EXISTS b
        :0
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
    let mut expected = Vec::new();
    for number in 0..3_000 {
        let id = if number % 3 == 0 { format!("job:{number}") } else { format!("s{number}") };
        must(&mut connection, &format!("SESSION.OPEN ID {id}"));
        must(&mut connection, &format!("SET other:{number} x"));
        expected.push(id);
    }
    expected.sort();
    let jobs: Vec<String> = expected.iter().filter(|id| id.starts_with("job:")).cloned().collect();
    for (options, expected) in
        [("", &expected), (" LIMIT 1", &expected), (" LIMIT 100000", &expected), (" PREFIX job:", &jobs)]
    {
        let (mut found, mut cursor) = (Vec::new(), "0".to_owned());
        loop {
            let reply = connection.run(&format!("SESSION.LIST CURSOR {cursor}{options}"));
            found.extend(reply.items()[1].items().iter().map(|name| name.text().to_owned()));
            cursor = reply.items()[0].text().to_owned();
            if cursor == "0" {
                break;
            }
        }
        found.sort();
        assert_eq!(&found, expected, "{options}");
    }
    session.check(
        r#"
        > SESSION.LIST CURSOR x
        ~-ERR *
        > SESSION.LIST LIMIT -1
        ~-ERR *
        > SESSION.LIST LIMIT 0
        [*, []]
        > SESSION.LIST FOO
        ~-ERR *
        > FLUSHALL
        +OK
        > SESSION.LIST
        ["0", []]
        "#,
    );
}

/// Each database has sessions of its own.
#[test]
fn sessions_belong_to_their_database() {
    check(
        r#"
        > SESSION.OPEN ID s CAP 1 db zero
        "s"
        > SELECT 3
        +OK
        > SESSION.ALIVE s
        :0
        > SESSION.CALL s 1 LOW 1 PING
        ~-NOSESSION *
        > SESSION.LIST
        ["0", []]
        > SESSION.OPEN ID s
        "s"
        > SESSION.CALL s 1 LOW 1 SET k three
        +OK
        > SESSION.PUSH s p
        :1
        > SELECT 0
        +OK
        > EXISTS k
        :0
        > SESSION.CALL s 1 LOW 1 SET k zero
        +OK
        > SESSION.PENDING s
        []
        > SWAPDB 0 3
        +OK
        > SESSION.CALL s 1 LOW 1 SET k three
        +OK
        > GET k
        "three"
        > SESSION.PENDING s
        [[:1, "p", *]]
        > FLUSHDB
        +OK
        > SESSION.ALIVE s
        :0
        > SELECT 3
        +OK
        > SESSION.CALL s 1 LOW 1 SET k zero
        +OK
        > GET k
        "zero"
        > FLUSHALL
        +OK
        > SESSION.ALIVE s
        :0
        "#,
    );
}

#[test]
fn what_is_closed_begins_anew() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    for gone in ["SESSION.CLOSE s", "DEL s", "UNLINK s", "FLUSHALL", "GETDEL s"] {
        must(&mut connection, "SESSION.OPEN ID s CAP 1 a b");
        must(&mut connection, "SESSION.CALL s 5 LOW 3 SET k 1");
        must(&mut connection, "SESSION.PUSH s x");
        must(&mut connection, "SESSION.PUSH s y");
        let reply = connection.run(gone);
        if gone == "GETDEL s" {
            assert!(reply.to_string().starts_with("-WRONGTYPE"), "{reply}");
            assert_eq!(connection.run("DEL s").integer(), 1);
        }
        must(&mut connection, "SESSION.OPEN ID s");
        for (name, expected) in [
            ("low", ":0"),
            ("replies", ":0"),
            ("reply_bytes", ":0"),
            ("pending", ":0"),
            ("last_id", ":0"),
            ("ttl_ms", ":90000"),
            ("capabilities", "[]"),
        ] {
            assert_eq!(info(&mut connection, "s", name).to_string(), expected, "{name} after {gone}");
        }
        assert_eq!(connection.run("SESSION.CALL s 5 LOW 1 SET k 2").to_string(), "+OK");
        assert_eq!(connection.run("SESSION.PUSH s z").integer(), 1);
        let retried = connection.run("SESSION.RETRY 99999999999999").to_string();
        assert!(retried.starts_with("[[\"s\", :1, \"z\", :"), "{retried}");
        must(&mut connection, "SESSION.CLOSE s");
        assert_eq!(connection.run("SESSION.HASRETRY 99999999999999").integer(), 0);
    }
}
