//! A whole stream: as the bytes in snapshots and effects, as Redis's formats represent it, and as DEBUG DIGEST hashes
//! it. docs/effect-format.md describes the bytes.

use super::change::{entries_read, id, put_entries_read, put_id, put_remembered, put_retention, remembered, retention};
use super::chunk::{Chunk, EntryRef};
use super::group::{Delivery, Group};
use super::id::StreamId;
use super::idempotency::Idempotency;
use super::{Stream, TYPE, stream};
use crate::digest::Digest;
use crate::encoding::{BadEffect, Reader, put_bytes, put_number, put_signed};
use crate::storage::Scalar;
use crate::types::{Entry, Object, Shapes};

/// Encodings of a stream. IMPORTANT: append only; journals on disk contain these numbers.
mod form {
    /// Each consumer was active when it was seen.
    pub(super) const CHUNKS: u8 = 0;
    pub(super) const ACTIVE: u8 = 1;
    /// The same, with pending entries of each group that were released.
    pub(super) const RELEASED: u8 = 2;
    /// The same, with the ids of producers.
    pub(super) const IDEMPOTENT: u8 = 3;
}

pub(super) fn write(entry: &Entry, _: &Shapes, out: &mut Vec<u8>) {
    put(stream(entry), out);
}

fn put(stream: &Stream, out: &mut Vec<u8>) {
    let consumers = || stream.groups.values().flat_map(Group::consumers);
    let form = match consumers().all(|consumer| consumer.active_ms() == consumer.journalled_seen_ms()) {
        _ if stream.idempotency.is_some() => form::IDEMPOTENT,
        _ if has_released(stream) => form::RELEASED,
        true => form::CHUNKS,
        false => form::ACTIVE,
    };
    out.push(form);
    put_id(stream.last, out);
    put_id(stream.max_deleted, out);
    put_number(stream.added, out);
    put_number(stream.log.chunks().len() as u64, out);
    for chunk in stream.log.chunks() {
        put_id(chunk.first, out);
        put_bytes(chunk.bytes(), out);
    }
    put_number(stream.groups.len() as u64, out);
    for (name, group) in &stream.groups {
        put_bytes(name, out);
        put_id(group.last, out);
        put_entries_read(group.entries_read, out);
        put_number(group.consumers().len() as u64, out);
        for consumer in group.consumers() {
            put_bytes(consumer.name(), out);
            // IMPORTANT: not the latest time, so that a snapshot is what the journal up to it gives.
            put_signed(consumer.journalled_seen_ms(), out);
            if form != form::CHUNKS {
                put_signed(consumer.active_ms(), out);
            }
            put_number(consumer.len() as u64, out);
            for id in consumer.pending(..) {
                let pending = group.get(id).expect("what is pending for a consumer is pending in its group");
                put_id(id, out);
                put_signed(pending.delivered_ms, out);
                put_number(pending.deliveries(), out);
            }
        }
        if form >= form::RELEASED {
            put_number(group.released_len() as u64, out);
            for id in group.released() {
                put_id(id, out);
                put_number(group.get(id).map_or(0, |pending| pending.deliveries()), out);
            }
        }
    }
    if let Some(ids) = &stream.idempotency {
        put_idempotency(ids, out);
    }
}

fn put_idempotency(ids: &Idempotency, out: &mut Vec<u8>) {
    put_retention(ids.retention, out);
    put_number(ids.remembered().count() as u64, out);
    ids.remembered().for_each(|remembered| put_remembered(remembered, out));
    put_number(ids.added, out);
    put_number(ids.duplicates, out);
}

pub(super) fn check(reader: &mut Reader<'_>) -> Result<(), BadEffect> {
    take(reader).map(|_| ())
}

pub(super) fn read(name: &[u8], mut image: Reader<'_>, _: &mut Shapes, deadline: Option<u64>) -> Entry {
    let stream = take(&mut image).expect("an image is checked before it is read");
    Entry::with_object(name, Box::new(Object::Stream(stream)), deadline)
}

