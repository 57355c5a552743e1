//! The file `MARKS`: how far the journal is durable, so that recovery can tell the loss of synced batches from a torn
//! tail. Knows nothing of segments beyond the number of the one being written.
//!
//! Two slots, in blocks of their own, are written in turn. Whatever happens to a write, the other slot stays as it was.
//!
//! ```text
//!  slot   0           8         12      16     32        40        48        56      60    64
//!         | HFJMARKS  | version | flags |  id  | counter | durable | segment | epoch | crc |
//! ```

use std::io;

use super::directory_id::DirectoryId;
use crate::epoch::Epoch;
use crate::failure::{Failure, Operation};
use crate::sequence::Sequence;
use crate::storage::{Storage, StorageFile, read_full_at, write_all_at};

pub(crate) const FILE_NAME: &str = "MARKS";

const MAGIC: &[u8; 8] = b"HFJMARKS";
const VERSION: u32 = 2;
/// The server stopped in good order: the journal ends with `durable`.
const FLAG_CLOSED: u32 = 1;

const SLOT_LEN: usize = 64;
/// A torn write damages one block at most.
const SLOT_OFFSETS: [usize; 2] = [0, 4096];
const FILE_LEN: usize = 8192;

/// What one slot says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) id: DirectoryId,
    /// The slot with the higher one is the newer.
    counter: u64,
    /// All batches up to here were durable.
    pub(crate) durable: Sequence,
    /// The first sequence of the segment that was being written.
    pub(crate) segment: Sequence,
    /// The epoch of the writer.
    pub(crate) epoch: Epoch,
    pub(crate) is_closed: bool,
}

/// What a directory has for marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    Missing,
    /// Neither slot can be read.
    Unreadable,
    /// The newer slot.
    Mark(Mark),
}

impl Found {
    pub(crate) fn mark(&self) -> Option<Mark> {
        match self {
            Found::Mark(mark) => Some(*mark),
            Found::Missing | Found::Unreadable => None,
        }
    }
}

/// The slots are of a format that is not known here.
#[derive(Debug)]
pub(crate) struct NewerFormat(pub(crate) u32);

/// Reads the marks of a directory.
pub(crate) fn read(storage: &dyn Storage) -> io::Result<Result<Found, NewerFormat>> {
    let file = match storage.open(FILE_NAME) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(Found::Missing)),
        opened => opened?,
    };
    let mut newest: Option<Mark> = None;
    for slot in read_slots(&*file)?.into_iter().flatten() {
        match slot {
            Ok(mark) if newest.is_none_or(|newest| mark.counter > newest.counter) => newest = Some(mark),
            Ok(_) => {}
            Err(newer) => return Ok(Err(newer)),
        }
    }
    Ok(Ok(newest.map_or(Found::Unreadable, Found::Mark)))
}

/// What each slot says; `None` for one that is torn, damaged or was never written.
fn read_slots(file: &dyn StorageFile) -> io::Result<[Option<Result<Mark, NewerFormat>>; 2]> {
    let mut bytes = [0; FILE_LEN];
    read_full_at(file, &mut bytes, 0)?;
    Ok(SLOT_OFFSETS
        .map(|offset| Mark::decode(bytes[offset..offset + SLOT_LEN].try_into().expect("a slot has this length"))))
}

