//! Commands whose work grows with the data do it in slices: between two of them others are served, and what comes of it
//! is the same as if they had done it at once.

mod common;

use common::peer::Peer;
use common::place::Place;
use common::seed;
use fastrand::Rng;

const RECORDS: usize = 6_000;
const RANGE: &str = "IDX.RANGE i -inf +inf KEYS";

/// A server with an index `i` over records `r:n` whose scores are their numbers.
fn filled() -> Place {
    let place = Place::new(16, 2, &[]);
    let mut peer = Peer::new(&place, 0);
    assert_eq!(peer.raw("IDX.CREATE i PREFIX 1 r: FIELD n"), "+OK\r\n");
    for number in 0..RECORDS {
        peer.raw(&format!("HSET r:{number:05} n {number} state old"));
    }
    drop(peer);
    // A slice is over after a few looks at the clock.
    place.set_look_ns(200_000);
    place
}

#[test]
fn a_range_over_everything_yields_to_other_clients() {
    let place = filled();
    let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
    let (reply, slices) = reader.ask_in_slices("IDX.RANGE i -inf +inf FILTER state eq none KEYS", || {
        other.raw("SET k v");
    });
    assert_eq!(reply, "*0\r\n");
    assert!(slices > 10, "{RECORDS} records were looked at in one slice");
}

