//! Random histories of all write commands, followed while they are made and while others read: in the end leader and
//! follower hold the same, in the same forms.

use crate::common::place::{Place, Taken};
use crate::common::requests::Source;
use crate::common::seed;
use crate::common::state::State;
use crate::{Follower, SetAtEnd};
use engine::{Engine, Persistence};
use fastrand::Rng;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

const HISTORIES: usize = 2;
const HISTORIES_MAX: usize = 200;
const LEADERS: usize = 2;
const READERS: usize = 1;
/// Requests of each leader.
const REQUESTS: usize = 500;

#[test]
fn a_follower_ends_with_the_state_of_its_leader() {
    let mut random = Rng::with_seed(seed());
    let mut recorded = BTreeSet::new();
    for number in 0..HISTORIES_MAX {
        // A command that never changed anything here was not tested: as long as chance has left one out, it goes on.
        if !Source::new(0).want_missing(&recorded) && number >= HISTORIES {
            return println!("{number} histories");
        }
        follow_history(&mut random, &mut recorded);
    }
    panic!("not all effects are among those of {recorded:?}");
}

fn follow_history(random: &mut Rng, recorded: &mut BTreeSet<String>) {
    let shards: Vec<usize> = (0..2).map(|_| random.choice([1, 2, 8, 64]).unwrap_or(1)).collect();
    let entries_max = random.choice(["0", "4", "20", "512"]).unwrap_or_default();
    let mut settings = vec![("hash-max-listpack-entries", entries_max), ("zset-max-listpack-entries", entries_max)];
    let leader = Place::new(shards[0], LEADERS, &settings);
    settings.push(("notify-keyspace-events", "KEA"));
    let place = Place::new(shards[1], 1 + READERS, &settings);
    // Its clock is ahead of the leader's: what has expired here has not yet there.
    place.pass_ms(random.u64(..10_000));
    let has_stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let (leader, place, has_stopped) = (&leader, &place, &has_stopped);
        scope.spawn(move || Follower::new(leader, place).follow_until(has_stopped));
        for index in 0..READERS {
            let seed = random.u64(..);
            scope.spawn(move || read(place, 1 + index, seed, has_stopped));
        }
        let leaders: Vec<_> = (0..LEADERS)
            .map(|index| {
                let seed = random.u64(..);
                let known = recorded.clone();
                scope.spawn(move || write(leader, index, seed, &known))
            })
            .collect();
        let _stop = SetAtEnd(has_stopped);
        for leader in leaders {
            recorded.extend(leader.join().expect("a leader writes"));
        }
    });
    State::of(&place.engine).assert_is(&State::of(&leader.engine), "the follower");
    assert_eq!(defined(&place.engine), defined(&leader.engine));
    assert_eq!(place.kept.tail(), 0, "a follower records nothing");
    // It could take the leader's place.
    engine::end_following(&place.engine, &mut place.engine.worker(crate::APPLIES));
    place.set_time_of(&leader);
    let (mut a, mut b) = (leader.asker(0), place.asker(1));
    for request in ["DEBUG DIGEST", "DBSIZE", "FUNCTION LIST WITHCODE"] {
        let (expected, found) = (a.say(request), b.say(request));
        assert!(found == expected, "{request}: \"{}\", not \"{}\"", found.escape_ascii(), expected.escape_ascii());
    }
}

