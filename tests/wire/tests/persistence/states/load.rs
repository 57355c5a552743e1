//! Writers and readers that go on whatever becomes of the server, and note every answer. Knows replies and connections that
//! end; refuses to know the state of the journal.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wire::{Connection, Random, Reply, Server};

use super::ledger::{Entry, Ledger, Names, Outcome, Seen, Write, Written, number};
use crate::support::eventually;

pub(super) const WRITERS: usize = 3;
const READERS: usize = 2;
const PIPELINE_MAX: usize = 24;
/// A writer rests this long between pipelines, so that what is written does not depend much on how fast the machine is.
const REST: Duration = Duration::from_millis(1);

/// A load that is on.
pub(super) struct Load {
    shared: Arc<Shared>,
    writers: Vec<JoinHandle<Written>>,
    readers: Vec<JoinHandle<Vec<Seen>>>,
}

struct Shared {
    address: SocketAddr,
    walk: usize,
    /// See [`super::ledger`].
    period: AtomicU64,
    /// Pipelines that were answered, refused or lost.
    rounds: AtomicU64,
    /// The server is about to end: a connection that ends is not replaced, since another server may come to have its port.
    ending: AtomicBool,
}

impl Load {
    pub(super) fn start(server: &Server, walk: usize, random: &mut Random) -> Load {
        let shared = Arc::new(Shared {
            address: server.address(),
            walk,
            period: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
            ending: AtomicBool::new(false),
        });
        let spawn_writer = |writer| {
            let (shared, random) = (shared.clone(), Random::new(random.next_u64()));
            thread::spawn(move || write(&shared, writer, random))
        };
        let writers = (0..WRITERS).map(spawn_writer).collect();
        let spawn_reader = |_| {
            let shared = shared.clone();
            thread::spawn(move || read(&shared))
        };
        let readers = (0..READERS).map(spawn_reader).collect();
        Load { shared, writers, readers }
    }

    pub(super) fn period(&self) -> u64 {
        self.shared.period.load(SeqCst)
    }

    pub(super) fn next_period(&self) {
        self.shared.period.fetch_add(1, SeqCst);
    }

    /// Waits until some more pipelines were sent, whatever the reply was.
    pub(super) fn flow(&self, rounds: u64) {
        let until = self.shared.rounds.load(SeqCst) + rounds;
        eventually("the load goes on", || self.shared.rounds.load(SeqCst) >= until);
    }

    /// To be said before the server is told to end.
    pub(super) fn end_is_near(&self) {
        self.shared.ending.store(true, SeqCst);
    }

    /// It did not end after all.
    pub(super) fn end_is_put_off(&self) {
        self.shared.ending.store(false, SeqCst);
    }

    /// What was noted, once the server is gone.
    pub(super) fn finish(self, promised: Option<u64>, story: String) -> Ledger {
        self.end_is_near();
        let writers = self.writers.into_iter().map(|writer| writer.join().expect("a writer failed")).collect();
        let mut seen: Vec<Seen> = (0..WRITERS).map(|_| Seen::default()).collect();
        for reader in self.readers {
            for (all, one) in seen.iter_mut().zip(reader.join().expect("a reader failed")) {
                let pairs =
                    [(&mut all.counter, one.counter), (&mut all.register, one.register), (&mut all.fields, one.fields)];
                for (all, one) in pairs {
                    one.into_iter().for_each(|(period, value)| Seen::note(all, period, value));
                }
            }
        }
        Ledger { writers, seen, promised, story }
    }
}

impl Shared {
    /// A new connection; `None` once the server ends.
    fn connect(&self) -> Option<Connection> {
        loop {
            if self.ending.load(SeqCst) {
                return None;
            }
            match Connection::open(self.address) {
                Ok(connection) => return Some(connection),
                Err(_) => thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}

fn write(shared: &Shared, writer: usize, mut random: Random) -> Written {
    let mut written = Written { names: Names { walk: shared.walk, writer }, entries: Vec::new() };
    while let Some(mut connection) = shared.connect() {
        while write_some(shared, &mut connection, &mut written, &mut random) {
            shared.rounds.fetch_add(1, SeqCst);
            thread::sleep(REST);
        }
        shared.rounds.fetch_add(1, SeqCst);
    }
    written
}

/// Sends one pipeline; false when the connection has ended.
fn write_some(shared: &Shared, connection: &mut Connection, written: &mut Written, random: &mut Random) -> bool {
    let count = 1 + random.below(PIPELINE_MAX);
    let first = written.entries.len();
    for number in first..first + count {
        let write = random.pick(&Write::ALL);
        connection.queue_line(&write.line(written.names, number));
        written.entries.push(Entry { write, outcome: Outcome::Unknown, period: 0 });
    }
    // A refusal that is the last word of a connection is another thing than one after which it goes on.
    connection.queue(&["PING"]);
    let mut refused = None;
    for number in first..=first + count {
        let reply = connection.read();
        let period = shared.period.load(SeqCst);
        if reply == Reply::Closed {
            return false;
        }
        if let Some(number) = refused.take() {
            let entry: &mut Entry = &mut written.entries[number];
            (entry.outcome, entry.period) = (Outcome::Refused, period);
        }
        let outcome = match reply {
            Reply::Simple(text) if text == b"PONG" && number == first + count => return true,
            Reply::Simple(text) if text == b"OK" => Outcome::Answered(0),
            Reply::Integer(count) => Outcome::Answered(count),
            Reply::Error(text) if text.starts_with(b"MISCONF ") => {
                refused = Some(number);
                continue;
            }
            other => panic!("writer {}, {number}: {other}", written.names.writer),
        };
        let entry = &mut written.entries[number];
        (entry.outcome, entry.period) = (outcome, period);
    }
    true
}

/// Reads what writers write. IMPORTANT: as long as the server lives, what was seen never goes back.
fn read(shared: &Shared) -> Vec<Seen> {
    let mut seen: Vec<Seen> = (0..WRITERS).map(|_| Seen::default()).collect();
    let mut newest = [[-1; 3]; WRITERS];
    while let Some(mut connection) = shared.connect() {
        'connected: loop {
            for writer in 0..WRITERS {
                let names = Names { walk: shared.walk, writer };
                connection.queue(&["GET", &names.counter()]);
                connection.queue(&["GET", &names.register()]);
                connection.queue(&["HLEN", &names.hash()]);
            }
            for writer in 0..WRITERS {
                for what in 0..3 {
                    let reply = connection.read();
                    let period = shared.period.load(SeqCst);
                    let value = match &reply {
                        Reply::Closed => break 'connected,
                        // What was not kept is not shown.
                        Reply::Error(text) if text.starts_with(b"MISCONF ") => continue,
                        Reply::Integer(value) => *value,
                        other => number(other).unwrap_or(-1),
                    };
                    let before = &mut newest[writer][what];
                    assert!(value >= *before, "writer {writer}, {what}: {value} was seen after {before}");
                    *before = value;
                    let Seen { counter, register, fields } = &mut seen[writer];
                    Seen::note([counter, register, fields][what], period, value);
                }
            }
            // Enough to see what goes on, and something is left for the others.
            thread::sleep(Duration::from_millis(1));
        }
    }
    seen
}
