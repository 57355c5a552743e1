//! Changes of sets: their definition, application and encoding. Knows when a set changes its form; refuses to know how
//! each form is laid out.

use super::packed::{MEMBER_BYTES_MAX, MEMBERS_MAX, fits};
use super::{
    Form, INTSET, Intset, MemberTable, PACKED, Packed, SetRef, TYPE, Thresholds, intset, longest, packed, set,
};
use crate::encoding::{BadEffect, Reader, put_names};
use crate::storage::Scalar;
use crate::storage::scalar::canonical_i64;
use crate::types::{Applied, Cause, Entry, Fate, Lists, Object};
use smallvec::SmallVec;

/// A change of a set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// These members are in the set.
    Add { members: &'a [&'a [u8]] },
    /// These members are removed; when none is left, the key is deleted.
    Remove { members: &'a [&'a [u8]] },
    /// The set is stored anew: one that was large may be small again.
    Rebuild,
}

/// The first byte of an encoded change. IMPORTANT: append only; journals on disk hold these numbers.
mod tag {
    pub(super) const ADD: u8 = 1;
    pub(super) const REMOVE: u8 = 2;
    pub(super) const REBUILD: u8 = 3;
}

impl<'a> Change<'a> {
    #[inline]
    pub(in crate::types) fn encode(&self, out: &mut Vec<u8>) {
        let (tag, members) = match *self {
            Change::Add { members } => (tag::ADD, members),
            Change::Remove { members } => (tag::REMOVE, members),
            Change::Rebuild => return out.push(tag::REBUILD),
        };
        out.push(tag);
        put_names(members, out);
    }

    pub(in crate::types) fn decode<'l: 'a>(
        reader: &mut Reader<'l>,
        lists: &'a mut Lists<'l>,
    ) -> Result<Change<'a>, BadEffect> {
        match reader.byte()? {
            tag::ADD => {
                reader.names(&mut lists.names)?;
                match lists.names.as_slice() {
                    [] => Err(BadEffect::OutOfRange),
                    members => Ok(Change::Add { members }),
                }
            }
            tag::REMOVE => {
                reader.names(&mut lists.names)?;
                Ok(Change::Remove { members: &lists.names })
            }
            tag::REBUILD => Ok(Change::Rebuild),
            unknown => Err(BadEffect::UnknownChange(TYPE.tag, unknown)),
        }
    }

    #[inline]
    pub(in crate::types) fn fate(&self) -> Fate {
        match self {
            Change::Add { .. } => Fate::Gains { replaces: false },
            Change::Remove { .. } => Fate::Loses(Cause::Deleted),
            Change::Rebuild => Fate::Noted,
        }
    }

    pub(in crate::types) fn event(&self) -> &'static str {
        match self {
            Change::Add { .. } => "sadd",
            Change::Remove { .. } => "srem",
            Change::Rebuild => "",
        }
    }

    /// Applies the change to an entry that holds a set.
    #[inline]
    pub(in crate::types) fn apply(&self, entry: &mut Entry, thresholds: &Thresholds) -> Applied {
        match *self {
            Change::Add { members } => {
                Applied::counted(members.iter().filter(|member| add(entry, member, thresholds)).count())
            }
            Change::Remove { members } => remove(entry, members),
            Change::Rebuild => {
                rebuild(entry, thresholds);
                Applied::default()
            }
        }
    }

    /// Creates the entry that the change makes of a missing key.
    #[inline]
    pub(in crate::types) fn create(&self, name: &[u8], thresholds: &Thresholds) -> Option<(Entry, Applied)> {
        match *self {
            Change::Add { members } => {
                let (entry, added) = create(name, members, thresholds);
                Some((entry, Applied::counted(added)))
            }
            Change::Remove { .. } | Change::Rebuild => None,
        }
    }
}

