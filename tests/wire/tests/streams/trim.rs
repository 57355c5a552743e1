//! XTRIM and XDEL.

use wire::check;

#[test]
fn xtrim_removes_the_oldest() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 2 => "1-2"
        XADD s 1-3 a 3 => "1-3"
        XADD s 1-4 a 4 => "1-4"
        XTRIM s MAXLEN 3 => :1
        XTRIM s MAXLEN 3 => :0
        XTRIM s MAXLEN = 2 => :1
        XTRIM s MINID 1-4 => :1
        XRANGE s - + => [["1-4", ["a", "4"]]]
        XTRIM s MINID 1 => :0
        XTRIM s MAXLEN 0 => :1
        XLEN s => :0
        EXISTS s => :1
        XTRIM missing MAXLEN 0 => :0
        > XINFO STREAM s
        ["length", :0, "radix-tree-keys", :0, "radix-tree-nodes", :1, "last-generated-id", "1-4", "max-deleted-entry-id", "0-0", "entries-added", :4, "recorded-first-entry-id", "0-0", "groups", :0, "first-entry", (nil), "last-entry", (nil)]
        ! FLUSHALL
        // What it refuses.
        XADD s 1-1 a 1 => "1-1"
        XTRIM s MAXLEN x => -ERR value is not an integer or out of range
        XTRIM s MAXLEN -1 => -ERR The MAXLEN argument must be >= 0.
        XTRIM s MINID x => -ERR Invalid stream ID specified as stream command argument
        XTRIM s MINID - => -ERR Invalid stream ID specified as stream command argument
        XTRIM s LIMIT 5 => -ERR syntax error, LIMIT cannot be used without specifying a trimming strategy
        XTRIM s OTHER 5 => -ERR syntax error
        XTRIM s MAXLEN 5 LIMIT 5 => -ERR syntax error, LIMIT cannot be used without the special ~ option
        XTRIM s MAXLEN = 5 LIMIT 5 => -ERR syntax error, LIMIT cannot be used without the special ~ option
        XTRIM s MAXLEN 5 MINID 1 => -ERR syntax error, MAXLEN and MINID options at the same time are not compatible
        XTRIM s MAXLEN 5 6 => -ERR syntax error
        XTRIM s NOMKSTREAM MAXLEN 5 => -ERR syntax error
        SET text 1 => +OK
        XTRIM text MAXLEN x => -ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn approximate_trimming_removes_whole_nodes() {
    check(
        r#"
        # config stream-node-max-entries 3
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 1 => "1-2"
        XADD s 1-3 a 1 => "1-3"
        XADD s 1-4 a 1 => "1-4"
        XADD s 1-5 a 1 => "1-5"
        XADD s 1-6 a 1 => "1-6"
        XADD s 1-7 a 1 => "1-7"
        XTRIM s MAXLEN ~ 5 => :0
        XTRIM s MAXLEN ~ 4 => :3
        XLEN s => :4
        XTRIM s MINID ~ 1-6 => :0
        XTRIM s MINID ~ 1-7 => :3
        XLEN s => :1
        XADD s 1-8 a 1 => "1-8"
        XADD s 1-9 a 1 => "1-9"
        XADD s 1-10 a 1 => "1-10"
        XADD s 1-11 a 1 => "1-11"
        XTRIM s MAXLEN ~ 0 LIMIT 2 => :0
        XTRIM s MAXLEN ~ 0 LIMIT 3 => :3
        XTRIM s MAXLEN ~ 0 LIMIT 0 => :2
        > XINFO STREAM s
        ["length", :0, "radix-tree-keys", :0, "radix-tree-nodes", :1, "last-generated-id", "1-11", "max-deleted-entry-id", "0-0", "entries-added", :11, "recorded-first-entry-id", "0-0", "groups", :0, "first-entry", (nil), "last-entry", (nil)]
        ! FLUSHALL
        // Bytes end a node too.
        # config stream-node-max-bytes 60
        XADD s 1-1 a 12345678901234567890 => "1-1"
        XADD s 1-2 a 12345678901234567890 => "1-2"
        XADD s 1-3 a 5 => "1-3"
        XADD s 1-4 a 5 => "1-4"
        XADD s 1-5 other 5 => "1-5"
        XADD s 1-6 a abc => "1-6"
        > XINFO STREAM s
        ["length", :6, "radix-tree-keys", :3, "radix-tree-nodes", :5, "last-generated-id", "1-6", "max-deleted-entry-id", "0-0", "entries-added", :6, "recorded-first-entry-id", "1-1", "groups", :0, "first-entry", ["1-1", ["a", "12345678901234567890"]], "last-entry", ["1-6", ["a", "abc"]]]
        XTRIM s MAXLEN ~ 2 => :3
        XLEN s => :3
        "#,
    );
}

#[test]
fn xdel_deletes_by_id() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 2 => "1-2"
        XADD s 1-3 a 3 => "1-3"
        XDEL s 1-2 1-2 1-9 => :1
        XDEL s 1-2 => :0
        XDEL s 1-1 x => -ERR Invalid stream ID specified as stream command argument
        XDEL s 1 => :0
        XDEL s - => -ERR Invalid stream ID specified as stream command argument
        XLEN s => :2
        XDEL missing x => :0
        XDEL s 1-1 1-3 => :2
        EXISTS s => :1
        > XINFO STREAM s
        ["length", :0, "radix-tree-keys", :0, "radix-tree-nodes", :1, "last-generated-id", "1-3", "max-deleted-entry-id", "1-3", "entries-added", :3, "recorded-first-entry-id", "0-0", "groups", :0, "first-entry", (nil), "last-entry", (nil)]
        "#,
    );
}
