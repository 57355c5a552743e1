//! Directories of format 2, which had neither times nor ids of epochs, are read, and are continued in the format of
//! today. Written here by hand, from what the page of the format said then.

mod common;

use common::{batches, contents, open, snapshot};
use journal::{Epoch, FaultyStorage, History, Log, Maintenance, Recovery, Sequence, Storage};
use std::sync::Arc;

const ID: [u8; 16] = [7; 16];

fn put(storage: &FaultyStorage, name: &str, bytes: &[u8]) {
    let file = storage.create(name).unwrap();
    assert_eq!(file.write_at(bytes, 0).unwrap(), bytes.len());
    file.sync().unwrap();
    storage.sync_directory().unwrap();
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

fn segment(first: u64, durable: u64, epoch: u32, batches: &[&[u8]]) -> Vec<u8> {
    let mut header = b"HFSEGMNT\x02\0\0\0\0\0\0\0".to_vec();
    header.extend([first.to_le_bytes(), durable.to_le_bytes()].concat());
    header.extend(ID);
    header.extend(epoch.to_le_bytes());
    let mut bytes = sealed(header);
    for (sequence, batch) in (first..).zip(batches) {
        let length = (batch.len() as u32).to_le_bytes();
        let place = [&epoch.to_le_bytes()[..], &sequence.to_le_bytes(), &(sequence - 1).to_le_bytes()].concat();
        let crc = crc32c::crc32c(&[*batch, &length, &place].concat()).to_le_bytes();
        bytes.extend([&length[..], &crc, &place, batch].concat());
    }
    bytes
}

fn marks(durable: u64, segment: u64, epoch: u32) -> Vec<u8> {
    let mut slot = b"HFJMARKS\x02\0\0\0\0\0\0\0".to_vec();
    slot.extend(ID);
    slot.extend([1u64.to_le_bytes(), durable.to_le_bytes(), segment.to_le_bytes()].concat());
    slot.extend(epoch.to_le_bytes());
    let mut bytes = vec![0; 4096];
    bytes.extend(sealed(slot));
    bytes.resize(8192, 0);
    bytes
}

/// A directory with two epochs. The last batch was not durable.
fn directory() -> FaultyStorage {
    let storage = FaultyStorage::new();
    put(&storage, "journal-00000000000000000001.seg", &segment(1, 0, 1, &[b"one", b"two"]));
    put(&storage, "journal-00000000000000000003.seg", &segment(3, 2, 2, &[b"three", b"four"]));
    put(&storage, "MARKS", &marks(3, 3, 2));
    storage
}

#[test]
fn a_directory_of_format_2_is_read_and_continued() {
    let storage = directory();
    assert_eq!(batches(&storage), ["one", "two", "three", "four"]);
    let log = open(&storage);
    assert_eq!(log.epoch(), Epoch(3));
    log.wait_durable(log.append(b"five", 55)).unwrap();
    drop(log);
    for storage in [storage.kill(), storage.crash(1)] {
        assert_eq!(batches(&storage), ["one", "two", "three", "four", "five"]);
        let mut recovery = Recovery::open(Arc::new(storage.clone())).unwrap();
        let mut times = Vec::new();
        while let Some(batch) = recovery.next_batch().unwrap() {
            times.push((batch.epoch.0, batch.time_ms));
        }
        assert_eq!(times, [(1, 0), (1, 0), (2, 0), (2, 0), (3, 55)]);
    }
    // Everything of the old format goes with the next snapshot.
    let log = open(&storage);
    let info = snapshot(&log, "state");
    log.forget(info.min).unwrap();
    drop(log);
    assert_eq!(open(&storage).tail(), Sequence(5));
}

/// A snapshot with one part, complete up to batch 2.
fn snapshot_2() -> Vec<u8> {
    let mut header = b"HFSNAPSH\x02\0\0\0\0\0\0\0".to_vec();
    header.extend(1_700_000_000_000u64.to_le_bytes());
    header.extend(ID);
    header.extend(4u32.to_le_bytes());
    let crc = crc32c::crc32c(&[&header[..], b"meta"].concat()).to_le_bytes();
    let mut bytes = [&header[..], &crc, b"meta"].concat();
    let (shard, end, entries) = (0u32, 1u32, 1u32);
    let mut part = [1u32, 5, shard, end].map(u32::to_le_bytes).concat();
    part.extend(2u64.to_le_bytes());
    part.extend(entries.to_le_bytes());
    let crc = crc32c::crc32c(&[&part[..], b"state"].concat()).to_le_bytes();
    part.extend(crc);
    let mut footer = [2u32, 1].map(u32::to_le_bytes).concat();
    footer.extend([1u64, 1, 2, 2].map(u64::to_le_bytes).concat());
    footer.extend(crc32c::crc32c(&part).to_le_bytes());
    bytes.extend([&part[..], b"state", &sealed(footer)].concat());
    bytes
}

#[test]
fn a_snapshot_of_format_2_is_read() {
    let storage = directory();
    put(&storage, "snapshot-0000000001-00000000000000000002.snap", &snapshot_2());
    storage.remove("journal-00000000000000000001.seg").unwrap();
    let (found, warnings) = contents(&storage).unwrap();
    assert_eq!((found.meta.as_deref(), found.parts.len(), warnings), (Some(&b"meta"[..]), 1, vec![]));
    assert_eq!(found.parts[0].1, b"state");
    assert_eq!(batches(&storage), ["three", "four"]);
    let log = open(&storage);
    assert_eq!((log.epoch(), log.tail()), (Epoch(3), Sequence(4)));
}

#[test]
fn a_loss_in_format_2_is_noticed_and_a_torn_tail_is_not() {
    let storage = directory();
    let last = "journal-00000000000000000003.seg";
    let len = storage.bytes_of(last).unwrap().len();
    let torn = storage.kill();
    torn.truncate(last, len - 1);
    assert_eq!(batches(&torn).len(), 3);
    assert_eq!(open(&torn).tail(), Sequence(3));
    for cut in [33, 34, 60] {
        let damaged = storage.kill();
        damaged.truncate(last, len - cut);
        let error = contents(&damaged).unwrap_err().to_string();
        assert!(error.contains("MARKS says that 3 was durable"), "{error}");
    }
    // A frame proves what was durable, even where its segment cannot be read.
    let damaged = storage.kill();
    damaged.remove("MARKS").unwrap();
    damaged.flip(last, 20, 1);
    let error = contents(&damaged).unwrap_err().to_string();
    assert!(error.contains("was durable"), "{error}");
}

#[test]
fn copies_that_were_both_written_cannot_be_mixed() {
    let storage = FaultyStorage::new();
    let log = open(&storage);
    log.wait_durable(log.append(b"common", 1)).unwrap();
    log.close().unwrap();
    drop(log);
    let (one, other) = (storage.kill(), storage.kill());
    for (copy, batch) in [(&one, b"one"), (&other, b"two")] {
        let log = open(copy);
        log.wait_durable(log.append(batch, 2)).unwrap();
        drop(log);
    }
    let segments = |storage: &FaultyStorage| -> Vec<String> {
        storage.names().into_iter().filter(|name| name.ends_with(".seg")).collect()
    };
    let newest = segments(&other).pop().unwrap();
    assert_eq!(segments(&one), segments(&other));
    // The segments of one, the marks of the other.
    let mixed = one.kill();
    mixed.remove("MARKS").unwrap();
    put(&mixed, "MARKS", &other.bytes_of("MARKS").unwrap());
    let error = contents(&mixed).unwrap_err().to_string();
    assert!(error.contains("two copies of this directory"), "{error}");
    // A later segment of the other after the last of one.
    let mixed = one.kill();
    let log = open(&other);
    log.wait_durable(log.append(b"three", 3)).unwrap();
    drop(log);
    let later = segments(&other).pop().unwrap();
    assert_ne!(later, newest);
    put(&mixed, &later, &other.bytes_of(&later).unwrap());
    let error = contents(&mixed).unwrap_err().to_string();
    assert!(error.contains("two copies of this directory"), "{error}");
}
