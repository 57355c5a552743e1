//! A chunk of a stream: consecutive entries in one run of bytes. Knows how entries are packed; refuses to know other
//! chunks, and when a chunk is full.
//!
//! A chunk is what Redis calls a node: it begins and ends where a node would, and keeps deleted entries, marked. The
//! field names of its first entry come first; an entry with the same names has only its values.
//!
//! ```text
//! number   how many fields the first entry has
//! items    their names
//! ```
//! then each entry:
//! ```text
//! byte     flags, below; in the upper half, unless SAME_MS, the milliseconds since the entry before it
//!          if these are 1 to 15
//! number   otherwise those milliseconds; none with SAME_MS
//! number   the second part of the id, with SAME_MS how much higher it is than that of the entry before;
//!          none with IMPLIED_SEQ
//! number   bytes that follow; none with SAME_NAMES and few fields, which are passed over one by one
//! number   how many fields there are; none with SAME_NAMES
//! items    name, value, name, value…; with SAME_NAMES value, value…
//! ```
//! Differences wrap around: after XSETID an entry may have a lower id than a deleted one before it.

use super::id::StreamId;
use super::node_bytes::{FRAME_BYTES, element_bytes, integer_bytes};
use crate::encoding::{BadEffect, Reader, put_number};
use crate::storage::item::{checked_item_len, item_is, item_len, read_item, write_item};
use crate::storage::{Scalar, size_class::size_class};
use smallvec::SmallVec;

const DELETED: u8 = 1;
const SAME_NAMES: u8 = 1 << 1;
const SAME_MS: u8 = 1 << 2;
/// The sequence number is that of the previous entry plus one, or 0 in another millisecond.
const IMPLIED_SEQ: u8 = 1 << 3;
const SHORT_MS_MAX: u64 = 15;

/// An entry with the names of its chunk has a length prefix if it has more fields than this.
const PASSED_OVER_MAX: usize = 8;

/// The names and values of an entry, as commands give them.
pub type Field<'a> = (&'a [u8], &'a [u8]);

/// A chunk. It has at least one entry, possibly only deleted ones.
#[derive(Clone)]
pub(super) struct Chunk {
    /// The id of its first entry when it was created, by which it is found. Redis calls it the master id.
    pub(super) first: StreamId,
    body: Box<Body>,
}

/// The parts of a chunk that are not needed to find it.
#[derive(Clone)]
struct Body {
    bytes: Vec<u8>,
    /// The id of the entry that was added last, deleted or not.
    last: StreamId,
    /// The bytes of Redis's form without the two counts of entries.
    node_bytes: u64,
    live: u32,
    deleted: u32,
    /// Where entries begin.
    entries_at: u32,
    /// Where the search for the first live entry begins, and the id before it.
    live_at: u32,
    before_live: StreamId,
}

impl Chunk {
    /// Creates a chunk of one entry, with room for `room` bytes.
    pub(super) fn new(id: StreamId, fields: &[Field<'_>], room: usize) -> Chunk {
        let mut chunk = Chunk::with_names(id, fields.iter().map(|(name, _)| *name), room);
        chunk.push(id, fields);
        chunk
    }

    /// Creates a chunk without entries, to be filled by [`Chunk::push_read`].
    pub(super) fn empty<'n>(first: StreamId, names: impl ExactSizeIterator<Item = &'n [u8]>) -> Chunk {
        Chunk::with_names(first, names, 0)
    }

