//! Applies effects: the only code that changes the keyspace, live and on replay.

use super::codec::{BadEffect, Decoder};
use super::db::Db;
use super::effect::{Applied, Effect, Image};
use super::entry::{Entry, Kind};
use super::hash::{FieldTable, Form, scalar};
use super::key::Key;
use super::locked::Locked;
use super::object::Object;
use super::packed::{self, Pair};
use super::scalar::Scalar;
use super::shapes::Shapes;
use super::shard::DATABASES;
use super::value::Loose;
use smallvec::SmallVec;

mod sorted_set;

/// When a small value becomes a large one. Never visible but through OBJECT ENCODING and memory.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    pub hash_entries_max: usize,
    pub hash_value_bytes_max: usize,
    pub sorted_set_entries_max: usize,
    pub sorted_set_value_bytes_max: usize,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            hash_entries_max: 512,
            hash_value_bytes_max: 64,
            sorted_set_entries_max: 128,
            sorted_set_value_bytes_max: 64,
        }
    }
}

/// A string longer than this lies behind a pointer: a new deadline or name must not copy it.
const INLINE_BYTES_MAX: usize = 4096;

/// A string longer than this that is changed in place gets room to grow.
const GROWS_IN_PLACE_FROM: usize = 512;

impl Locked<'_> {
    /// Makes `effect` true in database `db`. The shards it touches are locked.
    pub fn apply(&mut self, db: usize, effect: &Effect<'_>, thresholds: Thresholds) -> Applied {
        let count = match *effect {
            Effect::StringSet { key, value, deadline } => return self.string_set(db, key, value, deadline),
            Effect::StringWrite { key, offset, bytes } => self.string_write(db, key, offset, bytes),
            Effect::HashSet { key, fields, keep_deadlines } => {
                self.hash_set(db, key, fields, keep_deadlines, thresholds)
            }
            Effect::HashDelete { key, fields, cause: _ } => return self.hash_delete(db, key, fields),
            Effect::HashDeadline { key, field, deadline } => self.hash_deadline(db, key, field, deadline),
            Effect::SortedSetAdd { key, members } => self.sorted_set_add(db, key, members, thresholds),
            Effect::SortedSetRemove { key, members } => return self.sorted_set_remove(db, key, members),
            Effect::Delete { key, cause: _ } => self.delete(db, key),
            Effect::Deadline { key, deadline } => usize::from(
                self.db_mut(db, key).change_unscored(key, |entry, _| entry.set_deadline(deadline)).is_some(),
            ),
            Effect::Rename { from, to } => match self.db_mut(db, from).take_loose(from) {
                Some((loose, deadline)) => self.put(db, to, loose, deadline),
                None => 0,
            },
            Effect::Copy { from, to, to_db } => {
                let source = self.db(db, from);
                let copy = source.entry(from).map(|entry| (Loose::copy_of(entry, &source.shapes), entry.deadline()));
                match copy {
                    Some((loose, deadline)) => self.put(to_db, to, loose, deadline),
                    None => 0,
                }
            }
            Effect::Move { key, to_db } => match self.db_mut(db, key).take_loose(key) {
                Some((loose, deadline)) => self.put(to_db, key, loose, deadline),
                None => 0,
            },
            Effect::Put { key, value, deadline } => self.put_image(db, key, value, deadline),
            Effect::FlushDb => self.empty(db..db + 1),
            Effect::FlushAll => self.empty(0..DATABASES),
            Effect::SwapDb { a, b } => {
                self.shards_mut().for_each(|shard| shard.dbs.swap(a, b));
                0
            }
            Effect::LibrarySet { name, code } => {
                self.definitions_mut().set_library(name, code);
                1
            }
            Effect::LibraryDelete { name } => usize::from(self.definitions_mut().remove_library(name)),
            Effect::IndexSet { name, definition } => {
                self.definitions_mut().set_index(name, definition);
                1
            }
            Effect::IndexDelete { name } => usize::from(self.definitions_mut().remove_index(name)),
        };
        Applied { count, ..Applied::default() }
    }

    /// Makes every key anew from its own image. Nothing is lost when that cannot be done.
    pub fn remake(&mut self, thresholds: Thresholds) -> Result<(), BadEffect> {
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

    /// Makes an effect that is about whole databases true for those keys alone for which `counts` holds. All shards
    /// are locked.
    pub fn apply_where(&mut self, db: usize, effect: &Effect<'_>, counts: impl Fn(&[u8]) -> bool) {
        let names = |locked: &Locked<'_>, db: usize| -> Vec<Vec<u8>> {
            let entries = locked.shards().flat_map(|(_, shard)| shard.db(db).table.iter());
            entries.map(Entry::name).filter(|name| counts(name)).map(<[u8]>::to_vec).collect()
        };
        let flushed = match effect {
            Effect::FlushDb => db..db + 1,
            Effect::FlushAll => 0..DATABASES,
            Effect::SwapDb { a, b } => {
                let take = |locked: &mut Locked<'_>, db: usize| -> Vec<_> {
                    let taken = names(locked, db).into_iter().map(|name| {
                        let loose = locked.db_mut(db, Key::new(&name)).take_loose(Key::new(&name));
                        (name, loose)
                    });
                    taken.collect()
                };
                let (from_a, from_b) = (take(self, *a), take(self, *b));
                for (to, taken) in [(*b, from_a), (*a, from_b)] {
                    for (name, loose) in taken {
                        let Some((loose, deadline)) = loose else { continue };
                        self.put(to, Key::new(&name), loose, deadline);
                    }
                }
                return;
            }
            _ => panic!("only effects on whole databases are made true in part"),
        };
        for db in flushed {
            for name in names(self, db) {
                self.delete(db, Key::new(&name));
            }
        }
    }

    /// Removes a key. A large value is freed after the locks are released.
    fn delete(&mut self, db: usize, key: Key<'_>) -> usize {
        let Some(entry) = self.db_mut(db, key).remove(key) else { return 0 };
        if is_freed_later(&entry) {
            self.garbage.push(Box::new(entry));
        }
        1
    }

    /// Empties databases. What they held is freed after the locks are released.
    fn empty(&mut self, dbs: std::ops::Range<usize>) -> usize {
        let emptied = self.shards_mut().flat_map(|shard| shard.dbs[dbs.clone()].iter_mut());
        let emptied: Vec<Db> = emptied.filter(|db| !db.is_empty()).map(Db::take_all).collect();
        let count = emptied.iter().map(Db::len).sum();
        if count > 0 {
            self.garbage.push(Box::new(emptied));
        }
        count
    }

    fn put(&mut self, db: usize, key: Key<'_>, loose: Loose, deadline: Option<u64>) -> usize {
        self.delete(db, key);
        self.db_mut(db, key).put_loose(key, loose, deadline);
        1
    }

    fn put_image(&mut self, db: usize, key: Key<'_>, value: Image<'_>, deadline: Option<u64>) -> usize {
        self.delete(db, key);
        let db = self.db_mut(db, key);
        let entry = match value {
            Image::String { value, marked } => {
                let mut entry = string_entry(key, value, deadline);
                entry.set_marked(marked);
                entry
            }
            Image::Hash { fields, deadlines: [], form: None } if is_packable(fields) => {
                packed::create(key.name, fields, &mut db.shapes, deadline)
            }
            Image::Hash { fields, deadlines, form } => {
                let mut table = FieldTable::from_pairs(fields.iter().copied(), form.unwrap_or_default());
                for ((field, _), deadline) in fields.iter().zip(deadlines) {
                    table.set_deadline(field, *deadline);
                }
                Entry::with_object(key.name, Box::new(Object::Hash(table)), deadline)
            }
            Image::SortedSet { members, form } => sorted_set::entry_of(key.name, members, form, deadline),
        };
        db.insert(key, entry);
        1
    }

    fn string_set(&mut self, db: usize, key: Key<'_>, value: Scalar<'_>, deadline: Option<u64>) -> Applied {
        let changed = self.db_mut(db, key).change(key, |entry, shapes| {
            let replaced = entry.deadline();
            if is_freed_later(entry) {
                return (replaced, false);
            }
            release(entry, shapes);
            // The value first: giving a deadline to the old one would move it for nothing.
            match value {
                Scalar::Number(number) => entry.set_body(Kind::Number, &number.to_le_bytes()),
                Scalar::Bytes(bytes) if bytes.len() > INLINE_BYTES_MAX => {
                    entry.set_object(Box::new(Object::Bytes(bytes.to_vec())));
                }
                Scalar::Bytes(bytes) => entry.set_body(Kind::Text, bytes),
            }
            entry.set_deadline(deadline);
            entry.set_marked(false);
            (replaced, true)
        });
        if let Some((_, false)) = changed {
            self.delete(db, key);
        }
        if !matches!(changed, Some((_, true))) {
            self.db_mut(db, key).insert(key, string_entry(key, value, deadline));
        }
        let replaced_deadline = changed.and_then(|(replaced, _)| replaced);
        Applied { count: value.len(), replaced_deadline, emptied: false }
    }

    fn string_write(&mut self, db: usize, key: Key<'_>, offset: usize, bytes: &[u8]) -> usize {
        let db = self.db_mut(db, key);
        if db.entry(key).is_none() {
            db.insert(key, Entry::new(key.name, Kind::Text, &[], None));
        }
        let written = db.change(key, |entry, _| {
            if entry.kind() == Kind::Number {
                let text = scalar(entry).bytes().into_owned();
                entry.set_body(Kind::Text, &text);
            }
            let end = offset + bytes.len();
            if entry.kind() == Kind::Text && end.max(entry.body().len()) > GROWS_IN_PLACE_FROM {
                let text = entry.body().to_vec();
                entry.set_object(Box::new(Object::Bytes(text)));
            }
            entry.set_marked(true);
            match entry.object_mut() {
                Some(Object::Bytes(text)) => {
                    if text.len() < end {
                        text.resize(end, 0);
                    }
                    text[offset..end].copy_from_slice(bytes);
                    text.len()
                }
                Some(_) => panic!("a string effect was recorded for another type"),
                None => {
                    let len = entry.body().len();
                    if len < end {
                        entry.open_gap(len..len, end - len);
                    }
                    entry.body_mut()[offset..end].copy_from_slice(bytes);
                    entry.body().len()
                }
            }
        });
        written.unwrap_or(0)
    }

    fn hash_set(
        &mut self,
        db: usize,
        key: Key<'_>,
        fields: &[Pair<'_>],
        keep_deadlines: bool,
        thresholds: Thresholds,
    ) -> usize {
        let db = self.db_mut(db, key);
        let longest = fields.iter().map(|(field, value)| field.len().max(value.len())).max().unwrap_or(0);
        let too_long = longest > thresholds.hash_value_bytes_max;
        let packable = longest <= PACKED_BYTES_MAX;
        let changed = db.change_set(key, fields, |entry, shapes| {
            if entry.kind() == Kind::PackedHash {
                let count_max = packed::Packed::new(entry.body(), shapes).len() + fields.len();
                if packable && !too_long && count_max <= thresholds.hash_entries_max.min(PACKED_FIELDS_MAX) {
                    return packed::set(entry, fields, shapes);
                }
                unpack(entry, shapes);
            }
            let Some(Object::Hash(table)) = entry.object_mut() else {
                panic!("a hash effect was recorded for another type")
            };
            let created = fields.iter().filter(|(field, value)| table.set(field, value, keep_deadlines)).count();
            if too_long || table.len() > thresholds.hash_entries_max {
                table.form = Form::Large;
            }
            created
        });
        if let Some(created) = changed {
            return created;
        }
        let fits = fields.len() <= thresholds.hash_entries_max.min(PACKED_FIELDS_MAX);
        let (entry, created) = if too_long || !packable || !fits {
            let mut table = FieldTable::from_pairs(fields.iter().copied(), Form::Small);
            if too_long || table.len() > thresholds.hash_entries_max {
                table.form = Form::Large;
            }
            let created = table.len();
            (Entry::with_object(key.name, Box::new(Object::Hash(table)), None), created)
        } else {
            let mut distinct: SmallVec<[Pair<'_>; 16]> = SmallVec::with_capacity(fields.len());
            for (field, value) in fields {
                match distinct.iter_mut().find(|(name, _)| name == field) {
                    Some(pair) => pair.1 = value,
                    None => distinct.push((field, value)),
                }
            }
            (packed::create(key.name, &distinct, &mut db.shapes, None), distinct.len())
        };
        db.insert(key, entry);
        created
    }

    fn hash_delete(&mut self, db: usize, key: Key<'_>, fields: &[&[u8]]) -> Applied {
        let db = self.db_mut(db, key);
        let mut emptied = false;
        let removed = db.change_fields(key, fields.iter().copied(), |entry, shapes| {
            let mut removed = 0;
            for field in fields {
                if entry.kind() == Kind::PackedHash {
                    let packed = packed::Packed::new(entry.body(), shapes);
                    if packed.len() == 1 && packed.get(field).is_some() {
                        emptied = true;
                        return removed + 1;
                    }
                    removed += usize::from(packed::remove(entry, field, shapes));
                } else if let Some(Object::Hash(table)) = entry.object_mut() {
                    removed += usize::from(table.remove(field));
                    if table.is_empty() {
                        emptied = true;
                        return removed;
                    }
                }
            }
            removed
        });
        if emptied {
            db.remove(key);
        }
        Applied { count: removed.unwrap_or(0), emptied, replaced_deadline: None }
    }

    fn hash_deadline(&mut self, db: usize, key: Key<'_>, field: &[u8], deadline: Option<u64>) -> usize {
        let changed = self.db_mut(db, key).change(key, |entry, shapes| {
            if entry.kind() == Kind::PackedHash {
                if deadline.is_none() {
                    return;
                }
                unpack(entry, shapes);
            }
            if let Some(Object::Hash(table)) = entry.object_mut() {
                table.set_deadline(field, deadline);
            }
        });
        usize::from(changed.is_some())
    }
}

/// Values with more elements than this are not freed while locks are held.
const FREED_AT_ONCE_MAX: usize = 1024;
/// The operating system takes long to take back what is longer.
const FREED_AT_ONCE_BYTES_MAX: usize = 1024 * 1024;

fn is_freed_later(entry: &Entry) -> bool {
    match entry.object() {
        Some(Object::Hash(table)) => table.len() > FREED_AT_ONCE_MAX,
        Some(Object::SortedSet(set)) => set.len() > FREED_AT_ONCE_MAX,
        Some(Object::Bytes(bytes)) => bytes.len() > FREED_AT_ONCE_BYTES_MAX,
        None => false,
    }
}

/// Whatever the settings say, a packed value has no more fields or members than this, none longer than that: every
/// look-up walks over them.
const PACKED_FIELDS_MAX: usize = 1024;
const PACKED_BYTES_MAX: usize = 4096;

/// An entry for a string.
fn string_entry(key: Key<'_>, value: Scalar<'_>, deadline: Option<u64>) -> Entry {
    match value {
        Scalar::Number(number) => Entry::new(key.name, Kind::Number, &number.to_le_bytes(), deadline),
        Scalar::Bytes(bytes) if bytes.len() > INLINE_BYTES_MAX => {
            Entry::with_object(key.name, Box::new(Object::Bytes(bytes.to_vec())), deadline)
        }
        Scalar::Bytes(bytes) => Entry::new(key.name, Kind::Text, bytes, deadline),
    }
}

/// True when a hash of these fields may be packed at all.
fn is_packable(fields: &[Pair<'_>]) -> bool {
    fields.len() <= PACKED_FIELDS_MAX
        && fields.iter().all(|(field, value)| field.len().max(value.len()) <= PACKED_BYTES_MAX)
}

/// Turns a packed hash into a table.
fn unpack(entry: &mut Entry, shapes: &mut Shapes) {
    let mut table = FieldTable::default();
    for (field, value) in packed::Packed::new(entry.body(), shapes).iter() {
        field.scalar().with_bytes(|field| value.with_bytes(|value| table.set(field, value, false)));
    }
    release(entry, shapes);
    entry.set_object(Box::new(Object::Hash(table)));
}

/// Gives back the shape of an entry whose body is about to go.
fn release(entry: &Entry, shapes: &mut Shapes) {
    if entry.kind() == Kind::PackedHash {
        packed::release(entry.body(), shapes);
    }
}
