//! Streams in Redis's RDB encoding: nodes of packed entries, and consumer groups. Knows how both are framed and the
//! invariants of ids; refuses to know how entries are stored.
//!
//! A node is a listpack. It begins with the number of entries, the number of deleted entries, and the field names of
//! the first entry:
//! ```text
//! entries | deleted | fields | name … | 0
//! ```
//! then each entry, with its id relative to that of the node, and its number of elements at the end:
//! ```text
//! flags | ms | seq | fields | name | value … | elements        without names and count if SAME_NAMES
//! ```

use super::Emit;
use crate::packed::{Element, Malformed, listpack};
use crate::rdb::BadPayload;
use crate::rdb::reader::{Reader, Source};
use crate::rdb::writer::{VERSION_ACTIVE, VERSION_PLAIN, Writer};
use std::borrow::Cow;
use std::collections::BTreeSet;

pub(crate) mod kind {
    /// Redis 5.
    pub(crate) const STREAM_FIRST: u8 = 15;
    /// Redis 7.0: with counts of entries ever added and read.
    pub(crate) const STREAM: u8 = 19;
    /// Redis 7.2: with the time at which a consumer was last active.
    pub(crate) const STREAM_ACTIVE: u8 = 21;
}

/// All type bytes of streams.
pub(crate) const KINDS: [u8; 3] = [kind::STREAM_FIRST, kind::STREAM, kind::STREAM_ACTIVE];

const DELETED: i64 = 1;
const SAME_NAMES: i64 = 2;

/// Milliseconds and sequence number of an id.
pub type EntryId = (u64, u64);

/// A stream.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Stream {
    /// In the order of their ids.
    pub nodes: Vec<StreamNode>,
    /// The last id that was assigned.
    pub last: EntryId,
    /// Since Redis 7.0.
    pub counts: Option<StreamCounts>,
    /// No name twice.
    pub groups: Vec<StreamGroup>,
}

/// Counters that Redis keeps since 7.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCounts {
    pub first: EntryId,
    pub max_deleted: EntryId,
    pub added: u64,
}

/// Consecutive entries. The ids of entries that are not deleted ascend, starting with the node's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamNode {
    pub first: EntryId,
    listpack: Vec<u8>,
}

/// A consumer group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamGroup {
    pub name: Vec<u8>,
    pub last: EntryId,
    /// `None` when it is not known.
    pub entries_read: Option<u64>,
    /// No name twice.
    pub consumers: Vec<StreamConsumer>,
    /// Pending for no consumer, in the order in which they were released (XNACK). No payload that is read here has them.
    pub released: Vec<StreamPending>,
}

/// A consumer and its pending entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamConsumer {
    pub name: Vec<u8>,
    pub seen_ms: i64,
    /// -1 when it never got an entry. Before Redis 7.2 it is `seen_ms`.
    pub active_ms: i64,
    /// In the order of their ids. No other consumer has one of them.
    pub pending: Vec<StreamPending>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPending {
    pub id: EntryId,
    pub delivered_ms: i64,
    pub deliveries: u64,
}

/// A name and a value.
pub type NodeField<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// An entry of a node. It owns no bytes of the node: many entries may share a long name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntry<'a> {
    pub id: EntryId,
    pub is_deleted: bool,
    /// The entry has the field names of the node.
    pub shares_names: bool,
    /// Names and values.
    pub fields: Vec<NodeField<'a>>,
}

impl StreamNode {
    /// The names of the first entry's fields.
    pub fn names(&self) -> Vec<Vec<u8>> {
        let mut elements = self.elements();
        elements.names().map(|names| names.into_iter().map(Element::to_vec).collect()).unwrap_or_default()
    }

    /// Its listpack.
    pub fn bytes(&self) -> &[u8] {
        &self.listpack
    }

