//! A disk that is nearly full: that there is no room is known before a write fails.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{FRAME_HEADER_LEN, SEGMENT_HEADER_LEN, SeedOnPanic, batches, open_with, options, seeds, snapshot};
use fastrand::Rng;
use journal::{Fault, FaultyStorage, FileLog, FileLogOptions, Log, Maintenance, Operation, Storage};

const RESERVE: u64 = 800;

fn with_reserve(segment_bytes_max: u64) -> FileLogOptions {
    FileLogOptions { reserve_bytes: RESERVE, ..options(segment_bytes_max) }
}

/// Waits until there is room, or none, as only the journal's own thread can bring about.
fn wait_for_room(journal: &FileLog, has_room: bool) {
    while journal.has_room() != has_room {
        std::thread::yield_now();
    }
}

fn reserves(storage: &FaultyStorage) -> usize {
    storage.sites().iter().filter(|site| site.operation == Operation::Reserve).count()
}

#[test]
fn room_comes_and_goes_and_watchers_hear_of_it() {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, with_reserve(u64::MAX)).unwrap();
    let heard = Arc::new(AtomicUsize::new(0));
    let for_watcher = heard.clone();
    journal.watch(Box::new(move || {
        for_watcher.fetch_add(1, Ordering::SeqCst);
    }));
    assert!(journal.has_room());
    for round in 0..3 {
        storage.limit_space(Some(storage.space_bytes()));
        let mut written = 0;
        while journal.has_room() {
            journal.write(journal.append(&[b'x'; 100], 0)).unwrap();
            written += 1;
        }
        assert!(written > 0, "the reserve is there to be used");
        // No sync, so there is nothing else to hear of.
        while heard.load(Ordering::SeqCst) < round * 2 + 1 {
            std::thread::yield_now();
        }
        // What is under way has still as much space as was left.
        journal.write(journal.append(&[b'x'; RESERVE as usize - 2 * (100 + FRAME_HEADER_LEN)], 0)).unwrap();
        assert!(!journal.has_room() && !journal.has_failed());
        storage.limit_space(None);
        wait_for_room(&journal, true);
        while heard.load(Ordering::SeqCst) < round * 2 + 2 {
            std::thread::yield_now();
        }
    }
    let count = journal.tail().0 as usize;
    journal.wait_durable(journal.tail()).unwrap();
    assert_eq!(batches(&storage.crash(0)).len(), count);
}

/// The caller need not write for the journal to find out.
#[test]
fn a_journal_that_starts_on_a_full_disk_has_no_room_until_there_is_some() {
    let storage = FaultyStorage::new();
    drop(open_with(&storage, with_reserve(4096)).unwrap());
    // Just enough for the header.
    storage.limit_space(Some(8192 + SEGMENT_HEADER_LEN as u64));
    let journal = open_with(&storage, with_reserve(4096)).unwrap();
    assert!(!journal.has_room() && !journal.has_failed());
    storage.limit_space(None);
    wait_for_room(&journal, true);
    journal.wait_durable(journal.append(&[b'x'; RESERVE as usize], 0)).unwrap();
}

