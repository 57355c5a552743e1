//! An index is made of many records while others write: it misses none, and they need not wait.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Connection, Random, Reply, Server};

use crate::process::Holdfast;
use crate::support::{
    Condition, Definition, Fields, Home, Records, drop_indexes, eventually, fields, ok, start, walk_with,
};

const RECORDS: usize = 8_000;
const WRITERS: u64 = 4;
const OPEN: Condition = Condition { only: false, field: "state", values: &["done"] };
const INDEX: Definition = Definition { name: "i", prefixes: &["r:"], field: "n", condition: Some(OPEN), stamp: false };
const PLAIN: Definition = Definition { name: "plain", prefixes: &["r:"], field: "n", condition: None, stamp: false };

#[test]
fn an_index_is_filled_while_others_write() {
    let Some(session) = start() else { return };
    let seed = Random::from_env().next_u64();
    let mut connection = session.connect();
    fill(&mut connection, RECORDS);
    ok(&mut connection, "IDX.CREATE small PREFIX 1 small: FIELD n");
    let (served, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for number in 0..WRITERS {
            let (mut writer, mut random) = (session.connect(), Random::new(seed + number));
            let (served, stop) = (&served, &stop);
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    // A reader of an index needs the whole keyspace for a moment.
                    let command = if number == 3 { "ZCARD small".into() } else { change(&mut random, RECORDS) };
                    let reply = writer.run(&command);
                    assert!(!reply.is_error() || reply.to_string() == "-ERR no such key", "{reply}");
                    served.fetch_add(1, Relaxed);
                }
            });
        }
        let mut other = session.connect();
        // A server that stood still would serve no more than what was under way and one command more of each.
        until("others are served while an index is filled", || {
            let before = served.load(Relaxed);
            connection.queue_line(&INDEX.command());
            connection.flush();
            // The first may not have come yet: then it is the second that makes the index, and the first is refused.
            let second = INDEX.create(&mut other).to_string();
            let first = connection.read().to_string();
            let meanwhile = served.load(Relaxed) - before;
            let refused = "-ERR the name 'i' is taken by an index";
            assert_eq!(BTreeSet::from([first.as_str(), second.as_str()]), BTreeSet::from(["+OK", refused]));
            let enough = meanwhile > 2 * WRITERS as usize;
            if !enough {
                assert_eq!(other.run("IDX.DROP i").integer(), 1);
            }
            enough
        });
        assert_eq!(PLAIN.create(&mut other).to_string(), "+OK");
        stop.store(true, Relaxed);
    });
    let records = walk(&mut connection);
    INDEX.assert_exact(&mut connection, &records, "filled under load");
    PLAIN.assert_exact(&mut connection, &records, "filled under load");
    // Records are among them whose field is no number: no index has them, and HFIND finds them all the same.
    let searches =
        ["FILTER n gt 4", "FILTER n eq 4", "FILTER n ge 4 FILTER n le x", "FILTER n lt 2 FILTER state eq new"];
    let find = |connection: &mut Connection| -> Vec<BTreeSet<Vec<u8>>> {
        let find =
            |search| walk_with(connection, &format!("HFIND r: {search} KEYS LIMIT 10000"), |key| key.bytes().to_vec());
        searches.map(find).to_vec()
    };
    let with_indexes = find(&mut connection);
    drop_indexes(&mut connection);
    for ((with, without), search) in with_indexes.iter().zip(find(&mut connection)).zip(searches) {
        assert!(*with == without, "{search} finds {} records with indexes and {} without", with.len(), without.len());
    }
}

#[test]
fn an_index_can_be_dropped_before_it_is_full() {
    const DROPS: usize = 20;
    let Some(session) = start() else { return };
    let (mut connection, mut other) = (session.connect(), session.connect());
    fill(&mut connection, RECORDS);
    until("an index is dropped before it is full", || {
        connection.queue_line(&INDEX.command());
        connection.flush();
        // In one pipeline: the server need not wait for this test to be given a core.
        let dropped = loop {
            (0..DROPS).for_each(|_| other.queue_line("IDX.DROP i"));
            let dropped: i64 = (0..DROPS).map(|_| other.read().integer()).sum();
            if dropped > 0 {
                break dropped;
            }
        };
        assert_eq!(dropped, 1);
        let early = match connection.read().to_string().as_str() {
            "+OK" => false,
            "-ERR the index was dropped before it was complete" => true,
            reply => panic!("{reply}"),
        };
        assert_eq!(other.run("IDX.LIST").to_string(), "[]");
        assert_eq!(other.run("ZCARD i").to_string(), ":0");
        assert_eq!(other.run("IDX.RANGE i 0 1").to_string(), "-ERR there is no index 'i'");
        ok(&mut other, "SET i x");
        assert_eq!(INDEX.create(&mut other).to_string(), "-ERR the name 'i' is taken by a key");
        assert_eq!(other.run("DEL i").integer(), 1);
        early
    });
    // One that is being filled has its name, though it cannot be read.
    connection.queue_line(&INDEX.command());
    connection.flush();
    let refused = loop {
        match other.run("ZADD i 1 x") {
            Reply::Error(text) => break String::from_utf8(text).expect("plain words"),
            _ => drop(other.run("DEL i")),
        }
    };
    assert!(refused.contains("is an index"), "{refused}");
    let read = other.run("ZCARD i").to_string();
    assert!(read == "-ERR the index 'i' is not complete yet" || read.starts_with(':'), "{read}");
    // If a key of its name was there when it came, it was refused; it comes again.
    if connection.read().to_string() != "+OK" {
        assert_eq!(INDEX.create(&mut connection).to_string(), "+OK");
    }
    let records = walk(&mut connection);
    INDEX.assert_exact(&mut connection, &records, "after others were dropped");
}

