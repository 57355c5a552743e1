//! Cells, runs, registers and sessions are not replaced by the way: whatever would put another value under the name of
//! one is refused and changes nothing, from wherever it comes.

use wire::{Connection, Product, Reply, Session};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

/// How to make the key `k` of each type, and how to show its value.
const KINDS: &[(&str, &str)] = &[
    ("CELL.SET k 5", "CELL.HISTORY k"),
    ("RUN.APPEND k 5 t d", "RUN.EVENTS k"),
    ("REG.PUT k 1 5", "REG.GET k"),
    ("SESSION.OPEN ID k TTL 3600000 CAP 1 a b", "SESSION.INFO k"),
];

/// The keys from which commands take the new value.
const SOURCES: &[&str] = &[
    "SET string v",
    "SADD set a b",
    "ZADD zset 1 a",
    "GEOADD places 13 38 here",
    "RPUSH list 2 1",
    "CELL.SET cell v",
    "RUN.APPEND run 1 t d",
    "REG.PUT register 7 v",
];

/// Requests that would replace the value of `k`.
const REFUSED: &[&str] = &[
    "SET k v",
    "SET k v XX",
    "SET k v KEEPTTL",
    "SET k v GET",
    "SET k v XX GET",
    "SET k v EX 100",
    "SET k v PXAT 1",
    "SET k v IFEQ v",
    "SET k v IFNE w",
    "SETEX k 100 v",
    "PSETEX k 100000 v",
    "GETSET k v",
    "MSET k v",
    "MSET nosuch v k v",
    "MSET k v nosuch v",
    "MSETEX 1 k v",
    "MSETEX 2 nosuch v k v EX 100",
    "MSETEX 2 k v nosuch v PXAT 1",
    "RENAME string k",
    "RENAME cell k",
    "RENAME run k",
    "RENAME register k",
    "COPY string k REPLACE",
    "COPY cell k REPLACE",
    "COPY run k REPLACE",
    "COPY register k REPLACE",
    "BITOP AND k string",
    "BITOP NOT k nosuch",
    "PFMERGE k",
    "SINTERSTORE k set",
    "SINTERSTORE k set nosuch",
    "SUNIONSTORE k set",
    "SUNIONSTORE k nosuch",
    "SDIFFSTORE k set",
    "SDIFFSTORE k set set",
    "ZINTERSTORE k 1 zset",
    "ZINTERSTORE k 2 zset nosuch",
    "ZUNIONSTORE k 2 zset set",
    "ZUNIONSTORE k 1 nosuch",
    "ZDIFFSTORE k 1 zset",
    "ZDIFFSTORE k 2 zset zset",
    "ZRANGESTORE k zset 0 -1",
    "ZRANGESTORE k zset 5 6",
    "GEOSEARCHSTORE k places FROMLONLAT 13 38 BYRADIUS 1 km",
    "GEOSEARCHSTORE k places FROMLONLAT 50 50 BYRADIUS 1 km STOREDIST",
    "GEORADIUS places 13 38 1 km STORE k",
    "GEORADIUS places 50 50 1 km STOREDIST k",
    "GEORADIUSBYMEMBER places here 1 km STORE k",
    "GEORADIUSBYMEMBER places here 1 km STOREDIST k",
    "SORT list STORE k",
    "SORT nosuch STORE k",
    "REG.SNAPSHOT STORE k",
    "REG.SNAPSHOT KEYS 1 register STORE k",
];

/// Requests that leave existing keys alone answer as they do for any type.
const LEFT_ALONE: &[(&str, &str)] = &[
    ("SET k v NX", "(nil)"),
    ("SETNX k v", ":0"),
    ("MSETNX nosuch v k v", ":0"),
    ("MSETEX 2 nosuch v k v NX", ":0"),
    ("RENAMENX string k", ":0"),
    ("RENAMENX cell k", ":0"),
    ("COPY string k", ":0"),
    ("COPY register k", ":0"),
    ("RENAME nosuch k", "-ERR no such key"),
    ("COPY nosuch k REPLACE", ":0"),
    ("RESTORE k 0 nonsense", "-BUSYKEY Target key name already exists."),
];