/// From the parts of a snapshot, which are of different states, to one state, and from there on with clients.
#[test]
fn a_follower_can_begin_with_a_snapshot() {
    let mut random = Rng::with_seed(seed());
    for shards in [1, 8] {
        let leader = Place::new(shards, LEADERS, &[]);
        write(&leader, 0, random.u64(..), &BTreeSet::new());
        let mut walk = engine::walk(&leader.engine);
        let mut taken = Taken::of(&walk, leader.kept.tail());
        let mut asker = leader.asker(0);
        while taken.step(&mut walk) {
            asker.say(&format!("SET between:{} {}", taken.parts.len(), taken.parts.len()));
        }
        drop(walk);
        write(&leader, 1, random.u64(..), &BTreeSet::new());
        let place = Place::new(4, 2, &[]);
        let mut replay = place.replay(Some(taken.placement));
        for (part, keys) in &taken.parts {
            replay.part(*part, keys).expect("what was walked over can be put back");
        }
        let (before, after): (Vec<_>, Vec<_>) =
            leader.kept.batches_after(taken.oldest()).into_iter().partition(|(number, _)| *number <= taken.newest());
        for (sequence, batch) in &before {
            replay.batch(*sequence, batch).expect("what was recorded can be applied");
        }
        engine::revive_indexes(&place.engine, &[]);
        assert_eq!(engine::revive_functions(&place.engine), Vec::<String>::new());
        let mut replay = replay.go_live(place.engine.worker(1));
        let mut reader = place.asker(0);
        for (sequence, batch) in &after {
            replay.batch(*sequence, batch).expect("what was recorded can be applied");
            reader.say("DBSIZE");
            assert_eq!(reader.client.depends_on, *sequence);
        }
        println!("{shards} shards: {} parts, {} and {} batches", taken.parts.len(), before.len(), after.len());
        State::of(&place.engine).assert_is(&State::of(&leader.engine), "from a snapshot");
        assert!(!after.is_empty());
    }
}

/// Indexes and functions that can be used.
fn defined(engine: &Engine) -> Vec<String> {
    let (indexes, catalogue) = (engine.indexes.list(), engine.scripting.functions.catalogue());
    let of_index = |index: &std::sync::Arc<keyspace::index::Index>| {
        assert!(index.is_built());
        format!("{} {}", index.name.escape_ascii(), index.definition)
    };
    let functions = catalogue.libraries().flat_map(|library| {
        library.functions.iter().map(|function| format!("{} of {}", function.info.name, library.name))
    });
    let mut defined: Vec<String> = indexes.iter().map(of_index).chain(functions).collect();
    defined.sort();
    defined
}

/// Changes keys by itself, in transactions and in scripts, mostly with commands that are not known yet. The commands that changed anything.
pub(crate) fn write(leader: &Place, index: usize, seed: u64, known: &BTreeSet<String>) -> BTreeSet<String> {
    let (mut source, mut asker) = (Source::new(seed), leader.asker(index));
    if !known.is_empty() {
        source.want_missing(known);
    }
    let mut recorded = BTreeSet::new();
    for _ in 0..REQUESTS {
        source.now_ms = leader.now_ms();
        match source.random.u8(..40) {
            0..4 => leader.pass_ms(source.random.u64(..400)),
            4..6 => asker.expire(),
            6 => {
                asker.say("MULTI");
                for _ in 0..source.random.usize(1..5) {
                    asker.ask(&source.request());
                }
                asker.say("EXEC");
            }
            7 => {
                let script =
                    b"for _, k in ipairs(KEYS) do redis.call('del', k) redis.call('hset', k, 'f1', ARGV[1]) end";
                let number = source.random.u8(..).to_string();
                let mut request = vec![b"eval".to_vec(), script.to_vec(), b"3".to_vec()];
                request.extend([b"a".to_vec(), b"spare:1".to_vec(), b"c".to_vec(), number.into_bytes()]);
                asker.ask(&request);
            }
            _ => {}
        }
        let (request, before) = (source.request(), asker.client.last_batch);
        let reply = asker.ask(&request);
        source.hear(&request, &reply);
        if asker.client.last_batch > before {
            recorded.insert(Source::name_of(&request));
        }
    }
    recorded
}

fn read(place: &Place, worker: usize, seed: u64, has_stopped: &AtomicBool) {
    let (mut source, mut asker) = (Source::new(seed), place.asker(worker));
    while !has_stopped.load(SeqCst) {
        let before = asker.client.depends_on;
        match source.random.u8(..12) {
            0 => drop(asker.say(&format!("SELECT {}", source.random.u8(..16)))),
            1 => drop(asker.say("ZRANGE index:all 0 20 WITHSCORES")),
            2 => drop(asker.say("SCAN 0")),
            3 => asker.expire(),
            _ => drop(asker.ask(&source.read_request())),
        }
        assert!(asker.client.depends_on >= before);
        thread::yield_now();
    }
}
