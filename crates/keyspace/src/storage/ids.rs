//! Ids for the names of a table, used by the ordered structures beside it. Knows which names share a hash; refuses to
//! know what is ordered.
//!
//! Ordered deadlines and scores hold a number for each entry, not its name. The number is the hash of the name, unless
//! another name of the table has the same hash: the later name then gets an assigned number, in a list beside the
//! table. With 64-bit hashes that list is normally empty, and a look-up costs one comparison.

use super::entry::Entry;
use super::segmented::Segmented;
use super::table::{NameHash, hash_of};

/// Identifies a name in one table while its entry exists. Its [position](NameHash::position) is that of the name.
pub type NameId = u64;

/// The names whose id is not their hash.
#[derive(Clone, Default)]
pub(super) struct NameIds {
    /// Behind a pointer: every large hash has a table, and few need this.
    own: Option<Box<OwnIds>>,
}

#[derive(Clone, Default)]
struct OwnIds {
    by_name: Vec<(Box<[u8]>, NameId)>,
}

/// The bits of an id that may differ from the hash: they are not part of the position.
const OWN_BITS: u64 = 0xffff;

impl NameIds {
    /// The id of a name that is in the table.
    #[inline]
    pub(super) fn of(&self, hash: NameHash, name: &[u8]) -> NameId {
        match &self.own {
            None => hash.get(),
            Some(own) => own.of_name(name).unwrap_or(hash.get()),
        }
    }

    /// The entry of an id.
    #[inline]
    pub(super) fn entry<'t, O>(&self, entries: &'t Segmented<Entry<O>>, id: NameId) -> Option<&'t Entry<O>> {
        let hash = NameHash::from_raw(id);
        match &self.own {
            // The table compares only some bits of the hash.
            None => entries.find(hash, |entry| hash_of(entry) == hash),
            Some(own) => own.entry(entries, id),
        }
    }

    /// The entry of an id of which some bits are not known. They are bits that select neither the position nor the slot.
    pub(super) fn entry_without<'t, O>(
        &self,
        entries: &'t Segmented<Entry<O>>,
        id: NameId,
        unknown: u64,
    ) -> Option<&'t Entry<O>> {
        let is_same = |other: NameId| (other ^ id) & !unknown == 0;
        let assigned = self.own.iter().flat_map(|own| &own.by_name).find(|(_, known)| is_same(*known));
        match assigned {
            Some((name, _)) => entries.find(NameHash::of(name), |entry| entry.name() == &**name),
            None => entries.find(NameHash::from_raw(id), |entry| {
                is_same(hash_of(entry).get()) && self.own.as_ref().is_none_or(|own| own.of_name(entry.name()).is_none())
            }),
        }
    }

    /// Assigns an id to a name that is about to be added to the table.
    #[inline]
    pub(super) fn assign<O>(&mut self, entries: &Segmented<Entry<O>>, hash: NameHash, name: &[u8]) {
        if self.entry(entries, hash.get()).is_some() {
            self.assign_own(entries, hash, name);
        }
    }

    #[cold]
    fn assign_own<O>(&mut self, entries: &Segmented<Entry<O>>, hash: NameHash, name: &[u8]) {
        let free = (1..=OWN_BITS).map(|bits| hash.get() ^ bits).find(|id| self.entry(entries, *id).is_none());
        // So many names at one position can only be constructed on purpose.
        let id = free.expect("fewer than 65,536 names share a position");
        self.own.get_or_insert_default().by_name.push((name.into(), id));
    }

    /// Releases the id of a name that was removed from the table.
    #[inline]
    pub(super) fn release(&mut self, name: &[u8]) {
        if self.own.is_some() {
            self.release_own(name);
        }
    }

    #[cold]
    fn release_own(&mut self, name: &[u8]) {
        if let Some(own) = &mut self.own {
            own.by_name.retain(|(known, _)| **known != *name);
            if own.by_name.is_empty() {
                self.own = None;
            }
        }
    }
}

impl OwnIds {
    fn of_name(&self, name: &[u8]) -> Option<NameId> {
        self.by_name.iter().find(|(known, _)| **known == *name).map(|(_, id)| *id)
    }

    #[cold]
    fn entry<'t, O>(&self, entries: &'t Segmented<Entry<O>>, id: NameId) -> Option<&'t Entry<O>> {
        if let Some((name, _)) = self.by_name.iter().find(|(_, known)| *known == id) {
            return entries.find(NameHash::of(name), |entry| entry.name() == &**name);
        }
        // IMPORTANT: a name with an assigned id is never found by its hash, even after the name that had the hash as
        // its id is removed.
        let hash = NameHash::from_raw(id);
        entries.find(hash, |entry| hash_of(entry) == hash && self.of_name(entry.name()).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Entry, Kind};
    use super::super::table::{NameHash, SAME_HASH, Table};
    use super::NameId;
    use std::collections::{BTreeMap, BTreeSet};
    use test_random::Random;

    fn name(number: usize) -> Vec<u8> {
        match number % 2 {
            0 => [SAME_HASH, number.to_string().as_bytes()].concat(),
            _ => number.to_string().into_bytes(),
        }
    }

    #[test]
    fn an_id_stands_for_one_name_as_long_as_it_is_in_the_table() {
        let mut random = Random::new();
        let (mut table, mut model) = (Table::<()>::default(), BTreeMap::<Vec<u8>, NameId>::new());
        for _ in 0..4_000 {
            let name = name(random.below(24));
            let hash = NameHash::of(&name);
            match model.remove(&name) {
                Some(_) => drop(table.remove(hash, &name).expect("it is there")),
                None => {
                    table.insert(hash, Entry::new(&name, Kind::inline(0), b"v", None));
                    model.insert(name.clone(), table.id_of(hash, &name));
                }
            }
            let ids: BTreeSet<NameId> = model.values().copied().collect();
            assert_eq!(ids.len(), model.len(), "no id stands for two names");
            for (name, id) in &model {
                assert_eq!(table.id_of(NameHash::of(name), name), *id);
                assert_eq!(table.by_id(*id).map(Entry::name), Some(&**name));
                assert_eq!(NameHash::from_raw(*id).position(), NameHash::of(name).position());
            }
            if !ids.contains(&NameHash::of(SAME_HASH).get()) {
                assert!(
                    table.by_id(NameHash::of(SAME_HASH).get()).is_none(),
                    "what is gone is not mistaken for another"
                );
            }
        }
        for name in model.keys() {
            table.remove(NameHash::of(name), name);
        }
        assert!(table.is_empty() && table.ids.own.is_none(), "nothing is left of ids");
    }

    #[test]
    fn a_name_whose_hash_is_the_id_of_another_gets_one_of_its_own() {
        let mut table = Table::<()>::default();
        let mut put = |name: &[u8]| {
            let hash = NameHash::of(name);
            table.insert(hash, Entry::new(name, Kind::inline(0), b"v", None));
            table.id_of(hash, name)
        };
        let (first, second) = (put(&name(0)), put(&name(2)));
        assert_eq!(first, NameHash::of(SAME_HASH).get());
        assert_ne!(first, second);
        // As if a third name had that hash.
        let taken = NameHash::from_raw(second);
        table.ids.assign(&table.entries, taken, b"third");
        assert!(![first, second].contains(&table.ids.of(taken, b"third")));
        assert_eq!(table.by_id(second).map(Entry::name), Some(&*name(2)));
    }
}
