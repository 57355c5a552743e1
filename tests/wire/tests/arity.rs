//! The number of arguments of every command, counted as Redis does: the command's name is one of them.

use wire::{Product, Session};

/// How many arguments a command takes.
#[derive(Clone, Copy)]
enum Arity {
    Exactly(usize),
    AtLeast(usize),
}
use Arity::{AtLeast, Exactly};

const COMMANDS: &[(&str, Arity)] = &[
    ("append", Exactly(3)),
    ("asking", Exactly(1)),
    ("auth", AtLeast(2)),
    ("bgrewriteaof", Exactly(1)),
    ("bgsave", AtLeast(1)),
    ("bitcount", AtLeast(2)),
    ("bitfield", AtLeast(2)),
    ("bitfield_ro", AtLeast(2)),
    ("bitop", AtLeast(4)),
    ("bitpos", AtLeast(3)),
    ("blmove", Exactly(6)),
    ("blmpop", AtLeast(5)),
    ("blpop", AtLeast(3)),
    ("brpop", AtLeast(3)),
    ("brpoplpush", Exactly(4)),
    ("bzmpop", AtLeast(5)),
    ("bzpopmax", AtLeast(3)),
    ("bzpopmin", AtLeast(3)),
    ("client", AtLeast(2)),
    ("cluster", AtLeast(2)),
    ("command", AtLeast(1)),
    ("copy", AtLeast(3)),
    ("debug", AtLeast(2)),
    ("decr", Exactly(2)),
    ("decrby", Exactly(3)),
    ("del", AtLeast(2)),
    ("dump", Exactly(2)),
    ("echo", Exactly(2)),
    ("exists", AtLeast(2)),
    ("expire", AtLeast(3)),
    ("expireat", AtLeast(3)),
    ("expiretime", Exactly(2)),
    ("failover", AtLeast(1)),
    ("geoadd", AtLeast(5)),
    ("geodist", AtLeast(4)),
    ("geohash", AtLeast(2)),
    ("geopos", AtLeast(2)),
    ("georadius", AtLeast(6)),
    ("georadius_ro", AtLeast(6)),
    ("georadiusbymember", AtLeast(5)),
    ("georadiusbymember_ro", AtLeast(5)),
    ("geosearch", AtLeast(7)),
    ("geosearchstore", AtLeast(8)),
    ("get", Exactly(2)),
    ("getbit", Exactly(3)),
    ("getdel", Exactly(2)),
    ("getex", AtLeast(2)),
    ("getrange", Exactly(4)),
    ("getset", Exactly(3)),
    ("hdel", AtLeast(3)),
    ("hello", AtLeast(1)),
    ("hexists", Exactly(3)),
    ("hget", Exactly(3)),
    ("hgetall", Exactly(2)),
    ("hincrby", Exactly(4)),
    ("hincrbyfloat", Exactly(4)),
    ("hkeys", Exactly(2)),
    ("hlen", Exactly(2)),
    ("hmget", AtLeast(3)),
    ("hmset", AtLeast(4)),
    ("hrandfield", AtLeast(2)),
    ("hscan", AtLeast(3)),
    ("hset", AtLeast(4)),
    ("hsetnx", Exactly(4)),
    ("hstrlen", Exactly(3)),
    ("hvals", Exactly(2)),
    ("incr", Exactly(2)),
    ("incrby", Exactly(3)),
    ("incrbyfloat", Exactly(3)),
    ("keys", Exactly(2)),
    ("lastsave", Exactly(1)),
    ("lcs", AtLeast(3)),
    ("lindex", Exactly(3)),
    ("linsert", Exactly(5)),
    ("llen", Exactly(2)),
    ("lmove", Exactly(5)),
    ("lmpop", AtLeast(4)),
    ("lpop", AtLeast(2)),
    ("lpos", AtLeast(3)),
    ("lpush", AtLeast(3)),
    ("lpushx", AtLeast(3)),
    ("lrange", Exactly(4)),
    ("lrem", Exactly(4)),
    ("lset", Exactly(4)),
    ("ltrim", Exactly(4)),
    ("mget", AtLeast(2)),
    ("monitor", Exactly(1)),
    ("module", AtLeast(2)),
    ("move", Exactly(3)),
    ("mset", AtLeast(3)),
    ("msetnx", AtLeast(3)),
    ("object", AtLeast(2)),
    ("persist", Exactly(2)),
    ("pexpire", AtLeast(3)),
    ("pexpireat", AtLeast(3)),
    ("pexpiretime", Exactly(2)),
    ("pfadd", AtLeast(2)),
    ("pfcount", AtLeast(2)),
    ("pfdebug", Exactly(3)),
    ("pfmerge", AtLeast(2)),
    ("pfselftest", Exactly(1)),
    ("ping", AtLeast(1)),
    ("psetex", Exactly(4)),
    ("psync", AtLeast(3)),
    ("pttl", Exactly(2)),
    ("quit", AtLeast(1)),
    ("randomkey", Exactly(1)),
    ("readonly", Exactly(1)),
    ("readwrite", Exactly(1)),
    ("replconf", AtLeast(1)),
    ("replicaof", Exactly(3)),
    ("rename", Exactly(3)),
    ("renamenx", Exactly(3)),
    ("reset", Exactly(1)),
    ("restore", AtLeast(4)),
    ("rpop", AtLeast(2)),
    ("rpoplpush", Exactly(3)),
    ("rpush", AtLeast(3)),
    ("rpushx", AtLeast(3)),
    ("role", Exactly(1)),
    ("sadd", AtLeast(3)),
    ("save", Exactly(1)),
    ("scan", AtLeast(2)),
    ("scard", Exactly(2)),
    ("sdiff", AtLeast(2)),
    ("sdiffstore", AtLeast(3)),
    ("select", Exactly(2)),
    ("set", AtLeast(3)),
    ("setbit", Exactly(4)),
    ("setex", Exactly(4)),
    ("setnx", Exactly(3)),
    ("setrange", Exactly(4)),
    ("sinter", AtLeast(2)),
    ("sintercard", AtLeast(3)),
    ("sinterstore", AtLeast(3)),
    ("sismember", Exactly(3)),
    ("slaveof", Exactly(3)),
    ("smembers", Exactly(2)),
    ("smismember", AtLeast(3)),
    ("smove", Exactly(4)),
    ("sort", AtLeast(2)),
    ("sort_ro", AtLeast(2)),
    ("spop", AtLeast(2)),
    ("srandmember", AtLeast(2)),
    ("srem", AtLeast(3)),
    ("sscan", AtLeast(3)),
    ("strlen", Exactly(2)),
    ("substr", Exactly(4)),
    ("sunion", AtLeast(2)),
    ("sunionstore", AtLeast(3)),
    ("sync", Exactly(1)),
    ("time", Exactly(1)),
    ("touch", AtLeast(2)),
    ("ttl", Exactly(2)),
    ("type", Exactly(2)),
    ("unlink", AtLeast(2)),
    ("wait", Exactly(3)),
    ("xack", AtLeast(4)),
    ("xadd", AtLeast(5)),
    ("xautoclaim", AtLeast(6)),
    ("xclaim", AtLeast(6)),
    ("xdel", AtLeast(3)),
    ("xlen", Exactly(2)),
    ("xpending", AtLeast(3)),
    ("xrange", AtLeast(4)),
    ("xread", AtLeast(4)),
    ("xreadgroup", AtLeast(7)),
    ("xrevrange", AtLeast(4)),
    ("xsetid", AtLeast(3)),
    ("xtrim", AtLeast(4)),
    ("zadd", AtLeast(4)),
    ("zcard", Exactly(2)),
    ("zcount", Exactly(4)),
    ("zdiff", AtLeast(3)),
    ("zdiffstore", AtLeast(4)),
    ("zincrby", Exactly(4)),
    ("zinter", AtLeast(3)),
    ("zintercard", AtLeast(3)),
    ("zinterstore", AtLeast(4)),
    ("zlexcount", Exactly(4)),
    ("zmpop", AtLeast(4)),
    ("zmscore", AtLeast(3)),
    ("zpopmax", AtLeast(2)),
    ("zpopmin", AtLeast(2)),
    ("zrandmember", AtLeast(2)),
    ("zrange", AtLeast(4)),
    ("zrangebylex", AtLeast(4)),
    ("zrangebyscore", AtLeast(4)),
    ("zrangestore", AtLeast(5)),
    ("zrem", AtLeast(3)),
    ("zremrangebylex", Exactly(4)),
    ("zremrangebyrank", Exactly(4)),
    ("zremrangebyscore", Exactly(4)),
    ("zrevrange", AtLeast(4)),
    ("zrevrangebylex", AtLeast(4)),
    ("zrevrangebyscore", AtLeast(4)),
    ("zscan", AtLeast(3)),
    ("zscore", Exactly(3)),
    ("zunion", AtLeast(3)),
    ("zunionstore", AtLeast(4)),
];

