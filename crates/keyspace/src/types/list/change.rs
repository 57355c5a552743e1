//! Changes of lists: their definition, application and encoding. Knows when a list changes its form; refuses to know
//! how each form is laid out.

use super::{ChunkedList, EMPTY_BYTES, Form, PACKED, Packed, Side, TYPE, Thresholds, packed};
use crate::encoding::{BadEffect, Reader, put_bytes, put_names, put_number};
use crate::storage::Scalar;
use crate::types::{Applied, Cause, Entry, Fate, Lists, Object};

/// A change of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// These elements were pushed at that end, one by one. Its count is the new length.
    Push { side: Side, elements: &'a [&'a [u8]] },
    /// This many elements were removed at that end; when none is left, the key is deleted.
    Pop { side: Side, count: usize },
    /// The element at this index has this value.
    Set { index: usize, element: &'a [u8] },
    /// This element is inserted at this index; those at it and after it move.
    Insert { index: usize, element: &'a [u8] },
    /// This many elements equal to this one are removed, those nearest to that end.
    Remove { side: Side, count: usize, element: &'a [u8] },
}

/// The first byte of an encoded change. IMPORTANT: append only; journals on disk hold these numbers.
mod tag {
    pub(super) const PUSH_LEFT: u8 = 1;
    pub(super) const PUSH_RIGHT: u8 = 2;
    pub(super) const POP_LEFT: u8 = 3;
    pub(super) const POP_RIGHT: u8 = 4;
    pub(super) const SET: u8 = 5;
    pub(super) const INSERT: u8 = 6;
    pub(super) const REMOVE_LEFT: u8 = 7;
    pub(super) const REMOVE_RIGHT: u8 = 8;
}

impl<'a> Change<'a> {
    #[inline]
    pub(in crate::types) fn encode(&self, out: &mut Vec<u8>) {
        let sided = |side: Side, left: u8, right: u8| if side == Side::Left { left } else { right };
        match *self {
            Change::Push { side, elements } => {
                out.push(sided(side, tag::PUSH_LEFT, tag::PUSH_RIGHT));
                put_names(elements, out);
            }
            Change::Pop { side, count } => {
                out.push(sided(side, tag::POP_LEFT, tag::POP_RIGHT));
                put_number(count as u64, out);
            }
            Change::Set { index, element } => {
                out.push(tag::SET);
                put_number(index as u64, out);
                put_bytes(element, out);
            }
            Change::Insert { index, element } => {
                out.push(tag::INSERT);
                put_number(index as u64, out);
                put_bytes(element, out);
            }
            Change::Remove { side, count, element } => {
                out.push(sided(side, tag::REMOVE_LEFT, tag::REMOVE_RIGHT));
                put_number(count as u64, out);
                put_bytes(element, out);
            }
        }
    }

    pub(in crate::types) fn decode<'l: 'a>(
        reader: &mut Reader<'l>,
        lists: &'a mut Lists<'l>,
    ) -> Result<Change<'a>, BadEffect> {
        let tag = reader.byte()?;
        let side = match tag {
            tag::PUSH_LEFT | tag::POP_LEFT | tag::REMOVE_LEFT => Side::Left,
            _ => Side::Right,
        };
        match tag {
            tag::PUSH_LEFT | tag::PUSH_RIGHT => {
                reader.names(&mut lists.names)?;
                match lists.names.as_slice() {
                    [] => Err(BadEffect::OutOfRange),
                    elements => Ok(Change::Push { side, elements }),
                }
            }
            tag::POP_LEFT | tag::POP_RIGHT => Ok(Change::Pop { side, count: reader.count()? }),
            tag::SET => Ok(Change::Set { index: reader.count()?, element: reader.bytes()? }),
            tag::INSERT => Ok(Change::Insert { index: reader.count()?, element: reader.bytes()? }),
            tag::REMOVE_LEFT | tag::REMOVE_RIGHT => {
                Ok(Change::Remove { side, count: reader.count()?, element: reader.bytes()? })
            }
            unknown => Err(BadEffect::UnknownChange(TYPE.tag, unknown)),
        }
    }

    #[inline]
    pub(in crate::types) fn fate(&self) -> Fate {
        match self {
            Change::Push { .. } | Change::Set { .. } | Change::Insert { .. } => Fate::Gains { replaces: false },
            Change::Pop { .. } | Change::Remove { .. } => Fate::Loses(Cause::Deleted),
        }
    }

    pub(in crate::types) fn event(&self) -> &'static str {
        match self {
            Change::Push { side: Side::Left, .. } => "lpush",
            Change::Push { side: Side::Right, .. } => "rpush",
            Change::Pop { side: Side::Left, .. } => "lpop",
            Change::Pop { side: Side::Right, .. } => "rpop",
            Change::Set { .. } => "lset",
            Change::Insert { .. } => "linsert",
            Change::Remove { .. } => "lrem",
        }
    }

    /// Applies the change to an entry that holds a list. A change that does not fit, as damaged bytes may not, has no
    /// effect.
    #[inline]
    pub(in crate::types) fn apply(&self, entry: &mut Entry, thresholds: &Thresholds) -> Applied {
        match *self {
            Change::Push { side, elements } => {
                grow(entry, elements, thresholds);
                Applied::counted(push(entry, side, elements))
            }
            Change::Pop { side, count } => pop(entry, side, count, thresholds),
            Change::Set { index, element } => Applied::counted(set(entry, index, element, thresholds)),
            Change::Insert { index, element } => Applied::counted(insert(entry, index, element, thresholds)),
            Change::Remove { side, count, element } => remove(entry, side, count, element, thresholds),
        }
    }

    /// Creates the entry that the change makes of a missing key.
    #[inline]
    pub(in crate::types) fn create(&self, name: &[u8], thresholds: &Thresholds) -> Option<(Entry, Applied)> {
        match *self {
            Change::Push { side, elements } => {
                let form = form_with(0, EMPTY_BYTES, elements, thresholds);
                let entry = match side {
                    Side::Left => create(name, elements.iter().rev().copied(), form, None),
                    Side::Right => create(name, elements.iter().copied(), form, None),
                };
                Some((entry, Applied::counted(elements.len())))
            }
            Change::Pop { .. } | Change::Set { .. } | Change::Insert { .. } | Change::Remove { .. } => None,
        }
    }
}

