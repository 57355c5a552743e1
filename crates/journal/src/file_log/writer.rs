//! The segment that is being written. Knows where its data ends; never syncs, so it delays no caller.

use std::io;
use std::sync::Arc;

use super::options::FileLogOptions;
use crate::failure::{Failure, Operation};
use crate::fence::WriteRight;
use crate::files::WriterIdentity;
use crate::files::frame::Layout;
use crate::files::segment::{self, SegmentHeader};
use crate::sequence::Sequence;
use crate::storage::{Storage, StorageFile, is_want_of_space, write_all_at};

/// How much more is written to a full segment before the next one is tried for again.
const TRY_AGAIN_BYTES_MAX: u64 = 1024 * 1024;

/// A page of zeros.
static ZEROS: [u8; 4096] = [0; 4096];

pub(super) struct SegmentWriter {
    storage: Arc<dyn Storage>,
    identity: WriterIdentity,
    right: WriteRight,
    segment_bytes_max: u64,
    pub(super) zero_ahead: bool,
    zero_ahead_bytes: usize,
    file: Option<(Arc<str>, Arc<dyn StorageFile>)>,
    /// Where the data ends and the zeros begin.
    data_end: u64,
    file_end: u64,
    /// See [`FileLogOptions::reserve_bytes`].
    reserve_bytes: u64,
    /// The end of the space that the file has on the disk.
    reserved_end: u64,
    /// Where the segment ends; further on if the next one could not be created.
    ends_at: u64,
    prepares_next: bool,
    /// The space that is reserved for the next segment ahead of time: all that it will use, but for a small disk.
    prepared_bytes: u64,
    prepared: Option<PreparedFile>,
    /// The last batch in the file.
    pub(super) handed: Sequence,
    /// The time of that batch.
    pub(super) time_ms: u64,
    /// The frames to write next; keeps its memory.
    pub(super) frames: Vec<u8>,
}

/// A file without contents that waits to become the next segment.
pub(super) struct PreparedFile {
    file: Box<dyn StorageFile>,
    reserved_end: u64,
}

/// How a [`PreparedFile`] is made, without the writer.
pub(super) struct Preparation {
    storage: Arc<dyn Storage>,
    right: WriteRight,
    name: String,
    reserve_bytes: u64,
}

impl Preparation {
    /// `None` if it fails: then the segment is made when it is needed.
    pub(super) fn make(self) -> Option<PreparedFile> {
        self.right.check().ok()?;
        let file = create_anew(&*self.storage, &self.name).ok()?;
        if self.reserve_bytes > 0 && file.reserve(0, self.reserve_bytes).is_err() {
            let _ = self.storage.remove(&self.name);
            return None;
        }
        Some(PreparedFile { file, reserved_end: self.reserve_bytes.max(segment::HEADER_LEN) })
    }
}

/// Creates a file, instead of one that an earlier attempt has left.
fn create_anew(storage: &dyn Storage, name: &str) -> Result<Box<dyn StorageFile>, (Operation, io::Error)> {
    let created = match storage.create(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            storage.remove(name).map_err(|error| (Operation::Remove, error))?;
            storage.create(name)
        }
        created => created,
    };
    created.map_err(|error| (Operation::Create, error))
}

/// A segment, for the sync thread.
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
    /// The log was opened. There is no other segment to continue in, so it begins even without space.
    Start,
    /// As [`Beginning::Start`]; its contents wait for a snapshot.
    Restart,
    /// The previous segment is full, and can continue if this one has no space.
    Next,
}

/// The reserve on a small disk.
const RESERVE_BYTES_MIN: u64 = 128 * 1024;

