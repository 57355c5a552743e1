//! CELL.FORK and REG.RESTORE of many keys, which take many slices: what others may do meanwhile, and that the outcome is of one instant.

use crate::common::peer::{Peer, flat};
use crate::common::place::Place;
use crate::common::seed;
use fastrand::Rng;

const FORK: &str = "CELL.FORK a/ b/";
const CELLS: usize = 300;

/// An empty place. What would be left to the background thread is done when a test asks for it.
fn empty(settings: &[(&str, &str)]) -> Place {
    let place = Place::new(16, 3, settings);
    assert!(!engine::serve_background_slice(&place.engine, &mut place.engine.worker(0)));
    place
}

/// A place with cells `a/0`, `a/1` and so on.
fn with_cells(value: usize) -> Place {
    let place = empty(&[]);
    let mut peer = Peer::new(&place, 0);
    (0..CELLS).for_each(|number| drop(peer.say(&format!("CELL.SET a/{number} {value}"))));
    drop(peer);
    // A slice is over at the first look at the clock.
    place.set_look_ns(500_000);
    place
}

/// Begins a command, and does the first slices of it.
fn begin(peer: &mut Peer<'_>, words: &str, slices: usize) {
    (0..slices).for_each(|_| assert_eq!(peer.step(words), None, "{words} is over"));
}

/// Ends a command that has begun, and shows its reply.
fn end(peer: &mut Peer<'_>, words: &str) -> String {
    peer.raw(words).trim_end().to_owned()
}

