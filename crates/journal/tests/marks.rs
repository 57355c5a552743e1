//! What must not go unnoticed: files of another directory, and the loss of batches that were durable.

mod common;

use common::{FRAME_HEADER_LEN, SEGMENT_HEADER_LEN, batches, contents, open, open_with, options, snapshot};
use journal::{Fault, FaultyStorage, Log, Maintenance, Sequence, Storage, Warning};

const MARKS: &str = "MARKS";

fn segments(storage: &FaultyStorage) -> Vec<String> {
    storage.names().into_iter().filter(|name| name.ends_with(".seg")).collect()
}

/// Puts a file there, in place of what may be there.
fn put(storage: &FaultyStorage, name: &str, bytes: &[u8]) {
    let file = storage.open(name).or_else(|_| storage.create(name)).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    assert_eq!(file.write_at(bytes, 0).unwrap(), bytes.len());
}

/// Three segments, each with a batch, and a snapshot of the first two; the older part of the journal is still there.
fn some_directory(text: &str) -> FaultyStorage {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, options(SEGMENT_HEADER_LEN as u64 + 40)).unwrap();
    for number in 1..=3 {
        journal.wait_durable(journal.append(format!("{text} {number}").as_bytes(), 0)).unwrap();
        if number == 2 {
            snapshot(&journal, text);
        }
    }
    assert_eq!(segments(&storage).len(), 3);
    storage.kill()
}

#[test]
fn a_file_of_another_directory_is_refused() {
    let (one, other) = (some_directory("one"), some_directory("two"));
    assert_eq!(one.names(), other.names());
    for name in one.names().into_iter().filter(|name| name != MARKS) {
        let mixed = one.kill();
        put(&mixed, &name, &other.bytes_of(&name).unwrap());
        let error = contents(&mixed).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name} belongs to another data directory: ")), "{error}");
        assert!(error.contains("MARKS"), "{error}");
        let before = mixed.names();
        assert!(open_with(&mixed, options(4096)).is_err());
        assert_eq!(mixed.names(), before, "nothing is removed");
        // Without the marks, the others tell.
        mixed.remove(MARKS).unwrap();
        let error = contents(&mixed).unwrap_err().to_string();
        assert!(error.contains(&name) && error.contains(" belongs to another data directory: "), "{error}");
    }
}

#[test]
fn the_marks_of_another_directory_are_refused() {
    let (one, other) = (some_directory("one"), some_directory("two"));
    put(&one, MARKS, &other.bytes_of(MARKS).unwrap());
    let error = contents(&one).unwrap_err().to_string();
    assert!(error.contains("MARKS") && error.contains(" belongs to another data directory: "), "{error}");
}

/// One that only adds to the end, with the number that comes next.
#[test]
fn a_segment_of_another_directory_behind_the_end_is_refused() {
    let (one, other) = (FaultyStorage::new(), FaultyStorage::new());
    for storage in [&one, &other] {
        let journal = open_with(storage, options(SEGMENT_HEADER_LEN as u64 + 40)).unwrap();
        journal.wait_durable(journal.append(b"first", 0)).unwrap();
    }
    let journal = open_with(&other, options(4096)).unwrap();
    journal.wait_durable(journal.append(b"second, but of the other", 0)).unwrap();
    drop(journal);
    let name = segments(&other).pop().unwrap();
    put(&one, &name, &other.bytes_of(&name).unwrap());
    let error = contents(&one).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{name} belongs to another data directory: ")), "{error}");
}

