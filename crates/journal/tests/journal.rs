//! The journal on a storage that works: what goes in comes out, segments come and go, restarts need a snapshot.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{
    FRAME_HEADER_LEN, SEGMENT_HEADER_LEN, batches, contents, open, open_with, options, read, snapshot, stamp,
};
use journal::{
    Batch, Directory, Failure, Fault, FaultyStorage, FileLogOptions, History, Log, LogReader, Maintenance, Operation,
    ReadError, Recovery, Sequence, SnapshotError, Storage, Warning,
};

fn read_all(journal: &dyn LogReader, from: u64) -> Vec<String> {
    let (batches, error) = read(journal, from);
    assert!(error.is_none(), "{error:?}");
    batches.into_iter().map(|batch| String::from_utf8(batch.payload).unwrap()).collect()
}

fn segments(storage: &FaultyStorage) -> Vec<String> {
    storage.names().into_iter().filter(|name| name.ends_with(".seg")).collect()
}

#[test]
fn marks_follow_a_batch_to_the_disk() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    assert_eq!(journal.append(b"one", 0), Sequence(1));
    assert_eq!(journal.append(b"two", 0), Sequence(2));
    assert_eq!((journal.tail(), journal.written(), journal.durable()), (Sequence(2), Sequence(0), Sequence(0)));
    journal.write(Sequence(1)).unwrap();
    assert_eq!((journal.written(), journal.durable()), (Sequence(2), Sequence(0)));
    journal.wait_durable(Sequence(2)).unwrap();
    assert_eq!(journal.durable(), Sequence(2));
    assert_eq!(batches(&storage.crash(1)), ["one", "two"]);
    assert_eq!(read_all(&journal, 2), ["two"]);
}

#[test]
fn watchers_hear_of_every_advance_and_of_failure() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    let heard = Arc::new(AtomicUsize::new(0));
    let for_watcher = heard.clone();
    journal.watch(Box::new(move || {
        for_watcher.fetch_add(1, Ordering::SeqCst);
    }));
    let wait_for = |count| {
        while heard.load(Ordering::SeqCst) < count {
            std::thread::yield_now();
        }
    };
    let sequence = journal.append(b"a", 0);
    journal.write(sequence).unwrap();
    journal.request_sync();
    wait_for(1);
    assert_eq!(journal.durable(), sequence);
    storage.fail_from(storage.operations(), Fault::NoSpace);
    assert!(journal.write(journal.append(b"b", 0)).is_err());
    wait_for(2);
    assert!(journal.has_failed());
}

#[test]
fn a_clock_syncs_without_being_asked() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    journal.set_sync_every(Some(Duration::from_millis(1)));
    for _ in 0..3 {
        let sequence = journal.append(b"a", 0);
        journal.write(sequence).unwrap();
        while journal.durable() < sequence {
            std::thread::yield_now();
        }
    }
}

#[test]
fn segments_end_at_their_limit_and_a_large_batch_makes_a_large_one() {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, options((SEGMENT_HEADER_LEN + 2 * (FRAME_HEADER_LEN + 52)) as u64)).unwrap();
    for size in [50, 50, 50, 1000, 10, 10] {
        let sequence = journal.append(&vec![b'x'; size], 0);
        journal.write(sequence).unwrap();
    }
    journal.wait_durable(journal.tail()).unwrap();
    let firsts: Vec<String> = [1, 3, 4, 5].iter().map(|first| format!("journal-{first:020}.seg")).collect();
    assert_eq!(segments(&storage), firsts);
    assert_eq!(batches(&storage.crash(0)).len(), 6);
    let on_disk: usize = segments(&storage).iter().map(|name| storage.bytes_of(name).unwrap().len()).sum();
    assert_eq!(journal.bytes(), on_disk as u64);
}

