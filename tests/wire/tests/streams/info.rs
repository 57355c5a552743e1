//! XINFO.

use wire::check;

#[test]
fn xinfo_describes_a_stream() {
    check(
        r#"
        XGROUP CREATE s g $ MKSTREAM => +OK
        > XINFO STREAM s
        ["length", :0, "radix-tree-keys", :0, "radix-tree-nodes", :1, "last-generated-id", "0-0", "max-deleted-entry-id", "0-0", "entries-added", :0, "recorded-first-entry-id", "0-0", "groups", :1, "first-entry", (nil), "last-entry", (nil)]
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 b 2 c 3 => "1-2"
        > XINFO STREAM s
        ["length", :2, "radix-tree-keys", :1, "radix-tree-nodes", :2, "last-generated-id", "1-2", "max-deleted-entry-id", "0-0", "entries-added", :2, "recorded-first-entry-id", "1-1", "groups", :1, "first-entry", ["1-1", ["a", "1"]], "last-entry", ["1-2", ["b", "2", "c", "3"]]]
        # needs redis >= 8.8
        > XINFO STREAM s FULL
        ["length", :2, "radix-tree-keys", :1, "radix-tree-nodes", :2, "last-generated-id", "1-2", "max-deleted-entry-id", "0-0", "entries-added", :2, "recorded-first-entry-id", "1-1", "entries", [["1-1", ["a", "1"]], ["1-2", ["b", "2", "c", "3"]]], "groups", [["name", "g", "last-delivered-id", "0-0", "entries-read", (nil), "lag", :2, "pel-count", :0, "nacked-count", :0, "pending", [], "consumers", []]]]
        XREADGROUP GROUP g alice COUNT 1 STREAMS s > => [["s", [["1-1", ["a", "1"]]]]]
        > XINFO STREAM s FULL
        ["length", :2, "radix-tree-keys", :1, "radix-tree-nodes", :2, "last-generated-id", "1-2", "max-deleted-entry-id", "0-0", "entries-added", :2, "recorded-first-entry-id", "1-1", "entries", [["1-1", ["a", "1"]], ["1-2", ["b", "2", "c", "3"]]], "groups", [["name", "g", "last-delivered-id", "1-1", "entries-read", :1, "lag", :1, "pel-count", :1, "nacked-count", :0, "pending", [["1-1", "alice", :1..99999999999999, :1]], "consumers", [["name", "alice", "seen-time", :1..99999999999999, "active-time", :1..99999999999999, "pel-count", :1, "pending", [["1-1", :1..99999999999999, :1]]]]]]]
        XINFO STREAM s FULL COUNT 1 => ["length", :2, ...]
        XINFO STREAM s FULL COUNT -1 => ["length", :2, ...]
        XINFO STREAM s FULL COUNT 0 => ["length", :2, ...]
        XINFO STREAM s FULL COUNT x => -ERR value is not an integer or out of range
        -ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
            XINFO STREAM s FULL COUNT
            XINFO STREAM s FULL OTHER 5
            XINFO STREAM s OTHER
        XINFO STREAM missing => -ERR no such key
        XINFO STREAM missing OTHER => -ERR no such key
        > XINFO GROUPS s
        [["name", "g", "consumers", :1, "pending", :1, "last-delivered-id", "1-1", "entries-read", :1, "lag", :1]]
        XINFO GROUPS missing => -ERR no such key
        XINFO CONSUMERS s g => [["name", "alice", "pending", :1, "idle", :0..60000, "inactive", :0..60000]]
        XINFO CONSUMERS s nosuch => -NOGROUP No such consumer group 'nosuch' for key name 's'
        XINFO CONSUMERS missing g => -ERR no such key
        XINFO NOSUCH s => -ERR unknown subcommand 'NOSUCH'. Try XINFO HELP.
        XINFO HELP => [*, ...]
        XGROUP HELP => [*, ...]
        HELLO 3 => *
        > XINFO STREAM s
        {"length" => :2, "radix-tree-keys" => :1, "radix-tree-nodes" => :2, "last-generated-id" => "1-2", "max-deleted-entry-id" => "0-0", "entries-added" => :2, "recorded-first-entry-id" => "1-1", "groups" => :1, "first-entry" => ["1-1", ["a", "1"]], "last-entry" => ["1-2", ["b", "2", "c", "3"]]}
        > XINFO GROUPS s
        [{"name" => "g", "consumers" => :1, "pending" => :1, "last-delivered-id" => "1-1", "entries-read" => :1, "lag" => :1}]
        "#,
    );
}

