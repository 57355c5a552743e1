//! The versions of a cell, oldest to newest. Knows how they lie in memory; refuses to know how many are to be kept, and
//! what a version means.
//!
//! Versions are appended to *chunks* of about a kilobyte, and a chunk is freed when none of its versions is kept any more.
//! So a write costs the same however long the history is, and what is kept beyond the versions that are asked for is
//! less than one chunk. In a chunk, each version is
//!
//! ```text
//! number   microseconds since the version before it; 0 for the first, whose time the chunk has
//! number   length of the value
//! bytes    the value
//! ```
//!
//! A ring of bytes was rejected: it grows by doubling, so that it is half empty on average, and a cell of which all
//! versions are kept would be copied whole now and then.

use super::Version;
use crate::encoding::{Reader, put_bytes, put_number};
use crate::storage::size_class::size_class;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// The most versions of a chunk, and its most bytes, unless it has one version: versions in it are looked for one by one,
/// and it is freed as a whole.
const CHUNK_VERSIONS: u64 = 32;
const CHUNK_BYTES: usize = 1024;
/// The most chunks that one write frees. There are more when the limit was lowered: the next writes free the rest.
const FREED_MAX: usize = 64;
/// The most bytes of a version in front of its value, and how many it mostly has.
const HEAD_BYTES_MAX: usize = 20;
const HEAD_BYTES_LIKELY: usize = 5;

/// The versions of a cell that are kept. There is at least one.
#[derive(Clone)]
pub struct History {
    chunks: VecDeque<Chunk>,
    /// The oldest version that is kept; the first chunk may begin with older ones.
    oldest: u64,
    newest: u64,
    newest_time_us: u64,
    /// Where the newest version begins in the last chunk.
    newest_at: usize,
}

#[derive(Clone)]
struct Chunk {
    /// The number and the time of its first version.
    first: u64,
    first_time_us: u64,
    versions: Vec<u8>,
}

impl History {
    /// A history of one version.
    pub(super) fn new(version: Version<'_>) -> History {
        let mut history = History {
            chunks: VecDeque::with_capacity(1),
            oldest: version.number,
            newest: version.number,
            newest_time_us: version.time_us,
            newest_at: 0,
        };
        history.append_to_new_chunk(version, 0);
        history
    }

    /// Adds a version, which is later than the newest, and its number one more.
    pub(super) fn push(&mut self, version: Version<'_>) {
        let last = self.chunks.back_mut().expect("there is a version");
        let bytes = last.versions.len() + version.value.len() + HEAD_BYTES_LIKELY;
        if version.number - last.first >= CHUNK_VERSIONS || bytes > CHUNK_BYTES {
            last.versions.shrink_to_fit();
            // The next chunk is probably like this one.
            let likely = last.versions.len().next_multiple_of(CHUNK_BYTES / 8).min(CHUNK_BYTES);
            self.append_to_new_chunk(version, likely);
        } else {
            self.newest_at = last.versions.len();
            put_number(version.time_us - self.newest_time_us, &mut last.versions);
            put_bytes(version.value, &mut last.versions);
        }
        self.newest = version.number;
        self.newest_time_us = version.time_us;
    }

    fn append_to_new_chunk(&mut self, version: Version<'_>, likely_bytes: usize) {
        let mut versions = Vec::with_capacity(likely_bytes.max(version.value.len() + HEAD_BYTES_MAX));
        put_number(0, &mut versions);
        put_bytes(version.value, &mut versions);
        if likely_bytes == 0 {
            versions.shrink_to_fit();
        }
        self.newest_at = 0;
        self.chunks.push_back(Chunk { first: version.number, first_time_us: version.time_us, versions });
    }

    /// Forgets the versions older than that one.
    pub(super) fn forget_before(&mut self, oldest: u64) {
        self.oldest = self.oldest.max(oldest).min(self.newest);
        for _ in 0..FREED_MAX {
            match self.chunks.get(1) {
                Some(second) if second.first <= self.oldest => drop(self.chunks.pop_front()),
                _ => break,
            }
        }
    }

