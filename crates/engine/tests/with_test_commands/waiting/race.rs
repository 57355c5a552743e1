//! Takers, movers and readers that wait on several threads while others give: each member is taken exactly once or
//! still there, and in the end no client waits for a member that is there.
//!
//! Prints its seed; `HOLDFAST_TEST_SEED=… cargo test -p engine --lib race` asks for the same requests again, though
//! never for the same interleaving.

use crate::common::peer::{Peer, flat};
use crate::common::place::Place;
use crate::common::seed;
use crate::place;
use engine::{Blocked, Client};
use execution::clients::Unblock;
use execution::departure;
use execution::expiry;
use execution::waiting;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

const CLIENTS: usize = 5;
const GIVERS: usize = 2;
/// Members that each giver adds.
const EACH: usize = 250;
const KEYS: [&str; 5] = ["a", "b", "c", "{x}1", "{x}2"];
/// Scores are below.
const SCORES: u32 = 100;

#[test]
fn each_member_is_taken_once_and_no_client_waits_for_an_existing_one() {
    let mut random = Rng::with_seed(seed());
    for shards in [1, 4, 64] {
        // One worker each, and one for the checks afterwards.
        let place = place(shards, CLIENTS + GIVERS + 1, &[]);
        let giving = AtomicUsize::new(GIVERS);
        let ends: Vec<End> = thread::scope(|scope| {
            let (place, giving) = (&place, &giving);
            let clients: Vec<_> = (0..CLIENTS)
                .map(|index| {
                    let seed = random.u64(..);
                    scope.spawn(move || wait_again_and_again(place, index, seed, giving))
                })
                .collect();
            for index in 0..GIVERS {
                let seed = random.u64(..);
                scope.spawn(move || {
                    let _giving = Giving(giving);
                    give(place, CLIENTS + index, seed);
                });
            }
            clients.into_iter().map(|client| client.join().expect("a client waits")).collect()
        });
        look(&place, ends, shards);
    }
}

/// A giver, until this is dropped: waiters stop after the last giver has ended, even by a panic.
struct Giving<'a>(&'a AtomicUsize);

impl Drop for Giving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// The result of a client: what it has taken, and what it still waits for.
struct End {
    taken: Vec<String>,
    moved: usize,
    waiting: Option<(Client, Blocked, String)>,
}

fn give(place: &Place, worker: usize, seed: u64) {
    let (mut random, mut peer) = (Rng::with_seed(seed), Peer::new(place, worker));
    for number in 0..EACH {
        let (key, score) = (pick(&mut random), random.u32(..SCORES));
        let add = format!("ZADD {key} {score} m:{worker}:{number}");
        match random.u8(..6) {
            3 => {
                // Into a key that only this giver uses, and from there to the key with waiters.
                let own = format!("own:{worker}");
                peer.ask(&add.replacen(key, &own, 1));
                if peer.ask(&format!("RENAMENX {own} {key}")) == "0" {
                    peer.ask(&format!("DEL {own}"));
                    peer.ask(&add);
                }
            }
            0 => {
                let other = pick(&mut random);
                for request in ["MULTI", &add, &format!("ZCARD {other}"), "EXEC"] {
                    peer.ask(request);
                }
            }
            1 => {
                let script = format!("redis.call('zadd', KEYS[1], {score}, ARGV[1])");
                peer.ask(&format!("EVAL \"{script}\" 1 {key} m:{worker}:{number}"));
            }
            _ => drop(peer.ask(&add)),
        }
        // Slower than the takers, so that they wait.
        (0..random.usize(..8)).for_each(|_| thread::yield_now());
    }
}

fn pick(random: &mut Rng) -> &'static str {
    KEYS[random.usize(..KEYS.len())]
}

