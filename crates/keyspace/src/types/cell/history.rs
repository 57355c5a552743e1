//! The versions of a cell, oldest to newest. Knows their layout; refuses to know how many to retain, and what a version
//! means.
//!
//! Versions are appended to *chunks* of about a kilobyte, and a chunk is freed when none of its versions is retained.
//! So a write costs the same however long the history is, and less than one chunk of excess versions is kept. In a
//! chunk, each version is
//!
//! ```text
//! number   microseconds since the version before it; 0 for the first, whose time the chunk has
//! number   length of the value
//! bytes    the value
//! ```
//!
//! A ring of bytes was rejected: it grows by doubling, so that it is half empty on average, and a cell with all
//! versions retained would be copied whole now and then.

use super::Version;
use crate::encoding::{Reader, put_bytes, put_number};
use crate::storage::prefetch::prefetch_at;
use crate::storage::size_class::size_class;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// The most versions of a chunk, and its most bytes, unless it has one version: versions in it are searched one by one,
/// and it is freed as a whole.
const CHUNK_VERSIONS: u64 = 32;
const CHUNK_BYTES: usize = 1024;
/// The most chunks that one write frees. A lowered limit may leave more: the next writes free the rest.
const FREED_MAX: usize = 64;
/// The most bytes of a version before its value, and their usual number.
const HEAD_BYTES_MAX: usize = 20;
const HEAD_BYTES_LIKELY: usize = 5;
/// How much of the next version is prefetched.
const NEXT_BYTES_LIKELY: usize = 65;

/// The retained versions of a cell, at least one.
///
/// The order of fields puts what a write reads together: it rarely touches the older chunks.
#[derive(Clone)]
#[repr(C)]
pub struct History {
    newest: u64,
    newest_time_us: u64,
    /// The oldest retained version; the first chunk may begin with older ones.
    oldest: u64,
    /// The first version of the second chunk: when it becomes the oldest, the first chunk is freed.
    second: u64,
    /// Where the newest version begins in the last chunk.
    newest_at: usize,
    last: Chunk,
    /// The chunks before the last.
    full: VecDeque<Chunk>,
}

#[derive(Clone)]
struct Chunk {
    /// The number and the time of its first version.
    first: u64,
    first_time_us: u64,
    versions: Vec<u8>,
}

impl History {
    /// Creates a history of one version.
    pub(super) fn new(version: Version<'_>) -> History {
        History {
            newest: version.number,
            newest_time_us: version.time_us,
            oldest: version.number,
            second: u64::MAX,
            newest_at: 0,
            last: Chunk::new(version, 0),
            full: VecDeque::new(),
        }
    }

    /// Adds a version, which is later than the newest; its number is one higher.
    pub(super) fn push(&mut self, version: Version<'_>) {
        let versions = &mut self.last.versions;
        let bytes = versions.len() + version.value.len() + HEAD_BYTES_LIKELY;
        if version.number - self.last.first >= CHUNK_VERSIONS || bytes > CHUNK_BYTES {
            if size_class(versions.len()) < size_class(versions.capacity()) {
                versions.shrink_to_fit();
            }
            // The next chunk will probably be like this one.
            let likely = versions.len().next_multiple_of(CHUNK_BYTES / 8).min(CHUNK_BYTES);
            let full = std::mem::replace(&mut self.last, Chunk::new(version, likely));
            self.full.push_back(full);
            self.newest_at = 0;
            self.second = self.second.min(version.number);
        } else {
            self.newest_at = versions.len();
            put_number(version.time_us - self.newest_time_us, versions);
            put_bytes(version.value, versions);
        }
        self.newest = version.number;
        self.newest_time_us = version.time_us;
    }

    /// Drops the versions before `oldest`.
    #[inline]
    pub(super) fn forget_before(&mut self, oldest: u64) {
        self.oldest = self.oldest.max(oldest).min(self.newest);
        if self.second <= self.oldest {
            self.free_chunks();
        }
    }

    fn free_chunks(&mut self) {
        for _ in 0..FREED_MAX {
            if self.second > self.oldest {
                break;
            }
            self.full.pop_front();
            self.second = match self.full.len() {
                0 => u64::MAX,
                1 => self.last.first,
                _ => self.full[1].first,
            };
        }
    }

    /// True when freeing it takes no noticeable time.
    pub(super) fn is_short(&self) -> bool {
        self.full.len() <= FREED_MAX
    }

    /// The number of retained versions.
    #[inline]
    pub(super) fn len(&self) -> usize {
        (self.newest - self.oldest + 1) as usize
    }

    /// Prefetches where the next version will be written.
    #[inline]
    pub(crate) fn prefetch_end(&self) {
        let versions = &self.last.versions;
        prefetch_at(versions.as_ptr().wrapping_add(versions.len()), NEXT_BYTES_LIKELY);
    }

