//! A small journal and a small snapshot, cut off at every length and with every byte damaged. What comes back is the
//! same, or a clean beginning that lacks nothing which a mark still proves, or an error that names file and offset.

mod common;

use common::{Contents, FRAME_HEADER_LEN, SEGMENT_HEADER_LEN, contents, open_with, options, snapshot, stamp};
use journal::{FaultyStorage, Log, Maintenance, Sequence, Storage, Warning};

/// Something in a segment with a claim that a sequence was durable: a header or a frame.
#[derive(Debug)]
struct Piece {
    file: String,
    start: usize,
    end: usize,
    /// The frame's sequence; the header's first.
    sequence: u64,
    durable: u64,
}

/// The pieces of all segments, found without the help of the code that is tested.
fn pieces(storage: &FaultyStorage) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for file in storage.names().into_iter().filter(|name| name.ends_with(".seg")) {
        let bytes = storage.bytes_of(&file).unwrap();
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let mut start = SEGMENT_HEADER_LEN;
        let header = Piece { file: file.clone(), start: 0, end: start, sequence: u64_at(16), durable: u64_at(24) };
        pieces.push(header);
        while start < bytes.len() && bytes[start..].iter().any(|byte| *byte != 0) {
            let end = start + FRAME_HEADER_LEN + u32_at(start) as usize;
            pieces.push(Piece {
                file: file.clone(),
                start,
                end,
                sequence: u64_at(start + 12),
                durable: u64_at(start + 12) - u64::from(u32_at(start + 20)),
            });
            start = end;
        }
    }
    pieces
}

const MARKS: &str = "MARKS";
const SLOTS: [usize; 2] = [0, 4096];
const SLOT_LEN: usize = 84;

/// What the marks say was durable, read without the help of the code that is tested.
fn marked(storage: &FaultyStorage) -> Option<u64> {
    let bytes = storage.bytes_of(MARKS)?;
    let slots = SLOTS.iter().filter_map(|offset| bytes.get(*offset..offset + SLOT_LEN));
    let good = slots.filter(|slot| slot[..4] == *b"HFJM" && crc32c::crc32c(&slot[..80]).to_le_bytes() == slot[80..]);
    good.map(|slot| u64::from_le_bytes(slot[40..48].try_into().unwrap())).max()
}

/// Where damage is worth trying. Between the slots of the marks there is nothing.
fn places(storage: &FaultyStorage, file: &str) -> Vec<usize> {
    let len = storage.bytes_of(file).unwrap().len();
    match file == MARKS {
        true => SLOTS.iter().flat_map(|offset| *offset..offset + SLOT_LEN).collect(),
        false => (0..len).collect(),
    }
}

/// Checks a storage that lacks the pieces for which `is_lost` says so.
fn check(damaged: &FaultyStorage, whole: &Contents, pieces: &[Piece], is_lost: impl Fn(&Piece) -> bool, note: &str) {
    let Some(first_lost) = pieces.iter().find(|piece| is_lost(piece)).map(|piece| piece.sequence) else {
        let (found, _) = contents(damaged).unwrap_or_else(|error| panic!("{note}: nothing is lost, but {error}"));
        assert_eq!(found, *whole, "{note}");
        return;
    };
    let is_proven = marked(damaged) >= Some(first_lost)
        || pieces.iter().any(|piece| !is_lost(piece) && piece.durable >= first_lost);
    match contents(damaged) {
        Ok((found, _)) => {
            assert!(!is_proven, "{note}: {first_lost} was durable, and its loss is not noticed");
            let kept = whole.batches.iter().filter(|(sequence, _)| *sequence < first_lost).cloned();
            assert_eq!(found.batches, kept.collect::<Vec<_>>(), "{note}");
        }
        Err(error) => {
            assert!(is_proven, "{note}: {first_lost} was never durable, but {error}");
            let error = error.to_string();
            let names_file =
                pieces.iter().any(|piece| error.starts_with(&format!("{} is damaged at offset ", piece.file)));
            assert!(names_file, "{note}: {error}");
        }
    }
}

/// A journal of three segments. In the middle of the last one syncs end.
fn some_journal(zero_ahead: bool) -> FaultyStorage {
    let storage = FaultyStorage::new();
    let mut options = options(SEGMENT_HEADER_LEN as u64 + 4 * (FRAME_HEADER_LEN as u64 + 19) + 22);
    (options.zero_ahead, options.zero_ahead_bytes) = (zero_ahead, 100);
    let journal = open_with(&storage, options).unwrap();
    for number in 0..11 {
        let sequence = journal.append(format!("batch {number} of eleven").as_bytes(), 0);
        if number < 8 { journal.wait_durable(sequence).unwrap() } else { journal.write(sequence).unwrap() }
    }
    assert_eq!((storage.names().len(), marked(&storage)), (4, Some(8)));
    storage.kill()
}

fn closed_journal() -> FaultyStorage {
    let storage = some_journal(false);
    open_with(&storage, options(10_000)).unwrap().close().unwrap();
    let journal = open_with(&storage, options(10_000)).unwrap();
    journal.append(b"a batch of the second process", 0);
    journal.close().unwrap();
    storage
}

fn every_byte_is_damaged(storage: &FaultyStorage) {
    let (whole, warnings) = contents(storage).unwrap();
    assert_eq!(warnings, []);
    let pieces = pieces(storage);
    for file in storage.names() {
        for offset in places(storage, &file) {
            for bits in [0x01, 0x80, 0xff] {
                let damaged = storage.kill();
                damaged.flip(&file, offset, bits);
                let is_lost = |piece: &Piece| piece.file == file && (piece.start..piece.end).contains(&offset);
                // A damaged header takes its whole segment with it, though the frames in it still prove things; its
                // own claim is gone.
                check(&damaged, &whole, &pieces, is_lost, &format!("{file}, byte {offset} with {bits:#x}"));
            }
        }
    }
}

