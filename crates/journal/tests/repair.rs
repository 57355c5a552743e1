//! A damaged journal is cut so that it can be read again: what stays is a prefix of what was appended, what is cut is
//! kept, and what no cut can mend is refused and left as it was.

mod common;

use std::sync::Arc;

use common::{FRAME_HEADER_LEN, SEGMENT_HEADER_LEN, batches, open, open_with, options, stamp};
use journal::{
    DirectoryError, Fault, FaultyStorage, FileLogOptions, History, Log, Recovery, RecoveryError, Repair, Sequence,
    Storage,
};

const BATCHES: u64 = 9;

/// Three segments; all but the last two batches are known to be durable.
fn journal() -> (FaultyStorage, Vec<String>) {
    let storage = FaultyStorage::new();
    let log = open_with(&storage, options((SEGMENT_HEADER_LEN + 4 * (FRAME_HEADER_LEN + 8)) as u64)).unwrap();
    let payloads: Vec<String> = (1..=BATCHES).map(|number| format!("batch {number}")).collect();
    for (at, payload) in payloads.iter().enumerate() {
        let sequence = log.append(payload.as_bytes(), 0);
        log.write(sequence).unwrap();
        if at as u64 + 2 < BATCHES {
            log.wait_durable(sequence).unwrap();
        }
    }
    (storage.kill(), payloads)
}

fn shared(storage: &FaultyStorage) -> Arc<dyn Storage> {
    Arc::new(storage.clone())
}

fn files(storage: &FaultyStorage) -> Vec<(String, Vec<u8>)> {
    let mut names = storage.names();
    names.sort();
    names.into_iter().map(|name| (name.clone(), storage.bytes_of(&name).unwrap())).collect()
}

fn segments(storage: &FaultyStorage) -> Vec<String> {
    let mut names: Vec<String> = storage.names().into_iter().filter(|name| name.ends_with(".seg")).collect();
    names.sort();
    names
}

/// Repairs a damaged directory if that is possible, and checks what the repair promises. Returns the last batch that
/// stays, or `None` if the repair was refused.
fn check(damaged: &FaultyStorage, payloads: &[String]) -> Option<u64> {
    let before = files(damaged);
    let examined = Repair::examine(shared(damaged));
    assert_eq!(files(damaged), before, "an examination changes nothing");
    let repair = match examined {
        Err(_) => {
            assert!(Recovery::open(shared(damaged)).is_err() || reads_with_error(damaged), "what is whole is refused");
            return None;
        }
        Ok(None) => return Some(batches(damaged).len() as u64),
        Ok(Some(repair)) => repair,
    };
    let Sequence(reached) = repair.reached();
    let pieces: Vec<(String, u64)> = repair.pieces.iter().map(|piece| (piece.file.clone(), piece.offset)).collect();
    let behind = BATCHES - reached;
    assert!(repair.readable() <= behind, "{} of {behind} can be read", repair.readable());
    let copies = repair.cut(FileLogOptions::default()).unwrap();
    // Every piece is kept, byte for byte.
    for ((file, offset), copy) in pieces.iter().zip(&copies) {
        let (_, original) = before.iter().find(|(name, _)| name == file).unwrap();
        assert_eq!(damaged.bytes_of(copy).unwrap(), original[*offset as usize..], "{copy}");
    }
    assert_eq!(copies.len(), pieces.len() + 1, "MARKS is kept too");
    // A power failure after the repair changes nothing any more.
    let repaired = damaged.crash(reached);
    assert!(Repair::examine(shared(&repaired)).unwrap().is_none(), "a repaired directory is whole");
    assert_eq!(batches(&repaired), payloads[..reached as usize]);
    let log = open(&repaired);
    assert!(log.append(b"new", 0) > Sequence(reached));
    log.wait_durable(log.tail()).unwrap();
    drop(log);
    let after = batches(&repaired.crash(reached));
    assert_eq!((after.len() as u64, after.last().map(String::as_str)), (reached + 1, Some("new")));
    for copy in copies {
        assert!(repaired.names().contains(&copy), "a start leaves {copy} alone");
    }
    Some(reached)
}