/// Commands that overwrite a key according to COMMAND, but that none of the lists above has, each with the reason.
const ELSEWHERE: &[(&str, &str)] = &[
    ("restore", "its payload is not text: a test of its own"),
    ("session.open", "it makes sessions, and refuses a key of another type as its family does"),
];

#[test]
fn what_would_replace_a_value_is_refused_and_changes_nothing() {
    let Some(session) = start() else { return };
    for_each_kind(&session, |connection, check| {
        for request in REFUSED {
            assert_eq!(without_type(&connection.run(request).to_string()), WRONG_TYPE, "{request}");
            check(connection, request);
        }
    });
}

#[test]
fn so_it_is_in_transactions_scripts_functions_and_calls() {
    let Some(session) = start() else { return };
    session.connect().run_args(&["FUNCTION", "LOAD", "REPLACE", FUNCTION]);
    for_each_kind(&session, |connection, check| {
        connection.run("SESSION.OPEN ID caller");
        for (number, request) in REFUSED.iter().enumerate() {
            assert_eq!(connection.run("MULTI").to_string(), "+OK");
            assert_eq!(connection.run(request).to_string(), "+QUEUED", "{request}");
            let replies = connection.run("EXEC");
            let reply = replies.items()[0].to_string();
            assert_eq!(without_type(&reply), WRONG_TYPE, "{request} in MULTI");
            check(connection, request);
            let eval = ["EVAL", "return redis.pcall(unpack(ARGV))", "0"];
            for (way, before) in [("a script", &eval[..]), ("a function", &["FCALL", "run_it", "0"])] {
                let args: Vec<&str> = before.iter().copied().chain(request.split(' ')).collect();
                let reply = connection.run_args(&args).to_string();
                assert!(reply.starts_with(WRONG_TYPE), "{request} in {way}: {reply}");
                check(connection, request);
            }
            let call = format!("SESSION.CALL caller {} LOW 1 {request}", number + 1);
            assert_eq!(without_type(&connection.run(&call).to_string()), WRONG_TYPE, "{request} in SESSION.CALL");
            check(connection, request);
        }
        connection.run("SESSION.CLOSE caller");
    });
    session.connect().run("FUNCTION FLUSH");
}

/// An error without the key's type, which commands that Redis does not have tell.
fn without_type(error: &str) -> &str {
    error.split(": the key's type is ").next().unwrap_or_default()
}

const FUNCTION: &str = "#!lua name=replacing\nredis.register_function('run_it', \
                        function(keys, args) return redis.pcall(unpack(args)) end)";

#[test]
fn so_it_is_in_interactive_transactions() {
    let Some(session) = start() else { return };
    for_each_kind(&session, |connection, check| {
        for request in REFUSED.iter().filter(|request| !request.starts_with("REG.SNAPSHOT")) {
            assert_eq!(connection.run("TXN.BEGIN").to_string(), "+OK");
            let reply = connection.run(request).to_string();
            // GEORADIUS and SORT may be refused as a whole.
            assert!(reply == WRONG_TYPE || reply.starts_with("-ERR"), "{request}: {reply}");
            assert!(!connection.run("TXN.COMMIT").is_error(), "{request}");
            check(connection, request);
        }
    });
}

#[test]
fn what_leaves_existing_keys_alone_answers_as_for_any_type() {
    let Some(session) = start() else { return };
    for_each_kind(&session, |connection, check| {
        for (request, reply) in LEFT_ALONE {
            assert_eq!(connection.run(request).to_string(), *reply, "{request}");
            check(connection, request);
        }
    });
}

#[test]
fn a_payload_replaces_nothing_either() {
    let Some(session) = start() else { return };
    for_each_kind(&session, |connection, check| {
        for source in ["string", "set", "cell", "run", "register"] {
            let payload = connection.run(&format!("DUMP {source}")).bytes().to_vec();
            for ttl in ["0", "1000"] {
                let args = [b"RESTORE" as &[u8], b"k", ttl.as_bytes(), &payload, b"REPLACE"];
                assert_eq!(connection.run_args(&args).to_string(), WRONG_TYPE, "RESTORE of a {source}");
                check(connection, "RESTORE");
            }
            let args = [b"RESTORE" as &[u8], b"k", b"1", &payload, b"REPLACE", b"ABSTTL"];
            assert_eq!(connection.run_args(&args).to_string(), WRONG_TYPE, "RESTORE of an expired {source}");
            check(connection, "RESTORE");
        }
    });
}

