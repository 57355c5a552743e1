//! Every command against a value of every type: a command that is meant for another type refuses, and changes nothing.

use wire::{Connection, Product, Reply, Session};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

/// How to make the key `k` of a type, and how to show its value.
struct Kind {
    name: &'static str,
    create: &'static str,
    show: &'static str,
}

const KINDS: &[Kind] = &[
    Kind { name: "string", create: "SET k 5", show: "GET k" },
    Kind { name: "hash", create: "HSET k f 5", show: "HGETALL k" },
    Kind { name: "list", create: "RPUSH k 5", show: "LRANGE k 0 -1" },
    Kind { name: "set", create: "SADD k 5", show: "SMEMBERS k" },
    Kind { name: "zset", create: "ZADD k 5 m", show: "ZRANGE k 0 -1 WITHSCORES" },
    Kind { name: "stream", create: "XADD k 5-1 f v", show: "XRANGE k - +" },
    Kind { name: "cell", create: "CELL.SET k 5", show: "CELL.HISTORY k" },
    Kind { name: "register", create: "REG.PUT k 1 5", show: "REG.GET k" },
    Kind { name: "run", create: "RUN.APPEND k 5 t d", show: "RUN.EVENTS k" },
];

const STRING_COMMANDS: &[&str] = &[
    "GET k",
    "GETSET k v",
    "GETDEL k",
    "GETEX k",
    "GETEX k PERSIST",
    "GETEX k EX 10",
    "SET k v GET",
    "SET k v NX GET",
    "SET k v XX GET",
    "SET k v EX 10 GET",
    "INCR k",
    "DECR k",
    "INCRBY k 1",
    "DECRBY k 1",
    "INCRBYFLOAT k 1.5",
    "APPEND k v",
    "STRLEN k",
    "GETRANGE k 0 -1",
    "SUBSTR k 0 -1",
    "SETRANGE k 0 v",
    "SETRANGE k 0 \"\"",
    "GETBIT k 0",
    "SETBIT k 0 1",
    "BITCOUNT k",
    "BITCOUNT k 0 -1",
    "BITPOS k 1",
    "BITPOS k 1 0 -1",
    "BITOP AND target k",
    "BITOP OR target nosuch k",
    "BITOP NOT target k",
    "BITFIELD k GET u8 0",
    "BITFIELD k SET u8 0 1",
    "BITFIELD k INCRBY u8 0 1",
    "BITFIELD_RO k GET u8 0",
];

/// Of strings, only some are HyperLogLogs.
const HYPERLOGLOG_COMMANDS: &[&str] = &[
    "PFADD k",
    "PFADD k a",
    "PFCOUNT k",
    "PFCOUNT nosuch k",
    "PFMERGE k",
    "PFMERGE target k",
    "PFDEBUG GETREG k",
    "PFDEBUG TODENSE k",
];

const HASH_COMMANDS: &[&str] = &[
    "HSET k f v",
    "HSETNX k f v",
    "HMSET k f v",
    "HGET k f",
    "HMGET k f g",
    "HGETALL k",
    "HKEYS k",
    "HVALS k",
    "HDEL k f",
    "HEXISTS k f",
    "HLEN k",
    "HSTRLEN k f",
    "HINCRBY k f 1",
    "HINCRBYFLOAT k f 1.5",
    "HSCAN k 0",
    "HRANDFIELD k",
    "HRANDFIELD k 1",
    "HRANDFIELD k -1 WITHVALUES",
];

const HASH_COMMANDS_7_4: &[&str] = &[
    "HSCAN k 0 NOVALUES",
    "HEXPIRE k 100 FIELDS 1 f",
    "HPEXPIRE k 100 FIELDS 1 f",
    "HEXPIREAT k 33177117420 FIELDS 1 f",
    "HPEXPIREAT k 33177117420123 FIELDS 1 f",
    "HTTL k FIELDS 1 f",
    "HPTTL k FIELDS 1 f",
    "HEXPIRETIME k FIELDS 1 f",
    "HPEXPIRETIME k FIELDS 1 f",
    "HPERSIST k FIELDS 1 f",
];