/// While an index is filled, fields become numbers that were none. Those that stay what they are have to be found, though
/// no index has them. All in one shard, which is filled in many steps, between which others have their turn.
#[test]
fn a_shard_is_filled_in_steps() {
    const ODD: usize = 40;
    let Some(server) = Holdfast::start(&["--shards", "1"]) else { return };
    let (mut connection, mut other) = (server.connect(), server.connect());
    fill_with_numbers(&mut connection, RECORDS);
    let mut stays = 0;
    until("others have turns while a shard is filled", || {
        stays = (stays + 1) % ODD;
        (0..ODD).for_each(|number| drop(connection.run(&format!("HSET r:odd:{number} n none"))));
        connection.queue_line(&PLAIN.command());
        connection.flush();
        // In one pipeline: the server need not wait for this test to be given a core.
        let others = || (0..ODD).filter(|number| *number != stays);
        for number in others() {
            other.queue_line("ZCARD plain");
            other.queue_line(&format!("HSET r:odd:{number} n 1"));
        }
        let mut turns = 0;
        for _ in others() {
            turns += usize::from(other.read().to_string() == "-ERR the index 'plain' is not complete yet");
            other.read();
        }
        assert_eq!(connection.read().to_string(), "+OK");
        let found: BTreeSet<String> =
            walk_with(&mut connection, "HFIND r: FILTER n gt 7 KEYS LIMIT 10000", |key| key.text().to_owned());
        assert_eq!(found, BTreeSet::from([format!("r:odd:{stays}")]));
        assert_eq!(connection.run("IDX.DROP plain").integer(), 1);
        // If it were filled in one step, others would have at most one turn, before it.
        turns > 1
    });
}

#[test]
fn an_index_is_whole_after_a_kill_or_not_there() {
    let Some(home) = Home::fresh() else { return };
    let mut random = Random::from_env();
    let server = home.start();
    fill(&mut server.connect(), RECORDS);
    let mut server = Some(server);
    let mut kill_once = |is_acknowledged| {
        let killed = server.take().expect("there is always one");
        let (again, has_index) = kill_with_a_new_index(&home, killed, &mut random, is_acknowledged);
        server = Some(again);
        println!("the index is {}", if has_index { "there" } else { "not there" });
        has_index
    };
    until("a kill comes before the index is full", || !kill_once(false));
    assert!(kill_once(true), "an index is lost that was acknowledged");
}

/// Makes an index, kills the server and starts it again; whether the index is there then.
fn kill_with_a_new_index(home: &Home, server: Server, random: &mut Random, is_acknowledged: bool) -> (Server, bool) {
    let mut connection = server.connect();
    connection.run("IDX.DROP i");
    let writer = write_until_it_ends(server.address(), Random::new(random.next_u64()));
    connection.queue_line(&INDEX.command());
    connection.flush();
    if is_acknowledged {
        assert_eq!(connection.read().to_string(), "+OK");
    } else {
        // Until it is begun: then it is not complete, or it has records.
        let mut other = server.connect();
        eventually("the index is begun", || other.run("ZCARD i") != Reply::Integer(0));
    }
    server.kill();
    writer.join().expect("a writer failed");
    let server = home.start();
    let mut connection = server.connect();
    let listed = connection.run("IDX.LIST").items().iter().any(|name| name.text() == "i");
    if listed {
        let records = walk(&mut connection);
        INDEX.assert_exact(&mut connection, &records, "after a kill");
    } else {
        assert_eq!(connection.run("ZCARD i").integer(), 0);
        ok(&mut connection, "SET i x");
        assert_eq!(connection.run("DEL i").integer(), 1);
    }
    (server, listed)
}