fn reads_with_error(storage: &FaultyStorage) -> bool {
    let mut recovery = Recovery::open(shared(storage)).unwrap();
    loop {
        match recovery.next_batch() {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

#[test]
fn a_journal_cut_at_any_byte_is_repaired_to_a_prefix() {
    let (whole, payloads) = journal();
    let (mut lengths, mut refused) = (std::collections::BTreeSet::new(), 0);
    let last = segments(&whole).pop().unwrap();
    for name in segments(&whole) {
        for len in 0..whole.bytes_of(&name).unwrap().len() {
            let torn = whole.kill();
            torn.truncate(&name, len);
            let reached = check(&torn, &payloads);
            // What a later segment has cannot be used without what is missing, but it can be cut. Where a batch ends, a
            // whole segment may be missing behind it.
            let is_between =
                len >= SEGMENT_HEADER_LEN && (len - SEGMENT_HEADER_LEN).is_multiple_of(FRAME_HEADER_LEN + 7);
            assert!(reached.is_some() || is_between && name != last, "{name} at {len}");
            refused += u64::from(reached.is_none());
            assert!(name == last || reached < Some(BATCHES), "{name} at {len}");
            lengths.extend(reached);
        }
    }
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), (0..BATCHES).collect::<Vec<_>>());
    // In front of each of the seven batches that are known to be durable.
    assert_eq!(refused, 7);
}

#[test]
fn a_journal_with_any_byte_changed_is_repaired_to_a_prefix() {
    let (whole, payloads) = journal();
    let mut refused = 0;
    for name in segments(&whole) {
        for at in 0..whole.bytes_of(&name).unwrap().len() {
            let damaged = whole.kill();
            damaged.flip(&name, at, 1 << (at % 8));
            match check(&damaged, &payloads) {
                Some(reached) => assert!(reached < BATCHES, "{name} at {at}"),
                None => refused += 1,
            }
        }
    }
    assert_eq!(refused, 0, "damage in segments that are there can be cut off");
}

#[test]
fn batches_behind_the_damage_are_counted() {
    let (damaged, payloads) = journal();
    let first = segments(&damaged).remove(0);
    // In the payload of the second batch.
    damaged.flip(&first, SEGMENT_HEADER_LEN + 2 * FRAME_HEADER_LEN + 8, 1);
    let repair = Repair::examine(shared(&damaged)).unwrap().unwrap();
    assert_eq!((repair.reached(), repair.readable()), (Sequence(1), BATCHES - 2));
    assert!(repair.detail.contains(&first) && repair.evidence.is_some(), "{}", repair.detail);
    assert_eq!(check(&damaged, &payloads), Some(1));
    // A second repair keeps the copies of the first.
    let last = segments(&damaged).remove(0);
    damaged.flip(&last, SEGMENT_HEADER_LEN + FRAME_HEADER_LEN, 1);
    let kept = damaged.names().into_iter().filter(|name| name.ends_with(".cut-1")).count();
    Repair::examine(shared(&damaged)).unwrap().unwrap().cut(FileLogOptions::default()).unwrap();
    assert_eq!(damaged.names().into_iter().filter(|name| name.ends_with(".cut-1")).count(), kept);
    assert!(damaged.names().iter().any(|name| name.ends_with(".cut-2")), "{:?}", damaged.names());
}

/// Ways to damage the second of three segments, and how many batches are whole before that.
fn damages() -> Vec<(FaultyStorage, u64)> {
    let damage = |alter: &dyn Fn(&FaultyStorage, &[String])| {
        let (storage, _) = journal();
        alter(&storage, &segments(&storage));
        storage
    };
    let in_second = SEGMENT_HEADER_LEN + FRAME_HEADER_LEN + 7;
    vec![
        // In the second batch of the segment, in its first one, and in its header.
        (damage(&|storage, names| storage.flip(&names[1], in_second + FRAME_HEADER_LEN, 1)), 5),
        (damage(&|storage, names| storage.flip(&names[1], SEGMENT_HEADER_LEN, 1)), 4),
        (damage(&|storage, names| storage.flip(&names[1], 20, 1)), 4),
        // Only the marks know of what is lost.
        (
            damage(&|storage, names| {
                storage.remove(&names[2]).unwrap();
                storage.truncate(&names[1], in_second + 5);
            }),
            5,
        ),
    ]
}

#[test]
fn a_repair_that_is_killed_at_any_step_can_be_run_again() {
    let (_, payloads) = journal();
    for (number, (damaged, whole)) in damages().into_iter().enumerate() {
        let mut steps = 0;
        loop {
            let storage = damaged.kill();
            let repair = Repair::examine(shared(&storage)).unwrap().unwrap();
            assert_eq!(repair.reached(), Sequence(whole));
            storage.fail_from(storage.operations() + steps, Fault::Io);
            let is_done = repair.cut(FileLogOptions::default()).is_ok();
            // The process was killed, or the power failed.
            for left in [storage.kill()].into_iter().chain((0..8).map(|seed| storage.crash(seed))) {
                let context = format!("damage {number}, killed after {steps} steps: {:?}", left.names());
                if let Some(again) = Repair::examine(shared(&left)).unwrap_or_else(|error| panic!("{context}: {error}"))
                {
                    assert_eq!(again.reached(), Sequence(whole), "{context}");
                    again.cut(FileLogOptions::default()).unwrap_or_else(|error| panic!("{context}: {error}"));
                }
                assert_eq!(batches(&left), payloads[..whole as usize], "{context}");
                drop(open(&left));
            }
            if is_done {
                break;
            }
            steps += 1;
        }
        assert!(steps > 20, "{steps} steps");
    }
}

#[test]
fn an_end_that_is_gone_is_not_mended_although_the_rest_is_whole() {
    let (storage, _) = journal();
    let names = segments(&storage);
    storage.remove(&names[2]).unwrap();
    storage.remove(&names[1]).unwrap();
    let refused = Repair::examine(shared(&storage)).err().unwrap().to_string();
    assert!(refused.contains("is missing"), "{refused}");
}

#[test]
fn a_repair_on_a_full_disk_leaves_everything_as_it_was() {
    for (damaged, whole) in damages() {
        let (before, space) = (files(&damaged), damaged.space_bytes());
        let mut room = 0;
        loop {
            damaged.limit_space(Some(space + room));
            let repair = Repair::examine(shared(&damaged)).unwrap().unwrap();
            match repair.cut(FileLogOptions { reserve_bytes: 0, ..FileLogOptions::default() }) {
                Ok(_) => break,
                // Once anything is changed, there is the room of what was cut.
                Err(error) => assert_eq!(files(&damaged), before, "{room} bytes: {error}"),
            }
            room += 512;
        }
        damaged.heal();
        assert_eq!(batches(&damaged).len() as u64, whole);
    }
}

/// A value of which every forty bytes look like the header of a batch with half of the value. Computing all these checksums
/// over all these bytes would take minutes.
#[test]
fn bytes_that_a_client_has_chosen_delay_neither_a_start_nor_a_repair() {
    let storage = FaultyStorage::new();
    let log = open_with(&storage, options(1 << 30)).unwrap();
    let mut header = (1_u32 << 20).to_le_bytes().to_vec();
    header.extend(0x1122_3344_u32.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header.extend(10_u64.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header.extend([0; 16]);
    let hostile: Vec<u8> = header.iter().copied().cycle().take(2 << 20).collect();
    for batch in [b"kept".as_slice(), &hostile, b"behind"] {
        log.append(batch, 0);
        log.wait_durable(log.tail()).unwrap();
    }
    let damaged = storage.kill();
    let first = segments(&damaged).remove(0);
    damaged.flip(&first, SEGMENT_HEADER_LEN + FRAME_HEADER_LEN + 4 + FRAME_HEADER_LEN + 1, 1);
    let repair = Repair::examine(shared(&damaged)).unwrap().unwrap();
    assert_eq!((repair.reached(), repair.readable()), (Sequence(1), 1));
    // Without the frame behind it, and without marks, it is a torn tail.
    let torn = damaged.kill();
    torn.remove("MARKS").unwrap();
    let len = torn.bytes_of(&first).unwrap().len();
    torn.truncate(&first, len - FRAME_HEADER_LEN - 6);
    assert_eq!(batches(&torn), ["kept"]);
}

#[test]
fn a_missing_segment_is_refused() {
    // Nothing proves that there was a last one.
    for missing in 0..2 {
        let (whole, _) = journal();
        let name = segments(&whole).remove(missing);
        whole.remove(&name).unwrap();
        let before = files(&whole);
        let refused = Repair::examine(shared(&whole)).map(|repair| repair.is_some());
        assert!(refused.is_err(), "{name}: {refused:?}");
        assert_eq!(files(&whole), before);
    }
}

#[test]
fn what_a_snapshot_needs_is_not_cut() {
    let (storage, _) = journal();
    let log = open(&storage);
    let mut writer = log.snapshots().create(b"meta", 1_700_000_000_000).unwrap();
    writer.part(stamp(0, Sequence(3)), b"old", 1).unwrap();
    writer.part(stamp(1, Sequence(BATCHES)), b"new", 1).unwrap();
    writer.finish(&log).unwrap();
    log.close().unwrap();
    drop(log);
    let name = segments(&storage).into_iter().rfind(|name| *name <= format!("journal-{:020}.seg", 5)).unwrap();
    storage.flip(&name, SEGMENT_HEADER_LEN + FRAME_HEADER_LEN, 1);
    let before = files(&storage);
    match Repair::examine(shared(&storage)).map(|repair| repair.is_some()) {
        Err(RecoveryError::Directory(DirectoryError::Damaged { file, .. })) => assert_eq!(file, name),
        other => panic!("{other:?}"),
    }
    assert_eq!(files(&storage), before);
}
