//! XPENDING, XCLAIM and XAUTOCLAIM.

use wire::check;

#[test]
fn xpending_tells_what_is_pending() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 2 => "1-2"
        XADD s 1-3 a 3 => "1-3"
        XGROUP CREATE s g 0 => +OK
        XPENDING s g => [:0, (nil), (nil), (nil array)]
        XPENDING s g - + 10 => []
        XREADGROUP GROUP g alice COUNT 2 STREAMS s > => [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]]]]
        XREADGROUP GROUP g bob STREAMS s > => [["s", [["1-3", ["a", "3"]]]]]
        XPENDING s g => [:3, "1-1", "1-3", [["alice", "2"], ["bob", "1"]]]
        > XPENDING s g - + 10
        [["1-1", "alice", :0..60000, :1], ["1-2", "alice", :0..60000, :1], ["1-3", "bob", :0..60000, :1]]
        XPENDING s g - + 10 bob => [["1-3", "bob", :0..60000, :1]]
        XPENDING s g - + 10 nosuch => []
        XPENDING s g (1-1 + 1 => [["1-2", "alice", :0..60000, :1]]
        XPENDING s g - (1-2 10 => [["1-1", "alice", :0..60000, :1]]
        XPENDING s g + - 10 => []
        XPENDING s g - + 0 => []
        XPENDING s g - + -1 => []
        XPENDING s g IDLE 100000000 - + 10 => []
        XPENDING s g IDLE 0 1-3 + 10 => [["1-3", "bob", :0..60000, :1]]
        XPENDING s g IDLE 0 - + 10 bob => [["1-3", "bob", :0..60000, :1]]
        XPENDING s nosuch => -NOGROUP No such key 's' or consumer group 'nosuch'
        XPENDING missing g => -NOGROUP No such key 'missing' or consumer group 'g'
        XPENDING s g - => -ERR syntax error
        XPENDING s g - + => -ERR syntax error
        XPENDING s g - + x => -ERR value is not an integer or out of range
        XPENDING s g x + 10 => -ERR Invalid stream ID specified as stream command argument
        XPENDING s g IDLE 5 - + => -ERR syntax error
        XPENDING s g IDLE x - + 10 => -ERR value is not an integer or out of range
        XPENDING s g IDLE 5 - + 10 bob more => -ERR syntax error
        "#,
    );
}

#[test]
fn xclaim_changes_the_owner() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 2 => "1-2"
        XADD s 1-3 a 3 => "1-3"
        XGROUP CREATE s g 0 => +OK
        XREADGROUP GROUP g alice STREAMS s > => [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]], ["1-3", ["a", "3"]]]]]
        XCLAIM s g bob 100000000 1-1 => []
        XCLAIM s g bob 0 1-1 1-9 => [["1-1", ["a", "1"]]]
        XCLAIM s g bob 0 1-2 JUSTID => ["1-2"]
        > XPENDING s g - + 10
        [["1-1", "bob", :0..60000, :2], ["1-2", "bob", :0..60000, :1], ["1-3", "alice", :0..60000, :1]]
        XCLAIM s g bob 0 1-1 IDLE 70000 RETRYCOUNT 9 => [["1-1", ["a", "1"]]]
        XPENDING s g 1-1 1-1 1 => [["1-1", "bob", :70000..130000, :9]]
        XCLAIM s g carol 60000 1-1 1-2 1-3 => [["1-1", ["a", "1"]]]
        XCLAIM s g carol 0 1-3 TIME 1000 => [["1-3", ["a", "3"]]]
        XINFO STREAM s FULL => *
        XPENDING s g - + 10 alice => []
        XACK s g 1-1 => :1
        XCLAIM s g bob 0 1-1 => []
        XCLAIM s g bob 0 1-1 FORCE => [["1-1", ["a", "1"]]]
        XPENDING s g 1-1 1-1 1 => [["1-1", "bob", :0..60000, :2]]
        XCLAIM s g bob 0 5-5 FORCE => []
        // An entry that is deleted is cleared.
        XDEL s 1-2 => :1
        XCLAIM s g carol 0 1-2 => []
        XPENDING s g => [:2, "1-1", "1-3", [["bob", "1"], ["carol", "1"]]]
        XCLAIM s g carol 0 1-1 1-1 1-1 => [["1-1", ["a", "1"]], ["1-1", ["a", "1"]], ["1-1", ["a", "1"]]]
        XPENDING s g 1-1 1-1 1 => [["1-1", "carol", :0..60000, :5]]
        XCLAIM s g carol 0 1-1 LASTID 9-9 => [["1-1", ["a", "1"]]]
        > XINFO GROUPS s
        [["name", "g", "consumers", :3, "pending", :2, "last-delivered-id", "9-9", "entries-read", :3, "lag", :0]]
        XCLAIM s g carol 0 1-1 LASTID 2-2 => [["1-1", ["a", "1"]]]
        > XINFO GROUPS s
        [["name", "g", "consumers", :3, "pending", :2, "last-delivered-id", "9-9", "entries-read", :3, "lag", :0]]
        XGROUP CREATE s h 0 => +OK
        XCLAIM s h dave 0 1-1 => []
        // Redis 7.0 makes no consumer that gets nothing.
        # needs redis >= 7.2
        XINFO CONSUMERS s h => [["name", "dave", "pending", :0, "idle", :0..60000, "inactive", :-1]]
        "#,
    );
}