    /// True when it is freed at once, whatever is in it.
    pub(super) fn is_short(&self) -> bool {
        self.chunks.len() <= FREED_MAX
    }

    /// How many versions are kept.
    pub(super) fn len(&self) -> usize {
        (self.newest - self.oldest + 1) as usize
    }

    /// The newest version.
    #[inline]
    pub(super) fn newest(&self) -> Version<'_> {
        let last = self.chunks.back().expect("there is a version");
        let mut reader = Reader::new(&last.versions[self.newest_at..]);
        let (_, value) = next_version(&mut reader);
        Version { number: self.newest, time_us: self.newest_time_us, value }
    }

    /// The version of that number, if it is kept.
    pub(super) fn version(&self, number: u64) -> Option<Version<'_>> {
        if !(self.oldest..=self.newest).contains(&number) {
            return None;
        }
        let behind = self.chunks.partition_point(|chunk| chunk.first <= number);
        self.chunks[behind - 1].iter().nth((number - self.chunks[behind - 1].first) as usize)
    }

    /// The newest version that is not later than that time, if it is kept.
    pub(super) fn as_of(&self, time_us: u64) -> Option<Version<'_>> {
        if time_us >= self.newest_time_us {
            return Some(self.newest());
        }
        let behind = self.chunks.partition_point(|chunk| chunk.first_time_us <= time_us);
        let chunk = &self.chunks[behind.checked_sub(1)?];
        let found = chunk.iter().take_while(|version| version.time_us <= time_us).last()?;
        Some(found).filter(|version| version.number >= self.oldest)
    }

    /// The versions below that number, the newest first.
    pub(super) fn newest_first(&self, below: u64) -> NewestFirst<'_> {
        let chunks = self.chunks.partition_point(|chunk| chunk.first < below);
        NewestFirst { history: self, below, chunks, found: SmallVec::new() }
    }

    /// All versions, the oldest first.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = Version<'_>> {
        let versions = self.chunks.iter().flat_map(Chunk::iter);
        versions.skip_while(|version| version.number < self.oldest)
    }

    /// Heap bytes, judged by so many of its chunks.
    pub(super) fn heap_bytes(&self, samples: usize) -> usize {
        let looked_at = self.chunks.len().min(samples.max(1));
        let bytes: usize =
            self.chunks.iter().rev().take(looked_at).map(|chunk| size_class(chunk.versions.capacity())).sum();
        size_class(self.chunks.capacity() * size_of::<Chunk>()) + bytes * self.chunks.len() / looked_at
    }
}

impl Chunk {
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

/// Takes a version off the front of a chunk: the time since the one before, and the value.
#[inline]
fn next_version<'a>(reader: &mut Reader<'a>) -> (u64, &'a [u8]) {
    const WRITTEN_HERE: &str = "a chunk holds whole versions";
    (reader.number().expect(WRITTEN_HERE), reader.bytes().expect(WRITTEN_HERE))
}

/// Versions of a cell, the newest first.
pub struct NewestFirst<'a> {
    history: &'a History,
    below: u64,
    /// How many chunks there are still to look at.
    chunks: usize,
    /// Versions of one chunk that are next, the last one first.
    found: SmallVec<[Version<'a>; CHUNK_VERSIONS as usize]>,
}

impl<'a> Iterator for NewestFirst<'a> {
    type Item = Version<'a>;

    fn next(&mut self) -> Option<Version<'a>> {
        if self.found.is_empty() {
            self.chunks = self.chunks.checked_sub(1)?;
            let wanted = self.history.oldest..self.below;
            let versions = self.history.chunks[self.chunks].iter();
            self.found.extend(versions.filter(|version| wanted.contains(&version.number)));
        }
        self.found.pop()
    }
}
