//! The entries of a stream, chunk by chunk. Knows where a chunk ends and how an id is found; refuses to know groups,
//! and how entries are packed (`chunk`).

use super::chunk::{Chunk, ChunkEntries, EntryRef, Field};
use super::id::StreamId;
use crate::storage::size_class::size_class;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// When a chunk is full: Redis's `stream-node-max-entries` and `stream-node-max-bytes`, 0 for no limit.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    pub entries_max: usize,
    pub bytes_max: usize,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { entries_max: 100, bytes_max: 4096 }
    }
}

/// The most bytes of a chunk or an entry, whatever the settings say.
pub const CHUNK_BYTES_MAX: u64 = 1 << 30;
/// The most initial room of chunks after the first.
const ROOM_MAX: usize = 4096;
/// The initial room of the first chunk: most short streams have short entries.
const ROOM_MIN: usize = 64;

/// The entries of a stream. The ids of chunks ascend, and so do those of live entries.
#[derive(Clone, Default)]
pub(super) struct EntryLog {
    chunks: VecDeque<Chunk>,
}

impl EntryLog {
    pub(super) fn chunks(&self) -> impl ExactSizeIterator<Item = &Chunk> {
        self.chunks.iter()
    }

    /// Appends an entry, in a new chunk when the last is full.
    pub(super) fn push(&mut self, id: StreamId, fields: &[Field<'_>], thresholds: &Thresholds) {
        // After XSETID the id may be lower than that of a chunk whose entries are all deleted.
        while self.chunks.back().is_some_and(|chunk| chunk.first >= id) {
            self.chunks.pop_back();
        }
        let bytes: u64 = fields.iter().map(|(name, value)| (name.len() + value.len()) as u64).sum();
        let room = match self.chunks.back_mut() {
            Some(last) if !is_full(last, bytes, thresholds) => return last.push(id, fields),
            Some(last) => {
                last.seal();
                last.bytes().len().min(ROOM_MAX)
            }
            None => ROOM_MIN,
        };
        self.chunks.push_back(Chunk::new(id, fields, room));
    }

    /// Appends a chunk that was read; false when its ids do not follow the others.
    pub(super) fn push_chunk(&mut self, chunk: Chunk) -> bool {
        let follows = |last: &Chunk| chunk.first > last.last_live().unwrap_or(last.first).max(last.first);
        let follows = self.chunks.back().is_none_or(follows);
        if follows {
            self.chunks.push_back(chunk);
        }
        follows
    }

    /// The position of the chunk that may contain an id.
    #[inline]
    fn place(&self, id: StreamId) -> usize {
        match self.chunks.back() {
            // Most reads are of the newest entries.
            Some(last) if last.first <= id => self.chunks.len() - 1,
            _ => self.chunks.partition_point(|chunk| chunk.first <= id).saturating_sub(1),
        }
    }

    /// The entry of that id.
    pub(super) fn get(&self, id: StreamId) -> Option<EntryRef<'_>> {
        self.chunks.get(self.place(id))?.get(id)
    }

    /// Marks an entry as deleted, and drops its chunk if it was the last one there; false when it does not exist.
    pub(super) fn delete(&mut self, id: StreamId) -> bool {
        let place = self.place(id);
        let Some(chunk) = self.chunks.get_mut(place) else { return false };
        let deleted = chunk.delete(id);
        if deleted && chunk.live() == 0 {
            self.chunks.remove(place);
        }
        deleted
    }

    /// Drops the chunks whose last entry is at or below that id, and marks such entries of the next chunk as deleted.
    /// Returns how many entries were removed.
    pub(super) fn delete_up_to(&mut self, id: StreamId) -> u64 {
        let mut count = 0;
        while let Some(chunk) = self.chunks.front_mut() {
            if chunk.last() > id {
                return count + chunk.delete_up_to(id);
            }
            count += chunk.live();
            self.chunks.pop_front();
        }
        count
    }

