//! CLIENT: identity and what CLIENT LIST says.

use super::eventually;
use std::collections::BTreeMap;
use wire::{Connection, Product, Reply, Session, check};

/// Fields of a line of CLIENT LIST up to Redis 7.0, and those added since.
const FIELDS_7_0: &str = "\
    id addr laddr fd name age idle flags db sub psub ssub multi qbuf qbuf-free argv-mem multi-mem rbs rbp obl \
    oll omem tot-mem events cmd user redir resp";
const FIELDS_7_4: &[&str] = &["watch", "lib-name", "lib-ver"];

/// The fields of one line, in order and by name.
fn fields(line: &str) -> (Vec<&str>, BTreeMap<&str, &str>) {
    let pairs: Vec<(&str, &str)> = line.trim_end().split(' ').map(|pair| pair.split_once('=').unwrap()).collect();
    (pairs.iter().map(|(name, _)| *name).collect(), pairs.into_iter().collect())
}

/// CLIENT INFO of a connection.
fn info(connection: &mut Connection) -> BTreeMap<String, String> {
    let line = connection.run("CLIENT INFO").text().to_owned();
    assert!(line.ends_with('\n'), "{line:?}");
    fields(&line).1.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

#[test]
fn ids_are_never_used_twice() {
    let session = Session::start();
    let mut last = 0;
    for _ in 0..10 {
        let mut connection = session.connect();
        let id = connection.run("CLIENT ID").integer();
        assert!(id > last, "{id} after {last}");
        assert_eq!(connection.run("CLIENT ID").integer(), id);
        last = id;
    }
}

#[test]
fn names_can_be_given_and_taken_back() {
    check(
        r#"
        > CLIENT GETNAME
        (nil)
        > CLIENT SETNAME jobs:worker-1
        +OK
        > CLIENT GETNAME
        "jobs:worker-1"
        2> CLIENT GETNAME
        (nil)
        > CLIENT SETNAME "a b"
        -ERR Client names cannot contain spaces, newlines or special characters.
        > CLIENT SETNAME "a\n"
        -ERR Client names cannot contain spaces, newlines or special characters.
        > CLIENT SETNAME "\xc3\xa9"
        -ERR Client names cannot contain spaces, newlines or special characters.
        > CLIENT GETNAME
        "jobs:worker-1"
        > CLIENT SETNAME ""
        +OK
        > CLIENT GETNAME
        (nil)
        > HELLO 3
        *
        > CLIENT GETNAME
        _
        "#,
    );
}

#[test]
fn libraries_can_be_named() {
    check(
        r#"
        # needs redis >= 7.2
        CLIENT SETINFO LIB-NAME "redis-py(async)" => +OK
        CLIENT SETINFO lib-ver 5.0.1 => +OK
        CLIENT INFO => ~"* lib-name=redis-py(async) lib-ver=5.0.1*"
        CLIENT SETINFO lib-name "a b" => -ERR lib-name cannot contain spaces, newlines or special characters.
        CLIENT SETINFO LIB-VER "a b" => -ERR LIB-VER cannot contain spaces, newlines or special characters.
        CLIENT SETINFO nonsense 1 => -ERR Unrecognized option 'nonsense'
        CLIENT SETINFO lib-name => -ERR wrong number of arguments for 'client|setinfo' command
        CLIENT SETINFO lib-name "" => +OK
        CLIENT INFO => ~"* lib-name= lib-ver=5.0.1*"
        "#,
    );
}

#[test]
fn a_line_has_redis_s_fields_in_redis_s_order() {
    let session = Session::start();
    let line = session.connect().run("CLIENT INFO").text().to_owned();
    let (names, _) = fields(&line);
    let known: Vec<&str> = FIELDS_7_0.split(' ').collect();
    let old: Vec<&str> = names.iter().copied().filter(|name| known.contains(name)).collect();
    assert_eq!(old, known);
    if session.has_redis("7.4") {
        assert!(FIELDS_7_4.iter().all(|name| names.contains(name)), "{line}");
        let at = |name| names.iter().position(|has| *has == name);
        assert_eq!(at("lib-name"), at("resp").map(|at| at + 1));
    }
    // `watch` is in the middle in 7.4. Here it is at the end: a line begins as in 7.0.
    if session.product() == Product::Holdfast {
        assert_eq!(names[..known.len()], known);
    }
}

#[test]
fn a_line_tells_the_truth() {
    let session = Session::start();
    let mut connection = session.connect();
    let id = connection.run("CLIENT ID").integer().to_string();
    connection.run("CLIENT SETNAME me");
    connection.run("SELECT 3");
    let line = info(&mut connection);
    let expected = [
        ("id", id.as_str()),
        ("name", "me"),
        ("flags", "N"),
        ("db", "3"),
        ("sub", "0"),
        ("multi", "-1"),
        ("cmd", "client|info"),
        ("user", "default"),
        ("redir", "-1"),
        ("resp", "2"),
    ];
    for (name, value) in expected {
        assert_eq!(line[name], value, "{name}");
    }
    assert!(line["addr"].starts_with("127.0.0.1:") && line["laddr"].starts_with("127.0.0.1:"), "{line:?}");
    assert!(line["age"].parse::<u64>().unwrap() < 20 && line["idle"].parse::<u64>().unwrap() < 20, "{line:?}");
    assert!(line["tot-mem"].parse::<u64>().unwrap() > 0, "{line:?}");
}

#[test]
fn others_are_seen_by_what_they_did_last() {
    let session = Session::start();
    let (mut connection, mut other) = (session.connect(), session.connect());
    let id = other.run("CLIENT ID").integer();
    let mut see = |session_of_other: &mut Connection, command: &str| {
        session_of_other.run(command);
        let line = connection.run(&format!("CLIENT LIST ID {id}")).text().to_owned();
        fields(&line).1["cmd"].to_owned()
    };
    assert_eq!(see(&mut other, "GET a"), "get");
    assert_eq!(see(&mut other, "CLIENT GETNAME"), "client|getname");
    assert_eq!(see(&mut other, "CLIENT NO-EVICT ON"), "client|no-evict");
    let line = connection.run(&format!("CLIENT LIST ID {id}"));
    assert_eq!(fields(line.text()).1["flags"], "e");
}

#[test]
fn the_request_itself_is_in_the_query_buffer() {
    let session = Session::start();
    let mut connection = session.connect();
    assert_eq!(info(&mut connection)["qbuf"], "*2\r\n$6\r\nCLIENT\r\n$4\r\nINFO\r\n".len().to_string());
}

#[test]
fn what_a_client_keeps_waiting_is_seen() {
    let session = Session::start();
    let (mut connection, mut other) = (session.connect(), session.connect());
    let id = other.run("CLIENT ID").integer();
    let mut wait_for = |field: &str, least: u64| {
        eventually(|| {
            let line = connection.run(&format!("CLIENT LIST ID {id}")).text().to_owned();
            fields(&line).1[field].parse::<u64>().unwrap() >= least
        });
    };
    // A request of which half has come.
    other.queue_raw(b"*2\r\n$4\r\nECHO\r\n$100000\r\n");
    other.queue_raw(&[b'x'; 50_000]);
    other.flush();
    wait_for("qbuf", 50_000);
    wait_for("tot-mem", 50_000);
    other.queue_raw(&[b'x'; 50_000]);
    other.queue_raw(b"\r\n");
    assert_eq!(other.read().bytes().len(), 100_000);
    wait_for("qbuf", 0);
    // Replies that nobody reads: more of them than sockets hold.
    assert_eq!(other.run_with("SET a", &[&vec![b'x'; 1 << 20]]).to_string(), "+OK");
    for _ in 0..30 {
        other.queue_line("GET a");
    }
    other.flush();
    wait_for("omem", 1 << 20);
    wait_for("rbs", 1 << 10);
    wait_for("tot-mem", 1 << 20);
    for _ in 0..30 {
        assert_eq!(other.read().bytes().len(), 1 << 20);
    }
}

#[test]
fn list_is_verbatim_in_resp3() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.run("HELLO 3");
    for command in ["CLIENT LIST", "CLIENT INFO"] {
        let Reply::Verbatim { format, text } = connection.run(command) else { panic!("{command} is not verbatim") };
        assert_eq!(format, "txt");
        assert!(text.starts_with(b"id=") && text.ends_with(b"\n"));
    }
}

