//! What the tests of Holdfast's own types share: an empty Holdfast, tables of requests and replies, payloads made by hand, pages, clients
//! that race, and a server that is killed and started again. Knows nothing of what a type promises.

use std::collections::BTreeSet;
use std::env;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::connection::Connection;
use crate::events::check_events;
use crate::random::Random;
use crate::reply::Reply;
use crate::server::{Server, fresh_dir};
use crate::session::{Product, Session};
use crate::skip::skip;

/// An empty server; `None`, and the test is skipped, where it is not a Holdfast.
#[track_caller]
pub fn start() -> Option<Session> {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        skip("only Holdfast has these commands");
        return None;
    }
    Some(session)
}

/// Runs a transcript against such a server.
#[track_caller]
pub fn check(transcript: &str) {
    if let Some(session) = start() {
        session.check(transcript);
    }
}

/// [`check_events`] against such a server.
#[track_caller]
pub fn check_own_events(lines: &str) {
    if start().is_some() {
        check_events(lines);
    }
}

/// Runs a test's random commands as often as `HOLDFAST_TEST_STEPS` says, or so often.
pub fn steps(default: usize) -> usize {
    env::var("HOLDFAST_TEST_STEPS").map_or(default, |given| given.parse().expect("HOLDFAST_TEST_STEPS is a number"))
}

/// Sends many commands, so many at a time that no buffer fills up on both sides.
#[track_caller]
pub fn run_all(connection: &mut Connection, lines: impl IntoIterator<Item = String>) -> Vec<Reply> {
    let lines: Vec<String> = lines.into_iter().collect();
    lines.chunks(500).flat_map(|lines| connection.pipeline(lines)).collect()
}

/// Runs a task on several connections at once, each with its number, and returns what they made.
pub fn at_once<T: Send>(session: &Session, clients: usize, task: impl Fn(Connection, usize) -> T + Sync) -> Vec<T> {
    let connections: Vec<Connection> = (0..clients).map(|_| session.connect()).collect();
    let task = &task;
    thread::scope(|scope| {
        let start = |(number, connection)| scope.spawn(move || task(connection, number));
        let tasks: Vec<_> = connections.into_iter().enumerate().map(start).collect();
        tasks.into_iter().map(|task| task.join().expect("a client has failed")).collect()
    })
}

/// Waits until so many clients are blocked.
pub fn wait_for_blocked(connection: &mut Connection, count: usize) {
    let line = format!("blocked_clients:{count}\r");
    while !connection.run("INFO clients").text().contains(&line) {
        thread::yield_now();
    }
}

/// A payload for RESTORE with the tag of a type of ours, in version 10 of the format. Its checksum is right, whatever the image is.
pub fn payload(tag: u8, image: &[u8]) -> Vec<u8> {
    let len = image.len();
    // Lengths below 64 are a byte, those below 16384 are two.
    let len: &[u8] = if len < 64 { &[len as u8] } else { &[0x40 | (len >> 8) as u8, len as u8] };
    let mut bytes = [&[200, tag], len, image, &10u16.to_le_bytes()].concat();
    let checksum = crc64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Redis's checksum of a payload: CRC-64 of Jones, reflected, beginning with zero.
fn crc64(bytes: &[u8]) -> u64 {
    let step = |crc: u64| if crc & 1 == 1 { crc >> 1 ^ 0x95ac_9329_ac4b_c9b5 } else { crc >> 1 };
    bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ u64::from(*byte), |crc, _| step(crc)))
}