    /// All entries, including deleted ones.
    pub fn entries(&self) -> Vec<NodeEntry<'_>> {
        self.read().unwrap_or_default()
    }

    fn elements(&self) -> NodeElements<impl Iterator<Item = Result<Element<'_>, Malformed>>> {
        NodeElements { elements: listpack::elements(&self.listpack).into_iter().flatten() }
    }

    fn read(&self) -> Result<Vec<NodeEntry<'_>>, BadPayload> {
        let mut elements = NodeElements { elements: listpack::elements(&self.listpack)? };
        let (live, deleted) = elements.counts()?;
        let names: Vec<Cow<'_, [u8]>> = elements.field_names()?.into_iter().map(Element::into_text).collect();
        let mut entries = Vec::new();
        while let Some(flags) = elements.next() {
            let flags = integer(flags?)?;
            let ms = self.first.0.wrapping_add(elements.integer()? as u64);
            let seq = self.first.1.wrapping_add(elements.integer()? as u64);
            let shares_names = flags & SAME_NAMES != 0;
            let mut fields = Vec::new();
            let mut count = 3;
            if shares_names {
                for name in &names {
                    fields.push((name.clone(), elements.element()?.into_text()));
                }
                count += names.len();
            } else {
                for _ in 0..elements.integer()? {
                    fields.push((elements.element()?.into_text(), elements.element()?.into_text()));
                }
                count += 1 + 2 * fields.len();
            }
            if elements.integer()? != count as i64 {
                return Err(BadPayload::Format);
            }
            entries.push(NodeEntry { id: (ms, seq), is_deleted: flags & DELETED != 0, shares_names, fields });
        }
        let deleted_found = entries.iter().filter(|entry| entry.is_deleted).count() as i64;
        if entries.is_empty() || deleted != deleted_found || live.checked_add(deleted) != Some(entries.len() as i64) {
            return Err(BadPayload::Format);
        }
        Ok(entries)
    }
}

/// The elements of a node.
struct NodeElements<I> {
    elements: I,
}

impl<'a, I: Iterator<Item = Result<Element<'a>, Malformed>>> NodeElements<I> {
    fn next(&mut self) -> Option<Result<Element<'a>, Malformed>> {
        self.elements.next()
    }

    fn element(&mut self) -> Result<Element<'a>, BadPayload> {
        Ok(self.elements.next().ok_or(BadPayload::Format)??)
    }

    fn integer(&mut self) -> Result<i64, BadPayload> {
        integer(self.element()?)
    }

    /// How many entries are not deleted, and how many are.
    fn counts(&mut self) -> Result<(i64, i64), BadPayload> {
        Ok((self.integer()?, self.integer()?))
    }

    fn field_names(&mut self) -> Result<Vec<Element<'a>>, BadPayload> {
        let mut names = Vec::new();
        for _ in 0..self.integer()? {
            names.push(self.element()?);
        }
        match self.integer()? {
            0 => Ok(names),
            _ => Err(BadPayload::Format),
        }
    }

    fn names(&mut self) -> Result<Vec<Element<'a>>, BadPayload> {
        self.counts()?;
        self.field_names()
    }
}

fn integer(element: Element<'_>) -> Result<i64, BadPayload> {
    match element {
        Element::Integer(number) => Ok(number),
        Element::Bytes(_) => Err(BadPayload::Format),
    }
}

/// Builds a node, entry by entry.
pub struct NodeWriter {
    first: EntryId,
    listpack: listpack::Writer,
    /// The number of elements of the entry that is being written, without the count itself.
    elements: usize,
}

impl NodeWriter {
    /// Starts a node of about `bytes` bytes, with these counts of live and deleted entries, whose first entry has these
    /// field names.
    pub fn new<'n>(
        first: EntryId,
        bytes: usize,
        live: u64,
        deleted: u64,
        names: impl ExactSizeIterator<Item = &'n [u8]>,
    ) -> NodeWriter {
        let mut listpack = listpack::Writer::with_capacity(bytes);
        listpack.push_integer(live as i64);
        listpack.push_integer(deleted as i64);
        listpack.push_integer(names.len() as i64);
        names.for_each(|name| listpack.push(name));
        listpack.push_integer(0);
        NodeWriter { first, listpack, elements: 0 }
    }

    /// Begins an entry. [`NodeWriter::text`] or [`NodeWriter::number`] then adds each name, unless the entry shares the
    /// node's names, and each value; [`NodeWriter::end_entry`] ends it.
    pub fn begin_entry(&mut self, id: EntryId, is_deleted: bool, shares_names: bool, fields: usize) {
        let listpack = &mut self.listpack;
        let deleted = if is_deleted { DELETED } else { 0 };
        listpack.push_integer(deleted | if shares_names { SAME_NAMES } else { 0 });
        listpack.push_integer(id.0.wrapping_sub(self.first.0) as i64);
        listpack.push_integer(id.1.wrapping_sub(self.first.1) as i64);
        self.elements = 3 + fields;
        if !shares_names {
            listpack.push_integer(fields as i64);
            self.elements += 1 + fields;
        }
    }

    pub fn text(&mut self, text: &[u8]) {
        self.listpack.push(text);
    }

    /// Adds a text that is the canonical spelling of a number.
    pub fn number(&mut self, number: i64) {
        self.listpack.push_integer(number);
    }

    pub fn end_entry(&mut self) {
        self.listpack.push_integer(self.elements as i64);
    }

    pub fn finish(self) -> StreamNode {
        StreamNode { first: self.first, listpack: self.listpack.finish() }
    }
}

