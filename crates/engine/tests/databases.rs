//! Commands that work in slices beside commands about whole databases, indexes and settings: a command works in the
//! database in which it began, whatever comes between its slices, and some serial order explains the end.

mod common;
#[path = "databases/long_writes.rs"]
mod long_writes;

use common::peer::{Peer, SLICES_MAX, text};
use common::place::Place;
use common::seed;
use common::state::State;

/// What a family of commands needs to be there. Database 1 has the same names as database 0, and more, and other
/// values.
type Fill = fn(&mut Peer<'_>, usize);

fn records(peer: &mut Peer<'_>, db: usize) {
    for number in 0..560 + 40 * db {
        peer.raw(&format!("HSET r:{number:04} n {number} state old home {db}"));
    }
}

fn cells(peer: &mut Peer<'_>, db: usize) {
    (0..150 + 30 * db).for_each(|number| drop(peer.raw(&format!("CELL.SET c/{number:04} home-{db}"))));
}

fn registers(peer: &mut Peer<'_>, db: usize) {
    let put = |peer: &mut Peer<'_>, number: usize, version: usize| {
        peer.raw(&format!("REG.PUT g:{number:04} {version} home-{db}-{version}"));
    };
    (0..100 + 30 * db).for_each(|number| put(peer, number, 1));
    peer.raw("REG.SNAPSHOT PREFIX g: POSITION here STORE blob");
    // A restore sets some back, and drops others.
    (0..30).for_each(|number| put(peer, number, 2));
    (200..260).for_each(|number| put(peer, number, 1));
}

fn sessions(peer: &mut Peer<'_>, db: usize) {
    for number in 0..8 {
        peer.raw(&format!("SESSION.OPEN ID s:{number} TTL 100000000"));
        (0..30 + 5 * db).for_each(|request| drop(peer.raw(&format!("SESSION.PUSH s:{number} home-{db}-{request}"))));
    }
}

fn runs(peer: &mut Peer<'_>, db: usize) {
    for number in 0..1040 + 20 * db {
        peer.raw(&format!("RUN.APPEND run k{number} StepStarted home-{db} STEP s{number} EVENTID e{number}"));
    }
}

