//! Applies effects: the only code that changes the keyspace, live and on replay.

use super::db::Db;
use super::detached::{Copied, DetachedValue, KeyCopy};
use super::locked::Locked;
use crate::effects::codec::Decoder;
use crate::effects::{DATABASES, Definable, Effect, Image, Touches};
use crate::encoding::{BadEffect, Reader};
use crate::index::groups;
use crate::storage::Key;
use crate::types::{Applied, Entry, Thresholds, ValueType};

impl Locked<'_> {
    /// Applies `effect` in database `db`. The shards it touches are locked.
    #[inline]
    pub fn apply(&mut self, db: usize, effect: &Effect<'_>, thresholds: &Thresholds) -> Applied {
        match *effect {
            Effect::Change { key, ref change } => {
                let mut discarded = None;
                let applied = self.db_mut(db, key).change(key, change, thresholds, |entry| discarded = Some(entry));
                if let Some(entry) = discarded {
                    self.discard(entry);
                }
                if change.removes_parts() {
                    let removed = self.db_mut(db, key).change_entry(key, |entry, _| entry.object_mut()?.take_removed());
                    removed.flatten().into_iter().for_each(|removed| self.garbage.add(removed));
                }
                applied
            }
            _ => Applied::counted(self.apply_to_keys(db, effect)),
        }
    }

    /// Applies an effect on whole keys, databases or definitions.
    fn apply_to_keys(&mut self, db: usize, effect: &Effect<'_>) -> usize {
        match *effect {
            Effect::Change { .. } => unreachable!("the caller has told changes from the rest"),
            Effect::Delete { key, cause: _ } => self.delete(db, key),
            Effect::Deadline { key, deadline } => {
                let changed = self.db_mut(db, key).change_entry(key, |entry, _| {
                    // Commands give it none; damaged bytes may.
                    let takes_one = !ValueType::of(entry).is_bound;
                    if takes_one {
                        entry.set_deadline(deadline);
                    }
                    takes_one
                });
                usize::from(changed == Some(true))
            }
            Effect::Rate { key, until_ns, now_ns } => self.raise_rate(db, key, until_ns, now_ns),
            Effect::Rename { from, to } => match self.db_mut(db, from).take_detached(from) {
                Some((value, deadline)) => self.put(db, to, value, deadline),
                None => 0,
            },
            Effect::Copy { from, to, to_db } => {
                let source = self.db(db, from);
                let copy =
                    source.entry(from).map(|entry| (DetachedValue::copy_of(entry, &source.shapes), entry.deadline()));
                match copy {
                    Some((value, deadline)) => self.put(to_db, to, value, deadline),
                    None => 0,
                }
            }
            Effect::Move { key, to_db } => match self.db_mut(db, key).take_detached(key) {
                Some((value, deadline)) => self.put(to_db, key, value, deadline),
                None => 0,
            },
            Effect::Put { key, value: Image { value_type, bytes }, deadline } => {
                self.delete(db, key);
                let db = self.db_mut(db, key);
                let entry = (value_type.read_image)(key.name, Reader::new(bytes), &mut db.shapes, deadline);
                db.insert(key, entry);
                1
            }
            Effect::FlushDb => self.empty(db..db + 1),
            Effect::FlushAll => self.empty(0..DATABASES),
            Effect::SwapDb { a, b } => {
                self.shards_mut().for_each(|shard| shard.swap_dbs(a, b));
                self.nth(0).db(a).indexes().iter().for_each(|index| index.groups.swap(a, b));
                0
            }
            Effect::Define { what, name, definition } => {
                self.definitions_mut().define(what, name, definition);
                if what == Definable::Index && definition.is_empty() {
                    self.forget_index(name);
                }
                1
            }
            Effect::Undefine { what, name } => {
                if what == Definable::Index {
                    self.forget_index(name);
                }
                usize::from(self.definitions_mut().undefine(what, name))
            }
        }
    }

    /// True when the effect can be applied to the value of its key. Recorded effects always can; damaged bytes from a
    /// disk must not crash the server.
    pub fn fits(&self, db: usize, effect: &Effect<'_>) -> bool {
        match effect {
            Effect::Change { key, change } => {
                let holds_its_type = |entry: &Entry| ValueType::of(entry).is(change.value_type());
                change.replaces_other_types() || self.db(db, *key).entry(*key).is_none_or(holds_its_type)
            }
            Effect::Define {
                what:
                    Definable::Library
                    | Definable::Index
                    | Definable::Fork
                    | Definable::Restore
                    | Definable::Hook
                    | Definable::Limits,
                ..
            }
            | Effect::Undefine { .. }
            | Effect::Rate { .. }
            | Effect::Delete { .. }
            | Effect::Deadline { .. }
            | Effect::Rename { .. }
            | Effect::Copy { .. }
            | Effect::Move { .. }
            | Effect::Put { .. }
            | Effect::FlushDb
            | Effect::FlushAll
            | Effect::SwapDb { .. } => true,
        }
    }

    /// Rebuilds every key from its own image. If that fails, nothing is lost.
    pub fn remake(&mut self, thresholds: &Thresholds) -> Result<(), BadEffect> {
        let mut images = Vec::new();
        for (_, shard) in self.shards() {
            let mut image = Vec::new();
            shard.image_from(0, u32::MAX, usize::MAX, &mut image);
            let mut effects = Decoder::new(&image);
            while effects.next()?.is_some() {}
            images.push(image);
        }
        self.empty(0..DATABASES);
        for image in &images {
            let mut effects = Decoder::new(image);
            while let Some((db, effect)) = effects.next()? {
                self.apply(db, &effect, thresholds);
            }
        }
        Ok(())
    }

    /// Restores a copied key. It is not recorded: only for the private keyspace of a client, and to undo effects that
    /// are not recorded either.
    pub fn put_copy(&mut self, db: usize, key: Key<'_>, copy: KeyCopy) {
        match copy.0 {
            Copied::Value(value, deadline) => {
                self.put(db, key, value, deadline);
            }
            Copied::Entry(entry) => {
                self.delete(db, key);
                self.db_mut(db, key).insert(key, entry);
            }
            Copied::Absent => {
                self.delete(db, key);
            }
        }
    }

    /// Applies an effect on whole databases only to keys for which `counts` holds. All shards are locked.
    pub fn apply_where(&mut self, db: usize, effect: &Effect<'_>, counts: impl Fn(&[u8]) -> bool) {
        let names = |locked: &Locked<'_>, db: usize| -> Vec<Vec<u8>> {
            let entries = locked.shards().flat_map(|(_, shard)| shard.db(db).table.iter());
            entries.map(Entry::name).filter(|name| counts(name)).map(<[u8]>::to_vec).collect()
        };
        let flushed = match effect.touches(db) {
            Touches::Emptied(dbs) => dbs,
            Touches::Swapped(a, b) => {
                let take = |locked: &mut Locked<'_>, db: usize| -> Vec<_> {
                    let taken = names(locked, db).into_iter().map(|name| {
                        let value = locked.db_mut(db, Key::new(&name)).take_detached(Key::new(&name));
                        (name, value)
                    });
                    taken.collect()
                };
                let (from_a, from_b) = (take(self, a), take(self, b));
                let mut take_rates = |db: usize| -> Vec<_> {
                    self.shards_mut().flat_map(|shard| shard.dbs[db].take_rates(&counts)).collect()
                };
                let rates = [a, b].map(&mut take_rates);
                for (to, taken) in [b, a].into_iter().zip(rates) {
                    for (name, until_ns) in taken {
                        self.db_mut(to, Key::new(&name)).raise_rate(Key::new(&name), until_ns, 0);
                    }
                }
                for (to, taken) in [(b, from_a), (a, from_b)] {
                    for (name, value) in taken {
                        let Some((value, deadline)) = value else { continue };
                        self.put(to, Key::new(&name), value, deadline);
                    }
                }
                return;
            }
            Touches::Keys(_) | Touches::Definition(_) => {
                panic!("only effects on whole databases are made true in part")
            }
        };
        for db in flushed {
            for name in names(self, db) {
                self.delete(db, Key::new(&name));
            }
        }
    }

    /// Raises the state of a rate, also where claims look for it.
    fn raise_rate(&mut self, db: usize, key: Key<'_>, until_ns: u64, now_ns: u64) -> usize {
        let within = self.db_mut(db, key);
        let is_raised = within.raise_rate(key, until_ns, now_ns);
        if let Some((index, scope)) = groups::decode_name(key.name)
            && let Some(index) = within.indexes().find(index)
        {
            index.groups.raise_rate(db, scope, until_ns);
        }
        usize::from(is_raised)
    }

    /// Forgets the limits and the states of the rates of an index that is dropped. All shards are locked.
    fn forget_index(&mut self, name: &[u8]) {
        let names = groups::names_of(name);
        self.definitions_mut().forget_limits(&names);
        self.shards_mut()
            .flat_map(|shard| shard.dbs.iter_mut())
            .for_each(|db| drop(db.take_rates(|name| name.starts_with(&names))));
    }

    /// Removes a key. A large value is freed after the locks are released.
    fn delete(&mut self, db: usize, key: Key<'_>) -> usize {
        let Some(entry) = self.db_mut(db, key).remove(key) else { return 0 };
        self.discard(entry);
        1
    }

    /// Frees a removed entry, after the locks are released if that takes long.
    fn discard(&mut self, entry: Entry) {
        if entry.object().is_some_and(|object| (ValueType::of(&entry).is_freed_later)(object)) {
            self.garbage.add(entry);
        }
    }

    /// Empties databases. What they held is freed after the locks are released.
    fn empty(&mut self, dbs: std::ops::Range<usize>) -> usize {
        let emptied = self.shards_mut().flat_map(|shard| shard.dbs[dbs.clone()].iter_mut());
        let emptied: Vec<Db> = emptied.filter(|db| !db.is_empty()).map(Db::take_all).collect();
        let count = emptied.iter().map(Db::len).sum();
        if count > 0 {
            self.garbage.add(emptied);
            let indexes = self.nth(0).db(dbs.start).indexes().clone();
            for index in indexes.iter().filter(|index| index.definition.has_queues()) {
                let cleared: Vec<_> = dbs.clone().filter_map(|db| index.groups.clear(db)).collect();
                self.garbage.add(cleared);
            }
        }
        count
    }

    fn put(&mut self, db: usize, key: Key<'_>, value: DetachedValue, deadline: Option<u64>) -> usize {
        self.delete(db, key);
        self.db_mut(db, key).put_detached(key, value, deadline);
        1
    }
}
