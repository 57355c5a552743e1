//! What a reply of a follower may show: a state between two batches, never an older one than before, and the number of
//! the newest batch in it.

use crate::common::peer::tokens;
use crate::common::place::{Asker, Place};
use crate::common::seed;
use crate::{Follower, SetAtEnd};
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

const LEADERS: usize = 2;
const READERS: usize = 2;
/// Each reader has to see so many versions before the leaders stop.
const VERSIONS: usize = 40;
/// Accounts of each kind: strings, fields of hashes, scores of sorted sets.
const EACH: usize = 3;
const SUM: i64 = 9_000;

/// Sums are moved between keys of several types and shards. A reader that reads all of them at once finds the same
/// total.
#[test]
fn every_reply_is_of_a_state_between_two_batches() {
    let mut random = Rng::with_seed(seed());
    for shards in [1, 4, 64] {
        let (leader, place) = (Place::new(shards, LEADERS, &[]), Place::new(shards, 1 + READERS, &[]));
        let batches = Mutex::new(BTreeMap::new());
        open_accounts(&mut leader.asker(0), &batches);
        let (has_stopped, satisfied) = (AtomicBool::new(false), AtomicUsize::new(0));
        let seen: Vec<(u64, u64)> = thread::scope(|scope| {
            let (satisfied, has_stopped, batches) = (&satisfied, &has_stopped, &batches);
            let (leader, place) = (&leader, &place);
            let readers: Vec<_> = (0..READERS)
                .map(|index| {
                    let seed = random.u64(..);
                    scope.spawn(move || read(place, 1 + index, seed, satisfied, has_stopped))
                })
                .collect();
            scope.spawn(move || Follower::new(leader, place).follow_until(has_stopped));
            let leaders: Vec<_> = (0..LEADERS)
                .map(|index| {
                    let seed = random.u64(..);
                    scope.spawn(move || transfer(leader, index, seed, satisfied, batches))
                })
                .collect();
            let stop = SetAtEnd(has_stopped);
            leaders.into_iter().for_each(|leader| leader.join().expect("a leader writes"));
            drop(stop);
            readers.into_iter().flat_map(|reader| reader.join().expect("a reader reads")).collect()
        });
        let batches = batches.into_inner().expect("no leader has panicked");
        println!("{shards} shards: {} versions, {} read", batches.len(), seen.len());
        // Every batch has a new version, and every reader reads it: so the newest batch of a reply is that of its
        // version.
        for (version, depends_on) in seen {
            assert_eq!(depends_on, batches[&version], "the batch of version {version} with {shards} shards");
        }
        let (mut a, mut b) = (leader.asker(0), place.asker(1));
        assert_eq!(look(&mut a, false), look(&mut b, true), "{shards} shards, in the end");
    }
}

fn open_accounts(asker: &mut Asker<'_>, batches: &Mutex<BTreeMap<u64, u64>>) {
    asker.say("MULTI");
    asker.say("SET version 1");
    for number in 0..EACH {
        asker.say(&format!("SET s:{number} 1000"));
        asker.say(&format!("HSET h:{number} sum 1000 other 5"));
        asker.say(&format!("ZADD z:{number} 1000 sum 1 other"));
    }
    asker.say("EXEC");
    batches.lock().expect("no thread panics with it").insert(1, asker.client.last_batch);
}

/// A command that adds to one of the accounts, as words.
fn addition(random: &mut Rng, amount: i64) -> String {
    let number = random.usize(..EACH);
    match random.u8(..3) {
        0 => format!("INCRBY s:{number} {amount}"),
        1 => format!("HINCRBY h:{number} sum {amount}"),
        _ => format!("ZINCRBY z:{number} {amount} sum"),
    }
}

/// Moves sums between accounts, each time in one batch, until the readers have seen enough.
fn transfer(leader: &Place, index: usize, seed: u64, satisfied: &AtomicUsize, batches: &Mutex<BTreeMap<u64, u64>>) {
    let (mut random, mut asker) = (Rng::with_seed(seed), leader.asker(index));
    while satisfied.load(SeqCst) < READERS {
        let amount = random.i64(1..100);
        let (from, to) = (addition(&mut random, -amount), addition(&mut random, amount));
        let reply = match random.bool() {
            true => {
                for request in ["MULTI", "INCR version", &from, &to] {
                    asker.say(request);
                }
                asker.say("EXEC")
            }
            false => {
                let call = |words: &str| {
                    let quoted: Vec<String> = words.split(' ').map(|word| format!("'{word}'")).collect();
                    format!("redis.call({})", quoted.join(", "))
                };
                let script = format!("local v = redis.call('incr', 'version') {} {} return v", call(&from), call(&to));
                asker.ask(&[b"eval".to_vec(), script.into_bytes(), b"0".to_vec()])
            }
        };
        let version = tokens(&reply)[0].parse().expect("a version is a number");
        batches.lock().expect("no thread panics with it").insert(version, asker.client.last_batch);
    }
}

