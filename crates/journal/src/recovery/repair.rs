//! Finds what must be cut off a damaged journal so that the rest can be read, keeps a copy of it, and cuts it.
//!
//! A directory is cut only where a segment is damaged and the batches before the damage are complete. A missing segment
//! and a damaged snapshot are errors: no cut mends them.

use super::finding::DirectoryError;
use super::history::{History, RecoveryError};
use super::reading::{FoundSegment, Recovery, at, open_segment};
use crate::failure::Operation;
use crate::file_log::FileLogOptions;
use crate::files::checksums::Checksums;
use crate::files::frame::{self, FrameHeader, Layout};
use crate::files::marks::{self, LoweredMarks};
use crate::files::segment;
use crate::log::Log;
use crate::sequence::Sequence;
use crate::snapshot::SnapshotName;
use crate::storage::{Storage, StorageFile, read_full_at, write_all_at};
use std::sync::Arc;

const COPY_BYTES: usize = 1024 * 1024;

/// What a repair cuts, before it is cut.
pub struct Repair {
    recovery: Recovery,
    /// What is wrong where the cut is made.
    pub detail: String,
    /// Why the first batch that is cut counts as durable; `None` for a torn tail, of which nothing was durable.
    pub evidence: Option<String>,
    pub pieces: Vec<Piece>,
}

/// A part of a file that is cut.
pub struct Piece {
    pub file: String,
    /// Where the cut begins; 0 for a whole file.
    pub offset: u64,
    /// Without zeros at the end, which may have been written ahead.
    pub bytes: u64,
    /// The batches in it that can still be read.
    pub readable: u64,
}

impl Repair {
    /// Reads and checks everything. Returns `None` if there is nothing to cut.
    pub fn examine(storage: Arc<dyn Storage>) -> Result<Option<Repair>, RecoveryError> {
        refuse_links(&*storage)?;
        let mut recovery = Recovery::open_to_repair(storage)?;
        while recovery.next_part()?.is_some() {}
        while recovery.next_batch()?.is_some() {}
        let end = recovery.end.expect("all batches are read");
        let mut pieces = Vec::new();
        for (position, segment) in recovery.segments.iter().enumerate().skip(end.position) {
            let offset = if position == end.position { end.offset } else { 0 };
            pieces.extend(piece(&*recovery.storage, segment, offset, recovery.expected)?);
        }
        let damage = recovery.damage.take();
        if damage.is_none() && pieces.is_empty() {
            return Ok(None);
        }
        let (detail, evidence) = match damage {
            Some(damage) => (damage.detail, Some(damage.evidence)),
            None => ("a torn tail".to_owned(), None),
        };
        Ok(Some(Repair { recovery, detail, evidence, pieces }))
    }

    /// The last batch that stays.
    pub fn reached(&self) -> Sequence {
        self.recovery.reached()
    }

    /// The batches that can be read behind the damage, and are lost with it.
    pub fn readable(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.readable).sum()
    }

    /// Copies what is cut, cuts it, and closes the journal behind the last batch that stays. Returns the names of the
    /// copies. The caller holds the directory's lock.
    pub fn cut(mut self, options: FileLogOptions) -> Result<Vec<String>, RecoveryError> {
        let mut copies = Vec::new();
        let prepared = self.keep_copies(&mut copies).map_err(RecoveryError::from).and_then(|()| self.lower_marks());
        let lowered = prepared.inspect_err(|_| {
            // Nothing was cut. On a full disk, what there is of them would be in the way.
            for copy in &copies {
                let _ = self.recovery.storage.remove(copy);
            }
        })?;
        // IMPORTANT: first. Without what is cut, the old marks would say that batches are missing, for which no repair
        // is to blame. With the new ones, what is still there is damaged, or a torn tail, and can be cut again.
        if let Some(lowered) = lowered {
            self.recovery.marks = lowered.publish(&*self.recovery.storage)?;
        }
        let log = self.recovery.into_log(options)?;
        log.close()?;
        Ok(copies)
    }

    /// Prepares marks that do not call durable what is cut; `None` if the marks do not.
    fn lower_marks(&self) -> Result<Option<LoweredMarks>, RecoveryError> {
        let reached = self.reached();
        let too_high = self.recovery.marks.mark().filter(|mark| mark.durable > reached);
        Ok(too_high.map(|mark| LoweredMarks::prepare(&*self.recovery.storage, mark, reached)).transpose()?)
    }

    /// Copies all pieces, and `MARKS`, which says how far the journal was durable. Adds the names of the copies to
    /// `copies`, also of those that were made before one failed.
    fn keep_copies(&self, copies: &mut Vec<String>) -> Result<(), DirectoryError> {
        let storage = &*self.recovery.storage;
        let list = at(Operation::List, "the data directory", 0);
        let names = storage.list().map_err(list)?;
        let is_taken = |number: &u64| names.iter().any(|name| name.ends_with(&format!(".cut-{number}")));
        let number = (1..).find(|number| !is_taken(number)).expect("numbers do not end");
        let marks = names.iter().any(|name| name == marks::FILE_NAME).then_some((marks::FILE_NAME, 0));
        let pieces = self.pieces.iter().map(|piece| (&*piece.file, piece.offset));
        for (file, offset) in pieces.chain(marks) {
            let from = storage.open(file).map_err(at(Operation::Open, file, 0))?;
            let name = format!("{file}.from-{offset}.cut-{number}");
            let to = storage.create(&name).map_err(at(Operation::Create, &name, 0))?;
            copies.push(name.clone());
            copy((&*from, file, offset), (&*to, &name))?;
        }
        self.recovery.sync_directory()
    }
}

