//! What a key holds, as a reader sees it. Knows the types and Redis's names for them; refuses to know how they
//! are stored.

use super::entry::{Entry, Kind};
use super::hash::{FieldTable, HashRef, scalar};
use super::object::Object;
use super::packed::Packed;
use super::scalar::Scalar;
use super::shapes::Shapes;
use super::sorted_set::{self, SortedSetRef};

/// The value of a key, to be read.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    String(Scalar<'a>),
    Hash(HashRef<'a>),
    SortedSet(SortedSetRef<'a>),
}

impl<'a> Value<'a> {
    #[inline]
    pub fn of(entry: &'a Entry, shapes: &'a Shapes, now_ms: u64) -> Value<'a> {
        match entry.kind() {
            Kind::Text | Kind::Number => Value::String(scalar(entry)),
            Kind::PackedHash => Value::Hash(HashRef::Packed(Packed::new(entry.body(), shapes))),
            Kind::PackedSortedSet => Value::SortedSet(SortedSetRef::Packed(sorted_set::Packed::new(entry.body()))),
            Kind::Object => match entry.object().expect("an object entry has an object") {
                Object::Bytes(bytes) => Value::String(Scalar::Bytes(bytes)),
                Object::Hash(table) => Value::Hash(HashRef::Table(table, now_ms)),
                Object::SortedSet(set) => Value::SortedSet(SortedSetRef::Table(set)),
            },
        }
    }

    /// The name TYPE gives it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::String(_) => "string",
            Value::Hash(_) => "hash",
            Value::SortedSet(_) => "zset",
        }
    }
}

/// A value taken out of the keyspace, or copied, on its way to another key.
pub enum Loose {
    String {
        bytes: Vec<u8>,
        number: Option<i64>,
        marked: bool,
    },
    /// A small hash: packed anew where it arrives, since shapes belong to a database.
    Packed(Vec<(Vec<u8>, Vec<u8>)>),
    /// A small sorted set as it lies in its entry.
    PackedSortedSet(Vec<u8>),
    Object(Box<Object>),
}

impl Loose {
    pub fn copy_of(entry: &Entry, shapes: &Shapes) -> Loose {
        match entry.kind() {
            Kind::Text => Loose::String { bytes: entry.body().to_vec(), number: None, marked: entry.is_marked() },
            Kind::Number => match scalar(entry) {
                Scalar::Number(number) => Loose::String { bytes: Vec::new(), number: Some(number), marked: false },
                Scalar::Bytes(_) => unreachable!("a number entry reads as a number"),
            },
            Kind::PackedHash => Loose::Packed(
                Packed::new(entry.body(), shapes)
                    .iter()
                    .map(|(field, value)| (field.scalar().bytes().into_owned(), value.bytes().into_owned()))
                    .collect(),
            ),
            Kind::PackedSortedSet => Loose::PackedSortedSet(entry.body().to_vec()),
            Kind::Object => Loose::Object(Box::new(entry.object().expect("an object entry has an object").clone())),
        }
    }

    /// Takes the value out of an entry that is no longer in any table.
    pub fn taken_from(entry: Entry, shapes: &Shapes) -> Loose {
        match entry.kind() {
            Kind::Object => Loose::Object(entry.into_object().expect("an object entry has an object")),
            _ => Loose::copy_of(&entry, shapes),
        }
    }
}

impl Clone for Object {
    fn clone(&self) -> Object {
        match self {
            Object::Bytes(bytes) => Object::Bytes(bytes.clone()),
            Object::Hash(table) => Object::Hash(FieldTable::clone(table)),
            Object::SortedSet(set) => Object::SortedSet(set.clone()),
        }
    }
}
