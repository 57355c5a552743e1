//! TXN.BEGIN READONLY: cells read as they were when it began, whatever is written meanwhile, by commands, scripts,
//! transactions, expiry and the batches of a writer.
//!
//! Prints its seed; `HOLDFAST_TEST_SEED=… cargo test -p engine --test read_transactions` repeats the random ones.

mod common;

use common::place::{Asker, Place};
use common::seed;
use fastrand::Rng;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

const NAMES: [&str; 12] = ["a", "b", "c", "d/1", "d/2", "d/3", "e/1", "e/2", "e/3", "{x}1", "{x}2", "f"];

/// Cells of a database as a client sees them without a transaction.
struct Copied {
    /// GETV and HISTORY of each name.
    cells: Vec<(Vec<u8>, Vec<u8>)>,
    list: BTreeSet<Vec<u8>>,
}

fn is_cell(getv: &[u8]) -> bool {
    getv.starts_with(b"*3")
}

fn copied(asker: &mut Asker<'_>) -> Copied {
    let cells = NAMES.map(|name| (asker.say(&format!("CELL.GETV {name}")), asker.say(&format!("CELL.HISTORY {name}"))));
    Copied { cells: cells.to_vec(), list: listed(asker, 1000) }
}

/// All names that CELL.LIST gives, step by step.
fn listed(asker: &mut Asker<'_>, limit: usize) -> BTreeSet<Vec<u8>> {
    let (mut names, mut cursor) = (BTreeSet::new(), "0".to_owned());
    loop {
        let reply = asker.say(&format!("CELL.LIST CURSOR {cursor} LIMIT {limit}"));
        let text = String::from_utf8(reply).expect("the names are text");
        let mut lines = text.split("\r\n").filter(|line| !line.starts_with(['*', '$']) && !line.is_empty());
        cursor = lines.next().unwrap_or_else(|| panic!("a cursor: {text}")).to_owned();
        for name in lines {
            assert!(names.insert(name.as_bytes().to_vec()), "{name} is listed twice");
        }
        if cursor == "0" {
            return names;
        }
    }
}

/// Compares some of what a read-only transaction reads with the copy.
fn compare(asker: &mut Asker<'_>, copied: &Copied, random: &mut Rng) {
    for (name, (getv, history)) in NAMES.iter().zip(&copied.cells) {
        let now = asker.say(&format!("CELL.GETV {name}"));
        match is_cell(getv) {
            true => {
                assert_eq!(now.escape_ascii().to_string(), getv.escape_ascii().to_string(), "GETV {name}");
                let now = asker.say(&format!("CELL.HISTORY {name}"));
                assert_eq!(now.escape_ascii().to_string(), history.escape_ascii().to_string(), "HISTORY {name}");
            }
            false => {
                assert!(now == b"$-1\r\n" || now.starts_with(b"-WRONGTYPE"), "{name}: {}", now.escape_ascii());
            }
        }
    }
    let there = || NAMES.iter().zip(&copied.cells).filter(|(_, (getv, _))| is_cell(getv));
    if there().next().is_some() {
        let names: Vec<&str> = there().map(|(name, _)| *name).collect();
        let expected: Vec<u8> = there().flat_map(|(_, (getv, _))| getv.clone()).collect();
        let reply = asker.say(&format!("CELL.MGET {}", names.join(" ")));
        let head = format!("*{}\r\n", names.len()).into_bytes();
        assert_eq!(reply.escape_ascii().to_string(), [head, expected].concat().escape_ascii().to_string(), "MGET");
    }
    assert_eq!(listed(asker, 1 + random.usize(..4)), copied.list, "LIST");
}

/// A request that changes something, mostly cells.
fn change(random: &mut Rng) -> String {
    let mut name = || NAMES[random.usize(..NAMES.len())];
    let (one, other) = (name(), name());
    let number = random.u32(..1000);
    match random.u8(..40) {
        0..=11 => format!("CELL.SET {one} {number}"),
        12 => format!("CELL.SET {one} {number} PX {}", 1 + random.u32(..50)),
        13 => format!("CELL.INIT {one} {number}"),
        14 => format!("CELL.CAS {one} {} {number}", random.u8(..4)),
        15 => format!("CELL.DEL {one}"),
        16 => format!("DEL {one} {other}"),
        17 => format!("RENAME {one} {other}"),
        18 => format!("COPY {one} {other}"),
        19 => format!("COPY {one} {other} DB 1"),
        20 => format!("MOVE {one} 1"),
        21 => format!("PEXPIRE {one} {}", random.u8(..100)),
        22 => format!("PERSIST {one}"),
        23 => format!("PEXPIRE {one} -1"),
        24 => "SWAPDB 0 1".into(),
        25 => {
            if random.u8(..4) == 0 {
                "FLUSHALL".into()
            } else {
                "FLUSHDB".into()
            }
        }
        26 => format!("SET {one} text"),
        27 => format!("HSET {one} f v"),
        28 => "CELL.FORK d/ e/".into(),
        29 => "CELL.FORK e/ d/".into(),
        30 => "CELL.DROP e/".into(),
        31 => format!("EVAL redis.call('CELL.SET',KEYS[1],{number})redis.call('DEL',KEYS[2]) 2 {one} {other}"),
        32 => format!("MULTI|CELL.SET {one} {number}|CELL.SET {other} {number}|EXEC"),
        33 => format!("TXN.BEGIN|CELL.GET {one}|CELL.SET {other} {number}|CELL.DEL {one}|TXN.COMMIT"),
        34 => format!("SESSION.OPEN ID s|SESSION.CALL s {} LOW 1 CELL.SET {one} {number}", number + 1),
        35 => "SELECT 1".into(),
        36 => "SELECT 0".into(),
        37 => "DEBUG RELOAD".into(),
        _ => format!("CELL.SET {one} {number}"),
    }
}