#[test]
fn what_a_fork_makes_is_reserved_until_it_ends() {
    const BUSY: &str = "-BUSY a CELL.FORK is writing there: try again when it has ended";
    let place = with_cells(1);
    let (mut forker, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
    // A transaction that has written there before cannot be committed.
    let mut transaction = Peer::new(&place, 2);
    ["TXN.BEGIN", "SET other v", "CELL.SET b/x v"].iter().for_each(|words| drop(transaction.say(words)));
    begin(&mut forker, FORK, 5);
    for refused in [
        "CELL.SET b/x v",
        "SET b/x v",
        "HSET b/x f v",
        "DEL b/1",
        "RENAME a/1 b/x",
        "COPY a/1 b/x",
        "MSET z 1 b/x 1",
        "EXPIRE b/1 100",
        "CELL.DROP b/",
        "CELL.DROP b/y/",
        "CELL.FORK b/ c/",
        "CELL.FORK z/ b/y/",
        "EVAL \"return redis.call('set', KEYS[1], 'v')\" 1 b/x",
    ] {
        let reply = other.ask(refused);
        assert!(reply.starts_with(BUSY) || reply.contains("BUSY a CELL.FORK"), "{refused}: {reply}");
    }
    assert!(other.ask("SWAPDB 0 1").starts_with("-BUSY a command works in slices"));
    assert_eq!(["MULTI", "SET kept v", "SET b/x v", "EXEC"].map(|words| other.ask(words))[3], format!("OK {BUSY}"));
    // In other databases, and under other names, all is as always.
    for (words, reply) in [
        ("SELECT 1", "OK"),
        ("SET b/x v", "OK"),
        ("MOVE b/x 0", BUSY),
        ("COPY b/x b/x DB 0", BUSY),
        ("SELECT 0", "OK"),
        ("SET c/x v", "OK"),
        // A transaction goes on when a write of it is refused.
        ("TXN.BEGIN", "OK"),
        ("SET kept w", "OK"),
        ("CELL.SET b/x v", BUSY),
        ("GET kept", "w"),
    ] {
        assert_eq!(other.ask(words), reply, "{words}");
    }
    assert!(!other.ask("TXN.COMMIT").starts_with('-'));
    assert!(!other.ask("CELL.GET b/1").starts_with('-'));
    assert_eq!(transaction.ask("TXN.COMMIT"), BUSY);
    assert_eq!(transaction.ask("EXISTS other b/x"), "0");
    assert_eq!(end(&mut forker, FORK), format!(":{CELLS}"));
    assert_eq!(other.ask("CELL.SET b/x v"), "1");
}

#[test]
fn a_fork_of_an_emptied_database_ends() {
    for how in ["FLUSHDB", "FLUSHALL"] {
        let place = with_cells(1);
        let (mut forker, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
        begin(&mut forker, FORK, 5);
        assert_eq!(other.ask(how), "OK");
        let ended = "-ERR the database was emptied or exchanged while the command worked: send it again";
        assert_eq!(end(&mut forker, FORK), ended);
        assert_eq!((other.ask("DBSIZE"), other.ask("SET b/x v")), ("0".into(), "OK".into()));
    }
}

/// Between its slices amounts move between cells, and whole cells to other names, each time in one step; cells are removed and made again.
/// The sum of all cells is the same at every instant, and so it is in the fork.
#[test]
fn a_fork_is_of_one_instant() {
    const MOVE: &str = "local function amount(name) return tonumber(redis.call('cell.get', name) or 0) end \
        local some = math.min(amount(KEYS[1]), tonumber(ARGV[1])) \
        if KEYS[1] == KEYS[2] or some == 0 then return 0 end \
        local left = amount(KEYS[1]) - some \
        if left == 0 then redis.call('cell.del', KEYS[1]) else redis.call('cell.set', KEYS[1], left, 'EX', 1000) end \
        redis.call('cell.set', KEYS[2], amount(KEYS[2]) + some, 'PERSIST') return some";
    let mut random = Rng::with_seed(seed());
    for _ in 0..4 {
        let place = with_cells(10);
        let (mut forker, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
        let (copied, slices) = forker.ask_in_slices(FORK, || {
            for _ in 0..random.usize(..5) {
                let (from, to, amount) = (random.usize(..CELLS), random.usize(..CELLS * 3 / 2), random.u8(1..30));
                other.say(&format!("EVAL \"{MOVE}\" 2 a/{from} a/{to} {amount}"));
            }
        });
        assert!(slices > 5, "{slices}");
        let names: Vec<String> = (0..CELLS * 3 / 2).map(|number| format!("b/{number}")).collect();
        let amounts = names.iter().filter_map(|name| other.ask(&format!("CELL.GET {name}")).parse::<usize>().ok());
        let amounts: Vec<usize> = amounts.collect();
        assert_eq!((flat(copied), amounts.iter().sum()), (amounts.len().to_string(), CELLS * 10));
    }
}

/// More than one batch has.
const MANY: usize = 10_001;
const RESTORE: &str = "REG.RESTORE FROM check";
const RESTORING: &str = "-BUSY a REG.RESTORE is under way in this database: try again when it has ended";

/// A stored snapshot of registers of version 5, while those that are there have version 2, and `extra` is not in it.
fn with_registers() -> Place {
    let place = empty(&[("proto-max-bulk-len", "64mb")]);
    let mut peer = Peer::new(&place, 0);
    let put = |peer: &mut Peer<'_>, words: &str| {
        (0..MANY).for_each(|number| drop(peer.say(&format!("REG.PUT r{number} {words}"))));
    };
    put(&mut peer, "5 saved");
    peer.raw("REG.SNAPSHOT POSITION here STORE check");
    (0..MANY).for_each(|number| drop(peer.say(&format!("DEL r{number}"))));
    put(&mut peer, "2 old");
    peer.say("REG.PUT extra 1 dropped");
    drop(peer);
    place
}

/// The value and the version of a register.
fn held(peer: &mut Peer<'_>, number: usize) -> String {
    peer.ask(&format!("REG.GET r{number}"))
}

fn assert_all_hold(peer: &mut Peer<'_>, expected: &str) {
    (0..MANY).for_each(|number| assert_eq!(held(peer, number), expected, "r{number}"));
}

#[test]
fn everything_is_restored_and_what_is_not_in_the_blob_is_dropped() {
    let place = with_registers();
    let mut peer = Peer::new(&place, 0);
    let restored = format!(":{MANY}\r\n$4\r\nhere\r\n");
    assert_eq!(peer.raw(RESTORE), format!("*2\r\n{restored}"));
    assert_all_hold(&mut peer, "saved 5");
    assert_eq!(peer.ask("EXISTS extra"), "0");
    // By version, key by key.
    for words in ["REG.PUT r17 6 newer", "REG.PUT extra 1 kept", "DEL r18 r19", "REG.PUT r19 4 older"] {
        peer.say(words);
    }
    assert_eq!(flat(peer.raw("REG.RESTORE FROM check MERGE")), "2 here");
    assert_eq!(peer.ask("REG.MGET r17 r18 r19 extra"), "newer 6 saved 5 saved 5 kept 1");
    // Under another prefix.
    peer.raw("REG.SNAPSHOT PREFIX r STORE of-r");
    assert_eq!(flat(peer.raw("REG.RESTORE FROM of-r INTO moved:r")), format!("{MANY} nil"));
    assert_eq!((peer.ask("REG.GET moved:r17"), peer.ask("REG.GET moved:r18")), ("newer 6".into(), "saved 5".into()));
    assert_eq!(peer.ask("DBSIZE"), (2 * MANY + 3).to_string());
    // Inside a transaction it is one step.
    ["MULTI", RESTORE].iter().for_each(|words| drop(peer.say(words)));
    assert_eq!(peer.raw("EXEC"), format!("*1\r\n*2\r\n{restored}"));
    assert_all_hold(&mut peer, "saved 5");
}

#[test]
fn what_is_in_the_way_of_a_restore_changes_nothing() {
    let place = with_registers();
    let mut peer = Peer::new(&place, 0);
    let last = MANY - 1;
    peer.say(&format!("DEL r{last}"));
    peer.say(&format!("HSET r{last} f v"));
    assert!(peer.raw(RESTORE).starts_with("-WRONGTYPE"));
    (0..last).for_each(|number| assert_eq!(held(&mut peer, number), "old 2", "r{number}"));
    // It does not count as under way any more.
    peer.say(&format!("DEL r{last}"));
    assert_eq!(flat(peer.raw(RESTORE)), format!("{MANY} here"));
}

#[test]
fn others_go_on_while_registers_are_restored() {
    let mut random = Rng::with_seed(seed());
    for leaves in [false, true] {
        let place = with_registers();
        let (mut restorer, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
        place.set_look_ns(200_000);
        let sample: Vec<usize> = (0..40).map(|_| random.usize(100..MANY)).collect();
        // Until some of them are restored, and most are not.
        while !sample.iter().any(|number| held(&mut other, *number) == "saved 5") {
            assert_eq!(restorer.step(RESTORE), None, "all of it was restored at once");
        }
        assert_eq!(other.ask("CELL.FORK a/ b/"), RESTORING);
        for refused in ["SWAPDB 0 1", "SWAPDB 3 0"] {
            assert!(other.ask(refused).starts_with("-BUSY a command works in slices"), "{refused}");
        }
        // A register that is restored keeps what is put into it; one that is not yet is replaced, whole.
        let mut expected = Vec::new();
        for number in sample {
            let is_restored = match held(&mut other, number).as_str() {
                "saved 5" => true,
                "old 2" => false,
                _ => continue,
            };
            other.say(&format!("REG.PUT r{number} 9 mine"));
            expected.push((number, if is_restored { "mine 9" } else { "saved 5" }));
        }
        // A key of another type that is made meanwhile stays, and does not count.
        let count = MANY - usize::from(held(&mut other, 77) != "saved 5");
        other.say("EVAL \"redis.call('del', KEYS[1]) return redis.call('set', KEYS[1], 'text')\" 1 r77");
        if leaves {
            // The restore of a client that goes away goes on to its end.
            drop(engine::depart(&place.engine, &mut restorer.client));
            while engine::serve_background_slice(&place.engine, &mut restorer.worker) {}
        } else {
            assert_eq!(flat(restorer.raw(RESTORE)), format!("{count} here"));
        }
        for (number, held_now) in expected {
            assert_eq!(held(&mut other, number), held_now, "r{number}");
        }
        assert_eq!((other.ask("GET r77"), other.ask("EXISTS extra")), ("text".into(), "0".into()));
        assert_eq!(other.ask("SWAPDB 0 1"), "OK");
    }
}
