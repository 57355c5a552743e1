//! From Redis to Holdfast and back: every way in (RDB file, append-only file in each of its forms) and every way out (DUMP,
//! `holdfast export`) keeps lists, streams with their groups, and the rest. Redis's own reading of the same file is the judge.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use wire::{Connection, Redis, Reply, Server, binary};

use crate::support::{Dir, can_start_holdfast, eventually, info};

/// What is there to be moved. `#` is a hundred elements, `##` an element of ten thousand bytes.
const LINES: &[&str] = &[
    "RPUSH list:short a 12 \"\" -70000 9223372036854775807 007",
    "RPUSH list:long # # # # # # # # # #",
    "RPUSH list:huge a ## b ## ## 12",
    "RPUSH list:changed # # # # # #",
    "LINSERT list:changed BEFORE element-50 here",
    "LREM list:changed -2 element-7",
    "LSET list:changed 10 ##",
    "LTRIM list:changed 3 -5",
    "LPUSH list:changed x y",
    "RPUSH list:deadline a b",
    "PEXPIREAT list:deadline 4102444800000",
    "LMOVE list:changed list:moved LEFT RIGHT",
    "BLMOVE list:changed list:moved RIGHT LEFT 0",
    "BRPOP list:short 0",
    "LMPOP 2 list:none list:long RIGHT COUNT 3",
    // Entries of several shapes, deleted ones, and a consumer of each sort.
    "XADD stream 1-1 a 1 b text",
    "XADD stream 1-2 a 2 b more",
    "XADD stream 5-0 c -70000",
    "XADD stream 5-1 a \"\" b 9223372036854775807",
    "XADD stream 1526919030474-55 a 3 b 4",
    "XADD stream 1526919030474-56 f v f w",
    "XGROUP CREATE stream g 0",
    "XGROUP CREATE stream h 1-1 ENTRIESREAD 1",
    "XGROUP CREATE stream unread $",
    "XGROUP CREATECONSUMER stream g idle",
    "XREADGROUP GROUP g alice COUNT 3 STREAMS stream >",
    "XREADGROUP GROUP g bob COUNT 1 STREAMS stream >",
    "XREADGROUP GROUP h noack NOACK COUNT 2 STREAMS stream >",
    "XCLAIM stream g carol 0 1-1 TIME 1000000000000 RETRYCOUNT 7",
    "XACK stream g 1-2",
    "XDEL stream 1-2",
    "XAUTOCLAIM stream g dave 0 5-0 COUNT 1",
    "XADD stream:empty MAXLEN 0 5-1 a 1",
    "XGROUP CREATE stream:new g $ MKSTREAM",
    "XGROUP CREATECONSUMER stream:new g c",
    "XADD stream:ahead 1-1 a 1",
    "XSETID stream:ahead 9-9 ENTRIESADDED 500 MAXDELETEDID 3-3",
    "XGROUP CREATE stream:ahead g 0 ENTRIESREAD -1",
    "XADD stream:destroyed 1-1 a 1",
    "XGROUP CREATE stream:destroyed g 0",
    "XGROUP DESTROY stream:destroyed g",
    "SADD set a b c",
    "SADD intset 1 2 70000",
    "ZADD zset 1 a -0.5 b inf c",
    "GEOADD geo 13.361389 38.115556 palermo 15.087269 37.502669 catania",
    "PFADD hll # a b c",
    "HSET hash a 1 b text",
    "SET string text",
];

/// A pending entry that was deleted from its stream. It stays pending in an RDB file; in an append-only file Redis itself writes it
/// as an XCLAIM, which leaves out what is deleted.
const DELETED_BUT_PENDING: &[&str] = &[
    "XADD stream:gone 1-1 a 1",
    "XADD stream:gone 1-2 a 1",
    "XGROUP CREATE stream:gone g 0",
    "XREADGROUP GROUP g c STREAMS stream:gone >",
    "XDEL stream:gone 1-1",
];

/// Lists that were only ever pushed to: their nodes are as full as they can be, so Redis has one form for them. Streams keep the
/// nodes that they have.
const HAVE_ONE_FORM: &[&str] =
    &["list:short", "list:huge", "list:deadline", "intset", "zset", "hll", "hll:dense", "hash"];

fn furnish(connection: &mut Connection) {
    for line in LINES.iter().chain(DELETED_BUT_PENDING) {
        let reply = connection.run(&written_out(line));
        assert!(!reply.is_error(), "{line}: {reply}");
    }
    // Enough for several nodes, of which the first are trimmed, and holes.
    for number in 0..1_000 {
        connection.queue_line(&format!("PFADD hll:dense a{number} b{number} c{number}"));
        connection.queue_line(&format!("XADD stream:long {number}-1 number {number} text entry-{}", number % 7));
    }
    connection.queue_line("XTRIM stream:long MAXLEN ~ 820");
    connection.queue_line("XDEL stream:long 500-1 501-1 999-1 300-1");
    connection.queue_line("XGROUP CREATE stream:long g 400 ENTRIESREAD 401");
    connection.queue_line("XREADGROUP GROUP g c COUNT 150 STREAMS stream:long >");
    connection.queue_line("ECHO done");
    while connection.read().to_string() != "\"done\"" {}
}