#[test]
fn a_read_only_transaction_reads_what_was_there_when_it_began() {
    let seed = seed();
    let mut random = Rng::with_seed(seed);
    for round in 0..24 {
        let shards = [1, 4, 16][round % 3];
        let place = Place::new(shards, 6, &[("txn-timeout", "100000000"), ("cell-max-versions", "5")]);
        let (mut writer, mut other) = (place.asker(0), place.asker(1));
        let mut readers: Vec<(Asker<'_>, Option<(Copied, u64)>)> = (2..5).map(|at| (place.asker(at), None)).collect();
        for _ in 0..150 {
            match random.u8(..10) {
                0 => {
                    let (reader, begun) = &mut readers[random.usize(..3)];
                    match begun.take() {
                        None => {
                            let db = random.u8(..2);
                            reader.say(&format!("SELECT {db}"));
                            other.say(&format!("SELECT {db}"));
                            assert_eq!(reader.say("TXN.BEGIN READONLY"), b"+OK\r\n");
                            // What has expired is removed by looking at it, which the transaction must not notice.
                            let sequence = engine::Persistence::tail(&*place.kept);
                            *begun = Some((copied(&mut other), sequence));
                        }
                        Some((copied, sequence)) => {
                            compare(reader, &copied, &mut random);
                            let reply = match random.bool() {
                                true => reader.say("TXN.ROLLBACK") == b"+OK\r\n",
                                false => reader.say("TXN.COMMIT") == format!(":{sequence}\r\n").into_bytes(),
                            };
                            assert!(reply, "the transaction ends");
                        }
                    }
                }
                1 => {
                    if let (reader, Some((copied, _))) = &mut readers[random.usize(..3)] {
                        compare(reader, copied, &mut random);
                    }
                }
                2 => place.pass_ms(random.u64(..40)),
                3 => writer.expire(),
                _ => change(&mut random).split('|').for_each(|request| drop(writer.say(request))),
            }
        }
        for (reader, begun) in &mut readers {
            if let Some((copied, _)) = begun {
                compare(reader, copied, &mut random);
                assert!(place.engine.instants.any());
                reader.say("TXN.ROLLBACK");
            }
        }
        assert!(!place.engine.instants.any(), "an instant is left");
    }
}

const CELLS: usize = 50;
const START: i64 = 100;

/// Moves an amount between two cells in one batch, in one of several ways. False when it has lost a race.
fn transfer(asker: &mut Asker<'_>, random: &mut Rng) -> bool {
    let from = random.usize(..CELLS);
    let to = (from + 1 + random.usize(..CELLS - 1)) % CELLS;
    let amount = random.i64(1..20);
    match random.u8(..2) {
        0 => {
            let script = "local a=redis.call('CELL.GET',KEYS[1]) local b=redis.call('CELL.GET',KEYS[2]) \
                          redis.call('CELL.SET',KEYS[1],a-ARGV[1]) redis.call('CELL.SET',KEYS[2],b+ARGV[1]) return 'ok'";
            let (from, to, amount) = (format!("n:{from}"), format!("n:{to}"), amount.to_string());
            let args = ["EVAL", script, "2", &from, &to, &amount].map(|arg| arg.as_bytes().to_vec());
            asker.ask(&args) == b"$2\r\nok\r\n"
        }
        _ => {
            asker.say("TXN.BEGIN");
            let values = [from, to].map(|cell| number(&asker.say(&format!("CELL.GET n:{cell}"))));
            if let [Some(a), Some(b)] = values {
                asker.say(&format!("CELL.SET n:{from} {}", a - amount));
                asker.say(&format!("CELL.SET n:{to} {}", b + amount));
            }
            asker.say("TXN.COMMIT").starts_with(b":")
        }
    }
}

/// The number in a bulk string.
fn number(reply: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(reply).ok()?;
    text.split("\r\n").nth(1)?.parse().ok()
}

/// The sum of all cells in one read-only transaction, half of them read one by one.
fn sum(asker: &mut Asker<'_>, random: &mut Rng) -> i64 {
    assert_eq!(asker.say("TXN.BEGIN READONLY"), b"+OK\r\n");
    let mut sum = 0;
    let by_one = random.usize(..=CELLS);
    for cell in 0..by_one {
        let reply = asker.say(&format!("CELL.GET n:{cell}"));
        sum += number(&reply).unwrap_or_else(|| panic!("{}", reply.escape_ascii()));
    }
    if by_one < CELLS {
        let names: Vec<String> = (by_one..CELLS).map(|cell| format!("n:{cell}")).collect();
        let reply = String::from_utf8(asker.say(&format!("CELL.MGET {}", names.join(" ")))).expect("text");
        let (_, cells) = reply.split_once("\r\n").expect("an array");
        for cell in cells.split("*3\r\n").skip(1) {
            sum += number(cell.as_bytes()).expect("a value");
        }
    }
    assert!(asker.say("TXN.COMMIT").starts_with(b":"), "it conflicts with no write");
    sum
}

#[test]
fn readers_of_fifty_cells_beside_eight_writers_see_every_sum_whole() {
    const READERS: usize = 2;
    let transactions = if cfg!(debug_assertions) { 150 } else { 5_000 };
    let seed = seed();
    let place = Place::new(16, 8 + READERS, &[]);
    let mut first = place.asker(0);
    (0..CELLS).for_each(|cell| drop(first.say(&format!("CELL.SET n:{cell} {START}"))));
    let (is_over, moved, lost) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let (place, is_over, moved, lost) = (&place, &is_over, &moved, &lost);
        for writer in 0..8 {
            scope.spawn(move || {
                let (mut asker, mut random) = (place.asker(writer), Rng::with_seed(seed ^ writer as u64));
                while !is_over.load(SeqCst) {
                    let count = if transfer(&mut asker, &mut random) { moved } else { lost };
                    count.fetch_add(1, SeqCst);
                }
            });
        }
        let readers: Vec<_> = (0..READERS)
            .map(|reader| {
                scope.spawn(move || {
                    let (mut asker, mut random) = (place.asker(8 + reader), Rng::with_seed(seed ^ 99 ^ reader as u64));
                    for _ in 0..transactions {
                        assert_eq!(sum(&mut asker, &mut random), START * CELLS as i64);
                    }
                })
            })
            .collect();
        let results: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        is_over.store(true, SeqCst);
        results.into_iter().for_each(|result| result.expect("every sum is whole"));
    });
    assert!(moved.load(SeqCst) > 0, "nothing was written meanwhile");
    assert!(!place.engine.instants.any());
    let conflicts = place.engine.transactions.conflicts.load(SeqCst);
    assert_eq!(conflicts, lost.load(SeqCst) as u64, "only writers have lost races, against each other");
}

