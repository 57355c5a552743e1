//! Finds what must be cut off a damaged journal so that the rest can be read, keeps a copy of it, and cuts it.
//!
//! A directory is cut only where a segment is damaged and the batches before the damage are complete. A missing segment
//! and a damaged snapshot are errors: no cut mends them.

use super::finding::DirectoryError;
use super::history::{History, RecoveryError};
use super::reading::{FoundSegment, Recovery, at, open_segment};
use crate::failure::Operation;
use crate::file_log::FileLogOptions;
use crate::files::frame::{self, FrameHeader, Layout};
use crate::files::marks;
use crate::log::Log;
use crate::sequence::Sequence;
use crate::storage::{Storage, read_full_at, write_all_at};
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
    pub fn cut(self, options: FileLogOptions) -> Result<Vec<String>, RecoveryError> {
        let copies = self.keep_copies()?;
        let log = self.recovery.into_log(options)?;
        log.close()?;
        Ok(copies)
    }

    /// Copies all pieces, and `MARKS`, which says how far the journal was durable.
    fn keep_copies(&self) -> Result<Vec<String>, DirectoryError> {
        let storage = &*self.recovery.storage;
        let list = at(Operation::List, "the data directory", 0);
        let names = storage.list().map_err(list)?;
        let is_taken = |number: &u64| names.iter().any(|name| name.ends_with(&format!(".cut-{number}")));
        let number = (1..).find(|number| !is_taken(number)).expect("numbers do not end");
        let marks = names.iter().any(|name| name == marks::FILE_NAME).then_some((marks::FILE_NAME, 0));
        let pieces = self.pieces.iter().map(|piece| (&*piece.file, piece.offset));
        let mut copies = Vec::new();
        for (file, offset) in pieces.chain(marks) {
            let name = format!("{file}.from-{offset}.cut-{number}");
            copy(storage, file, offset, &name)?;
            copies.push(name);
        }
        storage.sync_directory().map_err(at(Operation::SyncDirectory, "the data directory", 0))?;
        Ok(copies)
    }
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
    let readable = layouts.into_iter().map(|layout| readable(&bytes, layout, lost)).max().unwrap_or(0);
    let file = segment.name.clone();
    Ok((data_len > 0).then_some(Piece { file, offset, bytes: data_len as u64, readable }))
}

/// Counts the whole batches from `lost` on, wherever they begin.
fn readable(bytes: &[u8], layout: Layout, lost: Sequence) -> u64 {
    let header_len = layout.header_len();
    let (mut count, mut start, mut next) = (0, 0, lost);
    while start + header_len <= bytes.len() {
        let header = FrameHeader::decode(layout, &bytes[start..start + header_len]);
        let end = start + header_len + header.length as usize;
        let sequence_max = lost.0.saturating_add((start / header_len) as u64 + bytes.len() as u64);
        let is_plausible = header.place.sequence >= next && header.place.sequence.0 <= sequence_max;
        let payload = bytes.get(start + header_len..end);
        match payload.filter(|_| is_plausible) {
            Some(payload) if frame::matches(&bytes[start..start + header_len], crc32c::crc32c(payload)) => {
                (count, start, next) = (count + 1, end, header.place.sequence.next());
            }
            _ => start += 1,
        }
    }
    count
}

/// Copies a file from an offset on into a new file, and syncs that.
fn copy(storage: &dyn Storage, file: &str, offset: u64, name: &str) -> Result<(), DirectoryError> {
    let from = storage.open(file).map_err(at(Operation::Open, file, 0))?;
    let to = storage.create(name).map_err(at(Operation::Create, name, 0))?;
    let mut chunk = vec![0; COPY_BYTES];
    let mut copied = 0;
    loop {
        let read = read_full_at(&*from, &mut chunk, offset + copied).map_err(at(Operation::Read, file, offset))?;
        if read == 0 {
            break;
        }
        write_all_at(&*to, &chunk[..read], copied).map_err(at(Operation::Write, name, copied))?;
        copied += read as u64;
    }
    to.sync().map_err(at(Operation::Sync, name, 0))
}