/// Creates an entry for a list of these elements, at least one.
pub(super) fn create<'e>(
    name: &[u8],
    elements: impl Iterator<Item = &'e [u8]> + Clone,
    form: Form,
    deadline: Option<u64>,
) -> Entry {
    if form == Form::Small
        && let Some(entry) = packed::create(name, elements.clone(), deadline)
    {
        return entry;
    }
    let mut list = ChunkedList::default();
    list.set_form(form);
    elements.for_each(|element| list.push(Side::Right, element));
    Entry::with_object(name, Box::new(Object::List(list)), deadline)
}

/// The form of a list of that size to which these elements are added. As in Redis, what they take beyond their own bytes
/// does not count yet.
fn form_with(count: usize, bytes: usize, elements: &[&[u8]], thresholds: &Thresholds) -> Form {
    let more: usize = elements.iter().map(|element| element.len()).sum();
    match thresholds.allow_small(count + elements.len(), bytes + more) {
        true => Form::Small,
        false => Form::Large,
    }
}

/// Makes a small list a large one if it is too large for another form with these elements.
#[inline]
fn grow(entry: &mut Entry, elements: &[&[u8]], thresholds: &Thresholds) {
    let list = super::list(entry);
    if list.form() == Form::Small && form_with(list.len(), list.listpack_bytes(), elements, thresholds) == Form::Large {
        if entry.kind() == PACKED {
            unpack(entry);
        }
        chunked_mut(entry).set_form(Form::Large);
    }
}