/// As long as there is room, a write that fits the reserve succeeds, whatever others do to the disk.
#[test]
fn a_write_that_fits_the_reserve_succeeds_on_a_full_disk() {
    for seed in seeds(60) {
        let _seed = SeedOnPanic(seed);
        let mut rng = Rng::with_seed(seed);
        let storage = FaultyStorage::new();
        let zero_ahead = rng.u8(..3) == 0;
        let segment_bytes_max = [1500, 5000, u64::MAX][rng.usize(..3)];
        let prepare_next = rng.bool();
        let options = FileLogOptions { zero_ahead, prepare_next, ..with_reserve(segment_bytes_max) };
        let journal = open_with(&storage, options).unwrap();
        let (mut written, mut refused) = (0, 0);
        for _ in 0..200 {
            match rng.u8(..10) {
                0 => storage.limit_space(Some(storage.space_bytes() + rng.u64(..4000))),
                1 => storage.limit_space(Some(rng.u64(..storage.space_bytes()))),
                2 => journal.wait_durable(journal.tail()).unwrap(),
                3 => journal.rotate().unwrap(),
                _ if !journal.has_room() => {
                    refused += 1;
                    if refused % 3 == 0 {
                        storage.limit_space(None);
                        journal.write(journal.append(b"any write looks at the new segment, too", 0)).unwrap();
                        written += 1;
                        journal.rotate().unwrap();
                    }
                }
                _ => {
                    let bytes = rng.usize(..RESERVE as usize - FRAME_HEADER_LEN);
                    journal.write(journal.append(&vec![b'x'; bytes.max(1)], 0)).unwrap();
                    written += 1;
                }
            }
            assert!(!journal.has_failed(), "{:?}", journal.failure());
        }
        storage.limit_space(None);
        assert_eq!(batches(&storage.kill()).len(), written);
        journal.close().unwrap();
        assert_eq!(batches(&storage.crash(seed)).len(), written);
    }
}

#[test]
fn what_is_reserved_is_given_back() {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, with_reserve(1000)).unwrap();
    let length = |storage: &FaultyStorage| -> u64 {
        storage.names().iter().map(|name| storage.bytes_of(name).unwrap().len() as u64).sum()
    };
    for _ in 0..10 {
        journal.write(journal.append(&[b'x'; 400], 0)).unwrap();
        // For the newest segment only. That of the one before is given back on another thread.
        let is_given_back = || (RESERVE..=3 * RESERVE).contains(&(storage.space_bytes() - length(&storage)));
        while !is_given_back() {
            std::thread::yield_now();
        }
    }
    assert!(storage.names().iter().filter(|name| name.ends_with(".seg")).count() >= 5);
    journal.close().unwrap();
    assert_eq!(storage.space_bytes(), length(&storage));

    // A process that was killed leaves its reserve behind. The next one has its own only.
    let journal = open_with(&storage, with_reserve(u64::MAX)).unwrap();
    journal.write(journal.append(b"batch", 0)).unwrap();
    let killed = storage.kill();
    assert!(killed.space_bytes() > length(&killed) + RESERVE);
    let journal = open_with(&killed, with_reserve(u64::MAX)).unwrap();
    assert!(killed.space_bytes() <= length(&killed) + 3 * RESERVE);
    journal.close().unwrap();
    assert_eq!(killed.space_bytes(), length(&killed));
}

#[test]
fn space_is_reserved_in_large_steps() {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, with_reserve(u64::MAX)).unwrap();
    for _ in 0..1000 {
        journal.write(journal.append(b"batch", 0)).unwrap();
    }
    let bytes = 1000 * (FRAME_HEADER_LEN as u64 + 5);
    assert!(reserves(&storage) as u64 <= 2 + bytes / (2 * RESERVE), "{} calls", reserves(&storage));
    // Nor is there one for each write on a disk that is full, when the thread looks for space ten times a second.
    storage.limit_space(Some(0));
    while journal.has_room() {
        journal.write(journal.append(b"batch", 0)).unwrap();
    }
    let operations = storage.operations();
    (0..20).for_each(|_| journal.write(journal.append(b"batch", 0)).unwrap());
    let sites = &storage.sites()[operations..];
    let quiet = sites.windows(2).filter(|pair| pair.iter().all(|site| site.operation == Operation::Write)).count();
    assert!(quiet > 0, "every write asks for space: {sites:?}");
}

/// As before there was a reserve: what does not fit fails, and no other than that.
#[test]
fn a_batch_larger_than_the_reserve_fails_on_a_full_disk() {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, with_reserve(u64::MAX)).unwrap();
    // With space for it, it is written; the reserve behind it is there again.
    journal.wait_durable(journal.append(&[b'x'; 10 * RESERVE as usize], 0)).unwrap();
    assert!(journal.has_room());
    storage.limit_space(Some(storage.space_bytes()));
    assert!(journal.write(journal.append(&[b'x'; 10 * RESERVE as usize], 0)).is_err());
    assert!(journal.has_failed());
    // A restart finds its own space.
    storage.limit_space(None);
    journal.restart().unwrap();
    assert!(journal.has_room());
    let info = snapshot(&journal, "state");
    journal.accept(info.min).unwrap();
    journal.wait_durable(journal.append(b"after", 0)).unwrap();
    assert_eq!(batches(&storage.crash(0)), ["after"]);
}

