//! Turns a directory that was read into a log that can be written: the only part of recovery that changes
//! anything.

use std::io::ErrorKind;

use super::finding::DirectoryError;
use super::history::{History, RecoveryError};
use super::reading::{End, FoundSegment, Recovery, at, open_segment};
use crate::epoch::Epoch;
use crate::failure::Operation;
use crate::fence::Fence;
use crate::file_log::{FileLog, FileLogOptions, Resumed, StoredSegment};
use crate::files::segment::{self, Next};
use crate::files::{DirectoryId, EpochId, WriterIdentity};
use crate::sequence::Sequence;
use crate::storage::{Storage, StorageFile, read_full_at, write_all_at};

const COPY_BYTES: usize = 1024 * 1024;

/// How data is written again that is not proven to be durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rewriting {
    /// The writer before has ended: into the same file.
    InPlace,
    /// The writer before may still run, and have the file open: into a copy that replaces it.
    ByCopy,
}

impl Recovery {
    /// Truncates the torn tail, makes the rest durable, and begins a new epoch, with a new segment. Batches that were
    /// not read yet are read and checked first.
    pub fn into_log(mut self, options: FileLogOptions) -> Result<FileLog, RecoveryError> {
        while self.next_batch()?.is_some() {}
        let fence = open_fence(&*self.storage)?;
        let epoch = self.epochs.raise(&fence)?;
        self.begin(options, fence, epoch, Rewriting::InPlace)
    }

    /// As [`Recovery::into_log`], of a directory whose writer may still run: for this epoch the fence was raised, and
    /// everything was read since.
    pub(crate) fn take_over(
        self,
        options: FileLogOptions,
        fence: Fence,
        epoch: Epoch,
    ) -> Result<FileLog, RecoveryError> {
        self.begin(options, fence, epoch, Rewriting::ByCopy)
    }

    /// Begins the epoch, behind the last batch.
    fn begin(
        mut self,
        options: FileLogOptions,
        fence: Fence,
        epoch: Epoch,
        rewriting: Rewriting,
    ) -> Result<FileLog, RecoveryError> {
        let reached = self.reached();
        let end = self.end.expect("all batches are read");
        // IMPORTANT: remove dropped data for good before a new segment could be mistaken for its continuation.
        self.remove_dropped(end, rewriting)?;
        match rewriting {
            Rewriting::InPlace => {
                self.truncate(end)?;
                self.make_durable(reached)?;
            }
            Rewriting::ByCopy => self.replace_by_copies(end, reached, epoch)?,
        }
        let no_random = |error| at(Operation::Read, "the system's random numbers", 0)(error);
        let directory = match self.id {
            Some(id) => id,
            None => DirectoryId::random().map_err(no_random)?,
        };
        let (newest, newest_id) = self.epochs.newest();
        // An epoch that no file has was begun in between, and given up.
        let previous_id = if newest.checked_next() == Some(epoch) { newest_id } else { EpochId::NONE };
        let epoch_id = EpochId::random().map_err(no_random)?;
        let stored = self.segments.iter().map(|segment| StoredSegment { first: segment.first, bytes: segment.bytes });
        let resumed = Resumed {
            fence,
            identity: WriterIdentity { directory, epoch, epoch_id, previous_id },
            reached,
            time_ms: self.time_ms,
            follows_gap: self.last_stored()?.is_some_and(|last| last < reached),
            segments: stored.collect(),
            takes_over: rewriting == Rewriting::ByCopy,
        };
        Ok(FileLog::begin(self.storage.clone(), options, &self.marks, resumed)?)
    }

    /// The last batch in the remaining segments, if any.
    fn last_stored(&self) -> Result<Option<Sequence>, DirectoryError> {
        let Some(last) = self.segments.last() else { return Ok(None) };
        if self.last_stored.is_some() {
            return Ok(self.last_stored);
        }
        if self.segments.len() > self.start {
            return Ok(Some(self.expected.previous()));
        }
        // All remaining segments come before the snapshot and were not read. Rare: a snapshot replaces such segments.
        let (mut reader, header) = match open_segment(&*self.storage, &last.name, last.first) {
            // The writer before has just forgotten it: what follows needs the snapshot.
            Err(DirectoryError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(Some(Sequence::NONE));
            }
            opened => opened?,
        };
        let mut next = last.first;
        while header.is_ok() && matches!(reader.next(next).map_err(at(Operation::Read, &last.name, 0))?, Next::Frame(_))
        {
            next = next.next();
        }
        Ok(Some(next.previous()))
    }

    /// Removes segments after the end, newest first, and files that are unfinished or were left behind.
    ///
    /// IMPORTANT: while the writer before may still run, what it has left behind stays until a start, except for the
    /// segment whose name is needed now. The writer may be about to remove such a file, and would then remove a file of
    /// this writer that has got the name. While the file is there, no other can get it.
    fn remove_dropped(&mut self, end: End, rewriting: Rewriting) -> Result<(), DirectoryError> {
        // A segment without a batch is removed too: the new one may need its name.
        let is_empty = self.segments.get(end.position).is_none_or(|segment| segment.is_empty_at(end.offset));
        let kept = if is_empty { end.position } else { end.position + 1 };
        let mut dropped = self.segments.split_off(kept.min(self.segments.len()));
        let mut left_behind = self.left_behind.as_slice();
        if rewriting == Rewriting::ByCopy {
            dropped.retain(|segment| segment.first <= self.expected);
            left_behind = &[];
        }
        let names: Vec<String> = dropped.into_iter().rev().map(|segment| segment.name).collect();
        for name in &names {
            self.remove(name)?;
            // IMPORTANT: one by one. After a power failure that kept only a later one, no cut would mend the journal.
            if self.is_repair() {
                self.sync_directory()?;
            }
        }
        for name in left_behind.iter().chain(&self.temporaries) {
            self.remove(name)?;
        }
        self.sync_directory()
    }