impl<'a, S: Source<'a>> Reader<S> {
    /// Reads a stream of one of the kinds above.
    pub(crate) fn stream(&mut self, kind: u8) -> Result<Stream, S::Error> {
        let mut stream = Stream::default();
        for _ in 0..self.length()? {
            let first = self.string()?;
            let first = <[u8; 16]>::try_from(&*first).map_err(|_| self.source.refusal(BadPayload::Format))?;
            let listpack = self.string()?.into_owned();
            stream.nodes.push(StreamNode { first: id_of(first), listpack });
        }
        self.length()?; // how many entries there are, which the nodes say too
        stream.last = self.entry_id()?;
        if kind != kind::STREAM_FIRST {
            let (first, max_deleted) = (self.entry_id()?, self.entry_id()?);
            stream.counts = Some(StreamCounts { first, max_deleted, added: self.length()? });
        }
        for _ in 0..self.length()? {
            stream.groups.push(self.stream_group(kind)?);
        }
        check(&stream).map_err(|why| self.source.refusal(why))?;
        Ok(stream)
    }

    fn entry_id(&mut self) -> Result<EntryId, S::Error> {
        Ok((self.length()?, self.length()?))
    }

    fn raw_id(&mut self) -> Result<EntryId, S::Error> {
        Ok(id_of(self.source.array()?))
    }

    fn stream_group(&mut self, kind: u8) -> Result<StreamGroup, S::Error> {
        let (name, last) = (self.string()?.into_owned(), self.entry_id()?);
        let entries_read = match kind {
            kind::STREAM_FIRST => None,
            // -1 means that it is not known.
            _ => Some(self.length()?).filter(|read| *read != u64::MAX),
        };
        let mut pending = Vec::new();
        for _ in 0..self.length()? {
            let (id, delivered_ms) = (self.raw_id()?, self.u64()? as i64);
            pending.push(StreamPending { id, delivered_ms, deliveries: self.length()? });
        }
        pending.sort_unstable_by_key(|pending| pending.id);
        let mut consumers = Vec::new();
        let mut owned = 0;
        for _ in 0..self.length()? {
            let (name, seen_ms) = (self.string()?.into_owned(), self.u64()? as i64);
            let active_ms = if kind == kind::STREAM_ACTIVE { self.u64()? as i64 } else { seen_ms };
            let mut consumer = StreamConsumer { name, seen_ms, active_ms, pending: Vec::new() };
            for _ in 0..self.length()? {
                let id = self.raw_id()?;
                let found = pending.binary_search_by_key(&id, |pending| pending.id);
                let at = found.map_err(|_| self.source.refusal(BadPayload::Format))?;
                consumer.pending.push(pending[at]);
            }
            owned += consumer.pending.len();
            consumers.push(consumer);
        }
        // No id occurs twice, so equal counts mean that every pending entry has an owner.
        match owned == pending.len() {
            true => Ok(StreamGroup { name, last, entries_read, consumers, released: Vec::new() }),
            false => Err(self.source.refusal(BadPayload::Format)),
        }
    }
}

fn id_of(bytes: [u8; 16]) -> EntryId {
    let id = u128::from_be_bytes(bytes);
    ((id >> 64) as u64, id as u64)
}

fn id_bytes((ms, seq): EntryId) -> [u8; 16] {
    (u128::from(ms) << 64 | u128::from(seq)).to_be_bytes()
}

/// Refuses a stream whose ids do not ascend, or with a name or pending entry that occurs twice: Redis never writes one.
fn check(stream: &Stream) -> Result<(), BadPayload> {
    let mut last_live: Option<EntryId> = None;
    let mut last_first: Option<EntryId> = None;
    for node in &stream.nodes {
        if last_first.is_some_and(|before| node.first <= before) || last_live.is_some_and(|live| node.first <= live) {
            return Err(BadPayload::Format);
        }
        last_first = Some(node.first);
        for entry in node.read()?.iter().filter(|entry| !entry.is_deleted) {
            if entry.id < node.first || last_live.is_some_and(|before| entry.id <= before) {
                return Err(BadPayload::Format);
            }
            last_live = Some(entry.id);
        }
    }
    let mut groups = BTreeSet::new();
    let groups_are_fine = stream.groups.iter().all(|group| {
        let (mut names, mut pending) = (BTreeSet::new(), BTreeSet::new());
        groups.insert(&group.name)
            && group.consumers.iter().all(|consumer| {
                names.insert(&consumer.name) && consumer.pending.iter().all(|entry| pending.insert(entry.id))
            })
    });
    match groups_are_fine && last_live.is_none_or(|live| live <= stream.last) {
        true => Ok(()),
        false => Err(BadPayload::Format),
    }
}

