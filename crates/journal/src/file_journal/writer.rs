//! The segment that is being written. Knows where the data ends in it; never syncs, so that it holds up nobody.

use std::io;
use std::sync::Arc;

use super::JournalOptions;
use crate::directory_id::DirectoryId;
use crate::failure::{Failure, Operation};
use crate::segment::{self, SegmentHeader};
use crate::sequence::Sequence;
use crate::storage::{Storage, StorageFile, write_all_at};

/// How much more is written to a segment that should have ended before the next one is tried for again.
const TRY_AGAIN_BYTES_MAX: u64 = 1024 * 1024;

/// A page of zeros.
static ZEROS: [u8; 4096] = [0; 4096];

pub(super) struct SegmentWriter {
    storage: Arc<dyn Storage>,
    id: DirectoryId,
    segment_bytes_max: u64,
    pub(super) zero_ahead: bool,
    zero_ahead_bytes: usize,
    file: Option<(Arc<str>, Arc<dyn StorageFile>)>,
    /// Where the data ends, and the zeros behind it.
    data_end: u64,
    file_end: u64,
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

impl SegmentWriter {
    pub(super) fn new(storage: Arc<dyn Storage>, options: &JournalOptions, id: DirectoryId) -> SegmentWriter {
        SegmentWriter {
            storage,
            id,
            segment_bytes_max: options.segment_bytes_max,
            zero_ahead: options.zero_ahead,
            zero_ahead_bytes: options.zero_ahead_bytes,
            file: None,
            data_end: 0,
            file_end: 0,
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
        is_break: bool,
    ) -> Result<OpenSegment, Failure> {
        let name = segment::file_name(first);
        let header = SegmentHeader { id: self.id, first, durable, is_break };
        let file = self.make(&name, &header).inspect_err(|_| {
            // If this fails too, the file stays until the next attempt or the next start.
            let _ = self.storage.remove(segment::TEMPORARY_NAME);
        })?;
        let (name, file): (Arc<str>, Arc<dyn StorageFile>) = (name.into(), file.into());
        self.data_end = segment::HEADER_LEN;
        self.file_end = segment::HEADER_LEN;
        self.ends_at = self.segment_bytes_max;
        self.handed = first.previous();
        self.file = Some((name.clone(), file.clone()));
        Ok(OpenSegment { first, name, file, data_end: self.data_end })
    }

    fn make(&self, name: &str, header: &SegmentHeader) -> Result<Box<dyn StorageFile>, Failure> {
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
        // IMPORTANT: last. From here on the file counts.
        self.storage.rename(segment::TEMPORARY_NAME, name).map_err(failed(Operation::Rename))?;
        Ok(file)
    }

    /// Writes `frames`, the last of which is `last`.
    pub(super) fn write_frames(&mut self, last: Sequence) -> Result<(), Failure> {
        let (name, file) = self.file.as_ref().expect("a segment was begun");
        let failed = |error| Failure::io(Operation::Write, name, &error);
        write_all_at(&**file, &self.frames, self.data_end).map_err(failed)?;
        self.data_end += self.frames.len() as u64;
        if self.data_end > self.file_end {
            self.file_end = self.data_end;
            if self.zero_ahead {
                // Page by page: what is written at once may be kept as one large page of the cache, and then a sync of a
                // few bytes in it writes all of it. Measured: 24 kB of disk for an operation of 100 bytes.
                let end = self.file_end + self.zero_ahead_bytes as u64;
                while self.file_end < end {
                    let len = (ZEROS.len() as u64 - self.file_end % ZEROS.len() as u64).min(end - self.file_end);
                    write_all_at(&**file, &ZEROS[..len as usize], self.file_end).map_err(failed)?;
                    self.file_end += len;
                }
            }
        }
        self.handed = last;
        Ok(())
    }

    /// Cuts off the zeros that were written ahead, for good.
    pub(super) fn trim(&mut self) -> Result<(), Failure> {
        let (name, file) = self.file.as_ref().expect("a segment was begun");
        if self.file_end > self.data_end {
            file.set_len(self.data_end).map_err(|error| Failure::io(Operation::Truncate, name, &error))?;
            file.sync().map_err(|error| Failure::io(Operation::Sync, name, &error))?;
            self.file_end = self.data_end;
        }
        Ok(())
    }
}
