//! The changes of a stream: their definition, application and encoding.

use super::chunk::Field;
use super::group::{Delivery, Group, NEVER_ACTIVE};
use super::id::StreamId;
use super::idempotency::{Idempotency, Remembered, Retention};
use super::log::Thresholds;
use super::{Removed, Stream, TYPE};
use crate::encoding::{BadEffect, Reader, put_bytes, put_number, put_signed};
use crate::types::{Applied, Cause, Entry, FREED_AT_ONCE_MAX, Fate, Lists, Object};

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
    /// The consumer was seen at that time and got nothing new; these entries were delivered to it again.
    See { group: &'a [u8], consumer: &'a [u8], at_ms: i64, deliveries: &'a [Delivery] },
    /// These entries are now pending for no consumer, in this order behind those that were released before. Their times
    /// are 0.
    Release { group: &'a [u8], deliveries: &'a [Delivery] },
    /// How long and how many ids of producers are kept. If that differs, all are forgotten.
    Configure { retention: Retention },
    /// A producer has added an entry with this id. Ids are kept as configured.
    Remember { remembered: Remembered<'a> },
    /// A producer has used an id again.
    Duplicate,
    /// The group keeps its pending entries in the order in which they can be claimed. Changes nothing that can be seen.
    Order { group: &'a [u8] },
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
    pub(super) const SEE: u8 = 14;
    pub(super) const RELEASE: u8 = 15;
    pub(super) const ORDER: u8 = 16;
    pub(super) const CONFIGURE: u8 = 17;
    pub(super) const REMEMBER: u8 = 18;
    pub(super) const DUPLICATE: u8 = 19;
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

/// Encodes who gets entries and when, and the entries.
fn put_deliveries(group: &[u8], consumer: &[u8], at_ms: i64, deliveries: &[Delivery], out: &mut Vec<u8>) {
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

fn deliveries(reader: &mut Reader<'_>, at_ms: i64, lists: &mut Lists<'_>) -> Result<(), BadEffect> {
    ids(reader, &mut lists.ids)?;
    lists.deliveries.clear();
    for id in &lists.ids {
        let delivered_ms = at_ms.wrapping_add(reader.signed()?);
        lists.deliveries.push(Delivery { id: *id, delivered_ms, deliveries: reader.number()? });
    }
    Ok(())
}

pub(super) fn put_retention(retention: Retention, out: &mut Vec<u8>) {
    put_number(retention.duration_ms, out);
    put_number(retention.ids_max, out);
}

pub(super) fn retention(reader: &mut Reader<'_>) -> Result<Retention, BadEffect> {
    Ok(Retention { duration_ms: reader.number()?, ids_max: reader.number()? })
}

pub(super) fn put_remembered(remembered: Remembered<'_>, out: &mut Vec<u8>) {
    put_bytes(remembered.producer, out);
    put_bytes(remembered.id, out);
    put_id(remembered.entry, out);
    put_number(remembered.at_ms, out);
}

pub(super) fn remembered<'a>(reader: &mut Reader<'a>) -> Result<Remembered<'a>, BadEffect> {
    Ok(Remembered { producer: reader.bytes()?, id: reader.bytes()?, entry: id(reader)?, at_ms: reader.number()? })
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
                put_deliveries(group, consumer, at_ms, deliveries, out);
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
            Change::See { group, consumer, at_ms, deliveries } => {
                out.push(tag::SEE);
                put_deliveries(group, consumer, at_ms, deliveries, out);
            }
            Change::Release { group, deliveries } => {
                out.push(tag::RELEASE);
                put_bytes(group, out);
                put_ids(deliveries.iter().map(|delivery| &delivery.id), out);
                deliveries.iter().for_each(|delivery| put_number(delivery.deliveries, out));
            }
            Change::Order { group } => {
                out.push(tag::ORDER);
                put_bytes(group, out);
            }
            Change::Configure { retention } => {
                out.push(tag::CONFIGURE);
                put_retention(retention, out);
            }
            Change::Remember { remembered } => {
                out.push(tag::REMEMBER);
                put_remembered(remembered, out);
            }
            Change::Duplicate => out.push(tag::DUPLICATE),
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
                deliveries(reader, at_ms, lists)?;
                Change::Claim { group, consumer, at_ms, deliveries: &lists.deliveries }
            }
            tag::ACKNOWLEDGE => {
                let group = reader.bytes()?;
                ids(reader, &mut lists.ids)?;
                Change::Acknowledge { group, ids: &lists.ids }
            }
            tag::ADVANCE => Change::Advance { group: reader.bytes()?, last: id(reader)? },
            tag::SEE => {
                let (group, consumer, at_ms) = (reader.bytes()?, reader.bytes()?, reader.signed()?);
                deliveries(reader, at_ms, lists)?;
                Change::See { group, consumer, at_ms, deliveries: &lists.deliveries }
            }
            tag::RELEASE => {
                let group = reader.bytes()?;
                ids(reader, &mut lists.ids)?;
                lists.deliveries.clear();
                for id in &lists.ids {
                    lists.deliveries.push(Delivery { id: *id, delivered_ms: 0, deliveries: reader.number()? });
                }
                Change::Release { group, deliveries: &lists.deliveries }
            }
            tag::ORDER => Change::Order { group: reader.bytes()? },
            tag::CONFIGURE => Change::Configure { retention: retention(reader)? },
            tag::REMEMBER => Change::Remember { remembered: remembered(reader)? },
            tag::DUPLICATE => Change::Duplicate,
            unknown => return Err(BadEffect::UnknownChange(TYPE.tag, unknown)),
        })
    }

    /// True when [`Stream::take_removed`] may have something afterwards.
    #[inline]
    pub(in crate::types) fn removes_parts(&self) -> bool {
        matches!(self, Change::DestroyGroup { .. } | Change::Configure { .. })
    }

    #[inline]
    pub(in crate::types) fn fate(&self) -> Fate {
        match self {
            // A client that waits for a group must learn that it is removed, and one that claims, of what is released.
            Change::Append { .. }
            | Change::CreateGroup { .. }
            | Change::DestroyGroup { .. }
            | Change::Release { .. } => Fate::Gains { replaces: false },
            Change::Trim { .. } | Change::Delete { .. } => Fate::Loses(Cause::Deleted),
            Change::SetId { .. }
            | Change::SetGroup { .. }
            | Change::CreateConsumer { .. }
            | Change::DeleteConsumer { .. }
            | Change::Deliver { .. }
            | Change::Claim { .. }
            | Change::Acknowledge { .. }
            | Change::Configure { .. }
            | Change::Advance { .. } => Fate::Amended,
            Change::See { .. } | Change::Order { .. } | Change::Remember { .. } | Change::Duplicate => Fate::Noted,
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
            Change::Deliver { .. }
            | Change::Claim { .. }
            | Change::Acknowledge { .. }
            | Change::Advance { .. }
            | Change::See { .. }
            | Change::Release { .. }
            | Change::Order { .. }
            | Change::Configure { .. }
            | Change::Remember { .. }
            | Change::Duplicate => "",
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
            Change::DestroyGroup { group } => {
                let removed = stream.groups.remove(group);
                let count = removed.is_some().into();
                let large = removed.filter(|group| group.len() > FREED_AT_ONCE_MAX);
                stream.removed = large.map(|group| Box::new(Removed::Group { _freed: group }));
                count
            }
            Change::CreateConsumer { group, consumer, at_ms } => {
                in_group(stream, group, |group| group.create_consumer(consumer, at_ms, NEVER_ACTIVE).into())
            }
            Change::DeleteConsumer { group, consumer } => {
                in_group(stream, group, |group| group.delete_consumer(consumer).into())
            }
            Change::Deliver { group, consumer, last, entries_read, at_ms, ids } => in_group(stream, group, |group| {
                (group.last, group.entries_read) = (last, entries_read);
                let Some(consumer) = group.see(consumer, at_ms) else { return 0 };
                if !ids.is_empty() {
                    group.note_active(consumer, at_ms);
                }
                for id in ids {
                    group.deliver(consumer, Delivery { id: *id, delivered_ms: at_ms, deliveries: 1 });
                }
                ids.len()
            }),
            Change::Claim { group, consumer, at_ms, deliveries } => in_group(stream, group, |group| {
                let Some(consumer) = group.see(consumer, at_ms) else { return 0 };
                if !deliveries.is_empty() {
                    group.note_active(consumer, at_ms);
                }
                deliveries.iter().for_each(|delivery| group.deliver(consumer, *delivery));
                deliveries.len()
            }),
            Change::See { group, consumer, at_ms, deliveries } => in_group(stream, group, |group| {
                let Some(consumer) = group.see(consumer, at_ms) else { return 0 };
                deliveries.iter().for_each(|delivery| group.deliver(consumer, *delivery));
                deliveries.len()
            }),
            Change::Release { group, deliveries } => in_group(stream, group, |group| {
                deliveries.iter().for_each(|delivery| group.release(delivery.id, delivery.deliveries));
                deliveries.len()
            }),
            Change::Configure { retention } => {
                let ids = stream.idempotency.get_or_insert_with(|| Box::new(Idempotency::new(retention)));
                let large = ids.configure(retention).filter(|ids| ids.len() > FREED_AT_ONCE_MAX);
                stream.removed = large.map(|ids| Box::new(Removed::Ids { _freed: ids }));
                0
            }
            Change::Remember { remembered } => {
                if let Some(ids) = &mut stream.idempotency {
                    ids.remember(remembered);
                }
                0
            }
            Change::Duplicate => {
                if let Some(ids) = &mut stream.idempotency {
                    ids.duplicates += 1;
                }
                0
            }
            Change::Order { group } => in_group(stream, group, |group| {
                group.order();
                0
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
