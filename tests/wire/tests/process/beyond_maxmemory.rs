//! Every command of the server beyond `maxmemory`: those that would take more memory are refused, and the others run and take none.

use std::collections::BTreeSet;

use wire::{Connection, Reply};

use crate::support::{Holdfast, eventually, ok};

/// The length of a name or a value in a request: what is kept of it is seen.
const LONG: usize = 20_000;
/// How often each request is sent.
const TIMES: usize = 16;
/// What may come and go while that is done, beside what is kept.
const NOISE_BYTES: u64 = 128 * 1024;
/// How often that is done at most, in case that more has come or gone.
const MEASUREMENTS_MAX: usize = 5;

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// -OOM; where there is memory, it is executed and takes some.
    Refused,
    /// -OOM; where there is memory, it takes none of note as it is written here.
    RefusedSmall,
    /// It is executed, and takes none.
    Runs,
    /// It is executed, and may take some, as in Redis.
    Grows,
}
use Outcome::{Grows, Refused, RefusedSmall, Runs};

/// Requests that would take memory, by command. `$n` is a long name and `$v` a long value, other ones each time; `$i` counts.
const REQUESTS: &[(&str, Outcome, &str)] = &[
    ("append", Refused, "APPEND text $v"),
    ("bitfield", Refused, "BITFIELD $n SET u8 0 1"),
    ("bitop", Refused, "BITOP NOT $n text"),
    ("blmove", Refused, "BLMOVE list $n LEFT LEFT 0"),
    ("blmpop", Runs, "BLMPOP 0.001 1 $n LEFT"),
    ("blpop", Runs, "BLPOP $n 0.001"),
    ("brpop", Runs, "BRPOP $n 0.001"),
    ("brpoplpush", Refused, "BRPOPLPUSH list $n 0"),
    ("bzmpop", Runs, "BZMPOP 0.001 1 $n MIN"),
    ("bzpopmax", Runs, "BZPOPMAX $n 0.001"),
    ("bzpopmin", Runs, "BZPOPMIN $n 0.001"),
    ("cell.cas", Refused, "CELL.CAS cell:$i NONE $v"),
    ("cell.del", Runs, "CELL.DEL $n"),
    ("cell.drop", Runs, "CELL.DROP $n:"),
    ("cell.fork", Refused, "CELL.FORK cells: fork:$i:"),
    ("cell.init", Refused, "CELL.INIT cell:init:$i $v"),
    ("cell.set", Refused, "CELL.SET cell:set:$i $v"),
    ("claim", Refused, "CLAIM 1 index SET 1 $n v"),
    ("copy", Refused, "COPY text $n"),
    ("decr", Refused, "DECR $n"),
    ("decrby", Refused, "DECRBY $n 2"),
    ("del", Runs, "DEL $n"),
    ("delex", Runs, "DELEX $n IFNE v"),
    ("delifeq", Runs, "DELIFEQ $n v"),
    ("eval", Refused, "EVAL \"return redis.call('SET', KEYS[1], 'v')\" 1 $n"),
    ("evalsha", Refused, "EVALSHA $sha 1 $n"),
    ("expire", Runs, "EXPIRE text 100000"),
    ("expireat", Runs, "EXPIREAT text 99999999999"),
    ("fcall", Refused, "FCALL writes 1 $n"),
    ("function|delete", Runs, "FUNCTION DELETE $n"),
    (
        "function|load",
        Refused,
        "FUNCTION LOAD \"#!lua name=l$i\\nlocal a = '$v' redis.register_function('f$i', function() return a end)\"",
    ),
    ("function|restore", RefusedSmall, "FUNCTION RESTORE $libraries REPLACE"),
    ("geoadd", Refused, "GEOADD $n 1 1 m"),
    ("georadius", Refused, "GEORADIUS places 1 1 100 km STORE $n"),
    ("georadiusbymember", Refused, "GEORADIUSBYMEMBER places m 100 km STORE $n"),
    ("geosearchstore", Refused, "GEOSEARCHSTORE $n places FROMMEMBER m BYRADIUS 100 km"),
    ("getdel", Runs, "GETDEL $n"),
    ("getex", Runs, "GETEX text EX 100000"),
    ("getset", Refused, "GETSET $n v"),
    ("hcas", Refused, "HCAS hash ABSENT 1 $n SET 1 $n v"),
    ("hdel", Runs, "HDEL hash $n"),
    ("hexpire", Runs, "HEXPIRE hash 100000 FIELDS 1 f"),
    ("hexpireat", Runs, "HEXPIREAT hash 99999999999 FIELDS 1 f"),
    ("hgetdel", Runs, "HGETDEL hash FIELDS 1 $n"),
    ("hgetex", Runs, "HGETEX hash EX 100000 FIELDS 1 f"),
    ("hincrby", Refused, "HINCRBY hash $n 1"),
    ("hincrbyfloat", Refused, "HINCRBYFLOAT hash $n 1.5"),
    ("hmset", Refused, "HMSET hash $n v"),
    ("hpersist", Runs, "HPERSIST hash FIELDS 1 f"),
    ("hpexpire", Runs, "HPEXPIRE hash 100000000 FIELDS 1 f"),
    ("hpexpireat", Runs, "HPEXPIREAT hash 99999999999000 FIELDS 1 f"),
    ("hput", Refused, "HPUT $n FIELDS 1 f v"),
    ("hset", Refused, "HSET hash $n v"),
    ("hsetex", Refused, "HSETEX hash FIELDS 1 $n v"),
    ("hsetnx", Refused, "HSETNX hash $n v"),
    ("idx.drop", Runs, "IDX.DROP $n"),
    ("idx.limit", RefusedSmall, "IDX.LIMIT index ALL PAUSE no"),
    ("incr", Refused, "INCR $n"),
    ("incrby", Refused, "INCRBY $n 2"),
    ("incrbyfloat", Refused, "INCRBYFLOAT $n 1.5"),
    ("increx", Refused, "INCREX $n BYINT 2 EX 100000"),
    ("linsert", Refused, "LINSERT list BEFORE e $v"),
    ("lmove", Refused, "LMOVE list $n LEFT LEFT"),
    ("lmpop", Runs, "LMPOP 1 $n LEFT"),
    ("lpop", Runs, "LPOP $n"),
    ("lpush", Refused, "LPUSH list $v"),
    ("lpushx", Refused, "LPUSHX list $v"),
    ("lrem", Runs, "LREM list 1 $v"),
    ("lset", Refused, "LSET places-of-a-list $i $v"),
    ("ltrim", Runs, "LTRIM $n 0 1"),
    ("move", Runs, "MOVE $n 5"),
    ("mset", Refused, "MSET $n v"),
    ("msetex", Refused, "MSETEX 1 $n v EX 100000"),
    ("msetnx", Refused, "MSETNX $n v"),
    ("persist", Runs, "PERSIST text"),
    ("pexpire", Runs, "PEXPIRE text 100000000"),
    ("pexpireat", Runs, "PEXPIREAT text 99999999999000"),
    ("pfadd", Refused, "PFADD $n v"),
    ("pfdebug", RefusedSmall, "PFDEBUG GETREG counts"),
    ("pfmerge", Refused, "PFMERGE $n counts"),
    ("psetex", Refused, "PSETEX $n 100000 v"),
    ("reg.incrby", Refused, "REG.INCRBY $n 1 1"),
    ("reg.put", Refused, "REG.PUT $n 1 v"),
    ("reg.restore", RefusedSmall, "REG.RESTORE FROM registers"),
    ("reg.seal", Refused, "REG.SEAL $n 5"),
    ("reg.snapshot", Runs, "REG.SNAPSHOT"),
    ("reg.snapshot", Runs, "REG.SNAPSHOT PREFIX STORE POSITION STORE"),
    ("reg.snapshot", Refused, "REG.SNAPSHOT STORE $n"),
    ("rename", Grows, "RENAME text text"),
    ("renamenx", Grows, "RENAMENX text text"),
    ("restore", Refused, "RESTORE $n 0 $payload"),
    ("rpop", Runs, "RPOP $n"),
    ("rpoplpush", Refused, "RPOPLPUSH list $n"),
    ("rpush", Refused, "RPUSH list $v"),
    ("rpushx", Refused, "RPUSHX list $v"),
    ("run.append", Refused, "RUN.APPEND $n k RunStarted v"),
    ("sadd", Refused, "SADD set $v"),
    ("script|load", Grows, "SCRIPT LOAD \"return '$v'\""),
    ("sdiffstore", Refused, "SDIFFSTORE $n set"),
    ("session.ack", Runs, "SESSION.ACK session 1000000"),
    ("session.attach", Grows, "SESSION.ATTACH session"),
    ("session.call", Refused, "SESSION.CALL session $i LOW 1 GET long"),
    ("session.call", Refused, "SESSION.CALL session 1$i LOW 1 SET $n v"),
    ("session.call", Refused, "SESSION.CALL session 2$i LOW 1 GETEX long PERSIST"),
    ("session.call", Refused, "SESSION.CALL session 3$i LOW 1 EVAL \"return redis.call('GET', KEYS[1])\" 1 long"),
    ("session.call", Runs, "SESSION.CALL session 4$i LOW 1 DEL $n"),
    ("session.close", Runs, "SESSION.CLOSE $n"),
    ("session.hook", Runs, "SESSION.HOOK"),
    ("session.open", Refused, "SESSION.OPEN ID $n"),
    ("session.push", Refused, "SESSION.PUSH session $v"),
    ("session.retry", Runs, "SESSION.RETRY 99999999999999"),
    ("set", Refused, "SET $n v"),
    ("setbit", Refused, "SETBIT $n 1 1"),
    ("setex", Refused, "SETEX $n 1000 v"),
    ("setnx", Refused, "SETNX $n v"),
    ("setrange", Refused, "SETRANGE $n 1 v"),
    ("sinterstore", Refused, "SINTERSTORE $n set"),
    ("smove", Grows, "SMOVE set other-set $n"),
    ("sort", Refused, "SORT list ALPHA LIMIT 0 1 STORE $n"),
    ("spop", Runs, "SPOP $n"),
    ("srem", Runs, "SREM set $n"),
    ("sunionstore", Refused, "SUNIONSTORE $n set"),
    ("swapdb", Runs, "SWAPDB 7 8"),
    ("sweep", Refused, "SWEEP index BEFORE 1000 SET 1 $n v"),
    ("unlink", Runs, "UNLINK $n"),
    ("xack", Runs, "XACK stream group 1-1"),
    ("xackdel", Runs, "XACKDEL stream group DELREF IDS 1 1-1"),
    ("xadd", Refused, "XADD stream * f $v"),
    ("xautoclaim", Grows, "XAUTOCLAIM stream group consumer 0 0"),
    ("xcfgset", Runs, "XCFGSET stream IDMP-DURATION 9"),
    ("xclaim", Grows, "XCLAIM stream group consumer 0 1-1"),
    ("xdel", Runs, "XDEL stream 1-2"),
    ("xdelex", Runs, "XDELEX stream IDS 1 1-2"),
    ("xgroup|create", Refused, "XGROUP CREATE stream $n 0"),
    ("xgroup|createconsumer", Refused, "XGROUP CREATECONSUMER stream group $n"),
    ("xgroup|delconsumer", Runs, "XGROUP DELCONSUMER stream group $n"),
    ("xgroup|destroy", Runs, "XGROUP DESTROY stream $n"),
    ("xgroup|setid", Runs, "XGROUP SETID stream group 0"),
    ("xnack", Runs, "XNACK stream group FAIL IDS 1 1-1"),
    ("xreadgroup", Grows, "XREADGROUP GROUP group consumer COUNT 1 STREAMS stream >"),
    ("xsetid", RefusedSmall, "XSETID stream 99999999999999-1"),
    ("xtrim", Runs, "XTRIM stream MAXLEN 1000"),
    ("zadd", Refused, "ZADD sorted 1 $v"),
    ("zdiffstore", Refused, "ZDIFFSTORE $n 1 sorted"),
    ("zincrby", Refused, "ZINCRBY sorted 1 $v"),
    ("zinterstore", Refused, "ZINTERSTORE $n 1 sorted"),
    ("zmpop", Runs, "ZMPOP 1 $n MIN"),
    ("zpopmax", Runs, "ZPOPMAX $n"),
    ("zpopmin", Runs, "ZPOPMIN $n"),
    ("zrangestore", Refused, "ZRANGESTORE $n sorted 0 0"),
    ("zrem", Runs, "ZREM sorted $n"),
    ("zremrangebylex", Runs, "ZREMRANGEBYLEX $n - +"),
    ("zremrangebyrank", Runs, "ZREMRANGEBYRANK $n 0 1"),
    ("zremrangebyscore", Runs, "ZREMRANGEBYSCORE $n 0 1"),
    ("zunionstore", Refused, "ZUNIONSTORE $n 1 sorted"),
    // An index makes every write do more, and there may be few: last.
    ("idx.create", Refused, "IDX.CREATE $n PREFIX 1 $n FIELD f"),
    ("function|flush", Runs, "FUNCTION FLUSH"),
    ("flushdb", Runs, "FLUSHDB"),
    ("flushall", Runs, "FLUSHALL"),
];