/// A key that is restored from its DUMP is read as before, and dumped as before; a payload that is damaged is refused.
#[track_caller]
pub fn check_dump(connection: &mut Connection, key: &str, readings: &[String]) {
    let payload = connection.run_args(&["DUMP", key]);
    let expected = connection.pipeline(readings);
    assert_eq!(connection.run_args(&["DEL", key]).integer(), 1, "{key}");
    let restored = connection.run_args(&[b"RESTORE", key.as_bytes(), b"0", payload.bytes()]);
    assert_eq!(restored.to_string(), "+OK", "{key}");
    for ((reading, expected), found) in readings.iter().zip(expected).zip(connection.pipeline(readings)) {
        assert!(found == expected, "{reading}: {} and not {}", found.excerpt(), expected.excerpt());
    }
    assert!(connection.run_args(&["DUMP", key]) == payload, "the second dump of {key}");
    let len = payload.bytes().len();
    for at in [0, 1, 2, len / 2, len - 11, len - 1] {
        let mut damaged = payload.bytes().to_vec();
        damaged[at] ^= 1;
        let reply = connection.run_args(&[b"RESTORE", b"damaged" as &[u8], b"0", &damaged]);
        assert_eq!(reply.to_string(), "-ERR DUMP payload version or checksum are wrong", "byte {at} of {key}");
    }
}

/// All names that a command like `CELL.LIST PREFIX x` lists, in pages of so many, each name once. Something happens between two pages.
#[track_caller]
pub fn pages(connection: &mut Connection, list: &str, limit: usize, mut between: impl FnMut(&mut Connection)) -> usize {
    let (mut found, mut cursor, mut listed) = (BTreeSet::new(), "0".to_owned(), 0);
    loop {
        let reply = connection.run(&format!("{list} CURSOR {cursor} LIMIT {limit}"));
        cursor = reply.items()[0].text().to_owned();
        let page = reply.items()[1].items();
        assert!(page.len() <= limit + 2, "a page of {}", page.len());
        listed += page.len();
        found.extend(page.iter().map(|name| name.bytes().to_vec()));
        between(connection);
        if cursor == "0" {
            assert_eq!(found.len(), listed, "a name came twice");
            return found.len();
        }
    }
}

/// What a server needs to lose nothing that it has acknowledged, and to tell the signature of its data.
pub const SURVIVES: &[&str] = &["--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes"];

/// Random writes, snapshots now and then, and kills: what was there before a kill is there after it, by DEBUG DIGEST and by all readings.
#[track_caller]
pub fn survives_kills(mut queue_some_write: impl FnMut(&mut Connection, &mut Random), readings: &[String]) {
    let Some(own) = OwnServer::start(SURVIVES) else { return };
    let mut random = Random::from_env();
    let state = |connection: &mut Connection| {
        let digest = connection.run("DEBUG DIGEST").to_string();
        [vec![digest], connection.pipeline(readings).iter().map(Reply::to_string).collect()].concat()
    };
    for round in 0..2 {
        let mut connection = own.connect();
        for _ in 0..25 {
            (0..50).for_each(|_| queue_some_write(&mut connection, &mut random));
            (0..50).for_each(|_| drop(connection.read()));
            if random.one_in(15) {
                connection.run("BGSAVE");
            }
        }
        let expected = state(&mut connection);
        own.kill_and_start();
        assert_eq!(state(&mut own.connect()), expected, "after kill {round}");
    }
}

/// A Holdfast of a test's own that is killed and started again, with its data in a directory that goes with it.
pub struct OwnServer {
    dir: PathBuf,
    args: &'static [&'static str],
    /// `None` only when no start has succeeded since the last kill.
    server: Mutex<Option<Server>>,
}

impl OwnServer {
    /// `None`, and the test is skipped, where the server to be tested is given.
    pub fn start(args: &'static [&'static str]) -> Option<OwnServer> {
        if env::var_os("HOLDFAST_TEST_ADDR").is_some() {
            skip("this test starts a server of its own");
            return None;
        }
        let dir = fresh_dir();
        let server = Mutex::new(Some(Server::start(&dir, args)));
        Some(OwnServer { dir, args, server })
    }

    /// Connects, after the start if the server is being started again.
    pub fn connect(&self) -> Connection {
        self.server().as_ref().expect("the server has started").connect()
    }

    /// Kills it as a crash would, and starts it again.
    pub fn kill_and_start(&self) {
        let mut server = self.server();
        server.take().expect("the server has started").kill();
        *server = Some(Server::start(&self.dir, self.args));
    }

    fn server(&self) -> MutexGuard<'_, Option<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        drop(self.server().take());
        // A directory that cannot be removed does no harm.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Is set even if the test fails: threads that wait for it must not wait for ever.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
