//! XGROUP, XREADGROUP that does not wait, and XACK.

use wire::check;

#[test]
fn a_group_is_made_and_removed() {
    check(
        r#"
        > XGROUP CREATE s g $
        -ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
        XGROUP CREATE s g $ MKSTREAM => +OK
        TYPE s => +stream
        XLEN s => :0
        XGROUP CREATE s g $ => -BUSYGROUP Consumer Group name already exists
        XGROUP CREATE s g $ MKSTREAM => -BUSYGROUP Consumer Group name already exists
        XGROUP CREATE s h 5-1 ENTRIESREAD 3 => +OK
        XGROUP CREATE s i 5 ENTRIESREAD -1 MKSTREAM => +OK
        XGROUP CREATE s j x => -ERR Invalid stream ID specified as stream command argument
        XGROUP CREATE s j - => -ERR Invalid stream ID specified as stream command argument
        XGROUP CREATE s j 0 ENTRIESREAD -2 => -ERR value for ENTRIESREAD must be positive or -1
        XGROUP CREATE s j 0 ENTRIESREAD x => -ERR value is not an integer or out of range
        -ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.
            XGROUP CREATE s j 0 ENTRIESREAD
            XGROUP CREATE s j 0 OTHER
            XGROUP CREATE s j 0 MKSTREAM MKSTREAM MKSTREAM MKSTREAM
        XGROUP CREATE s j => -ERR wrong number of arguments for 'xgroup|create' command
        > XINFO GROUPS s
        [["name", "g", "consumers", :0, "pending", :0, "last-delivered-id", "0-0", "entries-read", (nil), "lag", :0], ["name", "h", "consumers", :0, "pending", :0, "last-delivered-id", "5-1", "entries-read", :3, "lag", :0], ["name", "i", "consumers", :0, "pending", :0, "last-delivered-id", "5-0", "entries-read", (nil), "lag", :0]]
        XGROUP SETID s g 7 => +OK
        XGROUP SETID s g $ ENTRIESREAD 9 => +OK
        XGROUP SETID s g - => +OK
        XGROUP SETID s g + => +OK
        XGROUP SETID s nosuch 0 => -NOGROUP No such consumer group 'nosuch' for key name 's'
        > XGROUP SETID missing g 0
        -ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
        XGROUP SETID s g x => -ERR Invalid stream ID specified as stream command argument
        > XGROUP SETID s g 0 MKSTREAM
        -ERR unknown subcommand or wrong number of arguments for 'SETID'. Try XGROUP HELP.
        > XINFO GROUPS s
        [["name", "g", "consumers", :0, "pending", :0, "last-delivered-id", "18446744073709551615-18446744073709551615", "entries-read", (nil), "lag", :0], ["name", "h", "consumers", :0, "pending", :0, "last-delivered-id", "5-1", "entries-read", :3, "lag", :0], ["name", "i", "consumers", :0, "pending", :0, "last-delivered-id", "5-0", "entries-read", (nil), "lag", :0]]
        XGROUP DESTROY s g => :1
        XGROUP DESTROY s g => :0
        > XGROUP DESTROY missing g
        -ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
        XGROUP NOSUCH s g => -ERR unknown subcommand 'NOSUCH'. Try XGROUP HELP.
        "#,
    );
}

#[test]
fn consumers_are_made_and_removed() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 1 => "1-2"
        XGROUP CREATE s g 0 => +OK
        XGROUP CREATECONSUMER s g alice => :1
        XGROUP CREATECONSUMER s g alice => :0
        XGROUP CREATECONSUMER s nosuch alice => -NOGROUP No such consumer group 'nosuch' for key name 's'
        > XGROUP CREATECONSUMER missing g alice
        -ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
        XREADGROUP GROUP g bob STREAMS s > => [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "1"]]]]]
        > XINFO CONSUMERS s g
        [["name", "alice", "pending", :0, "idle", :0..60000, ...], ["name", "bob", "pending", :2, "idle", :0..60000, ...]]
        XGROUP DELCONSUMER s g bob => :2
        XGROUP DELCONSUMER s g bob => :0
        XGROUP DELCONSUMER s nosuch bob => -NOGROUP No such consumer group 'nosuch' for key name 's'
        XPENDING s g => [:0, (nil), (nil), (nil array)]
        XINFO CONSUMERS s g => [["name", "alice", "pending", :0, "idle", :0..60000, ...]]
        "#,
    );
}

