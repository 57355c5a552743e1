//! XINFO.

use wire::check;

#[test]
fn xinfo_describes_a_stream() {
    check(
        r#"
        > XGROUP CREATE s g $ MKSTREAM
        +OK
        > XINFO STREAM s
        ["length", :0, "radix-tree-keys", :0, "radix-tree-nodes", :1, "last-generated-id", "0-0", "max-deleted-entry-id", "0-0", "entries-added", :0, "recorded-first-entry-id", "0-0", "groups", :1, "first-entry", (nil), "last-entry", (nil)]
        > XADD s 1-1 a 1
        "1-1"
        > XADD s 1-2 b 2 c 3
        "1-2"
        > XINFO STREAM s
        ["length", :2, "radix-tree-keys", :1, "radix-tree-nodes", :2, "last-generated-id", "1-2", "max-deleted-entry-id", "0-0", "entries-added", :2, "recorded-first-entry-id", "1-1", "groups", :1, "first-entry", ["1-1", ["a", "1"]], "last-entry", ["1-2", ["b", "2", "c", "3"]]]
        > XINFO STREAM s FULL
        ["length", :2, "radix-tree-keys", :1, "radix-tree-nodes", :2, "last-generated-id", "1-2", "max-deleted-entry-id", "0-0", "entries-added", :2, "recorded-first-entry-id", "1-1", "entries", [["1-1", ["a", "1"]], ["1-2", ["b", "2", "c", "3"]]], "groups", [["name", "g", "last-delivered-id", "0-0", "entries-read", (nil), "lag", :2, "pel-count", :0, "pending", [], "consumers", []]]]
        > XREADGROUP GROUP g alice COUNT 1 STREAMS s >
        [["s", [["1-1", ["a", "1"]]]]]
        > XINFO STREAM s FULL
        ["length", :2, "radix-tree-keys", :1, "radix-tree-nodes", :2, "last-generated-id", "1-2", "max-deleted-entry-id", "0-0", "entries-added", :2, "recorded-first-entry-id", "1-1", "entries", [["1-1", ["a", "1"]], ["1-2", ["b", "2", "c", "3"]]], "groups", [["name", "g", "last-delivered-id", "1-1", "entries-read", :1, "lag", :1, "pel-count", :1, "pending", [["1-1", "alice", :1..99999999999999, :1]], "consumers", [["name", "alice", "seen-time", :1..99999999999999, "pel-count", :1, "pending", [["1-1", :1..99999999999999, :1]]]]]]]
        > XINFO STREAM s FULL COUNT 1
        ["length", :2, ...]
        > XINFO STREAM s FULL COUNT -1
        ["length", :2, ...]
        > XINFO STREAM s FULL COUNT 0
        ["length", :2, ...]
        > XINFO STREAM s FULL COUNT x
        -ERR value is not an integer or out of range
        > XINFO STREAM s FULL COUNT
        -ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
        > XINFO STREAM s FULL OTHER 5
        -ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
        > XINFO STREAM s OTHER
        -ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
        > XINFO STREAM missing
        -ERR no such key
        > XINFO STREAM missing OTHER
        -ERR no such key
        > XINFO GROUPS s
        [["name", "g", "consumers", :1, "pending", :1, "last-delivered-id", "1-1", "entries-read", :1, "lag", :1]]
        > XINFO GROUPS missing
        -ERR no such key
        > XINFO CONSUMERS s g
        [["name", "alice", "pending", :1, "idle", :0..60000]]
        > XINFO CONSUMERS s nosuch
        -NOGROUP No such consumer group 'nosuch' for key name 's'
        > XINFO CONSUMERS missing g
        -ERR no such key
        > SET text 1
        +OK
        > XINFO STREAM text
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > XINFO GROUPS text
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > XINFO CONSUMERS text g
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > XINFO NOSUCH s
        -ERR unknown subcommand 'NOSUCH'. Try XINFO HELP.
        > XINFO HELP
        [*, ...]
        > XGROUP HELP
        [*, ...]
        > HELLO 3
        *
        > XINFO STREAM s
        {"length" => :2, "radix-tree-keys" => :1, "radix-tree-nodes" => :2, "last-generated-id" => "1-2", "max-deleted-entry-id" => "0-0", "entries-added" => :2, "recorded-first-entry-id" => "1-1", "groups" => :1, "first-entry" => ["1-1", ["a", "1"]], "last-entry" => ["1-2", ["b", "2", "c", "3"]]}
        > XINFO GROUPS s
        [{"name" => "g", "consumers" => :1, "pending" => :1, "last-delivered-id" => "1-1", "entries-read" => :1, "lag" => :1}]
        "#,
    );
}