/// Commands that change neither keys nor definitions. What a client is sent or subscribes to is the client's memory, which other limits
/// bound; DEBUG is for tests.
const NOT_ABOUT_DATA: &str = "\
    acl asking auth bgrewriteaof bgsave client cluster command config debug discard echo exec failover \
    function|dump function|help function|kill function|list function|stats hello hotkeys idx.list info lastsave \
    latency memory module monitor multi object|help pfselftest ping psubscribe psync publish pubsub punsubscribe \
    quit readonly readwrite replconf replicaof reset role save script|debug script|exists script|flush \
    script|help script|kill select shutdown slaveof slowlog spublish ssubscribe subscribe sunsubscribe sync time \
    txn.begin txn.commit txn.rollback unsubscribe unwatch wait waitaof watch xgroup|help xinfo|help";

/// What the requests find.
const DATA: &[&str] = &[
    "SET text t",
    "HSET hash f v",
    "SADD set m",
    "ZADD sorted 1 m",
    "GEOADD places 1 1 m",
    "PFADD counts a",
    "XADD stream 1-1 f v",
    "XADD stream 1-2 f v",
    "XGROUP CREATE stream group 0",
    "REG.PUT register 1 v",
    "REG.SNAPSHOT STORE registers",
    "SESSION.OPEN ID session TTL 100000000",
    "HSET record:1 f 5",
    "FUNCTION LOAD \"#!lua name=lib\\nredis.register_function('writes', function(keys) return redis.call('SET', keys[1], 'v') end)\"",
];