/// The stream as a payload, which Redis 7.2 and later restore. Entries that were released get a consumer.
pub(crate) fn encode_stream(stream: &Stream) -> Vec<u8> {
    encode_as(kind::STREAM_ACTIVE, VERSION_ACTIVE, &stream.with_consumers())
}

/// The stream as a payload of a kind that has its counts. No entry is released.
fn encode_as(kind: u8, version: u16, stream: &Stream) -> Vec<u8> {
    let bytes: usize = stream.nodes.iter().map(|node| node.listpack.len()).sum();
    let mut writer = Writer::with_capacity(kind, bytes);
    let id = |writer: &mut Writer, (ms, seq): EntryId| {
        writer.length(ms);
        writer.length(seq);
    };
    writer.length(stream.nodes.len() as u64);
    let mut count = 0;
    for node in &stream.nodes {
        writer.string(&id_bytes(node.first));
        writer.string(&node.listpack);
        count += node.elements().counts().map_or(0, |(live, _)| live as u64);
    }
    writer.length(count);
    id(&mut writer, stream.last);
    let counts = stream.counts.unwrap_or(StreamCounts { first: (0, 0), max_deleted: (0, 0), added: count });
    id(&mut writer, counts.first);
    id(&mut writer, counts.max_deleted);
    writer.length(counts.added);
    writer.length(stream.groups.len() as u64);
    for group in &stream.groups {
        writer.string(&group.name);
        id(&mut writer, group.last);
        writer.length(group.entries_read.unwrap_or(u64::MAX));
        let mut pending: Vec<&StreamPending> = group.consumers.iter().flat_map(|consumer| &consumer.pending).collect();
        pending.sort_unstable_by_key(|pending| pending.id);
        writer.length(pending.len() as u64);
        for entry in pending {
            writer.bytes.extend(id_bytes(entry.id));
            writer.bytes.extend(entry.delivered_ms.to_le_bytes());
            writer.length(entry.deliveries);
        }
        writer.length(group.consumers.len() as u64);
        for consumer in &group.consumers {
            writer.string(&consumer.name);
            writer.bytes.extend(consumer.seen_ms.to_le_bytes());
            if kind == kind::STREAM_ACTIVE {
                writer.bytes.extend(consumer.active_ms.to_le_bytes());
            }
            writer.length(consumer.pending.len() as u64);
            consumer.pending.iter().for_each(|entry| writer.bytes.extend(id_bytes(entry.id)));
        }
    }
    writer.finish(version)
}

/// The consumer of entries that were released, in a group that has no consumer.
const RELEASED: &[u8] = b"released";

impl Stream {
    /// The stream with every pending entry at a consumer, as servers without XNACK have it. What was released goes to the
    /// first consumer of its group. It was last delivered at time 0, so every other consumer can claim it at once.
    fn with_consumers(&self) -> Cow<'_, Stream> {
        if self.groups.iter().all(|group| group.released.is_empty()) {
            return Cow::Borrowed(self);
        }
        let mut stream = self.clone();
        for group in stream.groups.iter_mut().filter(|group| !group.released.is_empty()) {
            if group.consumers.is_empty() {
                let (seen_ms, active_ms) = (0, -1);
                group.consumers.push(StreamConsumer {
                    name: RELEASED.to_vec(),
                    seen_ms,
                    active_ms,
                    pending: Vec::new(),
                });
            }
            let pending = &mut group.consumers[0].pending;
            pending.append(&mut group.released);
            pending.sort_unstable_by_key(|pending| pending.id);
        }
        Cow::Owned(stream)
    }

    /// The number of pending entries whose entry was deleted.
    fn orphans(&self) -> u64 {
        let entries = || self.nodes.iter().flat_map(StreamNode::entries).filter(|entry| !entry.is_deleted);
        let mut ids: Option<BTreeSet<EntryId>> = None;
        let consumers = self.groups.iter().flat_map(|group| &group.consumers);
        let pending = consumers.flat_map(|consumer| &consumer.pending);
        pending
            .filter(|pending| {
                !ids.get_or_insert_with(|| entries().map(|entry| entry.id).collect()).contains(&pending.id)
            })
            .count() as u64
    }
}