/// Without a descriptor, or whatever else is missing, the segment goes on; nothing fails, and nothing is lost.
#[test]
fn a_segment_goes_on_while_the_next_cannot_be_made() {
    for fault in [Fault::NoDescriptors, Fault::NoSpace, Fault::Io] {
        for step in 0..3 {
            let storage = FaultyStorage::new();
            let journal = open_with(&storage, options(200)).unwrap();
            journal.wait_durable(journal.append(&[b'x'; 100], 0)).unwrap();
            // Making it, writing its header, giving it its name. Descriptors are needed for the first only.
            storage.fail_at(storage.operations() + step, fault);
            let has_failed = step == 0 || fault != Fault::NoDescriptors;
            journal.write(journal.append(&[b'y'; 100], 0)).unwrap();
            assert_eq!(segments(&storage).len(), if has_failed { 1 } else { 2 }, "{fault:?} at {step}");
            journal.wait_durable(journal.append(b"z", 0)).unwrap();
            assert_eq!(batches(&storage.crash(0)).len(), 3);
            // A bit later it is tried again.
            journal.wait_durable(journal.append(&[b'z'; 100], 0)).unwrap();
            assert!(segments(&storage).len() > 1, "{fault:?} at {step}");
            assert_eq!((batches(&storage.crash(0)).len(), journal.has_failed()), (4, false));
            journal.rotate().unwrap();
            assert!(!storage.names().iter().any(|name| name.ends_with(".tmp")));
            drop(journal);
            open(&storage).close().unwrap();
            assert_eq!(batches(&storage.crash(1)).len(), 4);
        }
    }
}

/// Syncs and clean stops need no descriptor either.
#[test]
fn nothing_is_opened_once_a_journal_is_open() {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, options(300)).unwrap();
    journal.wait_durable(journal.append(&[b'x'; 250], 0)).unwrap();
    journal.write(journal.append(&[b'x'; 250], 0)).unwrap();
    assert_eq!(segments(&storage).len(), 2);
    storage.fail_from(storage.operations(), Fault::NoDescriptors);
    journal.wait_durable(journal.append(b"the directory is synced with this", 0)).unwrap();
    for _ in 0..10 {
        journal.wait_durable(journal.append(&[b'x'; 100], 0)).unwrap();
    }
    journal.rotate().unwrap();
    journal.forget(Sequence(1)).unwrap();
    assert_eq!(segments(&storage).len(), 1);
    journal.close().unwrap();
    assert!(!storage.sites().iter().any(|site| site.operation == Operation::Open && site.file.ends_with(".seg")));
}

#[test]
fn zeros_ahead_are_not_data_and_are_trimmed() {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, FileLogOptions { zero_ahead: true, ..options(200) }).unwrap();
    for _ in 0..6 {
        journal.wait_durable(journal.append(&[b'x'; 50], 0)).unwrap();
    }
    let current = segments(&storage).pop().unwrap();
    assert!(storage.bytes_of(&current).unwrap().len() > 3000);
    let (found, warnings) = contents(&storage.kill()).unwrap();
    assert_eq!((found.batches.len(), warnings), (6, vec![]));
    journal.close().unwrap();
    for name in segments(&storage) {
        assert!(storage.bytes_of(&name).unwrap().len() <= 300, "{name}");
    }
    assert_eq!(batches(&storage.crash(3)).len(), 6);
}

#[test]
fn reading_starts_anywhere_and_says_what_is_gone() {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, options(200)).unwrap();
    for number in 1..=20 {
        journal.write(journal.append(format!("batch {number} {}", "x".repeat(40)).as_bytes(), 0)).unwrap();
    }
    for from in 0..=22 {
        let expected = 21usize.saturating_sub(from.max(1));
        assert_eq!(read_all(&journal, from as u64).len(), expected, "from {from}");
    }
    let info = snapshot(&journal, "all");
    journal.forget(info.min).unwrap();
    assert_eq!(journal.bytes_since_forget(), 0);
    assert_eq!(segments(&storage).len(), 1);
    let (_, gone) = read(&journal, 1);
    assert!(matches!(gone, Some(ReadError::Forgotten { oldest }) if oldest > Sequence(1)), "{gone:?}");
}

#[test]
fn forgetting_keeps_what_the_snapshot_does_not_have() {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, options(200)).unwrap();
    for number in 1..=6 {
        journal.write(journal.append(format!("{number}{}", "x".repeat(80)).as_bytes(), 0)).unwrap();
    }
    assert_eq!(segments(&storage).len(), 6);
    journal.forget(Sequence(3)).unwrap();
    assert_eq!(segments(&storage).len(), 3);
    assert_eq!(read_all(&journal, 4).len(), 3);
    journal.forget(Sequence(100)).unwrap();
    assert_eq!(segments(&storage).len(), 1, "the current segment stays");
}