#[test]
fn a_sweep_of_everything_yields_to_other_clients() {
    let place = filled();
    let (mut sweeper, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
    let mut finished = Vec::new();
    let (reply, slices) =
        sweeper.ask_in_slices("SWEEP i BEFORE 100000000 WHERE state 1 old SET 1 state new LIMIT 1000000", || {
            // A record that has not been met yet is no longer what the sweep looks for.
            let name = format!("r:{:05}", RECORDS - 1 - finished.len());
            if other.raw(&format!("HCAS {name} state old done")) == ":1\r\n" {
                finished.push(name);
            }
        });
    assert!(slices > 10, "{slices}");
    assert!(reply.starts_with(&format!("*{}\r\n", RECORDS - finished.len())), "{}", &reply[..20]);
    for name in &finished {
        assert_eq!(other.raw(&format!("HGET {name} state")), "$4\r\ndone\r\n");
    }
}

#[test]
fn keys_that_expire_together_are_removed_in_slices_before_an_index_is_read() {
    const CLAIM: &str = "CLAIM 1 i SET 1 a b COUNT 10 KEYS";
    const SWEEP: &str = "SWEEP i BEFORE 9 SET 1 a b";
    let mut random = Rng::with_seed(seed());
    let last = format!("*1\r\n$7\r\nr:{:05}\r\n", RECORDS - 1);
    for (command, expected) in [
        ("IDX.RANGE i -inf +inf LIMIT 10 KEYS", &*last),
        ("ZCARD i", ":1\r\n"),
        ("IDX.INFO i", "entries\r\n:1\r\n"),
        (SWEEP, "*0\r\n"),
        (CLAIM, &last),
    ] {
        // Alone, in a transaction, and in scripts: one that names the index among its keys, and one that does not.
        let words: Vec<String> = command.split(' ').map(|word| format!("'{word}'")).collect();
        let script = format!("return(redis.call({}))", words.join(","));
        // Two of them in each run.
        let ways = [command.to_owned(), "EXEC".into(), format!("EVAL {script} 1 i"), format!("EVAL {script} 0")];
        for way in random.choose_multiple(&ways, 2) {
            if way == CLAIM || way.ends_with('0') && command == "ZCARD i" {
                // It looks at no more than it takes; and a script has to name a key.
                continue;
            }
            let place = filled();
            let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
            for number in 0..RECORDS - 1 {
                reader.raw(&format!("PEXPIRE r:{number:05} 1"));
            }
            place.pass_ms(1000);
            if way == "EXEC" {
                reader.raw("MULTI");
                reader.raw(command);
            }
            let (reply, slices) = reader.ask_in_slices(way, || {
                other.raw("SET k v");
            });
            assert!(slices > 10, "{command} as {way}: {slices}");
            assert!(reply.contains(expected), "{command} as {way}: {reply}");
        }
    }
}

/// On a machine that is slow or busy, or with many shards, a slice can be too short for a look at each shard.
#[test]
fn the_expiry_cycle_reaches_all_shards_and_ends_though_no_slice_is_long_enough_for_them() {
    let place = Place::new(16, 2, &[]);
    let mut peer = Peer::new(&place, 0);
    for number in 0..500 {
        peer.raw(&format!("SET soon:{number} v PX 1"));
        peer.raw(&format!("SET late:{number} v PX 1000000"));
    }
    place.pass_ms(10);
    place.set_look_ns(500_000);
    // A slice for each shard, and one for each that had keys to remove.
    let slices =
        (1..1000).find(|_| !engine::expire_cycle(&place.engine, &mut peer.worker, 0, 1, 250_000)).expect("it ends");
    assert!((16..=32).contains(&slices), "{slices}");
    assert_eq!(peer.raw("DBSIZE"), ":500\r\n");
}

/// The names of records in a reply.
fn names(reply: &str) -> Vec<&str> {
    reply.lines().filter(|line| line.starts_with("r:")).collect()
}

fn numbered(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers.map(|number| format!("r:{number:05}")).collect()
}

#[test]
fn a_sorted_set_range_over_an_index_yields_to_other_clients() {
    let place = filled();
    let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
    for (command, count) in [
        ("ZRANGE i 0 -1", RECORDS),
        ("ZRANGE i 0 -1 REV", RECORDS),
        ("ZREVRANGE i 10 -1", RECORDS - 10),
        ("ZRANGE i 100 4500 REV", 4_401),
        ("ZRANGEBYSCORE i -inf +inf", RECORDS),
        ("ZRANGEBYSCORE i (99 +inf LIMIT 5 3000", 3_000),
        ("ZRANGEBYSCORE i 0 (4500 LIMIT 5 100000", 4_495),
        ("ZREVRANGEBYSCORE i +inf -inf LIMIT 1000 3500", 3_500),
        ("ZREVRANGEBYSCORE i (4500 5", 4_495),
        ("ZRANGE i 0 -1 WITHSCORES", RECORDS),
        ("HELLO 3", 0),
        ("ZRANGE i 0 -1 WITHSCORES", RECORDS),
        ("ZRANGE i 5 4", 0),
        ("ZRANGEBYSCORE i 5 (5", 0),
        ("ZRANGEBYSCORE i 0 9 LIMIT 10 5", 0),
        ("ZRANGE i 20000 -1", 0),
    ] {
        let (reply, slices) = reader.ask_in_slices(command, || {
            other.raw("SET k v");
        });
        assert_eq!(names(&reply).len(), count, "{command}");
        assert!(slices > 5 || count == 0, "{command}: {slices}");
        // A transaction reads it at once, and finds the same.
        reader.raw("MULTI");
        reader.raw(command);
        let (in_transaction, slices) = reader.ask_in_slices("EXEC", || {});
        assert!(in_transaction == format!("*1\r\n{reply}"), "{command}");
        assert_eq!(slices, 1, "{command}");
    }
}

#[test]
fn a_record_that_is_written_during_a_range_is_returned_once() {
    for command in ["ZRANGE i 0 -1", "ZRANGE i 0 -1 REV", "ZRANGEBYSCORE i -inf +inf LIMIT 0 1000000", RANGE] {
        let place = filled();
        let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
        let (mut moved, is_reversed) = (0, command.ends_with("REV"));
        let (reply, slices) = reader.ask_in_slices(command, || {
            // It was returned, and would be met again.
            match is_reversed {
                false => other.raw(&format!("HSET r:{moved:05} n {}", RECORDS + moved)),
                true => other.raw(&format!("HSET r:{:05} n -{}", RECORDS - 1 - moved, moved + 1)),
            };
            // It is new, and where the range has been or where it will be.
            other.raw(&format!("HSET r:new:{moved} n {}", (moved % 2) * 2 * RECORDS));
            moved += 1;
            // After many slices in which a few move, many that were returned long ago do, and one that was not.
            if moved == 12 && !is_reversed {
                for number in (0..1000).chain([RECORDS - 1]) {
                    other.raw(&format!("HSET r:{number:05} n {}", 2 * RECORDS + number));
                }
            }
        });
        assert!(slices > 15, "{command}: {slices}");
        let mut old: Vec<&str> = names(&reply).into_iter().filter(|name| !name.starts_with("r:new")).collect();
        old.sort_unstable();
        assert!(old == numbered(0..RECORDS), "{command}: {} names", old.len());
        assert!(reply.starts_with(&format!("*{}\r\n", names(&reply).len())), "{command}");
    }
}

#[test]
fn a_range_ends_when_its_index_is_dropped() {
    const DROPPED: &str = "-ERR the index was dropped while it was read\r\n";
    for (meanwhile, expected) in [("IDX.DROP i", DROPPED), ("FLUSHALL", CHANGED), ("FLUSHDB", CHANGED)] {
        let place = filled();
        let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
        // The first slice is not one of pending changes.
        reader.raw("ZCARD i");
        let (reply, slices) = reader.ask_in_slices("ZRANGE i 0 -1", || {
            other.raw(meanwhile);
            other.raw("SET i x");
        });
        assert_eq!(slices, 2, "{meanwhile}");
        assert_eq!(reply, expected, "{meanwhile}");
        // The next command knows nothing of it.
        assert_eq!(reader.raw("ZRANGE other 0 -1"), "*0\r\n");
        other.raw("DEL i");
        assert_eq!(reader.raw("ZRANGE i 0 -1"), "*0\r\n");
    }
}

#[test]
fn a_step_of_a_scan_of_an_index_is_bounded() {
    let place = filled();
    let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
    for count in [20, 300, 1_000_000] {
        let (mut cursor, mut found, mut moved) = ("0".to_owned(), Vec::new(), 0);
        loop {
            let reply = reader.raw(&format!("ZSCAN i {cursor} COUNT {count}"));
            let some = names(&reply);
            assert!(some.len() <= count.min(1024) + 16, "COUNT {count}: {}", some.len());
            found.extend(some.into_iter().map(str::to_owned));
            cursor = reply.lines().nth(2).expect("the cursor").to_owned();
            if cursor == "0" {
                break;
            }
            // Scores do not matter to a scan.
            other.raw(&format!("HSET r:{moved:05} n {}", RECORDS - moved));
            moved = (moved + 7) % RECORDS;
        }
        found.sort_unstable();
        assert!(found == numbered(0..RECORDS), "COUNT {count}: {}", found.len());
    }
    assert_eq!(reader.raw("ZSCAN i 99999999999999"), "*2\r\n$1\r\n0\r\n*0\r\n");
}

/// Records that had expired, that were claimed too often, or of which many are claimed at once, in one shard.
#[test]
fn a_claim_in_one_shard_yields_to_other_clients() {
    for claim in [
        "CLAIM 1 q MAX 0 SET 1 state new COUNTER attempt UPTO 1 ELSE 1 note x",
        "CLAIM 1 q MIN 1 MAX 1 SET 1 state new",
        "CLAIM 1 q MIN 2 MAX 2 SET 1 state new COUNT 1000000 KEYS",
    ] {
        let place = Place::new(16, 2, &[]);
        let (mut worker, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
        worker.raw("IDX.CREATE q PREFIX 1 q: FIELD n");
        for number in 0..3000 {
            worker.raw(&format!("HSET q:{{t}}{number} n {} attempt 5", number % 3));
            if number % 3 == 1 {
                worker.raw(&format!("PEXPIRE q:{{t}}{number} 5"));
            }
        }
        place.pass_ms(10);
        place.set_look_ns(50_000);
        let (reply, slices) = worker.ask_in_slices(claim, || {
            other.raw("SET q:{t} v");
        });
        assert!(slices > 20, "{claim}: {slices} slices");
        let count: usize = reply.lines().next().and_then(|line| line[1..].parse().ok()).expect("an array");
        assert_eq!(count, if claim.contains("COUNT 1000000") { 1000 } else { 0 }, "{claim}");
    }
}

/// What a command replies whose database is not what it was.
const CHANGED: &str = "-ERR the database was emptied or exchanged while the command worked: send it again\r\n";

const EVENTS: usize = 2_400;

/// A server with a run `r` of events that each begin a step, and another, `other`, that is shorter.
fn with_runs() -> Place {
    let place = Place::new(16, 2, &[]);
    let mut peer = Peer::new(&place, 0);
    for (run, events) in [("r", EVENTS), ("other", EVENTS / 2)] {
        for number in 1..=events {
            peer.raw(&format!(
                "RUN.APPEND {run} {run}-{number} StepStarted {run}-{number} STEP {run}-{number} EVENTID e"
            ));
        }
    }
    drop(peer);
    // A slice is over at the first look at the clock.
    place.set_look_ns(500_000);
    place
}

/// What these commands reply in one slice. Times are those of the appends, and the same in each.
fn in_one_slice(place: &Place, command: &str) -> String {
    let mut peer = Peer::new(place, 1);
    peer.raw("MULTI");
    peer.raw(command);
    let (reply, slices) = peer.ask_in_slices("EXEC", || {});
    assert_eq!(slices, 1);
    reply.strip_prefix("*1\r\n").expect("one reply").to_owned()
}

const LONG_READS: [&str; 3] = ["RUN.EVENTS r LIMIT 1000000", "RUN.PROJECT r", "RUN.SNAPSHOT r"];

/// What becomes of a long read when others change the run after its third slice.
#[derive(Clone, Copy, PartialEq)]
enum Read {
    /// It is of the run in the first slice.
    AsItWas,
    /// It is of the run that is there at its end, from the beginning: what was found of another is worth nothing.
    Anew,
    /// It says that there is no run.
    Absent,
    Refused(&'static str),
}

const WRONG_TYPE: &str =
    "-WRONGTYPE Operation against a key holding the wrong kind of value: the key's type is string\r\n";

#[test]
fn a_long_run_is_read_as_of_one_instant_whatever_becomes_of_it() {
    // Steps that are there change too, and the run ends.
    let appends: Vec<String> = (1..30)
        .map(|number| {
            let event_type = ["StepCompleted", "RunCompleted"][number % 2];
            format!("RUN.APPEND r new-{number} {event_type} new STEP r-{number}")
        })
        .collect();
    // As many events as were read so far, and more, under the same name.
    let made_anew =
        (1..=EVENTS / 2).map(|number| format!("RUN.APPEND r new-{number} StepStarted new STEP new-{number}"));
    let made_anew = ["DEL r".to_owned()].into_iter().chain(made_anew).collect();
    let words = |changes: &str| changes.split(", ").map(str::to_owned).collect::<Vec<String>>();
    let changes = [
        (appends, Read::AsItWas),
        (made_anew, Read::Anew),
        (words("DEL r, RENAME other r"), Read::Anew),
        (words("DEL r, COPY other r"), Read::Anew),
        (words("DEL r"), Read::Absent),
        (words("RENAME r elsewhere"), Read::Absent),
        (words("FLUSHALL"), Read::Refused(CHANGED)),
        (words("DEL r, SET r string"), Read::Refused(WRONG_TYPE)),
    ];
    let mut random = Rng::with_seed(seed());
    for (command, absent) in LONG_READS.iter().zip(["*0\r\n", "$-1\r\n", "$-1\r\n"]) {
        // Another half of them in each run.
        for (changes, expected) in random.choose_multiple(&changes, changes.len() / 2) {
            let place = with_runs();
            let before = in_one_slice(&place, command);
            let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
            let mut between = 0;
            let (reply, slices) = reader.ask_in_slices(command, || {
                between += 1;
                if between == 3 {
                    changes.iter().for_each(|change| drop(other.raw(change)));
                }
            });
            let is_long = matches!(expected, Read::AsItWas | Read::Anew);
            assert!(if is_long { slices > 5 } else { slices == 4 }, "{command} and {}: {slices}", changes[0]);
            let expected_reply = match expected {
                Read::AsItWas => before.clone(),
                Read::Anew => in_one_slice(&place, command),
                Read::Absent => absent.to_owned(),
                Read::Refused(error) => (*error).to_owned(),
            };
            assert!(reply == expected_reply, "{command} and {}: {} bytes", changes[0], reply.len());
            // The next command knows nothing of it.
            if *expected == Read::AsItWas {
                let whole = in_one_slice(&place, command);
                assert!(reader.raw(command) == whole && whole != before, "{command}, once all is quiet");
            }
            // The run is where it was moved to, and read from its beginning.
            if changes[0].starts_with("RENAME") {
                let command = "RUN.PROJECT elsewhere UPTO 1";
                assert_eq!(reader.raw(command), in_one_slice(&place, command));
            }
        }
    }
    // Behind the end of the new run there is nothing, and the reader learns of it.
    let place = with_runs();
    let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
    let (last, after) = (EVENTS / 2, EVENTS / 2 + 5);
    let (reply, _) = reader.ask_in_slices(&format!("RUN.EVENTS r AFTER {after} LIMIT 1000000"), || {
        // Only the first time: there is no other one then.
        if other.raw("EXISTS other") == ":1\r\n" {
            other.raw("DEL r");
            other.raw("RENAME other r");
        }
    });
    assert_eq!(
        reply,
        format!(
            "-ERR the run has been made anew: its last runSeq is {last}, and AFTER is {after}; read it again from AFTER 0\r\n"
        )
    );
}

/// A look at the clock takes two milliseconds here, so each slice of the expiry cycle does.
#[test]
fn a_slow_expiry_cycle_is_a_latency_event() {
    let place = Place::new(4, 1, &[]);
    let mut peer = Peer::new(&place, 0);
    let cycle = |peer: &mut Peer<'_>| while engine::expire_cycle(peer.engine, &mut peer.worker, 0, 1, 250_000) {};
    peer.raw("SET a 1 PX 5");
    place.pass_ms(10);
    place.set_look_ns(2_000_000);
    cycle(&mut peer);
    assert_eq!(peer.raw("LATENCY HISTORY expire-cycle"), "*0\r\n");
    peer.raw("CONFIG SET latency-monitor-threshold 2");
    peer.raw("SET a 1 PX 5");
    place.pass_ms(10);
    cycle(&mut peer);
    assert!(peer.raw("LATENCY HISTORY expire-cycle").starts_with("*1\r\n"));
}
