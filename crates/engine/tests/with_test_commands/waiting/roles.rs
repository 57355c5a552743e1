//! Takers and readers, keys that are waited for and keys that are not: which clients are served, in which order, under
//! which locks.

use crate::common::peer::{Peer, flat, names_apart};
use crate::place;
use engine::Persistence;
use execution::clients::pause::PauseMode;
use execution::expiry;
use execution::following;
use execution::waiting;
use keyspace::Key;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

#[test]
fn takers_are_served_in_the_order_of_their_arrival() {
    let place = place(8, 1, &[]);
    let mut giver = Peer::new(&place, 0);
    let mut takers: Vec<_> = (1..=4).map(|number| Peer::waiting(&place, &format!("TEST.MOVE a d{number} 0"))).collect();
    giver.ask("ZADD a 1 m 2 n");
    let served: Vec<_> = takers.iter_mut().map(Peer::served).collect();
    assert_eq!(served, [Some("m".to_owned()), Some("n".to_owned()), None, None]);
    // A client that waits again is the last.
    takers[0].wait("TEST.MOVE a d1 0");
    giver.ask("MULTI");
    giver.ask("ZADD a 5 o");
    giver.ask("ZADD a 4 p 6 q");
    giver.ask("EXEC");
    let served: Vec<_> = [2, 3, 0].map(|number: usize| takers[number].served()).into_iter().flatten().collect();
    assert_eq!(served, ["p", "o", "q"]);
    assert_eq!(
        (giver.ask("ZRANGE d1 0 -1"), giver.ask("ZRANGE d3 0 -1"), giver.ask("EXISTS a")),
        ("m q".into(), "p".into(), "0".into())
    );
}

#[test]
fn readers_are_served_before_takers_and_all_of_them() {
    let place = place(8, 1, &[]);
    let mut giver = Peer::new(&place, 0);
    let mut taker = Peer::waiting(&place, "BZPOPMIN a 0");
    let mut readers: Vec<_> = (0..3).map(|_| Peer::waiting(&place, "TEST.READ a 0 0")).collect();
    let mut high = Peer::waiting(&place, "TEST.READ a 10 0");
    giver.ask("ZADD a 1 m");
    readers.iter_mut().for_each(|reader| assert_eq!(reader.served().as_deref(), Some("m 1")));
    assert_eq!(taker.served().as_deref(), Some("a m 1"));
    assert_eq!(giver.ask("EXISTS a"), "0");
    // Its condition is about what it has asked for.
    giver.ask("ZADD a 5 n");
    assert_eq!(high.served(), None);
    giver.ask("ZADD a 11 o");
    assert_eq!(high.served().as_deref(), Some("o 11"));
    assert_eq!(giver.ask("ZRANGE a 0 -1"), "n o", "readers take nothing");
    // A reader's reply depends on the batch that served it, and writes no batch.
    assert_eq!((high.client.depends_on, high.client.last_batch), (place.kept.tail(), 0));
}

#[test]
fn an_element_that_one_waiter_moves_serves_the_next() {
    let place = place(64, 1, &[]);
    let names = names_apart(&place, 4);
    let [a, b, c, d] = &names[..] else { panic!("four names") };
    let mut giver = Peer::new(&place, 0);
    let mut last = Peer::waiting(&place, &format!("BZPOPMIN {d} 0"));
    let mut movers: Vec<_> = [(c, d), (b, c), (a, b)]
        .iter()
        .map(|(from, to)| Peer::waiting(&place, &format!("TEST.MOVE {from} {to} 0")))
        .collect();
    let mut reader = Peer::waiting(&place, &format!("TEST.READ {c} 0 0"));
    assert_eq!(giver.ask(&format!("ZADD {a} 1 m")), "1");
    assert_eq!(last.served(), Some(format!("{d} m 1")));
    movers.iter_mut().for_each(|mover| assert_eq!(mover.served().as_deref(), Some("m")));
    assert_eq!(reader.served().as_deref(), Some("m 1"), "it was there for a moment");
    // Each of them is one batch, in this order.
    assert_eq!((giver.client.last_batch, place.kept.tail()), (1, 5));
    let batches: Vec<_> = movers.iter().rev().chain([&last]).map(|peer| peer.client.last_batch).collect();
    assert_eq!(batches, [2, 3, 4, 5]);
    assert_eq!(giver.ask(&format!("EXISTS {a} {b} {c} {d}")), "0");
}