/// Does something again until it went as it should: how threads take turns is not for a test to say.
fn until(what: &str, mut went: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !went() {
        assert!(Instant::now() < deadline, "never: {what}");
    }
}

fn write_until_it_ends(address: SocketAddr, mut random: Random) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let Ok(mut connection) = Connection::open(address) else { return };
        while connection.run(&change(&mut random, RECORDS)) != Reply::Closed {}
    })
}

/// Records of every sort under `r:`.
fn fill(connection: &mut Connection, count: usize) {
    const AT_ONCE: usize = 5000;
    for from in (0..count).step_by(AT_ONCE) {
        let end = (from + AT_ONCE).min(count);
        for number in from..end {
            let score = if number % 10 == 9 { "none".to_owned() } else { (number % 7).to_string() };
            let state = if number % 3 == 0 { "done" } else { "new" };
            connection.queue_line(&format!("HSET r:{number} n {score} state {state}"));
        }
        (from..end).for_each(|_| assert_eq!(connection.read().integer(), 2));
    }
}

fn fill_with_numbers(connection: &mut Connection, count: usize) {
    (0..count).for_each(|number| connection.queue_line(&format!("HSET r:{number} n {}", number % 7)));
    (0..count).for_each(|_| assert_eq!(connection.read().integer(), 1));
}

/// A command that changes some record.
fn change(random: &mut Random, count: usize) -> String {
    let (key, other) = (random.below(count), random.below(count));
    match random.below(10) {
        0..3 => format!("HSET r:{key} n {}", random.below(9)),
        3 => format!("HSET r:{key} n none"),
        4 => format!("HSET r:{key} state {}", random.pick(&["done", "new"])),
        5 => format!("HDEL r:{key} n"),
        6 => format!("DEL r:{key}"),
        7 => format!("RENAME r:{key} r:{other}"),
        8 => format!("RENAME r:{key} away:{other}"),
        _ => format!("HSET r:new:{key} n {} state new", random.below(9)),
    }
}

/// All records under the prefix. A look at every key in its turn would take its time; HFIND without a filter is one.
fn walk(connection: &mut Connection) -> Records {
    let record =
        |record: &Reply| -> (Vec<u8>, Fields) { (record.items()[0].bytes().to_vec(), fields(&record.items()[1])) };
    walk_with(connection, "HFIND r: LIMIT 10000", record)
}

/// One of several clients makes the index, and the others are answered when it can be read.
#[test]
fn of_those_who_ask_for_an_absent_index_at_once_one_makes_it() {
    const CLIENTS: usize = 8;
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    fill(&mut connection, RECORDS);
    let records = connection.run("DBSIZE").integer();
    let create = PLAIN.command().replacen("PREFIX", "IFABSENT PREFIX", 1);
    for _ in 0..5 {
        let mut clients: Vec<Connection> = (0..CLIENTS).map(|_| session.connect()).collect();
        for client in &mut clients {
            client.queue_line(&create);
            client.queue_line("ZCARD plain");
            client.flush();
        }
        let made: i64 = clients.iter_mut().map(|client| client.read().integer()).sum();
        assert_eq!(made, 1, "{CLIENTS} clients made the index so often");
        let seen: BTreeSet<i64> = clients.iter_mut().map(|client| client.read().integer()).collect();
        assert!(seen.len() == 1 && *seen.first().unwrap() > 0, "{seen:?} of {records} records");
        assert_eq!(connection.run("IDX.DROP plain").integer(), 1);
    }
}

/// An index that is made if it is absent is there after a crash, and asking for it again is no batch.
#[test]
fn an_absent_index_is_in_the_journal_once() {
    let Some(home) = Home::fresh() else { return };
    let create = PLAIN.command().replacen("PREFIX", "IFABSENT PREFIX", 1);
    let server = home.start();
    let mut connection = server.connect();
    ok(&mut connection, "HMSET r:1 n 1");
    assert_eq!(connection.run(&create).integer(), 1);
    let sequence = |connection: &mut Connection| {
        let info = connection.run("INFO persistence").to_string();
        info.split("journal_sequence:").nth(1).and_then(|rest| rest.split("\\r").next().map(str::to_owned))
    };
    let before = sequence(&mut connection).expect("INFO tells of the journal");
    assert_eq!(connection.run(&create).integer(), 0);
    assert!(connection.run("IDX.CREATE plain IFABSENT PREFIX 1 other: FIELD n").is_error());
    assert_eq!(sequence(&mut connection).as_ref(), Some(&before));
    server.kill();
    let server = home.start();
    let mut connection = server.connect();
    assert_eq!(connection.run(&create).integer(), 0);
    assert_eq!(connection.run("ZCARD plain").integer(), 1);
}