const STRING_COMMANDS_8_4: &[&str] =
    &["DIGEST k", "SET k v IFEQ w", "SET k v IFDEQ 0000000000000000", "SET k v IFDNE 0000000000000000"];

const HASH_COMMANDS_8_0: &[&str] =
    &["HGETEX k FIELDS 1 f", "HGETEX k EX 10 FIELDS 1 f", "HSETEX k FIELDS 1 f v", "HGETDEL k FIELDS 1 f"];

/// Those that only Holdfast has.
const HASH_COMMANDS_HOLDFAST: &[&str] = &[
    "HCAS k f 5 6",
    "HCAS k nosuch 5 6",
    "HCAS k IF 1 f 5 SET 1 f 6",
    "HCAS k ABSENT 1 f PX 100",
    "HCAS k DEL 1 f WITHCURRENT",
    "HPUT k FIELDS 1 f v",
    "HPUT k REPLACE PX 100 FIELDS 1 f v",
];

/// Commands that pass over what is no record, with the index `i` there, and their reply for any type but a hash.
const PASSED_OVER: &[(&str, &str)] = &[
    ("HFIND k", "[\"0\", []]"),
    ("HFIND k FILTER f ne 1 KEYS", "[\"0\", []]"),
    ("HFIND \"\" FILTER f eq 5", "[\"0\", []]"),
    ("ZCARD i", ":0"),
    ("IDX.RANGE i -inf +inf", "[]"),
    ("SWEEP i BEFORE 100 SET 1 f 9", "[]"),
    ("CLAIM 1 i SET 1 f 9", "[]"),
    ("IDX.CREATE k PREFIX 1 x FIELD f", "-ERR the name 'k' is taken by a key"),
    ("IDX.DROP k", ":0"),
    ("IDX.INFO k", "-ERR there is no index 'k'"),
    ("IDX.GROUPS k", "-ERR there is no index 'k'"),
    ("IDX.LIMIT k ALL PAUSE yes", "-ERR there is no index 'k'"),
    ("IDX.RANGE k 0 1", "-ERR there is no index 'k'"),
    ("SWEEP k BEFORE 100 SET 1 f 9", "-ERR there is no index 'k'"),
    ("CLAIM 1 k SET 1 f 9", "-ERR there is no index 'k'"),
];

const STREAM_COMMANDS: &[&str] = &[
    "XADD k * f v",
    "XADD k NOMKSTREAM * f v",
    "XLEN k",
    "XRANGE k - +",
    "XREVRANGE k + -",
    "XREAD STREAMS k 0",
    "XREAD BLOCK 0 STREAMS k $",
    "XDEL k 1-1",
    "XTRIM k MAXLEN 0",
    "XSETID k 9-9",
    "XGROUP CREATE k g 0",
    "XGROUP CREATE k g 0 MKSTREAM",
    "XGROUP SETID k g 0",
    "XGROUP DESTROY k g",
    "XGROUP CREATECONSUMER k g c",
    "XGROUP DELCONSUMER k g c",
    "XREADGROUP GROUP g c STREAMS k >",
    "XACK k g 1-1",
    "XPENDING k g",
    "XCLAIM k g c 0 1-1",
    "XAUTOCLAIM k g c 0 0",
    "XINFO STREAM k",
    "XINFO GROUPS k",
    "XINFO CONSUMERS k g",
];

const STREAM_COMMANDS_8_2: &[&str] = &["XDELEX k IDS 1 1-1", "XACKDEL k g IDS 1 1-1"];

const STREAM_COMMANDS_8_6: &[&str] = &["XADD k IDMP p i * f v", "XCFGSET k IDMP-DURATION 5"];

const STREAM_COMMANDS_8_8: &[&str] = &["XREADGROUP GROUP g c CLAIM 5 STREAMS k >", "XNACK k g FAIL IDS 1 1-1"];

