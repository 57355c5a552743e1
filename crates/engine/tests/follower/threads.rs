//! A follower that applies many batches at once, on several threads: clients see whole rounds, and in the end it holds
//! what its leader holds.

use crate::APPLIES;
use crate::common::place::{Asker, Place};
use crate::common::seed;
use crate::common::state::State;
use crate::histories::write;
use engine::execution::replay::Replay;
use fastrand::Rng;
use keyspace::BadEffect;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

const THREADS: usize = 3;
const ACCOUNTS: usize = 40;
const IN_ALL: i64 = 1000 * ACCOUNTS as i64;

/// All batches of a leader, applied so many at a time.
fn follow(leader: &Place, place: &Place, at_once: usize) -> Result<u64, BadEffect> {
    let mut replay = threaded(place).go_live(place.engine.worker(APPLIES));
    for batches in leader.kept.batches().chunks(at_once) {
        replay.many(batches.to_vec())?;
    }
    Ok(replay.applied_apart())
}

fn threaded(place: &Place) -> Replay<'_> {
    place.replay(None).on_threads(&place.engine, THREADS)
}

#[test]
fn a_follower_with_threads_ends_with_the_state_of_its_leader() {
    let mut random = Rng::with_seed(seed());
    for (leaders, follows) in [(1, 2), (8, 64), (64, 8), (2, 1)] {
        let leader = Place::new(leaders, 1, &[("hash-max-listpack-entries", "8")]);
        let place = Place::new(follows, 2, &[("hash-max-listpack-entries", "8")]);
        write(&leader, 0, random.u64(..), &BTreeSet::new());
        spread(&leader, &mut random);
        write(&leader, 0, random.u64(..), &BTreeSet::new());
        let apart = follow(&leader, &place, 300).expect("what was recorded can be applied");
        println!("{follows} shards: {apart} of {} batches on several threads", leader.kept.batches().len());
        assert_eq!(apart > 0, follows > 1, "rounds of the spread writes can be applied apart");
        State::of(&place.engine).assert_is(&State::of(&leader.engine), "the follower");
        // The same at a start, without clients.
        let started = Place::new(follows, 2, &[("hash-max-listpack-entries", "8")]);
        let mut replay = threaded(&started);
        for batches in leader.kept.batches().chunks(1000) {
            replay.many(batches.to_vec()).expect("what was recorded can be applied");
        }
        State::of(&started.engine).assert_is(&State::of(&leader.engine), "the start");
    }
}

/// Writes that change single keys, alone and in transactions.
fn spread(leader: &Place, random: &mut Rng) {
    let mut asker = leader.asker(0);
    for _ in 0..3_000 {
        let key = random.usize(..200);
        match random.u8(..8) {
            0 => drop(asker.say(&format!("SET s:{key} {}", random.u32(..)))),
            1 => drop(asker.say(&format!("HSET h:{key} f1 {} f2 v", random.u32(..)))),
            2 => drop(asker.say(&format!("ZADD z:{key} {} m{}", random.u8(..), random.u8(..)))),
            3 => drop(asker.say(&format!("DEL h:{key} s:{}", random.usize(..200)))),
            4 => drop(asker.say(&format!("RPUSH l:{key} a b c"))),
            5 => drop(asker.say(&format!("LPOP l:{key}"))),
            6 => drop(asker.say(&format!("PEXPIRE s:{key} {}", random.u32(1..100_000)))),
            _ => {
                asker.say("MULTI");
                asker.say(&format!("HINCRBY h:{key} f1 1"));
                asker.say(&format!("INCR n:{key}"));
                asker.say(&format!("SADD m:{} {key}", random.usize(..20)));
                asker.say("EXEC");
            }
        }
    }
}

/// The sum of all accounts, read at once.
fn balances(reader: &mut Asker<'_>) -> i64 {
    let names: String = (0..ACCOUNTS).map(|account| format!(" account:{account}")).collect();
    let reply = reader.say(&format!("MGET{names}"));
    let lines = String::from_utf8_lossy(&reply);
    lines.lines().skip(1).filter_map(|line| line.parse::<i64>().ok()).sum()
}

/// A transfer between accounts in two shards is one batch. However it is applied, nobody sees half of it.
#[test]
fn clients_see_whole_batches() {
    let mut random = Rng::with_seed(seed());
    for renames in [false, true] {
        let (leader, place) = (Place::new(16, 1, &[]), Place::new(16, 2, &[]));
        let mut writer = leader.asker(0);
        let accounts: String = (0..ACCOUNTS).map(|account| format!(" account:{account} 1000")).collect();
        writer.say(&format!("MSET{accounts}"));
        for number in 0..4_000 {
            let (from, to) = (random.usize(..ACCOUNTS), random.usize(..ACCOUNTS));
            let sum = random.u32(1..100);
            writer.say("MULTI");
            writer.say(&format!("DECRBY account:{from} {sum}"));
            writer.say(&format!("INCRBY account:{to} {sum}"));
            writer.say("EXEC");
            if renames && number % 1_500 == 0 {
                writer.say("MULTI");
                writer.say(&format!("RENAME account:{from} spare"));
                writer.say(&format!("RENAME spare account:{from}"));
                writer.say("EXEC");
            }
        }
        let mut replay = threaded(&place).go_live(place.engine.worker(APPLIES));
        let batches = leader.kept.batches();
        replay.many(batches[..1].to_vec()).expect("what was recorded can be applied");
        let has_stopped = AtomicBool::new(false);
        let reads = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut reads = 0;
                while !has_stopped.load(SeqCst) || reads == 0 {
                    let mut reader = place.asker(1);
                    assert_eq!(balances(&mut reader), IN_ALL, "read {reads}");
                    reads += 1;
                    thread::yield_now();
                }
                reads
            });
            for batches in batches[1..].chunks(512) {
                replay.many(batches.to_vec()).expect("what was recorded can be applied");
            }
            has_stopped.store(true, SeqCst);
            reader.join().expect("a reader sees whole batches")
        });
        println!("{reads} reads, {} batches on several threads", replay.applied_apart());
        assert!(replay.applied_apart() > 1_000);
        State::of(&place.engine).assert_is(&State::of(&leader.engine), "the follower");
    }
}

/// A value of another type than an effect is for: the round fails, whichever thread finds it.
#[test]
fn a_round_with_a_batch_for_another_type_is_refused() {
    for broken in [0, 100, 255] {
        let (leader, place) = (Place::new(16, 1, &[]), Place::new(16, 2, &[]));
        let mut writer = leader.asker(0);
        (0..256).for_each(|number| drop(writer.say(&format!("HSET k:{number} f v"))));
        place.asker(1).say(&format!("SET k:{broken} 1"));
        assert!(matches!(follow(&leader, &place, 256), Err(BadEffect::WrongType)), "{broken}");
    }
}

#[test]
fn a_round_with_a_batch_that_is_cut_short_is_refused() {
    let (leader, place) = (Place::new(16, 1, &[]), Place::new(16, 2, &[]));
    let mut writer = leader.asker(0);
    (0..256).for_each(|number| drop(writer.say(&format!("HSET k:{number} f v"))));
    let mut batches = leader.kept.batches();
    batches[200].1.pop();
    let mut replay = threaded(&place).go_live(place.engine.worker(APPLIES));
    assert!(replay.many(batches).is_err());
    assert_eq!(replay.applied_apart(), 0);
}
