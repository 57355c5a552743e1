//! Changes of hashes: what they are, how they are applied, how they are encoded. Knows when a small hash becomes a
//! large one; refuses to know how either is laid out.

use super::packed::{self, Packed, Pair};
use super::{FieldTable, Form, PACKED, TYPE, Thresholds};
use crate::encoding::{BadEffect, Reader, put_bytes, put_deadline, put_names, put_number};
use crate::types::{
    Applied, Cause, Entry, Fate, Lists, Object, PACKED_BYTES_MAX, PACKED_ELEMENTS_MAX, RecordFields, Shapes,
};
use smallvec::SmallVec;

/// A change of a hash.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// These fields have these values; of several pairs with one name the last one wins.
    Set { fields: &'a [Pair<'a>], keep_deadlines: bool },
    /// These fields are deleted; when none is left, so is the key.
    Delete { fields: &'a [&'a [u8]], cause: Cause },
    /// The field expires at this instant, or never.
    Deadline { field: &'a [u8], deadline: Option<u64> },
}

/// The first byte of an encoded change. IMPORTANT: append only; journals on disk hold these numbers.
mod tag {
    pub(super) const SET: u8 = 1;
    pub(super) const SET_KEEPING_DEADLINES: u8 = 2;
    pub(super) const DELETE: u8 = 3;
    pub(super) const EXPIRE: u8 = 4;
    pub(super) const DEADLINE: u8 = 5;
}

impl<'a> Change<'a> {
    #[inline]
    pub(in crate::types) fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Change::Set { fields, keep_deadlines } => {
                out.push(if keep_deadlines { tag::SET_KEEPING_DEADLINES } else { tag::SET });
                put_number(fields.len() as u64, out);
                for (field, value) in fields {
                    put_bytes(field, out);
                    put_bytes(value, out);
                }
            }
            Change::Delete { fields, cause } => {
                out.push(if cause == Cause::Expired { tag::EXPIRE } else { tag::DELETE });
                put_names(fields, out);
            }
            Change::Deadline { field, deadline } => {
                out.push(tag::DEADLINE);
                put_bytes(field, out);
                put_deadline(deadline, out);
            }
        }
    }

    pub(in crate::types) fn decode<'l: 'a>(
        reader: &mut Reader<'l>,
        lists: &'a mut Lists<'l>,
    ) -> Result<Change<'a>, BadEffect> {
        match reader.byte()? {
            tag @ (tag::SET | tag::SET_KEEPING_DEADLINES) => {
                let count = reader.count_of_elements()?;
                lists.pairs.clear();
                for _ in 0..count {
                    lists.pairs.push((reader.bytes()?, reader.bytes()?));
                }
                Ok(Change::Set { fields: &lists.pairs, keep_deadlines: tag == tag::SET_KEEPING_DEADLINES })
            }
            tag @ (tag::DELETE | tag::EXPIRE) => {
                reader.names(&mut lists.names)?;
                let cause = if tag == tag::EXPIRE { Cause::Expired } else { Cause::Deleted };
                Ok(Change::Delete { fields: &lists.names, cause })
            }
            tag::DEADLINE => Ok(Change::Deadline { field: reader.bytes()?, deadline: reader.deadline()? }),
            unknown => Err(BadEffect::UnknownChange(TYPE.tag, unknown)),
        }
    }

    #[inline]
    pub(in crate::types) fn fate(&self) -> Fate {
        match *self {
            Change::Set { .. } => Fate::Gains { replaces: false },
            Change::Delete { cause, .. } => Fate::Loses(cause),
            Change::Deadline { .. } => Fate::Deadline,
        }
    }

    pub(in crate::types) fn event(&self) -> &'static str {
        match self {
            Change::Set { .. } => "hset",
            Change::Delete { .. } => "hdel",
            Change::Deadline { deadline: Some(_), .. } => "hexpire",
            Change::Deadline { deadline: None, .. } => "hpersist",
        }
    }

    #[inline]
    pub(in crate::types) fn record_fields(&self) -> RecordFields<'a> {
        match *self {
            Change::Set { fields, .. } => RecordFields::Set(fields),
            Change::Delete { fields, .. } => RecordFields::Named(fields),
            Change::Deadline { .. } => RecordFields::Any,
        }
    }

    /// Applies the change to an entry that holds a hash.
    #[inline]
    pub(in crate::types) fn apply(&self, entry: &mut Entry, shapes: &mut Shapes, thresholds: &Thresholds) -> Applied {
        match *self {
            Change::Set { fields, keep_deadlines } => {
                Applied::counted(set(entry, fields, keep_deadlines, shapes, thresholds))
            }
            Change::Delete { fields, .. } => delete(entry, fields, shapes),
            Change::Deadline { field, deadline } => {
                set_deadline(entry, field, deadline, shapes);
                Applied::counted(1)
            }
        }
    }

    /// The new entry that the change creates for a missing key.
    #[inline]
    pub(in crate::types) fn create(
        &self,
        name: &[u8],
        shapes: &mut Shapes,
        thresholds: &Thresholds,
    ) -> Option<(Entry, Applied)> {
        match *self {
            Change::Set { fields, .. } => {
                let (entry, created) = create(name, fields, shapes, thresholds);
                Some((entry, Applied::counted(created)))
            }
            Change::Delete { .. } | Change::Deadline { .. } => None,
        }
    }
}