#[test]
fn a_closed_journal_takes_nothing_and_opens_again() {
    let storage = FaultyStorage::new();
    for round in 1..=3 {
        let journal = open(&storage);
        journal.append(format!("round {round}").as_bytes(), 0);
        journal.close().unwrap();
        assert!(matches!(journal.write(journal.append(b"late", 0)), Err(Failure::Closed)));
        assert!(matches!(journal.restart(), Err(Failure::Closed)));
        assert!(matches!(journal.close(), Err(Failure::Closed)));
    }
    assert_eq!(batches(&storage), ["round 1", "round 2", "round 3"]);
    let (contents, warnings) = contents(&storage.crash(0)).unwrap();
    // Each closing mark has its own number.
    let numbers: Vec<u64> = contents.batches.iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!((numbers, warnings), (vec![1, 3, 5], vec![]));
}

#[test]
fn opening_and_closing_leaves_no_heap_of_empty_segments() {
    let storage = FaultyStorage::new();
    open(&storage).wait_durable(Sequence(0)).unwrap();
    let journal = open(&storage);
    journal.wait_durable(journal.append(b"a", 0)).unwrap();
    drop(journal);
    for _ in 0..5 {
        open(&storage).close().unwrap();
    }
    assert_eq!(segments(&storage).len(), 2);
    assert_eq!(batches(&storage), ["a"]);
}

#[test]
fn a_snapshot_comes_back_with_the_batches_since() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    journal.append(b"1", 0);
    let mut writer = journal.snapshots().create(b"about", 77).unwrap();
    writer.part(stamp(0, journal.tail()), b"shard 0 has 1", 1).unwrap();
    journal.append(b"2", 0);
    writer.part(stamp(1, journal.tail()), &vec![b'y'; 3 * 1024 * 1024], 5).unwrap();
    writer.part(stamp(2, journal.tail()), b"", 0).unwrap();
    journal.append(b"3", 0);
    let info = writer.finish(&journal).unwrap();
    assert_eq!((info.min, info.max, info.parts, info.entries), (Sequence(1), Sequence(2), 3, 6));
    assert_eq!(info.name, "snapshot-0000000001-00000000000000000002.snap");
    assert!(journal.durable() >= info.max, "a snapshot counts only with the journal up to its last part");

    let crashed = storage.crash(0);
    let mut recovery = Recovery::open(Arc::new(crashed.clone())).unwrap();
    assert_eq!(recovery.snapshot(), Some(&info));
    assert_eq!(recovery.meta(), Some(&b"about"[..]));
    let (found, _) = contents(&crashed).unwrap();
    assert_eq!(found.parts.len(), 3);
    assert_eq!(found.parts[1], (stamp(1, Sequence(2)), vec![b'y'; 3 * 1024 * 1024]));
    assert_eq!(found.batches[0], (2, b"2".to_vec()));
    while recovery.next_part().unwrap().is_some() {}
    while recovery.next_batch().unwrap().is_some() {}
    let progress = recovery.progress();
    assert!(progress.bytes_total - progress.bytes_read <= 48, "{progress:?}");
}

#[test]
fn snapshots_that_are_not_finished_leave_nothing() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    let writer = journal.snapshots().create(b"", 0).unwrap();
    assert!(storage.names().iter().any(|name| name.ends_with(".tmp")));
    writer.abort();
    let writer = journal.snapshots().create(b"", 0).unwrap();
    assert!(matches!(writer.finish(&journal), Err(SnapshotError::Empty)));
    assert!(!storage.names().iter().any(|name| name.ends_with(".tmp")));
    // One that was left by a process that died goes with the next start.
    storage.create("snapshot-0000000009.tmp").unwrap();
    assert_eq!(snapshot(&journal, "x").name, "snapshot-0000000010-00000000000000000000.snap");
    drop(journal);
    open(&storage);
    assert!(!storage.names().iter().any(|name| name.ends_with(".tmp")));
}

