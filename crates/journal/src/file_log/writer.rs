//! The segment that is being written. Knows where the data ends in it; never syncs, so that it holds nothing up.

use std::io;
use std::sync::Arc;

use super::options::FileLogOptions;
use crate::epoch::Epoch;
use crate::failure::{Failure, Operation};
use crate::files::DirectoryId;
use crate::files::segment::{self, SegmentHeader};
use crate::sequence::Sequence;
use crate::storage::{Storage, StorageFile, is_want_of_space, write_all_at};

/// How much more is written to a segment that should have ended before the next one is tried for again.
const TRY_AGAIN_BYTES_MAX: u64 = 1024 * 1024;

/// A page of zeros.
static ZEROS: [u8; 4096] = [0; 4096];

pub(super) struct SegmentWriter {
    storage: Arc<dyn Storage>,
    id: DirectoryId,
    epoch: Epoch,
    segment_bytes_max: u64,
    pub(super) zero_ahead: bool,
    zero_ahead_bytes: usize,
    file: Option<(Arc<str>, Arc<dyn StorageFile>)>,
    /// Where the data ends, and the zeros behind it.
    data_end: u64,
    file_end: u64,
    /// See [`FileLogOptions::reserve_bytes`].
    reserve_bytes: u64,
    /// Up to here the file has its space on the disk.
    reserved_end: u64,
    /// Where the segment ends, unless the next one cannot be made: then a bit further on.
    ends_at: u64,
    /// The last batch in the file.
    pub(super) handed: Sequence,
    /// What is to be written next; kept for its memory.
    pub(super) frames: Vec<u8>,
}

/// A segment as the sync thread needs it.
#[derive(Clone)]
pub(super) struct OpenSegment {
    pub(super) first: Sequence,
    pub(super) name: Arc<str>,
    pub(super) file: Arc<dyn StorageFile>,
    pub(super) data_end: u64,
}

/// Why a segment is begun.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// The log was opened. There is no other segment to go on in, so it begins without space if need be.
    Start,
    /// As with [`Beginning::Start`]; and what is in it waits for a snapshot.
    Restart,
    /// The one before it is full, and can go on if this one has no space.
    Next,
}

/// The reserve on a small disk, of which it would otherwise be a large part.
const RESERVE_BYTES_MIN: u64 = 128 * 1024;

