//! The file `MARKS`: how far the journal is durable, so that recovery can tell the loss of synced batches from a torn
//! tail. Knows nothing of segments beyond the number of the one being written.
//!
//! Two slots, in separate blocks, are written alternately. If a write fails, the other slot is intact.
//!
//! ```text
//!  slot   0           8         12      16     32        40        48        56      60    64         80      84
//!         | HFJMARKS  | version | flags |  id  | counter | durable | segment | epoch | crc | epoch id | crc 2 |
//! ```
//!
//! Format 2 ends with the first checksum, at 64; see [`super::segment`].

use std::io;

use super::directory_id::DirectoryId;
use super::epoch_id::{EpochId, WriterIdentity};
use crate::epoch::Epoch;
use crate::failure::{Failure, Operation};
use crate::sequence::Sequence;
use crate::storage::{Storage, StorageFile, read_full_at, write_all_at};

pub(crate) const FILE_NAME: &str = "MARKS";

/// The name of the file that will replace the marks of another writer.
fn temporary_name(epoch: Epoch) -> String {
    format!("{FILE_NAME}-{epoch}.tmp")
}

pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with("MARKS-") && name.ends_with(".tmp")
}

const MAGIC: &[u8; 8] = b"HFJMARKS";
const VERSION: u32 = 3;
const VERSION_2: u32 = 2;
/// A clean stop: the journal ends with `durable`.
const FLAG_CLOSED: u32 = 1;

const SLOT_LEN: usize = 84;
/// A torn write damages one block at most.
const SLOT_OFFSETS: [usize; 2] = [0, 4096];
const FILE_LEN: usize = 8192;

/// The contents of one slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) id: DirectoryId,
    /// The slot with the higher counter is newer.
    counter: u64,
    /// All batches up to here were durable.
    pub(crate) durable: Sequence,
    /// The first sequence of the segment that was being written.
    pub(crate) segment: Sequence,
    /// The epoch of the writer.
    pub(crate) epoch: Epoch,
    pub(crate) epoch_id: EpochId,
    pub(crate) is_closed: bool,
}

/// The marks of a directory.
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

/// Marks that are ready to replace those of a directory, and say that less was durable.
pub(crate) struct LoweredMarks {
    mark: Mark,
    file_name: String,
}

impl LoweredMarks {
    /// Writes and syncs them, under another name. Leaves nothing behind if that fails.
    pub(crate) fn prepare(storage: &dyn Storage, found: Mark, durable: Sequence) -> Result<LoweredMarks, Failure> {
        let file_name = temporary_name(found.epoch);
        let (counter, segment) = (found.counter + 1, found.segment.min(durable.next()));
        let mark = Mark { counter, durable, segment, is_closed: false, ..found };
        let failed = |operation| move |error: io::Error| Failure::io(operation, FILE_NAME, &error);
        match storage.remove(&file_name) {
            // An attempt before that was killed.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(Operation::Remove)(error)),
            _ => {}
        }
        let file = storage.create(&file_name).map_err(failed(Operation::Create))?;
        let offset = SLOT_OFFSETS[(counter % SLOT_OFFSETS.len() as u64) as usize];
        let written = write_all_at(&*file, &[0; FILE_LEN], 0)
            .and_then(|()| write_all_at(&*file, &mark.encode(), offset as u64))
            .map_err(failed(Operation::Write))
            .and_then(|()| file.sync().map_err(failed(Operation::Sync)));
        match written {
            Ok(()) => Ok(LoweredMarks { mark, file_name }),
            Err(failure) => {
                let _ = storage.remove(&file_name);
                Err(failure)
            }
        }
    }

    /// Replaces the marks of the directory, and returns what they say now.
    pub(crate) fn publish(self, storage: &dyn Storage) -> Result<Found, Failure> {
        let failed = |operation| move |error: io::Error| Failure::io(operation, FILE_NAME, &error);
        storage.rename(&self.file_name, FILE_NAME).map_err(failed(Operation::Rename))?;
        storage.sync_directory().map_err(failed(Operation::SyncDirectory))?;
        Ok(Found::Mark(self.mark))
    }
}

/// The slots have an unknown format.
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

