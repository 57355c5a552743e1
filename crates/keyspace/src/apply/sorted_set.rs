//! Effects on sorted sets. Knows when a small one becomes a large one; refuses to know how either is laid out.

use super::super::effect::Applied;
use super::super::entry::{Entry, Kind};
use super::super::key::Key;
use super::super::locked::Locked;
use super::super::object::Object;
use super::super::sorted_set::{self, Form, Packed, Scored, SortedSet, SortedSetRef, packed};
use super::{PACKED_BYTES_MAX, PACKED_FIELDS_MAX, Thresholds};
use smallvec::SmallVec;

impl Locked<'_> {
    /// Gives members scores and says how many of them are new.
    pub(super) fn sorted_set_add(
        &mut self,
        db: usize,
        key: Key<'_>,
        members: &[Scored<'_>],
        thresholds: Thresholds,
    ) -> usize {
        let db = self.db_mut(db, key);
        let added = db.change(key, |entry, _| add(entry, members, thresholds));
        if let Some(added) = added {
            return added;
        }
        let (entry, added) = create(key.name, members, thresholds);
        db.insert(key, entry);
        added
    }

    pub(super) fn sorted_set_remove(&mut self, db: usize, key: Key<'_>, members: &[&[u8]]) -> Applied {
        let db = self.db_mut(db, key);
        let removed = db.change(key, |entry, _| remove(entry, members)).unwrap_or_default();
        if removed.emptied {
            db.remove(key);
        }
        removed
    }
}

/// An entry for a set that comes whole: a table of that form, or packed.
pub(super) fn entry_of(name: &[u8], members: &[Scored<'_>], form: Option<Form>, deadline: Option<u64>) -> Entry {
    if form.is_some() || !fits_packed(members) {
        let set = SortedSet::from_members(members.iter().copied(), form.unwrap_or_default());
        return Entry::with_object(name, Box::new(Object::SortedSet(set)), deadline);
    }
    let is_ordered = members.is_sorted_by(|a, b| sorted_set::compare(*a, *b).is_lt());
    match is_ordered && !has_twins(members) {
        true => packed::create(name, members, deadline),
        // Nobody writes such an image; what a disk says is not trusted.
        false => packed::create(name, &sorted_set::in_order(members), deadline),
    }
}

/// An entry for a set that begins with these members.
fn create(name: &[u8], members: &[Scored<'_>], thresholds: Thresholds) -> (Entry, usize) {
    if members.len() <= thresholds.sorted_set_entries_max
        && fits_packed(members)
        && !members.iter().any(|(_, name)| is_too_long(name, thresholds))
    {
        return match members {
            [_] => (packed::create(name, members, None), 1),
            _ => {
                let members = sorted_set::in_order(members);
                (packed::create(name, &members, None), members.len())
            }
        };
    }
    // It grows member by member, as if they had come one after the other.
    let (first, others) = members.split_first().expect("an effect adds at least one member");
    let is_small = thresholds.sorted_set_entries_max > 0 && !is_too_long(first.1, thresholds);
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

fn add(entry: &mut Entry, members: &[Scored<'_>], thresholds: Thresholds) -> usize {
    let mut added = 0;
    for (score, name) in members {
        if entry.kind() == Kind::PackedSortedSet {
            let set = SortedSetRef::Packed(Packed::new(entry.body()));
            let fits = set.len() < thresholds.sorted_set_entries_max.min(PACKED_FIELDS_MAX)
                && !is_too_long(name, thresholds)
                && name.len() <= PACKED_BYTES_MAX;
            if fits || set.score(name).is_some() {
                added += usize::from(packed::set(entry, (*score, name)) == packed::Outcome::Added);
                continue;
            }
            unpack(entry);
        }
        let Some(Object::SortedSet(set)) = entry.object_mut() else {
            panic!("a sorted set effect was recorded for another type")
        };
        if set.set((*score, name)) {
            added += 1;
            if is_too_long(name, thresholds) || set.len() > thresholds.sorted_set_entries_max {
                set.form = Form::Large;
            }
        }
    }
    added
}

fn remove(entry: &mut Entry, members: &[&[u8]]) -> Applied {
    let mut applied = Applied::default();
    for name in members {
        if entry.kind() == Kind::PackedSortedSet {
            let set = SortedSetRef::Packed(Packed::new(entry.body()));
            applied.emptied = set.len() == 1 && set.score(name).is_some();
            applied.count += usize::from(applied.emptied || packed::remove(entry, name));
        } else if let Some(Object::SortedSet(set)) = entry.object_mut() {
            applied.count += usize::from(set.remove(name));
            applied.emptied = set.is_empty();
        }
        if applied.emptied {
            break;
        }
    }
    applied
}

fn is_too_long(name: &[u8], thresholds: Thresholds) -> bool {
    name.len() > thresholds.sorted_set_value_bytes_max
}

/// True when a set of these members may be packed at all.
fn fits_packed(members: &[Scored<'_>]) -> bool {
    members.len() <= PACKED_FIELDS_MAX && members.iter().all(|(_, name)| name.len() <= PACKED_BYTES_MAX)
}

/// True when two members have one name.
fn has_twins(members: &[Scored<'_>]) -> bool {
    let mut names: SmallVec<[&[u8]; 128]> = members.iter().map(|(_, name)| *name).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

/// Turns a packed set into a table.
fn unpack(entry: &mut Entry) {
    let mut set = SortedSet::default();
    for member in SortedSetRef::Packed(Packed::new(entry.body())).iter() {
        member.name.with_bytes(|name| set.set((member.score, name)));
    }
    entry.set_object(Box::new(Object::SortedSet(set)));
}
