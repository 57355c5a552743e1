//! COMMAND tells the same as a Redis 7.0 of every command that both have. Sentences and the names of arguments are our own;
//! facts that newer versions of Redis tell otherwise are listed.

use std::collections::{BTreeMap, BTreeSet};
use wire::{Connection, Product, Redis, Reply, Session, skip};

/// Commands of which we tell what Redis 7.2 to 8.6 tells, not what 7.0 does.
const NEWER: &[(&str, &[&str])] = &[
    ("blmove", &["flags"]),
    ("blpop", &["flags"]),
    ("brpop", &["flags"]),
    ("brpoplpush", &["flags"]),
    ("bzpopmax", &["flags"]),
    ("bitop", &["arguments", "history"]),
    ("bzpopmin", &["flags"]),
    ("client|kill", &["arguments", "history"]),
    ("client|list", &["arguments", "history"]),
    ("client|pause", &["since"]),
    ("client|setname", &["tips"]),
    ("command|getkeys", &["arguments", "arity"]),
    ("command|getkeysandflags", &["arguments", "arity"]),
    ("config|get", &["arguments"]),
    ("config|resetstat", &["tips"]),
    ("config|rewrite", &["tips"]),
    ("hscan", &["arguments"]),
    ("latency|reset", &["tips"]),
    ("msetnx", &["tips"]),
    ("psetex", &["deprecated_since", "doc_flags", "replaced_by"]),
    ("psubscribe", &["arguments"]),
    ("quit", &["deprecated_since", "doc_flags", "replaced_by"]),
    ("randomkey", &["tips"]),
    ("scan", &["tips"]),
    ("set", &["arguments", "history"]),
    ("setex", &["deprecated_since", "doc_flags", "replaced_by"]),
    ("setnx", &["deprecated_since", "doc_flags", "replaced_by"]),
    ("wait", &["categories", "flags"]),
    ("xadd", &["arguments", "history"]),
    ("xinfo|consumers", &["history"]),
    ("xinfo|stream", &["history"]),
    ("xreadgroup", &["arguments", "history"]),
    ("xtrim", &["arguments", "history"]),
    ("zrank", &["arguments", "arity", "history"]),
    ("zrevrank", &["arguments", "arity", "history"]),
];

/// What we were told, by field.
type Facts = BTreeMap<String, String>;