/// Emits the commands that create this stream at a key that does not exist, and returns how many pending entries they
/// cannot create. Deleted entries leave no trace but in its counts, as in Redis's own files, and in what is pending of
/// them. No command makes a pending entry without an entry (XCLAIM drops it, and Redis's own append-only files lose
/// it), but RESTORE does; so a stream that has some is emitted as a payload, unless that is longer than
/// `payload_bytes_max`.
///
/// Entries that were released get a consumer, from which XNACK takes them again, in the order in which they were released. A
/// server that does not have that command leaves them with the consumer.
pub(crate) fn commands<E>(name: &[u8], stream: &Stream, payload_bytes_max: usize, emit: Emit<'_, E>) -> Result<u64, E> {
    let orphans = with_consumers(name, &stream.with_consumers(), payload_bytes_max, emit)?;
    for group in &stream.groups {
        for alike in group.released.chunk_by(|one, next| one.deliveries == next.deliveries) {
            for some in alike.chunks(super::ELEMENTS_PER_COMMAND) {
                let (count, deliveries) = (some.len().to_string(), some[0].deliveries.to_string());
                let ids: Vec<Vec<u8>> = some.iter().map(|pending| text(pending.id)).collect();
                let mut args: Vec<&[u8]> = vec![b"XNACK", name, &group.name, b"SILENT", b"IDS", count.as_bytes()];
                args.extend(ids.iter().map(Vec::as_slice));
                args.extend([&b"RETRYCOUNT"[..], deliveries.as_bytes()]);
                emit(&args)?;
            }
        }
    }
    Ok(orphans)
}

/// An id as commands have it.
fn text((ms, seq): EntryId) -> Vec<u8> {
    format!("{ms}-{seq}").into_bytes()
}

/// The commands of a stream without released entries.
fn with_consumers<E>(name: &[u8], stream: &Stream, payload_bytes_max: usize, emit: Emit<'_, E>) -> Result<u64, E> {
    let orphans = stream.orphans();
    if orphans > 0 {
        // Redis 7.0 restores it too.
        let payload = encode_as(kind::STREAM, VERSION_PLAIN, stream);
        if payload.len() <= payload_bytes_max {
            emit(&[b"RESTORE", name, b"0", &payload, b"REPLACE"])?;
            return Ok(0);
        }
    }
    let mut count = 0u64;
    for entry in stream.nodes.iter().flat_map(StreamNode::entries).filter(|entry| !entry.is_deleted) {
        let id = text(entry.id);
        let mut args: Vec<&[u8]> = vec![b"XADD", name, &id];
        entry.fields.iter().for_each(|(field, value)| args.extend([&**field, &**value]));
        emit(&args)?;
        count += 1;
    }
    if count == 0 {
        // An entry that is trimmed at once leaves an empty stream. No entry has the id 0-0.
        let id = text(stream.last.max((0, 1)));
        emit(&[b"XADD", name, b"MAXLEN", b"0", &id, b"x", b"y"])?;
    }
    let (last, counts) = (text(stream.last), stream.counts);
    let added = counts.map_or(count, |counts| counts.added).to_string();
    let max_deleted = text(counts.map_or((0, 0), |counts| counts.max_deleted));
    emit(&[b"XSETID", name, &last, b"ENTRIESADDED", added.as_bytes(), b"MAXDELETEDID", &max_deleted])?;
    for group in &stream.groups {
        let (last, read) = (text(group.last), group.entries_read.map_or(-1, |read| read as i64).to_string());
        emit(&[b"XGROUP", b"CREATE", name, &group.name, &last, b"ENTRIESREAD", read.as_bytes()])?;
        for consumer in &group.consumers {
            emit(&[b"XGROUP", b"CREATECONSUMER", name, &group.name, &consumer.name])?;
            for entry in &consumer.pending {
                let (id, at) = (text(entry.id), entry.delivered_ms.to_string());
                let deliveries = entry.deliveries.to_string();
                emit(&[
                    b"XCLAIM",
                    name,
                    &group.name,
                    &consumer.name,
                    b"0",
                    &id,
                    b"TIME",
                    at.as_bytes(),
                    b"RETRYCOUNT",
                    deliveries.as_bytes(),
                    b"JUSTID",
                    b"FORCE",
                ])?;
            }
        }
    }
    Ok(orphans)
}

#[cfg(test)]
mod tests;
