//! Streams and the commands that take any key.

use wire::check;

#[test]
fn a_stream_is_a_value_like_any_other() {
    check(
        r#"
        XADD s 1-1 a 1 => "1-1"
        XGROUP CREATE s g 0 => +OK
        XREADGROUP GROUP g alice STREAMS s > => [["s", [["1-1", ["a", "1"]]]]]
        TYPE s => +stream
        OBJECT ENCODING s => "stream"
        OBJECT REFCOUNT s => :1
        EXISTS s => :1
        COPY s t => :1
        > XINFO GROUPS t
        [["name", "g", "consumers", :1, "pending", :1, "last-delivered-id", "1-1", "entries-read", :1, "lag", :0]]
        XPENDING t g => [:1, "1-1", "1-1", [["alice", "1"]]]
        XACK t g 1-1 => :1
        XPENDING s g => [:1, "1-1", "1-1", [["alice", "1"]]]
        RENAME t u => +OK
        XRANGE u - + => [["1-1", ["a", "1"]]]
        MOVE u 3 => :1
        EXISTS u => :0
        SELECT 3 => +OK
        XLEN u => :1
        SELECT 0 => +OK
        EXPIRE s 100 => :1
        XADD s 1-2 a 1 => "1-2"
        TTL s => :90..100
        PERSIST s => :1
        SCAN 0 TYPE stream => ["0", ["s"]]
        SCAN 0 TYPE hash => ["0", []]
        MEMORY USAGE s => :1..100000
        UNLINK s => :1
        XLEN s => :0
        GET s => (nil)
        "#,
    );
}

#[test]
fn digests_are_those_of_redis() {
    check(
        r#"
        XADD s 1-1 a 1 b text => "1-1"
        XADD s 1526919030474-55 a 1 => "1526919030474-55"
        XADD s 1526919030474-56 a 1 c -5 => "1526919030474-56"
        XDEL s 1526919030474-55 => :1
        > DEBUG DIGEST-VALUE s missing
        [+e079b1e9ebeb6fa0a2512321383e28013a7da92d, +0000000000000000000000000000000000000000]
        DEBUG DIGEST => +182eb3f48d32de50cd21babfaf887be3a30c5f6a
        "#,
    );
}

#[test]
fn in_transactions_and_scripts() {
    check(
        r#"
        MULTI => +OK
        XADD s 1-1 a 1 => +QUEUED
        XADD s 1-1 a 1 => +QUEUED
        XGROUP CREATE s g 0 => +QUEUED
        XREADGROUP GROUP g c STREAMS s > => +QUEUED
        XACK s g 1-1 => +QUEUED
        XLEN s => +QUEUED
        > EXEC
        ["1-1", -"ERR The ID specified in XADD is equal or smaller than the target stream top item", +OK, [["s", [["1-1", ["a", "1"]]]]], :1, :1]
        EVAL "return redis.call('XADD', KEYS[1], '5-1', 'a', ARGV[1])" 1 s v => "5-1"
        EVAL "return redis.call('XRANGE', KEYS[1], '-', '+')" 1 s => [["1-1", ["a", "1"]], ["5-1", ["a", "v"]]]
        > EVAL "return redis.pcall('XADD', KEYS[1], '5-1', 'a', ARGV[1])" 1 s v
        -ERR The ID specified in XADD is equal or smaller than the target stream top item
        EVAL_RO "return redis.call('XLEN', KEYS[1])" 1 s => :2
        COMMAND GETKEYS XREAD COUNT 2 STREAMS a b 0 0 => ["a", "b"]
        COMMAND GETKEYS XREADGROUP GROUP streams c NOACK STREAMS a b > > => ["a", "b"]
        COMMAND GETKEYS XGROUP CREATE k g 0 => ["k"]
        COMMAND GETKEYS XADD k * a 1 => ["k"]
        "#,
    );
}