impl SegmentWriter {
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        options: &FileLogOptions,
        id: DirectoryId,
        epoch: Epoch,
    ) -> SegmentWriter {
        let reserve_bytes_max = storage.disk_bytes().map_or(u64::MAX, |bytes| (bytes / 64).max(RESERVE_BYTES_MIN));
        SegmentWriter {
            storage,
            id,
            epoch,
            segment_bytes_max: options.segment_bytes_max,
            zero_ahead: options.zero_ahead,
            zero_ahead_bytes: options.zero_ahead_bytes,
            file: None,
            data_end: 0,
            file_end: 0,
            reserve_bytes: options.reserve_bytes.min(reserve_bytes_max),
            reserved_end: 0,
            ends_at: 0,
            handed: Sequence::NONE,
            frames: Vec::new(),
        }
    }

    pub(super) fn offset(&self) -> u64 {
        self.data_end
    }

    /// No batch was written to this segment yet.
    pub(super) fn is_empty(&self) -> bool {
        self.data_end <= segment::HEADER_LEN
    }

    /// The frames at hand belong into the next segment.
    pub(super) fn is_full(&self) -> bool {
        !self.is_empty() && self.data_end + self.frames.len() as u64 > self.ends_at
    }

    /// The next segment could not be made: this one goes on.
    pub(super) fn go_on(&mut self) {
        self.ends_at = self.data_end + (self.segment_bytes_max / 16).min(TRY_AGAIN_BYTES_MAX);
    }

    /// Begins a segment. If that fails, nothing has changed, and the one before it can go on.
    pub(super) fn begin_segment(
        &mut self,
        first: Sequence,
        durable: Sequence,
        beginning: Beginning,
    ) -> Result<OpenSegment, Failure> {
        let name = segment::file_name(first);
        let is_break = beginning == Beginning::Restart;
        let header = SegmentHeader { id: self.id, first, durable, epoch: self.epoch, is_break };
        let (file, reserved_end) = self.make(&name, &header, beginning == Beginning::Next).inspect_err(|_| {
            // If this fails too, the file stays until the next attempt or the next start.
            let _ = self.storage.remove(segment::TEMPORARY_NAME);
        })?;
        self.give_back();
        let (name, file): (Arc<str>, Arc<dyn StorageFile>) = (name.into(), file.into());
        self.data_end = segment::HEADER_LEN;
        self.file_end = segment::HEADER_LEN;
        self.reserved_end = reserved_end;
        self.ends_at = self.segment_bytes_max;
        self.handed = first.previous();
        self.file = Some((name.clone(), file.clone()));
        Ok(OpenSegment { first, name, file, data_end: self.data_end })
    }

    /// A new segment, and up to where it has its space.
    fn make(
        &self,
        name: &str,
        header: &SegmentHeader,
        needs_reserve: bool,
    ) -> Result<(Box<dyn StorageFile>, u64), Failure> {
        let failed = |operation| move |error: io::Error| Failure::io(operation, name, &error);
        let file = match self.storage.create(segment::TEMPORARY_NAME) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.storage.remove(segment::TEMPORARY_NAME).map_err(failed(Operation::Remove))?;
                self.storage.create(segment::TEMPORARY_NAME)
            }
            created => created,
        };
        let file = file.map_err(failed(Operation::Create))?;
        write_all_at(&*file, &header.encode(), 0).map_err(failed(Operation::Write))?;
        let reserved_end = match self.reserve(&*file, segment::HEADER_LEN, segment::HEADER_LEN) {
            Err(error) if needs_reserve => return Err(failed(Operation::Reserve)(error)),
            reserved => reserved.unwrap_or(segment::HEADER_LEN),
        };
        // IMPORTANT: last. From here on the file counts.
        self.storage.rename(segment::TEMPORARY_NAME, name).map_err(failed(Operation::Rename))?;
        Ok((file, reserved_end))
    }

    /// There is as much space behind the data as there shall be.
    pub(super) fn has_reserve(&self) -> bool {
        self.reserve_bytes == 0 || self.reserved_end >= self.data_end + self.reserve_bytes
    }

    /// Takes more space behind the data. Says whether there is enough now.
    pub(super) fn extend_reserve(&mut self) -> bool {
        let (_, file) = self.file.as_ref().expect("a segment was begun");
        if let Ok(end) = self.reserve(&**file, self.reserved_end, self.data_end) {
            self.reserved_end = end;
        }
        self.has_reserve()
    }

    /// Takes space from `from` on, for what is to come behind `data_end`, and says where it ends. Fails for want of
    /// space only: whatever else is wrong, writing will tell.
    fn reserve(&self, file: &dyn StorageFile, from: u64, data_end: u64) -> io::Result<u64> {
        if self.reserve_bytes == 0 {
            return Ok(from);
        }
        // A large step, so that it is rare. If that is too much, a small one, and not none: else every write of those
        // that use up the rest of the disk would ask.
        let reserve = |step: u64| {
            let end = data_end + self.reserve_bytes + step;
            match file.reserve(from, end - from) {
                Err(error) if is_want_of_space(&error) => Err(error),
                _ => Ok(end),
            }
        };
        reserve(self.reserve_bytes * 2).or_else(|_| reserve(self.reserve_bytes / 8))
    }

    /// Gives back the space behind the data of a segment that has ended. Should that fail, it is lost until the
    /// segment goes; the data is not concerned.
    fn give_back(&self) {
        if let Some((_, file)) = &self.file
            && self.reserved_end > self.data_end
        {
            let _ = file.set_len(self.data_end);
        }
    }

    /// Writes `frames`, the last of which is `last`.
    pub(super) fn write_frames(&mut self, last: Sequence) -> Result<(), Failure> {
        let (name, file) = self.file.as_ref().expect("a segment was begun");
        let failed = |error| Failure::io(Operation::Write, name, &error);
        let data_end = self.data_end + self.frames.len() as u64;
        if data_end > self.reserved_end
            && let Ok(end) = self.reserve(&**file, self.reserved_end, data_end)
        {
            self.reserved_end = end;
        }
        write_all_at(&**file, &self.frames, self.data_end).map_err(failed)?;
        self.data_end = data_end;
        self.reserved_end = self.reserved_end.max(data_end);
        if self.data_end > self.file_end {
            self.file_end = self.data_end;
            if self.zero_ahead {
                // Page by page: what is written at once may be kept as one large page of the cache, and then a sync of a
                // few bytes in it writes all of it. Measured: 24 kB of disk for an operation of 100 bytes.
                let mut end = self.file_end + self.zero_ahead_bytes as u64;
                if self.reserve_bytes > 0 {
                    end = end.min(self.reserved_end);
                }
                while self.file_end < end {
                    let len = (ZEROS.len() as u64 - self.file_end % ZEROS.len() as u64).min(end - self.file_end);
                    match write_all_at(&**file, &ZEROS[..len as usize], self.file_end) {
                        // The data is written; that there are no zeros behind it costs time only.
                        Err(error) if is_want_of_space(&error) => break,
                        written => written.map_err(failed)?,
                    }
                    self.file_end += len;
                }
            }
        }
        self.handed = last;
        Ok(())
    }

    /// Cuts off the zeros that were written ahead and gives back what is reserved, for good.
    pub(super) fn trim(&mut self) -> Result<(), Failure> {
        let (name, file) = self.file.as_ref().expect("a segment was begun");
        self.reserve_bytes = 0;
        file.set_len(self.data_end).map_err(|error| Failure::io(Operation::Truncate, name, &error))?;
        file.sync().map_err(|error| Failure::io(Operation::Sync, name, &error))?;
        (self.file_end, self.reserved_end) = (self.data_end, self.data_end);
        Ok(())
    }
}