    fn with_names<'n>(first: StreamId, names: impl ExactSizeIterator<Item = &'n [u8]>, room: usize) -> Chunk {
        let mut bytes = Vec::with_capacity(room);
        let mut node_bytes = FRAME_BYTES + integer_bytes(names.len() as i64) + integer_bytes(0);
        put_number(names.len() as u64, &mut bytes);
        for name in names {
            let name = Scalar::of(name);
            node_bytes += element_bytes(name);
            write_item(&mut bytes, name);
        }
        let entries_at = bytes.len() as u32;
        let body = Body {
            bytes,
            last: first,
            node_bytes,
            live: 0,
            deleted: 0,
            entries_at,
            live_at: entries_at,
            before_live: first,
        };
        Chunk { first, body: Box::new(body) }
    }

    /// The number of live entries.
    #[inline]
    pub(super) fn live(&self) -> u64 {
        self.body.live.into()
    }

    pub(super) fn deleted(&self) -> u64 {
        self.body.deleted.into()
    }

    /// The id of the entry that was added last, deleted or not.
    #[inline]
    pub(super) fn last(&self) -> StreamId {
        self.body.last
    }

    /// The bytes of Redis's form.
    #[inline]
    pub(super) fn node_bytes(&self) -> u64 {
        let Body { node_bytes, live, deleted, .. } = *self.body;
        node_bytes + integer_bytes(live.into()) + integer_bytes(deleted.into())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.body.bytes
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_class(self.body.bytes.capacity()) + size_class(size_of::<Body>())
    }

    /// Frees the room that no entry will take.
    pub(super) fn seal(&mut self) {
        self.body.bytes.shrink_to_fit();
    }

    /// Appends an entry.
    #[inline]
    pub(super) fn push(&mut self, id: StreamId, fields: &[Field<'_>]) {
        let is_same = has_names(&self.body.bytes[..self.body.entries_at as usize], fields);
        self.push_as(id, fields, is_same);
    }

    /// Appends an entry that was read from a node of Redis.
    pub(super) fn push_read(&mut self, id: StreamId, fields: &[Field<'_>], shares_names: bool, is_deleted: bool) {
        let at = self.body.bytes.len();
        self.push_as(id, fields, shares_names);
        if is_deleted {
            self.mark(at);
            self.skip_deleted();
        }
    }

    fn push_as(&mut self, id: StreamId, fields: &[Field<'_>], is_same: bool) {
        let body = &mut *self.body;
        let (seq_diff, ms_diff) = (id.seq.wrapping_sub(self.first.seq), id.ms.wrapping_sub(self.first.ms));
        // Flags, the two parts of the id as differences, and the number of elements.
        let mut node_bytes = integer_bytes(0) + integer_bytes(ms_diff as i64) + integer_bytes(seq_diff as i64);
        let mut elements = 3 + fields.len();
        put_head(&mut body.bytes, id, body.last, if is_same { SAME_NAMES } else { 0 });
        let len_at = body.bytes.len();
        let has_length = !is_same || fields.len() > PASSED_OVER_MAX;
        if has_length {
            body.bytes.push(0);
        }
        if !is_same {
            put_number(fields.len() as u64, &mut body.bytes);
            node_bytes += integer_bytes(fields.len() as i64);
            elements += fields.len() + 1;
        }
        for (name, value) in fields {
            if !is_same {
                let name = Scalar::of(name);
                node_bytes += element_bytes(name);
                write_item(&mut body.bytes, name);
            }
            let value = Scalar::of(value);
            node_bytes += element_bytes(value);
            write_item(&mut body.bytes, value);
        }
        if has_length {
            close_length(&mut body.bytes, len_at);
        }
        body.node_bytes += node_bytes + integer_bytes(elements as i64);
        body.last = id;
        body.live += 1;
    }

    /// The names that entries may share, stored before the entries.
    pub(super) fn names(&self) -> impl Iterator<Item = Scalar<'_>> {
        let (count, names) = split_count(&self.body.bytes[..self.body.entries_at as usize]);
        items(names).take(count)
    }

    /// All entries, including deleted ones.
    #[inline]
    pub(super) fn entries(&self) -> ChunkEntries<'_> {
        let body = &*self.body;
        let at = body.entries_at as usize;
        ChunkEntries::new(&body.bytes, at, at, self.first)
    }

    /// The entries from the first live one on; deleted ones may follow.
    #[inline]
    pub(super) fn first_live_on(&self) -> ChunkEntries<'_> {
        let body = &*self.body;
        ChunkEntries::new(&body.bytes, body.entries_at as usize, body.live_at as usize, body.before_live)
    }

    /// The live entry with this id.
    pub(super) fn get(&self, id: StreamId) -> Option<EntryRef<'_>> {
        self.first_live_on().find(|entry| entry.id == id && !entry.is_deleted)
    }

    /// Marks an entry as deleted; false when it does not exist.
    pub(super) fn delete(&mut self, id: StreamId) -> bool {
        let Some(at) = self.get(id).map(|entry| entry.at) else { return false };
        self.mark(at);
        self.skip_deleted();
        true
    }

    /// Marks the entries up to that id as deleted; returns how many were live.
    pub(super) fn delete_up_to(&mut self, id: StreamId) -> u64 {
        let doomed: SmallVec<[usize; 128]> = {
            let entries = self.first_live_on().take_while(|entry| entry.is_deleted || entry.id <= id);
            entries.filter(|entry| !entry.is_deleted).map(|entry| entry.at).collect()
        };
        doomed.iter().for_each(|at| self.mark(*at));
        self.skip_deleted();
        doomed.len() as u64
    }

    fn mark(&mut self, at: usize) {
        self.body.bytes[at] |= DELETED;
        self.body.live -= 1;
        self.body.deleted += 1;
    }

    /// Moves the start of the search past deleted entries.
    fn skip_deleted(&mut self) {
        let mut entries = self.first_live_on();
        let mut from = (entries.at, entries.before);
        while entries.next().is_some_and(|entry| entry.is_deleted) {
            from = (entries.at, entries.before);
        }
        (self.body.live_at, self.body.before_live) = (from.0 as u32, from.1);
    }

    /// The id of the last live entry.
    pub(super) fn last_live(&self) -> Option<StreamId> {
        match (self.body.live, self.body.deleted) {
            (0, _) => None,
            (_, 0) => Some(self.body.last),
            _ => self.first_live_on().filter(|entry| !entry.is_deleted).last().map(|entry| entry.id),
        }
    }

    /// Reads a chunk from untrusted bytes. The ids of live entries must ascend, from `first` on.
    pub(super) fn read(first: StreamId, bytes: &[u8]) -> Result<Chunk, BadEffect> {
        let entries_at = check_names(bytes)?;
        let (count, names) = split_count(&bytes[..entries_at]);
        let mut rest = Reader::new(&bytes[entries_at..]);
        while !rest.is_empty() {
            check_entry(&mut rest, count)?;
        }
        if u32::try_from(bytes.len()).is_err() {
            return Err(BadEffect::OutOfRange);
        }
        let mut body = Body {
            bytes: bytes.to_vec(),
            last: first,
            node_bytes: FRAME_BYTES + integer_bytes(count as i64) + integer_bytes(0),
            live: 0,
            deleted: 0,
            entries_at: entries_at as u32,
            live_at: entries_at as u32,
            before_live: first,
        };
        body.node_bytes += items(names).map(element_bytes).sum::<u64>();
        let mut live_before = None;
        for entry in ChunkEntries::new(bytes, entries_at, entries_at, first) {
            if entry.is_deleted {
                body.deleted += 1;
            } else if entry.id >= first && live_before.is_none_or(|before| entry.id > before) {
                live_before = Some(entry.id);
                body.live += 1;
            } else {
                return Err(BadEffect::OutOfRange);
            }
            body.last = entry.id;
            body.node_bytes += entry.node_bytes(first);
        }
        if body.live + body.deleted == 0 {
            return Err(BadEffect::OutOfRange);
        }
        let mut chunk = Chunk { first, body: Box::new(body) };
        chunk.skip_deleted();
        Ok(chunk)
    }
}