const ZSET_COMMANDS: &[&str] = &[
    "ZADD k 1 m",
    "ZADD k XX 1 m",
    "ZADD k INCR 1 m",
    "ZINCRBY k 1 m",
    "ZREM k m",
    "ZCARD k",
    "ZSCORE k m",
    "ZMSCORE k m n",
    "ZRANK k m",
    "ZREVRANK k m",
    "ZCOUNT k -inf +inf",
    "ZLEXCOUNT k - +",
    "ZRANGE k 0 -1",
    "ZRANGE k 0 1 BYSCORE REV LIMIT 0 1",
    "ZRANGE k - + BYLEX",
    "ZREVRANGE k 0 -1 WITHSCORES",
    "ZRANGEBYSCORE k 0 1",
    "ZREVRANGEBYSCORE k 1 0",
    "ZRANGEBYLEX k - +",
    "ZREVRANGEBYLEX k + -",
    "ZRANGESTORE target k 0 -1",
    "ZREMRANGEBYRANK k 0 -1",
    "ZREMRANGEBYSCORE k -inf +inf",
    "ZREMRANGEBYLEX k - +",
    "ZPOPMIN k",
    "ZPOPMAX k 2",
    "ZMPOP 1 k MIN",
    "ZMPOP 2 nosuch k MAX COUNT 2",
    "BZPOPMIN k 0",
    "BZPOPMAX nosuch k 0",
    "BZMPOP 0 1 k MIN",
    "ZRANDMEMBER k",
    "ZRANDMEMBER k 1",
    "ZRANDMEMBER k -1 WITHSCORES",
    "ZSCAN k 0",
    "GEOADD k 1 1 m",
    "GEOADD k XX 1 1 m",
    "GEOPOS k m",
    "GEOHASH k m",
    "GEODIST k m m",
    "GEOSEARCH k FROMLONLAT 1 1 BYRADIUS 1 m",
    "GEOSEARCHSTORE target k FROMLONLAT 1 1 BYBOX 1 1 m",
    "GEORADIUS k 1 1 1 m",
    "GEORADIUS k 1 1 1 m STORE target",
    "GEORADIUS_RO k 1 1 1 m",
    "GEORADIUSBYMEMBER k m 1 m",
    "GEORADIUSBYMEMBER k m 1 m STOREDIST target",
    "GEORADIUSBYMEMBER_RO k m 1 m",
];

/// These take a set too, whose members then have the score 1.
const ZSET_OR_SET_COMMANDS: &[&str] = &[
    "ZUNION 1 k",
    "ZUNION 2 nosuch k WITHSCORES",
    "ZINTER 2 nosuch k",
    "ZDIFF 1 k",
    "ZDIFF 2 nosuch k",
    "ZINTERCARD 1 k",
    "ZUNIONSTORE target 1 k",
    "ZINTERSTORE target 2 nosuch k",
    "ZDIFFSTORE target 1 k",
];

const SET_COMMANDS: &[&str] = &[
    "SADD k m",
    "SREM k m",
    "SPOP k",
    "SPOP k 0",
    "SPOP k 2",
    "SMOVE k target m",
    "SMOVE k k m",
    "SISMEMBER k m",
    "SMISMEMBER k m n",
    "SCARD k",
    "SMEMBERS k",
    "SRANDMEMBER k",
    "SRANDMEMBER k 0",
    "SRANDMEMBER k -1",
    "SINTER k",
    "SINTER nosuch k",
    "SINTERCARD 1 k",
    "SINTERCARD 2 nosuch k LIMIT 1",
    "SINTERSTORE target k",
    "SINTERSTORE k nosuch k",
    "SUNION nosuch k",
    "SUNIONSTORE target nosuch k",
    "SDIFF k",
    "SDIFF nosuch k",
    "SDIFFSTORE target nosuch k",
    "SSCAN k 0",
];