/// Only want of space is an answer. Whatever else is wrong, writes will tell.
#[test]
fn a_reserve_that_fails_otherwise_is_no_want_of_space() {
    for (fault, has_room) in [(Fault::Io, true), (Fault::NoDescriptors, true), (Fault::NoSpace, false)] {
        let storage = FaultyStorage::new();
        drop(open_with(&storage, with_reserve(4096)).unwrap());
        let opening = storage.kill();
        let count = {
            let journal = open_with(&opening.clone(), with_reserve(4096)).unwrap();
            assert!(journal.has_room());
            opening.operations()
        };
        let at = opening.sites().iter().position(|site| site.operation == Operation::Reserve).unwrap();
        assert!(at < count);
        let opening = storage.kill();
        opening.fail_at(at, fault);
        opening.fail_at(at + 1, if has_room { Fault::Short } else { fault });
        let journal = open_with(&opening, with_reserve(4096)).unwrap();
        assert_eq!(journal.has_room(), has_room, "{fault:?}");
        journal.wait_durable(journal.append(b"batch", 0)).unwrap();
    }
}

/// It does not hide what the disk has to say.
#[test]
fn a_ballast_file_takes_the_room_and_its_removal_gives_it_back() {
    let storage = FaultyStorage::new();
    storage.limit_space(Some(50_000));
    let journal = open_with(&storage, with_reserve(u64::MAX)).unwrap();
    let ballast = storage.create("ballast").unwrap();
    ballast.reserve(0, 50_000 - storage.space_bytes()).unwrap();
    while journal.has_room() {
        journal.write(journal.append(&[b'x'; 50], 0)).unwrap();
    }
    storage.remove("ballast").unwrap();
    wait_for_room(&journal, true);
    journal.wait_durable(journal.append(&[b'x'; RESERVE as usize], 0)).unwrap();
}

/// The file of the next segment is there before it is needed, gives its space up to the current segment, and is left
/// behind by nobody.
#[test]
fn the_next_segment_is_prepared() {
    const PREPARED: &str = "journal-prepared-";
    let open = |storage| open_with(storage, FileLogOptions { prepare_next: true, ..with_reserve(4096) }).unwrap();
    let is_there = |storage: &FaultyStorage| storage.names().iter().any(|name| name.starts_with(PREPARED));
    let rotate = |journal: &FileLog, storage: &FaultyStorage| {
        journal.write(journal.append(b"a segment", 0)).unwrap();
        journal.rotate().unwrap();
        while !is_there(storage) {
            std::thread::yield_now();
        }
    };
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    rotate(&journal, &storage);
    // The current segment was not made of it, so it needs more space before it is full.
    storage.limit_space(Some(storage.space_bytes()));
    while is_there(&storage) {
        journal.write(journal.append(&[b'x'; 100], 0)).unwrap();
    }
    assert!(journal.has_room(), "the current segment has its space");
    storage.limit_space(None);
    let creations = |storage: &FaultyStorage| {
        storage
            .sites()
            .iter()
            .filter(|site| site.operation == Operation::Create && !site.file.starts_with(PREPARED))
            .count()
    };
    rotate(&journal, &storage);
    let created = creations(&storage);
    for _ in 0..3 {
        rotate(&journal, &storage);
    }
    assert_eq!(creations(&storage), created, "each was made of the file that was prepared");

    let storage = storage.kill();
    assert!(is_there(&storage));
    let journal = open(&storage);
    assert!(!is_there(&storage), "a start removes what a crash has left");
    rotate(&journal, &storage);
    journal.close().unwrap();
    assert!(!is_there(&storage));
}