    /// Number and time of the newest version.
    #[inline]
    pub(super) fn newest_stamp(&self) -> (u64, u64) {
        (self.newest, self.newest_time_us)
    }

    /// The newest version.
    #[inline]
    pub(super) fn newest(&self) -> Version<'_> {
        let mut reader = Reader::new(&self.last.versions[self.newest_at..]);
        let (_, value) = next_version(&mut reader);
        Version { number: self.newest, time_us: self.newest_time_us, value }
    }

    /// The version with this number, if it is retained.
    pub(super) fn version(&self, number: u64) -> Option<Version<'_>> {
        if !(self.oldest..=self.newest).contains(&number) {
            return None;
        }
        let chunk = self.last_chunk(|chunk| chunk.first <= number)?;
        chunk.iter().nth((number - chunk.first) as usize)
    }

    /// The newest version that is not later than this time, if it is retained.
    pub(super) fn as_of(&self, time_us: u64) -> Option<Version<'_>> {
        let chunk = self.last_chunk(|chunk| chunk.first_time_us <= time_us)?;
        let found = chunk.iter().take_while(|version| version.time_us <= time_us).last()?;
        Some(found).filter(|version| version.number >= self.oldest)
    }

    /// The last chunk for which `holds` is true; it is true for all before it.
    fn last_chunk(&self, holds: impl Fn(&Chunk) -> bool) -> Option<&Chunk> {
        if holds(&self.last) {
            return Some(&self.last);
        }
        let behind = self.full.partition_point(holds);
        behind.checked_sub(1).map(|at| &self.full[at])
    }

    /// The versions below this number, newest first.
    pub(super) fn newest_first(&self, below: u64) -> NewestFirst<'_> {
        let chunks = match self.last.first < below {
            true => self.full.len() + 1,
            false => self.full.partition_point(|chunk| chunk.first < below),
        };
        NewestFirst { history: self, below, chunks, found: SmallVec::new() }
    }

    /// All versions, the oldest first.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = Version<'_>> {
        let versions = self.full.iter().chain([&self.last]).flat_map(Chunk::iter);
        versions.skip_while(|version| version.number < self.oldest)
    }

    /// Heap bytes, estimated from `samples` chunks.
    pub(super) fn heap_bytes(&self, samples: usize) -> usize {
        let bytes_of = |chunk: &Chunk| size_class(chunk.versions.capacity());
        let looked_at = self.full.len().min(samples);
        let bytes: usize = self.full.iter().rev().take(looked_at).map(bytes_of).sum();
        bytes_of(&self.last)
            + size_class(self.full.capacity() * size_of::<Chunk>())
            + bytes * self.full.len() / looked_at.max(1)
    }
}

impl Chunk {
    /// Creates a chunk that begins with a version, with room for about `likely_bytes`.
    fn new(version: Version<'_>, likely_bytes: usize) -> Chunk {
        let mut versions = Vec::with_capacity(likely_bytes.max(version.value.len() + HEAD_BYTES_MAX));
        put_number(0, &mut versions);
        put_bytes(version.value, &mut versions);
        if likely_bytes == 0 {
            versions.shrink_to_fit();
        }
        Chunk { first: version.number, first_time_us: version.time_us, versions }
    }

    fn iter(&self) -> impl Iterator<Item = Version<'_>> {
        let (mut reader, mut time_us) = (Reader::new(&self.versions), self.first_time_us);
        (self.first..).map_while(move |number| {
            if reader.is_empty() {
                return None;
            }
            let (since_us, value) = next_version(&mut reader);
            time_us += since_us;
            Some(Version { number, time_us, value })
        })
    }
}

/// Reads a version from a chunk: the time since the previous one, and the value.
#[inline]
fn next_version<'a>(reader: &mut Reader<'a>) -> (u64, &'a [u8]) {
    const WRITTEN_HERE: &str = "a chunk holds whole versions";
    (reader.number().expect(WRITTEN_HERE), reader.bytes().expect(WRITTEN_HERE))
}

/// Versions of a cell, the newest first.
pub struct NewestFirst<'a> {
    history: &'a History,
    below: u64,
    /// The number of chunks still to be read.
    chunks: usize,
    /// The next versions of one chunk, the last one first.
    found: SmallVec<[Version<'a>; CHUNK_VERSIONS as usize]>,
}

impl<'a> Iterator for NewestFirst<'a> {
    type Item = Version<'a>;

    fn next(&mut self) -> Option<Version<'a>> {
        if self.found.is_empty() {
            self.chunks = self.chunks.checked_sub(1)?;
            let wanted = self.history.oldest..self.below;
            let chunk = self.history.full.get(self.chunks).unwrap_or(&self.history.last);
            let versions = chunk.iter();
            self.found.extend(versions.filter(|version| wanted.contains(&version.number)));
        }
        self.found.pop()
    }
}