const LIST_COMMANDS: &[&str] = &[
    "LPUSH k v",
    "RPUSH k v",
    "LPUSHX k v",
    "RPUSHX k v",
    "LPOP k",
    "RPOP k",
    "LPOP k 1",
    "RPOP k 0",
    "LLEN k",
    "LINDEX k 0",
    "LINSERT k BEFORE a b",
    "LSET k 0 v",
    "LRANGE k 0 -1",
    "LREM k 0 v",
    "LTRIM k 0 0",
    "LPOS k v",
    "LPOS k v COUNT 0",
    "LMOVE k other LEFT LEFT",
    "LMOVE k k LEFT RIGHT",
    "RPOPLPUSH k other",
    "LMPOP 1 k LEFT",
    "LMPOP 2 nosuch k RIGHT COUNT 2",
    "BLPOP k 0",
    "BRPOP nosuch k 0",
    "BLMOVE k other LEFT RIGHT 0",
    "BRPOPLPUSH k other 0",
    "BLMPOP 0 1 k LEFT",
];

/// Those that take a list, a set or a sorted set.
const SORT_COMMANDS: &[&str] = &["SORT k", "SORT k BY nosort", "SORT k STORE target", "SORT_RO k", "SORT_RO k GET #"];

const CELL_COMMANDS: &[&str] = &[
    "CELL.INIT k v",
    "CELL.GET k",
    "CELL.GETV k",
    "CELL.GETV k VERSION 1",
    "CELL.GETV k ASOF 1",
    "CELL.GETV k AFTER 0 BLOCK 0",
    "CELL.SET k v",
    "CELL.SET k v EX 10",
    "CELL.CAS k NONE v",
    "CELL.CAS k 1 v WITHCURRENT",
    "CELL.HISTORY k",
    "CELL.MGET k",
    "CELL.MGET nosuch k",
    "CELL.DEL k",
    "CELL.DEL k IF 1",
];

const REGISTER_COMMANDS: &[&str] = &[
    "REG.PUT k 1 v",
    "REG.PUT k 1 v ORDERED",
    "REG.PUT k 2 v ORDERED",
    "REG.INCRBY k 1 1",
    "REG.INCRBY k 5 1 ORDERED",
    "REG.SEAL k 2",
    "REG.GET k",
    "REG.MGET other k",
];

/// A session has a deadline of its own, so it is no kind here; what is refused of it is in `sessions`.
const SESSION_COMMANDS: &[&str] = &[
    "SESSION.OPEN ID k",
    "SESSION.ALIVE k",
    "SESSION.INFO k",
    "SESSION.CLOSE k",
    "SESSION.DETACH k",
    "SESSION.CALL k 1 LOW 1 SET other v",
    "SESSION.PUSH k v",
    "SESSION.PENDING k",
    "SESSION.PENDING k BLOCK 0",
    "SESSION.ACK k 1",
];

const RUN_COMMANDS: &[&str] = &[
    "RUN.APPEND k key type data",
    "RUN.APPEND k * type data STEP s",
    "RUN.APPEND k key type data IFLAST 0",
    "RUN.EVENTS k",
    "RUN.EVENTS k AFTER 0 BLOCK 0",
    "RUN.SNAPSHOT k",
    "RUN.PROJECT k",
    "RUN.PROJECT k UPTO 1",
    "RUN.INFO k",
];

/// Commands that take a key of any type, and their reply whatever the type.
const ANY_TYPE: &[(&str, &str)] = &[
    ("EXISTS k", ":1"),
    ("TOUCH k", ":1"),
    ("TTL k", ":-1"),
    ("PTTL k", ":-1"),
    ("EXPIRETIME k", ":-1"),
    ("PEXPIRETIME k", ":-1"),
    ("PERSIST k", ":0"),
    ("EXPIRE k 100", ":1"),
    ("PEXPIRE k 100000", ":1"),
    ("EXPIREAT k 33177117420", ":1"),
    ("PEXPIREAT k 33177117420123", ":1"),
    ("PERSIST k", ":1"),
    ("SETNX k v", ":0"),
    ("SET k v NX", "(nil)"),
    ("MSETNX k v other v", ":0"),
    ("KEYS k", "[\"k\"]"),
    ("RANDOMKEY", "\"k\""),
    ("COPY k copy", ":1"),
    ("COPY k copy", ":0"),
    ("RENAMENX k copy", ":0"),
    ("DEL copy", ":1"),
    ("RENAME k other", "+OK"),
    ("RENAMENX other k", ":1"),
    ("MOVE k 1", ":1"),
    ("EXISTS k", ":0"),
    ("SELECT 1", "+OK"),
    ("MOVE k 0", ":1"),
    ("SELECT 0", "+OK"),
];

