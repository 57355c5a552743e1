//! Clients that wait for sorted sets while others fill them, on many threads at once: every member is delivered to
//! exactly one client or still there, however the waits end.
//!
//! Prints its seed; `HOLDFAST_TEST_SEED=… cargo test -p engine --test blocking` asks for the same requests again,
//! though never for the same interleaving.

mod common;

use common::place::Place;
use common::seed;
use engine::clients::Unblock;
use engine::{Client, ClientHandle, Engine, Flow, Worker};
use fastrand::Rng;
use resp::{OwnedRequest, Protocol};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

const TAKERS: usize = 6;
const GIVERS: usize = 3;
/// Members that each giver adds.
const EACH: usize = 1_500;
const KEYS: [&str; 4] = ["a", "b", "{x}1", "{x}2"];

#[test]
fn every_member_is_taken_once_or_still_there() {
    let mut random = Rng::with_seed(seed());
    for shards in [1, 4, 64] {
        // One worker for each client, and one for requests in between.
        let place = Place::new(shards, TAKERS + GIVERS + 1, &[("zset-max-listpack-entries", "8")]);
        let mut ends = Ends::default();
        let mut taken = race(&place, &mut random, &mut ends);
        let mut asker = Peer::new(&place, TAKERS + GIVERS, 0);
        for key in KEYS {
            taken.extend(members(&asker.ask(&format!("ZRANGE {key} 0 -1"))));
        }
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        taken.into_iter().for_each(|member| *counts.entry(member).or_default() += 1);
        let wrong: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
        assert!(wrong.is_empty(), "{shards} shards: taken more than once: {wrong:?}");
        assert_eq!(counts.len(), GIVERS * EACH, "{shards} shards: some are lost");
        let info = String::from_utf8(asker.ask("INFO clients")).expect("INFO is text");
        assert!(info.contains("blocked_clients:0\r\n") && info.contains("total_blocking_keys:0\r\n"), "{info}");
        println!("{shards} shards: {ends:?}");
        let Ends { at_once, served, gave_up, unblocked, left } = ends;
        let met = [at_once, served, gave_up, unblocked, left];
        assert!(met.iter().all(|count| *count > 0), "not every end of a wait was met: {met:?}");
    }
}

/// A disconnected client, a killed one and one whose wait was ended take nothing, even before they have left their
/// queues.
#[test]
fn a_client_that_no_longer_waits_takes_nothing() {
    let place = Place::new(4, 1, &[]);
    let mut giver = Peer::new(&place, 0, 1);
    let ends: [fn(&Engine, &mut Client); 4] = [
        |engine, client| engine::forget(engine, client),
        |engine, client| engine.clients.kill(&client.handle),
        |_, client| assert!(client.handle.unblock(Unblock::Timeout)),
        |_, client| assert!(client.handle.unblock(Unblock::Error)),
    ];
    for end in ends {
        let mut waiting = Peer::new(&place, 0, 2);
        let flow = waiting.execute("BZPOPMIN a b 0", &mut Vec::new());
        assert!(matches!(flow, Flow::Block(_)));
        end(&place.engine, &mut waiting.client);
        assert_eq!(giver.ask("ZADD b 1 m"), b":1\r\n");
        assert_eq!(giver.ask("ZPOPMIN b"), b"*2\r\n$1\r\nm\r\n$1\r\n1\r\n");
    }
}

/// Commands that take their locks themselves serve waiters as well: SWEEP, and those that read an index.
#[test]
fn commands_about_indexes_serve_waiters_too() {
    let place = Place::new(8, 1, &[]);
    let (mut giver, mut waiting) = (Peer::new(&place, 0, 1), Peer::new(&place, 0, 2));
    giver.ask("HSET job:1 state running updated_at 5");
    giver.ask("IDX.CREATE idx PREFIX 1 job: FIELD updated_at");
    // One waits for a record to become a sorted set, which a sweep does not make of it.
    giver.ask("RENAME job:1 elsewhere");
    let Flow::Block(blocked) = waiting.execute("BZPOPMIN job:1 z 0", &mut Vec::new()) else { panic!("it waits") };
    giver.ask("RENAME elsewhere job:1");
    giver.ask("SWEEP idx BEFORE 10 WHERE state 1 running RETRY retries 3 ELSE 1 state failed SET 1 state pending");
    assert_eq!(giver.ask("HGET job:1 state"), b"$7\r\npending\r\n");
    assert!(engine::outcome(&place.engine, &waiting.worker, &mut waiting.client, &blocked.event, false).is_none());
    assert_eq!(giver.ask("ZUNIONSTORE z 1 idx"), b":1\r\n");
    let reply = engine::outcome(&place.engine, &waiting.worker, &mut waiting.client, &blocked.event, false);
    assert_eq!(reply.expect("it was served"), b"*3\r\n$1\r\nz\r\n$5\r\njob:1\r\n$1\r\n5\r\n");
}