/// Writes the flags and the id of an entry that follows another.
fn put_head(out: &mut Vec<u8>, id: StreamId, before: StreamId, mut flags: u8) {
    let ms = id.ms.wrapping_sub(before.ms);
    let (seq, implied) = match ms {
        0 => (id.seq.wrapping_sub(before.seq), 1),
        _ => (id.seq, 0),
    };
    if ms == 0 {
        flags |= SAME_MS;
    } else if ms <= SHORT_MS_MAX {
        flags |= (ms as u8) << 4;
    }
    if seq == implied {
        flags |= IMPLIED_SEQ;
    }
    out.push(flags);
    if ms > SHORT_MS_MAX {
        put_number(ms, out);
    }
    if seq != implied {
        put_number(seq, out);
    }
}

/// Writes the number of bytes that follow the byte at `at`, in as many bytes as needed.
fn close_length(bytes: &mut Vec<u8>, at: usize) {
    let len = bytes.len() - at - 1;
    if len < 0x80 {
        bytes[at] = len as u8;
        return;
    }
    let mut number = Vec::with_capacity(10);
    put_number(len as u64, &mut number);
    bytes.splice(at..=at, number);
}

/// True when an entry has the names of its chunk.
#[inline]
fn has_names(names: &[u8], fields: &[Field<'_>]) -> bool {
    let (count, mut names) = split_count(names);
    count == fields.len()
        && fields.iter().all(|(name, _)| {
            let is_same = item_is(names, name);
            names = &names[item_len(names)..];
            is_same
        })
}

/// Splits off a count. The bytes are known to begin with one.
#[inline]
fn split_count(bytes: &[u8]) -> (usize, &[u8]) {
    let mut reader = Reader::new(bytes);
    let count = reader.number().expect("a chunk is checked when it is read") as usize;
    (count, reader.rest())
}

fn items(mut bytes: &[u8]) -> impl Iterator<Item = Scalar<'_>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let (item, len) = read_item(bytes);
        bytes = &bytes[len..];
        Some(item)
    })
}