#[test]
fn a_follower_reads_at_an_instant_while_it_applies_batches() {
    let seed = seed();
    let mut random = Rng::with_seed(seed);
    for shards in [1, 8] {
        let (leader, place) = (Place::new(shards, 1, &[]), Place::new(shards, 3, &[]));
        let mut writer = leader.asker(0);
        let mut replay = place.replay(None).go_live(place.engine.worker(0));
        let (mut reader, mut other) = (place.asker(1), place.asker(2));
        let (mut applied, mut begun) = (0, None);
        for _ in 0..400 {
            change(&mut random).split('|').for_each(|request| drop(writer.say(request)));
            for (sequence, batch) in leader.kept.batches_after(applied) {
                replay.batch(sequence, &batch).expect("what was recorded can be applied");
                applied = sequence;
            }
            match (&begun, random.u8(..8)) {
                (None, 0) => {
                    assert_eq!(reader.say("TXN.BEGIN READONLY"), b"+OK\r\n");
                    begun = Some(copied(&mut other));
                }
                (Some(copied), 0) => {
                    compare(&mut reader, copied, &mut random);
                    assert!(reader.say("TXN.COMMIT").starts_with(b":"));
                    begun = None;
                }
                _ => {}
            }
        }
        drop((reader, other));
    }
}