#[test]
fn older_snapshots_go_and_a_damaged_one_is_replaced_by_them() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    journal.append(b"1", 0);
    let first = snapshot(&journal, "one");
    journal.append(b"2", 0);
    let second = snapshot(&journal, "one two");
    journal.append(b"3", 0);
    journal.wait_durable(journal.tail()).unwrap();

    let damaged = storage.kill();
    damaged.flip(&second.name, 70, 4);
    let (found, warnings) = contents(&damaged).unwrap();
    assert_eq!(found.parts[0].1, b"one");
    assert_eq!(found.batches.len(), 2);
    assert!(matches!(&warnings[..], [Warning::SnapshotDamaged { file, .. }] if *file == second.name), "{warnings:?}");
    assert!(warnings[0].to_string().starts_with(&format!("{} is damaged at offset ", second.name)));

    journal.snapshots().remove_older(&second).unwrap();
    journal.forget(second.min).unwrap();
    assert!(storage.bytes_of(&first.name).is_none() && storage.bytes_of(&second.name).is_some());
    assert_eq!(batches(&storage), ["3"]);
}

#[test]
fn a_damaged_snapshot_without_a_replacement_is_an_error_that_names_it() {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, options(100)).unwrap();
    for _ in 0..5 {
        journal.write(journal.append(&[b'x'; 90], 0)).unwrap();
    }
    let info = snapshot(&journal, "state");
    journal.forget(info.min).unwrap();
    journal.wait_durable(journal.append(b"more", 0)).unwrap();
    for (offset, note) in [(20, "header"), (60, "part"), (info.bytes as usize - 20, "footer")] {
        let damaged = storage.kill();
        damaged.flip(&info.name, offset, 1);
        let error = contents(&damaged).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} is damaged at offset ", info.name)), "{note}: {error}");
    }
    // Even with all segments gone the name of the snapshot says that there was something.
    let damaged = storage.kill();
    damaged.flip(&info.name, 20, 1);
    segments(&damaged).iter().for_each(|name| damaged.remove(name).unwrap());
    assert!(contents(&damaged).is_err());
}

#[test]
fn a_missing_segment_is_an_error() {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, options(100)).unwrap();
    for _ in 0..5 {
        journal.wait_durable(journal.append(&[b'x'; 90], 0)).unwrap();
    }
    for name in &segments(&storage)[..4] {
        let damaged = storage.kill();
        damaged.remove(name).unwrap();
        let error = contents(&damaged).unwrap_err().to_string();
        assert!(error.contains("missing") && error.contains("at offset"), "{error}");
    }
}

#[test]
fn a_newer_format_is_named_and_left_alone() {
    let storage = FaultyStorage::new();
    open(&storage).append(b"a", 0);
    let name = segments(&storage).pop().unwrap();
    let mut header = storage.bytes_of(&name).unwrap()[..SEGMENT_HEADER_LEN].to_vec();
    header[8] = 4;
    let crc = crc32c::crc32c(&header[..52]);
    header[52..56].copy_from_slice(&crc.to_le_bytes());
    storage.open(&name).unwrap().write_at(&header, 0).unwrap();
    let error = contents(&storage).unwrap_err().to_string();
    assert_eq!(error, format!("{name} was written by a newer version of Holdfast (format 4)"));
}

#[test]
fn a_failed_sync_poisons_until_a_snapshot_is_accepted() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    journal.wait_durable(journal.append(b"safe", 0)).unwrap();
    journal.write(journal.append(b"unsure", 0)).unwrap();
    storage.fail_at(storage.operations(), Fault::Io);
    let failure = journal.wait_durable(Sequence(2)).unwrap_err();
    let name = &segments(&storage)[0];
    assert!(matches!(failure, Failure::Io { operation: Operation::Sync, .. }));
    assert!(failure.to_string().starts_with(&format!("syncing {name} failed: ")), "{failure}");

    // The storage is well again, but what was lost is lost.
    let operations = storage.operations();
    assert!(journal.wait_durable(Sequence(2)).is_err());
    assert!(journal.write(journal.append(b"refused", 0)).is_err());
    journal.request_sync();
    assert_eq!(storage.operations(), operations, "nothing is tried again");
    assert_eq!((journal.tail(), journal.written(), journal.durable()), (Sequence(3), Sequence(2), Sequence(1)));

    journal.restart().unwrap();
    assert!(matches!(journal.failure(), Some(Failure::AwaitingSnapshot)));
    let after = journal.append(b"after", 0);
    assert!(matches!(journal.write(after), Err(Failure::AwaitingSnapshot)));
    assert!(matches!(journal.wait_durable(after), Err(Failure::AwaitingSnapshot)));
    assert_eq!((journal.written(), journal.durable()), (Sequence(2), Sequence(1)));
    // Without a snapshot none of it counts.
    assert_eq!(batches(&storage.crash(1))[0], "safe");
    let (_, warnings) = contents(&storage.kill()).unwrap();
    assert!(warnings.iter().any(|warning| matches!(warning, Warning::SegmentDropped { .. })), "{warnings:?}");

    let info = snapshot(&journal, "safe unsure refused after");
    journal.accept(info.min).unwrap();
    assert!(!journal.has_failed() && journal.failure().is_none());
    assert_eq!(journal.durable(), after);
    journal.wait_durable(journal.append(b"sound", 0)).unwrap();
    for seed in 0..20 {
        let (found, _) = contents(&storage.crash(seed)).unwrap();
        assert_eq!(found.parts[0].1, b"safe unsure refused after");
        assert_eq!(found.batches.last().unwrap().1, b"sound");
        assert_eq!(batches(&reopened(&storage.crash(seed))), ["sound"]);
    }
    assert!(matches!(read(&journal, 1).1, Some(ReadError::Restarted { .. })));
}