/// Checks the names of the first entry, and returns where they end.
fn check_names(bytes: &[u8]) -> Result<usize, BadEffect> {
    let mut reader = Reader::new(bytes);
    let count = reader.count()?;
    check_items(&mut reader, count)?;
    Ok(bytes.len() - reader.rest().len())
}

/// Checks an entry at the front of untrusted bytes, in a chunk with `names` names.
fn check_entry(reader: &mut Reader<'_>, names: usize) -> Result<(), BadEffect> {
    let flags = reader.byte()?;
    match (flags & SAME_MS != 0, flags >> 4) {
        (true, 0) | (false, 1..) => {}
        (true, _) => return Err(BadEffect::OutOfRange),
        (false, 0) => _ = reader.number()?,
    }
    if flags & IMPLIED_SEQ == 0 {
        reader.number()?;
    }
    let shares_names = flags & SAME_NAMES != 0;
    if shares_names && names <= PASSED_OVER_MAX {
        return check_items(reader, names);
    }
    let mut body = Reader::new(reader.bytes()?);
    let count = match shares_names {
        true => names,
        false => body.count()?.checked_mul(2).ok_or(BadEffect::OutOfRange)?,
    };
    check_items(&mut body, count)?;
    if body.is_empty() { Ok(()) } else { Err(BadEffect::OutOfRange) }
}

/// Checks `count` items at the front of untrusted bytes.
fn check_items(reader: &mut Reader<'_>, count: usize) -> Result<(), BadEffect> {
    for _ in 0..count {
        let len = checked_item_len(reader.rest()).ok_or(BadEffect::CutShort)?;
        reader.slice(len)?;
    }
    Ok(())
}

/// The entries of a chunk, including deleted ones.
#[derive(Clone)]
pub(super) struct ChunkEntries<'a> {
    bytes: &'a [u8],
    names: &'a [u8],
    /// How many names there are.
    count: usize,
    at: usize,
    before: StreamId,
}