/// Moves in a ring end when they reach a key without waiters.
#[test]
fn moves_in_a_ring_end() {
    let place = place(4, 1, &[]);
    let mut giver = Peer::new(&place, 0);
    let mut ring: Vec<_> =
        ["a b", "b c", "c a"].iter().map(|keys| Peer::waiting(&place, &format!("TEST.MOVE {keys} 0"))).collect();
    giver.ask("ZADD a 1 m");
    ring.iter_mut().for_each(|mover| assert_eq!(mover.served().as_deref(), Some("m")));
    assert_eq!(giver.ask("ZRANGE a 0 -1"), "m");
    // From a key to itself.
    let mut alone = Peer::waiting(&place, "TEST.MOVE z z 0");
    giver.ask("ZADD z 1 m");
    assert_eq!((alone.served().as_deref(), giver.ask("ZRANGE z 0 -1")), (Some("m"), "m".to_owned()));
}

/// The destination is locked by another thread while the giver commits: the waiter is served later, and so are the
/// waiters that become ready by that.
#[test]
fn a_destination_that_is_locked_elsewhere_is_waited_for() {
    for ends_by in [EndsBy::Command, EndsBy::Cycle, EndsBy::Unpause] {
        let place = place(64, 2, &[]);
        let engine = &place.engine;
        let names = names_apart(&place, 4);
        let [a, b, c, d] = &names[..] else { panic!("four names") };
        let mut chain: Vec<_> = [(a, b), (b, c), (c, d)]
            .iter()
            .map(|(from, to)| Peer::waiting(&place, &format!("TEST.MOVE {from} {to} 0")))
            .collect();
        let mut behind = Peer::waiting(&place, &format!("TEST.MOVE {a} {d} 0"));
        let held = engine.keyspace.lock_key(Key::new(b.as_bytes()));
        // As if a script had held it for long: then nothing waits for the lock.
        let shard = [engine.keyspace.shard_of(b.as_bytes())];
        engine.keyspace.mark_held_long(&shard, true);
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(Peer::new(&place, 1).ask(&format!("ZADD {a} 1 m")), "1"));
        });
        assert!(waiting::queueing::has_deferred(engine));
        assert!(chain.iter_mut().chain([&mut behind]).all(|peer| peer.client.handle.is_waiting()));
        drop(held);
        engine.keyspace.mark_held_long(&shard, false);
        let mut other = Peer::new(&place, 0);
        match ends_by {
            EndsBy::Command => drop(other.ask("PING")),
            EndsBy::Unpause => {
                // The pause begins first, as if another client sent it at that moment.
                engine.pause.begin(engine.clock.monotonic_ms(), u64::MAX, PauseMode::Writes);
                other.ask("PING");
                assert!(waiting::queueing::has_deferred(engine), "nothing is written while clients are paused");
                other.ask("CLIENT UNPAUSE");
            }
            EndsBy::Cycle => {
                // Also while nothing may expire.
                engine.debug.active_expiry.store(false, Relaxed);
                expiry::expire_cycle(engine, &mut other.worker, 0, 1, u64::MAX / 2);
            }
        }
        assert!(!waiting::queueing::has_deferred(engine));
        chain.iter_mut().for_each(|mover| assert_eq!(mover.served().as_deref(), Some("m"), "{ends_by:?}"));
        assert_eq!((behind.served(), other.ask(&format!("ZRANGE {d} 0 -1"))), (None, "m".to_owned()));
    }
}

#[derive(Clone, Copy, Debug)]
enum EndsBy {
    Command,
    Cycle,
    Unpause,
}

/// Without a script that runs long the giver itself waits for the lock, holding no other, and serves.
#[test]
fn a_giver_serves_when_the_destination_is_free() {
    for order in [0, 1] {
        let place = place(64, 2, &[]);
        let mut names = names_apart(&place, 2);
        names.sort_by_key(|name| place.engine.keyspace.shard_of(name.as_bytes()));
        // The destination in a shard before that of the source, and behind it.
        let (from, to) = (&names[order], &names[1 - order]);
        let mut mover = Peer::waiting(&place, &format!("TEST.MOVE {from} {to} 0"));
        let held = place.engine.keyspace.lock_key(Key::new(to.as_bytes()));
        thread::scope(|scope| {
            let giver = scope.spawn(|| Peer::new(&place, 1).ask(&format!("ZADD {from} 1 m")));
            while place.kept.tail() == 0 {
                thread::yield_now();
            }
            assert_eq!(mover.served(), None, "nothing can be moved to what is locked");
            drop(held);
            assert_eq!(giver.join().expect("it gives"), "1");
        });
        assert_eq!((mover.served().as_deref(), place.kept.tail()), (Some("m"), 2));
    }
}

