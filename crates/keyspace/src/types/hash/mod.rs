//! Hashes in their two forms, small and large, behind one type for readers. Knows fields and their deadlines; refuses
//! to know commands, and how either form is laid out (`packed`, `table`).

mod change;
mod image;
pub mod packed;
pub mod table;

pub use change::Change;
pub use image::image_of;
pub use packed::{FieldName, Packed, Pair};
pub use table::FieldTable;

use super::{Cause, ElementExpiry, Entry, FREED_AT_ONCE_MAX, Object, ValueType};
use crate::storage::scalar::inline_scalar;
use crate::storage::shapes::Shapes;
use crate::storage::{Kind, Scalar};
use packed::PackedIter;
use table::{Field, is_alive};

/// A small hash, packed: see [`packed`].
pub const PACKED: Kind = Kind::inline(2);

/// The row of hashes.
pub static TYPE: ValueType = ValueType {
    tag: 2,
    name: "hash",
    redis_number: 4,
    event_letter: 'h',
    is_own: false,
    is_bound: false,
    name_error: |_| None,
    encoding: |entry| match entry.object() {
        Some(Object::Hash(table)) => table.form().encoding(),
        _ => Form::Small.encoding(),
    },
    elements: |entry, shapes| match entry.object() {
        Some(Object::Hash(table)) => table.len(),
        _ => Packed::new(entry.body(), shapes).len(),
    },
    heap_bytes: |object, samples| table_of(object).map_or(0, |table| table.heap_bytes(samples)),
    is_freed_later: |object| table_of(object).is_some_and(|table| table.len() > FREED_AT_ONCE_MAX),
    write_image: image::write,
    check_image: image::check,
    read_image: image::read,
    release: Some(|entry, shapes| {
        if entry.kind() == PACKED {
            packed::release(entry.body(), shapes);
        }
    }),
    element_expiry: Some(ElementExpiry {
        event: "hexpired",
        next: |object, now_ms| table_of(object).and_then(|table| table.next_expiry(now_ms)),
        names: |object, now_ms, count| table_of(object).map_or(Vec::new(), |table| table.expired_names(now_ms, count)),
        removal: |fields| Change::Delete { fields, cause: Cause::Expired }.into(),
    }),
    to_redis: image::to_redis,
    digest: image::digest,
};

/// When a small hash becomes a large one.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    pub entries_max: usize,
    pub value_bytes_max: usize,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { entries_max: 512, value_bytes_max: 64 }
    }
}

fn table_of(object: &Object) -> Option<&FieldTable> {
    match object {
        Object::Hash(table) => Some(table),
        _ => None,
    }
}

/// The hash in an entry, at an instant.
#[inline]
pub fn hash<'a>(entry: &'a Entry, shapes: &'a Shapes, now_ms: u64) -> HashRef<'a> {
    match entry.object() {
        Some(Object::Hash(table)) => HashRef::Table(table, now_ms),
        Some(_) => panic!("the entry holds no hash"),
        None => HashRef::Packed(Packed::new(entry.body(), shapes)),
    }
}

/// The encoding that Redis would use for a hash, for OBJECT ENCODING. A hash never returns to a smaller form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Form {
    /// Small by the settings, but too large for us to pack.
    #[default]
    Small,
    /// Small, with field deadlines.
    SmallWithDeadlines,
    Large,
}

impl Form {
    /// Its name in OBJECT ENCODING.
    pub fn encoding(self) -> &'static str {
        match self {
            Form::Small => "listpack",
            Form::SmallWithDeadlines => "listpackex",
            Form::Large => "hashtable",
        }
    }
}

/// A readable hash at one instant: expired fields are absent.
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
            HashRef::Table(table, now_ms) => {
                table.get(field).filter(|entry| is_alive(entry, *now_ms)).map(inline_scalar)
            }
        }
    }

    /// The deadline of a field: `None` when there is no such field, `Some(None)` when it has no deadline.
    pub fn deadline(&self, field: &[u8]) -> Option<Option<u64>> {
        match self {
            HashRef::Packed(packed) => packed.get(field).map(|_| None),
            HashRef::Table(table, now_ms) => {
                table.get(field).filter(|entry| is_alive(entry, *now_ms)).map(Field::deadline)
            }
        }
    }

    /// All fields with their values; in small hashes in the order in which they were added.
    pub fn iter(&self) -> HashIter<'a> {
        match self {
            HashRef::Packed(packed) => HashIter::Packed(packed.iter()),
            HashRef::Table(table, now_ms) => HashIter::Table(Box::new(table.entries()), *now_ms),
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
                let visit = |entry: &Field| {
                    if is_alive(entry, *now_ms) {
                        visit(FieldName::plain(entry.name()), inline_scalar(entry));
                    }
                };
                if table.form() == Form::Large {
                    return table.scan(cursor, count, visit);
                }
                table.entries().for_each(visit);
                None
            }
        }
    }

    /// A random field. Fair for small hashes, nearly so for large ones.
    pub fn random(&self, random: &mut fastrand::Rng) -> Option<(FieldName<'a>, Scalar<'a>)> {
        match self {
            HashRef::Packed(packed) => packed.iter().nth(random.usize(..packed.len())),
            HashRef::Table(table, now_ms) => {
                // Expired fields are removed soon, so a few tries find a live one.
                for _ in 0..64 {
                    let entry = table.random(random)?;
                    if is_alive(entry, *now_ms) {
                        return Some((FieldName::plain(entry.name()), inline_scalar(entry)));
                    }
                }
                self.iter().next()
            }
        }
    }
}

/// Fields and values of a hash.
pub enum HashIter<'a> {
    Packed(PackedIter<'a>),
    Table(Box<dyn Iterator<Item = &'a Field> + 'a>, u64),
}

impl<'a> Iterator for HashIter<'a> {
    type Item = (FieldName<'a>, Scalar<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            HashIter::Packed(packed) => packed.next(),
            HashIter::Table(entries, now_ms) => {
                let entry = entries.find(|entry| is_alive(entry, *now_ms))?;
                Some((FieldName::plain(entry.name()), inline_scalar(entry)))
            }
        }
    }
}
