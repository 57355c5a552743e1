//! Replay with several workers at once, while other threads walk over the keys: the interleaving is not repeatable,
//! only the final state.

use crate::common::place::{Place, Taken};
use crate::common::requests::Source;
use crate::common::seed;
use crate::common::state::State;
use crate::restore;
use engine::Persistence;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

const WORKERS: usize = 3;
const REQUESTS: usize = 500;
/// Of the walks, so many are replayed.
const REPLAYED: usize = 3;

#[test]
fn workers_at_once_and_walks_between_them() {
    let mut random = fastrand::Rng::with_seed(seed());
    for shards in [1, 4, 128] {
        let settings = [("hash-max-listpack-entries", "8")];
        let live = Place::new(shards, WORKERS, &settings);
        let taken = run(&live, &mut random);
        let (expected, batches) = (State::of(&live.engine), live.kept.batches());
        println!("{shards} shards, {} batches, {} walks", batches.len(), taken.len());
        let restored = Place::new(4, 1, &settings);
        let mut replay = restored.replay(None);
        for (sequence, batch) in &batches {
            replay.batch(*sequence, batch).expect("what was recorded can be applied");
        }
        State::of(&restored.engine).assert_is(&expected, "from nothing");
        for (number, taken) in taken.iter().enumerate().step_by(taken.len().div_ceil(REPLAYED)) {
            for after in [taken.oldest(), taken.begun_after] {
                let restored = Place::new(1 << random.usize(..8), 1, &settings);
                restore(&restored, taken.placement, &taken.parts, &batches, after);
                let what = format!("walk {number}, parts of {} to {}, {after}", taken.oldest(), taken.newest());
                State::of(&restored.engine).assert_is(&expected, &what);
            }
        }
    }
}

/// Has workers change keys until each has done its share, and gives back the walks that were made meanwhile.
fn run(live: &Place, random: &mut fastrand::Rng) -> Vec<Taken> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|index| {
                let seed = random.u64(..);
                scope.spawn(move || work(live, index, seed))
            })
            .collect();
        let walker = scope.spawn(|| {
            let mut finished = Vec::new();
            while !done.load(Relaxed) {
                let begun_after = live.kept.tail();
                let mut walk = engine::walk(&live.engine);
                let mut taken = Taken::of(&walk, begun_after);
                while taken.step(&mut walk) {
                    // As a disk would.
                    thread::yield_now();
                }
                finished.push(taken);
            }
            finished
        });
        let worked: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Relaxed);
        worked.into_iter().for_each(|outcome| outcome.expect("a worker works"));
        walker.join().expect("a walker walks")
    })
}

fn work(live: &Place, index: usize, seed: u64) {
    let mut source = Source::new(seed);
    let mut asker = live.asker(index);
    let mut left = REQUESTS;
    while left > 0 {
        source.now_ms = live.now_ms();
        match source.random.u8(..10) {
            0 => live.pass_ms(source.random.u64(..50)),
            1 => asker.expire(),
            2..=4 => {
                let requests: Vec<_> = (0..source.random.usize(2..8)).map(|_| source.request()).collect();
                asker.ask_at_once(&requests);
                left = left.saturating_sub(requests.len());
            }
            _ => {
                let request = source.request();
                let reply = asker.ask(&request);
                source.hear(&request, &reply);
                left -= 1;
            }
        }
    }
}