struct World {
    server: Holdfast,
    admin: Connection,
    sha: Vec<u8>,
    payload: Vec<u8>,
    libraries: Vec<u8>,
    count: usize,
}

impl World {
    fn start() -> Option<World> {
        let server = Holdfast::start(&["--appendonly", "no", "--session-cache-max-bytes", "100mb"])?;
        let mut admin = server.connect();
        for line in DATA {
            let reply = admin.run(line);
            assert!(!reply.is_error(), "{line}: {reply}");
        }
        for list in ["list", "places-of-a-list"] {
            assert!(!admin.run(&format!("RPUSH {list} {}", "e ".repeat(800))).is_error());
        }
        ok(&mut admin, &format!("SET long {}", "v".repeat(LONG)));
        assert_eq!(admin.run(&format!("CELL.SET cells:1 {}", "v".repeat(LONG))).integer(), 1);
        ok(&mut admin, "IDX.CREATE index PREFIX 1 record: FIELD f");
        eventually("the index is full", || !admin.run("IDX.RANGE index 0 10").is_error());
        let sha = admin.run("SCRIPT LOAD \"return redis.call('SET', KEYS[1], 'v')\"").bytes().to_vec();
        let payload = admin.run("DUMP text").bytes().to_vec();
        let libraries = admin.run("FUNCTION DUMP").bytes().to_vec();
        Some(World { server, admin, sha, payload, libraries, count: 0 })
    }

