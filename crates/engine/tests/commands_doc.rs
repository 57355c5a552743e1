//! Keeps docs/COMMANDS.md equal to the command table, so that the page cannot forget a command or invent one.

use engine::command::missing::{MISSING, MISSING_FAMILIES, MISSING_IN_DEBUG, MISSING_OPTIONS, Missing};
use engine::command::{CommandRow, Handler, registry};
use engine::execution::docs::CommandDoc;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/COMMANDS.md");
const BLESS: &str = "HOLDFAST_TEST_BLESS";

#[test]
fn the_page_lists_every_command() {
    let rendered = page(&callable_rows()) + &by_family() + &not_built();
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(PAGE, rendered).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(PAGE).unwrap_or_default();
    let differs = || {
        let (rendered, kept) = (rendered.lines().map(Some), kept.lines().map(Some));
        let mut pairs = rendered.chain([None]).zip(kept.chain([None]));
        let (new, old) = pairs.find(|(new, old)| new != old).unwrap_or_default();
        format!("it has {}\nand should have {}", old.unwrap_or("ended"), new.unwrap_or("ended"))
    };
    assert!(
        rendered == kept,
        "docs/COMMANDS.md is not what the command table says:\n{}\n\
         Rewrite it with {BLESS}=1 cargo test -p engine --test commands_doc",
        differs()
    );
}

#[test]
fn a_page_is_a_table_for_each_group() {
    let documented = |name: &str| registry().find_full(name.as_bytes()).unwrap();
    let rendered = page(&[documented("hget"), documented("config|get"), documented("hdel"), documented("hcas")]);
    let lines: Vec<&str> = rendered.lines().filter(|line| line.starts_with(['#', '|'])).collect();
    let expected = [
        "# Commands",
        "## Hash",
        "| command | what it does | since |",
        "| --- | --- | --- |",
        &format!("| `HCAS` | {} | Holdfast 0.1.0 |", documented("hcas").command.docs.summary),
        &format!("| `HDEL` | {} | 2.0.0 |", documented("hdel").command.docs.summary),
        &format!("| `HGET` | {} | 2.0.0 |", documented("hget").command.docs.summary),
        "## Server",
        "| command | what it does | since |",
        "| --- | --- | --- |",
        &format!("| `CONFIG GET` | {} | 2.0.0 |", documented("config|get").command.docs.summary),
    ];
    assert_eq!(lines, expected);
}

/// Each command that can be called: containers cannot, their subcommands can.
fn callable_rows() -> Vec<&'static CommandRow> {
    registry().rows().iter().copied().filter(|row| !matches!(row.command.handler, Handler::Container)).collect()
}

/// The page: a table for each group, groups and commands in the order of their names.
fn page(rows: &[&CommandRow]) -> String {
    let mut groups: BTreeMap<&str, BTreeMap<&str, &CommandDoc>> = BTreeMap::new();
    for row in rows {
        groups.entry(row.group()).or_default().insert(&row.full_name, &row.command.docs);
    }
    let mut page = format!(
        "# Commands\n\n\
         The {} commands of this version, subcommands counted, in Redis's groups. The last column is the version of\n\
         Redis that had the command first, or, for commands that Redis does not have, the version of Valkey or of\n\
         Holdfast.\n\
         `COMMAND DOCS name` tells more of each.\n\n\
         Commands that Redis has too give the replies, errors and edge cases of Redis 7.4, and of Redis 8 for what came\n\
         later. See also the commands [by family](#by-family), and [what is not built](#not-built).\n\n\
         A test writes this page from the command table: `{BLESS}=1 cargo test -p engine --test commands_doc`.\n",
        rows.len()
    );
    for (group, commands) in groups {
        let title = group[..1].to_uppercase() + &group[1..];
        let _ = write!(page, "\n## {title}\n\n| command | what it does | since |\n| --- | --- | --- |\n");
        for (name, doc) in commands {
            let (name, summary) = (name.replace('|', " ").to_uppercase(), doc.summary.replace('|', "\\|"));
            let since = match (doc.valkey_since, doc.is_own) {
                (Some(version), _) => format!("Valkey {version}"),
                (None, true) => format!("Holdfast {}", doc.since),
                (None, false) => doc.since.to_owned(),
            };
            let _ = writeln!(page, "| `{name}` | {summary}{} | {since} |", deprecation(doc));
        }
    }
    page
}