impl Mark {
    fn encode(&self) -> [u8; SLOT_LEN] {
        let mut bytes = [0; SLOT_LEN];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(if self.is_closed { FLAG_CLOSED } else { 0 }).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.id.0);
        bytes[32..40].copy_from_slice(&self.counter.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.durable.0.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.segment.0.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.epoch.0.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` if the slot is torn, damaged or was never written.
    fn decode(bytes: &[u8; SLOT_LEN]) -> Option<Result<Mark, NewerFormat>> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        if &bytes[..8] != MAGIC || crc32c::crc32c(&bytes[..60]) != u32_at(60) {
            return None;
        }
        let (version, flags) = (u32_at(8), u32_at(12));
        if version != VERSION || flags & !FLAG_CLOSED != 0 {
            return Some(Err(NewerFormat(version)));
        }
        Some(Ok(Mark {
            id: DirectoryId::decode(&bytes[16..]),
            counter: u64_at(32),
            durable: Sequence(u64_at(40)),
            segment: Sequence(u64_at(48)),
            epoch: Epoch(u32_at(56)),
            is_closed: flags & FLAG_CLOSED != 0,
        }))
    }
}

/// The file while a log is open. Kept open, so that a mark costs one read and one write.
pub(crate) struct MarksFile {
    file: Box<dyn StorageFile>,
    /// What the newer slot says; the next mark goes to the other one.
    newest: Mark,
}

/// Why a mark was not made.
#[derive(Debug)]
pub(crate) enum MarkError {
    Io(io::Error),
    /// The marks are those of a writer of a later epoch now.
    Fenced {
        by: Epoch,
    },
}

impl MarksFile {
    /// Opens the file, or makes it, and records that all up to `durable` is. `found` is what recovery has read.
    pub(crate) fn begin(
        storage: &dyn Storage,
        found: &Found,
        id: DirectoryId,
        epoch: Epoch,
        durable: Sequence,
        segment: Sequence,
    ) -> Result<MarksFile, Failure> {
        let failed = |operation| move |error: io::Error| Failure::io(operation, FILE_NAME, &error);
        let file = match found {
            Found::Missing => storage.create(FILE_NAME).map_err(failed(Operation::Create))?,
            Found::Unreadable | Found::Mark(_) => storage.open(FILE_NAME).map_err(failed(Operation::Open))?,
        };
        let first = Mark { id, counter: 0, durable: Sequence::NONE, segment, epoch, is_closed: false };
        let newest = Mark { epoch, ..found.mark().unwrap_or(first) };
        let mut marks = MarksFile { file, newest };
        if found.mark().is_none() {
            // All of it now: a mark that is written later needs no space on the disk.
            write_all_at(&*marks.file, &[0; FILE_LEN], 0).map_err(failed(Operation::Write))?;
        }
        marks.write(durable, segment, false).map_err(|error| error.into_failure(epoch))?;
        marks.sync().map_err(failed(Operation::Sync))?;
        Ok(marks)
    }

    /// Records that all up to `durable` is, while the segment that begins with `segment` is being written. Does
    /// nothing if that is known already. The mark survives the process; [`MarksFile::sync`] makes it survive a power
    /// failure.
    ///
    /// If the write fails, the other slot still says what was recorded before, which is true, if not all of the truth.
    pub(crate) fn record(&mut self, durable: Sequence, segment: Sequence) -> Result<(), MarkError> {
        if durable <= self.newest.durable { Ok(()) } else { self.write(durable, segment, false) }
    }

    /// Records that the log ends with `end`, for good.
    pub(crate) fn close(&mut self, end: Sequence, segment: Sequence) -> Result<(), Failure> {
        self.write(end, segment, true).map_err(|error| error.into_failure(self.newest.epoch))?;
        self.sync().map_err(|error| Failure::io(Operation::Sync, FILE_NAME, &error))
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    /// The later epoch that another writer has begun here, if there is one. The lock on the directory keeps a second
    /// writer out; this notices one where locks do not hold, as on some network file systems. A file that cannot be
    /// read says nothing.
    pub(crate) fn fenced_by(&self) -> Option<Epoch> {
        let slots = read_slots(&*self.file).ok()?;
        let epochs = slots.into_iter().flatten().flatten().map(|mark| mark.epoch);
        epochs.max().filter(|epoch| *epoch > self.newest.epoch)
    }

    fn write(&mut self, durable: Sequence, segment: Sequence, is_closed: bool) -> Result<(), MarkError> {
        // IMPORTANT: look before every write. The marks of a later writer must not be overwritten by those of this one.
        if let Some(by) = self.fenced_by() {
            return Err(MarkError::Fenced { by });
        }
        let counter = self.newest.counter + 1;
        let mark = Mark { counter, durable, segment, is_closed, ..self.newest };
        let offset = SLOT_OFFSETS[(counter % SLOT_OFFSETS.len() as u64) as usize];
        write_all_at(&*self.file, &mark.encode(), offset as u64).map_err(MarkError::Io)?;
        // IMPORTANT: only now. A slot that could not be written is written again, and never the good one beside it.
        self.newest = mark;
        Ok(())
    }
}

impl MarkError {
    fn into_failure(self, own: Epoch) -> Failure {
        match self {
            MarkError::Io(error) => Failure::io(Operation::Write, FILE_NAME, &error),
            MarkError::Fenced { by } => Failure::Fenced { own, by },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Fault, FaultyStorage};

    const ID: DirectoryId = DirectoryId([7; DirectoryId::LEN]);
    const EPOCH: Epoch = Epoch(6);

    fn begun(storage: &FaultyStorage) -> MarksFile {
        let found = read(storage).unwrap().unwrap();
        let marks = MarksFile::begin(storage, &found, ID, EPOCH, Sequence(3), Sequence(1)).unwrap();
        storage.sync_directory().unwrap();
        marks
    }

    fn durable(storage: &FaultyStorage) -> Option<u64> {
        read(storage).unwrap().unwrap().mark().map(|mark| mark.durable.0)
    }

    #[test]
    fn the_layout_is_pinned() {
        let mark =
            Mark { id: ID, counter: 258, durable: Sequence(5), segment: Sequence(4), epoch: EPOCH, is_closed: true };
        let bytes = mark.encode();
        assert_eq!(bytes[..16], *b"HFJMARKS\x02\0\0\0\x01\0\0\0");
        assert_eq!(bytes[16..32], [7; 16]);
        assert_eq!(bytes[32..60], *b"\x02\x01\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x06\0\0\0");
        assert_eq!(Mark::decode(&bytes).unwrap().unwrap(), mark);
        let mut newer = bytes;
        newer[8] = 3;
        assert!(Mark::decode(&newer).is_none(), "a flipped bit is no newer format");
        let crc = crc32c::crc32c(&newer[..60]);
        newer[60..64].copy_from_slice(&crc.to_le_bytes());
        assert!(matches!(Mark::decode(&newer), Some(Err(NewerFormat(3)))));
    }

    #[test]
    fn the_newest_mark_counts_and_a_damaged_one_leaves_the_one_before() {
        let storage = FaultyStorage::new();
        assert_eq!(read(&storage).unwrap().unwrap(), Found::Missing);
        let mut marks = begun(&storage);
        for sequence in 4..10 {
            marks.record(Sequence(sequence), Sequence(4)).unwrap();
            assert_eq!(durable(&storage), Some(sequence));
            let slot = SLOT_OFFSETS[(marks.newest.counter % 2) as usize];
            let damaged = storage.kill();
            damaged.flip(FILE_NAME, slot + 41, 1);
            assert_eq!(durable(&damaged), Some(sequence - 1));
            damaged.truncate(FILE_NAME, 10);
            assert_eq!(read(&damaged).unwrap().unwrap(), Found::Unreadable);
        }
        let operations = storage.operations();
        marks.record(Sequence(9), Sequence(4)).unwrap();
        marks.record(Sequence(2), Sequence(4)).unwrap();
        assert_eq!(storage.operations(), operations, "marks never go back");
        marks.close(Sequence(9), Sequence(4)).unwrap();
        assert!(read(&storage).unwrap().unwrap().mark().unwrap().is_closed);
        assert!(!begun(&storage).newest.is_closed);
    }

    #[test]
    fn a_later_writer_is_noticed_and_its_marks_stay() {
        let storage = FaultyStorage::new();
        let mut marks = begun(&storage);
        assert_eq!(marks.fenced_by(), None);
        let found = read(&storage).unwrap().unwrap();
        let later = MarksFile::begin(&storage, &found, ID, EPOCH.next(), Sequence(3), Sequence(4)).unwrap();
        assert_eq!((marks.fenced_by(), later.fenced_by()), (Some(EPOCH.next()), None));
        let before = storage.bytes_of(FILE_NAME);
        assert!(matches!(marks.record(Sequence(9), Sequence(1)), Err(MarkError::Fenced { by }) if by == EPOCH.next()));
        assert!(matches!(marks.close(Sequence(9), Sequence(1)), Err(Failure::Fenced { own: EPOCH, .. })));
        assert_eq!(storage.bytes_of(FILE_NAME), before);
    }

    #[test]
    fn whatever_fails_a_good_slot_is_left() {
        for failing in 0..12 {
            for fault in [Fault::Io, Fault::NoSpace, Fault::Short] {
                let storage = FaultyStorage::new();
                let mut marks = begun(&storage);
                storage.fail_at(storage.operations() + failing, fault);
                let mut recorded = 3;
                for sequence in 4..12 {
                    if marks.record(Sequence(sequence), Sequence(1)).is_ok() {
                        recorded = sequence;
                    }
                    if sequence % 3 == 0 {
                        let _ = marks.sync();
                    }
                    assert_eq!(durable(&storage.kill()), Some(recorded));
                    for seed in 0..5 {
                        let found = durable(&storage.crash(seed));
                        assert!(found.is_some_and(|found| (3..=recorded).contains(&found)), "{found:?}, {recorded}");
                    }
                }
            }
        }
    }
}