fn reopened(storage: &FaultyStorage) -> FaultyStorage {
    drop(open(storage));
    storage.kill()
}

#[test]
fn an_accepted_restart_needs_its_snapshot_for_good() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    journal.wait_durable(journal.append(b"before", 0)).unwrap();
    journal.restart().unwrap();
    let info = snapshot(&journal, "state");
    journal.accept(info.min).unwrap();
    journal.wait_durable(journal.append(b"after", 0)).unwrap();
    let damaged = storage.kill();
    damaged.flip(&info.name, 50, 1);
    let error = contents(&damaged).unwrap_err().to_string();
    assert!(error.contains(&info.name), "{error}");
    // With the snapshot gone without a trace, later marks still tell that the restart was accepted.
    journal.wait_durable(journal.append(b"and more", 0)).unwrap();
    let damaged = storage.kill();
    damaged.remove(&info.name).unwrap();
    assert!(contents(&damaged).is_err());
}

#[test]
fn parts_read_before_a_restart_are_refused() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    journal.append(b"1", 0);
    let mut writer = journal.snapshots().create(b"", 0).unwrap();
    writer.part(stamp(0, journal.tail()), b"too early", 1).unwrap();
    journal.restart().unwrap();
    writer.part(stamp(1, journal.tail()), b"in time", 1).unwrap();
    let error = writer.finish(&journal).unwrap_err();
    assert!(matches!(error, SnapshotError::Journal(Failure::SnapshotTooOld { .. })), "{error}");
    assert!(journal.has_failed());
    let info = snapshot(&journal, "whole");
    assert_eq!(info.min, Sequence(2), "a restart leaves one number out");
    journal.accept(info.min).unwrap();
}

#[test]
fn a_restart_that_fails_can_be_tried_again() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    storage.limit_space(Some(100));
    assert!(journal.write(journal.append(&[b'x'; 500], 0)).is_err());
    for _ in 0..3 {
        assert!(journal.restart().is_err());
        assert!(matches!(journal.failure(), Some(Failure::Io { .. })));
    }
    storage.limit_space(None);
    journal.restart().unwrap();
    let info = snapshot(&journal, "state");
    journal.accept(info.min).unwrap();
    journal.wait_durable(journal.append(b"after", 0)).unwrap();
    for seed in 0..20 {
        assert_eq!(batches(&storage.crash(seed)), ["after"]);
    }
}

/// However often it is tried: what an attempt has begun goes with the next.
#[test]
fn restarts_without_a_snapshot_leave_nothing_behind() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    journal.wait_durable(journal.append(b"before", 0)).unwrap();
    let before = storage.names().len();
    for _ in 0..10 {
        journal.restart().unwrap();
        let mut writer = journal.snapshots().create(b"", 0).unwrap();
        writer.part(stamp(0, journal.tail()), b"state", 1).unwrap();
        journal.append(b"in memory only", 0);
        writer.part(stamp(1, journal.tail()), b"newer state", 1).unwrap();
        // The footer, the sync, the syncs and the look at MARKS of the journal, and the new name succeed; then the
        // directory cannot be synced.
        storage.fail_at(storage.operations() + 7, Fault::Io);
        let error = writer.finish(&journal).unwrap_err();
        assert!(matches!(error, SnapshotError::Io { operation: Operation::SyncDirectory, .. }), "{error}");
        assert_eq!(storage.names().len(), before + 1, "{:?}", storage.names());
        for seed in 0..20 {
            // Either the snapshot, or what was there before; never neither.
            let (found, _) = contents(&storage.crash(seed)).unwrap();
            assert!(!found.parts.is_empty() || found.batches[0].1 == b"before");
        }
    }
    assert_eq!(batches(&storage.kill()), ["before"]);
    journal.restart().unwrap();
    let info = snapshot(&journal, "state");
    journal.accept(info.min).unwrap();
    journal.wait_durable(journal.append(b"after", 0)).unwrap();
    for seed in 0..20 {
        assert_eq!(batches(&storage.crash(seed)).last().unwrap(), "after");
    }
}