/// Makes a large list that has lost elements a small one if it is small enough, and packs it if possible.
#[inline]
fn shrink(entry: &mut Entry, thresholds: &Thresholds) {
    let list = chunked_mut(entry);
    if list.form() == Form::Large && !list.has_many_chunks_for(thresholds.bytes_max()) {
        let list = super::list(entry);
        if thresholds.allow_small_again(list.len(), list.listpack_bytes()) {
            chunked_mut(entry).set_form(Form::Small);
        }
    }
    pack_again(entry);
}

#[inline]
fn push(entry: &mut Entry, side: Side, elements: &[&[u8]]) -> usize {
    if entry.kind() == PACKED {
        if let Some(count) = packed::push(entry, side, elements) {
            return count;
        }
        unpack(entry);
    }
    let list = chunked_mut(entry);
    elements.iter().for_each(|element| list.push(side, element));
    list.len()
}

#[inline]
fn pop(entry: &mut Entry, side: Side, count: usize, thresholds: &Thresholds) -> Applied {
    let len = super::list(entry).len();
    if count >= len {
        let mut applied = Applied::counted(len);
        applied.set_emptied(true);
        return applied;
    }
    if entry.kind() == PACKED {
        packed::pop(entry, side, count);
    } else {
        chunked_mut(entry).pop(side, count);
        shrink(entry, thresholds);
    }
    Applied::counted(count)
}

fn set(entry: &mut Entry, index: usize, element: &[u8], thresholds: &Thresholds) -> usize {
    if index >= super::list(entry).len() {
        return 0;
    }
    grow(entry, &[element], thresholds);
    if entry.kind() == PACKED {
        if packed::set(entry, index, Scalar::of(element)) {
            return 1;
        }
        unpack(entry);
    }
    chunked_mut(entry).set(index, element);
    if super::form(entry) == Form::Large {
        shrink(entry, thresholds);
    }
    1
}

fn insert(entry: &mut Entry, index: usize, element: &[u8], thresholds: &Thresholds) -> usize {
    let len = super::list(entry).len();
    if index > len {
        return len;
    }
    grow(entry, &[element], thresholds);
    if entry.kind() == PACKED {
        if packed::insert(entry, index, Scalar::of(element)) {
            return len + 1;
        }
        unpack(entry);
    }
    chunked_mut(entry).insert(index, element);
    len + 1
}

fn remove(entry: &mut Entry, side: Side, count: usize, element: &[u8], thresholds: &Thresholds) -> Applied {
    let mut applied = Applied::default();
    if entry.kind() == PACKED {
        let (list, value) = (Packed::new(entry.body()), Scalar::of(element));
        let equal: Vec<usize> =
            list.items().enumerate().filter(|(_, (_, found))| *found == value).map(|(number, _)| number).collect();
        let gone = match side {
            Side::Left => &equal[..equal.len().min(count)],
            Side::Right => &equal[equal.len().saturating_sub(count)..],
        };
        applied.count = gone.len();
        if gone.len() == list.len() {
            applied.set_emptied(true);
        } else if !gone.is_empty() {
            packed::keep(entry, |number| gone.binary_search(&number).is_err());
        }
        return applied;
    }
    let list = chunked_mut(entry);
    applied.count = list.remove(side, count, element);
    match list.is_empty() {
        true => applied.set_emptied(true),
        false => shrink(entry, thresholds),
    }
    applied
}

#[inline]
fn chunked_mut(entry: &mut Entry) -> &mut ChunkedList {
    match entry.object_mut() {
        Some(Object::List(list)) => list,
        _ => panic!("a change of a list was recorded for another type"),
    }
}

/// Turns a packed list into chunks.
#[cold]
fn unpack(entry: &mut Entry) {
    let mut list = ChunkedList::default();
    for (_, element) in Packed::new(entry.body()).items() {
        element.with_bytes(|element| list.push(Side::Right, element));
    }
    entry.set_object(Box::new(Object::List(list)));
}

/// Packs a list that has become small.
#[inline]
fn pack_again(entry: &mut Entry) {
    if let Some(body) = chunked_mut(entry).packed_again() {
        entry.set_body(PACKED, &body);
    }
}