    /// Sends a request many times. Says which reply is wrong, or how much memory it takes if that is wrong however often it is
    /// measured: the server does other things too.
    fn check(
        &mut self,
        request: &str,
        is_right: impl Fn(&Reply) -> bool,
        may_grow_by: impl Fn(u64) -> bool,
    ) -> Option<String> {
        let mut grown = 0;
        for _ in 0..MEASUREMENTS_MAX {
            let replies;
            (replies, grown) = self.repeat(request);
            if let Some(wrong) = replies.iter().find(|reply| !is_right(reply)) {
                return Some(format!("a reply is {}", wrong.excerpt()));
            }
            if may_grow_by(grown) {
                return None;
            }
        }
        Some(format!("it takes {grown} bytes"))
    }

    /// Sends a request many times, and returns the replies, and by how much the server has grown.
    fn repeat(&mut self, request: &str) -> (Vec<Reply>, u64) {
        // What an earlier connection had is freed after it has gone, on a busy machine a little later.
        eventually("nothing is left of the last client", || {
            self.figure("connected_clients") == 1 && self.figure("lazyfree_pending_objects") == 0
        });
        let mut client = self.server.connect();
        if request.starts_with("SESSION.ATTACH") {
            assert!(!client.run("HELLO 3").is_error());
        }
        // What a first request needs for itself, such as a Lua state, is there.
        let _ = client.run_args(&self.request(request));
        let before = self.figure("used_memory");
        let replies = (0..TIMES).map(|_| client.run_args(&self.request(request))).collect();
        (replies, self.figure("used_memory").saturating_sub(before))
    }