/// The commands that are used together: the name of a family, its commands without subcommands, and what else to know.
const FAMILIES: &[(&str, &str, &str)] = &[
    (
        "strings",
        "SET GET GETEX GETDEL GETSET SETNX SETEX PSETEX MSET MSETNX MSETEX MGET DELEX DELIFEQ DIGEST INCR DECR INCRBY \
         DECRBY INCRBYFLOAT INCREX APPEND GETRANGE SUBSTR SETRANGE STRLEN LCS",
        "SET takes NX XX GET EX PX EXAT PXAT KEEPTTL IFEQ IFNE IFDEQ IFDNE",
    ),
    ("bits", "GETBIT SETBIT BITCOUNT BITPOS BITOP BITFIELD BITFIELD_RO", ""),
    (
        "hashes",
        "HSET HSETNX HMSET HGET HMGET HGETALL HDEL HEXISTS HLEN HKEYS HVALS HSTRLEN HINCRBY HINCRBYFLOAT HSCAN \
         HRANDFIELD",
        "",
    ),
    (
        "fields that expire",
        "HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HTTL HPTTL HEXPIRETIME HPEXPIRETIME HPERSIST HGETEX HSETEX HGETDEL",
        "",
    ),
    (
        "records and queues",
        "HCAS HPUT HFIND IDX.CREATE IDX.DROP IDX.LIST IDX.INFO IDX.RANGE IDX.LIMIT IDX.GROUPS CLAIM SWEEP",
        "[jobs.md](jobs.md)",
    ),
    (
        "cells",
        "CELL.INIT CELL.GET CELL.GETV CELL.MGET CELL.SET CELL.CAS CELL.HISTORY CELL.DEL CELL.LIST CELL.FORK CELL.DROP",
        "[cells.md](cells.md)",
    ),
    ("runs", "RUN.APPEND RUN.EVENTS RUN.SNAPSHOT RUN.PROJECT RUN.INFO RUN.LIST", "[runs.md](runs.md)"),
    (
        "registers",
        "REG.PUT REG.INCRBY REG.GET REG.MGET REG.SEAL REG.SNAPSHOT REG.RESTORE",
        "Each version is applied once, in whatever order and however often it arrives: \
         [exactly-once.md](exactly-once.md)",
    ),
    (
        "sessions",
        "SESSION.OPEN SESSION.CALL SESSION.ALIVE SESSION.INFO SESSION.LIST SESSION.CLOSE SESSION.PUSH SESSION.PENDING \
         SESSION.ACK SESSION.ATTACH SESSION.DETACH SESSION.RETRY SESSION.HASRETRY SESSION.HOOK",
        "Requests that take effect once, and requests from the server to a client: [exactly-once.md](exactly-once.md)",
    ),
    (
        "lists",
        "LPUSH RPUSH LPUSHX RPUSHX LPOP RPOP LLEN LINDEX LINSERT LSET LRANGE LREM LTRIM LPOS LMOVE RPOPLPUSH LMPOP \
         BLPOP BRPOP BLMOVE BRPOPLPUSH BLMPOP",
        "",
    ),
    (
        "streams",
        "XADD XLEN XRANGE XREVRANGE XREAD XDEL XDELEX XTRIM XSETID XGROUP XREADGROUP XACK XACKDEL XNACK XPENDING \
         XCLAIM XAUTOCLAIM XINFO XCFGSET",
        "",
    ),
    (
        "sets",
        "SADD SREM SPOP SMOVE SISMEMBER SMISMEMBER SCARD SMEMBERS SRANDMEMBER SINTER SINTERCARD SINTERSTORE SUNION \
         SUNIONSTORE SDIFF SDIFFSTORE SSCAN",
        "",
    ),
    (
        "sorted sets",
        "ZADD ZINCRBY ZREM ZCARD ZSCORE ZMSCORE ZCOUNT ZLEXCOUNT ZRANK ZREVRANK ZRANGE ZREVRANGE ZRANGEBYSCORE \
         ZREVRANGEBYSCORE ZRANGEBYLEX ZREVRANGEBYLEX ZRANGESTORE ZPOPMIN ZPOPMAX ZMPOP BZPOPMIN BZPOPMAX BZMPOP \
         ZUNION ZINTER ZDIFF ZUNIONSTORE ZINTERSTORE ZDIFFSTORE ZINTERCARD ZRANDMEMBER ZREMRANGEBYRANK \
         ZREMRANGEBYSCORE ZREMRANGEBYLEX ZSCAN",
        "",
    ),
    (
        "geo",
        "GEOADD GEODIST GEOHASH GEOPOS GEOSEARCH GEOSEARCHSTORE GEORADIUS GEORADIUS_RO GEORADIUSBYMEMBER \
         GEORADIUSBYMEMBER_RO",
        "",
    ),
    ("HyperLogLog", "PFADD PFCOUNT PFMERGE PFDEBUG PFSELFTEST", ""),
    ("sorting", "SORT SORT_RO", ""),
    ("keys", "DEL UNLINK EXISTS TYPE KEYS SCAN RANDOMKEY RENAME RENAMENX COPY MOVE TOUCH DUMP RESTORE OBJECT", ""),
    ("expiry", "EXPIRE PEXPIRE EXPIREAT PEXPIREAT TTL PTTL EXPIRETIME PEXPIRETIME PERSIST", ""),
    (
        "transactions",
        "MULTI EXEC DISCARD WATCH UNWATCH TXN.BEGIN TXN.COMMIT TXN.ROLLBACK",
        "[cells.md](cells.md#transactions)",
    ),
    ("scripts", "EVAL EVALSHA EVAL_RO EVALSHA_RO SCRIPT", ""),
    (
        "functions",
        "FUNCTION FCALL FCALL_RO",
        "`compare_and_swap` is built in: `FCALL compare_and_swap 1 job:1 state pending running`. Only \
         `FUNCTION LIST LIBRARYNAME holdfast` lists its library",
    ),
    ("pub/sub", "SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE PUBLISH SPUBLISH PUBSUB", ""),
    ("persistence", "SAVE BGSAVE LASTSAVE BGREWRITEAOF WAIT WAITAOF", "[durability.md](durability.md)"),
    (
        "several servers",
        "ROLE REPLICAOF SLAVEOF FAILOVER READONLY READWRITE ASKING CLUSTER REPLCONF PSYNC SYNC",
        "[operations.md](operations.md), [cluster.md](cluster.md)",
    ),
    ("connection", "AUTH HELLO PING ECHO QUIT RESET SELECT CLIENT", ""),
    ("users", "ACL", "[security.md](security.md)"),
    (
        "server",
        "INFO CONFIG COMMAND DBSIZE FLUSHDB FLUSHALL SWAPDB TIME MEMORY HOTKEYS SLOWLOG LATENCY MONITOR DEBUG LOLWUT \
         MODULE SHUTDOWN",
        "",
    ),
];