/// Commands that replace a value of any type by a string.
const REPLACE: &[&str] =
    &["SET k v", "SET k v XX", "SET k v KEEPTTL", "SETEX k 100 v", "PSETEX k 100000 v", "MSET k v"];

/// The types that commands are meant for, and since which Redis there are these commands.
const FAMILIES: &[(&[&str], &str, &[&str])] = &[
    (&["string"], "7.0", STRING_COMMANDS),
    (&["string"], "8.4", STRING_COMMANDS_8_4),
    (&["string"], "8.8", &["INCREX k", "INCREX k BYFLOAT 1.5 EX 100"]),
    (&["string"], "7.0", HYPERLOGLOG_COMMANDS),
    (&["hash"], "7.0", HASH_COMMANDS),
    (&["hash"], "7.4", HASH_COMMANDS_7_4),
    (&["hash"], "8.0", HASH_COMMANDS_8_0),
    (&["list"], "7.0", LIST_COMMANDS),
    (&["set"], "7.0", SET_COMMANDS),
    (&["zset"], "7.0", ZSET_COMMANDS),
    (&["zset", "set"], "7.0", ZSET_OR_SET_COMMANDS),
    (&["list", "set", "zset"], "7.0", SORT_COMMANDS),
    (&["stream"], "7.0", STREAM_COMMANDS),
    (&["stream"], "8.2", STREAM_COMMANDS_8_2),
    (&["stream"], "8.6", STREAM_COMMANDS_8_6),
    (&["stream"], "8.8", STREAM_COMMANDS_8_8),
];

#[test]
fn commands_refuse_other_types() {
    let session = Session::start();
    for (own_kinds, since, commands) in FAMILIES {
        if session.has_redis(since) {
            refuse(&session, own_kinds, commands);
        }
    }
    if session.product() == Product::Holdfast {
        // Valkey has it.
        refuse(&session, &["string"], &["DELIFEQ k v"]);
        refuse_own(&session, &["hash"], HASH_COMMANDS_HOLDFAST);
    }
}

#[test]
fn indexes_and_searches_pass_over_other_types() {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        wire::skip("only Holdfast has indexes");
        return;
    }
    session.connect().run("IDX.CREATE i PREFIX 1 k FIELD f");
    for_each_kind(&session, |connection, kind| {
        if kind.name == "hash" {
            assert_eq!(connection.run("ZRANGE i 0 -1 WITHSCORES").to_string(), "[\"k\", \"5\"]");
            return;
        }
        let before = connection.run(kind.show);
        for (command, reply) in PASSED_OVER {
            assert_eq!(connection.run(command).to_string(), *reply, "{command} of a {}", kind.name);
        }
        assert_eq!(connection.run(kind.show), before, "a {} changed", kind.name);
        assert_eq!(connection.run("DBSIZE").integer(), 1);
    });
    assert_eq!(session.connect().run("IDX.DROP i").integer(), 1);
}

#[test]
fn cell_commands_refuse_other_types() {
    let session = Session::start();
    if session.product() == Product::Holdfast {
        refuse_own(&session, &["cell"], CELL_COMMANDS);
    }
}

#[test]
fn register_commands_refuse_other_types() {
    let session = Session::start();
    if session.product() == Product::Holdfast {
        refuse_own(&session, &["register"], REGISTER_COMMANDS);
    }
}