    fn figure(&mut self, name: &str) -> u64 {
        let info = self.admin.run("INFO clients memory");
        let value = info.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.parse().ok());
        value.expect("INFO has it")
    }

    fn request(&mut self, request: &str) -> Vec<Vec<u8>> {
        self.count += 1;
        let number = self.count;
        let long = |letter: &str| format!("{letter}{number}:{}", letter.repeat(LONG));
        let filled_in = |word: Vec<u8>| match &word[..] {
            b"$sha" => self.sha.clone(),
            b"$payload" => self.payload.clone(),
            b"$libraries" => self.libraries.clone(),
            _ => {
                let word = String::from_utf8(word).expect("requests are text");
                let word = word.replace("$n", &long("n")).replace("$v", &long("v"));
                word.replace("$i", &(number % 800).to_string()).into_bytes()
            }
        };
        wire::split_args(request).expect("requests are well written").into_iter().map(filled_in).collect()
    }
}

#[test]
fn what_needs_memory_is_refused_and_nothing_else_takes_any() {
    let Some(mut world) = World::start() else { return };
    let mut failures = Vec::new();
    for (command, outcome, request) in REQUESTS {
        let is_refused = matches!(outcome, Refused | RefusedSmall);
        ok(&mut world.admin, "CONFIG SET maxmemory 1");
        let is_right = |reply: &Reply| reply.to_string().starts_with("-OOM ") == is_refused;
        let wrong = world.check(request, is_right, |bytes| *outcome == Grows || bytes <= NOISE_BYTES);
        failures.extend(wrong.map(|wrong| format!("{command}: {request}: {wrong}")));
        ok(&mut world.admin, "CONFIG SET maxmemory 0");
        if is_refused {
            // The request is one that does something, or all this would say nothing.
            let is_right = |reply: &Reply| !reply.is_error();
            let wrong = world.check(request, is_right, |bytes| *outcome != Refused || bytes > NOISE_BYTES);
            failures.extend(wrong.map(|wrong| format!("{command}: {request}: with memory {wrong}")));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn no_command_is_left_out() {
    let Some(server) = Holdfast::start(&[]) else { return };
    let mut names = BTreeSet::new();
    collect(&server.connect().run("COMMAND"), &mut names);
    assert!(names.len() > 200, "COMMAND lists {}", names.len());
    let tested: BTreeSet<&str> = REQUESTS.iter().map(|(name, ..)| *name).collect();
    let is_known = |name: &String| {
        let container = name.split('|').next().expect("a name has a first part");
        tested.contains(name.as_str()) || NOT_ABOUT_DATA.split(' ').any(|known| known == name || known == container)
    };
    let missing: Vec<&String> = names.iter().filter(|name| !is_known(name)).collect();
    assert!(missing.is_empty(), "add these to the requests: {missing:?}");
}

/// The names of all commands that are not flagged as read-only, subcommands instead of their containers.
fn collect(rows: &Reply, names: &mut BTreeSet<String>) {
    for row in rows.items() {
        let fields = row.items();
        match fields[9].items() {
            [] if fields[2].items().contains(&Reply::Simple(b"readonly".to_vec())) => {}
            [] => drop(names.insert(fields[0].text().to_owned())),
            _ => collect(&fields[9], names),
        }
    }
}
