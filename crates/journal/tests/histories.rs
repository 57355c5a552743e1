//! Random histories with random faults, deaths and power failures. `HOLDFAST_TEST_SEED` runs one of them again,
//! `HOLDFAST_TEST_ROUNDS` more of them.

mod common;

use common::world::World;
use common::{SeedOnPanic, options, seeds};
use fastrand::Rng;
use journal::{Fault, FaultyStorage, FileLogOptions, Log, Maintenance};

fn live(seed: u64) {
    let _seed = SeedOnPanic(seed);
    let mut rng = Rng::with_seed(seed);
    let options = FileLogOptions {
        zero_ahead: rng.u8(..4) == 0,
        prepare_next: rng.bool(),
        reserve_bytes: [0, 400, 4000][rng.usize(..3)],
        ..options([300, 1500, 6000, u64::MAX][rng.usize(..4)])
    };
    let mut world = World::new(FaultyStorage::new(), options, seed);
    world.open(0).unwrap();
    // Some worlds are healthy, in some hardly anything works.
    let faults = [0, 0, 1, 4][rng.usize(..4)];
    for _ in 0..rng.usize(20..150) {
        if rng.u8(..40) < faults {
            let fault = [Fault::Io, Fault::NoSpace, Fault::NoDescriptors, Fault::Short][rng.usize(..4)];
            let number = world.storage.operations() + rng.usize(..6);
            match rng.u8(..4) {
                0 => world.storage.fail_from(number, fault),
                1 => world.storage.limit_space(Some(rng.u64(..40_000))),
                _ => world.storage.fail_at(number, fault),
            }
        }
        if faults == 0 && rng.u8(..3) == 0 {
            world.check_that_loss_is_noticed();
        }
        match rng.u8(..100) {
            0..40 => {
                let ballast = if rng.u8(..10) == 0 { rng.usize(..3000) } else { rng.usize(..200) };
                world.change(ballast);
            }
            40..60 => {
                world.write();
            }
            60..75 => {
                world.sync();
            }
            75..80 => {
                let _ = world.snapshot();
            }
            80..84 => {
                world.compact();
            }
            84..86 => {
                world.restart();
            }
            86..90 => {
                if world.journal.as_ref().unwrap().has_failed() {
                    world.storage.heal();
                    world.restart();
                }
            }
            90..92 => {
                world.close();
                world.kill();
            }
            92..95 => world.kill(),
            95..98 => world.crash(rng.u64(..)),
            98 => world.journal.as_ref().unwrap().set_zero_ahead(rng.bool()),
            _ => {
                // A start that is cut short, by a fault and then by a crash.
                world.journal = None;
                world.storage = if rng.bool() { world.storage.kill() } else { world.storage.crash(rng.u64(..)) };
                world.storage.fail_at(rng.usize(..30), Fault::Io);
                let _ = world.open(0);
                world.journal = None;
                world.crash(rng.u64(..));
            }
        }
    }
    world.check(0..3);
}

#[test]
fn whatever_happens_what_was_promised_is_there() {
    for seed in seeds(150) {
        live(seed);
    }
}