#[test]
fn what_a_dead_process_failed_to_sync_is_written_again() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    for _ in 0..8 {
        journal.append(&[b'x'; 300], 0);
    }
    journal.write(journal.tail()).unwrap();
    storage.fail_at(storage.operations(), Fault::Io);
    assert!(journal.wait_durable(journal.tail()).is_err());
    // The system still shows the next process what the failed sync has lost.
    let killed = storage.kill();
    let journal = open(&killed);
    assert_eq!(journal.durable(), Sequence(8));
    for seed in 0..20 {
        assert_eq!(batches(&killed.crash(seed)).len(), 8);
    }
}

#[test]
fn it_works_on_a_disk() {
    let scratch = tempfile::tempdir().unwrap();
    let open = || {
        let directory: Arc<dyn Storage> = Arc::new(Directory::create(scratch.path().join("data")).unwrap());
        Recovery::open(directory).unwrap()
    };
    let journal = open().into_log(FileLogOptions { zero_ahead: true, ..options(2000) }).unwrap();
    for number in 0..100 {
        journal.wait_durable(journal.append(format!("batch {number}").as_bytes(), 0)).unwrap();
    }
    drop(journal);
    let mut recovery = open();
    let mut count = 0;
    while let Some(Batch { sequence, payload: batch, .. }) = recovery.next_batch().unwrap() {
        assert_eq!(batch, format!("batch {count}").as_bytes());
        count += 1;
        assert_eq!(sequence, Sequence(count));
    }
    assert_eq!((count, recovery.warnings().len()), (100, 0));
    let journal = recovery.into_log(options(2000)).unwrap();
    journal.close().unwrap();
}

#[test]
fn a_snapshot_that_outlives_the_restart_it_was_taken_for_is_enough() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    journal.wait_durable(journal.append(b"before", 0)).unwrap();
    journal.append(b"in memory only", 0);
    journal.restart().unwrap();
    let mut writer = journal.snapshots().create(b"", 0).unwrap();
    writer.part(stamp(0, journal.tail()), b"state", 1).unwrap();
    // The footer, the sync and the new name succeed; then the directory cannot be synced.
    storage.fail_at(storage.operations() + 3, Fault::Io);
    let error = writer.finish(&journal).unwrap_err();
    assert!(matches!(error, SnapshotError::Io { operation: Operation::SyncDirectory, .. }), "{error}");
    let mut outlived = 0;
    for seed in 0..100 {
        let crashed = storage.crash(seed);
        let (found, _) = contents(&crashed).unwrap();
        outlived += usize::from(!found.parts.is_empty() && segments(&crashed).len() == 1);
        assert_eq!((found.parts.len(), found.batches.len()), if found.parts.is_empty() { (0, 1) } else { (1, 0) });
        let journal = open(&crashed);
        journal.wait_durable(journal.append(b"more", 0)).unwrap();
        assert_eq!(batches(&crashed.crash(seed)).last().unwrap(), "more");
    }
    assert!(outlived > 0, "the new name without the new segment never came up");
}

#[test]
fn a_torn_tail_is_cut_off_the_file() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    for _ in 0..3 {
        journal.append(b"0123456789", 0);
    }
    journal.write(journal.tail()).unwrap();
    drop(journal);
    let name = segments(&storage).pop().unwrap();
    let frame = FRAME_HEADER_LEN + 10;
    storage.truncate(&name, SEGMENT_HEADER_LEN + 3 * frame - 1);
    drop(open(&storage));
    assert_eq!(storage.bytes_of(&name).unwrap().len(), SEGMENT_HEADER_LEN + 2 * frame);
    assert!(contents(&storage).unwrap().1.is_empty());
}