impl<'a> ChunkEntries<'a> {
    /// Iterates from an entry on, with the id before it, in a chunk whose names end at `names_end`.
    fn new(bytes: &'a [u8], names_end: usize, at: usize, before: StreamId) -> ChunkEntries<'a> {
        let names = &bytes[..names_end];
        ChunkEntries { bytes, names, count: split_count(names).0, at, before }
    }
}

impl<'a> Iterator for ChunkEntries<'a> {
    type Item = EntryRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<EntryRef<'a>> {
        let at = self.at;
        let flags = *self.bytes.get(at)?;
        let mut cursor = at + 1;
        let mut number = || {
            let mut value = 0;
            let mut shift = 0;
            loop {
                let byte = self.bytes[cursor];
                cursor += 1;
                value |= u64::from(byte & 0x7f) << shift;
                if byte & 0x80 == 0 {
                    return value;
                }
                shift += 7;
            }
        };
        let id = if flags & SAME_MS != 0 {
            let more = if flags & IMPLIED_SEQ != 0 { 1 } else { number() };
            StreamId { ms: self.before.ms, seq: self.before.seq.wrapping_add(more) }
        } else {
            let more = if flags >> 4 != 0 { u64::from(flags >> 4) } else { number() };
            let seq = if flags & IMPLIED_SEQ != 0 { 0 } else { number() };
            StreamId { ms: self.before.ms.wrapping_add(more), seq }
        };
        let shares_names = flags & SAME_NAMES != 0;
        let len = match shares_names && self.count <= PASSED_OVER_MAX {
            true => (0..self.count).fold(0, |len, _| len + item_len(&self.bytes[cursor + len..])),
            false => number() as usize,
        };
        let body = &self.bytes[cursor..cursor + len];
        self.at = cursor + len;
        self.before = id;
        let names = shares_names.then_some(self.names);
        Some(EntryRef { id, names, body, is_deleted: flags & DELETED != 0, at })
    }
}

/// A readable entry.
#[derive(Clone, Copy)]
pub struct EntryRef<'a> {
    pub id: StreamId,
    /// The names of its chunk, if it shares them.
    names: Option<&'a [u8]>,
    body: &'a [u8],
    pub(super) is_deleted: bool,
    /// Where it begins in its chunk.
    at: usize,
}

impl<'a> EntryRef<'a> {
    /// How many fields it has.
    #[inline]
    pub fn len(&self) -> usize {
        split_count(self.names.unwrap_or(self.body)).0
    }

    /// True only in a forged file: an entry has at least one field.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when it shares the names of its chunk.
    pub(super) fn shares_names(&self) -> bool {
        self.names.is_some()
    }

    /// Its fields, each a name and a value.
    #[inline]
    pub fn fields(&self) -> Fields<'a> {
        match self.names {
            Some(names) => Fields { names: split_count(names).1, values: Some(self.body) },
            None => Fields { names: split_count(self.body).1, values: None },
        }
    }

    /// Its bytes in Redis's form.
    fn node_bytes(&self, first: StreamId) -> u64 {
        let mut bytes = integer_bytes(0)
            + integer_bytes(self.id.ms.wrapping_sub(first.ms) as i64)
            + integer_bytes(self.id.seq.wrapping_sub(first.seq) as i64);
        let mut elements = 3 + self.len();
        if !self.shares_names() {
            elements += self.len() + 1;
            bytes += integer_bytes(self.len() as i64);
        }
        for (name, value) in self.fields() {
            bytes += element_bytes(value) + if self.shares_names() { 0 } else { element_bytes(name) };
        }
        bytes + integer_bytes(elements as i64)
    }
}

/// The fields of an entry.
pub struct Fields<'a> {
    names: &'a [u8],
    /// The values, if they are not interleaved with the names.
    values: Option<&'a [u8]>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Scalar<'a>, Scalar<'a>);

    #[inline]
    fn next(&mut self) -> Option<(Scalar<'a>, Scalar<'a>)> {
        let values = self.values.unwrap_or(self.names);
        if values.is_empty() {
            return None;
        }
        let (name, name_len) = read_item(self.names);
        self.names = &self.names[name_len..];
        let (value, value_len) = read_item(self.values.unwrap_or(self.names));
        match &mut self.values {
            Some(values) => *values = &values[value_len..],
            None => self.names = &self.names[value_len..],
        }
        Some((name, value))
    }
}