#[test]
fn a_consumer_is_seen_when_it_asks_and_active_when_it_gets() {
    check(
        r#"
        XGROUP CREATE s g $ MKSTREAM => +OK
        # needs redis >= 7.2
        // Each of these has asked, and got nothing.
        XGROUP CREATECONSUMER s g created => :1
        XREADGROUP GROUP g read STREAMS s > => (nil array)
        XREADGROUP GROUP g history STREAMS s 0 => [["s", []]]
        XREADGROUP GROUP g waited BLOCK 1 STREAMS s > => (nil array)
        XCLAIM s g claimed 0 9-9 => []
        XAUTOCLAIM s g auto 0 0 => ["0-0", [], []]
        > XINFO CONSUMERS s g
        [["name", "auto", "pending", :0, "idle", :0..60000, "inactive", :-1], ["name", "claimed", "pending", :0, "idle", :0..60000, "inactive", :-1], ["name", "created", "pending", :0, "idle", :0..60000, "inactive", :-1], ["name", "history", "pending", :0, "idle", :0..60000, "inactive", :-1], ["name", "read", "pending", :0, "idle", :0..60000, "inactive", :-1], ["name", "waited", "pending", :0, "idle", :0..60000, "inactive", :-1]]
        XGROUP DESTROY s g => :1
        XGROUP CREATE s g 0 => +OK
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 1 => "1-2"
        // Nothing becomes pending for it.
        XREADGROUP GROUP g noack NOACK COUNT 1 STREAMS s > => [["s", [["1-1", ["a", "1"]]]]]
        XREADGROUP GROUP g reader STREAMS s > => [["s", [["1-2", ["a", "1"]]]]]
        XCLAIM s g claimer 0 1-2 JUSTID => ["1-2"]
        XAUTOCLAIM s g autoclaimer 0 0 => ["0-0", [["1-2", ["a", "1"]]], []]
        // What is read again is old.
        XREADGROUP GROUP g reader STREAMS s 0 => [["s", []]]
        # needs redis >= 8.8
        > XINFO STREAM s FULL
        ["length", :2, "radix-tree-keys", :1, "radix-tree-nodes", :2, "last-generated-id", "1-2", "max-deleted-entry-id", "0-0", "entries-added", :2, "recorded-first-entry-id", "1-1", "entries", [["1-1", ["a", "1"]], ["1-2", ["a", "1"]]], "groups", [["name", "g", "last-delivered-id", "1-2", "entries-read", :2, "lag", :0, "pel-count", :1, "nacked-count", :0, "pending", [["1-2", "autoclaimer", :1.., :2]], "consumers", [["name", "autoclaimer", "seen-time", :1.., "active-time", :1.., "pel-count", :1, "pending", [["1-2", :1.., :2]]], ["name", "claimer", "seen-time", :1.., "active-time", :1.., "pel-count", :0, "pending", []], ["name", "noack", "seen-time", :1.., "active-time", :-1, "pel-count", :0, "pending", []], ["name", "reader", "seen-time", :1.., "active-time", :1.., "pel-count", :0, "pending", []]]]]]
        // Wrong options make no consumer.
        XCLAIM s g nobody 0 1-2 OTHER => -ERR Unrecognized XCLAIM option 'OTHER'
        XAUTOCLAIM s g nobody 0 0 COUNT 0 => -ERR COUNT must be > 0
        > XREADGROUP GROUP g nobody STREAMS s missing > >
        -NOGROUP No such key 'missing' or consumer group 'g' in XREADGROUP with GROUP option
        XINFO GROUPS s => [["name", "g", "consumers", :4, ...]]
        "#,
    );
}

