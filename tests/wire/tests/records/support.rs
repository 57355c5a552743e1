//! A server without indexes for each test, and what an index has to hold, found by looking at every key. Refuses to know how
//! the server finds it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use wire::{Connection, Product, Reply, Server, Session, quote, skip};

pub(crate) use crate::process::{Dir, can_start_holdfast, eventually, ok, unix_ms};

/// An empty server for one test alone, without indexes; `None`, and the test is skipped, where it is not a holdfast.
#[track_caller]
pub(crate) fn start() -> Option<Session> {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        skip("only Holdfast has indexes");
        return None;
    }
    let mut connection = session.connect();
    drop_indexes(&mut connection);
    ok(&mut connection, "DEBUG SET-ACTIVE-EXPIRE 1");
    Some(session)
}

/// Runs a transcript against such a server.
#[track_caller]
pub(crate) fn check(transcript: &str) {
    if let Some(session) = start() {
        session.check(transcript);
    }
}

/// Indexes outlive FLUSHALL, so that a test that failed would leave its own to the next.
pub(crate) fn drop_indexes(connection: &mut Connection) {
    for name in connection.run("IDX.LIST").items() {
        assert_eq!(connection.run_args(&[b"IDX.DROP", name.bytes()]).integer(), 1);
    }
}

/// A data directory for servers that come and go.
pub(crate) struct Home {
    dir: Dir,
}

impl Home {
    /// `None` where there is no holdfast to start.
    pub(crate) fn fresh() -> Option<Home> {
        can_start_holdfast().then(|| Home { dir: Dir::fresh() })
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Starts a server on it and waits until the data is read. Every change is on the disk before it is acknowledged.
    pub(crate) fn start(&self) -> Server {
        let args = ["--appendfsync", "always", "--enable-debug-command", "yes"];
        Server::start_with(&self.data(), |command| self.dir.keep_output(command.args(args)))
    }
}

/// An index as a test knows it.
#[derive(Clone, Copy)]
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) prefixes: &'static [&'static str],
    pub(crate) field: &'static str,
    pub(crate) condition: Option<Condition>,
    pub(crate) stamp: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct Condition {
    pub(crate) only: bool,
    pub(crate) field: &'static str,
    pub(crate) values: &'static [&'static str],
}

/// The fields of a record.
pub(crate) type Fields = BTreeMap<Vec<u8>, Vec<u8>>;
/// All hashes of a database.
pub(crate) type Records = BTreeMap<Vec<u8>, Fields>;

impl Definition {
    pub(crate) fn create(&self, connection: &mut Connection) -> Reply {
        connection.run(&self.command())
    }

    pub(crate) fn command(&self) -> String {
        let list = |items: &[&str]| {
            let quoted = items.iter().map(|item| quote(item.as_bytes())).collect::<Vec<_>>().join(" ");
            format!("{} {quoted}", items.len())
        };
        let condition = self.condition.map_or(String::new(), |Condition { only, field, values }| {
            format!("{} {field} {}", if only { "ONLY" } else { "EXCLUDE" }, list(values))
        });
        let stamp = if self.stamp { "STAMP" } else { "" };
        let Definition { name, prefixes, field, .. } = self;
        format!("IDX.CREATE {name} PREFIX {} FIELD {field} {condition} {stamp}", list(prefixes))
    }

    /// What it has to hold, in order.
    pub(crate) fn expected(&self, records: &Records) -> Vec<(f64, Vec<u8>)> {
        let covered = |name: &[u8]| self.prefixes.iter().any(|prefix| name.starts_with(prefix.as_bytes()));
        let scores = records.iter().filter(|(name, _)| covered(name)).filter_map(|(name, fields)| {
            let admitted = self.condition.is_none_or(|condition| {
                let value = fields.get(condition.field.as_bytes());
                let listed = |value: &Vec<u8>| condition.values.iter().any(|one| one.as_bytes() == value.as_slice());
                value.is_some_and(listed) == condition.only
            });
            let score = number(fields.get(self.field.as_bytes())?).filter(|_| admitted)?;
            Some((score, name.clone()))
        });
        let mut scores: Vec<_> = scores.collect();
        scores.sort_by(|a, b| a.0.partial_cmp(&b.0).expect("scores are finite").then_with(|| a.1.cmp(&b.1)));
        scores
    }