fn written_out(line: &str) -> String {
    let hundred: Vec<String> = (0..100).map(|number| format!("element-{number}")).collect();
    line.replace("##", &"x".repeat(10_000)).replace('#', &hundred.join(" "))
}

/// What the keys hold, by name.
type Contents = BTreeMap<String, String>;

/// How much of a stream has to be the same beside its entries, ids, counts and groups.
#[derive(Clone, Copy, PartialEq)]
enum Exactness {
    /// When consumers were last seen, and how many nodes there are.
    All,
    /// Commands make new nodes, without deleted entries, and consumers that are seen now.
    Commands,
}

fn contents(connection: &mut Connection, exactness: Exactness) -> Contents {
    let keys: Vec<String> = connection.run("KEYS *").items().iter().map(|key| key.text().to_owned()).collect();
    let mut contents = Contents::new();
    for key in keys {
        let mut ask = |line: &str| connection.run(&format!("{line} {key}"));
        let kind = ask("TYPE").to_string();
        let mut said: Vec<String> = ["PEXPIRETIME", "DEBUG DIGEST-VALUE"].map(|line| ask(line).to_string()).into();
        // Small lists and sets are listpacks since Redis 7.2, and never before.
        if !matches!(kind.as_str(), "+list" | "+set") || key == "intset" {
            said.push(ask("OBJECT ENCODING").to_string());
        }
        match kind.as_str() {
            "+stream" => {
                let mut full = connection.run(&format!("XINFO STREAM {key} FULL COUNT 0"));
                if exactness == Exactness::Commands {
                    hide(&mut full, &["seen-time", "radix-tree-keys", "radix-tree-nodes"]);
                }
                let mut groups = connection.run(&format!("XINFO GROUPS {key}"));
                for reply in [&mut full, &mut groups] {
                    drop_news(reply);
                    said.push(reply.to_string());
                }
            }
            "+list" => said.push(connection.run(&format!("LRANGE {key} 0 -1")).to_string()),
            _ => {}
        }
        contents.insert(key, format!("{kind} {}", said.join("\n")));
    }
    contents
}

/// Takes away what Redis 7.0 does not tell of groups and consumers, and the lag, which later versions compute better.
fn drop_news(reply: &mut Reply) {
    let Reply::Array(items) = reply else { return };
    items.iter_mut().for_each(drop_news);
    for name in ["active-time", "nacked-count", "lag"] {
        if let Some(at) = items.iter().position(|item| *item == Reply::Bulk(name.into())) {
            items.drain(at..at + 2);
        }
    }
}

/// Takes the numbers away that stand behind these names.
fn hide(reply: &mut Reply, names: &[&str]) {
    let Reply::Array(items) = reply else { return };
    for at in 0..items.len() {
        let hidden = matches!(&items[at], Reply::Bulk(name) if names.iter().any(|hidden| hidden.as_bytes() == name));
        if hidden && let Some(Reply::Integer(number)) = items.get_mut(at + 1) {
            *number = 0;
        }
        hide(&mut items[at], names);
    }
}

#[track_caller]
fn assert_same(found: &Contents, expected: &Contents, when: &str) {
    assert!(found.keys().eq(expected.keys()), "{when}: {:?} instead of {:?}", found.keys(), expected.keys());
    for (key, expected) in expected {
        assert!(found[key] == *expected, "{when}, {key}:\n{}\ninstead of\n{expected}", found[key]);
    }
}

/// Where Redis writes its files.
fn dir_of(redis: &mut Connection) -> PathBuf {
    PathBuf::from(redis.run("CONFIG GET dir").items()[1].text())
}

#[track_caller]
fn ok(connection: &mut Connection, line: &str) {
    assert_eq!(connection.run(line).to_string(), "+OK", "{line}");
}

fn redis() -> Option<Redis> {
    let redis = if can_start_holdfast() { Redis::start() } else { return None };
    if redis.is_none() {
        wire::skip("there is no redis-server");
    }
    redis
}

/// A data directory with what `holdfast import` makes of a file.
#[track_caller]
fn imported(file: &Path) -> Dir {
    let data = Dir::fresh();
    let output = Command::new(binary()).arg("import").arg(file).arg("--dir").arg(data.path()).output();
    let output = output.expect("cannot start the server's binary");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout} {stderr}");
    data
}

