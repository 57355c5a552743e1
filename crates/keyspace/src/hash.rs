//! Hashes in their two forms, small and large, behind one face for readers. Knows fields and their deadlines;
//! refuses to know commands.

use super::entry::{Entry, Kind};
use super::footprint::{DEADLINE_BYTES, size_class};
use super::packed::{FieldName, Packed, PackedIter, Pair};
use super::scalar::Scalar;
use super::table::{NameHash, Table};
use std::collections::BTreeSet;

/// What Redis would keep a hash as: OBJECT ENCODING tells it, and a hash never goes back to a smaller form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Form {
    /// Small by the settings, but too large for us to pack.
    #[default]
    Small,
    /// Small, with field deadlines.
    SmallWithDeadlines,
    Large,
}

/// A large hash, or one some of whose fields have deadlines.
#[derive(Default, Clone)]
pub struct FieldTable {
    fields: Table,
    /// Deadline and hash of each field that has one, soonest first.
    deadlines: BTreeSet<(u64, u64)>,
    pub form: Form,
}

impl FieldTable {
    /// How many fields there are, those past their deadline included.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// True when there is no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// How many fields are past their deadline but not removed yet.
    pub fn overdue(&self, now_ms: u64) -> usize {
        self.deadlines.range(..=(now_ms, u64::MAX)).count()
    }

    /// The soonest deadline of any field.
    pub fn soonest(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// True when every field is past its deadline.
    pub fn all_overdue(&self, now_ms: u64) -> bool {
        self.deadlines.len() == self.fields.len()
            && self.deadlines.last().is_none_or(|(deadline, _)| *deadline <= now_ms)
    }

    /// Names of fields that are past their deadline, `count` at the most, soonest first.
    pub fn overdue_names(&self, now_ms: u64, count: usize) -> Vec<Vec<u8>> {
        let due = self.deadlines.range(..=(now_ms, u64::MAX)).take(count);
        due.filter_map(|(deadline, hash)| {
            let hash = NameHash::from_raw(*hash);
            self.fields.find(hash, |field| field.deadline() == Some(*deadline)).map(|field| field.name().to_vec())
        })
        .collect()
    }

    /// All fields as they are kept, those past their deadline included.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.fields.iter()
    }

    fn get(&self, field: &[u8]) -> Option<&Entry> {
        self.fields.get(NameHash::of(field), field)
    }

    /// Sets a field; true when it is new. A deadline the field had goes unless it is to be kept.
    pub fn set(&mut self, field: &[u8], value: &[u8], keep_deadline: bool) -> bool {
        let hash = NameHash::of(field);
        let number;
        let (kind, body) = match Scalar::of(value) {
            Scalar::Number(value) => {
                number = value.to_le_bytes();
                (Kind::Number, number.as_slice())
            }
            Scalar::Bytes(bytes) => (Kind::Text, bytes),
        };
        match self.fields.get_mut(hash, field) {
            Some(entry) => {
                if let Some(deadline) = entry.deadline()
                    && !keep_deadline
                {
                    self.deadlines.remove(&(deadline, hash.get()));
                    entry.set_deadline(None);
                }
                entry.set_body(kind, body);
                false
            }
            None => {
                self.fields.insert(hash, Entry::new(field, kind, body, None));
                true
            }
        }
    }

    pub fn remove(&mut self, field: &[u8]) -> bool {
        let hash = NameHash::of(field);
        let Some(entry) = self.fields.remove(hash, field) else { return false };
        if let Some(deadline) = entry.deadline() {
            self.deadlines.remove(&(deadline, hash.get()));
        }
        true
    }

    pub fn set_deadline(&mut self, field: &[u8], deadline: Option<u64>) {
        let hash = NameHash::of(field);
        let Some(entry) = self.fields.get_mut(hash, field) else { return };
        if let Some(old) = entry.deadline() {
            self.deadlines.remove(&(old, hash.get()));
        }
        entry.set_deadline(deadline);
        if let Some(deadline) = deadline {
            self.form = self.form.max(Form::SmallWithDeadlines);
            self.deadlines.insert((deadline, hash.get()));
        }
    }

    pub fn from_pairs<'a>(pairs: impl Iterator<Item = Pair<'a>>, form: Form) -> FieldTable {
        let mut table = FieldTable { form, ..FieldTable::default() };
        for (field, value) in pairs {
            table.set(field, value, false);
        }
        table
    }

    /// Heap bytes of the table and all it holds, judged by the first `samples` fields.
    pub fn heap_bytes(&self, samples: usize) -> usize {
        let taken = samples.clamp(1, self.len().max(1));
        let sampled: usize = self.fields.iter().take(taken).map(|field| size_class(field.heap_bytes())).sum();
        sampled * self.len() / taken + self.fields.heap_bytes() + self.deadlines.len() * DEADLINE_BYTES
    }
}