/// Reads the slots; `None` for one that is torn, damaged or was never written.
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
        bytes[64..80].copy_from_slice(&self.epoch_id.0);
        let crc = crc32c::crc32c(&bytes[..80]);
        bytes[80..84].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` if the slot is torn, damaged or was never written.
    fn decode(bytes: &[u8; SLOT_LEN]) -> Option<Result<Mark, NewerFormat>> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        // The version is checked after the checksum: a flipped bit must not look like a newer format.
        if &bytes[..8] != MAGIC || crc32c::crc32c(&bytes[..60]) != u32_at(60) {
            return None;
        }
        let (version, flags) = (u32_at(8), u32_at(12));
        if !matches!(version, VERSION | VERSION_2) || flags & !FLAG_CLOSED != 0 {
            return Some(Err(NewerFormat(version)));
        }
        if version == VERSION && crc32c::crc32c(&bytes[..80]) != u32_at(80) {
            return None;
        }
        Some(Ok(Mark {
            id: DirectoryId::decode(&bytes[16..]),
            counter: u64_at(32),
            durable: Sequence(u64_at(40)),
            segment: Sequence(u64_at(48)),
            epoch: Epoch(u32_at(56)),
            epoch_id: if version == VERSION_2 { EpochId::NONE } else { EpochId::decode(&bytes[64..]) },
            is_closed: flags & FLAG_CLOSED != 0,
        }))
    }
}

/// The file while a log is open. It stays open, so that a mark costs one read and one write.
pub(crate) struct MarksFile {
    file: Box<dyn StorageFile>,
    /// The newer slot; the next mark is written to the other one.
    newest: Mark,
}

/// Why a mark was not written.
#[derive(Debug)]
pub(crate) enum MarkError {
    Io(io::Error),
    /// A writer of a later epoch has written the marks.
    Fenced {
        by: Epoch,
    },
}

impl MarksFile {
    /// Opens or creates the file, and records that everything up to `durable` is durable. `found` is what recovery has
    /// read.
    pub(crate) fn begin(
        storage: &dyn Storage,
        found: &Found,
        identity: &WriterIdentity,
        durable: Sequence,
        segment: Sequence,
    ) -> Result<MarksFile, Failure> {
        let WriterIdentity { directory: id, epoch, epoch_id, .. } = *identity;
        let failed = |operation| move |error: io::Error| Failure::io(operation, FILE_NAME, &error);
        let file = match found {
            Found::Missing => storage.create(FILE_NAME).map_err(failed(Operation::Create))?,
            Found::Unreadable | Found::Mark(_) => storage.open(FILE_NAME).map_err(failed(Operation::Open))?,
        };
        let first = Mark { id, counter: 0, durable: Sequence::NONE, segment, epoch, epoch_id, is_closed: false };
        let newest = Mark { epoch, epoch_id, ..found.mark().unwrap_or(first) };
        let mut marks = MarksFile { file, newest };
        if found.mark().is_none() {
            // Allocates all of it now: later marks need no new space on the disk.
            write_all_at(&*marks.file, &[0; FILE_LEN], 0).map_err(failed(Operation::Write))?;
        }
        marks.write(durable, segment, false).map_err(|error| error.into_failure(epoch))?;
        marks.sync().map_err(failed(Operation::Sync))?;
        Ok(marks)
    }

    /// As [`MarksFile::begin`], in a new file that replaces the other: the writer before, which may still run, has the
    /// old one open, and what it writes there is never read. The caller syncs the directory.
    pub(crate) fn replace(
        storage: &dyn Storage,
        found: &Found,
        identity: &WriterIdentity,
        durable: Sequence,
        segment: Sequence,
    ) -> Result<MarksFile, Failure> {
        let WriterIdentity { directory: id, epoch, epoch_id, .. } = *identity;
        let failed = |operation| move |error: io::Error| Failure::io(operation, FILE_NAME, &error);
        let temporary = temporary_name(epoch);
        let file = storage.create(&temporary).map_err(failed(Operation::Create))?;
        write_all_at(&*file, &[0; FILE_LEN], 0).map_err(failed(Operation::Write))?;
        let counter = found.mark().map_or(0, |mark| mark.counter);
        let newest = Mark { id, counter, durable: Sequence::NONE, segment, epoch, epoch_id, is_closed: false };
        let mut marks = MarksFile { file, newest };
        marks.write(durable, segment, false).map_err(|error| error.into_failure(epoch))?;
        marks.sync().map_err(failed(Operation::Sync))?;
        storage.rename(&temporary, FILE_NAME).map_err(failed(Operation::Rename))?;
        Ok(marks)
    }

    /// Records that everything up to `durable` is durable, while the segment that begins with `segment` is being
    /// written. Does nothing if that is recorded already. The mark survives the process; [`MarksFile::sync`] makes it
    /// survive a power failure.
    ///
    /// If the write fails, the other slot has the previous mark, which is still true.
    pub(crate) fn record(&mut self, durable: Sequence, segment: Sequence) -> Result<(), MarkError> {
        if durable <= self.newest.durable { Ok(()) } else { self.write(durable, segment, false) }
    }

    /// Records a clean stop: the log ends with `end`.
    pub(crate) fn close(&mut self, end: Sequence, segment: Sequence) -> Result<(), Failure> {
        self.write(end, segment, true).map_err(|error| error.into_failure(self.newest.epoch))?;
        self.sync().map_err(|error| Failure::io(Operation::Sync, FILE_NAME, &error))
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    /// The epoch that another writer has begun here after this one, if any. The lock on the directory keeps a second
    /// writer out; this detects one where locks do not work, as on some network file systems. An unreadable file is
    /// ignored.
    pub(crate) fn fenced_by(&self) -> Option<Epoch> {
        let own = self.newest;
        let slots = read_slots(&*self.file).ok()?;
        let marks = slots.into_iter().flatten().flatten();
        // An epoch of the same number and another id was begun at the same time.
        let is_later = |mark: &Mark| mark.epoch > own.epoch || mark.epoch == own.epoch && mark.epoch_id != own.epoch_id;
        marks.filter(is_later).map(|mark| mark.epoch).max()
    }

    fn write(&mut self, durable: Sequence, segment: Sequence, is_closed: bool) -> Result<(), MarkError> {
        // IMPORTANT: check before every write. The marks of a later writer must not be overwritten.
        if let Some(by) = self.fenced_by() {
            return Err(MarkError::Fenced { by });
        }
        let counter = self.newest.counter + 1;
        let mark = Mark { counter, durable, segment, is_closed, ..self.newest };
        let offset = SLOT_OFFSETS[(counter % SLOT_OFFSETS.len() as u64) as usize];
        write_all_at(&*self.file, &mark.encode(), offset as u64).map_err(MarkError::Io)?;
        // IMPORTANT: only now. A slot whose write failed is written again, never the good one.
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
    const EPOCH_ID: EpochId = EpochId([5; EpochId::LEN]);

    fn identity(epoch: Epoch, epoch_id: EpochId) -> WriterIdentity {
        WriterIdentity { directory: ID, epoch, epoch_id, previous_id: EpochId::NONE }
    }

    fn begun(storage: &FaultyStorage) -> MarksFile {
        let found = read(storage).unwrap().unwrap();
        let marks = MarksFile::begin(storage, &found, &identity(EPOCH, EPOCH_ID), Sequence(3), Sequence(1)).unwrap();
        storage.sync_directory().unwrap();
        marks
    }

    fn durable(storage: &FaultyStorage) -> Option<u64> {
        read(storage).unwrap().unwrap().mark().map(|mark| mark.durable.0)
    }

    #[test]
    fn the_layout_is_pinned() {
        let mark = Mark {
            id: ID,
            counter: 258,
            durable: Sequence(5),
            segment: Sequence(4),
            epoch: EPOCH,
            epoch_id: EPOCH_ID,
            is_closed: true,
        };
        let bytes = mark.encode();
        assert_eq!(bytes[..16], *b"HFJMARKS\x03\0\0\0\x01\0\0\0");
        assert_eq!(bytes[16..32], [7; 16]);
        assert_eq!(bytes[32..60], *b"\x02\x01\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x06\0\0\0");
        assert_eq!(bytes[60..64], crc32c::crc32c(&bytes[..60]).to_le_bytes());
        assert_eq!(bytes[64..80], [5; 16]);
        assert_eq!(bytes[80..], crc32c::crc32c(&bytes[..80]).to_le_bytes());
        assert_eq!(Mark::decode(&bytes).unwrap().unwrap(), mark);
        let mut newer = bytes;
        newer[8] = 4;
        assert!(Mark::decode(&newer).is_none(), "a flipped bit is no newer format");
        let crc = crc32c::crc32c(&newer[..60]);
        newer[60..64].copy_from_slice(&crc.to_le_bytes());
        assert!(matches!(Mark::decode(&newer), Some(Err(NewerFormat(4)))));
        // Format 2.
        let mut older = bytes;
        older[8] = 2;
        let crc = crc32c::crc32c(&older[..60]);
        older[60..64].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Mark::decode(&older).unwrap().unwrap(), Mark { epoch_id: EpochId::NONE, ..mark });
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
        let later =
            MarksFile::begin(&storage, &found, &identity(EPOCH.next(), EpochId([6; 16])), Sequence(3), Sequence(4))
                .unwrap();
        assert_eq!((marks.fenced_by(), later.fenced_by()), (Some(EPOCH.next()), None));
        let before = storage.bytes_of(FILE_NAME);
        assert!(matches!(marks.record(Sequence(9), Sequence(1)), Err(MarkError::Fenced { by }) if by == EPOCH.next()));
        assert!(matches!(marks.close(Sequence(9), Sequence(1)), Err(Failure::Fenced { own: EPOCH, .. })));
        assert_eq!(storage.bytes_of(FILE_NAME), before);
    }

    #[test]
    fn of_two_writers_of_one_epoch_the_second_is_refused() {
        let storage = FaultyStorage::new();
        let first = begun(&storage);
        let found = read(&storage).unwrap().unwrap();
        let second = identity(EPOCH, EpochId([6; EpochId::LEN]));
        let begun = MarksFile::begin(&storage, &found, &second, Sequence(3), Sequence(4));
        assert!(matches!(begun, Err(Failure::Fenced { own: EPOCH, by: EPOCH })));
        assert_eq!(first.fenced_by(), None);
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