#[test]
fn a_value_of_another_database_replaces_nothing_either() {
    let Some(session) = start() else { return };
    for_each_kind(&session, |connection, check| {
        connection.run("SELECT 1");
        connection.run("MSET k other string v");
        assert_eq!(connection.run("COPY string k DB 0 REPLACE").to_string(), WRONG_TYPE);
        assert_eq!(connection.run("COPY k k DB 0 REPLACE").to_string(), WRONG_TYPE);
        assert_eq!(connection.run("COPY string k DB 0").to_string(), ":0");
        assert_eq!(connection.run("MOVE k 0").to_string(), ":0");
        // The key of that name in this database is a string.
        assert_eq!(connection.run("COPY string k REPLACE").to_string(), ":1");
        connection.run("FLUSHDB");
        connection.run("SELECT 0");
        check(connection, "COPY and MOVE");
    });
}

#[test]
fn a_value_that_was_removed_or_has_expired_is_in_no_way() {
    let Some(session) = start() else { return };
    session.check(
        r#"
        > CELL.SET k 1
        :1
        > DEL k
        :1
        > SET k v
        +OK
        > DEL k
        :1
        > REG.PUT k 1 v
        +APPLIED
        > PEXPIRE k 1
        :1
        # eventually
        > SET k v
        +OK
        > GET k
        "v"
        > DEL k
        :1
        > SESSION.OPEN ID k TTL 1
        "k"
        # eventually
        > MSET k v
        +OK
        > GET k
        "v"
        > DEL k
        :1
        > CELL.SET k 1
        :1
        > RENAME k k
        +OK
        > RENAME k other
        +OK
        > SET k v
        +OK
        > CELL.GET other
        "1"
        "#,
    );
}

/// A command that overwrites keys has to be in one of the lists above.
#[test]
fn every_command_that_overwrites_a_key_is_tried() {
    let Some(session) = start() else { return };
    let left_alone = LEFT_ALONE.iter().map(|(request, _)| request);
    let tried: Vec<String> = REFUSED.iter().chain(left_alone).map(|request| name(request)).collect();
    for command in session.connect().run("COMMAND").items() {
        let row = command.items();
        let overwrites = row[8].items().iter().any(|spec| {
            // A note may come first.
            let at = spec.items().iter().position(|word| word.to_string() == "\"flags\"").expect("flags");
            spec.items()[at + 1].items().iter().any(|flag| flag.to_string() == "+OW")
        });
        let name = row[0].text();
        if overwrites && !ELSEWHERE.iter().any(|(elsewhere, _)| *elsewhere == name) {
            assert!(tried.iter().any(|tried| tried == name), "{name} overwrites a key: add it to a list of this test");
        }
    }
}

fn name(request: &str) -> String {
    request.split(' ').next().unwrap_or_default().to_lowercase()
}

fn start() -> Option<Session> {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        wire::skip("only Holdfast has these types");
        return None;
    }
    Some(session)
}

/// Visits each type with `k` of that type and the sources there. The visitor gets a function that fails if a request
/// has changed a key.
fn for_each_kind(session: &Session, mut visit: impl FnMut(&mut Connection, &dyn Fn(&mut Connection, &str))) {
    let mut connection = session.connect();
    for (create, show) in KINDS {
        connection.run("FLUSHALL");
        for line in SOURCES.iter().chain([create]) {
            let reply = connection.run(line);
            assert!(!reply.is_error(), "{line}: {reply}");
        }
        let state = |connection: &mut Connection| -> Vec<Reply> {
            let mut replies = connection.pipeline(&[show, "TTL k", "EXISTS nosuch", "TYPE cell", "GET string"]);
            // The time that a session has left is not part of its value.
            if create.starts_with("SESSION") {
                replies.remove(1);
            }
            replies
        };
        let before = state(&mut connection);
        visit(&mut connection, &|connection, request| {
            assert_eq!(state(connection), before, "{request} over what `{create}` has made");
        });
    }
}