#[test]
fn list_has_a_line_for_every_client() {
    let session = Session::start();
    let mut connections: Vec<Connection> = (0..5).map(|_| session.connect()).collect();
    let ids: Vec<i64> = connections.iter_mut().map(|connection| connection.run("CLIENT ID").integer()).collect();
    let listed = |connection: &mut Connection, command: &str| -> Vec<i64> {
        let text = connection.run(command).text().to_owned();
        text.lines().map(|line| fields(line).1["id"].parse().unwrap()).collect()
    };
    for command in ["CLIENT LIST", "CLIENT LIST TYPE normal", "client list type NORMAL"] {
        let listed = listed(&mut connections[0], command);
        assert!(ids.iter().all(|id| listed.contains(id)), "{command}: {listed:?}");
    }
    let some = format!("CLIENT LIST ID {} 999999 {}", ids[3], ids[1]);
    assert_eq!(listed(&mut connections[0], &some), [ids[3], ids[1]]);
    for none in ["TYPE pubsub", "TYPE replica", "TYPE slave", "TYPE master", "ID 999999", "ID -1"] {
        assert_eq!(listed(&mut connections[0], &format!("CLIENT LIST {none}")), [0; 0], "{none}");
    }
}

#[test]
fn list_checks_its_arguments() {
    check(
        "
        CLIENT LIST nonsense => -ERR syntax error
        CLIENT LIST TYPE => -ERR syntax error
        CLIENT LIST TYPE nonsense => -ERR Unknown client type 'nonsense'
        CLIENT LIST TYPE normal more => -ERR syntax error
        CLIENT LIST ID => -ERR syntax error
        CLIENT LIST ID x => -ERR Invalid client ID
        CLIENT LIST ID 1 x => -ERR Invalid client ID
        CLIENT INFO more => -ERR wrong number of arguments for 'client|info' command
        CLIENT ID more => -ERR wrong number of arguments for 'client|id' command
        ",
    );
}

