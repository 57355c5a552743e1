//! Indexes of many records, whose changes wait to be made together: with scores that are all different and with few,
//! in one shard and in several, looked at often and seldom.

use crate::common::place::Place;
use crate::common::seed;
use crate::common::state::State;
use fastrand::Rng;
use keyspace::index::{Definition, INDEXES_MAX};

const RECORDS: usize = 1_000;
const REQUESTS: usize = 6_000;

#[test]
fn indexes_of_many_records_are_exact() {
    let mut random = Rng::with_seed(seed());
    let mut created = 0;
    for (shards, scores) in [(1, 3), (1, 1_000_000), (4, 500)] {
        let place = Place::new(shards, 1, &[]);
        let mut asker = place.asker(0);
        let (mut looks, mut most) = (0, 0);
        for number in 0..REQUESTS {
            // Names of both indexes and of one, most of them of records that are there.
            let name = format!("{}{}", ["a", "x"][random.usize(..2)], random.usize(..RECORDS));
            let score = random.i32(..scores);
            let request = match random.u8(..100) {
                // A number for both indexes; in `index:some` it counts unless f2 is v.
                0..60 => format!("HSET {name} f1 {score} f3 {score}"),
                60..75 => format!("HSET {name} f1 {number} f3 {}", number / 10),
                75..80 => format!("HSET {name} f2 {}", random.choice(["v", "w"]).expect("one of two")),
                80..83 => format!("HSET {name} f1 none f3 {score}"),
                83..86 => format!("HDEL {name} {}", random.choice(["f1", "f2", "f3"]).expect("one of three")),
                86..94 => format!("DEL {name}"),
                94..96 => format!("RENAME {name} a{}", random.usize(..RECORDS)),
                96 => format!("SET {name} {score}"),
                97 => format!("ZRANGE index:all {score} +inf BYSCORE LIMIT 0 3"),
                98 => format!("ZRANK index:some {name}"),
                _ => format!("HINCRBY {name} f1 {score}"),
            };
            asker.say(&request);
            // What changes many records at once, or when their fields are no part of the request.
            match random.usize(..REQUESTS / 10) {
                0..60 => drop(asker.say(&format!("COPY {name} a{} REPLACE", random.usize(..RECORDS)))),
                60..90 => drop(asker.say(&format!("PEXPIRE {name} {}", random.u8(..50)))),
                90..120 => drop(asker.say(&format!("HPEXPIRE {name} {} FIELDS 1 f1", random.u8(..50)))),
                120..150 => place.pass_ms(5),
                150 => asker.expire(),
                151 => drop(asker.say("SWAPDB 0 1")),
                152 => {
                    let reply = asker.say("IDX.CREATE index:only PREFIX 2 a x1 FIELD f3 ONLY f2 2 w 7");
                    created += usize::from(reply == b"+OK\r\n");
                }
                153 => drop(asker.say("IDX.DROP index:only")),
                154 if random.u8(..4) == 0 => drop(asker.say("FLUSHALL")),
                _ => {}
            }
            if random.usize(..REQUESTS / 10) == 0 {
                // Compares each index with all records.
                most = most.max(State::of(&place.engine).0.len());
                looks += 1;
            }
        }
        let state = State::of(&place.engine);
        println!("{shards} shards, {scores} scores: {} keys, {looks} looks", state.0.len());
        // Unless there were many at some time, FLUSHALL left nothing to look at.
        assert!(most.max(state.0.len()) > RECORDS / 4, "at most {most} keys");
    }
    assert!(created > 0, "no index was made of records that are there");
}

/// So much that not all of it is made good while everything is locked.
#[test]
fn an_index_is_whole_after_much_has_been_written() {
    const MANY: usize = 20_000;
    let place = Place::new(8, 1, &[]);
    let mut asker = place.asker(0);
    for number in 0..MANY {
        asker.say(&format!("HSET x{number} f1 {}", number % 900));
    }
    let pending_changes = || place.engine.keyspace.lock_all().pending_changes(0);
    let mut written = 0;
    while pending_changes() <= 2_048 {
        assert!(written < MANY, "no more than {} changes wait", pending_changes());
        asker.say(&format!("HSET x{written} f1 1000"));
        written += 1;
    }
    assert_eq!(asker.say("ZCOUNT index:all 1000 1000"), format!(":{written}\r\n").into_bytes());
    assert_eq!(pending_changes(), 0);
    State::of(&place.engine);
}

#[test]
fn a_start_takes_no_more_indexes_than_there_may_be() {
    let place = Place::new(1, 1, &[]);
    let definition = Definition { prefixes: vec![b"r:".to_vec()], field: b"n".to_vec(), ..Definition::default() };
    let configured: Vec<_> =
        (0..=INDEXES_MAX).map(|number| (format!("i{number}").into_bytes(), definition.clone())).collect();
    let failures = engine::revive_indexes(&place.engine, &configured).failures;
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0].to_string(), "the index 'i64' cannot be created: there are 64 others");
    assert_eq!(place.engine.indexes.list().iter().len(), INDEXES_MAX);
    place.asker(0).say("HSET r:1 n 5");
    assert_eq!(place.asker(0).say("ZCARD i63"), b":1\r\n");
}