#[test]
fn a_directory_keeps_its_id() {
    let storage = FaultyStorage::new();
    let id = open(&storage).directory_id();
    assert_ne!(open(&FaultyStorage::new()).directory_id(), id);
    let journal = open(&storage);
    assert_eq!(journal.directory_id(), id);
    journal.wait_durable(journal.append(b"a", 0)).unwrap();
    journal.close().unwrap();
    storage.remove(MARKS).unwrap();
    let journal = open(&storage);
    assert_eq!(journal.directory_id(), id, "the segments carry it too");
    let info = snapshot(&journal, "state");
    journal.forget(info.min).unwrap();
    drop(journal);
    storage.remove(MARKS).unwrap();
    segments(&storage).iter().for_each(|name| storage.remove(name).unwrap());
    assert_eq!(open(&storage).directory_id(), id, "and so does the snapshot");
}

fn closed() -> FaultyStorage {
    let storage = some_directory("text");
    let journal = open_with(&storage, options(SEGMENT_HEADER_LEN as u64 + 40)).unwrap();
    journal.append(b"four", 0);
    journal.close().unwrap();
    assert!(contents(&storage).unwrap().1.is_empty());
    storage
}

#[test]
fn newest_segments_that_are_gone_after_a_clean_stop_are_missed() {
    let storage = closed();
    let all = segments(&storage);
    assert_eq!(all.len(), 5, "the mark at the end has a separate segment");
    // A crash in place of a kill: the marks of a clean stop are synced.
    for damaged in [storage.kill(), storage.crash(0), storage.crash(1)] {
        for name in all.iter().rev().take(3) {
            damaged.remove(name).unwrap();
            let error = contents(&damaged).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{} is missing: ", all[4])), "{error}");
            assert!(error.contains("MARKS says that the journal ended with 5 when the server stopped"), "{error}");
            let before = damaged.names();
            assert!(open_with(&damaged, options(4096)).is_err());
            assert_eq!(damaged.names(), before);
        }
    }
    // The snapshot alone does not make up for them either.
    let damaged = storage.kill();
    all.iter().for_each(|name| damaged.remove(name).unwrap());
    let error = contents(&damaged).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{} is missing: ", all[4])), "{error}");
}

#[test]
fn a_segment_that_is_gone_is_missed_though_the_newest_was_empty() {
    let storage = closed();
    open(&storage).close().unwrap();
    for name in segments(&storage).iter().rev().take(2) {
        storage.remove(name).unwrap();
    }
    let error = contents(&storage).unwrap_err().to_string();
    assert!(error.starts_with("the segment with batch 5 is missing: the journal ends with batch 4, "), "{error}");
}

#[test]
fn an_end_that_is_cut_off_is_damage_if_it_was_durable_and_a_torn_tail_if_not() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    for _ in 0..4 {
        journal.wait_durable(journal.append(b"durable", 0)).unwrap();
    }
    for _ in 0..4 {
        journal.write(journal.append(b"written", 0)).unwrap();
    }
    let name = &segments(&storage)[0];
    let frame = FRAME_HEADER_LEN + 7;
    for (kept, is_refused) in [(8, false), (7, false), (4, false), (3, true), (1, true), (0, true)] {
        for more in [0, 1, 30] {
            let damaged = storage.kill();
            let at = SEGMENT_HEADER_LEN + kept * frame;
            damaged.truncate(name, at + more);
            match contents(&damaged) {
                Ok((found, warnings)) => {
                    assert!(!is_refused, "{kept} are there, and nothing is noticed");
                    assert_eq!((found.batches.len(), warnings.len()), (kept, usize::from(more > 0 && kept < 8)));
                }
                Err(error) => {
                    assert!(is_refused, "{error}");
                    let error = error.to_string();
                    assert!(error.starts_with(&format!("{name} is damaged at offset {at}: ")), "{error}");
                    assert!(error.ends_with("MARKS says that 4 was durable"), "{error}");
                }
            }
        }
    }
}