#[test]
fn each_command_is_in_one_family() {
    let listed: Vec<&str> = FAMILIES.iter().flat_map(|(_, names, _)| names.split_whitespace()).collect();
    let known: BTreeSet<String> = registry()
        .rows()
        .iter()
        .filter(|row| !row.full_name.contains('|'))
        .map(|row| row.full_name.to_uppercase())
        .collect();
    assert_eq!(listed.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), known);
    assert_eq!(listed.len(), known.len(), "a command is in two families");
}

/// A row for each family.
fn by_family() -> String {
    let mut section = String::from("\n## By family\n\n| family | commands |\n| --- | --- |\n");
    for (family, names, note) in FAMILIES {
        let names: Vec<String> = names.split_whitespace().map(|name| format!("`{name}`")).collect();
        let note = if note.is_empty() { String::new() } else { format!(". {note}") };
        let _ = writeln!(section, "| {family} | {}{note} |", names.join(" "));
    }
    section
}

/// What Redis and Valkey have and this server has not.
fn not_built() -> String {
    let mut section = String::from(
        "\n## Not built\n\nWhat Redis up to 8.8 and Valkey up to 9.1 have beyond these, and why it is missing.\n\n\
         | command | since | why it is missing |\n| --- | --- | --- |\n",
    );
    let mut rows = |missing: &[Missing]| {
        for Missing { names, since, why } in missing {
            let names: Vec<String> = names.split(", ").map(shown).collect();
            let _ = writeln!(section, "| {} | {since} | {why} |", names.join(", "));
        }
    };
    rows(MISSING);
    rows(MISSING_FAMILIES);
    rows(MISSING_OPTIONS);
    for (names, why) in MISSING_IN_DEBUG {
        let names: Vec<String> = names.split(", ").map(|name| format!("`{}`", name.to_uppercase())).collect();
        let _ = writeln!(section, "| `DEBUG` {} | | {why} |", names.join(", "));
    }
    section
}

