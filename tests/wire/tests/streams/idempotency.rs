//! XADD with IDMP and IDMPAUTO, and XCFGSET: a producer that sends an entry again adds it once. As Redis 8.6 documents
//! them.

use wire::{Session, check};

fn session() -> Option<Session> {
    let session = Session::start();
    if !session.has_redis("8.6") {
        wire::skip("# needs redis >= 8.6, this is Redis 7.0.* or another that is older");
        return None;
    }
    Some(session)
}

#[test]
fn an_entry_that_is_sent_again_is_added_once() {
    let Some(session) = session() else { return };
    let mut connection = session.connect();
    let mut add = |line: &str| connection.run(line).to_string();
    let first = add("XADD s IDMP p1 payment * amount 100 currency USD");
    assert_eq!(add("XADD s IDMP p1 payment * amount 200"), first, "its fields do not matter");
    assert_eq!(add("XADD s MAXLEN 0 IDMP p1 payment KEEPREF * amount 200"), first, "nothing is trimmed");
    let second = add("XADD s IDMP p2 payment * amount 300");
    assert_ne!(second, first, "each producer has ids of its own");
    assert_ne!(add("XADD s MAXLEN ~ 100 IDMP p1 * * amount 400"), first, "every text is an id");
    // By their fields, in whatever order.
    let auto = add("XADD s IDMPAUTO p3 * a 1 b 2");
    assert_eq!(add("XADD s NOMKSTREAM IDMPAUTO p3 * b 2 a 1"), auto);
    assert_ne!(add("XADD s IDMPAUTO p3 * b 1 a 2"), auto);
    assert_ne!(add("XADD s IDMPAUTO p3 * ab 12"), auto);
    assert_ne!(add("XADD s IDMPAUTO p4 * a 1 b 2"), auto);
    assert_eq!(add("XLEN s"), ":7");
    assert_eq!(add("XADD none NOMKSTREAM IDMP p i * f v"), "(nil)");
    for reload in [false, true] {
        if reload {
            assert_eq!(add("DEBUG RELOAD"), "+OK");
        }
        let wire::Reply::Array(info) = session.connect().run("XINFO STREAM s") else { panic!("there is a stream") };
        let number = |name: &str| {
            let at = info.iter().position(|item| *item == wire::Reply::Bulk(name.into())).expect(name);
            info[at + 1].integer()
        };
        assert_eq!((number("idmp-duration"), number("idmp-maxsize")), (100, 100));
        assert_eq!((number("pids-tracked"), number("iids-tracked"), number("iids-added")), (4, 7, 7));
        assert_eq!(number("iids-duplicates"), if reload { 4 } else { 3 });
        assert_eq!(add("XADD s IDMP p1 payment * amount 200"), first, "reloaded: {reload}");
    }
    // What is deleted was added all the same.
    assert_eq!(add("XTRIM s MAXLEN 0"), ":7");
    assert_eq!(add("XADD s IDMP p1 payment * amount 200"), first);
}

#[test]
fn a_stream_remembers_so_many_ids() {
    let Some(session) = session() else { return };
    let mut connection = session.connect();
    let mut add = |line: &str| connection.run(line).to_string();
    add("XADD s * f v");
    assert_eq!(add("XCFGSET s IDMP-MAXSIZE 3"), "+OK");
    let ids: Vec<String> = (1..=4).map(|number| add(&format!("XADD s IDMP p {number} * f v"))).collect();
    for number in 2..=4 {
        assert_eq!(add(&format!("XADD s IDMP p {number} * f v")), ids[number - 1]);
    }
    assert_ne!(add("XADD s IDMP p 1 * f v"), ids[0], "it is forgotten");
    // Nothing is forgotten where nothing differs, and all where something does.
    assert_eq!(add("XCFGSET s IDMP-DURATION 100 IDMP-MAXSIZE 3"), "+OK");
    assert_eq!(add("XADD s IDMP p 4 * f v"), ids[3]);
    assert_eq!(add("XCFGSET s IDMP-DURATION 1"), "+OK");
    let again = add("XADD s IDMP p 4 * f v");
    assert_ne!(again, ids[3]);
    // Until its time is over.
    while add("XADD s IDMP p 4 * f v") == again {}
}

#[test]
fn what_producers_and_xcfgset_are_told() {
    check(
        r#"
        # needs redis >= 8.6
        XADD s IDMP p1 * f v => -ERR Invalid stream ID specified as stream command argument
        XADD s IDMP p1 i 1-1 f v => -ERR IDMP/IDMPAUTO can be used only with auto-generated IDs
        XADD s IDMPAUTO p1 1-1 f v => -ERR IDMP/IDMPAUTO can be used only with auto-generated IDs
        XADD s IDMP p1 i IDMP p2 i * f v => -ERR IDMP/IDMPAUTO specified multiple times
        XADD s IDMPAUTO p1 IDMP p2 i * f v => -ERR IDMP/IDMPAUTO specified multiple times
        XADD s IDMP "" i * f v => -ERR IDMP requires a non-empty producer ID
        XADD s IDMP p1 "" * f v => -ERR IDMP requires a non-empty idempotent ID
        XADD s IDMPAUTO "" * f v => -ERR IDMPAUTO requires a non-empty producer ID
        XCFGSET s IDMP-DURATION 5 => -ERR no such key
        XADD s 1-1 f v => "1-1"
        > XINFO STREAM s
        ["length", :1, "radix-tree-keys", :1, "radix-tree-nodes", :2, "last-generated-id", "1-1", "max-deleted-entry-id", "0-0", "entries-added", :1, "recorded-first-entry-id", "1-1", "groups", :0, ...]
        XCFGSET s => -ERR At least one parameter must be specified
        XCFGSET s IDMP-DURATION => -ERR syntax error
        XCFGSET s OTHER 5 => -ERR syntax error
        -ERR value is not an integer or out of range
            XCFGSET s IDMP-DURATION A
            XCFGSET s IDMP-MAXSIZE 000
            XCFGSET s IDMP-DURATION INVALID IDMP-MAXSIZE
        -ERR IDMP-DURATION must be between 1 and 86400 seconds
            XCFGSET s IDMP-DURATION 0
            XCFGSET s IDMP-DURATION -1
            XCFGSET s IDMP-DURATION 86401
        XCFGSET s IDMP-MAXSIZE -1 => -ERR IDMP-MAXSIZE must be between 1 and 10000 entries
        XCFGSET s IDMP-MAXSIZE 10001 => -ERR IDMP-MAXSIZE must be between 1 and 10000 entries
        XCFGSET s IDMP-DURATION 86400 IDMP-MAXSIZE 10000 => +OK
        > XINFO STREAM s
        ["length", :1, "radix-tree-keys", :1, "radix-tree-nodes", :2, "last-generated-id", "1-1", "max-deleted-entry-id", "0-0", "entries-added", :1, "recorded-first-entry-id", "1-1", "idmp-duration", :86400, "idmp-maxsize", :10000, "pids-tracked", :0, "iids-tracked", :0, "iids-added", :0, "iids-duplicates", :0, "groups", :0, ...]
        CONFIG SET stream-idmp-duration 86401 => ~-ERR *must be between*
        CONFIG SET stream-idmp-maxsize 0 => ~-ERR *must be between*
        "#,
    );
}