    /// The id of the first entry.
    pub(super) fn first(&self) -> Option<StreamId> {
        let chunk = self.chunks.iter().find(|chunk| chunk.live() > 0)?;
        chunk.first_live_on().next().map(|entry| entry.id)
    }

    /// The id of the last entry.
    #[inline]
    pub(super) fn last(&self) -> Option<StreamId> {
        self.chunks.iter().rev().find_map(Chunk::last_live)
    }

    /// The entries from one id to another, both included.
    pub(super) fn range(&self, from: StreamId, to: StreamId) -> Range<'_> {
        let mut at = self.place(from);
        if self.chunks.get(at).is_some_and(|chunk| chunk.last() < from) {
            at += 1;
        }
        Range { log: self, next: at + 1, entries: self.chunks.get(at).map(Chunk::first_live_on), from, to }
    }

    /// The entries from one id down to another, both included.
    pub(super) fn range_back(&self, from: StreamId, to: StreamId) -> RangeBack<'_> {
        let left = if self.chunks.is_empty() { 0 } else { self.place(from) + 1 };
        RangeBack { log: self, left, entries: SmallVec::new(), from, to }
    }

    pub(super) fn heap_bytes(&self, samples: usize) -> usize {
        let count = self.chunks.len();
        let sampled = samples.clamp(1, count.max(1)).min(count);
        let bytes: usize = self.chunks.iter().take(sampled).map(Chunk::heap_bytes).sum();
        let chunks = bytes.checked_div(sampled).unwrap_or(0) * count;
        chunks + size_class(self.chunks.capacity() * size_of::<Chunk>())
    }
}

/// True when Redis would begin a new node for an entry of `bytes` bytes.
#[inline]
fn is_full(chunk: &Chunk, bytes: u64, thresholds: &Thresholds) -> bool {
    let bytes_max = match thresholds.bytes_max as u64 {
        0 => CHUNK_BYTES_MAX,
        max => max.min(CHUNK_BYTES_MAX),
    };
    let entries_max = thresholds.entries_max as u64;
    chunk.node_bytes() + bytes >= bytes_max || entries_max > 0 && chunk.live() + chunk.deleted() >= entries_max
}

/// Entries in order.
pub(super) struct Range<'a> {
    log: &'a EntryLog,
    /// The position of the next chunk.
    next: usize,
    entries: Option<ChunkEntries<'a>>,
    from: StreamId,
    to: StreamId,
}

impl<'a> Iterator for Range<'a> {
    type Item = EntryRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<EntryRef<'a>> {
        loop {
            for entry in self.entries.as_mut()? {
                if !entry.is_deleted && entry.id >= self.from {
                    return if entry.id <= self.to { Some(entry) } else { None };
                }
            }
            self.entries = self.log.chunks.get(self.next).map(Chunk::first_live_on);
            self.next += 1;
        }
    }
}

/// Entries in reverse order. A chunk can only be read forward: its few entries are buffered.
pub(super) struct RangeBack<'a> {
    log: &'a EntryLog,
    /// How many chunks are left.
    left: usize,
    entries: SmallVec<[EntryRef<'a>; 16]>,
    from: StreamId,
    to: StreamId,
}

impl<'a> Iterator for RangeBack<'a> {
    type Item = EntryRef<'a>;

    fn next(&mut self) -> Option<EntryRef<'a>> {
        loop {
            if let Some(entry) = self.entries.pop() {
                return Some(entry);
            }
            self.left = self.left.checked_sub(1)?;
            let chunk = &self.log.chunks[self.left];
            let (from, to) = (self.from, self.to);
            self.entries
                .extend(chunk.first_live_on().filter(|entry| !entry.is_deleted && entry.id <= from && entry.id >= to));
            // Older chunks are out of range once this one begins before it.
            if chunk.first < to {
                self.left = 0;
            }
        }
    }
}