#[test]
fn session_commands_refuse_other_types() {
    let session = Session::start();
    if session.product() == Product::Holdfast {
        refuse_own(&session, &[], SESSION_COMMANDS);
    }
}

#[test]
fn run_commands_refuse_other_types() {
    let session = Session::start();
    if session.product() == Product::Holdfast {
        refuse_own(&session, &["run"], RUN_COMMANDS);
    }
}

#[test]
fn some_commands_take_any_type() {
    for_each_kind(&Session::start(), |connection, kind| {
        let before = connection.run(kind.show);
        assert_eq!(connection.run("TYPE k").to_string(), format!("+{}", kind.name));
        for (command, reply) in ANY_TYPE {
            assert_eq!(connection.run(command).to_string(), *reply, "{command} of a {}", kind.name);
        }
        assert_eq!(connection.run("TYPE k").to_string(), format!("+{}", kind.name));
        assert_eq!(connection.run(kind.show), before, "a {} changed", kind.name);
        assert_eq!(connection.run("UNLINK k").integer(), 1);
        assert_eq!(connection.run("TYPE k").to_string(), "+none");
    });
}

#[test]
fn a_plain_write_replaces_any_type_of_redis() {
    for_each_kind(&Session::start(), |connection, kind| {
        if ["cell", "register", "run"].contains(&kind.name) {
            // They are not replaced by the way: `replacing` has the tests.
            return;
        }
        for command in REPLACE {
            assert_eq!(connection.run(command).to_string(), "+OK", "{command} over a {}", kind.name);
            assert_eq!(connection.run("GET k").to_string(), "\"v\"", "{command} over a {}", kind.name);
            connection.run("DEL k");
            connection.run(kind.create);
        }
        for reply in [":1", ":1"] {
            assert_eq!(connection.run("COPY k copy REPLACE").to_string(), reply, "over a {}", kind.name);
        }
    });
}

#[test]
fn mget_and_lcs_have_their_own_answers() {
    for_each_kind(&Session::start(), |connection, kind| {
        if kind.name != "string" {
            assert_eq!(connection.run("MGET k").to_string(), "[(nil)]", "{}", kind.name);
            let lcs = connection.run("LCS k nosuch").to_string();
            assert_eq!(lcs, "-ERR The specified keys must contain string values", "{}", kind.name);
        }
    });
}

/// Runs commands meant for some types against a value of each of the others.
fn refuse(session: &Session, own_kinds: &[&str], commands: &[&str]) {
    refuse_with(session, own_kinds, commands, |_| WRONG_TYPE.to_owned());
}

/// The same for commands of our own, which say what type the key has.
fn refuse_own(session: &Session, own_kinds: &[&str], commands: &[&str]) {
    refuse_with(session, own_kinds, commands, |kind| format!("{WRONG_TYPE}: the key's type is {}", kind.name));
}

fn refuse_with(session: &Session, own_kinds: &[&str], commands: &[&str], expected: fn(&Kind) -> String) {
    for_each_kind(session, |connection, kind| {
        if own_kinds.contains(&kind.name) {
            return;
        }
        let before = connection.run(kind.show);
        for command in commands {
            assert_eq!(connection.run(command).to_string(), expected(kind), "{command} of a {}", kind.name);
        }
        assert_eq!(connection.run(kind.show), before, "a {} changed", kind.name);
        assert_eq!(connection.run("TTL k").integer(), -1, "a {} got a deadline", kind.name);
        assert_eq!(connection.run("DBSIZE").integer(), 1);
    });
}

/// Visits each type that the server has, with `k` the only key and of that type.
fn for_each_kind(session: &Session, mut visit: impl FnMut(&mut Connection, &Kind)) {
    let mut connection = session.connect();
    for kind in KINDS {
        connection.run("FLUSHALL");
        // Only a type the server lacks is passed over: any other error is for the test to stumble over.
        if matches!(connection.run(kind.create), Reply::Error(text) if text.starts_with(b"ERR unknown command")) {
            println!("this server has no {}", kind.name);
            continue;
        }
        visit(&mut connection, kind);
    }
}
