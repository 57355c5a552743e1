//! A value that was removed from a database, to be stored at another key or in another keyspace. Knows images and
//! objects; refuses to know types.

use crate::encoding::Reader;
use crate::types::{Entry, Object, Shapes, ValueType};

/// A value without a key.
pub(super) enum DetachedValue {
    /// A small value, as its image: its body refers to shapes of the database that it came from.
    Small(&'static ValueType, Vec<u8>),
    /// A large value, moved without copying.
    Large(Box<Object>),
}

impl DetachedValue {
    pub(super) fn copy_of(entry: &Entry, shapes: &Shapes) -> DetachedValue {
        match entry.object() {
            Some(object) => DetachedValue::Large(Box::new(object.clone())),
            None => {
                let (value_type, mut image) = (ValueType::of(entry), Vec::new());
                (value_type.write_image)(entry, shapes, &mut image);
                DetachedValue::Small(value_type, image)
            }
        }
    }

    /// Takes the value out of an entry that is no longer in any table.
    pub(super) fn taken_from(entry: Entry, shapes: &mut Shapes) -> DetachedValue {
        if entry.object().is_some() {
            return DetachedValue::Large(entry.into_object().expect("an object entry has an object"));
        }
        let value = DetachedValue::copy_of(&entry, shapes);
        ValueType::of(&entry).release_entry(&entry, shapes);
        value
    }

    pub(super) fn into_entry(self, name: &[u8], shapes: &mut Shapes, deadline: Option<u64>) -> Entry {
        match self {
            DetachedValue::Small(value_type, image) => {
                (value_type.read_image)(name, Reader::new(&image), shapes, deadline)
            }
            DetachedValue::Large(object) => Entry::with_object(name, object, deadline),
        }
    }
}

/// A copy of a key, for another keyspace or to be restored: its value and deadline, or that it was absent.
pub struct KeyCopy(pub(super) Copied);

pub(super) enum Copied {
    Absent,
    /// The entry itself, for types whose entries do not refer to anything outside.
    Entry(Entry),
    Value(DetachedValue, Option<u64>),
}

impl KeyCopy {
    /// The copy of an absent key.
    pub const ABSENT: KeyCopy = KeyCopy(Copied::Absent);

    pub(super) fn new(entry: Option<&Entry>, shapes: &Shapes) -> KeyCopy {
        KeyCopy(match entry {
            None => Copied::Absent,
            Some(entry) if ValueType::of(entry).release.is_none() => Copied::Entry(entry.clone()),
            Some(entry) => Copied::Value(DetachedValue::copy_of(entry, shapes), entry.deadline()),
        })
    }

    /// Like `new`, for a copy that takes the place of the original: a session stays the same session.
    pub(super) fn to_restore(entry: Option<&Entry>, shapes: &Shapes) -> KeyCopy {
        match entry.and_then(|entry| entry.object().map(|object| (entry, object))) {
            Some((entry, Object::Session(session))) => {
                let same = Box::new(Object::Session(session.same()));
                KeyCopy(Copied::Value(DetachedValue::Large(same), entry.deadline()))
            }
            _ => KeyCopy::new(entry, shapes),
        }
    }
}
