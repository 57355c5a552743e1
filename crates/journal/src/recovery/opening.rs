//! Turns a directory that was read into a log that can be written: the only part of recovery that changes
//! anything.

use super::finding::RecoveryError;
use super::history::History;
use super::reading::{End, FoundSegment, Recovery, at, open_segment};
use crate::failure::Operation;
use crate::file_log::{FileLog, FileLogOptions, Resumed, StoredSegment};
use crate::files::DirectoryId;
use crate::files::segment::{self, Next};
use crate::sequence::Sequence;
use crate::storage::{StorageFile, read_full_at, write_all_at};

const COPY_BYTES: usize = 1024 * 1024;

impl Recovery {
    /// Cuts the torn tail, makes what is left durable, and begins a new epoch, with a segment for what comes next. Batches that
    /// were not asked for yet are read, and checked, first.
    pub fn into_log(mut self, options: FileLogOptions) -> Result<FileLog, RecoveryError> {
        while self.next_batch()?.is_some() {}
        let reached = self.reached();
        let end = self.end.expect("all batches are read");
        // IMPORTANT: what does not count is gone for good before a new segment can be taken for its continuation.
        self.remove_dropped(end)?;
        self.make_durable(reached)?;
        let id = match self.id {
            Some(id) => id,
            None => DirectoryId::random().map_err(at(Operation::Read, "the system's random numbers", 0))?,
        };
        let stored = self.segments.iter().map(|segment| StoredSegment { first: segment.first, bytes: segment.bytes });
        let resumed = Resumed {
            id,
            epoch: self.epoch.next(),
            reached,
            follows_gap: self.last_stored()?.is_some_and(|last| last < reached),
            segments: stored.collect(),
        };
        Ok(FileLog::begin(self.storage.clone(), options, &self.marks, resumed)?)
    }

    /// The last batch in the segments that stay; `None` if none does.
    fn last_stored(&self) -> Result<Option<Sequence>, RecoveryError> {
        let Some(last) = self.segments.last() else { return Ok(None) };
        if self.segments.len() > self.start {
            return Ok(Some(self.expected.previous()));
        }
        // All that stay come before the snapshot and were not read. Rare: segments that a snapshot replaces go with it.
        let (mut reader, header) = open_segment(&*self.storage, &last.name, last.first)?;
        let mut next = last.first;
        while header.is_ok() && matches!(reader.next(next).map_err(at(Operation::Read, &last.name, 0))?, Next::Frame(_))
        {
            next = next.next();
        }
        Ok(Some(next.previous()))
    }

    /// Removes segments behind the end, newest first, and files that were never finished. Cuts the last segment.
    fn remove_dropped(&mut self, end: End) -> Result<(), RecoveryError> {
        // A segment without a batch goes as well: the new one may need its name.
        let kept = if end.offset > segment::HEADER_LEN { end.position + 1 } else { end.position };
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

    /// Makes durable what is not proven to be.
    ///
    /// IMPORTANT: a sync is not enough. If the process before this one saw a sync fail, the system may still show us
    /// what was lost and call it synced. Only what is written anew is sure to be synced.
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