    fn remove(&self, name: &str) -> Result<(), DirectoryError> {
        match self.storage.remove(name) {
            // The writer before may have removed it.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(at(Operation::Remove, name, 0)),
        }
    }

    pub(super) fn sync_directory(&self) -> Result<(), DirectoryError> {
        self.storage.sync_directory().map_err(at(Operation::SyncDirectory, "the data directory", 0))
    }

    /// Truncates the last segment.
    fn truncate(&mut self, end: End) -> Result<(), DirectoryError> {
        if let Some(segment) = self.segments.get_mut(end.position) {
            let file = self.storage.open(&segment.name).map_err(at(Operation::Open, &segment.name, 0))?;
            file.set_len(end.offset).map_err(at(Operation::Truncate, &segment.name, end.offset))?;
            file.sync().map_err(at(Operation::Sync, &segment.name, end.offset))?;
            segment.bytes = end.offset;
        }
        Ok(())
    }

    /// The segments from `start` on that are not proven to be durable.
    ///
    /// IMPORTANT: for them a sync is not enough. If the previous process saw a sync fail, the system may still show the
    /// lost data and call it synced. Only data that is written again is sure to be synced.
    fn unproven(&self, start: usize, reached: Sequence) -> impl Iterator<Item = &FoundSegment> {
        let lasts = self.segments.iter().skip(1).map(|following| following.first.previous()).chain([reached]);
        self.segments.iter().zip(lasts).skip(start).filter(|(_, last)| *last > self.proven).map(|(segment, _)| segment)
    }

    /// Makes durable what is not proven to be durable.
    fn make_durable(&self, reached: Sequence) -> Result<(), DirectoryError> {
        for segment in self.unproven(self.start, reached) {
            let file = self.storage.open(&segment.name).map_err(at(Operation::Open, &segment.name, 0))?;
            check_copied(segment, copy(&*file, &*file, segment)?)?;
            file.sync().map_err(at(Operation::Sync, &segment.name, 0))?;
        }
        Ok(())
    }

    /// Makes durable what is not proven to be durable, without the torn tail, in files that the writer before does not
    /// have open. The segment that it was writing is replaced in any case, unless it has closed the log.
    fn replace_by_copies(&mut self, end: End, reached: Sequence, epoch: Epoch) -> Result<(), DirectoryError> {
        if let Some(segment) = self.segments.get_mut(end.position) {
            segment.bytes = end.offset;
        }
        let is_closed = self.marks.mark().is_some_and(|mark| mark.is_closed && mark.durable >= reached);
        let written = if is_closed { None } else { self.segments.get(end.position).map(|segment| segment.first) };
        let temporary = segment::copy_name(epoch);
        let mut has_replaced = false;
        let unproven: Vec<Sequence> = self.unproven(0, reached).map(|segment| segment.first).collect();
        for (position, segment) in self.segments.iter().enumerate() {
            if !unproven.contains(&segment.first) && written != Some(segment.first) {
                continue;
            }
            let from = match self.storage.open(&segment.name) {
                // The writer before has just forgotten it: a snapshot replaces it.
                Err(error) if error.kind() == ErrorKind::NotFound && position != end.position => continue,
                opened => opened.map_err(at(Operation::Open, &segment.name, 0))?,
            };
            let to = self.storage.create(&temporary).map_err(at(Operation::Create, &temporary, 0))?;
            let copied = copy(&*from, &*to, segment)?;
            // The end of the batches of an earlier segment is not known: the writer before may have cut zeros off.
            if position == end.position {
                check_copied(segment, copied)?;
            }
            to.sync().map_err(at(Operation::Sync, &temporary, 0))?;
            self.storage.rename(&temporary, &segment.name).map_err(at(Operation::Rename, &temporary, 0))?;
            has_replaced = true;
        }
        if has_replaced { self.sync_directory() } else { Ok(()) }
    }
}

/// Opens the fence of a directory.
pub(crate) fn open_fence(storage: &dyn Storage) -> Result<Fence, DirectoryError> {
    storage.fence().map_err(|error| match error.kind() {
        ErrorKind::InvalidData => DirectoryError::Damaged {
            file: FENCE.to_owned(),
            offset: 0,
            detail: format!("{error}; while no server uses the directory, check --repair makes a new one"),
        },
        _ => at(Operation::Map, FENCE, 0)(error),
    })
}

const FENCE: &str = "FENCE";

/// Copies the batches of a segment, possibly to where they are. Returns how many bytes there were.
fn copy(from: &dyn StorageFile, to: &dyn StorageFile, segment: &FoundSegment) -> Result<u64, DirectoryError> {
    let mut chunk = vec![0; COPY_BYTES];
    let mut offset = 0;
    while offset < segment.bytes {
        let wanted = chunk.len().min((segment.bytes - offset) as usize);
        let read =
            read_full_at(from, &mut chunk[..wanted], offset).map_err(at(Operation::Read, &segment.name, offset))?;
        if read == 0 {
            break;
        }
        write_all_at(to, &chunk[..read], offset).map_err(at(Operation::Write, &segment.name, offset))?;
        offset += read as u64;
    }
    Ok(offset)
}

fn check_copied(segment: &FoundSegment, copied: u64) -> Result<(), DirectoryError> {
    match copied == segment.bytes {
        true => Ok(()),
        false => Err(at(Operation::Read, &segment.name, copied)(ErrorKind::UnexpectedEof.into())),
    }
}
