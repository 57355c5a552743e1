//! Turns a directory that was read into a log that can be written: the only part of recovery that changes
//! anything.

use super::finding::RecoveryError;
use super::history::History;
use super::reading::{End, FoundSegment, Recovery, at, open_segment};
use crate::directory_follower::DirectoryFollower;
use crate::failure::Operation;
use crate::file_log::{FileLog, FileLogOptions, Resumed, StoredSegment};
use crate::files::segment::Next;
use crate::files::{DirectoryId, EpochId, WriterIdentity};
use crate::sequence::Sequence;
use crate::storage::{StorageFile, read_full_at, write_all_at};

const COPY_BYTES: usize = 1024 * 1024;

impl Recovery {
    /// Reads on in a directory that another process may be writing, behind the last batch. Changes nothing.
    pub fn into_follower(mut self) -> Result<DirectoryFollower, RecoveryError> {
        while self.next_batch()?.is_some() {}
        Ok(DirectoryFollower::new(self.storage.clone(), self.reached(), self.read_epoch))
    }

    /// Truncates the torn tail, makes the rest durable, and begins a new epoch, with a new segment. Batches that were
    /// not read yet are read and checked first.
    pub fn into_log(mut self, options: FileLogOptions) -> Result<FileLog, RecoveryError> {
        while self.next_batch()?.is_some() {}
        let reached = self.reached();
        let end = self.end.expect("all batches are read");
        // IMPORTANT: remove dropped data for good before a new segment could be mistaken for its continuation.
        self.remove_dropped(end)?;
        self.make_durable(reached)?;
        let no_random = |error| at(Operation::Read, "the system's random numbers", 0)(error);
        let directory = match self.id {
            Some(id) => id,
            None => DirectoryId::random().map_err(no_random)?,
        };
        let (epoch, previous_id) = self.epochs.newest();
        let epoch_id = EpochId::random().map_err(no_random)?;
        let stored = self.segments.iter().map(|segment| StoredSegment { first: segment.first, bytes: segment.bytes });
        let resumed = Resumed {
            identity: WriterIdentity { directory, epoch: epoch.next(), epoch_id, previous_id },
            reached,
            time_ms: self.time_ms,
            follows_gap: self.last_stored()?.is_some_and(|last| last < reached),
            segments: stored.collect(),
        };
        Ok(FileLog::begin(self.storage.clone(), options, &self.marks, resumed)?)
    }

    /// The last batch in the remaining segments, if any.
    fn last_stored(&self) -> Result<Option<Sequence>, RecoveryError> {
        let Some(last) = self.segments.last() else { return Ok(None) };
        if self.segments.len() > self.start {
            return Ok(Some(self.expected.previous()));
        }
        // All remaining segments come before the snapshot and were not read. Rare: a snapshot replaces such segments.
        let (mut reader, header) = open_segment(&*self.storage, &last.name, last.first)?;
        let mut next = last.first;
        while header.is_ok() && matches!(reader.next(next).map_err(at(Operation::Read, &last.name, 0))?, Next::Frame(_))
        {
            next = next.next();
        }
        Ok(Some(next.previous()))
    }

    /// Removes segments after the end, newest first, and unfinished files. Truncates the last segment.
    fn remove_dropped(&mut self, end: End) -> Result<(), RecoveryError> {
        // A segment without a batch is removed too: the new one may need its name.
        let is_empty = self.segments.get(end.position).is_none_or(|segment| segment.is_empty_at(end.offset));
        let kept = if is_empty { end.position } else { end.position + 1 };
        let dropped = self.segments.split_off(kept.min(self.segments.len()));
        let names: Vec<String> = dropped.into_iter().rev().map(|segment| segment.name).collect();
        for name in names.iter().chain(&self.temporaries) {
            self.storage.remove(name).map_err(at(Operation::Remove, name, 0))?;
        }
        self.storage.sync_directory().map_err(at(Operation::SyncDirectory, "the data directory", 0))?;
        if let Some(segment) = self.segments.get_mut(end.position) {
            let file = self.storage.open(&segment.name).map_err(at(Operation::Open, &segment.name, 0))?;
            file.set_len(end.offset).map_err(at(Operation::Truncate, &segment.name, end.offset))?;
            file.sync().map_err(at(Operation::Sync, &segment.name, end.offset))?;
            segment.bytes = end.offset;
        }
        Ok(())
    }

    /// Makes durable what is not proven to be durable.
    ///
    /// IMPORTANT: a sync is not enough. If the previous process saw a sync fail, the system may still show the lost
    /// data and call it synced. Only data that is written again is sure to be synced.
    fn make_durable(&self, reached: Sequence) -> Result<(), RecoveryError> {
        let lasts = self.segments.iter().skip(1).map(|following| following.first.previous()).chain([reached]);
        for (segment, last) in self.segments.iter().zip(lasts).skip(self.start) {
            if last > self.proven {
                let file = self.storage.open(&segment.name).map_err(at(Operation::Open, &segment.name, 0))?;
                write_again(&*file, segment)?;
                file.sync().map_err(at(Operation::Sync, &segment.name, 0))?;
            }
        }
        Ok(())
    }
}

fn write_again(file: &dyn StorageFile, segment: &FoundSegment) -> Result<(), RecoveryError> {
    let mut chunk = vec![0; COPY_BYTES];
    let mut offset = 0;
    while offset < segment.bytes {
        let wanted = chunk.len().min((segment.bytes - offset) as usize);
        let read =
            read_full_at(file, &mut chunk[..wanted], offset).map_err(at(Operation::Read, &segment.name, offset))?;
        if read == 0 {
            return Err(at(Operation::Read, &segment.name, offset)(std::io::ErrorKind::UnexpectedEof.into()));
        }
        write_all_at(file, &chunk[..read], offset).map_err(at(Operation::Write, &segment.name, offset))?;
        offset += read as u64;
    }
    Ok(())
}