/// The reply to a served client has the number of the batch that took the member: it waits for the journal.
#[test]
fn a_reply_depends_on_the_batch_that_took_the_member() {
    let place = Place::new(4, 1, &[]);
    let (mut giver, mut waiting) = (Peer::new(&place, 0, 1), Peer::new(&place, 0, 2));
    let Flow::Block(blocked) = waiting.execute("BZPOPMIN a b 0", &mut Vec::new()) else { panic!("it waits") };
    assert!(engine::outcome(&place.engine, &waiting.worker, &mut waiting.client, &blocked.event, false).is_none());
    assert_eq!(giver.ask("ZADD b 1 m"), b":1\r\n");
    let reply = engine::outcome(&place.engine, &waiting.worker, &mut waiting.client, &blocked.event, false);
    assert_eq!(reply.expect("it was served"), b"*3\r\n$1\r\nb\r\n$1\r\nm\r\n$1\r\n1\r\n");
    assert_eq!((giver.client.last_batch, waiting.client.last_batch, waiting.client.depends_on), (1, 2, 2));
    assert_eq!(place.kept.batches().len(), 2);
}

/// How many waits ended in which way.
#[derive(Debug, Default)]
struct Ends {
    at_once: usize,
    served: usize,
    gave_up: usize,
    unblocked: usize,
    left: usize,
}

/// Runs all clients until all members are added and no client waits. Returns the members taken.
fn race(place: &Place, random: &mut Rng, ends: &mut Ends) -> Vec<String> {
    let giving = AtomicUsize::new(GIVERS);
    thread::scope(|scope| {
        let takers: Vec<_> = (0..TAKERS)
            .map(|index| {
                let (seed, giving) = (random.u64(..), &giving);
                scope.spawn(move || take(place, index, seed, giving))
            })
            .collect();
        for giver in 0..GIVERS {
            let (seed, giving) = (random.u64(..), &giving);
            scope.spawn(move || {
                let _giving = Giving(giving);
                give(place, giver, seed);
            });
        }
        let mut taken = Vec::new();
        for taker in takers {
            let (members, its) = taker.join().expect("a taker takes");
            taken.extend(members);
            ends.at_once += its.at_once;
            ends.served += its.served;
            ends.gave_up += its.gave_up;
            ends.unblocked += its.unblocked;
            ends.left += its.left;
        }
        taken
    })
}

/// A giver, until this is dropped: takers stop after the last giver has ended, even by a panic.
struct Giving<'a>(&'a AtomicUsize);

impl Drop for Giving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Adds members of different names, in every way that serves waiters.
fn give(place: &Place, giver: usize, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let mut peer = Peer::new(place, TAKERS + giver, seed);
    let mut next = 0;
    while next < EACH {
        let key = KEYS[random.usize(..KEYS.len())];
        let count = random.usize(1..4).min(EACH - next);
        let members: Vec<String> = (next..next + count).map(|at| format!("{} {giver}:{at}", random.u8(..))).collect();
        next += count;
        let add = format!("ZADD {key} {}", members.join(" "));
        match random.u8(..4) {
            0 => {
                // Into a key that only this giver uses, and from there to the key with waiters. Overwritten members
                // would be lost.
                let own = format!("own:{giver}");
                peer.ask(&add.replacen(key, &own, 1));
                if peer.ask(&format!("RENAMENX {own} {key}")) == b":0\r\n" {
                    peer.ask(&format!("DEL {own}"));
                    peer.ask(&add);
                }
            }
            1 => {
                peer.ask("MULTI");
                peer.ask(&add);
                peer.ask(&format!("ZCARD {key}"));
                peer.ask("EXEC");
            }
            _ => {
                peer.ask(&add);
            }
        }
        // Slower than the takers, so that they wait.
        (0..random.usize(..8)).for_each(|_| thread::yield_now());
    }
}