const COMMANDS_7_2: &[(&str, Arity)] = &[("waitaof", Exactly(4)), ("zrank", AtLeast(3)), ("zrevrank", AtLeast(3))];

const COMMANDS_7_4: &[(&str, Arity)] = &[
    ("hexpire", AtLeast(6)),
    ("hexpireat", AtLeast(6)),
    ("hexpiretime", AtLeast(5)),
    ("hpersist", AtLeast(5)),
    ("hpexpire", AtLeast(6)),
    ("hpexpireat", AtLeast(6)),
    ("hpexpiretime", AtLeast(5)),
    ("hpttl", AtLeast(5)),
    ("httl", AtLeast(5)),
];

const COMMANDS_8_0: &[(&str, Arity)] = &[("hgetdel", AtLeast(5)), ("hgetex", AtLeast(5)), ("hsetex", AtLeast(6))];

const COMMANDS_8_2: &[(&str, Arity)] = &[("xackdel", AtLeast(6)), ("xdelex", AtLeast(5))];

const COMMANDS_8_4: &[(&str, Arity)] = &[("delex", AtLeast(2)), ("digest", Exactly(2)), ("msetex", AtLeast(4))];

const COMMANDS_8_6: &[(&str, Arity)] = &[("xcfgset", AtLeast(2))];