impl SegmentWriter {
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        options: &FileLogOptions,
        identity: WriterIdentity,
        right: WriteRight,
        time_ms: u64,
    ) -> SegmentWriter {
        let reserve_bytes_max = storage.disk_bytes().map_or(u64::MAX, |bytes| (bytes / 64).max(RESERVE_BYTES_MIN));
        let reserve_bytes = options.reserve_bytes.min(reserve_bytes_max);
        // Never less than a segment has at its beginning, see `reserve`.
        let prepared_bytes = (options.segment_bytes_max.saturating_add(reserve_bytes))
            .min(reserve_bytes_max)
            .min(reserve_bytes * 16)
            .max(segment::HEADER_LEN + reserve_bytes * 3);
        SegmentWriter {
            storage,
            identity,
            right,
            segment_bytes_max: options.segment_bytes_max,
            zero_ahead: options.zero_ahead,
            zero_ahead_bytes: options.zero_ahead_bytes,
            file: None,
            data_end: 0,
            file_end: 0,
            reserve_bytes,
            reserved_end: 0,
            prepared_bytes,
            ends_at: 0,
            prepares_next: options.prepare_next,
            prepared: None,
            handed: Sequence::NONE,
            time_ms,
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

    /// True when the pending frames belong into the next segment.
    pub(super) fn is_full(&self) -> bool {
        !self.is_empty() && self.data_end + self.frames.len() as u64 > self.ends_at
    }

    /// Continues this segment, because the next one could not be created.
    pub(super) fn go_on(&mut self) {
        self.ends_at = self.data_end + (self.segment_bytes_max / 16).min(TRY_AGAIN_BYTES_MAX);
    }

    /// Begins a segment. If that fails, nothing has changed, and the previous one can continue.
    pub(super) fn begin_segment(
        &mut self,
        first: Sequence,
        durable: Sequence,
        beginning: Beginning,
    ) -> Result<OpenSegment, Failure> {
        let name = segment::file_name(first);
        let is_break = beginning == Beginning::Restart;
        let WriterIdentity { directory, epoch, epoch_id, previous_id } = self.identity;
        let header = SegmentHeader {
            id: directory,
            first,
            durable,
            epoch,
            epoch_id,
            previous_id,
            time_ms: self.time_ms,
            layout: Layout::Three,
            is_break,
        };
        if beginning != Beginning::Next {
            self.drop_prepared();
        }
        let (file, reserved_end) = match self.prepared.take() {
            Some(prepared) => self.make_of(prepared, &name, &header).inspect_err(|_| {
                let _ = self.storage.remove(&segment::prepared_name(epoch));
            })?,
            None => self.make(&name, &header, beginning == Beginning::Next).inspect_err(|_| {
                // If this fails too, the file stays until the next attempt or the next start.
                let _ = self.storage.remove(&segment::temporary_name(epoch));
            })?,
        };
        if beginning != Beginning::Next {
            self.give_back();
        }
        let (name, file): (Arc<str>, Arc<dyn StorageFile>) = (name.into(), file.into());
        self.data_end = segment::HEADER_LEN;
        self.file_end = segment::HEADER_LEN;
        self.reserved_end = reserved_end;
        self.ends_at = self.segment_bytes_max;
        self.handed = first.previous();
        self.file = Some((name.clone(), file.clone()));
        Ok(OpenSegment { first, name, file, data_end: self.data_end })
    }

    /// Creates a segment, and returns the end of its reserved space.
    fn make(
        &self,
        name: &str,
        header: &SegmentHeader,
        needs_reserve: bool,
    ) -> Result<(Box<dyn StorageFile>, u64), Failure> {
        let failed = |operation| move |error: io::Error| Failure::io(operation, name, &error);
        let temporary = segment::temporary_name(self.identity.epoch);
        let file = create_anew(&*self.storage, &temporary).map_err(|(operation, error)| failed(operation)(error))?;
        write_all_at(&*file, &header.encode(), 0).map_err(failed(Operation::Write))?;
        let reserved_end = match self.reserve(&*file, segment::HEADER_LEN, segment::HEADER_LEN) {
            Err(error) if needs_reserve => return Err(failed(Operation::Reserve)(error)),
            reserved => reserved.unwrap_or(segment::HEADER_LEN),
        };
        self.give_name(&temporary, name)?;
        Ok((file, reserved_end))
    }

    /// Makes a segment of a file that was prepared.
    fn make_of(
        &self,
        prepared: PreparedFile,
        name: &str,
        header: &SegmentHeader,
    ) -> Result<(Box<dyn StorageFile>, u64), Failure> {
        let PreparedFile { file, reserved_end } = prepared;
        write_all_at(&*file, &header.encode(), 0).map_err(|error| Failure::io(Operation::Write, name, &error))?;
        self.give_name(&segment::prepared_name(self.identity.epoch), name)?;
        Ok((file, reserved_end))
    }

    /// Makes a complete file a segment. IMPORTANT: last. From here on the file counts.
    ///
    /// It never replaces a file. If the fence is raised between the check and the rename, the next writer either has a
    /// segment of that name, or one before it, and then this one does not count.
    fn give_name(&self, temporary: &str, name: &str) -> Result<(), Failure> {
        self.right.check()?;
        self.storage.rename_new(temporary, name).map_err(|error| Failure::io(Operation::Rename, name, &error))
    }

    /// What to make for [`SegmentWriter::set_prepared`], if it is missing.
    pub(super) fn preparation(&self) -> Option<Preparation> {
        let is_missing = self.prepares_next && self.prepared.is_none();
        // Without a reserve on the disk, none is taken ahead of it.
        let reserve_bytes = if self.reserve_bytes == 0 { 0 } else { self.prepared_bytes };
        is_missing.then(|| Preparation {
            storage: self.storage.clone(),
            right: self.right.clone(),
            name: segment::prepared_name(self.identity.epoch),
            reserve_bytes,
        })
    }

    pub(super) fn set_prepared(&mut self, prepared: PreparedFile) {
        self.prepared = Some(prepared);
        if !self.prepares_next {
            self.drop_prepared();
        }
    }

    /// Frees the space of the next segment: the current one needs it, or there will be none.
    fn drop_prepared(&mut self) {
        if self.prepared.take().is_some() {
            // If that fails, the file stays until the next one is prepared or the next start.
            let _ = self.storage.remove(&segment::prepared_name(self.identity.epoch));
        }
    }

    /// True when enough space is reserved after the data.
    pub(super) fn has_reserve(&self) -> bool {
        self.reserve_bytes == 0 || self.reserved_end >= self.data_end + self.reserve_bytes
    }

    /// Reserves more space after the data. Returns true when there is enough.
    pub(super) fn extend_reserve(&mut self) -> bool {
        self.reserve_after(self.data_end);
        self.has_reserve()
    }

    /// Reserves space for data after `data_end`, if there is some.
    fn reserve_after(&mut self, data_end: u64) {
        let (_, file) = self.file.clone().expect("a segment was begun");
        let mut reserved = self.reserve(&*file, self.reserved_end, data_end);
        if reserved.is_err() && self.prepared.is_some() {
            self.drop_prepared();
            reserved = self.reserve(&*file, self.reserved_end, data_end);
        }
        if let Ok(end) = reserved {
            self.reserved_end = end;
        }
    }

    /// Reserves space from `from` on for data after `data_end`, and returns its end. Fails only for lack of space:
    /// other errors will show when data is written.
    fn reserve(&self, file: &dyn StorageFile, from: u64, data_end: u64) -> io::Result<u64> {
        if self.reserve_bytes == 0 {
            return Ok(from);
        }
        // A large step, so that it is rare. If that is too much, a small one rather than none: otherwise every write
        // that uses up the rest of the disk would ask again.
        let reserve = |step: u64| {
            let end = data_end + self.reserve_bytes + step;
            match file.reserve(from, end - from) {
                Err(error) if is_want_of_space(&error) => Err(error),
                _ => Ok(end),
            }
        };
        reserve(self.reserve_bytes * 2).or_else(|_| reserve(self.reserve_bytes / 8))
    }

    /// Frees the reserved space of a segment that ends without a successor. If that fails, the space is lost until the
    /// segment is removed; the data is not affected. Where a successor exists, the sync thread does it: a truncation
    /// waits for a sync of the same file, and callers of this one wait for it.
    fn give_back(&self) {
        if let Some((_, file)) = &self.file
            && self.reserved_end > self.data_end
        {
            let _ = file.set_len(self.data_end);
        }
    }

    /// Writes `frames`, the last of which is `last`.
    pub(super) fn write_frames(&mut self, last: Sequence) -> Result<(), Failure> {
        let data_end = self.data_end + self.frames.len() as u64;
        if data_end > self.reserved_end {
            self.reserve_after(data_end);
        }
        let (name, file) = self.file.as_ref().expect("a segment was begun");
        let failed = |error| Failure::io(Operation::Write, name, &error);
        write_all_at(&**file, &self.frames, self.data_end).map_err(failed)?;
        self.data_end = data_end;
        self.reserved_end = self.reserved_end.max(data_end);
        if self.data_end > self.file_end {
            self.file_end = self.data_end;
            if self.zero_ahead {
                // Page by page: a large write may become one large page of the cache, and then a sync of a few bytes
                // writes all of it. Measured: 24 kB of disk for an operation of 100 bytes.
                let mut end = self.file_end + self.zero_ahead_bytes as u64;
                if self.reserve_bytes > 0 {
                    end = end.min(self.reserved_end);
                }
                while self.file_end < end {
                    let len = (ZEROS.len() as u64 - self.file_end % ZEROS.len() as u64).min(end - self.file_end);
                    match write_all_at(&**file, &ZEROS[..len as usize], self.file_end) {
                        // The data is written; missing zeros cost time only.
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

    /// Truncates the zeros that were written ahead and frees the reserved space, for good.
    pub(super) fn trim(&mut self) -> Result<(), Failure> {
        (self.reserve_bytes, self.prepares_next) = (0, false);
        self.drop_prepared();
        self.right.check()?;
        let (name, file) = self.file.as_ref().expect("a segment was begun");
        file.set_len(self.data_end).map_err(|error| Failure::io(Operation::Truncate, name, &error))?;
        file.sync().map_err(|error| Failure::io(Operation::Sync, name, &error))?;
        (self.file_end, self.reserved_end) = (self.data_end, self.data_end);
        Ok(())
    }
}