    /// It holds what a look at every key finds, by each of the ways to read it.
    #[track_caller]
    pub(crate) fn assert_exact(&self, connection: &mut Connection, records: &Records, when: &str) {
        let expected = self.expected(records);
        let found = scored(&connection.run(&format!("ZRANGE {} 0 -1 WITHSCORES", self.name)));
        assert_same(&found, &expected, &format!("{}, {when}", self.name));
        assert_eq!(connection.run(&format!("ZCARD {}", self.name)).integer(), expected.len() as i64, "{when}");
        let range = connection.run(&format!("IDX.RANGE {} -inf +inf KEYS", self.name));
        let keys: Vec<&[u8]> = expected.iter().map(|(_, name)| name.as_slice()).collect();
        assert_eq!(range.items().iter().map(Reply::bytes).collect::<Vec<_>>(), keys, "IDX.RANGE {}, {when}", self.name);
    }
}

/// The finite number that a field holds.
fn number(value: &[u8]) -> Option<f64> {
    std::str::from_utf8(value).ok()?.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// The reply of ZRANGE … WITHSCORES.
fn scored(reply: &Reply) -> Vec<(f64, Vec<u8>)> {
    let pair = |pair: &[Reply]| (pair[1].text().parse().expect("a score"), pair[0].bytes().to_vec());
    reply.items().chunks(2).map(pair).collect()
}

#[track_caller]
fn assert_same(found: &[(f64, Vec<u8>)], expected: &[(f64, Vec<u8>)], of: &str) {
    if found == expected {
        return;
    }
    let shown = |all: &[(f64, Vec<u8>)], other: &[(f64, Vec<u8>)]| {
        let only: Vec<_> = all.iter().filter(|one| !other.contains(one)).take(5).collect();
        only.iter().map(|(score, name)| format!("{} {score}", quote(name))).collect::<Vec<_>>().join(", ")
    };
    let (more, less) = (shown(found, expected), shown(expected, found));
    panic!("{of}: {} instead of {}; too much: {more}; missing: {less}", found.len(), expected.len());
}

/// Every hash of the database that is selected.
#[track_caller]
pub(crate) fn records(connection: &mut Connection) -> Records {
    let keys = connection.run("KEYS *");
    let keys = keys.items();
    keys.iter().for_each(|key| connection.queue(&[b"TYPE", key.bytes()]));
    let kinds: Vec<Reply> = keys.iter().map(|_| connection.read()).collect();
    let hashes = keys.iter().zip(&kinds).filter(|(_, kind)| kind.to_string() == "+hash");
    let hashes: Vec<&[u8]> = hashes.map(|(key, _)| key.bytes()).collect();
    hashes.iter().for_each(|key| connection.queue(&[b"HGETALL", *key]));
    let read = |key: &&[u8]| (key.to_vec(), fields(&connection.read()));
    // One that expires between the commands has no fields and is no record.
    hashes.iter().map(read).filter(|(_, fields)| !fields.is_empty()).collect()
}

/// The reply of HGETALL.
pub(crate) fn fields(reply: &Reply) -> Fields {
    reply.items().chunks(2).map(|pair| (pair[0].bytes().to_vec(), pair[1].bytes().to_vec())).collect()
}

/// All of these indexes are exact in all of these databases; the first is selected afterwards.
#[track_caller]
pub(crate) fn assert_all_exact(connection: &mut Connection, databases: &[usize], indexes: &[Definition], when: &str) {
    for db in databases.iter().rev() {
        ok(connection, &format!("SELECT {db}"));
        let records = records(connection);
        for index in indexes {
            index.assert_exact(connection, &records, &format!("database {db}, {when}"));
        }
    }
}

/// All that a search with a cursor replies, in its pages.
#[track_caller]
pub(crate) fn walk_with<T, All: Default + Extend<T>>(
    connection: &mut Connection,
    search: &str,
    read: impl Fn(&Reply) -> T,
) -> All {
    let (mut all, mut cursor) = (All::default(), "0".to_owned());
    loop {
        let reply = connection.run(&format!("{search} CURSOR {cursor}"));
        all.extend(reply.items()[1].items().iter().map(&read));
        cursor = reply.items()[0].text().to_owned();
        if cursor == "0" {
            return all;
        }
    }
}