/// What was kept for a transaction is freed when it ends, in whatever way, and counts as its client's until then.
#[test]
fn what_is_kept_is_bounded_and_freed() {
    let place = Place::new(4, 2, &[("txn-max-bytes", "1mb")]);
    let (mut reader, mut writer) = (place.asker(0), place.asker(1));
    let large = "x".repeat(300_000);
    for name in ["a", "b", "c", "d"] {
        writer.say(&format!("CELL.SET {name} {large}"));
    }
    let kept = |reader: &Asker<'_>| reader.client.handle.memory_bytes();
    for end in ["TXN.COMMIT", "TXN.ROLLBACK", "RESET"] {
        let before = kept(&reader);
        assert_eq!(reader.say("TXN.BEGIN READONLY"), b"+OK\r\n");
        writer.say("CELL.SET a 1");
        writer.say(&format!("CELL.SET a {large}"));
        assert!(kept(&reader) > before + 300_000, "it counts as its client's memory");
        assert!(!reader.say(end).starts_with(b"-"), "{end}");
        assert!(kept(&reader) < before + 10_000 && !place.engine.instants.any(), "{end}");
        writer.say("DEL a");
        writer.say(&format!("CELL.SET a {large}"));
    }
    assert_eq!(reader.say("TXN.BEGIN READONLY"), b"+OK\r\n");
    for name in ["a", "b", "c"] {
        writer.say(&format!("CELL.DEL {name}"));
        assert!(reader.say("CELL.GET d").starts_with(b"$300000"));
    }
    writer.say("CELL.DEL d");
    assert!(!place.engine.instants.any(), "what cannot be kept is let go at once");
    let known = reader.client.depends_on;
    for request in ["CELL.GET a", "CELL.GET other", "PING", "TXN.COMMIT"] {
        assert!(reader.say(request).starts_with(b"-CONFLICT cells that changed"), "{request}");
    }
    assert!(reader.client.depends_on > known, "the conflict waits for the batch that it reveals");
    assert_eq!(reader.say("PING"), b"+PONG\r\n");
    // A conflict that TXN.COMMIT finds first.
    writer.say(&format!("CELL.SET a {large}{large}{large}{large}"));
    assert_eq!(reader.say("TXN.BEGIN READONLY"), b"+OK\r\n");
    writer.say("FLUSHALL");
    assert!(reader.say("TXN.COMMIT").starts_with(b"-CONFLICT cells that changed"));
    assert_eq!(place.engine.transactions.conflicts.load(SeqCst), 2);
    assert_eq!(reader.say("CELL.GET a"), b"$-1\r\n");
}

/// A reply at an instant does not wait for batches after it.
#[test]
fn a_reply_depends_on_its_instant_alone() {
    let place = Place::new(1, 2, &[]);
    let (mut reader, mut writer) = (place.asker(0), place.asker(1));
    writer.say("CELL.SET a 1");
    let first = writer.client.last_batch;
    assert_eq!(reader.say("TXN.BEGIN READONLY"), b"+OK\r\n");
    writer.say("CELL.SET a 2");
    writer.say("CELL.SET b 2");
    assert_eq!(reader.say("CELL.GET a"), b"$1\r\n1\r\n");
    assert_eq!(reader.say("CELL.GET b"), b"$-1\r\n");
    assert_eq!(reader.client.depends_on, first);
    assert_eq!(reader.say("TXN.COMMIT"), format!(":{first}\r\n").into_bytes());
    assert_eq!(reader.client.depends_on, first);
}

/// What a hook has done before it failed is undone without effects, SWAPDB too.
#[test]
fn a_hook_that_is_undone_is_not_seen() {
    const LIBRARY: &str = "#!lua name=l\nredis.register_function('f', function() redis.call('cell.set', 'a', '2') \
                           redis.call('swapdb', 0, 1) redis.call('cell.set', 'a', '3') error('no') end)";
    let place = Place::new(4, 2, &[]);
    let (mut reader, mut writer) = (place.asker(0), place.asker(1));
    writer.say("CELL.SET a 1");
    writer.ask(&["FUNCTION", "LOAD", LIBRARY].map(|arg| arg.as_bytes().to_vec()));
    assert_eq!(writer.say("SESSION.HOOK CREATED f"), b"+OK\r\n");
    assert_eq!(reader.say("TXN.BEGIN READONLY"), b"+OK\r\n");
    assert!(writer.say("SESSION.OPEN ID s").starts_with(b"-"));
    assert_eq!(writer.say("CELL.GET a"), b"$1\r\n1\r\n");
    for _ in 0..2 {
        assert_eq!(reader.say("CELL.GET a"), b"$1\r\n1\r\n");
        assert_eq!(listed(&mut reader, 10), BTreeSet::from([b"a".to_vec()]));
        assert!(writer.say("CELL.SET a 4").starts_with(b":"));
        assert!(writer.say("CELL.SET b 4").starts_with(b":"));
    }
    assert!(reader.say("TXN.COMMIT").starts_with(b":"));
    assert_eq!(reader.say("CELL.GET a"), b"$1\r\n4\r\n");
}