#[test]
fn an_rdb_file_of_redis_s_keeps_everything() {
    let Some(redis) = redis() else { return };
    let mut judge = redis.connect();
    furnish(&mut judge);
    ok(&mut judge, "SAVE");
    let data = imported(&dir_of(&mut judge).join("dump.rdb"));
    let server = Server::start(data.path(), &["--enable-debug-command", "yes"]);
    let mut connection = server.connect();
    let expected = contents(&mut judge, Exactness::All);
    assert_same(&contents(&mut connection, Exactness::All), &expected, "imported");

    // Out by DUMP, back into Redis. With compression both have a way of their own to compress.
    ok(&mut judge, "CONFIG SET rdbcompression no");
    // Redis 7.0 restores no stream of Redis 7.2.
    for key in expected.keys().filter(|key| !key.starts_with("stream")) {
        let Reply::Bulk(original) = judge.run(&format!("DUMP {key}")) else { panic!("{key} can be dumped") };
        let Reply::Bulk(dumped) = connection.run(&format!("DUMP {key}")) else { panic!("{key} can be dumped") };
        let deadline = if key == "list:deadline" { "4102444800000" } else { "0" };
        let restored = judge.run_with(&format!("RESTORE {key} {deadline}"), &[&dumped, b"REPLACE", b"ABSTTL"]);
        assert_eq!(restored.to_string(), "+OK", "{key}");
        if HAVE_ONE_FORM.contains(&key.as_str()) {
            assert!(judge.run(&format!("DUMP {key}")) == Reply::Bulk(original), "{key} has another form in Redis");
        }
    }
    assert_same(&contents(&mut judge, Exactness::All), &expected, "restored in Redis");
}

/// Whatever the form of the file, Holdfast finds in it what Redis finds when it loads it.
fn append_only_file_keeps_everything(before: &[&str], after: &[&str]) {
    let Some(redis) = redis() else { return };
    let mut judge = redis.connect();
    let rewritten = |judge: &mut Connection, lines: &[&str]| {
        for line in lines {
            assert!(!judge.run(line).is_error(), "{line}");
            eventually(line, || {
                let pending: u8 =
                    info::<u8>(judge, "aof_rewrite_in_progress") + info::<u8>(judge, "aof_rewrite_scheduled");
                pending == 0
            });
        }
    };
    rewritten(&mut judge, before);
    furnish(&mut judge);
    rewritten(&mut judge, after);
    let live = contents(&mut judge, Exactness::Commands);
    ok(&mut judge, "DEBUG LOADAOF");
    let expected = contents(&mut judge, Exactness::Commands);
    let data = imported(&dir_of(&mut judge).join("appendonlydir"));
    let server = Server::start(data.path(), &["--enable-debug-command", "yes"]);
    let found = contents(&mut server.connect(), Exactness::Commands);
    assert_same(&found, &expected, "imported");
    // Nor has the judge lost anything that it had before, but for what it does not write: see above, and an XREADGROUP is an XCLAIM
    // there, which does not count what was read.
    let without = |contents: &Contents| -> Contents {
        let is_whole = |key: &str| key != "stream:gone" && (!after.is_empty() || !key.starts_with("stream"));
        contents.iter().filter(|(key, _)| is_whole(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    assert_same(&without(&found), &without(&live), "as it was before Redis wrote it");
}

#[test]
fn an_append_only_file_of_commands_keeps_everything() {
    append_only_file_keeps_everything(&["CONFIG SET appendonly yes"], &[]);
}

#[test]
fn a_rewritten_append_only_file_with_a_preamble_keeps_everything() {
    append_only_file_keeps_everything(&[], &["CONFIG SET appendonly yes"]);
}

#[test]
fn a_rewritten_append_only_file_without_a_preamble_keeps_everything() {
    append_only_file_keeps_everything(&[], &["CONFIG SET aof-use-rdb-preamble no", "CONFIG SET appendonly yes"]);
}

/// Into Redis, as an append-only file that is played to it, and into another Holdfast.
#[test]
fn an_export_keeps_everything() {
    let Some(redis) = redis() else { return };
    let data = Dir::fresh();
    let server = Server::start(data.path(), &["--enable-debug-command", "yes"]);
    furnish(&mut server.connect());
    server.connect().run("DEL stream:gone");
    let expected = contents(&mut server.connect(), Exactness::Commands);
    server.kill();
    let output = Command::new(binary()).arg("export").arg(data.path()).output();
    let exported = output.expect("cannot start the server's binary").stdout;
    let mut judge = redis.connect();
    judge.queue_raw(&exported);
    judge.queue_line("ECHO done");
    loop {
        let reply = judge.read();
        assert!(!reply.is_error(), "{reply}");
        if reply.to_string() == "\"done\"" {
            break;
        }
    }
    assert_same(&contents(&mut judge, Exactness::Commands), &expected, "in Redis");

    let file = Dir::fresh();
    let path = file.path().join("exported.aof");
    std::fs::write(&path, &exported).expect("cannot write a file");
    let data = imported(&path);
    let server = Server::start(data.path(), &["--enable-debug-command", "yes"]);
    assert_same(&contents(&mut server.connect(), Exactness::Commands), &expected, "in another Holdfast");
}
