//! A data directory whose servers come and go, one of everything to keep in it, and all that it holds as one value.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};

use wire::{Connection, Reply, Server, binary, quote, split_args};

use crate::process::{Dir, can_start_holdfast};
pub(crate) use crate::process::{eventually, info, ok, unix_ms};

/// A data directory, and beside it what the last server printed.
pub(crate) struct Home {
    dir: Dir,
}

impl Home {
    /// `None` where there is no holdfast to start.
    pub(crate) fn fresh() -> Option<Home> {
        can_start_holdfast().then(|| Home { dir: Dir::fresh() })
    }

    /// One with a server on it.
    pub(crate) fn serve(args: &[&str]) -> Option<(Home, Server)> {
        let home = Home::fresh()?;
        let server = home.start(args);
        Some((home, server))
    }

    /// One with a server on it, and a client of that.
    pub(crate) fn serve_client(args: &[&str]) -> Option<(Home, Server, Connection)> {
        let (home, server) = Home::serve(args)?;
        let client = server.connect();
        Some((home, server, client))
    }

    /// Kills a server, and starts the next one.
    pub(crate) fn serve_again(&self, server: Server, args: &[&str]) -> Server {
        server.kill();
        self.start(args)
    }

    /// The same, with a client of the next one.
    pub(crate) fn serve_client_again(&self, server: Server, args: &[&str]) -> (Server, Connection) {
        let server = self.serve_again(server, args);
        let client = server.connect();
        (server, client)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Starts a server on it and waits until the data is read.
    pub(crate) fn start(&self, args: &[&str]) -> Server {
        Server::start_with(&self.data(), |command| self.dir.keep_output(command.args(args)))
    }

    /// Starts a server on it that need not ever answer.
    pub(crate) fn launch(&self, address: SocketAddr, args: &[&str]) -> Server {
        Server::launch(address, &self.data(), |command| self.dir.keep_output(command.args(args)))
    }

    /// Starts a server that cannot run, and returns what it said on stderr.
    #[track_caller]
    pub(crate) fn fail_to_start(&self, args: &[&str]) -> String {
        let status = self.launch(wire::free_address(), args).wait_for_end();
        assert!(status.code().is_some_and(|code| code != 0), "it ended with {status}: {}", self.stderr());
        assert_eq!(self.dir.read("stdout"), "", "it never said that it listens");
        self.stderr()
    }

    /// What the last server told on stderr.
    pub(crate) fn stderr(&self) -> String {
        self.dir.read("stderr")
    }

    /// Runs one of the binary's tools on it: `check`, `export`.
    pub(crate) fn tool(&self, name: &str) -> Output {
        Command::new(binary()).arg(name).arg(self.data()).output().expect("cannot start the server's binary")
    }

    /// Every file with data.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.data()).expect("cannot list the data directory");
        let paths = entries.map(|entry| entry.expect("cannot list the data directory").path());
        let name = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).expect("a plain name").to_owned();
        let named = paths.map(|path| (name(&path), path)).filter(|(name, _)| !is_without_data(name));
        named.map(|(name, path)| (name, fs::read(path).expect("cannot read a data file"))).collect()
    }

    /// The names of the files that end so.
    pub(crate) fn files_named(&self, end: &str) -> Vec<String> {
        self.files().into_keys().filter(|name| name.ends_with(end)).collect()
    }

    /// Rewrites a file by hand.
    pub(crate) fn change(&self, file: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.data().join(file);
        let mut bytes = fs::read(&path).expect("cannot read a data file");
        change(&mut bytes);
        fs::write(&path, bytes).expect("cannot write a data file");
    }
}

/// Files with which processes keep out of each other's way, and the one that waits to become a segment.
fn is_without_data(name: &str) -> bool {
    ["LOCK", "LOCK.takeover", "FENCE", "holdfast.sock"].contains(&name) || name.starts_with("journal-prepared-")
}

/// How a server ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Kill,
    Term,
    Shutdown(&'static str),
}

impl End {
    pub(crate) const ALL: &[End] =
        &[End::Kill, End::Term, End::Shutdown("NOSAVE"), End::Shutdown("SAVE"), End::Shutdown("")];

    #[track_caller]
    pub(crate) fn of(self, mut server: Server) {
        match self {
            End::Kill => return server.kill(),
            End::Term => server.signal("TERM"),
            End::Shutdown(how) => {
                assert_eq!(server.connect().run(&format!("SHUTDOWN {how}")), Reply::Closed, "{self:?}")
            }
        }
        assert_eq!(server.wait_for_end().code(), Some(0), "{self:?}");
    }
}