/// Creates an entry for a set with these members, and returns how many distinct members it has. As in Redis, the first
/// member and how many were given decide with which form the set begins.
fn create(name: &[u8], members: &[&[u8]], thresholds: &Thresholds) -> (Entry, usize) {
    let begins_as_intset = thresholds.allow_intset(members.len()) && canonical_i64(members[0]).is_some();
    if begins_as_intset {
        let numbers: Option<SmallVec<[i64; 16]>> = members.iter().map(|member| canonical_i64(member)).collect();
        if let Some(mut numbers) = numbers {
            numbers.sort_unstable();
            numbers.dedup();
            return (intset::create(name, &numbers, None), numbers.len());
        }
    }
    let longest = longest(members.iter().map(|member| member.len()));
    // The number of distinct members may be lower than the number given.
    let may_be_small = begins_as_intset || thresholds.allow_small(members.len(), longest);
    if may_be_small && thresholds.allow_small(members.len(), longest) && fits(members.len(), longest) {
        return packed::create(name, members.iter().map(|member| Scalar::Bytes(member)), None);
    }
    let mut table = MemberTable::of(members.iter().map(|member| Scalar::Bytes(member)), Form::Small);
    let added = table.len();
    if !may_be_small || !thresholds.allow_small(added, longest) {
        table.set_large();
    }
    (Entry::with_object(name, Box::new(Object::Set(table)), None), added)
}

/// Adds a member; returns true when it is new.
fn add(entry: &mut Entry, member: &[u8], thresholds: &Thresholds) -> bool {
    if entry.kind() == INTSET {
        let set = Intset::new(entry.body());
        if let Some(number) = canonical_i64(member) {
            let is_new = intset::add(entry, number);
            // IMPORTANT: only for a new number: otherwise Redis does not check the limit.
            if is_new && !thresholds.allow_intset(Intset::new(entry.body()).len()) {
                make_table(entry, Form::Large);
            }
            return is_new;
        }
        match thresholds.allow_small(set.len() + 1, member.len().max(set.longest())) {
            true => leave_intset(entry),
            false => make_table(entry, Form::Large),
        }
    }
    if entry.kind() == PACKED {
        let set = Packed::new(entry.body());
        if set.has(Scalar::Bytes(member)) {
            return false;
        }
        let is_small = thresholds.allow_small(set.len() + 1, member.len());
        if is_small && set.len() < MEMBERS_MAX && member.len() <= MEMBER_BYTES_MAX {
            packed::add(entry, member);
            return true;
        }
        make_table(entry, if is_small { Form::Small } else { Form::Large });
    }
    let table = table_mut(entry);
    let is_new = table.add(member);
    if is_new && !thresholds.allow_small(table.len(), member.len()) {
        table.set_large();
    }
    is_new
}

fn remove(entry: &mut Entry, members: &[&[u8]]) -> Applied {
    let mut applied = Applied::default();
    for member in members {
        let removed = match entry.kind() {
            INTSET => {
                let (number, set) = (canonical_i64(member), Intset::new(entry.body()));
                applied.set_emptied(set.len() == 1 && number.is_some_and(|number| set.has(number)));
                applied.emptied() || number.is_some_and(|number| intset::remove(entry, number))
            }
            PACKED => {
                let set = Packed::new(entry.body());
                applied.set_emptied(set.len() == 1 && set.has(Scalar::Bytes(member)));
                applied.emptied() || packed::remove(entry, member)
            }
            _ => {
                let table = table_mut(entry);
                let removed = table.remove(member);
                applied.set_emptied(table.is_empty());
                removed
            }
        };
        applied.count += usize::from(removed);
        if applied.emptied() {
            break;
        }
    }
    applied
}

fn table_mut(entry: &mut Entry) -> &mut MemberTable {
    match entry.object_mut() {
        Some(Object::Set(table)) => table,
        _ => panic!("a change of a set was recorded for another type"),
    }
}

/// Turns an intset into a small set.
fn leave_intset(entry: &mut Entry) {
    let longest = Intset::new(entry.body()).longest();
    make_small(entry, longest);
}

/// Makes a small set of a large one, if the thresholds allow it.
fn rebuild(entry: &mut Entry, thresholds: &Thresholds) {
    let SetRef::Table(table) = set(entry) else { return };
    // The members are looked at only if they are few.
    if table.form() == Form::Large && thresholds.allow_small(table.len(), 0) {
        let longest = longest(table.iter().map(<[u8]>::len));
        if thresholds.allow_small(table.len(), longest) {
            make_small(entry, longest);
        }
    }
}

/// Turns a set, the longest member of which has so many bytes, into a small one.
fn make_small(entry: &mut Entry, longest: usize) {
    let set = set(entry);
    if !fits(set.len(), longest) {
        return make_table(entry, Form::Small);
    }
    let (packed, _) = packed::create(b"", set.iter(), None);
    entry.set_body(PACKED, packed.body());
}

/// Turns a set that is no table into one, which is reported as that form.
fn make_table(entry: &mut Entry, form: Form) {
    let table = MemberTable::of(set(entry).iter(), form);
    entry.set_object(Box::new(Object::Set(table)));
}