#[test]
fn xclaim_refuses() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XGROUP CREATE s g 0 => +OK
        XCLAIM s g c x 1-1 => -ERR Invalid min-idle-time argument for XCLAIM
        XCLAIM s g c -5 1-1 => []
        XCLAIM s g c 0 x => -ERR Unrecognized XCLAIM option 'x'
        XCLAIM s g c 0 1-1 x => -ERR Unrecognized XCLAIM option 'x'
        XCLAIM s g c 0 1-1 IDLE => -ERR Unrecognized XCLAIM option 'IDLE'
        XCLAIM s g c 0 1-1 IDLE x => -ERR Invalid IDLE option argument for XCLAIM
        XCLAIM s g c 0 1-1 TIME x => -ERR Invalid TIME option argument for XCLAIM
        XCLAIM s g c 0 1-1 RETRYCOUNT x => -ERR Invalid RETRYCOUNT option argument for XCLAIM
        XCLAIM s g c 0 1-1 LASTID x => -ERR Invalid stream ID specified as stream command argument
        XCLAIM s g c 0 1-1 FORCE 1-2 => -ERR Unrecognized XCLAIM option '1-2'
        XCLAIM s nosuch c x 1-1 => -NOGROUP No such key 's' or consumer group 'nosuch'
        XCLAIM missing g c 0 1-1 => -NOGROUP No such key 'missing' or consumer group 'g'
        "#,
    );
}

#[test]
fn xautoclaim_goes_on_where_it_stopped() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XADD s 1-2 a 2 => "1-2"
        XADD s 1-3 a 3 => "1-3"
        XADD s 1-4 a 4 => "1-4"
        XGROUP CREATE s g 0 => +OK
        > XREADGROUP GROUP g alice STREAMS s >
        [["s", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]], ["1-3", ["a", "3"]], ["1-4", ["a", "4"]]]]]
        XAUTOCLAIM s g bob 100000000 0 => ["0-0", [], []]
        XAUTOCLAIM s g bob 0 - COUNT 2 => ["1-3", [["1-1", ["a", "1"]], ["1-2", ["a", "2"]]], []]
        XAUTOCLAIM s g bob 0 1-3 COUNT 2 JUSTID => ["0-0", ["1-3", "1-4"], []]
        > XPENDING s g - + 10
        [["1-1", "bob", :0..60000, :2], ["1-2", "bob", :0..60000, :2], ["1-3", "bob", :0..60000, :1], ["1-4", "bob", :0..60000, :1]]
        XDEL s 1-1 1-3 => :2
        XAUTOCLAIM s g carol 0 0 => ["0-0", [["1-2", ["a", "2"]], ["1-4", ["a", "4"]]], ["1-1", "1-3"]]
        XAUTOCLAIM s g carol 0 (1-2 COUNT 1 => ["0-0", [["1-4", ["a", "4"]]], []]
        XPENDING s g => [:2, "1-2", "1-4", [["carol", "2"]]]
        XAUTOCLAIM s g carol 0 9 => ["0-0", [], []]
        XAUTOCLAIM s g carol x 0 => -ERR Invalid min-idle-time argument for XAUTOCLAIM
        XAUTOCLAIM s g carol 0 x => -ERR Invalid stream ID specified as stream command argument
        XAUTOCLAIM s g carol 0 0 COUNT 0 => -ERR COUNT must be > 0
        XAUTOCLAIM s g carol 0 0 COUNT x => -ERR COUNT must be > 0
        XAUTOCLAIM s g carol 0 0 COUNT => -ERR syntax error
        XAUTOCLAIM s g carol 0 0 OTHER => -ERR syntax error
        XAUTOCLAIM s nosuch carol 0 0 => -NOGROUP No such key 's' or consumer group 'nosuch'
        XAUTOCLAIM missing g carol 0 0 => -NOGROUP No such key 'missing' or consumer group 'g'
        XAUTOCLAIM s g carol 0 (18446744073709551615-18446744073709551615 => -ERR invalid start ID for the interval
        "#,
    );
}