/// Fills a server with one of everything, written by every kind of command that leaves something behind.
pub(crate) fn furnish(connection: &mut Connection, field_deadlines: bool) {
    let blob: Vec<u8> = (0..1_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let odd: Vec<u8> = (0..=255).collect();
    connection.run_with("SET blob", &[&blob]);
    connection.run_with("SET", &[&odd, &odd]);
    connection.run_with("HSET odd", &[&odd, &blob[..5000], b"", b"", b"\0", b"\r\n"]);
    connection.run_with("SET", &[&blob[..20_000], b"under a long name"]);
    for line in STRINGS.iter().chain(HASHES).chain(LIBRARIES) {
        succeed(connection, line);
    }
    for number in 0..2000 {
        connection.queue_line(&format!("HSET large field:{number} {}", number * 7));
        connection.queue_line(&format!("SET many:{number} value:{number}"));
    }
    connection.queue_line("PING");
    while connection.read() != Reply::Simple(b"PONG".to_vec()) {}
    if field_deadlines {
        FIELD_DEADLINES.iter().for_each(|line| succeed(connection, line));
    }
    for db in 0..16 {
        succeed(connection, &format!("SELECT {db}"));
        succeed(connection, &format!("MSET own {db} also-in-{db} \"\""));
        succeed(connection, &format!("HSET home db {db}"));
    }
    DATABASES.iter().for_each(|line| succeed(connection, line));
}

#[track_caller]
fn succeed(connection: &mut Connection, line: &str) {
    let reply = connection.run(line);
    assert!(!reply.is_error() && reply != Reply::Closed, "{line}: {reply}");
}

const LIBRARIES: &[&str] = &[
    r##"FUNCTION LOAD "#!lua name=gone\nredis.register_function('gone', function() return 1 end)""##,
    r##"FUNCTION LOAD "#!lua name=kept\nredis.register_function('kept', function() return 1 end)""##,
    r##"FUNCTION LOAD REPLACE "#!lua name=kept\nredis.register_function('kept', function(keys) return keys end)""##,
    "FUNCTION DELETE gone",
];

const STRINGS: &[&str] = &[
    "SET int 42",
    "SET negative -9223372036854775808",
    "SET almost-int 042",
    "SET empty \"\"",
    "SET \"\" \"under the empty name\"",
    "SET embstr \"forty-four bytes are the longest of that sort\"",
    "SET raw \"a string that is longer than the forty-four bytes that Redis keeps beside its header\"",
    "INCRBYFLOAT float 3.25",
    "INCRBY counted 17",
    "DECR counted",
    "APPEND appended one",
    "APPEND appended ,two",
    "APPEND int 0",
    "SETRANGE ranged 5 tail",
    "SETBIT bits 1001 1",
    "BITFIELD fields SET u8 8 200 INCRBY i16 32 -3",
    "BITOP XOR xored bits fields",
    "SETNX once 1",
    "GETSET once 2",
    "MSET m1 a m2 b m3 c",
    "MSETNX m4 d m5 e",
    "DEL m1",
    "UNLINK m2",
    "GETDEL m3",
    "SET ttl v PXAT 33177117420123",
    "SETEX kept-ttl 1000 v",
    "EXPIREAT kept-ttl 33177117420",
    "SET kept-ttl w KEEPTTL",
    "SET lost-ttl v PXAT 33177117420123",
    "SET lost-ttl w",
    "SET persisted v PXAT 33177117420123",
    "PERSIST persisted",
    "SET getex v",
    "GETEX getex PXAT 33177117420124",
    "SET gone v",
    "PEXPIREAT gone 1",
    "RENAME m4 renamed",
    "COPY ttl copied",
    "SET replaced v",
    "COPY copied replaced REPLACE",
];

const HASHES: &[&str] = &[
    "HSET small a 1 b two c -3",
    "HDEL small b",
    "HINCRBY small a 41",
    "HINCRBYFLOAT small f 0.5",
    "HSETNX small n 1",
    "HMSET multi a 1 b 2",
    "HSET wide f \"a value of more than sixty-four bytes, with which a hash is no longer a listpack in Redis\"",
    "HSET emptied a 1",
    "HDEL emptied a",
    "HSET with-ttl a 1",
    "PEXPIREAT with-ttl 33177117420999",
    "HSET was-string v 1",
    "SET was-hash v",
    "RENAME was-string was-hash",
];

const FIELD_DEADLINES: &[&str] = &[
    "HSET fading a 1 b 2 c 3 d 4",
    "HPEXPIREAT fading 33177117420001 FIELDS 2 a b",
    "HPERSIST fading FIELDS 1 b",
    "HEXPIREAT fading 33177117420 FIELDS 1 c",
    "HPEXPIREAT fading 1 FIELDS 1 d",
    "PEXPIREAT fading 33177117420555",
    "HPEXPIREAT large 33177117420001 FIELDS 2 field:7 field:1999",
    "HSET overwritten a 1",
    "HPEXPIREAT overwritten 33177117420001 FIELDS 1 a",
    "HSET overwritten a 2",
    "HSET all-gone a 1",
    "HPEXPIREAT all-gone 1 FIELDS 1 a",
    "COPY fading faded",
    "RENAME faded fading-too",
];

const DATABASES: &[&str] = &[
    "SELECT 3",
    "FLUSHDB",
    "SET after-flush 1",
    "SELECT 4",
    "MOVE own 3",
    "COPY home home DB 3",
    "SWAPDB 5 6",
    "SWAPDB 5 7",
    "SELECT 0",
    "SWAPDB 0 9",
    "SET after-swap 1",
    "SWAPDB 0 9",
];

/// Everything a server holds, readable: database and key to type, deadline and value.
pub(crate) type Contents = BTreeMap<String, String>;

/// Reads all of it. `field_deadlines` is for servers that have such.
pub(crate) fn contents(connection: &mut Connection, field_deadlines: bool) -> Contents {
    let mut contents = Contents::new();
    for db in 0..16 {
        ok(connection, &format!("SELECT {db}"));
        let keys = connection.run("KEYS *");
        for key in keys.items() {
            connection.queue(&[&b"TYPE"[..], key.bytes()]);
            connection.queue(&[&b"PEXPIRETIME"[..], key.bytes()]);
        }
        let kinds: Vec<_> = keys.items().iter().map(|_| (connection.read().to_string(), connection.read())).collect();
        for (key, (kind, _)) in keys.items().iter().zip(&kinds) {
            let command = if kind == "+hash" { "HGETALL" } else { "GET" };
            connection.queue(&[command.as_bytes(), key.bytes()]);
        }
        let values: Vec<_> = keys.items().iter().map(|_| connection.read()).collect();
        for ((key, (kind, deadline)), value) in keys.items().iter().zip(kinds).zip(values) {
            let value = match &value {
                Reply::Array(flat) => fields(connection, key, flat, field_deadlines),
                plain => plain.to_string(),
            };
            contents.insert(format!("{db} {}", quote(key.bytes())), format!("{kind} {deadline} {value}"));
        }
    }
    ok(connection, "SELECT 0");
    // Redis lists them in no order.
    let listed = connection.run("FUNCTION LIST WITHCODE");
    let mut libraries: Vec<String> = listed.items().iter().map(Reply::to_string).collect();
    libraries.sort();
    contents.insert("libraries".into(), libraries.join(" "));
    contents.insert("a function".into(), connection.run("FCALL kept 2 one two").to_string());
    contents
}

/// The fields of a hash in the order of their names, with their deadlines.
fn fields(connection: &mut Connection, key: &Reply, flat: &[Reply], with_deadlines: bool) -> String {
    let pairs: BTreeMap<&[u8], &Reply> = flat.chunks(2).map(|pair| (pair[0].bytes(), &pair[1])).collect();
    let deadlines = if with_deadlines {
        let mut args = split_args("HPEXPIRETIME").expect("it is a word");
        let count = pairs.len().to_string();
        args.extend([key.bytes(), b"FIELDS", count.as_bytes()].map(<[u8]>::to_vec));
        args.extend(pairs.keys().map(|field| field.to_vec()));
        connection.run_args(&args).items().to_vec()
    } else {
        vec![Reply::Integer(-1); pairs.len()]
    };
    let lines =
        pairs.iter().zip(deadlines).map(|((field, value), deadline)| format!("{} {value} {deadline}", quote(field)));
    lines.collect::<Vec<_>>().join("\n  ")
}

/// Two states are equal, or the first differences are shown.
#[track_caller]
pub(crate) fn assert_same(found: &Contents, expected: &Contents, when: &str) {
    let cut = |text: Option<&String>| text.map_or("nothing".to_owned(), |text| text.chars().take(200).collect());
    let names = found.keys().chain(expected.keys().filter(|name| !found.contains_key(*name)));
    let differences: Vec<String> = names
        .filter(|name| found.get(*name) != expected.get(*name))
        .map(|name| format!("{name}: {} instead of {}", cut(found.get(name)), cut(expected.get(name))))
        .collect();
    let shown = differences.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{when}: {} differences\n{shown}", differences.len());
}

/// `master` or `slave`, or what else the server says.
pub(crate) fn role(connection: &mut Connection) -> String {
    match connection.run("ROLE") {
        Reply::Array(parts) => parts[0].text().to_owned(),
        other => other.to_string(),
    }
}

/// The newest batch that a server has applied.
pub(crate) fn position(connection: &mut Connection) -> i64 {
    let role = connection.run("ROLE");
    match role.items()[0].text() {
        "master" => role.items()[1].integer(),
        _ => role.items()[4].integer(),
    }
}

/// Waits until a follower is where its writer is, and returns the digest that both have.
#[track_caller]
pub(crate) fn same_digest(writer: &mut Connection, follower: &mut Connection) -> String {
    let wanted = position(writer);
    eventually("the follower is where the writer is", || position(follower) >= wanted);
    let digest = writer.run("DEBUG DIGEST").to_string();
    assert_eq!(follower.run("DEBUG DIGEST").to_string(), digest);
    digest
}