#[test]
fn modes_are_on_or_off() {
    check(
        r#"
        CLIENT NO-EVICT ON => +OK
        CLIENT INFO => ~"*flags=e *"
        CLIENT NO-EVICT off => +OK
        CLIENT INFO => ~"*flags=N *"
        CLIENT NO-EVICT maybe => -ERR syntax error
        # needs redis >= 7.2
        CLIENT NO-TOUCH on => +OK
        CLIENT INFO => ~"*flags=T *"
        CLIENT NO-TOUCH OFF => +OK
        CLIENT NO-TOUCH maybe => -ERR syntax error
        "#,
    );
}

/// As in Valkey 9.1, which gives the same replies.
#[test]
fn nothing_has_expired_for_an_import_source() {
    check(
        r#"
        # holdfast only
        > CLIENT IMPORT-SOURCE ON
        -ERR Server is not in import mode
        > CLIENT IMPORT-SOURCE
        -ERR wrong number of arguments for 'client|import-source' command
        # config import-mode yes
        > CLIENT IMPORT-SOURCE maybe
        -ERR syntax error
        > CLIENT IMPORT-SOURCE on
        +OK
        > CLIENT INFO
        ~"*flags=I *"
        > SET a 1 PXAT 1000
        +OK
        > HSET h f v g w
        :2
        > HPEXPIREAT h 5 FIELDS 1 f
        [:1]
        > PEXPIREAT h 5
        :1
        > PTTL h
        :0
        > HPTTL h FIELDS 1 f
        [:0]
        > GET a
        "1"
        > HGET h f
        "v"
        2> GET a
        (nil)
        2> EXISTS a h
        :0
        2> DBSIZE
        :2
        // a later deadline, as the other server gave it before the first one came
        > PEXPIREAT h 4102444800000
        :1
        > MULTI
        +OK
        > INCR a
        +QUEUED
        > PERSIST a
        +QUEUED
        > EXEC
        [:2, :1]
        2> GET a
        "2"
        > SET b 1 PX 100000
        +OK
        > PTTL b
        :99000..100000
        // stamps are of today
        > IDX.CREATE stamped PREFIX 1 job: FIELD at STAMP
        +OK
        > HSET job:1 state new
        :1
        > HGET job:1 at
        ~"1????????????"
        > IDX.DROP stamped
        :1
        > CLIENT IMPORT-SOURCE off
        +OK
        > HGET h f
        (nil)
        > HGET h g
        "w"
        > CONFIG SET import-mode no
        +OK
        > SET c 1 PXAT 1000
        +OK
        > EXISTS c
        :0
        # eventually
        > HLEN h
        :1
        "#,
    );
}

#[test]
fn no_touch_leaves_the_age_of_a_key_alone() {
    check(
        r#"
        # needs redis >= 7.2
        > SET a text
        +OK
        # eventually
        > OBJECT IDLETIME a
        :1..20
        > CLIENT NO-TOUCH ON
        +OK
        > GET a
        "text"
        > OBJECT IDLETIME a
        :1..20
        > CLIENT NO-TOUCH OFF
        +OK
        > GET a
        "text"
        > OBJECT IDLETIME a
        :0
        "#,
    );
}

#[test]
fn nobody_tracks_keys() {
    check(
        r#"
        > CLIENT GETREDIR
        :-1
        > CLIENT TRACKINGINFO
        ["flags", ["off"], "redirect", :-1, "prefixes", []]
        > HELLO 3
        *
        > CLIENT TRACKINGINFO
        {"flags" => set["off"], "redirect" => :-1, "prefixes" => []}
        "#,
    );
}

#[test]
fn help_lists_the_subcommands() {
    let session = Session::start();
    let mut connection = session.connect();
    for container in ["CLIENT", "COMMAND"] {
        let help = connection.run(&format!("{container} HELP"));
        let lines: Vec<String> = help.items().iter().map(Reply::to_string).collect();
        let title = format!("+{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
        assert_eq!(lines[0], title);
        assert!(lines.iter().any(|line| line == "+HELP"), "{lines:?}");
        assert_eq!(
            connection.run(&format!("{container} HELP me")).to_string(),
            format!("-ERR wrong number of arguments for '{}|help' command", container.to_lowercase())
        );
    }
}