/// An error if a file of the journal is not a file but leads to one. A server may use it; a repair would cut a file
/// elsewhere.
fn refuse_links(storage: &dyn Storage) -> Result<(), DirectoryError> {
    let names = storage.list().map_err(at(Operation::List, "the data directory", 0))?;
    let is_of_the_journal = |name: &String| {
        name == marks::FILE_NAME || segment::parse_file_name(name).is_some() || SnapshotName::parse(name).is_some()
    };
    for file in names.into_iter().filter(is_of_the_journal) {
        if !storage.is_regular(&file).map_err(at(Operation::Open, &file, 0))? {
            return Err(DirectoryError::NotRegular { file });
        }
    }
    Ok(())
}

/// What a segment has from an offset on; `None` if there are only zeros that were written ahead.
fn piece(
    storage: &dyn Storage,
    segment: &FoundSegment,
    offset: u64,
    lost: Sequence,
) -> Result<Option<Piece>, DirectoryError> {
    let (reader, _) = open_segment(storage, &segment.name, segment.first)?;
    let mut bytes = vec![0; (reader.len().saturating_sub(offset)) as usize];
    let read = read_full_at(reader.file(), &mut bytes, offset).map_err(at(Operation::Read, &segment.name, offset))?;
    bytes.truncate(read);
    let data_len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let layouts = segment.header.map_or(vec![Layout::Three, Layout::Two], |header| vec![header.layout]);
    let mut whole = 0;
    for layout in layouts {
        let found = readable(reader.file(), (&bytes, offset), layout, lost);
        whole = whole.max(found.map_err(at(Operation::Read, &segment.name, offset))?);
    }
    let (file, readable) = (segment.name.clone(), whole);
    Ok((data_len > 0).then_some(Piece { file, offset, bytes: data_len as u64, readable }))
}

/// Counts the whole batches from `lost` on, wherever they begin, in the bytes that a file has from an offset on.
fn readable(
    file: &dyn StorageFile,
    (bytes, offset): (&[u8], u64),
    layout: Layout,
    lost: Sequence,
) -> std::io::Result<u64> {
    let header_len = layout.header_len();
    let mut checksums = Checksums::new(file, offset, offset + bytes.len() as u64);
    let (mut count, mut start, mut next) = (0, 0, lost);
    while start + header_len <= bytes.len() {
        let header_bytes = &bytes[start..start + header_len];
        let header = FrameHeader::decode(layout, header_bytes);
        let end = start + header_len + header.length as usize;
        let sequence_max = lost.0.saturating_add((start / header_len) as u64 + bytes.len() as u64);
        let is_plausible = header.place.sequence >= next && header.place.sequence.0 <= sequence_max;
        let payload_offset = offset + (start + header_len) as u64;
        if is_plausible
            && end <= bytes.len()
            && frame::matches(header_bytes, checksums.of(payload_offset, header.length)?)
        {
            (count, start, next) = (count + 1, end, header.place.sequence.next());
        } else {
            start += 1;
        }
    }
    Ok(count)
}

/// Copies a file from an offset on into a new file, and syncs that. Both come with their names.
fn copy(
    (from, file, offset): (&dyn StorageFile, &str, u64),
    (to, name): (&dyn StorageFile, &str),
) -> Result<(), DirectoryError> {
    let mut chunk = vec![0; COPY_BYTES];
    let mut copied = 0;
    loop {
        let read = read_full_at(from, &mut chunk, offset + copied).map_err(at(Operation::Read, file, offset))?;
        if read == 0 {
            break;
        }
        write_all_at(to, &chunk[..read], copied).map_err(at(Operation::Write, name, copied))?;
        copied += read as u64;
    }
    to.sync().map_err(at(Operation::Sync, name, 0))
}