/// Waits for one key after the other, until all givers have ended.
fn wait_again_and_again(place: &Place, worker: usize, seed: u64, giving: &AtomicUsize) -> End {
    let (mut random, mut peer) = (Rng::with_seed(seed), Peer::new(place, worker));
    let mut end = End { taken: Vec::new(), moved: 0, waiting: None };
    loop {
        let command = match random.u8(..8) {
            0 => format!("BZPOPMIN {} {} 0", pick(&mut random), pick(&mut random)),
            1 => format!("BZPOPMAX {} missing {} 0", pick(&mut random), pick(&mut random)),
            2 => format!("BZMPOP 0 2 {} {} MIN COUNT 2", pick(&mut random), pick(&mut random)),
            3..6 => format!("TEST.MOVE {} {} 0", pick(&mut random), pick(&mut random)),
            6 => format!("TEST.READ {} {} 0", pick(&mut random), random.u32(..SCORES)),
            _ => format!("TEST.GONE {} 0", pick(&mut random)),
        };
        let mut reply = peer.execute(&command).map(flat);
        let patience = random.usize(..60);
        let mut looks = 0;
        while reply.is_none() {
            reply = peer.served();
            if reply.is_some() {
                break;
            }
            if giving.load(SeqCst) == 0 {
                let Peer { client, blocked, .. } = peer;
                end.waiting = Some((client, blocked.expect("it waits"), command));
                return end;
            }
            looks += 1;
            if looks == patience {
                match random.u8(..4) {
                    0 => drop(peer.client.handle.unblock(Unblock::Timeout)),
                    1 => drop(peer.client.handle.unblock(Unblock::Error)),
                    2 if peer.client.handle.end_wait() => {
                        // The connection ends: no commit may take anything for it any more.
                        departure::forget(&place.engine, &mut peer.client);
                        peer = Peer::new(place, worker);
                        reply = Some("nil".to_owned());
                    }
                    // A commit that serves it at this moment wins.
                    _ => reply = peer.outcome(true).map(flat),
                }
            }
            thread::yield_now();
        }
        note(&mut end, &command, &reply.expect("it has one"));
        if giving.load(SeqCst) == 0 {
            departure::forget(&place.engine, &mut peer.client);
            return end;
        }
    }
}

/// Checks a reply and counts the members in it.
fn note(end: &mut End, command: &str, reply: &str) {
    if reply == "nil" || reply.starts_with("-UNBLOCKED") {
        return;
    }
    let (words, found): (Vec<&str>, Vec<&str>) = (command.split(' ').collect(), reply.split(' ').collect());
    match words[0] {
        _ if words[0].starts_with("BZ") => {
            end.taken.extend(found.into_iter().filter(|word| word.starts_with("m:")).map(str::to_owned));
        }
        "TEST.MOVE" => end.moved += 1,
        "TEST.READ" => {
            let [score, above] = [found[1], words[2]].map(|text| text.parse::<u32>().expect("a score is a number"));
            assert!(score > above, "{command}: {reply}");
        }
        _ => assert_eq!(reply, "OK", "{command}"),
    }
}

/// At the end: compares the members that were given with those taken, and the waiters with the members that are left.
fn look(place: &Place, ends: Vec<End>, shards: usize) {
    let mut peer = Peer::new(place, CLIENTS + GIVERS);
    // As the server does ten times a second: waiters that could not be served because another thread held a lock are
    // served now.
    expiry::expire_cycle(&place.engine, &mut peer.worker, 0, 1, u64::MAX / 2);
    assert!(!waiting::queueing::has_deferred(&place.engine));
    let (mut taken, mut moved, mut waiting) = (Vec::new(), 0, 0);
    for mut end in ends {
        if let Some((mut client, blocked, command)) = end.waiting.take() {
            match waiting::outcome(&place.engine, &peer.worker, &mut client, &blocked.event, false) {
                Some(reply) => note(&mut end, &command, &flat(reply)),
                None => {
                    waiting += 1;
                    assert_has_nothing(&mut peer, &command);
                    departure::forget(&place.engine, &mut client);
                }
            }
        }
        taken.extend(end.taken);
        moved += end.moved;
    }
    let left: Vec<String> = KEYS.iter().map(|key| peer.ask(&format!("ZRANGE {key} 0 -1"))).collect();
    let left: Vec<&str> = left.iter().flat_map(|members| members.split(' ')).filter(|name| !name.is_empty()).collect();
    println!("{shards} shards: {} taken, {} left, {moved} moves, {waiting} wait", taken.len(), left.len());
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    taken.iter().map(String::as_str).chain(left).for_each(|member| *counts.entry(member).or_default() += 1);
    let wrong: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
    assert!(wrong.is_empty(), "{shards} shards: more than once: {wrong:?}");
    assert_eq!(counts.len(), GIVERS * EACH, "{shards} shards: some are lost");
    let info = peer.ask("INFO clients");
    assert!(info.contains("blocked_clients:0") && info.contains("total_blocking_keys:0"), "{info}");
}

/// One that waits for ever may do so only as long as there is nothing for it.
fn assert_has_nothing(peer: &mut Peer<'_>, command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    let (request, without) = match words[0] {
        "BZMPOP" => (format!("EXISTS {} {}", words[3], words[4]), "0"),
        "BZPOPMAX" => (format!("EXISTS {} {}", words[1], words[3]), "0"),
        "BZPOPMIN" => (format!("EXISTS {} {}", words[1], words[2]), "0"),
        "TEST.MOVE" => (format!("EXISTS {}", words[1]), "0"),
        "TEST.READ" => (format!("ZCOUNT {} ({} +inf", words[1], words[2]), "0"),
        _ => (format!("EXISTS {}", words[1]), "1"),
    };
    assert_eq!(peer.ask(&request), without, "{command} waits though there is something for it");
}