/// A name as the page shows it. Settings are in lower case.
fn shown(name: &str) -> String {
    let name = name.replace('|', " ");
    if name.starts_with("notify") { format!("`{name}`") } else { format!("`{}`", name.to_uppercase()) }
}

/// What Redis says of its commands, and those that it does not tell of there.
const REDIS: &str = include_str!("redis_commands.txt");
const REDIS_TOO: &str = "acl acl|cat acl|deluser acl|dryrun acl|genpass acl|getuser acl|help acl|list acl|load acl|log acl|save acl|setuser \
                         acl|users acl|whoami migrate restore-asking";
/// Those that Redis 7.2 to 8.8 added, by its documentation, and Valkey 8.0 to 9.1, by 9.1.2's COMMAND LIST.
const NEWER: &str = include_str!("newer_names.txt");

/// The names of Redis 7.0, subcommands included.
fn redis_7_0() -> BTreeSet<&'static str> {
    let told = REDIS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(' ').next());
    told.chain(REDIS_TOO.split_whitespace()).filter(|name| NEWER.lines().all(|newer| newer != *name)).collect()
}

#[test]
fn every_command_of_redis_and_valkey_is_built_or_said_to_be_missing() {
    let missing: Vec<&str> = MISSING.iter().flat_map(|missing| missing.names.split(", ")).collect();
    let is_missing =
        |name: &str| missing.contains(&name) || name.split('|').next().is_some_and(|name| missing.contains(&name));
    let known = || redis_7_0().into_iter().chain(NEWER.lines());
    for name in &missing {
        let is_known = known().any(|known| known == *name);
        assert!(is_known, "{name} is said to be missing, and no command of Redis or Valkey");
    }
    for name in known() {
        let is_built = registry().find_full(name.as_bytes()).is_some();
        assert!(is_built || is_missing(name), "{name} is neither built nor said to be missing");
        assert!(!is_built || !is_missing(name), "{name} is built, and said to be missing");
    }
}

#[test]
fn commands_that_redis_does_not_have_say_since_which_holdfast() {
    let redis_7_0 = redis_7_0();
    for row in registry().rows() {
        let (name, docs) = (&row.full_name, &row.command.docs);
        let is_in_redis_7_0 = redis_7_0.contains(name.as_str());
        // Redis has no command with a dot in its name.
        assert!(docs.is_own || !name.contains('.'), "{name}: use own_doc, with a version of Holdfast");
        assert!(!docs.is_own || !is_in_redis_7_0, "{name} is a command of Redis: use doc");
        let is_later = ["7.2.0", "7.4.0", "8.0.0", "8.2.0", "8.4.0", "8.6.0", "8.8.0"].contains(&docs.since);
        assert!(docs.is_own || is_in_redis_7_0 || is_later, "{name}: since Redis {}?", docs.since);
    }
}

fn deprecation(doc: &CommandDoc) -> String {
    match (doc.deprecated_since, doc.replaced_by) {
        (Some(version), Some(other)) => format!(" Deprecated since {version} in favour of {other}."),
        (Some(version), None) => format!(" Deprecated since {version}."),
        (None, _) => String::new(),
    }
}
