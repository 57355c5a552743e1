//! Commands whose work grows with the data do it in slices: between two of them others are served, and what comes of it
//! is the same as if they had done it at once.

mod common;

use common::place::Place;
use engine::{Client, ClientHandle, Engine, Flow, Worker};
use resp::OwnedRequest;
use std::sync::Arc;

struct Peer<'e> {
    engine: &'e Engine,
    worker: Worker,
    client: Client,
}

/// Far more than any command here takes.
const SLICES_MAX: usize = 20_000;

impl<'e> Peer<'e> {
    fn new(place: &'e Place, index: usize) -> Peer<'e> {
        let engine = &place.engine;
        let handle = ClientHandle::new(engine.clients.next_id(), String::new(), String::new(), -1, 0, Box::new(|| {}));
        Peer { engine, worker: engine.worker(index), client: Client::new(Arc::new(handle), true) }
    }

    /// Executes a request, and `between` between two of its slices. The reply, and how many slices there were.
    fn ask(&mut self, words: &str, mut between: impl FnMut()) -> (String, usize) {
        let request: OwnedRequest = words.split(' ').map(str::as_bytes).collect();
        let (mut out, mut slices) = (Vec::new(), 1);
        loop {
            self.engine.begin(&mut self.worker);
            match engine::execute(self.engine, &mut self.worker, &mut self.client, request.as_request(), &mut out) {
                Flow::Continue => return (String::from_utf8(out).expect("text"), slices),
                Flow::Again => {
                    assert!(out.is_empty(), "there is no reply before the end");
                    slices += 1;
                    assert!(slices < SLICES_MAX, "{words} does not come to an end");
                    between();
                }
                _ => panic!("{words} neither ends nor goes on"),
            }
        }
    }

    fn say(&mut self, words: &str) -> String {
        self.ask(words, || {}).0
    }
}

const RECORDS: usize = 20_000;

/// A server with an index `i` over records `r:n` whose scores are their numbers.
fn filled() -> Place {
    let place = Place::new(16, 2, &[]);
    let mut peer = Peer::new(&place, 0);
    assert_eq!(peer.say("IDX.CREATE i PREFIX 1 r: FIELD n"), "+OK\r\n");
    for number in 0..RECORDS {
        peer.say(&format!("HSET r:{number:05} n {number} state old"));
    }
    drop(peer);
    // A slice is over after a few looks at the clock.
    place.set_look_ns(50_000);
    place
}

#[test]
fn a_range_over_everything_yields_to_other_clients() {
    let place = filled();
    let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
    let (reply, slices) = reader.ask("IDX.RANGE i -inf +inf FILTER state eq none KEYS", || {
        other.say("SET k v");
    });
    assert_eq!(reply, "*0\r\n");
    assert!(slices > 10, "{RECORDS} records were looked at in one slice");
    // All there are, each once, in their order, though others write meanwhile.
    let mut moved = 0;
    let (reply, _) = reader.ask("IDX.RANGE i -inf +inf KEYS", || {
        // It was told of, and will be met again.
        other.say(&format!("HSET r:{moved:05} n {}", RECORDS + moved));
        moved += 1;
    });
    let names: Vec<&str> = reply.lines().filter(|line| line.starts_with("r:")).collect();
    let expected: Vec<String> = (0..RECORDS).map(|number| format!("r:{number:05}")).collect();
    assert!(names == expected, "{} names", names.len());
}

#[test]
fn a_sweep_of_everything_yields_to_other_clients() {
    let place = filled();
    let (mut sweeper, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
    let mut finished = Vec::new();
    let (reply, slices) =
        sweeper.ask("SWEEP i BEFORE 100000000 WHERE state 1 old SET 1 state new LIMIT 1000000", || {
            // A record that has not been met yet is no longer what the sweep looks for.
            let name = format!("r:{:05}", RECORDS - 1 - finished.len());
            if other.say(&format!("HCAS {name} state old done")) == ":1\r\n" {
                finished.push(name);
            }
        });
    assert!(slices > 10, "{slices}");
    assert!(reply.starts_with(&format!("*{}\r\n", RECORDS - finished.len())), "{}", &reply[..20]);
    for name in &finished {
        assert_eq!(other.say(&format!("HGET {name} state")), "$4\r\ndone\r\n");
    }
}

#[test]
fn keys_that_expire_together_are_removed_in_slices_before_an_index_is_read() {
    const CLAIM: &str = "CLAIM 1 i SET 1 a b COUNT 10 KEYS";
    const SWEEP: &str = "SWEEP i BEFORE 9 SET 1 a b";
    const RANGE: &str = "IDX.RANGE i -inf +inf LIMIT 10 KEYS";
    let last = format!("*1\r\n$7\r\nr:{:05}\r\n", RECORDS - 1);
    for (command, expected) in
        [(RANGE, &*last), ("ZCARD i", ":1\r\n"), ("IDX.INFO i", "entries\r\n:1\r\n"), (SWEEP, "*0\r\n"), (CLAIM, &last)]
    {
        // Alone, in a transaction, and in scripts: one that names the index among its keys, and one that does not.
        let words: Vec<String> = command.split(' ').map(|word| format!("'{word}'")).collect();
        let script = format!("return(redis.call({}))", words.join(","));
        for way in [command, "EXEC", &format!("EVAL {script} 1 i"), &format!("EVAL {script} 0")] {
            if way == CLAIM || way.ends_with('0') && command == "ZCARD i" {
                // It looks at no more than it takes; and a script has to name a key.
                continue;
            }
            let place = filled();
            let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
            for number in 0..RECORDS - 1 {
                reader.say(&format!("PEXPIRE r:{number:05} 1"));
            }
            place.pass_ms(1000);
            if way == "EXEC" {
                reader.say("MULTI");
                reader.say(command);
            }
            let (reply, slices) = reader.ask(way, || {
                other.say("SET k v");
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
        peer.say(&format!("SET soon:{number} v PX 1"));
        peer.say(&format!("SET late:{number} v PX 1000000"));
    }
    place.pass_ms(10);
    place.set_look_ns(500_000);
    // A slice for each shard, and one for each that had keys to remove.
    let slices =
        (1..1000).find(|_| !engine::expire_cycle(&place.engine, &mut peer.worker, 0, 1, 250_000)).expect("it ends");
    assert!((16..=32).contains(&slices), "{slices}");
    assert_eq!(peer.say("DBSIZE"), ":500\r\n");
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
    let upwards = numbered(0..RECORDS);
    let downwards = numbered((0..RECORDS).rev());
    for (command, expected) in [
        ("ZRANGE i 0 -1", &upwards[..]),
        ("ZRANGE i 0 -1 REV", &downwards),
        ("ZREVRANGE i 10 -1", &downwards[10..]),
        ("ZRANGE i 100 15000", &upwards[100..=15000]),
        ("ZRANGE i 100 15000 REV", &downwards[100..=15000]),
        ("ZRANGEBYSCORE i -inf +inf", &upwards),
        ("ZRANGEBYSCORE i (99 +inf LIMIT 5 10000", &upwards[105..10105]),
        ("ZRANGEBYSCORE i 0 (15000 LIMIT 5 100000", &upwards[5..15000]),
        ("ZREVRANGEBYSCORE i +inf -inf LIMIT 1000 12000", &downwards[1000..13000]),
        ("ZREVRANGEBYSCORE i (15000 5", &downwards[RECORDS - 15000..RECORDS - 5]),
    ] {
        let (reply, slices) = reader.ask(command, || {
            other.say("SET k v");
        });
        assert!(names(&reply) == expected, "{command}: {} names", names(&reply).len());
        assert!(reply.starts_with(&format!("*{}\r\n", expected.len())), "{command}");
        assert!(slices > 5, "{command}: {slices}");
        // A transaction reads it at once, and finds the same.
        reader.say("MULTI");
        reader.say(command);
        let (in_transaction, slices) = reader.ask("EXEC", || {});
        assert!(in_transaction == format!("*1\r\n{reply}"), "{command}");
        assert_eq!(slices, 1, "{command}");
    }
    for command in ["ZRANGE i 5 4", "ZRANGEBYSCORE i 5 (5", "ZRANGEBYSCORE i 0 9 LIMIT 10 5", "ZRANGE i 20000 -1"] {
        assert_eq!(reader.say(command), "*0\r\n", "{command}");
    }
    let (reply, _) = reader.ask("ZRANGE i 0 -1 WITHSCORES", || {});
    assert!(reply.starts_with(&format!("*{}\r\n$7\r\nr:00000\r\n$1\r\n0\r\n$7\r\nr:00001\r\n", RECORDS * 2)));
    assert_eq!(reader.say("HELLO 3").chars().next(), Some('%'));
    let (reply, _) = reader.ask("ZRANGE i 0 -1 WITHSCORES", || {});
    assert!(reply.starts_with(&format!("*{RECORDS}\r\n*2\r\n$7\r\nr:00000\r\n,0\r\n")), "{}", &reply[..60]);
}

#[test]
fn a_record_that_is_written_during_a_range_is_returned_once() {
    for command in ["ZRANGE i 0 -1", "ZRANGE i 0 -1 REV", "ZRANGEBYSCORE i -inf +inf LIMIT 0 1000000"] {
        let place = filled();
        let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
        let (mut moved, is_reversed) = (0, command.ends_with("REV"));
        let (reply, slices) = reader.ask(command, || {
            // It was returned, and would be met again.
            match is_reversed {
                false => other.say(&format!("HSET r:{moved:05} n {}", RECORDS + moved)),
                true => other.say(&format!("HSET r:{:05} n -{}", RECORDS - 1 - moved, moved + 1)),
            };
            // It is new, and where the range has been or where it will be.
            other.say(&format!("HSET r:new:{moved} n {}", (moved % 2) * 2 * RECORDS));
            moved += 1;
        });
        assert!(slices > 5, "{command}: {slices}");
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
        reader.say("ZCARD i");
        let (reply, slices) = reader.ask("ZRANGE i 0 -1", || {
            other.say(meanwhile);
            other.say("SET i x");
        });
        assert_eq!(slices, 2, "{meanwhile}");
        assert_eq!(reply, expected, "{meanwhile}");
        // The next command knows nothing of it.
        assert_eq!(reader.say("ZRANGE other 0 -1"), "*0\r\n");
        other.say("DEL i");
        assert_eq!(reader.say("ZRANGE i 0 -1"), "*0\r\n");
    }
}

#[test]
fn a_step_of_a_scan_of_an_index_is_bounded() {
    let place = filled();
    let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
    for count in [20, 300, 1_000_000] {
        let (mut cursor, mut found, mut moved) = ("0".to_owned(), Vec::new(), 0);
        loop {
            let reply = reader.say(&format!("ZSCAN i {cursor} COUNT {count}"));
            let some = names(&reply);
            assert!(some.len() <= count.min(1024) + 16, "COUNT {count}: {}", some.len());
            found.extend(some.into_iter().map(str::to_owned));
            cursor = reply.lines().nth(2).expect("the cursor").to_owned();
            if cursor == "0" {
                break;
            }
            // Scores do not matter to a scan.
            other.say(&format!("HSET r:{moved:05} n {}", RECORDS - moved));
            moved = (moved + 7) % RECORDS;
        }
        found.sort_unstable();
        assert!(found == numbered(0..RECORDS), "COUNT {count}: {}", found.len());
    }
    assert_eq!(reader.say("ZSCAN i 99999999999999"), "*2\r\n$1\r\n0\r\n*0\r\n");
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
        worker.say("IDX.CREATE q PREFIX 1 q: FIELD n");
        for number in 0..3000 {
            worker.say(&format!("HSET q:{{t}}{number} n {} attempt 5", number % 3));
            if number % 3 == 1 {
                worker.say(&format!("PEXPIRE q:{{t}}{number} 5"));
            }
        }
        place.pass_ms(10);
        place.set_look_ns(50_000);
        let (reply, slices) = worker.ask(claim, || {
            other.say("SET q:{t} v");
        });
        assert!(slices > 20, "{claim}: {slices} slices");
        let count: usize = reply.lines().next().and_then(|line| line[1..].parse().ok()).expect("an array");
        assert_eq!(count, if claim.contains("COUNT 1000000") { 1000 } else { 0 }, "{claim}");
    }
}

#[test]
fn records_that_move_once_during_a_range_are_returned_once() {
    for command in ["ZRANGE i 0 -1", "IDX.RANGE i -inf +inf KEYS"] {
        let place = filled();
        let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
        reader.say("ZCARD i");
        // Most slices find that nothing has moved. Then some do that were returned long ago, and one that was not.
        let mut slice = 0;
        let (reply, slices) = reader.ask(command, || {
            slice += 1;
            if slice == 50 {
                for number in (0..1000).chain([RECORDS - 1]) {
                    other.say(&format!("HSET r:{number:05} n {}", 2 * RECORDS + number));
                }
            }
        });
        assert!(slices > 60, "{command}: {slices}");
        assert!(names(&reply) == numbered(0..RECORDS), "{command}: {} names", names(&reply).len());
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
            peer.say(&format!(
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
    peer.say("MULTI");
    peer.say(command);
    let (reply, slices) = peer.ask("EXEC", || {});
    assert_eq!(slices, 1);
    reply.strip_prefix("*1\r\n").expect("one reply").to_owned()
}

const LONG_READS: [&str; 3] = ["RUN.EVENTS r LIMIT 1000000", "RUN.PROJECT r", "RUN.SNAPSHOT r"];

#[test]
fn a_long_run_is_read_as_it_was_in_the_first_slice_though_others_append() {
    for command in LONG_READS {
        let place = with_runs();
        let expected = in_one_slice(&place, command);
        let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
        let mut appended = 0;
        let (reply, slices) = reader.ask(command, || {
            appended += 1;
            // Steps that are there change too, and the run ends.
            let event_type = ["StepCompleted", "RunCompleted"][appended % 2];
            other.say(&format!("RUN.APPEND r new-{appended} {event_type} new STEP r-{appended}"));
        });
        assert!(slices > 5, "{command}: {slices}");
        assert!(reply == expected, "{command}: {} bytes, not {}", reply.len(), expected.len());
        let whole = in_one_slice(&place, command);
        assert!(reader.say(command) == whole && whole != expected, "{command}, once all is quiet");
    }
}

#[test]
fn a_run_removed_between_two_slices_reads_as_absent() {
    for (command, nothing) in LONG_READS.iter().zip(["*0\r\n", "$-1\r\n", "$-1\r\n"]) {
        for (change, expected) in [
            ("DEL r", nothing),
            ("RENAME r elsewhere", nothing),
            ("FLUSHALL", CHANGED),
            (
                "DEL r, SET r string",
                "-WRONGTYPE Operation against a key holding the wrong kind of value: the key's type is string\r\n",
            ),
        ] {
            let place = with_runs();
            let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
            let mut between = 0;
            let (reply, slices) = reader.ask(command, || {
                between += 1;
                if between == 3 {
                    change.split(", ").for_each(|change| drop(other.say(change)));
                }
            });
            assert_eq!((reply.as_str(), slices), (expected, 4), "{command} and {change}");
            // What was found of it is forgotten: the run is where it was moved to, and read from its beginning.
            if change.starts_with("RENAME") {
                let command = "RUN.PROJECT elsewhere UPTO 1";
                assert_eq!(reader.say(command), in_one_slice(&place, command));
            }
        }
    }
}

const MADE_ANEW: &str = "DEL, and appends";

/// What was found of a run that another has taken the place of is worth nothing.
#[test]
fn a_run_that_is_replaced_between_two_slices_is_read_from_its_beginning() {
    for command in LONG_READS {
        for change in ["DEL r, RENAME other r", "DEL r, COPY other r", MADE_ANEW] {
            let place = with_runs();
            let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
            let mut between = 0;
            let (reply, slices) = reader.ask(command, || {
                between += 1;
                if between == 3 {
                    match change {
                        // As many events as were read so far, and more, under the same name.
                        MADE_ANEW => {
                            other.say("DEL r");
                            for number in 1..=EVENTS / 2 {
                                other.say(&format!(
                                    "RUN.APPEND r new-{number} StepStarted new-{number} STEP new-{number}"
                                ));
                            }
                        }
                        change => change.split(", ").for_each(|change| drop(other.say(change))),
                    }
                }
            });
            assert!(slices > 5, "{slices}");
            assert!(reply == in_one_slice(&place, command), "{command} and {change}");
        }
    }
    // Behind the end of the new run there is nothing, and the reader learns of it.
    let place = with_runs();
    let (mut reader, mut other) = (Peer::new(&place, 0), Peer::new(&place, 1));
    let after = EVENTS / 2 + 5;
    let (reply, _) = reader.ask(&format!("RUN.EVENTS r AFTER {after} LIMIT 1000000"), || {
        // Only the first time: there is no other one then.
        if other.say("EXISTS other") == ":1\r\n" {
            other.say("DEL r");
            other.say("RENAME other r");
        }
    });
    let last = EVENTS / 2;
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
    peer.say("SET a 1 PX 5");
    place.pass_ms(10);
    place.set_look_ns(2_000_000);
    cycle(&mut peer);
    assert_eq!(peer.say("LATENCY HISTORY expire-cycle"), "*0\r\n");
    peer.say("CONFIG SET latency-monitor-threshold 2");
    peer.say("SET a 1 PX 5");
    place.pass_ms(10);
    cycle(&mut peer);
    assert!(peer.say("LATENCY HISTORY expire-cycle").starts_with("*1\r\n"));
}
