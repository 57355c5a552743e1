//! An index as a key: what reads sorted sets reads it, nothing writes it, and it is not listed.

use wire::{Connection, Reply};

use crate::support::{check, start};

#[test]
fn what_reads_sorted_sets_reads_an_index() {
    check(
        r##"
        ! HSET r:1 n 5
        ! HSET r:2 n 2
        ! HSET r:3 n 3
        ! IDX.CREATE i PREFIX 1 r: FIELD n
        ZRANGE i 0 -1 WITHSCORES => ["r:2", "2", "r:3", "3", "r:1", "5"]
        ZRANGE i -2 -1 => ["r:3", "r:1"]
        ZRANGE i 5 9 => []
        ZRANGE i 2 5 BYSCORE => ["r:2", "r:3", "r:1"]
        ZRANGE i (5 -inf BYSCORE REV LIMIT 0 5 => ["r:3", "r:2"]
        ZREVRANGE i 0 0 => ["r:1"]
        ZRANGEBYSCORE i (2 +inf WITHSCORES LIMIT 0 1 => ["r:3", "3"]
        ZREVRANGEBYSCORE i +inf -inf => ["r:1", "r:3", "r:2"]
        ZCOUNT i 2 (5 => :2
        ZCARD i => :3
        ZSCORE i r:1 => "5"
        ZSCORE i nosuch => (nil)
        ZMSCORE i r:1 nosuch r:2 => ["5", (nil), "2"]
        ZRANK i r:1 => :2
        ZREVRANK i r:1 => :0
        ZRANK i nosuch => (nil)
        ZSCAN i 0 MATCH *2 => ["0", ["r:2", "2"]]
        ZRANDMEMBER i 0 => []
        ZINTERCARD 2 i i => :3
        ! ZADD z 10 r:1 20 x
        ZUNION 2 i z WITHSCORES => ["r:2", "2", "r:3", "3", "r:1", "15", "x", "20"]
        ZINTER 2 i z WITHSCORES => ["r:1", "15"]
        ZDIFF 2 i z => ["r:2", "r:3"]
        ZDIFF 2 z i WITHSCORES => ["x", "20"]
        // A copy is a sorted set like any other.
        ZUNIONSTORE d 2 i z WEIGHTS 2 1 AGGREGATE MAX => :4
        ZRANGE d 0 -1 WITHSCORES => ["r:2", "4", "r:3", "6", "r:1", "10", "x", "20"]
        ZINTERSTORE d 2 z i => :1
        ZRANGE d 0 -1 WITHSCORES => ["r:1", "15"]
        ZDIFFSTORE d 2 i z => :2
        ZRANGE d 0 -1 WITHSCORES => ["r:2", "2", "r:3", "3"]
        > ZRANGESTORE d i 0 -1
        :3
        ! ZADD d 7 other
        ZRANGE d 0 -1 WITHSCORES => ["r:2", "2", "r:3", "3", "r:1", "5", "other", "7"]
        > ZRANGE i 0 -1 WITHSCORES
        ["r:2", "2", "r:3", "3", "r:1", "5"]
        ! MULTI
        ! HSET r:4 n 4
        ! ZRANGE i 0 -1
        EXEC => [:1, ["r:2", "r:3", "r:4", "r:1"]]
        > EVAL "redis.call('DEL', 'r:4') return redis.call('ZRANGE', KEYS[1], 0, -1)" 1 i
        ["r:2", "r:3", "r:1"]
        ! HELLO 3
        ZRANGE i 0 -1 WITHSCORES => [["r:2", ,2], ["r:3", ,3], ["r:1", ,5]]
        > ZSCORE i r:1
        ,5
        ! SELECT 1
        ZRANGE i 0 -1 => []
        ZCARD i => :0
        "##,
    );
}

#[test]
fn an_index_is_not_listed() {
    check(
        r##"
        ! IDX.CREATE i PREFIX 1 r: FIELD n
        ! HSET r:1 n 1
        KEYS * => ["r:1"]
        KEYS i => []
        SCAN 0 => ["0", ["r:1"]]
        SCAN 0 TYPE zset => ["0", []]
        DBSIZE => :1
        RANDOMKEY => "r:1"
        // For every command that asks about a key it is a sorted set without a TTL.
        EXISTS i => :1
        TYPE i => +zset
        TTL i => :-1
        PTTL i => :-1
        EXPIRETIME i => :-1
        OBJECT ENCODING i => "skiplist"
        OBJECT REFCOUNT i => :1
        OBJECT IDLETIME i => :0
        MEMORY USAGE i => :0..
        TOUCH i nosuch => :1
        MGET i => [(nil)]
        GET i => -WRONGTYPE Operation against a key holding the wrong kind of value
        HGETALL i => -WRONGTYPE Operation against a key holding the wrong kind of value
        ! DEL r:1
        DBSIZE => :0
        RANDOMKEY => (nil)
        ! FLUSHALL
        IDX.LIST => ["i"]
        // No effect tells of an index: whoever wants to know has to watch the records.
        > WATCH i
        -ERR 'i' is an index: it changes with its records, and no command changes or watches it
        2! HSET r:1 n 2
        ! MULTI
        ! ZRANGE i 0 -1
        > EXEC
        [["r:1"]]
        "##,
    );
}

/// Those whose other keys are only read.
const READ_THE_REST: [&str; 6] =
    ["zrangestore", "zunionstore", "zinterstore", "zdiffstore", "geosearchstore", "pfmerge"];
/// Those whose key at a fixed place is only read; where others are stored follows a word.
const READ_THE_FIRST: [&str; 3] = ["georadius", "georadiusbymember", "sort"];

#[test]
fn no_command_writes_an_index() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.pipeline(&["IDX.CREATE i PREFIX 1 r: FIELD n", "HSET r:1 n 1", "HSET r:2 n 2"]);
    let before = state(&mut connection);
    let mut tried = 0;
    for command in connection.run("COMMAND").items() {
        let [name, arity, flags, first, last, step, ..] = command.items() else { panic!("{command}") };
        let has =
            |flag: &str| flags.items().iter().any(|one| matches!(one, Reply::Simple(text) if text == flag.as_bytes()));
        let (arity, first, last, step) = (arity.integer(), first.integer(), last.integer(), step.integer());
        if !has("write") || first == 0 {
            continue;
        }
        let count = arity.unsigned_abs() as usize;
        let last = if last < 0 { count as i64 + last } else { last }.max(first);
        for position in (first..=last).step_by(step as usize) {
            let position = position as usize;
            if position > 1 && READ_THE_REST.contains(&name.text()) || READ_THE_FIRST.contains(&name.text()) {
                continue;
            }
            let mut request = vec![name.text(); count.max(position + 1)];
            request[1..].fill("1");
            request[position] = "i";
            refuse(&mut connection, &request);
            tried += 1;
        }
    }
    assert!(tried >= 60, "COMMAND told only of {tried}");
    // Those that make a key of what they are given, with arguments that would do.
    let dump = connection.run("DUMP r:1").bytes().to_vec();
    let writes = "SET i x; SET i x NX GET; MSET other x i y; MSETNX other x i y; APPEND i x; HSET i n 1; \
        HPUT i FIELDS 1 n 1; HCAS i SET 1 n 1; ZADD i 1 r:3; ZADD i XX 1 r:1; ZINCRBY i 1 r:1; XADD i * f v; \
        XDEL i 1-1; XTRIM i MAXLEN 0; XSETID i 1-1; XGROUP CREATE i g 0 MKSTREAM; XACK i g 1-1; \
        XREADGROUP GROUP g c STREAMS i >; XCLAIM i g c 0 1-1; XAUTOCLAIM i g c 0 0; ZREM i r:1; ZREM i nosuch; \
        ZPOPMIN i; ZPOPMAX i 2; ZMPOP 1 i MIN; ZMPOP 2 nosuch i MAX COUNT 5; ZREMRANGEBYSCORE i -inf +inf; \
        ZREMRANGEBYRANK i 0 -1; ZREMRANGEBYLEX i - +; ZUNIONSTORE i 1 i; ZINTERSTORE i 1 i; ZDIFFSTORE i 1 i; \
        ZRANGESTORE i i 0 -1; SORT r:l STORE i; SORT i BY w_* STORE i; PFADD i a; PFMERGE i; PFDEBUG TODENSE i; \
        GEOADD i 1 1 r:3; GEOSEARCHSTORE i i FROMLONLAT 1 1 BYRADIUS 1 m; GEORADIUS i 1 1 1 m STORE i; \
        GEORADIUSBYMEMBER i r:1 1 m STOREDIST i; RENAME r:1 i; RENAMENX r:1 i; RENAME i other; COPY r:1 i; \
        COPY r:1 i DB 3 REPLACE; COPY i other; MOVE i 1; DEL i; DEL r:1 i; UNLINK i r:1; GETDEL i; \
        GETEX i PERSIST; EXPIRE i 100; PERSIST i; BITOP NOT i other";
    let scripts = [
        "EVAL \"return redis.call('SET', KEYS[1], 'x')\" 1 i",
        "EVAL \"return redis.call('ZADD', 'i', 1, 'x')\" 0",
        "EVAL \"return redis.call('ZADD', ARGV[1], 1, 'x')\" 1 r:1 i",
    ];
    for line in writes.split("; ").chain(scripts) {
        refuse(&mut connection, &wire::split_args(line).expect("plain words"));
    }
    let mut restore: Vec<&[u8]> = vec![b"RESTORE", b"i", b"0", &dump];
    refuse(&mut connection, &restore);
    restore.push(b"REPLACE");
    refuse(&mut connection, &restore);
    for reply in connection.pipeline(&["MULTI", "ZADD i 1 r:3", "SET i x", "EXEC"])[3].items() {
        assert!(reply.to_string().contains("is an index"), "{reply}");
    }
    assert_eq!(state(&mut connection), before);
    // Nor in a database where it has no records.
    connection.run("SELECT 7");
    refuse(&mut connection, &["SET", "i", "x"]);
    refuse(&mut connection, &["ZADD", "i", "1", "x"]);
    connection.run("HSET r:7 n 7");
    refuse(&mut connection, &["RENAME", "r:7", "i"]);
    assert_eq!(connection.run("KEYS *").to_string(), "[\"r:7\"]");
    assert_eq!(connection.run("ZRANGE i 0 -1").to_string(), "[\"r:7\"]");
}

#[track_caller]
fn refuse(connection: &mut Connection, request: &[impl AsRef<[u8]>]) {
    let reply = connection.run_args(request);
    let shown: Vec<_> = request.iter().map(|arg| String::from_utf8_lossy(arg.as_ref()).into_owned()).collect();
    let expected = "-ERR 'i' is an index: it changes with its records, and no command changes or watches it";
    assert!(reply.to_string().starts_with(expected), "{shown:?}: {reply}");
}

/// Everything that a command could have spoilt.
fn state(connection: &mut Connection) -> String {
    let lines =
        ["ZRANGE i 0 -1 WITHSCORES", "DBSIZE", "HGETALL r:1", "HGETALL r:2", "PTTL r:1", "IDX.LIST", "EXISTS other 1"];
    connection.pipeline(&lines).iter().map(Reply::to_string).collect::<Vec<_>>().join("\n")
}

/// Names of the sets that are made of an index stay usable after it has gone.
#[test]
fn a_key_may_have_the_name_of_an_index_that_was() {
    check(
        r##"
        // For those who watch a name, an index that comes is a key that comes.
        ! WATCH i
        2! IDX.CREATE i PREFIX 1 r: FIELD n
        ! MULTI
        ! EXISTS i
        EXEC => (nil array)
        ! HSET r:1 n 1
        > ZRANGESTORE kept i 0 -1
        :1
        ! IDX.DROP i
        ! RENAME kept i
        ! ZADD i 2 x
        ! HSET r:2 n 2
        ZRANGE i 0 -1 WITHSCORES => ["r:1", "1", "x", "2"]
        KEYS i => ["i"]
        "##,
    );
}