const COMMANDS_8_8: &[(&str, Arity)] = &[("increx", AtLeast(2)), ("xnack", AtLeast(7))];

/// Commands that Holdfast has from Valkey.
const COMMANDS_VALKEY: &[(&str, Arity)] = &[("delifeq", Exactly(3))];

/// Those that Redis does not have.
const COMMANDS_HOLDFAST: &[(&str, Arity)] = &[
    ("cell.cas", AtLeast(4)),
    ("cell.del", AtLeast(2)),
    ("cell.drop", Exactly(2)),
    ("cell.fork", Exactly(3)),
    ("cell.get", Exactly(2)),
    ("cell.getv", AtLeast(2)),
    ("cell.history", AtLeast(2)),
    ("cell.init", AtLeast(3)),
    ("cell.list", AtLeast(1)),
    ("cell.mget", AtLeast(2)),
    ("cell.set", AtLeast(3)),
    ("reg.get", Exactly(2)),
    ("reg.incrby", AtLeast(4)),
    ("reg.mget", AtLeast(2)),
    ("reg.put", AtLeast(4)),
    ("reg.restore", AtLeast(2)),
    ("reg.seal", Exactly(3)),
    ("reg.snapshot", AtLeast(1)),
    ("run.append", AtLeast(5)),
    ("run.events", AtLeast(2)),
    ("run.info", Exactly(2)),
    ("run.list", AtLeast(1)),
    ("run.project", AtLeast(2)),
    ("run.snapshot", Exactly(2)),
    ("session.ack", Exactly(3)),
    ("session.alive", Exactly(2)),
    ("session.attach", Exactly(2)),
    ("session.call", AtLeast(6)),
    ("session.close", Exactly(2)),
    ("session.detach", Exactly(2)),
    ("session.hasretry", Exactly(2)),
    ("session.hook", AtLeast(1)),
    ("session.info", Exactly(2)),
    ("session.list", AtLeast(1)),
    ("session.open", AtLeast(1)),
    ("session.pending", AtLeast(2)),
    ("session.push", Exactly(3)),
    ("session.retry", AtLeast(2)),
    ("claim", AtLeast(5)),
    ("hcas", AtLeast(4)),
    ("hfind", AtLeast(2)),
    ("hput", AtLeast(6)),
    ("idx.create", AtLeast(6)),
    ("idx.drop", Exactly(2)),
    ("idx.groups", AtLeast(2)),
    ("idx.info", Exactly(2)),
    ("idx.limit", AtLeast(2)),
    ("idx.list", Exactly(1)),
    ("idx.range", AtLeast(4)),
    ("sweep", AtLeast(7)),
    ("txn.begin", AtLeast(1)),
    ("txn.commit", Exactly(1)),
    ("txn.rollback", Exactly(1)),
];