/// Two waiters with two destinations, the first of which is locked: the second does not overtake.
#[test]
fn no_waiter_overtakes_one_whose_destination_is_locked() {
    let place = place(64, 2, &[]);
    let names = names_apart(&place, 3);
    let [a, b, c] = &names[..] else { panic!("three names") };
    let mut first = Peer::waiting(&place, &format!("TEST.MOVE {a} {b} 0"));
    let mut second = Peer::waiting(&place, &format!("TEST.MOVE {a} {c} 0"));
    let held = place.engine.keyspace.lock_key(Key::new(b.as_bytes()));
    let shard = [place.engine.keyspace.shard_of(b.as_bytes())];
    place.engine.keyspace.mark_held_long(&shard, true);
    thread::scope(|scope| {
        scope.spawn(|| Peer::new(&place, 1).ask(&format!("ZADD {a} 1 m")));
    });
    assert_eq!((first.served(), second.served()), (None, None));
    drop(held);
    place.engine.keyspace.mark_held_long(&shard, false);
    Peer::new(&place, 0).ask("PING");
    assert_eq!((first.served().as_deref(), second.served()), (Some("m"), None));
}

/// A reader waits on a follower: it is served by the effects of the leader.
#[test]
fn a_reader_on_a_follower_is_served_by_the_batches_of_its_leader() {
    let (leader, follower) = (place(4, 1, &[]), place(4, 2, &[]));
    let mut replay = follower.replay(None).go_live(follower.engine.worker(1));
    let mut giver = Peer::new(&leader, 0);
    let mut catch_up = |after| {
        for (sequence, batch) in leader.kept.batches_after(after) {
            replay.batch(sequence, &batch).expect("what was recorded can be applied");
        }
    };
    let mut reader = Peer::waiting(&follower, "TEST.READ a 5 0");
    giver.ask("ZADD a 1 m");
    catch_up(0);
    assert_eq!(reader.served(), None);
    let mut gone = Peer::waiting(&follower, "TEST.GONE a 0");
    giver.ask("ZADD a 6 n");
    catch_up(1);
    assert_eq!((reader.served().as_deref(), reader.client.depends_on), (Some("n 6"), 2));
    assert_eq!(gone.served(), None);
    giver.ask("FLUSHALL");
    catch_up(2);
    assert_eq!((gone.served().as_deref(), gone.client.depends_on), (Some("OK"), 3));
    assert_eq!(follower.kept.tail(), 0);
}

/// A taker that waited before the server became a follower is not served: only the leader may take.
#[test]
fn a_taker_is_not_served_on_a_follower() {
    let (leader, follower) = (place(4, 1, &[]), place(4, 2, &[]));
    let (mut taker, mut other) = (Peer::waiting(&follower, "BZPOPMIN a 0"), Peer::waiting(&follower, "BZPOPMIN b a 0"));
    let mut replay = follower.replay(None).go_live(follower.engine.worker(1));
    Peer::new(&leader, 0).ask("ZADD a 1 m");
    for (sequence, batch) in leader.kept.batches() {
        replay.batch(sequence, &batch).expect("what was recorded can be applied");
    }
    assert_eq!((taker.served(), Peer::new(&follower, 0).ask("ZRANGE a 0 -1")), (None, "m".to_owned()));
    assert_eq!((taker.outcome(true).map(flat).as_deref(), follower.kept.tail()), (Some("nil"), 0));
    // The leader is gone, and this one takes its place.
    following::end_following(&follower.engine, &mut follower.engine.worker(1));
    assert_eq!(Peer::new(&follower, 0).ask("PING"), "PONG");
    assert_eq!((other.served().as_deref(), follower.kept.tail()), (Some("a m 1"), 1));
}