fn every_length_is_cut(storage: &FaultyStorage) {
    let (whole, _) = contents(storage).unwrap();
    let pieces = pieces(storage);
    for file in storage.names() {
        for cut in places(storage, &file) {
            let damaged = storage.kill();
            damaged.truncate(&file, cut);
            let is_lost = |piece: &Piece| piece.file == file && piece.end > cut;
            check(&damaged, &whole, &pieces, is_lost, &format!("{file} cut to {cut}"));
        }
    }
}

#[test]
fn a_journal_that_was_not_closed_is_cut_or_damaged() {
    for zero_ahead in [false, true] {
        let storage = some_journal(zero_ahead);
        every_byte_is_damaged(&storage);
        every_length_is_cut(&storage);
    }
}

#[test]
fn a_journal_that_was_closed_is_cut_or_damaged() {
    let storage = closed_journal();
    every_byte_is_damaged(&storage);
    every_length_is_cut(&storage);
}

#[test]
fn damage_to_the_last_batch_of_a_closed_journal_is_noticed() {
    let storage = closed_journal();
    let is_batch = |piece: &&Piece| piece.start > 0 && piece.end - piece.start > FRAME_HEADER_LEN;
    let last = pieces(&storage).iter().rfind(is_batch).unwrap().start;
    storage.flip(&storage.names().pop().unwrap(), last + 30, 1);
    let error = contents(&storage).unwrap_err().to_string();
    assert!(error.contains(&format!("at offset {last}: ")), "{error}");
}

#[test]
fn a_torn_tail_is_cut_once_and_then_forgotten() {
    let storage = some_journal(false);
    let last = storage.names().pop().unwrap();
    let len = storage.bytes_of(&last).unwrap().len();
    storage.truncate(&last, len - 3);
    let (found, warnings) = contents(&storage).unwrap();
    assert_eq!(found.batches.len(), 10);
    assert!(matches!(&warnings[..], [Warning::TornTail { file, bytes: 47, .. }] if *file == last), "{warnings:?}");
    let text = warnings[0].to_string();
    assert!(text.contains(&last) && text.contains("offset") && text.contains("47 bytes"), "{text}");

    let journal = open_with(&storage, options(266)).unwrap();
    assert_eq!(journal.append(b"eleven again", 0), Sequence(11));
    journal.wait_durable(Sequence(11)).unwrap();
    let (found, warnings) = contents(&storage.crash(0)).unwrap();
    assert_eq!((found.batches.last().unwrap(), warnings), (&(11, b"eleven again".to_vec()), vec![]));
}

/// A snapshot of some parts and the journal since; the journal before is gone.
fn some_snapshot() -> FaultyStorage {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, options(100)).unwrap();
    journal.write(journal.append(&[b'x'; 90], 0)).unwrap();
    let mut writer = journal.snapshots().create(b"some meta", 5).unwrap();
    for shard in 0..4 {
        let payload = vec![b'a' + shard as u8; shard as usize * 11];
        writer.part(stamp(shard, journal.tail()), &payload, shard).unwrap();
        journal.write(journal.append(&[b'y'; 90], 0)).unwrap();
    }
    let info = writer.finish(&journal).unwrap();
    journal.forget(info.min).unwrap();
    journal.close().unwrap();
    storage
}

#[test]
fn a_snapshot_is_cut_or_damaged() {
    let storage = some_snapshot();
    let (whole, warnings) = contents(&storage).unwrap();
    assert_eq!((whole.parts.len(), whole.batches.len(), warnings.len()), (4, 4, 0));
    let file = storage.names().pop().unwrap();
    let len = storage.bytes_of(&file).unwrap().len();
    let refuses = |damaged: &FaultyStorage, note: String| {
        let error = contents(damaged).expect_err(&note).to_string();
        assert!(error.starts_with(&format!("{file} is damaged at offset ")), "{note}: {error}");
    };
    for offset in 0..len {
        for bits in [0x01, 0x80, 0xff] {
            let damaged = storage.kill();
            damaged.flip(&file, offset, bits);
            refuses(&damaged, format!("byte {offset} with {bits:#x}"));
        }
        let damaged = storage.kill();
        damaged.truncate(&file, offset);
        refuses(&damaged, format!("cut to {offset}"));
    }
    let longer = storage.kill();
    longer.open(&file).unwrap().write_at(&[0; 7], len as u64).unwrap();
    refuses(&longer, "longer".to_owned());
}

#[test]
fn a_damaged_snapshot_is_replaced_by_an_older_one_or_by_the_whole_journal() {
    let storage = FaultyStorage::new();
    let journal = open_with(&storage, options(300)).unwrap();
    let mut infos = Vec::new();
    for number in 0..6 {
        journal.append(format!("batch {number}").as_bytes(), 0);
        if number % 2 == 1 {
            infos.push(snapshot(&journal, &format!("{number}")));
        }
    }
    journal.close().unwrap();
    for (damaged_count, batches) in [(0, 0), (1, 2), (2, 4), (3, 6)] {
        let damaged = storage.kill();
        infos.iter().rev().take(damaged_count).for_each(|info| damaged.flip(&info.name, 45, 1));
        let (found, warnings) = contents(&damaged).unwrap();
        assert_eq!((found.batches.len(), warnings.len()), (batches, damaged_count));
        drop(open_with(&damaged, options(300)).unwrap());
        assert_eq!(contents(&damaged.crash(0)).unwrap().0, found);
    }
}
