//! The changes of a stream: their definition, application and encoding.

use super::chunk::Field;
use super::group::{Delivery, Group};
use super::id::StreamId;
use super::log::Thresholds;
use super::{Stream, TYPE};
use crate::encoding::{BadEffect, Reader, put_bytes, put_number, put_signed};
use crate::types::{Applied, Cause, Entry, Fate, Lists, Object};

/// A change of a stream. Times are in unix milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// The new last entry.
    Append { id: StreamId, fields: &'a [Field<'a>] },
    /// The entries up to this id are removed.
    Trim { upto: StreamId },
    /// These entries are removed.
    Delete { ids: &'a [StreamId] },
    /// Sets the last assigned id, the number of entries ever added, and the highest deleted id.
    SetId { last: StreamId, added: u64, max_deleted: StreamId },
    /// A group is created, which has read up to that id.
    CreateGroup { group: &'a [u8], last: StreamId, entries_read: Option<u64> },
    /// A group has read up to that id.
    SetGroup { group: &'a [u8], last: StreamId, entries_read: Option<u64> },
    /// The group is removed.
    DestroyGroup { group: &'a [u8] },
    /// The group gets this consumer, seen at that time.
    CreateConsumer { group: &'a [u8], consumer: &'a [u8], at_ms: i64 },
    /// The group loses this consumer and its pending entries.
    DeleteConsumer { group: &'a [u8], consumer: &'a [u8] },
    /// The group has read up to an id; these entries become pending for the consumer, delivered once, at that time.
    Deliver {
        group: &'a [u8],
        consumer: &'a [u8],
        last: StreamId,
        entries_read: Option<u64>,
        at_ms: i64,
        ids: &'a [StreamId],
    },
    /// These entries are now pending for the consumer, seen at that time.
    Claim { group: &'a [u8], consumer: &'a [u8], at_ms: i64, deliveries: &'a [Delivery] },
    /// These entries are no longer pending.
    Acknowledge { group: &'a [u8], ids: &'a [StreamId] },
    /// The group has read up to that id, by XCLAIM.
    Advance { group: &'a [u8], last: StreamId },
}

/// The first byte of an encoded change. IMPORTANT: append only; journals on disk hold these numbers.
mod tag {
    pub(super) const APPEND: u8 = 1;
    pub(super) const TRIM: u8 = 2;
    pub(super) const DELETE: u8 = 3;
    pub(super) const SET_ID: u8 = 4;
    pub(super) const CREATE_GROUP: u8 = 5;
    pub(super) const SET_GROUP: u8 = 6;
    pub(super) const DESTROY_GROUP: u8 = 7;
    pub(super) const CREATE_CONSUMER: u8 = 8;
    pub(super) const DELETE_CONSUMER: u8 = 9;
    pub(super) const DELIVER: u8 = 10;
    pub(super) const CLAIM: u8 = 11;
    pub(super) const ACKNOWLEDGE: u8 = 12;
    pub(super) const ADVANCE: u8 = 13;
}

pub(super) fn put_id(id: StreamId, out: &mut Vec<u8>) {
    put_number(id.ms, out);
    put_number(id.seq, out);
}

pub(super) fn id(reader: &mut Reader<'_>) -> Result<StreamId, BadEffect> {
    Ok(StreamId { ms: reader.number()?, seq: reader.number()? })
}

/// Encodes ids, each by its difference to the previous one.
fn put_ids<'a>(ids: impl ExactSizeIterator<Item = &'a StreamId>, out: &mut Vec<u8>) {
    put_number(ids.len() as u64, out);
    let mut before = 0;
    for id in ids {
        put_signed(id.ms.wrapping_sub(before) as i64, out);
        put_number(id.seq, out);
        before = id.ms;
    }
}

fn ids(reader: &mut Reader<'_>, out: &mut Vec<StreamId>) -> Result<(), BadEffect> {
    out.clear();
    let mut ms = 0u64;
    for _ in 0..reader.count()? {
        ms = ms.wrapping_add(reader.signed()? as u64);
        out.push(StreamId { ms, seq: reader.number()? });
    }
    Ok(())
}

/// Encodes an optional count: 0 when it is not known, else the count plus one.
pub(super) fn put_entries_read(entries_read: Option<u64>, out: &mut Vec<u8>) {
    put_number(entries_read.map_or(0, |read| read.saturating_add(1)), out);
}

pub(super) fn entries_read(reader: &mut Reader<'_>) -> Result<Option<u64>, BadEffect> {
    Ok(reader.number()?.checked_sub(1))
}

impl<'a> Change<'a> {
    #[inline]
    pub(in crate::types) fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Change::Append { id, fields } => {
                out.push(tag::APPEND);
                put_id(id, out);
                put_number(fields.len() as u64, out);
                for (name, value) in fields {
                    put_bytes(name, out);
                    put_bytes(value, out);
                }
            }
            Change::Trim { upto } => {
                out.push(tag::TRIM);
                put_id(upto, out);
            }
            Change::Delete { ids } => {
                out.push(tag::DELETE);
                put_ids(ids.iter(), out);
            }
            Change::SetId { last, added, max_deleted } => {
                out.push(tag::SET_ID);
                put_id(last, out);
                put_number(added, out);
                put_id(max_deleted, out);
            }
            Change::CreateGroup { group, last, entries_read } => {
                out.push(tag::CREATE_GROUP);
                put_bytes(group, out);
                put_id(last, out);
                put_entries_read(entries_read, out);
            }
            Change::SetGroup { group, last, entries_read } => {
                out.push(tag::SET_GROUP);
                put_bytes(group, out);
                put_id(last, out);
                put_entries_read(entries_read, out);
            }
            Change::DestroyGroup { group } => {
                out.push(tag::DESTROY_GROUP);
                put_bytes(group, out);
            }
            Change::CreateConsumer { group, consumer, at_ms } => {
                out.push(tag::CREATE_CONSUMER);
                put_bytes(group, out);
                put_bytes(consumer, out);
                put_signed(at_ms, out);
            }
            Change::DeleteConsumer { group, consumer } => {
                out.push(tag::DELETE_CONSUMER);
                put_bytes(group, out);
                put_bytes(consumer, out);
            }
            Change::Deliver { group, consumer, last, entries_read, at_ms, ids } => {
                out.push(tag::DELIVER);
                put_bytes(group, out);
                put_bytes(consumer, out);
                put_id(last, out);
                put_entries_read(entries_read, out);
                put_signed(at_ms, out);
                put_ids(ids.iter(), out);
            }
            Change::Claim { group, consumer, at_ms, deliveries } => {
                out.push(tag::CLAIM);
                put_bytes(group, out);
                put_bytes(consumer, out);
                put_signed(at_ms, out);
                put_ids(deliveries.iter().map(|delivery| &delivery.id), out);
                for delivery in deliveries {
                    // It is usually the time of the change.
                    put_signed(delivery.delivered_ms.wrapping_sub(at_ms), out);
                    put_number(delivery.deliveries, out);
                }
            }
            Change::Acknowledge { group, ids } => {
                out.push(tag::ACKNOWLEDGE);
                put_bytes(group, out);
                put_ids(ids.iter(), out);
            }
            Change::Advance { group, last } => {
                out.push(tag::ADVANCE);
                put_bytes(group, out);
                put_id(last, out);
            }
        }
    }

    pub(in crate::types) fn decode<'l: 'a>(
        reader: &mut Reader<'l>,
        lists: &'a mut Lists<'l>,
    ) -> Result<Change<'a>, BadEffect> {
        Ok(match reader.byte()? {
            tag::APPEND => {
                let id = id(reader)?;
                lists.pairs.clear();
                for _ in 0..reader.count_of_elements()? {
                    lists.pairs.push((reader.bytes()?, reader.bytes()?));
                }
                Change::Append { id, fields: &lists.pairs }
            }
            tag::TRIM => Change::Trim { upto: id(reader)? },
            tag::DELETE => {
                ids(reader, &mut lists.ids)?;
                Change::Delete { ids: &lists.ids }
            }
            tag::SET_ID => Change::SetId { last: id(reader)?, added: reader.number()?, max_deleted: id(reader)? },
            tag::CREATE_GROUP => {
                Change::CreateGroup { group: reader.bytes()?, last: id(reader)?, entries_read: entries_read(reader)? }
            }
            tag::SET_GROUP => {
                Change::SetGroup { group: reader.bytes()?, last: id(reader)?, entries_read: entries_read(reader)? }
            }
            tag::DESTROY_GROUP => Change::DestroyGroup { group: reader.bytes()? },
            tag::CREATE_CONSUMER => {
                Change::CreateConsumer { group: reader.bytes()?, consumer: reader.bytes()?, at_ms: reader.signed()? }
            }
            tag::DELETE_CONSUMER => Change::DeleteConsumer { group: reader.bytes()?, consumer: reader.bytes()? },
            tag::DELIVER => {
                let (group, consumer, last) = (reader.bytes()?, reader.bytes()?, id(reader)?);
                let (entries_read, at_ms) = (entries_read(reader)?, reader.signed()?);
                ids(reader, &mut lists.ids)?;
                Change::Deliver { group, consumer, last, entries_read, at_ms, ids: &lists.ids }
            }
            tag::CLAIM => {
                let (group, consumer, at_ms) = (reader.bytes()?, reader.bytes()?, reader.signed()?);
                ids(reader, &mut lists.ids)?;
                lists.deliveries.clear();
                for id in &lists.ids {
                    let delivered_ms = at_ms.wrapping_add(reader.signed()?);
                    lists.deliveries.push(Delivery { id: *id, delivered_ms, deliveries: reader.number()? });
                }
                Change::Claim { group, consumer, at_ms, deliveries: &lists.deliveries }
            }
            tag::ACKNOWLEDGE => {
                let group = reader.bytes()?;
                ids(reader, &mut lists.ids)?;
                Change::Acknowledge { group, ids: &lists.ids }
            }
            tag::ADVANCE => Change::Advance { group: reader.bytes()?, last: id(reader)? },
            unknown => return Err(BadEffect::UnknownChange(TYPE.tag, unknown)),
        })
    }

    #[inline]
    pub(in crate::types) fn fate(&self) -> Fate {
        match self {
            // A client that waits for a group must learn that it is removed.
            Change::Append { .. } | Change::CreateGroup { .. } | Change::DestroyGroup { .. } => {
                Fate::Gains { replaces: false }
            }
            Change::Trim { .. } | Change::Delete { .. } => Fate::Loses(Cause::Deleted),
            Change::SetId { .. }
            | Change::SetGroup { .. }
            | Change::CreateConsumer { .. }
            | Change::DeleteConsumer { .. }
            | Change::Deliver { .. }
            | Change::Claim { .. }
            | Change::Acknowledge { .. }
            | Change::Advance { .. } => Fate::Amended,
        }
    }

    /// Empty where Redis has no event.
    pub(in crate::types) fn event(&self) -> &'static str {
        match self {
            Change::Append { .. } => "xadd",
            Change::Trim { .. } => "xtrim",
            Change::Delete { .. } => "xdel",
            Change::SetId { .. } => "xsetid",
            Change::CreateGroup { .. } => "xgroup-create",
            Change::SetGroup { .. } => "xgroup-setid",
            Change::DestroyGroup { .. } => "xgroup-destroy",
            Change::CreateConsumer { .. } => "xgroup-createconsumer",
            Change::DeleteConsumer { .. } => "xgroup-delconsumer",
            Change::Deliver { .. } | Change::Claim { .. } | Change::Acknowledge { .. } | Change::Advance { .. } => "",
        }
    }

    /// Applies the change to an entry that holds a stream. A change that does not fit, which only damage can cause, has
    /// no effect.
    #[inline]
    pub(in crate::types) fn apply(&self, entry: &mut Entry, thresholds: &Thresholds) -> Applied {
        match entry.object_mut() {
            Some(Object::Stream(stream)) => Applied::counted(self.apply_to(stream, thresholds)),
            _ => panic!("a change of a stream was recorded for another type"),
        }
    }

    fn apply_to(&self, stream: &mut Stream, thresholds: &Thresholds) -> usize {
        match *self {
            Change::Append { id, fields } => {
                let follows = id > stream.last;
                if follows {
                    stream.append(id, fields, thresholds);
                }
                follows.into()
            }
            Change::Trim { upto } => stream.trim(upto),
            Change::Delete { ids } => stream.delete(ids),
            Change::SetId { last, added, max_deleted } => {
                let fits = stream.last_entry().is_none_or(|entry| entry <= last);
                if fits {
                    (stream.last, stream.added, stream.max_deleted) = (last, added, max_deleted);
                }
                fits.into()
            }
            Change::CreateGroup { group, last, entries_read } => {
                let is_new = !stream.groups.contains_key(group);
                if is_new {
                    stream.groups.insert(group.into(), Group::new(last, entries_read));
                }
                is_new.into()
            }
            Change::SetGroup { group, last, entries_read } => in_group(stream, group, |group| {
                (group.last, group.entries_read) = (last, entries_read);
                1
            }),
            Change::DestroyGroup { group } => stream.groups.remove(group).is_some().into(),
            Change::CreateConsumer { group, consumer, at_ms } => {
                in_group(stream, group, |group| group.create_consumer(consumer, at_ms).into())
            }
            Change::DeleteConsumer { group, consumer } => {
                in_group(stream, group, |group| group.delete_consumer(consumer).into())
            }
            Change::Deliver { group, consumer, last, entries_read, at_ms, ids } => in_group(stream, group, |group| {
                (group.last, group.entries_read) = (last, entries_read);
                let Some(consumer) = group.see(consumer, at_ms) else { return 0 };
                for id in ids {
                    group.deliver(consumer, Delivery { id: *id, delivered_ms: at_ms, deliveries: 1 });
                }
                ids.len()
            }),
            Change::Claim { group, consumer, at_ms, deliveries } => in_group(stream, group, |group| {
                let Some(consumer) = group.see(consumer, at_ms) else { return 0 };
                deliveries.iter().for_each(|delivery| group.deliver(consumer, *delivery));
                deliveries.len()
            }),
            Change::Acknowledge { group, ids } => {
                in_group(stream, group, |group| ids.iter().filter(|id| group.acknowledge(**id)).count())
            }
            Change::Advance { group, last } => in_group(stream, group, |group| {
                group.last = last;
                1
            }),
        }
    }

    /// A new entry that the change makes of a key that was missing.
    pub(in crate::types) fn create(&self, name: &[u8], thresholds: &Thresholds) -> Option<(Entry, Applied)> {
        match self {
            Change::Append { .. } | Change::CreateGroup { .. } => {
                let mut stream = Stream::default();
                let count = self.apply_to(&mut stream, thresholds);
                Some((Entry::with_object(name, Box::new(Object::Stream(stream)), None), Applied::counted(count)))
            }
            _ => None,
        }
    }
}

/// Changes a group, if there is one of that name.
fn in_group(stream: &mut Stream, name: &[u8], change: impl FnOnce(&mut Group) -> usize) -> usize {
    stream.groups.get_mut(name).map_or(0, change)
}
