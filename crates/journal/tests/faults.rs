//! One history, and every operation in it fails in turn, in every way.

mod common;

use common::world::World;
use common::{SeedOnPanic, number, options};
use journal::{Fault, FaultyStorage, FileLogOptions, Log};

/// A history that does everything once, and goes on as well as it can when something fails.
fn live(world: &mut World) {
    let written = world.written();
    // A start that fails changes nothing that was promised; then the disk is repaired.
    while world.journal.is_none() && world.open(written).is_err() {
        world.check(0..2);
        world.storage.heal();
    }
    for round in 0..4 {
        world.change(40);
        world.change(700 * round);
        world.write();
        world.change(10);
        world.sync();
    }
    world.compact();
    world.change(100);
    world.write();
    if world.journal.as_ref().unwrap().has_failed() {
        world.check(0..2);
        world.restart();
    }
    world.change(100);
    world.sync();
}

/// Runs the history with faults, then reads what is left.
fn live_with(options: &FileLogOptions, site: usize, prepare: impl Fn(&FaultyStorage)) -> usize {
    let _seed = SeedOnPanic(site as u64);
    let storage = FaultyStorage::new();
    prepare(&storage);
    let mut world = World::new(storage, options.clone(), 1);
    live(&mut world);
    world.check(0..4);
    world.close();
    world.check(4..6);
    live(&mut world);
    world.check(6..10);
    let operations = world.storage.operations();
    // Whatever has happened: repaired and restarted, all is as it should be.
    world.storage.heal();
    if world.journal.as_ref().unwrap().has_failed() {
        assert!(world.restart());
    }
    world.change(5);
    assert!(world.sync());
    world.check(10..12);
    world.crash(12);
    world.kill();
    operations
}

/// Each operation fails in one of the ways, another one each time; in all five with `HOLDFAST_TEST_ROUNDS=5`.
fn every_site_fails(options: FileLogOptions) {
    let sites = live_with(&options, usize::MAX, |_| {});
    assert!(sites > 60, "the history has {sites} operations");
    let (first, ways) = (fastrand::usize(..5), number("HOLDFAST_TEST_ROUNDS").unwrap_or(1) as usize);
    for site in 0..sites {
        for way in (first + site..).take(ways) {
            match [Fault::Io, Fault::NoSpace, Fault::NoDescriptors, Fault::Short].get(way % 5) {
                Some(fault) => live_with(&options, site, |storage| storage.fail_at(site, *fault)),
                None => live_with(&options, site, |storage| storage.fail_from(site, Fault::Io)),
            };
        }
    }
}

#[test]
fn every_site_fails_in_turn() {
    every_site_fails(options(1000));
}

#[test]
fn every_site_fails_in_turn_with_zeros_written_ahead() {
    every_site_fails(FileLogOptions { zero_ahead: true, ..options(3000) });
}

#[test]
fn every_site_fails_in_turn_with_a_reserve() {
    every_site_fails(FileLogOptions { reserve_bytes: 300, ..options(1000) });
}

#[test]
fn the_disk_is_full_at_every_size() {
    for reserve_bytes in [0, 500] {
        let options = FileLogOptions { reserve_bytes, ..options(1000) };
        for bytes_max in (8000 + fastrand::usize(..200)..20_000).step_by(200) {
            live_with(&options, bytes_max, |storage| storage.limit_space(Some(bytes_max as u64)));
        }
    }
}