/// Takes members until no giver is left, with waits that end in every way. Returns the members taken.
fn take(place: &Place, index: usize, seed: u64, giving: &AtomicUsize) -> (Vec<String>, Ends) {
    let mut random = Rng::with_seed(seed);
    let mut peer = Peer::new(place, index, seed);
    let (mut taken, mut ends) = (Vec::new(), Ends::default());
    while giving.load(SeqCst) > 0 {
        let (first, second) = (KEYS[random.usize(..KEYS.len())], KEYS[random.usize(..KEYS.len())]);
        let command = match random.u8(..4) {
            0 => format!("BZPOPMIN {first} 0"),
            1 => format!("BZPOPMAX {first} {second} 0"),
            2 => format!("BZMPOP 0 2 {first} {second} MIN COUNT 2"),
            _ => format!("BZPOPMIN {first} {second} missing 0"),
        };
        let mut reply = Vec::new();
        let Flow::Block(blocked) = peer.execute(&command, &mut reply) else {
            ends.at_once += 1;
            taken.extend(members(&reply));
            continue;
        };
        let outcome = |peer: &mut Peer<'_>, over| {
            engine::outcome(&place.engine, &peer.worker, &mut peer.client, &blocked.event, over)
        };
        let (patience, how) = (random.usize(..24), random.u8(..4));
        let mut served = None;
        for _ in 0..patience {
            served = outcome(&mut peer, false);
            if served.is_some() {
                break;
            }
            thread::yield_now();
        }
        if served.is_none() {
            let handle = peer.client.handle.clone();
            match how {
                0 if handle.unblock(Unblock::Error) => ends.unblocked += 1,
                1 if handle.unblock(Unblock::Timeout) => ends.unblocked += 1,
                2 if handle.end_wait() => {
                    // The connection ends: no commit may take anything for it any more.
                    engine::forget(&place.engine, &mut peer.client);
                    peer = Peer::new(place, index, random.u64(..));
                    ends.left += 1;
                    continue;
                }
                _ => {}
            }
            served = loop {
                if let Some(reply) = outcome(&mut peer, true) {
                    break Some(reply);
                }
                thread::yield_now();
            };
        }
        let given = members(&served.unwrap_or_default());
        if given.is_empty() {
            ends.gave_up += 1
        } else {
            ends.served += 1
        }
        taken.extend(given);
    }
    (taken, ends)
}

/// A client and its worker.
struct Peer<'p> {
    engine: &'p Engine,
    worker: Worker,
    client: Client,
}

impl<'p> Peer<'p> {
    fn new(place: &'p Place, worker: usize, seed: u64) -> Peer<'p> {
        let engine = &place.engine;
        let id = engine.clients.next_id();
        let (address, local) = (format!("127.0.0.1:{}", seed % 1000), "127.0.0.1:6379".to_owned());
        let handle = Arc::new(ClientHandle::new(id, address, local, 9, place.now_ms(), Box::new(|| {})));
        engine.clients.add(handle.clone());
        let client = Client::new(handle, true);
        assert_eq!(client.protocol, Protocol::Resp2);
        Peer { engine, worker: engine.worker(worker), client }
    }

    fn execute(&mut self, words: &str, reply: &mut Vec<u8>) -> Flow {
        let request: OwnedRequest = words.split(' ').map(str::as_bytes).collect();
        self.engine.begin(&mut self.worker);
        engine::execute(self.engine, &mut self.worker, &mut self.client, request.as_request(), reply)
    }

    fn ask(&mut self, words: &str) -> Vec<u8> {
        let mut reply = Vec::new();
        assert!(matches!(self.execute(words, &mut reply), Flow::Continue), "{words}");
        assert_ne!(reply.first(), Some(&b'-'), "{words}: {}", reply.escape_ascii());
        reply
    }
}

/// The members in a reply: they are called `giver:number`, and no other name looks like that.
fn members(reply: &[u8]) -> Vec<String> {
    let text = String::from_utf8(reply.to_vec()).expect("replies are text here");
    let lines = text.split("\r\n").filter(|line| line.contains(':') && !line.starts_with(':'));
    lines.map(str::to_owned).collect()
}
