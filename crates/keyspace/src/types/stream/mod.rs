//! Streams: entries in the order of their ids, and consumer groups. Knows entries, groups and the counters that Redis
//! has; refuses to know commands, and how entries are packed (`chunk`).
//!
//! Entries are only added at the end. A deleted entry stays in its chunk, marked, until the whole chunk is deleted. A
//! stream may be empty.

mod change;
mod chunk;
mod group;
mod id;
mod idempotency;
mod image;
mod log;
mod node_bytes;
mod order;
mod radix;
mod trim;

pub use change::Change;
pub use chunk::{EntryRef, Field, Fields};
pub use group::{Consumer, DELIVERIES_MAX, Delivery, Group, NEVER_ACTIVE, Pending, SEEN_LAG_MAX_MS};
pub use id::StreamId;
pub use idempotency::{Idempotency, Remembered, Retention};
pub use image::{image_of, to_redis, whole};
pub use log::{CHUNK_BYTES_MAX, Thresholds};
pub use trim::{Keep, References, Trimmed, Trimming};

use super::{Entry, FREED_AT_ONCE_MAX, Object, ValueType};
use log::EntryLog;
use std::collections::BTreeMap;

/// The row of streams.
pub static TYPE: ValueType = ValueType {
    tag: 10,
    name: "stream",
    redis_number: 6,
    event_letter: 't',
    is_own: false,
    is_bound: false,
    name_error: |_| None,
    encoding: |_| "stream",
    elements: |entry, _| stream(entry).len() as usize,
    heap_bytes: |object, samples| stream_of(object).map_or(0, |stream| stream.heap_bytes(samples)),
    is_freed_later: |object| {
        stream_of(object).is_some_and(|stream| {
            let pending: usize = stream.groups.values().map(Group::len).sum();
            let ids = stream.idempotency.as_ref().map_or(0, |ids| ids.len());
            stream.chunks() > FREED_AT_ONCE_CHUNKS_MAX || pending + ids > FREED_AT_ONCE_MAX
        })
    },
    write_image: image::write,
    check_image: image::check,
    read_image: image::read,
    release: None,
    element_expiry: None,
    to_redis: |entry, _, _| image::to_redis_or_image(stream(entry)),
    digest: image::digest,
};

/// A stream with more chunks is freed in the background.
const FREED_AT_ONCE_CHUNKS_MAX: usize = 64;

/// The stream in an entry.
#[inline]
pub fn stream(entry: &Entry) -> &Stream {
    entry.object().and_then(stream_of).expect("the entry holds a stream")
}

#[inline]
fn stream_of(object: &Object) -> Option<&Stream> {
    match object {
        Object::Stream(stream) => Some(stream),
        _ => None,
    }
}

/// A stream.
#[derive(Clone, Default)]
pub struct Stream {
    log: EntryLog,
    len: u64,
    /// The id of the first entry; 0-0 without entries.
    first: StreamId,
    /// The last assigned id.
    last: StreamId,
    max_deleted: StreamId,
    /// How many entries were ever added.
    added: u64,
    groups: BTreeMap<Box<[u8]>, Group>,
    /// `None` unless producers use ids of their own.
    idempotency: Option<Box<Idempotency>>,
    /// What the last change has removed, if that takes long to free.
    removed: Option<Box<Removed>>,
}

/// A part of a stream that was removed.
#[derive(Clone)]
enum Removed {
    Group { _freed: Group },
    Ids { _freed: idempotency::Kept },
}

impl Stream {
    /// How many entries there are.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True when there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The id of the first entry; 0-0 when there is none.
    pub fn first(&self) -> StreamId {
        self.first
    }

    /// The last assigned id, even if its entry was deleted.
    #[inline]
    pub fn last(&self) -> StreamId {
        self.last
    }

    /// The id of the last entry.
    #[inline]
    pub fn last_entry(&self) -> Option<StreamId> {
        self.log.last()
    }

    /// The highest id that XDEL has removed.
    pub fn max_deleted(&self) -> StreamId {
        self.max_deleted
    }

    /// How many entries were ever added.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// The number of chunks, which are Redis's nodes.
    pub fn chunks(&self) -> usize {
        self.log.chunks().len()
    }

    /// The number of nodes that Redis's radix tree would have.
    pub fn radix_nodes(&self) -> usize {
        let ids: Vec<StreamId> = self.log.chunks().map(|chunk| chunk.first).collect();
        radix::nodes(&ids)
    }