#[test]
fn without_marks_a_directory_with_data_opens_with_a_warning() {
    for is_torn in [false, true] {
        let storage = closed();
        let expected = batches(&storage);
        match is_torn {
            true => storage.truncate(MARKS, 20),
            false => storage.remove(MARKS).unwrap(),
        }
        let (_, warnings) = contents(&storage).unwrap();
        let warning = if is_torn { Warning::MarksUnreadable } else { Warning::MarksMissing };
        assert_eq!(warnings, std::slice::from_ref(&warning));
        assert!(warning.to_string().contains("MARKS"));
        drop(open(&storage));
        let (_, warnings) = contents(&storage.crash(3)).unwrap();
        assert_eq!((batches(&storage.crash(3)), warnings), (expected, vec![]), "it is made anew");
    }
    // An empty directory has no marks, and nothing to mark.
    assert!(contents(&FaultyStorage::new()).unwrap().1.is_empty());
}

#[test]
fn a_newer_format_of_the_marks_is_refused() {
    let storage = closed();
    let mut bytes = storage.bytes_of(MARKS).unwrap();
    for slot in [0, 4096] {
        bytes[slot + 8] = 4;
        let crc = crc32c::crc32c(&bytes[slot..slot + 60]);
        bytes[slot + 60..slot + 64].copy_from_slice(&crc.to_le_bytes());
    }
    put(&storage, MARKS, &bytes);
    let error = contents(&storage).unwrap_err().to_string();
    assert_eq!(error, "MARKS was written by a newer version of Holdfast (format 4)");
}

/// What a restarted journal syncs is marked once a snapshot makes it count, and not before.
#[test]
fn a_restart_is_marked_when_it_is_accepted() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    journal.wait_durable(journal.append(b"before", 0)).unwrap();
    journal.restart().unwrap();
    let after = journal.append(b"after", 0);
    assert!(journal.wait_durable(after).is_err());
    journal.wait_durable_for_snapshot(Sequence(2), after).unwrap();
    assert_eq!(batches(&storage.kill()), ["before"], "without a snapshot nothing after it counts");

    let info = snapshot(&journal, "before after");
    assert_eq!(batches(&storage.kill()), Vec::<String>::new(), "all is in the snapshot");
    journal.accept(info.min).unwrap();
    // Nothing but the mark tells that this one was durable.
    let last = journal.append(b"last", 0);
    journal.wait_durable(last).unwrap();
    assert_eq!(batches(&storage.kill()), ["last"]);
    let damaged = storage.kill();
    let newest = segments(&damaged).pop().unwrap();
    let len = damaged.bytes_of(&newest).unwrap().len();
    damaged.truncate(&newest, len - 1);
    let error = contents(&damaged).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{newest} is damaged at offset ")), "{error}");
    let damaged = storage.kill();
    damaged.remove(&newest).unwrap();
    let error = contents(&damaged).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{newest} is missing: ")), "{error}");
}

#[test]
fn a_mark_that_cannot_be_written_fails_nothing() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    for number in 1..10 {
        let sequence = journal.append(b"batch", 0);
        journal.write(sequence).unwrap();
        // The sync of the segment is next, and then the mark.
        storage.fail_at(storage.operations() + 1, [Fault::Io, Fault::NoSpace][number % 2]);
        journal.wait_durable(sequence).unwrap();
        assert_eq!((batches(&storage.kill()).len(), journal.has_failed()), (number, false));
    }
    let sites = storage.sites();
    assert!(sites.iter().filter(|site| site.file == MARKS).count() > 9, "{sites:?}");
}

#[test]
fn a_sync_costs_a_look_at_the_marks_and_one_small_write_more() {
    let storage = FaultyStorage::new();
    let journal = open(&storage);
    journal.write(journal.append(b"batch", 0)).unwrap();
    let before = storage.operations();
    journal.wait_durable(Sequence(1)).unwrap();
    let sites: Vec<String> =
        storage.sites()[before..].iter().map(|site| format!("{} {}", site.operation, site.file)).collect();
    let segment = &segments(&storage)[0];
    assert_eq!(sites, [format!("syncing {segment}"), "reading MARKS".to_owned(), "writing MARKS".to_owned()]);
}