/// What becomes of a command that is ended in the middle.
#[derive(Clone, Copy, PartialEq)]
enum Ended {
    /// It replies what it has changed by then, as if it had been asked for no more with this option.
    Limited(&'static str),
    /// It replies an error. What it had done by then is not there any more.
    Failed,
}

struct Sliced {
    words: &'static str,
    fill: Fill,
    reads_index: bool,
    ended: Ended,
    /// A command on a key that it is about.
    change: &'static str,
}

const fn sliced(words: &'static str, fill: Fill, ended: Ended, change: &'static str) -> Sliced {
    Sliced { words, fill, reads_index: false, ended, change }
}

const fn on_index(words: &'static str, ended: Ended) -> Sliced {
    Sliced { words, fill: records, reads_index: true, ended, change: "RENAME r:0400 elsewhere" }
}

const COMMANDS: &[Sliced] = &[
    on_index("IDX.RANGE i -inf +inf KEYS", Ended::Failed),
    on_index("ZRANGE i 0 -1", Ended::Failed),
    on_index("ZREVRANGEBYSCORE i +inf -inf", Ended::Failed),
    on_index("ZRANGESTORE copy i 0 -1", Ended::Failed),
    on_index("ZUNION 2 i other WITHSCORES", Ended::Failed),
    on_index("SWEEP i BEFORE 100000000 WHERE state 1 old SET 1 state new", Ended::Limited("LIMIT")),
    on_index("CLAIM 1 i WHERE state 1 old SET 1 state new KEYS", Ended::Limited("COUNT")),
    on_index("CLAIM 1 i WHERE state 1 none SET 1 state new", Ended::Limited("COUNT")),
    sliced("CELL.DROP c/", cells, Ended::Failed, "MOVE c/0100 1"),
    sliced("CELL.FORK c/ d/", cells, Ended::Failed, "CELL.DEL c/0100"),
    sliced("REG.SNAPSHOT PREFIX g:", registers, Ended::Failed, "RENAME g:0099 elsewhere"),
    sliced("REG.SNAPSHOT STORE kept", registers, Ended::Failed, "DEL g:0099"),
    sliced("REG.RESTORE FROM blob", registers, Ended::Failed, "REG.PUT g:0500 9 new"),
    sliced("REG.RESTORE FROM blob MERGE", registers, Ended::Failed, "REG.PUT g:0500 9 new"),
    sliced("SESSION.RETRY 100000000000000", sessions, Ended::Limited("LIMIT"), "SESSION.ACK s:7 1"),
    sliced("RUN.EVENTS run LIMIT 100000", runs, Ended::Failed, "RUN.APPEND run new RunCompleted new EVENTID e"),
    sliced("RUN.PROJECT run", runs, Ended::Failed, "RUN.APPEND run new RunCompleted new EVENTID e"),
    sliced("RUN.SNAPSHOT run", runs, Ended::Failed, "RUN.APPEND run new RunCompleted new EVENTID e"),
];

/// What another client sends. `#` is the change of a key that the command is about.
const OTHERS: &[&str] = &[
    "SWAPDB 0 1",
    "SWAPDB 2 0",
    "SWAPDB 1 2",
    "FLUSHDB",
    "FLUSHALL",
    "FLUSHDB in 1",
    "IDX.DROP i",
    "DEBUG RELOAD",
    "CONFIG SET notify-keyspace-events KEA",
    "MOVE x:1 1",
    "RENAME x:2 y:2",
    "HSET x:3 n 3",
    "#",
];

impl Sliced {
    fn place(&self) -> Place {
        let place = Place::new(16, 3, &[]);
        let mut peer = Peer::new(&place, 0);
        // What would be left to the background thread is done here, and later on as a test asks for it.
        assert!(!engine::serve_background_slice(&place.engine, &mut peer.worker));
        for words in ["MULTI", "IDX.CREATE i PREFIX 1 r: FIELD n", "EXEC"] {
            peer.raw(words);
        }
        for db in [0, 1] {
            peer.raw(&format!("SELECT {db}"));
            (self.fill)(&mut peer, db);
            (0..5).for_each(|number| drop(peer.raw(&format!("SET x:{db}{number} {db}"))));
            peer.raw(&format!("HSET x:{} home {db}", db + 1));
            peer.raw(&format!("ZADD other 1 r:0001 2 home-{db}"));
        }
        drop(peer);
        place
    }

    /// How it would have been asked for, if it ended as it did on purpose; `None` when it has done nothing.
    fn as_it_ended(&self, reply: &str, was_ended: bool) -> Option<String> {
        match self.ended {
            _ if reply.starts_with('-') || was_ended && reply == "*0\r\n" => None,
            Ended::Limited(option) if was_ended => {
                let count = reply.lines().next().and_then(|line| line.strip_prefix('*'));
                Some(format!("{} {option} {}", self.words, count.expect("an array")))
            }
            Ended::Limited(option) => Some(format!("{} {option} 100000", self.words)),
            Ended::Failed => Some(self.words.to_owned()),
        }
    }

    /// A reply without what is left open: of requests that were sent at the same time, any may come first, and the
    /// registers of a blob are in the order of the table, which another key may change.
    fn comparable(&self, reply: &str) -> Vec<String> {
        if self.words.starts_with("REG.SNAPSHOT") {
            return registers_in(reply);
        }
        let mut items: Vec<String> = reply.split("\r\n*3\r\n").map(str::to_owned).collect();
        if self.words.starts_with("SESSION.RETRY") {
            items.iter_mut().for_each(|item| *item = item.trim_end().to_owned());
            items.sort();
        }
        items
    }