/// A hash to be read, at one instant: fields past their deadline are absent.
#[derive(Clone, Copy)]
pub enum HashRef<'a> {
    Packed(Packed<'a>),
    Table(&'a FieldTable, u64),
}

impl<'a> HashRef<'a> {
    /// How many fields there are.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            HashRef::Packed(packed) => packed.len(),
            HashRef::Table(table, now_ms) => table.len() - table.overdue(*now_ms),
        }
    }

    /// True when there is no field.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a field.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Scalar<'a>> {
        match self {
            HashRef::Packed(packed) => packed.get(field),
            HashRef::Table(table, now_ms) => table.get(field).filter(|entry| is_alive(entry, *now_ms)).map(scalar),
        }
    }

    /// The deadline of a field: `None` when there is no such field, `Some(None)` when it has no deadline.
    pub fn deadline(&self, field: &[u8]) -> Option<Option<u64>> {
        match self {
            HashRef::Packed(packed) => packed.get(field).map(|_| None),
            HashRef::Table(table, now_ms) => {
                table.get(field).filter(|entry| is_alive(entry, *now_ms)).map(Entry::deadline)
            }
        }
    }

    /// All fields with their values; small hashes in the order the fields came.
    pub fn iter(&self) -> HashIter<'a> {
        match self {
            HashRef::Packed(packed) => HashIter::Packed(packed.iter()),
            HashRef::Table(table, now_ms) => HashIter::Table(Box::new(table.fields.iter()), *now_ms),
        }
    }

    /// Visits fields from `cursor` on, as [`Table::scan`] does. A small hash is visited whole.
    pub fn scan(&self, cursor: u32, count: usize, mut visit: impl FnMut(FieldName<'_>, Scalar<'_>)) -> Option<u32> {
        match self {
            HashRef::Packed(packed) => {
                packed.iter().for_each(|(field, value)| visit(field, value));
                None
            }
            HashRef::Table(table, now_ms) => {
                let (cursor, count) = if table.form == Form::Large { (cursor, count) } else { (0, usize::MAX) };
                table.fields.scan(cursor, count, |entry| {
                    if is_alive(entry, *now_ms) {
                        visit(FieldName::plain(entry.name()), scalar(entry));
                    }
                })
            }
        }
    }

    /// A random field. Fair for small hashes, nearly so for large ones.
    pub fn random(&self, random: &mut fastrand::Rng) -> Option<(FieldName<'a>, Scalar<'a>)> {
        match self {
            HashRef::Packed(packed) => packed.iter().nth(random.usize(..packed.len())),
            HashRef::Table(table, now_ms) => {
                // Fields past their deadline wait for the next sweep only: a few tries meet one that is alive.
                for _ in 0..64 {
                    let entry = table.fields.random(random)?;
                    if is_alive(entry, *now_ms) {
                        return Some((FieldName::plain(entry.name()), scalar(entry)));
                    }
                }
                self.iter().next()
            }
        }
    }

    /// The name OBJECT ENCODING gives the form.
    pub fn encoding(&self) -> &'static str {
        match self {
            HashRef::Packed(_) => "listpack",
            HashRef::Table(table, _) => match table.form {
                Form::Small => "listpack",
                Form::SmallWithDeadlines => "listpackex",
                Form::Large => "hashtable",
            },
        }
    }
}

/// Fields and values of a hash.
pub enum HashIter<'a> {
    Packed(PackedIter<'a>),
    Table(Box<dyn Iterator<Item = &'a Entry> + 'a>, u64),
}

impl<'a> Iterator for HashIter<'a> {
    type Item = (FieldName<'a>, Scalar<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            HashIter::Packed(packed) => packed.next(),
            HashIter::Table(entries, now_ms) => {
                let entry = entries.find(|entry| is_alive(entry, *now_ms))?;
                Some((FieldName::plain(entry.name()), scalar(entry)))
            }
        }
    }
}

fn is_alive(entry: &Entry, now_ms: u64) -> bool {
    entry.deadline().is_none_or(|deadline| deadline > now_ms)
}

/// The string that an entry of kind Text or Number holds.
pub fn scalar(entry: &Entry) -> Scalar<'_> {
    match entry.kind() {
        Kind::Number => Scalar::Number(i64::from_le_bytes(entry.body().try_into().expect("a number has eight bytes"))),
        _ => Scalar::Bytes(entry.body()),
    }
}
