//! An index is made of many records while others write: it misses none, and they need not wait.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Connection, Random, Reply};

use crate::process::Holdfast;
use crate::support::{Condition, Definition, Fields, Home, Records, drop_indexes, fields, ok, start};

const RECORDS: usize = 20_000;
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
        for number in 0..4 {
            let (mut writer, mut random) = (session.connect(), Random::new(seed + number));
            let (served, stop) = (&served, &stop);
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    // Whoever reads an index needs the whole keyspace for a moment.
                    let command = if number == 3 { "ZCARD small".into() } else { change(&mut random, RECORDS) };
                    let reply = writer.run(&command);
                    assert!(!reply.is_error() || reply.to_string() == "-ERR no such key", "{reply}");
                    served.fetch_add(1, Relaxed);
                }
            });
        }
        let mut other = session.connect();
        let (before, began) = (served.load(Relaxed), Instant::now());
        connection.queue_line(&INDEX.command());
        connection.flush();
        // The first may not have come yet: then it is the second that makes the index, and the first is refused.
        let second = INDEX.create(&mut other).to_string();
        let first = connection.read().to_string();
        let (filled, took) = (served.load(Relaxed), began.elapsed());
        let refused = "-ERR the name 'i' is taken by an index";
        assert_eq!(BTreeSet::from([first.as_str(), second.as_str()]), BTreeSet::from(["+OK", refused]));
        thread::sleep(took);
        let (meanwhile, undisturbed) = (filled - before, served.load(Relaxed) - filled);
        assert_eq!(PLAIN.create(&mut other).to_string(), "+OK");
        stop.store(true, Relaxed);
        // Slower they may be, but they do not stand still.
        assert!(meanwhile * 50 >= undisturbed, "{meanwhile} commands were served meanwhile, then {undisturbed}");
    });
    let records = walk(&mut connection);
    INDEX.assert_exact(&mut connection, &records, "filled under load");
    PLAIN.assert_exact(&mut connection, &records, "filled under load");
    // Records are among them whose field is no number: no index has them, and HFIND finds them all the same.
    let searches =
        ["FILTER n gt 4", "FILTER n eq 4", "FILTER n ge 4 FILTER n le x", "FILTER n lt 2 FILTER state eq new"];
    let find = |connection: &mut Connection| -> Vec<BTreeSet<Vec<u8>>> {
        let find = |search| walk_with(connection, &format!("HFIND r: {search} KEYS"), |key| key.bytes().to_vec());
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
    let Some(session) = start() else { return };
    let (mut connection, mut other) = (session.connect(), session.connect());
    fill(&mut connection, RECORDS / 3);
    let mut dropped_early = 0;
    for _ in 0..5 {
        connection.queue_line(&INDEX.command());
        connection.flush();
        while other.run("IDX.DROP i").integer() == 0 {}
        match connection.read().to_string().as_str() {
            "+OK" => {}
            "-ERR the index was dropped before it was complete" => dropped_early += 1,
            reply => panic!("{reply}"),
        }
        assert_eq!(other.run("IDX.LIST").to_string(), "[]");
        assert_eq!(other.run("ZCARD i").to_string(), ":0");
        assert_eq!(other.run("IDX.RANGE i 0 1").to_string(), "-ERR there is no index 'i'");
        ok(&mut other, "SET i x");
        assert_eq!(INDEX.create(&mut other).to_string(), "-ERR the name 'i' is taken by a key");
        assert_eq!(other.run("DEL i").integer(), 1);
    }
    assert!(dropped_early > 0, "it was full each time");
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
    const FILLINGS: usize = 6;
    /// On a busy machine, a filling may be over before others get a core at all.
    const FILLINGS_MAX: usize = 60;
    let Some(server) = Holdfast::start(&["--shards", "1"]) else { return };
    let (mut connection, mut other) = (server.connect(), server.connect());
    fill_with_numbers(&mut connection, RECORDS / 2);
    let (mut turns, mut fillings) = (0, 0);
    // In one step, a filling would let nobody have more than one turn, before it.
    while fillings < FILLINGS || (turns <= fillings && fillings < FILLINGS_MAX) {
        let stays = fillings % ODD;
        fillings += 1;
        (0..ODD).for_each(|number| drop(connection.run(&format!("HSET r:odd:{number} n none"))));
        connection.queue_line(&PLAIN.command());
        connection.flush();
        for number in (0..ODD).filter(|number| *number != stays) {
            let is_half_full = other.run("ZCARD plain").to_string() == "-ERR the index 'plain' is not complete yet";
            turns += usize::from(is_half_full);
            other.run(&format!("HSET r:odd:{number} n 1"));
        }
        assert_eq!(connection.read().to_string(), "+OK");
        let found: BTreeSet<String> =
            walk_with(&mut connection, "HFIND r: FILTER n gt 7 KEYS", |key| key.text().to_owned());
        assert_eq!(found, BTreeSet::from([format!("r:odd:{stays}")]));
        assert_eq!(connection.run("IDX.DROP plain").integer(), 1);
    }
    assert!(turns > fillings, "others had {turns} turns in {fillings} fillings");
}

#[test]
fn an_index_is_whole_after_a_kill_or_not_there() {
    let Some(home) = Home::fresh() else { return };
    let mut random = Random::from_env();
    let mut server = home.start();
    fill(&mut server.connect(), RECORDS / 3);
    for round in 0..6 {
        let mut connection = server.connect();
        connection.run("IDX.DROP i");
        connection.queue_line(&INDEX.command());
        connection.flush();
        let writer = write_until_it_ends(server.address(), Random::new(random.next_u64()));
        let is_acknowledged = round == 5;
        if is_acknowledged {
            assert_eq!(connection.read().to_string(), "+OK");
        } else {
            thread::sleep(Duration::from_millis(random.below(40) as u64));
        }
        server.kill();
        writer.join().expect("a writer failed");
        server = home.start();
        let mut connection = server.connect();
        let listed = connection.run("IDX.LIST").items().iter().any(|name| name.text() == "i");
        println!("round {round}: the index is {}", if listed { "there" } else { "not there" });
        if listed {
            let records = walk(&mut connection);
            INDEX.assert_exact(&mut connection, &records, &format!("after kill {round}"));
        } else {
            assert!(!is_acknowledged, "an index is lost that was acknowledged");
            assert_eq!(connection.run("ZCARD i").integer(), 0);
            ok(&mut connection, "SET i x");
            assert_eq!(connection.run("DEL i").integer(), 1);
        }
    }
}

fn write_until_it_ends(address: SocketAddr, mut random: Random) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let Ok(mut connection) = Connection::open(address) else { return };
        while connection.run(&change(&mut random, RECORDS / 3)) != Reply::Closed {}
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
    walk_with(connection, "HFIND r:", record)
}

fn walk_with<T, All: Default + Extend<T>>(
    connection: &mut Connection,
    search: &str,
    read: impl Fn(&Reply) -> T,
) -> All {
    let (mut all, mut cursor) = (All::default(), "0".to_owned());
    loop {
        let reply = connection.run(&format!("{search} LIMIT 10000 CURSOR {cursor}"));
        all.extend(reply.items()[1].items().iter().map(&read));
        cursor = reply.items()[0].text().to_owned();
        if cursor == "0" {
            return all;
        }
    }
}