#[test]
fn xreadgroup_delivers_each_entry_once() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 2 => "1-2"
        XADD s 1-3 a 3 => "1-3"
        XGROUP CREATE s g 0 => +OK
        XREADGROUP GROUP g alice COUNT 1 STREAMS s > => [["s", [["1-1", ["a", "1"]]]]]
        XREADGROUP GROUP g bob STREAMS s > => [["s", [["1-2", ["a", "2"]], ["1-3", ["a", "3"]]]]]
        XREADGROUP GROUP g bob STREAMS s > => (nil array)
        XREADGROUP GROUP g alice STREAMS s 0 => [["s", [["1-1", ["a", "1"]]]]]
        XREADGROUP GROUP g bob STREAMS s 0 => [["s", [["1-2", ["a", "2"]], ["1-3", ["a", "3"]]]]]
        XREADGROUP GROUP g bob COUNT 1 STREAMS s 1-2 => [["s", [["1-3", ["a", "3"]]]]]
        XREADGROUP GROUP g carol STREAMS s 0 => [["s", []]]
        > XPENDING s g - + 10
        [["1-1", "alice", :0..60000, :2], ["1-2", "bob", :0..60000, :2], ["1-3", "bob", :0..60000, :3]]
        XACK s g 1-1 1-1 1-9 => :1
        XACK s g 1-1 => :0
        XACK s nosuch 1-2 => :0
        XACK missing g 1-2 => :0
        XACK s g x => -ERR Invalid stream ID specified as stream command argument
        XACK s g 1-2 x => -ERR Invalid stream ID specified as stream command argument
        XPENDING s g => [:2, "1-2", "1-3", [["bob", "2"]]]
        XDEL s 1-2 => :1
        XREADGROUP GROUP g bob STREAMS s 0 => [["s", [["1-2", (nil array)], ["1-3", ["a", "3"]]]]]
        XADD s 2-1 a 4 => "2-1"
        XREADGROUP GROUP g alice NOACK STREAMS s > => [["s", [["2-1", ["a", "4"]]]]]
        XPENDING s g => [:2, "1-2", "1-3", [["bob", "2"]]]
        > XINFO GROUPS s
        [["name", "g", "consumers", :3, "pending", :2, "last-delivered-id", "2-1", "entries-read", :4, "lag", :0]]
        XADD s 3-1 a 5 => "3-1"
        XADD t 3-1 a 5 => "3-1"
        XGROUP CREATE t g $ => +OK
        XADD t 3-2 a 6 => "3-2"
        XREADGROUP GROUP g alice STREAMS s t > > => [["s", [["3-1", ["a", "5"]]]], ["t", [["3-2", ["a", "6"]]]]]
        XREADGROUP GROUP g alice STREAMS s t 0 > => [["s", [["3-1", ["a", "5"]]]]]
        HELLO 3 => *
        XREADGROUP GROUP g alice COUNT 1 STREAMS s t 0 0 => {"s" => [["3-1", ["a", "5"]]], "t" => [["3-2", ["a", "6"]]]}
        "#,
    );
}

#[test]
fn xreadgroup_refuses() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XGROUP CREATE s g 0 => +OK
        > XREADGROUP GROUP nosuch c STREAMS s >
        -NOGROUP No such key 's' or consumer group 'nosuch' in XREADGROUP with GROUP option
        > XREADGROUP GROUP g c STREAMS missing >
        -NOGROUP No such key 'missing' or consumer group 'g' in XREADGROUP with GROUP option
        > XREADGROUP GROUP g c STREAMS s $
        -ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.
        XREADGROUP GROUP g c STREAMS s x => -ERR Invalid stream ID specified as stream command argument
        XREADGROUP GROUP g c COUNT x STREAMS s > => -ERR value is not an integer or out of range
        XREADGROUP GROUP g c OTHER STREAMS s > => -ERR syntax error
        XREADGROUP COUNT 1 BLOCK 5 STREAMS s > => -ERR Missing GROUP option for XREADGROUP
        XREADGROUP GROUP g STREAMS s > x y => -ERR syntax error
        XREADGROUP GROUP g c BLOCK -1 STREAMS s > => -ERR timeout is negative
        SET text 1 => +OK
        XREADGROUP GROUP g c STREAMS s text > > => -WRONGTYPE Operation against a key holding the wrong kind of value
        XINFO CONSUMERS s g => []
        // A group and a consumer may be called anything.
        XGROUP CREATE s streams 0 => +OK
        XREADGROUP GROUP streams streams STREAMS s > => [["s", [["1-1", ["a", "1"]]]]]
        # needs redis >= 7.4
        > XREADGROUP GROUP g c STREAMS s t 0
        -ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified.
        > XREADGROUP GROUP g c STREAMS s +
        -ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return an empty result set.
        "#,
    );
}