fn take(reader: &mut Reader<'_>) -> Result<Stream, BadEffect> {
    let form = reader.byte()?;
    if form > form::IDEMPOTENT {
        return Err(BadEffect::OutOfRange);
    }
    let (last, max_deleted) = (id(reader)?, id(reader)?);
    let mut stream = Stream { last, max_deleted, added: reader.number()?, ..Stream::default() };
    for _ in 0..reader.count()? {
        let first = id(reader)?;
        let chunk = Chunk::read(first, reader.bytes()?)?;
        stream.len += chunk.live();
        if !stream.log.push_chunk(chunk) {
            return Err(BadEffect::OutOfRange);
        }
    }
    stream.first = stream.log.first().unwrap_or_default();
    if stream.last_entry().is_some_and(|entry| entry > last) {
        return Err(BadEffect::OutOfRange);
    }
    for _ in 0..reader.count()? {
        let (name, mut group) = (reader.bytes()?, Group::new(id(reader)?, entries_read(reader)?));
        for _ in 0..reader.count()? {
            let (consumer, seen_ms) = (reader.bytes()?, reader.signed()?);
            let active_ms = if form == form::CHUNKS { seen_ms } else { reader.signed()? };
            if !group.create_consumer(consumer, seen_ms, active_ms) {
                return Err(BadEffect::OutOfRange);
            }
            let number = group.see(consumer, seen_ms).ok_or(BadEffect::OutOfRange)?;
            for _ in 0..reader.count()? {
                let (id, delivered_ms, deliveries) = (id(reader)?, reader.signed()?, reader.number()?);
                if group.get(id).is_some() {
                    return Err(BadEffect::OutOfRange);
                }
                group.deliver(number, Delivery { id, delivered_ms, deliveries });
            }
        }
        let released = if form >= form::RELEASED { reader.count()? } else { 0 };
        for _ in 0..released {
            let (id, deliveries) = (id(reader)?, reader.number()?);
            if group.get(id).is_some() {
                return Err(BadEffect::OutOfRange);
            }
            group.release(id, deliveries);
        }
        if stream.groups.insert(name.into(), group).is_some() {
            return Err(BadEffect::OutOfRange);
        }
    }
    if form == form::IDEMPOTENT {
        let mut ids = Idempotency::new(retention(reader)?);
        for _ in 0..reader.count()? {
            ids.keep(remembered(reader)?);
        }
        (ids.added, ids.duplicates) = (reader.number()?, reader.number()?);
        stream.idempotency = Some(Box::new(ids));
    }
    Ok(stream)
}

/// Appends the image of a stream that came from Redis.
pub fn image_of(from: &formats::Stream, out: &mut Vec<u8>) {
    let to_id = |(ms, seq): formats::EntryId| StreamId { ms, seq };
    let mut stream = Stream { last: to_id(from.last), ..Stream::default() };
    for node in &from.nodes {
        let mut chunk = Chunk::empty(to_id(node.first), node.names().iter().map(|name| &**name));
        for entry in node.entries() {
            let fields: Vec<_> = entry.fields.iter().map(|(name, value)| (&**name, &**value)).collect();
            chunk.push_read(to_id(entry.id), &fields, entry.shares_names, entry.is_deleted);
        }
        stream.len += chunk.live();
        stream.log.push_chunk(chunk);
    }
    stream.first = stream.log.first().unwrap_or_default();
    match from.counts {
        Some(counts) => (stream.max_deleted, stream.added) = (to_id(counts.max_deleted), counts.added),
        None => stream.added = stream.len,
    }
    for group in &from.groups {
        let last = to_id(group.last);
        // Before 7.0 Redis did not count the entries that a group has read.
        let read = if from.counts.is_some() { group.entries_read } else { stream.entries_up_to(last) };
        let mut to = Group::new(last, read);
        for consumer in &group.consumers {
            to.create_consumer(&consumer.name, consumer.seen_ms, consumer.active_ms);
            let Some(number) = to.see(&consumer.name, consumer.seen_ms) else { continue };
            for pending in &consumer.pending {
                let formats::StreamPending { id, delivered_ms, deliveries } = *pending;
                to.deliver(number, Delivery { id: to_id(id), delivered_ms, deliveries });
            }
        }
        stream.groups.insert(group.name.as_slice().into(), to);
    }
    put(&stream, out);
}