    /// Everything in the databases after the command. A stored blob is compared by its registers.
    fn end(&self, place: &Place) -> (Vec<String>, State) {
        let stored = self.words.strip_prefix("REG.SNAPSHOT STORE ").map(|key| {
            let mut peer = Peer::new(place, 2);
            let blob = peer.raw(&format!("GET {key}"));
            peer.raw(&format!("DEL {key}"));
            registers_in(&blob)
        });
        (stored.unwrap_or_default(), State::of(&place.engine))
    }

    /// What is sent.
    fn request(&self) -> String {
        match self.ended {
            Ended::Limited(option) => format!("{} {option} 100000", self.words),
            Ended::Failed => self.words.to_owned(),
        }
    }

    /// True when another command ends this one.
    fn is_ended_by(&self, other: &str) -> bool {
        matches!(other, "FLUSHDB" | "FLUSHALL") || other == "IDX.DROP i" && self.reads_index
    }
}

/// The registers of a blob in the order of their names, each with its value.
fn registers_in(blob: &str) -> Vec<String> {
    const VALUE: &str = "home-0-1";
    let mut registers: Vec<String> = Vec::new();
    for register in blob.split("g:").filter(|register| register.contains("home-")) {
        let value = register.find("home-").expect("it has a value");
        registers.push(register[..value + VALUE.len()].to_owned());
    }
    registers.sort();
    registers
}

/// Has another client send a command.
fn send(peer: &mut Peer<'_>, command: &Sliced, other: &str) -> String {
    match other.strip_suffix(" in 1") {
        Some(other) => {
            peer.raw("SELECT 1");
            let reply = peer.raw(other);
            peer.raw("SELECT 0");
            reply
        }
        None if other == "#" => peer.raw(command.change),
        None => peer.raw(other),
    }
}

/// Runs a command with others between its slices: of each, after which slice it comes. How many slices there were.
fn check(command: &Sliced, others: &[(usize, &'static str)]) -> usize {
    let place = command.place();
    let (mut peer, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
    // A slice is over at the first look at the clock.
    place.set_look_ns(500_000);
    let (request, mut slices, mut sent, mut was_ended) = (command.request(), 0, Vec::new(), false);
    let reply = loop {
        assert!(slices < SLICES_MAX, "{request} does not come to an end");
        slices += 1;
        if let Some(reply) = peer.step(&request) {
            break text(reply);
        }
        for (_, words) in others.iter().filter(|(after, _)| *after == slices) {
            let reply = send(&mut other, command, words);
            let is_refused = reply.starts_with("-BUSY");
            // A command about keys may meet names that a fork makes.
            let is_exchange = words.starts_with("SWAPDB") && words.contains('0');
            assert_eq!(is_refused, is_exchange, "{request} and {words}: {reply}");
            if !is_refused {
                was_ended |= command.is_ended_by(words);
                sent.push((*words, reply));
            }
        }
    };
    let told = || format!("{request} with {others:?}: {}", &reply[..reply.len().min(200)]);
    assert!(was_ended || !reply.starts_with('-'), "{}", told());
    let end = command.end(&place);
    // The database is free again.
    assert_eq!(other.raw("SWAPDB 0 1"), "+OK\r\n", "{}", told());
    let as_it_ended = command.as_it_ended(&reply, was_ended);
    let is_explained = (0..=sent.len()).any(|position| {
        let place = command.place();
        let mut peer = Peer::new(&place, 0);
        let mut agrees = true;
        for at in 0..=sent.len() {
            if let Some(words) = as_it_ended.as_ref().filter(|_| at == position) {
                agrees &= command.comparable(&peer.raw(words)) == command.comparable(&reply);
            }
            if let Some((words, reply)) = sent.get(at) {
                agrees &= send(&mut peer, command, words) == *reply;
            }
        }
        agrees && command.end(&place) == end
    });
    assert!(is_explained, "no serial order explains {}, {slices} slices", told());
    slices
}

#[test]
fn every_pair_of_commands_has_a_serial_order() {
    let mut random = fastrand::Rng::with_seed(seed());
    let takes_all = std::env::var_os("HOLDFAST_TEST_ROUNDS").is_some();
    for command in COMMANDS {
        let slices = check(command, &[]);
        assert!(slices > 2, "{}: {slices} slices", command.words);
        // Without a number of rounds two of the others, so that all pairs are met in a few runs.
        let others = random.choose_multiple(OTHERS, if takes_all { OTHERS.len() } else { 2 });
        for other in others {
            check(command, &[(1 + slices / 3, other)]);
        }
    }
}

#[test]
fn random_commands_between_slices_have_a_serial_order() {
    let mut random = fastrand::Rng::with_seed(seed());
    for _ in 0..8 {
        let command = random.choice(COMMANDS).expect("there are some");
        let mut others: Vec<(usize, &str)> = Vec::new();
        for _ in 0..random.usize(1..5) {
            let other = *random.choice(OTHERS).expect("there are some");
            // Of a key at a time it is said that it is changed at once, not of two of them.
            let is_second = other == "#" && others.iter().any(|(_, one)| *one == "#");
            if !is_second {
                others.push((random.usize(1..12), other));
            }
        }
        others.sort();
        check(command, &others);
    }
}

#[test]
fn a_disconnected_client_leaves_no_database_in_use() {
    for command in COMMANDS {
        let place = command.place();
        let (mut peer, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
        place.set_look_ns(500_000);
        assert_eq!(peer.step(&command.request()), None, "{}", command.words);
        assert!(other.raw("SWAPDB 0 1").starts_with("-BUSY"), "{}", command.words);
        let is_in_background = peer.blocked.is_some();
        drop(engine::depart(&place.engine, &mut peer.client));
        drop(peer);
        // What is done in the background goes on to its end.
        let mut worker = place.engine.worker(0);
        let slices =
            (0..SLICES_MAX).find(|_| !engine::serve_background_slice(&place.engine, &mut worker)).expect("it ends");
        assert_eq!(slices > 0, is_in_background, "{}", command.words);
        assert_eq!(other.raw("SWAPDB 0 1"), "+OK\r\n", "{}", command.words);
    }
}

#[test]
fn a_restore_of_many_registers_stays_in_its_database() {
    const MANY: usize = 10_001;
    let fill = |_: &mut Peer<'_>, _: usize| {};
    let command = sliced("REG.RESTORE FROM blob", fill, Ended::Failed, "");
    for flush_after in [None, Some(3), Some(300)] {
        let place = command.place();
        let (mut peer, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
        for number in 0..MANY {
            peer.raw(&format!("REG.PUT g:{number} 1 v"));
        }
        peer.raw("REG.SNAPSHOT PREFIX g: STORE blob");
        for number in 0..MANY {
            peer.raw(&format!("REG.PUT g:{number} 2 w"));
        }
        other.raw("SELECT 1");
        other.raw("REG.PUT g:1 7 stays");
        place.set_look_ns(500_000);
        let mut slices = 0;
        let reply = loop {
            if let Some(reply) = peer.step(command.words) {
                break text(reply);
            }
            slices += 1;
            assert!(slices < SLICES_MAX, "it does not come to an end");
            assert!(other.raw("SWAPDB 0 1").starts_with("-BUSY"), "after {slices} slices");
            if flush_after == Some(slices) {
                other.raw("SELECT 0");
                other.raw("FLUSHDB");
                other.raw("SELECT 1");
            }
        };
        assert!(slices >= flush_after.unwrap_or(300), "{slices}");
        match flush_after {
            None => assert!(reply.starts_with(&format!("*2\r\n:{MANY}\r\n")), "{reply}"),
            Some(_) => assert!(reply.starts_with("-ERR the database was emptied"), "{reply}"),
        }
        match flush_after {
            None => assert_eq!(peer.raw("REG.GET g:77"), "*2\r\n$1\r\nv\r\n$1\r\n1\r\n"),
            Some(_) => assert_eq!(peer.raw("DBSIZE"), ":0\r\n"),
        }
        assert_eq!(other.raw("REG.GET g:1"), "*2\r\n$5\r\nstays\r\n$1\r\n7\r\n");
        assert_eq!(other.raw("SWAPDB 0 1"), "+OK\r\n");
    }
}