#[test]
fn going_back_delivers_again() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 2 => "1-2"
        XGROUP CREATE s g 0 => +OK
        XREADGROUP GROUP g alice STREAMS s > => [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]]]
        XGROUP SETID s g 0 => +OK
        XREADGROUP GROUP g bob STREAMS s > => [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]]]
        XPENDING s g => [:2, "1-1", "1-2", [["bob", "2"]]]
        XPENDING s g - + 10 => [["1-1", "bob", :0..60000, :1], ["1-2", "bob", :0..60000, :1]]
        XREADGROUP GROUP g alice STREAMS s 0 => [["s", []]]
        "#,
    );
}

#[test]
fn lag_and_entries_read() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 1 => "1-2"
        XADD s 1-3 a 1 => "1-3"
        XADD s 1-4 a 1 => "1-4"
        XADD s 1-5 a 1 => "1-5"
        XGROUP CREATE s g1 0 => +OK
        XGROUP CREATE s g2 0 => +OK
        XREADGROUP GROUP g1 c11 COUNT 1 STREAMS s > => [["s", [["1-1", ["a", "1"]]]]]
        > XINFO GROUPS s
        [["name", "g1", "consumers", :1, "pending", :1, "last-delivered-id", "1-1", "entries-read", :1, "lag", :4], ["name", "g2", "consumers", :0, "pending", :0, "last-delivered-id", "0-0", "entries-read", (nil), "lag", :5]]
        XREADGROUP GROUP g1 c12 COUNT 2 STREAMS s > => [["s", [["1-2", ["a", "1"]], ["1-3", ["a", "1"]]]]]
        XDEL s 1-2 => :1
        > XINFO GROUPS s
        [["name", "g1", "consumers", :2, "pending", :3, "last-delivered-id", "1-3", "entries-read", :3, "lag", :2], ["name", "g2", "consumers", :0, "pending", :0, "last-delivered-id", "0-0", "entries-read", (nil), "lag", (nil)]]
        > XREADGROUP GROUP g2 c21 COUNT 3 STREAMS s >
        [["s", [["1-1", ["a", "1"]], ["1-3", ["a", "1"]], ["1-4", ["a", "1"]]]]]
        > XINFO GROUPS s
        [["name", "g1", "consumers", :2, "pending", :3, "last-delivered-id", "1-3", "entries-read", :3, "lag", :2], ["name", "g2", "consumers", :1, "pending", :3, "last-delivered-id", "1-4", "entries-read", (nil), "lag", (nil)]]
        XADD s 1-6 a 1 => "1-6"
        XTRIM s MAXLEN 2 => :3
        // Redis 7.0 counts what a group has not read and never will.
        # needs redis >= 8.0
        > XINFO GROUPS s
        [["name", "g1", "consumers", :2, "pending", :3, "last-delivered-id", "1-3", "entries-read", :3, "lag", :2], ["name", "g2", "consumers", :1, "pending", :3, "last-delivered-id", "1-4", "entries-read", (nil), "lag", :2]]
        XREADGROUP GROUP g2 c21 STREAMS s > => [["s", [["1-5", ["a", "1"]], ["1-6", ["a", "1"]]]]]
        > XINFO GROUPS s
        [["name", "g1", "consumers", :2, "pending", :3, "last-delivered-id", "1-3", "entries-read", :3, "lag", :2], ["name", "g2", "consumers", :1, "pending", :5, "last-delivered-id", "1-6", "entries-read", :6, "lag", :0]]
        XTRIM s MAXLEN 0 => :2
        > XINFO GROUPS s
        [["name", "g1", "consumers", :2, "pending", :3, "last-delivered-id", "1-3", "entries-read", :3, "lag", :0], ["name", "g2", "consumers", :1, "pending", :5, "last-delivered-id", "1-6", "entries-read", :6, "lag", :0]]
        XGROUP CREATE s g3 $ => +OK
        XGROUP CREATE s g4 1-2 => +OK
        XGROUP CREATE s g5 9-9 => +OK
        > XINFO GROUPS s
        [["name", "g1", "consumers", :2, "pending", :3, "last-delivered-id", "1-3", "entries-read", :3, "lag", :0], ["name", "g2", "consumers", :1, "pending", :5, "last-delivered-id", "1-6", "entries-read", :6, "lag", :0], ["name", "g3", "consumers", :0, "pending", :0, "last-delivered-id", "1-6", "entries-read", (nil), "lag", :0], ["name", "g4", "consumers", :0, "pending", :0, "last-delivered-id", "1-2", "entries-read", (nil), "lag", :0], ["name", "g5", "consumers", :0, "pending", :0, "last-delivered-id", "9-9", "entries-read", (nil), "lag", :0]]
        "#,
    );
}