fn longest(fields: &[Pair<'_>]) -> usize {
    fields.iter().map(|(field, value)| field.len().max(value.len())).max().unwrap_or(0)
}

fn set(
    entry: &mut Entry,
    fields: &[Pair<'_>],
    keep_deadlines: bool,
    shapes: &mut Shapes,
    thresholds: &Thresholds,
) -> usize {
    let longest = longest(fields);
    let too_long = longest > thresholds.value_bytes_max;
    if entry.kind() == PACKED {
        let count_max = Packed::new(entry.body(), shapes).len() + fields.len();
        if longest <= PACKED_BYTES_MAX && !too_long && count_max <= thresholds.entries_max.min(PACKED_ELEMENTS_MAX) {
            return packed::set(entry, fields, shapes);
        }
        unpack(entry, shapes);
    }
    let Some(Object::Hash(table)) = entry.object_mut() else {
        panic!("a change of a hash was recorded for another type")
    };
    let created = fields.iter().filter(|(field, value)| table.set(field, value, keep_deadlines)).count();
    if too_long || table.len() > thresholds.entries_max {
        table.set_form(Form::Large);
    }
    created
}

fn create(name: &[u8], fields: &[Pair<'_>], shapes: &mut Shapes, thresholds: &Thresholds) -> (Entry, usize) {
    let longest = longest(fields);
    let too_long = longest > thresholds.value_bytes_max;
    let fits = fields.len() <= thresholds.entries_max.min(PACKED_ELEMENTS_MAX);
    if too_long || longest > PACKED_BYTES_MAX || !fits {
        let mut table = FieldTable::from_pairs(fields.iter().copied(), Form::Small);
        if too_long || table.len() > thresholds.entries_max {
            table.set_form(Form::Large);
        }
        let created = table.len();
        return (Entry::with_object(name, Box::new(Object::Hash(table)), None), created);
    }
    let mut distinct: SmallVec<[Pair<'_>; 16]> = SmallVec::with_capacity(fields.len());
    for (field, value) in fields {
        match distinct.iter_mut().find(|(name, _)| name == field) {
            Some(pair) => pair.1 = value,
            None => distinct.push((field, value)),
        }
    }
    (packed::create(name, &distinct, shapes, None), distinct.len())
}

fn delete(entry: &mut Entry, fields: &[&[u8]], shapes: &mut Shapes) -> Applied {
    let mut applied = Applied::default();
    for field in fields {
        if entry.kind() == PACKED {
            let packed = Packed::new(entry.body(), shapes);
            applied.set_emptied(packed.len() == 1 && packed.get(field).is_some());
            applied.count += usize::from(applied.emptied() || packed::remove(entry, field, shapes));
        } else if let Some(Object::Hash(table)) = entry.object_mut() {
            applied.count += usize::from(table.remove(field));
            applied.set_emptied(table.is_empty());
        }
        if applied.emptied() {
            break;
        }
    }
    applied
}

fn set_deadline(entry: &mut Entry, field: &[u8], deadline: Option<u64>, shapes: &mut Shapes) {
    if entry.kind() == PACKED {
        if deadline.is_none() {
            return;
        }
        unpack(entry, shapes);
    }
    if let Some(Object::Hash(table)) = entry.object_mut() {
        table.set_deadline(field, deadline);
    }
}

/// Turns a packed hash into a table.
fn unpack(entry: &mut Entry, shapes: &mut Shapes) {
    let mut table = FieldTable::default();
    for (field, value) in Packed::new(entry.body(), shapes).iter() {
        field.scalar().with_bytes(|field| value.with_bytes(|value| table.set(field, value, false)));
    }
    packed::release(entry.body(), shapes);
    entry.set_object(Box::new(Object::Hash(table)));
}
