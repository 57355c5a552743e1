//! Changes of sorted sets: what they are, how they are applied, how they are encoded. Knows when a small set becomes a
//! large one; refuses to know how either is laid out.

use super::image::{put_members, take_members};
use super::{Form, PACKED, Packed, Scored, SortedSet, StoredRef, TYPE, Thresholds, in_order, packed};
use crate::encoding::{BadEffect, Reader, put_names};
use crate::types::{Applied, Cause, Entry, Fate, Lists, Object, PACKED_BYTES_MAX, PACKED_ELEMENTS_MAX};

/// A change of a sorted set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// These members have these scores; of several with one name the last one wins.
    Add { members: &'a [Scored<'a>] },
    /// These members are removed; when none is left, the key is deleted.
    Remove { members: &'a [&'a [u8]] },
}

/// The first byte of an encoded change. IMPORTANT: append only; journals on disk hold these numbers.
mod tag {
    pub(super) const ADD: u8 = 1;
    pub(super) const REMOVE: u8 = 2;
}

impl<'a> Change<'a> {
    #[inline]
    pub(in crate::types) fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Change::Add { members } => {
                out.push(tag::ADD);
                put_members(members.len(), members.iter().copied(), out);
            }
            Change::Remove { members } => {
                out.push(tag::REMOVE);
                put_names(members, out);
            }
        }
    }

    pub(in crate::types) fn decode<'l: 'a>(
        reader: &mut Reader<'l>,
        lists: &'a mut Lists<'l>,
    ) -> Result<Change<'a>, BadEffect> {
        match reader.byte()? {
            tag::ADD => {
                lists.members.clear();
                take_members(reader, |member| lists.members.push(member))?;
                Ok(Change::Add { members: &lists.members })
            }
            tag::REMOVE => {
                reader.names(&mut lists.names)?;
                Ok(Change::Remove { members: &lists.names })
            }
            unknown => Err(BadEffect::UnknownChange(TYPE.tag, unknown)),
        }
    }

    #[inline]
    pub(in crate::types) fn fate(&self) -> Fate {
        match self {
            Change::Add { .. } => Fate::Gains { replaces: false },
            Change::Remove { .. } => Fate::Loses(Cause::Deleted),
        }
    }

    pub(in crate::types) fn event(&self) -> &'static str {
        match self {
            Change::Add { .. } => "zadd",
            Change::Remove { .. } => "zrem",
        }
    }

    /// Applies the change to an entry that holds a sorted set.
    #[inline]
    pub(in crate::types) fn apply(&self, entry: &mut Entry, thresholds: &Thresholds) -> Applied {
        match *self {
            Change::Add { members } => Applied::counted(add(entry, members, thresholds)),
            Change::Remove { members } => remove(entry, members),
        }
    }

    /// The new entry that the change creates for a missing key.
    pub(in crate::types) fn create(&self, name: &[u8], thresholds: &Thresholds) -> Option<(Entry, Applied)> {
        match *self {
            Change::Add { members } => {
                let (entry, added) = create(name, members, thresholds);
                Some((entry, Applied::counted(added)))
            }
            Change::Remove { .. } => None,
        }
    }
}

/// Creates an entry for a set with these members.
fn create(name: &[u8], members: &[Scored<'_>], thresholds: &Thresholds) -> (Entry, usize) {
    if members.len() <= thresholds.entries_max
        && fits_packed(members)
        && !members.iter().any(|(_, name)| is_too_long(name, thresholds))
    {
        return match members {
            [_] => (packed::create(name, members, None), 1),
            _ => {
                let members = in_order(members);
                (packed::create(name, &members, None), members.len())
            }
        };
    }
    // It grows member by member, as if they were added one at a time.
    let (first, others) = members.split_first().expect("an effect adds at least one member");
    let is_small = thresholds.entries_max > 0 && !is_too_long(first.1, thresholds);
    let mut entry = match is_small && first.1.len() <= PACKED_BYTES_MAX {
        true => packed::create(name, &[*first], None),
        false => {
            let form = if is_small { Form::Small } else { Form::Large };
            let set = SortedSet::from_members([*first].into_iter(), form);
            Entry::with_object(name, Box::new(Object::SortedSet(set)), None)
        }
    };
    let added = add(&mut entry, others, thresholds);
    (entry, 1 + added)
}

fn add(entry: &mut Entry, members: &[Scored<'_>], thresholds: &Thresholds) -> usize {
    let mut added = 0;
    for (score, name) in members {
        if entry.kind() == PACKED {
            let set = StoredRef::Packed(Packed::new(entry.body()));
            let fits = set.len() < thresholds.entries_max.min(PACKED_ELEMENTS_MAX)
                && !is_too_long(name, thresholds)
                && name.len() <= PACKED_BYTES_MAX;
            if fits || set.score(name).is_some() {
                added += usize::from(packed::set(entry, (*score, name)));
                continue;
            }
            unpack(entry);
        }
        let Some(Object::SortedSet(set)) = entry.object_mut() else {
            panic!("a change of a sorted set was recorded for another type")
        };
        if set.set((*score, name)) {
            added += 1;
            if is_too_long(name, thresholds) || set.len() > thresholds.entries_max {
                set.form = Form::Large;
            }
        }
    }
    added
}

fn remove(entry: &mut Entry, members: &[&[u8]]) -> Applied {
    let mut applied = Applied::default();
    for name in members {
        if entry.kind() == PACKED {
            let set = StoredRef::Packed(Packed::new(entry.body()));
            applied.set_emptied(set.len() == 1 && set.score(name).is_some());
            applied.count += usize::from(applied.emptied() || packed::remove(entry, name));
        } else if let Some(Object::SortedSet(set)) = entry.object_mut() {
            applied.count += usize::from(set.remove(name));
            applied.set_emptied(set.is_empty());
        }
        if applied.emptied() {
            break;
        }
    }
    applied
}

fn is_too_long(name: &[u8], thresholds: &Thresholds) -> bool {
    name.len() > thresholds.value_bytes_max
}

/// True when a set of these members may be packed.
pub(super) fn fits_packed(members: &[Scored<'_>]) -> bool {
    members.len() <= PACKED_ELEMENTS_MAX && members.iter().all(|(_, name)| name.len() <= PACKED_BYTES_MAX)
}

/// Turns a packed set into a table.
fn unpack(entry: &mut Entry) {
    let mut set = SortedSet::default();
    for member in StoredRef::Packed(Packed::new(entry.body())).iter() {
        member.name.with_bytes(|name| set.set((member.score, name)));
    }
    entry.set_object(Box::new(Object::SortedSet(set)));
}