/// All accounts and the version, in one transaction or script.
fn look(asker: &mut Asker<'_>, by_script: bool) -> Vec<i64> {
    let reply = match by_script {
        true => {
            let script = format!(
                "local r = {{redis.call('get', 'version')}} for i = 0, {} do \
                 r[#r + 1] = redis.call('get', 's:' .. i) r[#r + 1] = redis.call('hget', 'h:' .. i, 'sum') \
                 r[#r + 1] = redis.call('zscore', 'z:' .. i, 'sum') end return r",
                EACH - 1
            );
            asker.ask(&[b"eval_ro".to_vec(), script.into_bytes(), b"0".to_vec()])
        }
        false => {
            asker.say("MULTI");
            asker.say("GET version");
            for number in 0..EACH {
                asker.say(&format!("GET s:{number}"));
                asker.say(&format!("HGET h:{number} sum"));
                asker.say(&format!("ZSCORE z:{number} sum"));
            }
            asker.say("EXEC")
        }
    };
    tokens(&reply).iter().map(|text| text.parse().unwrap_or_else(|_| panic!("{text} is no number"))).collect()
}

/// Reads until the follower has stopped. The versions that were seen, each with the batch that its reply depends on.
fn read(
    place: &Place,
    worker: usize,
    seed: u64,
    satisfied: &AtomicUsize,
    has_stopped: &AtomicBool,
) -> BTreeSet<(u64, u64)> {
    let (mut random, mut asker) = (Rng::with_seed(seed), place.asker(worker));
    let (mut seen, mut last) = (BTreeSet::new(), 0);
    // However this reader ends, the leaders must not wait for it.
    let mut is_satisfied = Satisfied { count: satisfied, is_counted: false };
    while !has_stopped.load(SeqCst) {
        if asker.say("EXISTS version") == b":0\r\n" {
            continue;
        }
        let found = look(&mut asker, random.bool());
        let (version, sum) = (found[0] as u64, found[1..].iter().sum::<i64>());
        assert_eq!((found.len(), sum), (1 + 3 * EACH, SUM), "{found:?}");
        assert!(version >= last, "version {version} after {last}");
        last = version;
        seen.insert((version, asker.client.depends_on));
        if seen.len() == VERSIONS {
            is_satisfied.count();
        }
    }
    seen
}

struct Satisfied<'a> {
    count: &'a AtomicUsize,
    is_counted: bool,
}

impl Satisfied<'_> {
    fn count(&mut self) {
        if !std::mem::replace(&mut self.is_counted, true) {
            self.count.fetch_add(1, SeqCst);
        }
    }
}

impl Drop for Satisfied<'_> {
    fn drop(&mut self) {
        self.count();
    }
}

/// Replies wait for the newest batch that they may reveal: one that changed a shard that was read.
#[test]
fn a_reply_depends_on_the_newest_batch_that_it_may_reveal() {
    let (leader, place) = (Place::new(8, 1, &[]), Place::new(8, 2, &[]));
    let mut follower = Follower::new(&leader, &place);
    let mut writer = leader.asker(0);
    // Two keys in different shards.
    let shard_of = |name: &str| place.engine.keyspace.shard_of(name.as_bytes());
    let other = (0..).map(|number| format!("k{number}")).find(|name| shard_of(name) != shard_of("k"));
    let other = other.expect("there are other shards");
    let code = "#!lua name=l\nredis.register_function{function_name='f', callback=function() return 1 end, flags={'no-writes'}}";
    writer.ask(&[b"function".to_vec(), b"load".to_vec(), code.as_bytes().to_vec()]);
    let depends_on = |requests: &[&str]| {
        let mut reader = place.asker(1);
        let reply = requests.iter().map(|request| reader.say(request)).last().expect("there is a request");
        assert_ne!(reply[0], b'-', "{requests:?}: {}", reply.escape_ascii());
        reader.client.depends_on
    };
    assert_eq!(depends_on(&["GET k"]), 0, "nothing was applied");
    follower.catch_up();
    assert_eq!(depends_on(&["FCALL_RO f 0"]), 1, "the library");
    assert_eq!(depends_on(&["MULTI", "FCALL_RO f 0", "EXEC"]), 1, "the library, in a transaction");
    writer.say("SET k 1");
    writer.say(&format!("SET {other} 1"));
    follower.catch_up();
    let both = format!("MGET k {other}");
    let script = ["EVAL_RO", "return{redis.call('get',KEYS[1])}", "1", "k"].join(" ");
    for (requests, number) in [
        (&["GET k"][..], 2),
        (&[&format!("GET {other}")], 3),
        (&[&both], 3),
        (&["MULTI", "GET k", "EXEC"], 2),
        (&["MULTI", "GET k", &both, "EXEC"], 3),
        (&[&script], 2),
        (&["DBSIZE"], 3),
        (&["KEYS *"], 3),
        (&["ZCARD index:all"], 3),
        (&["PING"], 0),
    ] {
        assert_eq!(depends_on(requests), number, "{requests:?}");
    }
    // A deletion counts, too.
    writer.say("DEL k");
    follower.catch_up();
    assert_eq!((depends_on(&["EXISTS k"]), depends_on(&[&format!("GET {other}")])), (4, 3));
    writer.say("FLUSHALL");
    follower.catch_up();
    assert_eq!(depends_on(&[&format!("GET {other}")]), 5);
}