#[test]
fn idle_and_inactive_are_counted_from_two_times() {
    let session = wire::Session::start();
    if !session.has_redis("7.2") {
        return wire::skip("# needs redis >= 7.2, this is Redis 7.0.15 or older");
    }
    let mut connection = session.connect();
    for line in ["XADD s 1-1 a 1", "XGROUP CREATE s g 0", "XREADGROUP GROUP g c STREAMS s >"] {
        connection.run(line);
    }
    let mut times = || {
        let wire::Reply::Array(consumers) = connection.run("XINFO CONSUMERS s g") else { panic!("there is one") };
        let wire::Reply::Array(row) = &consumers[0] else { panic!("a row of pairs") };
        (row[5].integer(), row[7].integer())
    };
    // Until it has been idle for a while: what resets one time and not the other shows.
    while times().0 < 20 {}
    for line in ["XREADGROUP GROUP g c STREAMS s 0", "XREADGROUP GROUP g c STREAMS s >", "XCLAIM s g c 900000 1-1"] {
        session.connect().run(line);
        let (idle, inactive) = times();
        assert!(idle < inactive, "{line}: {idle} and {inactive} ms");
    }
    session.connect().run("XCLAIM s g c 0 1-1");
    let (idle, inactive) = times();
    assert_eq!(idle, inactive, "it got an entry when it was seen");
}

#[test]
fn a_lag_counts_what_is_left_ahead() {
    check(
        r#"
        // Redis 7.0 and Valkey count on where something was removed.
        # needs redis >= 8.0
        XGROUP CREATE x g $ MKSTREAM => +OK
        XADD x 1-0 a 1 => "1-0"
        XREADGROUP GROUP g c STREAMS x > => [["x", [["1-0", ["a", "1"]]]]]
        XADD x 2-0 a 1 => "2-0"
        XADD x 3-0 a 1 => "3-0"
        XDEL x 2-0 => :1
        > XINFO GROUPS x
        [["name", "g", "consumers", :1, "pending", :1, "last-delivered-id", "1-0", "entries-read", :1, "lag", (nil)]]
        XDEL x 1-0 => :1
        > XINFO GROUPS x
        [["name", "g", "consumers", :1, "pending", :1, "last-delivered-id", "1-0", "entries-read", :1, "lag", :1]]
        XREADGROUP GROUP g c STREAMS x > => [["x", [["3-0", ["a", "1"]]]]]
        > XINFO GROUPS x
        [["name", "g", "consumers", :1, "pending", :2, "last-delivered-id", "3-0", "entries-read", :3, "lag", :0]]
        DEL x => :1
        XGROUP CREATE x g $ MKSTREAM => +OK
        XADD x 1-0 a 1 => "1-0"
        XADD x 2-0 a 1 => "2-0"
        XADD x 3-0 a 1 => "3-0"
        XREADGROUP GROUP g c COUNT 1 STREAMS x > => [["x", [["1-0", ["a", "1"]]]]]
        XTRIM x MAXLEN 1 => :2
        > XINFO GROUPS x
        [["name", "g", "consumers", :1, "pending", :1, "last-delivered-id", "1-0", "entries-read", :1, "lag", :1]]
        XREADGROUP GROUP g c STREAMS x > => [["x", [["3-0", ["a", "1"]]]]]
        XADD x 4-0 a 1 => "4-0"
        > XINFO GROUPS x
        [["name", "g", "consumers", :1, "pending", :2, "last-delivered-id", "3-0", "entries-read", :3, "lag", :1]]
        XTRIM x MAXLEN 0 => :2
        > XINFO GROUPS x
        [["name", "g", "consumers", :1, "pending", :2, "last-delivered-id", "3-0", "entries-read", :3, "lag", :0]]
        "#,
    );
}