#[test]
fn too_few_and_too_many_arguments_are_refused() {
    let session = Session::start();
    refuse(&session, COMMANDS);
    if session.has_redis("7.2") {
        refuse(&session, COMMANDS_7_2);
    }
    if session.has_redis("7.4") {
        refuse(&session, COMMANDS_7_4);
    }
    if session.has_redis("8.0") {
        refuse(&session, COMMANDS_8_0);
    }
    if session.has_redis("8.2") {
        refuse(&session, COMMANDS_8_2);
    }
    if session.has_redis("8.4") {
        refuse(&session, COMMANDS_8_4);
    }
    if session.has_redis("8.6") {
        refuse(&session, COMMANDS_8_6);
    }
    if session.has_redis("8.8") {
        refuse(&session, COMMANDS_8_8);
    }
    if session.product() == Product::Holdfast {
        refuse(&session, COMMANDS_VALKEY);
        refuse_own(&session, COMMANDS_HOLDFAST);
    }
}

#[test]
fn command_info_tells_the_same_numbers() {
    let session = Session::start();
    let mut connection = session.connect();
    let own = match session.product() {
        Product::Holdfast => [COMMANDS_HOLDFAST, COMMANDS_VALKEY].concat(),
        _ => Vec::new(),
    };
    for (name, arity) in COMMANDS.iter().chain(&own) {
        let info = connection.run(&format!("COMMAND INFO {name}"));
        let told = info.items()[0].items()[1].integer();
        let expected = match arity {
            Exactly(args) => *args as i64,
            AtLeast(args) => -(*args as i64),
        };
        assert_eq!(told, expected, "{name}");
    }
}

fn refuse(session: &Session, commands: &[(&str, Arity)]) {
    refuse_with(session, commands, |error, expected| error == expected);
}

/// The errors of our own commands go on with the usage.
fn refuse_own(session: &Session, commands: &[(&str, Arity)]) {
    refuse_with(session, commands, |error, expected| {
        let name = expected.split('\'').nth(1).unwrap().to_uppercase();
        let usage = error.strip_prefix(expected).and_then(|rest| rest.strip_prefix(". Usage: "));
        usage.is_some_and(|usage| usage == name || usage.starts_with(&format!("{name} ")))
    });
}

fn refuse_with(session: &Session, commands: &[(&str, Arity)], is_right: fn(&str, &str) -> bool) {
    let mut connection = session.connect();
    for (name, arity) in commands {
        let wrong = match arity {
            Exactly(args) => vec![args - 1, args + 1, args + 5],
            AtLeast(args) => vec![args - 1],
        };
        // The name is written in small letters in the error however the client wrote it.
        for spelling in [(*name).to_owned(), name.to_uppercase()] {
            for args in wrong.iter().filter(|args| **args > 0) {
                let mut request = vec![spelling.as_str()];
                request.resize(*args, "x");
                let expected = format!("-ERR wrong number of arguments for '{name}' command");
                let error = connection.run_args(&request).to_string();
                assert!(is_right(&error, &expected), "{request:?}: {error}");
            }
        }
    }
    assert_eq!(connection.run("DBSIZE").integer(), 0);
}