/// The stream as Redis's formats represent it, or its image if some of it has no place there: released entries.
pub(super) fn to_redis_or_image(stream: &Stream) -> formats::Value {
    match has_released(stream) {
        true => to_image(stream),
        false => to_redis(stream),
    }
}

/// The stream for another Holdfast: nothing of it is left out, neither released entries nor the ids of producers.
pub fn whole(stream: &Stream) -> formats::Value {
    match has_released(stream) || stream.idempotency.is_some() {
        true => to_image(stream),
        false => to_redis(stream),
    }
}

fn has_released(stream: &Stream) -> bool {
    stream.groups.values().any(|group| group.released_len() > 0)
}

fn to_image(stream: &Stream) -> formats::Value {
    let mut image = Vec::new();
    put(stream, &mut image);
    formats::Value::Own(formats::OwnValue { tag: TYPE.tag, image })
}

/// The stream as Redis's formats represent it, for commands: a payload of Redis's has no place for released entries.
pub fn to_redis(stream: &Stream) -> formats::Value {
    let from_id = |id: StreamId| (id.ms, id.seq);
    let nodes = stream.log.chunks().map(|chunk| {
        let names: Vec<Vec<u8>> = chunk.names().map(|name| name.bytes().into_owned()).collect();
        let names = names.iter().map(|name| &**name);
        let mut writer = formats::NodeWriter::new(
            from_id(chunk.first),
            chunk.node_bytes() as usize,
            chunk.live(),
            chunk.deleted(),
            names,
        );
        for entry in chunk.entries() {
            push_entry(&mut writer, &entry);
        }
        writer.finish()
    });
    let groups = stream.groups.iter().map(|(name, group)| formats::StreamGroup {
        name: name.to_vec(),
        last: from_id(group.last),
        entries_read: group.entries_read,
        consumers: group.consumers().map(|consumer| to_redis_consumer(group, consumer)).collect(),
        released: group.released().map(|id| to_redis_pending(group, id)).collect(),
    });
    let counts = formats::StreamCounts {
        first: from_id(stream.first),
        max_deleted: from_id(stream.max_deleted),
        added: stream.added,
    };
    formats::Value::Stream(Box::new(formats::Stream {
        nodes: nodes.collect(),
        last: from_id(stream.last),
        counts: Some(counts),
        groups: groups.collect(),
    }))
}

fn to_redis_consumer(group: &Group, consumer: &super::Consumer) -> formats::StreamConsumer {
    formats::StreamConsumer {
        name: consumer.name().to_vec(),
        seen_ms: consumer.seen_ms(),
        active_ms: consumer.active_ms(),
        pending: consumer.pending(..).map(|id| to_redis_pending(group, id)).collect(),
    }
}

fn to_redis_pending(group: &Group, id: StreamId) -> formats::StreamPending {
    let pending = group.get(id).expect("what a consumer has, or has released, is pending in its group");
    formats::StreamPending { id: (id.ms, id.seq), delivered_ms: pending.delivered_ms, deliveries: pending.deliveries() }
}

fn push_entry(writer: &mut formats::NodeWriter, entry: &EntryRef<'_>) {
    let push = |writer: &mut formats::NodeWriter, scalar| match scalar {
        Scalar::Bytes(text) => writer.text(text),
        Scalar::Number(number) => writer.number(number),
    };
    let id = (entry.id.ms, entry.id.seq);
    writer.begin_entry(id, entry.is_deleted, entry.shares_names(), entry.len());
    for (name, value) in entry.fields() {
        if !entry.shares_names() {
            push(writer, name);
        }
        push(writer, value);
    }
    writer.end_entry();
}

pub(super) fn digest(entry: &Entry, _: &Shapes, _: u64, digest: &mut Digest) {
    for entry in stream(entry).range(StreamId::MIN, StreamId::MAX) {
        digest.mix(format!("{}.{}", entry.id.ms, entry.id.seq).as_bytes());
        for (name, value) in entry.fields() {
            name.with_bytes(|name| digest.mix(name));
            value.with_bytes(|value| digest.mix(value));
        }
    }
}