    /// The entry with this id.
    pub fn get(&self, id: StreamId) -> Option<EntryRef<'_>> {
        self.log.get(id)
    }

    /// The entries from one id to another, both included.
    #[inline]
    pub fn range(&self, from: StreamId, to: StreamId) -> impl Iterator<Item = EntryRef<'_>> {
        self.log.range(from, to)
    }

    /// The entries from one id down to another, both included.
    pub fn range_back(&self, from: StreamId, to: StreamId) -> impl Iterator<Item = EntryRef<'_>> {
        self.log.range_back(from, to)
    }

    /// The entries after an id.
    #[inline]
    pub fn after(&self, id: StreamId) -> impl Iterator<Item = EntryRef<'_>> {
        id.next().map(|from| self.log.range(from, StreamId::MAX)).into_iter().flatten()
    }

    /// The group with this name.
    #[inline]
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name)
    }

    /// The ids that producers have used, if they do.
    pub fn idempotency(&self) -> Option<&Idempotency> {
        self.idempotency.as_deref()
    }

    /// The groups in the order of their names.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        self.groups.iter().map(|(name, group)| (&**name, group))
    }

    /// True when a group has not read an entry of that id yet, or it is pending there.
    pub fn is_referenced(&self, id: StreamId) -> bool {
        self.groups.values().any(|group| group.last < id || group.get(id).is_some())
    }

    /// The number of entries that a group has read once it has read the entry `id`, after the entry `last` up to which
    /// it had read `before` entries. Counting goes on where nothing between the two can have been removed.
    pub fn entries_read(&self, before: Option<u64>, last: StreamId, id: StreamId) -> Option<u64> {
        match before {
            Some(before) if last >= self.first && !self.has_gaps_from(last) => Some(before + 1),
            before if self.added == 0 => before,
            _ => self.entries_up_to(id),
        }
    }

    /// The number of entries that a group has not read yet, if it is known.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        let read = match group.entries_read {
            _ if self.len == 0 => return Some(0),
            // All that is left lies ahead, and nothing in it was removed.
            _ if group.last < self.first && self.max_deleted < self.first => return Some(self.len as i64),
            Some(read) if !self.has_gaps_from(group.last) => read,
            _ => self.entries_up_to(group.last)?,
        };
        Some((self.added as i64).wrapping_sub(read as i64))
    }

    /// The number of entries ever added up to that id, if it is known: at the ends of a stream without gaps it is.
    pub fn entries_up_to(&self, id: StreamId) -> Option<u64> {
        if self.added == 0 {
            return Some(0);
        }
        if self.len == 0 && id <= self.last || id == self.last {
            return Some(self.added);
        }
        let has_gaps = self.max_deleted != StreamId::MIN && self.max_deleted >= self.first;
        if id > self.last || has_gaps || id > self.first {
            return None;
        }
        let gone = self.added.wrapping_sub(self.len);
        Some(if id == self.first { gone.wrapping_add(1) } else { gone })
    }

    /// True when XDEL may have removed entries from that id on.
    fn has_gaps_from(&self, id: StreamId) -> bool {
        let has_gaps = self.len > 0 && self.max_deleted != StreamId::MIN && self.first <= self.max_deleted;
        has_gaps && id <= self.max_deleted
    }

    /// Takes what the last change has removed, to be freed later.
    pub(in crate::types) fn take_removed(&mut self) -> Option<impl Send + 'static + use<>> {
        self.removed.take()
    }

    fn append(&mut self, id: StreamId, fields: &[Field<'_>], thresholds: &Thresholds) {
        self.log.push(id, fields, thresholds);
        self.len += 1;
        self.added += 1;
        self.last = id;
        if self.len == 1 {
            self.first = id;
        }
    }

    fn delete(&mut self, ids: &[StreamId]) -> usize {
        let before = self.len;
        for id in ids.iter().filter(|id| self.log.delete(**id)) {
            self.len -= 1;
            self.max_deleted = self.max_deleted.max(*id);
        }
        self.first = self.log.first().unwrap_or_default();
        (before - self.len) as usize
    }

    fn trim(&mut self, upto: StreamId) -> usize {
        let count = self.log.delete_up_to(upto);
        self.len -= count;
        self.first = self.log.first().unwrap_or_default();
        count as usize
    }

    fn heap_bytes(&self, samples: usize) -> usize {
        let groups = self.groups.iter();
        self.log.heap_bytes(samples)
            + self.idempotency.as_ref().map_or(0, |ids| ids.heap_bytes())
            + groups.map(|(name, group)| name.len() + size_of::<Group>() + group.heap_bytes()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests;