#[test]
fn info_and_docs_agree_with_redis() {
    let Some(mut pair) = Pair::start() else { return };
    let newer: BTreeSet<(&str, &str)> =
        NEWER.iter().flat_map(|(name, fields)| fields.iter().map(move |field| (*name, *field))).collect();
    let (mut differing, mut wrong) = (BTreeSet::new(), Vec::new());
    let names = pair.names();
    for name in &names {
        let [ours, theirs] = pair.both(|connection| facts(connection, name));
        let fields: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        for field in fields {
            let (ours, theirs) = (ours.get(field), theirs.get(field));
            if ours == theirs {
                continue;
            }
            match newer.iter().find(|known| **known == (name, field)) {
                Some(known) => {
                    differing.insert(*known);
                }
                None => wrong.push(format!("{name} {field}:\n  ours  {ours:?}\n  Redis {theirs:?}")),
            }
        }
    }
    assert!(names.len() > 200, "{names:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(newer, differing, "the list has what is no difference");
}

#[test]
fn keys_and_their_use_agree_with_redis() {
    let Some(mut pair) = Pair::start() else { return };
    let mut wrong = Vec::new();
    let takes_more = |name: &str| NEWER.iter().any(|(newer, fields)| *newer == name && fields.contains(&"arity"));
    for name in pair.names().into_iter().filter(|name| !takes_more(name)) {
        // Each argument is its own position, and so is a count of keys: which arguments are keys can be seen in the reply.
        for len in name.split('|').count() + 1..12 {
            let mut request: Vec<String> = name.split('|').map(str::to_owned).collect();
            request.extend((request.len()..len).map(|at| at.to_string()));
            // Redis's specifications find no keys where a group of them is left out.
            if name == "pfmerge" && len == 2 {
                continue;
            }
            wrong.extend(pair.compare_keys(&request));
        }
    }
    for request in [
        "set a v GET",
        "set a v EX 10",
        "bitfield a GET u8 0",
        "bitfield a GET u8 0 SET u8 0 1",
        "bitfield a INCRBY u8 0 1",
        "bitfield a OVERFLOW SAT GET u8 0",
        "bitfield a GET u8 SET",
        "zunionstore d 2 a b WEIGHTS 1 2",
        "zunionstore d 0 a b",
        "zunionstore d x a b",
        "zunion 3 a b",
        "zinter 0 a",
        "bzmpop 0 2 a b MIN",
        "bzmpop 0 0 a MIN",
        "eval s 0",
        "eval s 0 a",
        "eval s 2 a b c",
        "eval s 2 a",
        "eval s -1 a",
        "eval s x a",
        "fcall f 1 a",
        "georadius a 1 2 3 m STORE b",
        "georadius a 1 2 3 m COUNT 1 STOREDIST b ASC",
        "georadiusbymember a m 3 m STORE b STOREDIST c",
        "sort a BY w_* GET # STORE b",
        "sort a LIMIT 0 STORE STORE b",
    ] {
        let request: Vec<String> = request.split(' ').map(str::to_owned).collect();
        wrong.extend(pair.compare_keys(&request));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The server under test and its judge.
struct Pair {
    connections: [Connection; 2],
    _session: Session,
    _redis: Redis,
}

impl Pair {
    /// `None`, and the test is skipped, without a Redis 7.0 or when the server under test is a Redis itself.
    fn start() -> Option<Pair> {
        let session = Session::start();
        if session.product() != Product::Holdfast {
            skip("this test compares Holdfast with a Redis");
            return None;
        }
        let Some(redis) = Redis::start() else {
            skip("there is no redis-server here");
            return None;
        };
        let mut connections = [session.connect(), redis.connect()];
        let server = connections[1].run("INFO server");
        if !server.text().contains("redis_version:7.0.") {
            skip("the redis-server here is no Redis 7.0");
            return None;
        }
        connections.iter_mut().for_each(|connection| {
            connection.run("HELLO 3");
        });
        Some(Pair { connections, _session: session, _redis: redis })
    }

    fn both<T>(&mut self, ask: impl FnMut(&mut Connection) -> T) -> [T; 2] {
        self.connections.each_mut().map(ask)
    }

    /// Commands and subcommands that both have.
    fn names(&mut self) -> Vec<String> {
        let [ours, theirs] = self.both(|connection| {
            let list = connection.run("COMMAND LIST");
            list.items().iter().map(|name| name.text().to_owned()).collect::<BTreeSet<_>>()
        });
        ours.intersection(&theirs).cloned().collect()
    }

    /// What is wrong with the keys that are found in a request.
    fn compare_keys(&mut self, request: &[String]) -> Option<String> {
        let [ours, theirs] = self.both(|connection| {
            let words = ["COMMAND", "GETKEYSANDFLAGS"].into_iter().chain(request.iter().map(String::as_str));
            plain(&connection.run_args(&words.collect::<Vec<_>>()))
        });
        let line = request.join(" ");
        (ours != theirs).then(|| format!("{line}\n  ours  {ours}\n  Redis {theirs}"))
    }
}

/// What COMMAND INFO and COMMAND DOCS tell of a command, without its subcommands.
fn facts(connection: &mut Connection, name: &str) -> Facts {
    const COLUMNS: [&str; 9] = ["name", "arity", "flags", "first", "last", "step", "categories", "tips", "key specs"];
    let info = connection.run_args(&["COMMAND", "INFO", name]);
    let columns = COLUMNS.iter().zip(info.items()[0].items());
    let mut facts: Facts = columns.map(|(title, column)| ((*title).to_owned(), plain(column))).collect();
    let docs = connection.run_args(&["COMMAND", "DOCS", name]);
    let Reply::Map(entries) = docs else { panic!("{docs}") };
    let Reply::Map(fields) = &entries[0].1 else { panic!("{}", entries[0].1) };
    for (title, value) in fields.iter().filter(|(title, _)| title.text() != "subcommands") {
        let value = match title.text() {
            "history" => value.items().iter().map(|entry| entry.items()[0].text()).collect::<Vec<_>>().join(" "),
            "summary" | "complexity" | "replaced_by" => "some".to_owned(),
            _ => plain(value),
        };
        facts.insert(title.text().to_owned(), value);
    }
    facts
}

/// A reply in which neither the order of sets and maps, nor sentences and the names of arguments, count.
fn plain(reply: &Reply) -> String {
    match reply {
        Reply::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(", ")),
        Reply::Set(items) => {
            let mut items: Vec<String> = items.iter().map(plain).collect();
            items.sort();
            format!("{{{}}}", items.join(", "))
        }
        Reply::Map(entries) => {
            let told = entries.iter().filter(|(name, _)| !["name", "display_text"].contains(&name.text()));
            let mut entries: Vec<String> = told
                .map(|(name, value)| match name.text() {
                    "notes" => "notes".to_owned(),
                    name => format!("{name}: {}", plain(value)),
                })
                .collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        other => other.to_string(),
    }
}
