//! The types of values, one folder each, and the one table that lists them. Knows what a value is; refuses to know names,
//! databases, shards and commands.
//!
//! A type is a folder: how its values lie in memory, its changes and how they are made, how both are written. What the
//! rest of the server needs to know of a type is in its row, a [`ValueType`]. docs/adding-a-type.md says what a new one
//! takes.

pub mod cell;
pub mod hash;
pub mod list;
pub mod register;
pub mod run;
pub mod session;
pub mod set;
pub mod sorted_set;
pub mod stream;
pub mod string;

use crate::digest::Digest;
use crate::encoding::{BadEffect, Reader};
use crate::storage;
use cell::History;
use hash::FieldTable;
use list::ChunkedList;
use register::Register;
use run::Run;
use session::Session;
use set::MemberTable;
use sorted_set::SortedSet;
use stream::Stream;

pub use crate::storage::shapes::Shapes;

/// A key and its value.
pub type Entry = storage::entry::Entry<Object>;
/// Keys and their values.
pub type Table = storage::table::Table<Object>;

/// A value too large or too rich to lie inline in its entry.
#[derive(Clone)]
pub enum Object {
    /// A long string, with room to grow.
    Bytes(Vec<u8>),
    /// A large hash, or one with field deadlines.
    Hash(FieldTable),
    /// A large sorted set.
    SortedSet(SortedSet),
    /// A large set.
    Set(MemberTable),
    /// A cell with past versions, or a long one.
    Cell(History),
    /// A run.
    Run(Run),
    /// A register with a buffer, or a long one.
    Register(Register),
    /// A session.
    Session(Session),
    /// A list that is not small.
    List(ChunkedList),
    /// A stream.
    Stream(Stream),
}

/// Every type, in the order of the tags.
pub static TYPES: &[&ValueType] = &[
    &string::TYPE,
    &hash::TYPE,
    &sorted_set::TYPE,
    &set::TYPE,
    &cell::TYPE,
    &run::TYPE,
    &register::TYPE,
    &session::TYPE,
    &list::TYPE,
    &stream::TYPE,
];

/// What the rest of the server needs to know of a type.
pub struct ValueType {
    /// Stands for it in effects. IMPORTANT: given out once; journals on disk hold it.
    pub tag: u8,
    /// What TYPE says.
    pub name: &'static str,
    /// Redis's number for it, which DEBUG DIGEST takes in; for a type that Redis has not, 100 more than the tag.
    pub redis_number: u32,
    /// Its letter in `notify-keyspace-events`.
    pub event_letter: char,
    /// True for a type that Redis has not.
    pub is_own: bool,
    /// True for a type whose values stay under their names and have a life of their own: none is renamed, copied, moved, dumped,
    /// restored or given a deadline.
    pub is_bound: bool,
    /// Why no key of this name can hold such a value, if none can.
    pub name_error: fn(&[u8]) -> Option<&'static str>,
    /// What OBJECT ENCODING says: Redis's name for the form that it would keep such a value in.
    pub encoding: fn(&Entry) -> &'static str,
    /// How many elements a value has, expired ones included.
    pub elements: fn(&Entry, &Shapes) -> usize,
    /// Heap bytes of an object, judged by so many of its elements.
    pub heap_bytes: fn(&Object, usize) -> usize,
    /// True when freeing an object takes long enough that it is done after the locks are released.
    pub is_freed_later: fn(&Object) -> bool,
    /// Appends a value's image: all that makes it what it is.
    pub write_image: fn(&Entry, &Shapes, &mut Vec<u8>),
    /// Takes an image off the front of bytes that are not trusted.
    pub check_image: fn(&mut Reader<'_>) -> Result<(), BadEffect>,
    /// An entry of that name, with that deadline, made from an image that was checked.
    pub read_image: fn(&[u8], Reader<'_>, &mut Shapes, Option<u64>) -> Entry,
    /// Gives back what an entry refers to beside itself. Called once, before it is dropped or its body replaced. `None` when
    /// no entry of the type does: then one can be copied byte by byte into another database.
    pub release: Option<fn(&Entry, &mut Shapes)>,
    /// The value as Redis's formats have it, at an instant.
    pub to_redis: fn(&Entry, &Shapes, u64) -> formats::Value,
    /// Takes a value into a signature, as Redis does.
    pub digest: fn(&Entry, &Shapes, u64, &mut Digest),
}

impl ValueType {
    /// The type of an entry's value.
    #[inline]
    pub fn of(entry: &Entry) -> &'static ValueType {
        match entry.kind() {
            string::TEXT | string::NUMBER => &string::TYPE,
            hash::PACKED => &hash::TYPE,
            sorted_set::PACKED => &sorted_set::TYPE,
            set::PACKED | set::INTSET => &set::TYPE,
            cell::PACKED => &cell::TYPE,
            register::PACKED => &register::TYPE,
            list::PACKED => &list::TYPE,
            _ => match entry.object().expect("an object entry has an object") {
                Object::Bytes(_) => &string::TYPE,
                Object::Hash(_) => &hash::TYPE,
                Object::SortedSet(_) => &sorted_set::TYPE,
                Object::Set(_) => &set::TYPE,
                Object::Cell(_) => &cell::TYPE,
                Object::Run(_) => &run::TYPE,
                Object::Register(_) => &register::TYPE,
                Object::Session(_) => &session::TYPE,
                Object::List(_) => &list::TYPE,
                Object::Stream(_) => &stream::TYPE,
            },
        }
    }

    /// The type of that tag.
    pub fn with_tag(tag: u8) -> Result<&'static ValueType, BadEffect> {
        let found = TYPES.iter().find(|value_type| value_type.tag == tag);
        found.copied().ok_or(BadEffect::UnknownChange(tag, 0))
    }

    /// Gives back what an entry of the type refers to beside itself.
    pub(crate) fn release_entry(&self, entry: &Entry, shapes: &mut Shapes) {
        if let Some(release) = self.release {
            release(entry, shapes);
        }
    }

    /// True for a value in the compact form of small ones, which DUMP keeps.
    pub fn is_packed(&self, entry: &Entry) -> bool {
        !matches!((self.encoding)(entry), "hashtable" | "skiplist")
    }

    /// True when both are the same type.
    #[inline]
    pub fn is(&self, other: &ValueType) -> bool {
        self.tag == other.tag
    }
}

/// When a small value becomes a large one. Never visible but through OBJECT ENCODING and memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thresholds {
    pub hash: hash::Thresholds,
    pub sorted_set: sorted_set::Thresholds,
    pub set: set::Thresholds,
    pub stream: stream::Thresholds,
}

/// The settings that thresholds are read from.
pub const THRESHOLD_SETTINGS: [&str; 7] = [
    "hash-max-listpack-entries",
    "hash-max-listpack-value",
    "zset-max-listpack-entries",
    "zset-max-listpack-value",
    "set-max-intset-entries",
    "stream-node-max-entries",
    "stream-node-max-bytes",
];

impl Thresholds {
    /// From the values of [`THRESHOLD_SETTINGS`], in their order.
    #[inline]
    pub fn of(values: [usize; THRESHOLD_SETTINGS.len()]) -> Thresholds {
        let [hash_entries_max, hash_value_bytes_max, zset_entries_max, zset_value_bytes_max, intset_entries_max, ..] =
            values;
        let [.., node_entries_max, node_bytes_max] = values;
        Thresholds {
            hash: hash::Thresholds { entries_max: hash_entries_max, value_bytes_max: hash_value_bytes_max },
            sorted_set: sorted_set::Thresholds { entries_max: zset_entries_max, value_bytes_max: zset_value_bytes_max },
            set: set::Thresholds { intset_entries_max },
            stream: stream::Thresholds { entries_max: node_entries_max, bytes_max: node_bytes_max },
        }
    }
}

/// A change of one value, of any type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    String(string::Change<'a>),
    Hash(hash::Change<'a>),
    SortedSet(sorted_set::Change<'a>),
    Set(set::Change<'a>),
    Cell(cell::Change<'a>),
    Run(run::Change<'a>),
    Register(register::Change<'a>),
    Session(session::Change<'a>),
    List(list::Change<'a>),
    Stream(stream::Change<'a>),
}

impl<'a> From<string::Change<'a>> for Change<'a> {
    #[inline]
    fn from(change: string::Change<'a>) -> Change<'a> {
        Change::String(change)
    }
}

impl<'a> From<hash::Change<'a>> for Change<'a> {
    #[inline]
    fn from(change: hash::Change<'a>) -> Change<'a> {
        Change::Hash(change)
    }
}

impl<'a> From<sorted_set::Change<'a>> for Change<'a> {
    #[inline]
    fn from(change: sorted_set::Change<'a>) -> Change<'a> {
        Change::SortedSet(change)
    }
}

impl<'a> From<set::Change<'a>> for Change<'a> {
    #[inline]
    fn from(change: set::Change<'a>) -> Change<'a> {
        Change::Set(change)
    }
}

impl<'a> From<cell::Change<'a>> for Change<'a> {
    #[inline]
    fn from(change: cell::Change<'a>) -> Change<'a> {
        Change::Cell(change)
    }
}

impl<'a> From<run::Change<'a>> for Change<'a> {
    #[inline]
    fn from(change: run::Change<'a>) -> Change<'a> {
        Change::Run(change)
    }
}

impl<'a> From<register::Change<'a>> for Change<'a> {
    #[inline]
    fn from(change: register::Change<'a>) -> Change<'a> {
        Change::Register(change)
    }
}

impl<'a> From<session::Change<'a>> for Change<'a> {
    #[inline]
    fn from(change: session::Change<'a>) -> Change<'a> {
        Change::Session(change)
    }
}

impl<'a> From<list::Change<'a>> for Change<'a> {
    #[inline]
    fn from(change: list::Change<'a>) -> Change<'a> {
        Change::List(change)
    }
}

impl<'a> From<stream::Change<'a>> for Change<'a> {
    #[inline]
    fn from(change: stream::Change<'a>) -> Change<'a> {
        Change::Stream(change)
    }
}

/// What applying a change came to, where the state alone can tell.
///
/// Two words, so that it is returned in registers. In memory, it would be written by the word and read by two: such a read waits
/// until all writes before it have reached the cache, among them those to the value, which often is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Elements created or removed, keys removed, or the length of the string written.
    pub count: usize,
    /// Nothing (0), that it was emptied, or one more than the deadline that was replaced.
    rest: u64,
}

const EMPTIED: u64 = u64::MAX;

impl Applied {
    /// So many, and nothing else to say.
    #[inline]
    pub fn counted(count: usize) -> Applied {
        Applied { count, rest: 0 }
    }

    /// The last element is gone, and the key with it.
    #[inline]
    pub fn emptied(&self) -> bool {
        self.rest == EMPTIED
    }

    #[inline]
    pub(crate) fn set_emptied(&mut self, emptied: bool) {
        self.rest = if emptied { EMPTIED } else { 0 };
    }

    /// The deadline of the value that a string replaced: it may have passed unnoticed.
    #[inline]
    pub fn replaced_deadline(&self) -> Option<u64> {
        self.rest.checked_sub(1).filter(|_| !self.emptied())
    }

    #[inline]
    pub(crate) fn replacing(mut self, deadline: Option<u64>) -> Applied {
        self.rest = deadline.map_or(0, |deadline| deadline.saturating_add(1).min(EMPTIED - 1));
        self
    }
}

/// Why something is gone. It makes no difference to the state, but to notifications and invalidations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Deleted,
    Expired,
    /// Removed to make room.
    Evicted,
}

/// What becomes of the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is read, and stays as it is.
    Read,
    /// It has a value afterwards, which may be its first; with `replaces`, whatever it held is gone.
    Gains { replaces: bool },
    /// Its value loses something, and may be gone.
    Loses(Cause),
    /// Its value changes in something that no client waits for, such as what is pending in a group of a stream.
    Amended,
    /// Its value stays as it is; when it expires changes.
    Deadline,
    /// It is gone.
    Gone(Cause),
}

/// Which fields of a record a change is about: indexes look no further.
#[derive(Clone, Copy)]
pub enum RecordFields<'a> {
    /// The value is no record before and none after.
    None,
    /// These fields get these values.
    Set(&'a [hash::Pair<'a>]),
    /// These fields.
    Named(&'a [&'a [u8]]),
    /// Perhaps any.
    Any,
}

impl<'a> Change<'a> {
    /// The type that it is a change of.
    #[inline]
    pub fn value_type(&self) -> &'static ValueType {
        match self {
            Change::String(_) => &string::TYPE,
            Change::Hash(_) => &hash::TYPE,
            Change::SortedSet(_) => &sorted_set::TYPE,
            Change::Set(_) => &set::TYPE,
            Change::Cell(_) => &cell::TYPE,
            Change::Run(_) => &run::TYPE,
            Change::Register(_) => &register::TYPE,
            Change::Session(_) => &session::TYPE,
            Change::List(_) => &list::TYPE,
            Change::Stream(_) => &stream::TYPE,
        }
    }

    /// What becomes of the key.
    #[inline]
    pub fn fate(&self) -> Fate {
        match self {
            Change::String(
                string::Change::Set { .. } | string::Change::Write { .. } | string::Change::Splice { .. },
            ) => Fate::Gains { replaces: false },
            Change::Hash(change) => change.fate(),
            Change::SortedSet(change) => change.fate(),
            Change::Set(change) => change.fate(),
            Change::Cell(change) => change.fate(),
            Change::Run(change) => change.fate(),
            Change::Register(change) => change.fate(),
            Change::Session(change) => change.fate(),
            Change::List(change) => change.fate(),
            Change::Stream(change) => change.fate(),
        }
    }

    /// The keyspace event of the plainest command that makes this change; empty when there is none.
    pub fn event(&self) -> &'static str {
        match self {
            Change::String(change) => change.event(),
            Change::Hash(change) => change.event(),
            Change::SortedSet(change) => change.event(),
            Change::Set(change) => change.event(),
            Change::Cell(change) => change.event(),
            Change::Run(change) => change.event(),
            Change::Register(change) => change.event(),
            Change::Session(change) => change.event(),
            Change::List(change) => change.event(),
            Change::Stream(change) => change.event(),
        }
    }

    /// True when it can be made whatever type of value the key holds: that goes.
    #[inline]
    pub fn replaces_other_types(&self) -> bool {
        matches!(self, Change::String(string::Change::Set { .. }))
    }

    /// The fields of a record that it is about.
    #[inline]
    pub fn record_fields(&self) -> RecordFields<'a> {
        match self {
            Change::Hash(change) => change.record_fields(),
            Change::String(_)
            | Change::SortedSet(_)
            | Change::Set(_)
            | Change::Cell(_)
            | Change::Run(_)
            | Change::Register(_)
            | Change::Session(_)
            | Change::List(_)
            | Change::Stream(_) => RecordFields::None,
        }
    }

    /// Makes the change in an entry that holds a value of its type.
    #[inline]
    pub fn apply(&self, entry: &mut Entry, shapes: &mut Shapes, thresholds: &Thresholds) -> Applied {
        match self {
            Change::String(change) => change.apply(entry),
            Change::Hash(change) => change.apply(entry, shapes, &thresholds.hash),
            Change::SortedSet(change) => change.apply(entry, &thresholds.sorted_set),
            Change::Set(change) => change.apply(entry, &thresholds.set),
            Change::Cell(change) => change.apply(entry),
            Change::Run(change) => change.apply(entry),
            Change::Register(change) => change.apply(entry),
            Change::Session(change) => change.apply(entry),
            Change::List(change) => change.apply(entry),
            Change::Stream(change) => change.apply(entry, &thresholds.stream),
        }
    }

    /// A new entry that the change makes of a key that was missing; `None` when there is nothing to make.
    #[inline]
    pub fn create(&self, name: &[u8], shapes: &mut Shapes, thresholds: &Thresholds) -> Option<(Entry, Applied)> {
        match self {
            Change::String(change) => Some(change.create(name)),
            Change::Hash(change) => change.create(name, shapes, &thresholds.hash),
            Change::SortedSet(change) => change.create(name, &thresholds.sorted_set),
            Change::Set(change) => change.create(name, &thresholds.set),
            Change::Cell(change) => Some(change.create(name)),
            Change::Run(change) => change.create(name),
            Change::Register(change) => change.create(name),
            Change::Session(change) => change.create(name),
            Change::List(change) => change.create(name),
            Change::Stream(change) => change.create(name, &thresholds.stream),
        }
    }

    /// Appends the change: the tag of its type, its own tag, and what belongs to it.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.value_type().tag);
        match self {
            Change::String(change) => change.encode(out),
            Change::Hash(change) => change.encode(out),
            Change::SortedSet(change) => change.encode(out),
            Change::Set(change) => change.encode(out),
            Change::Cell(change) => change.encode(out),
            Change::Run(change) => change.encode(out),
            Change::Register(change) => change.encode(out),
            Change::Session(change) => change.encode(out),
            Change::List(change) => change.encode(out),
            Change::Stream(change) => change.encode(out),
        }
    }

    /// Reads a change. The lists that it refers to are kept in `lists`.
    pub(crate) fn decode<'l>(reader: &mut Reader<'l>, lists: &'a mut Lists<'l>) -> Result<Change<'a>, BadEffect>
    where
        'l: 'a,
    {
        match reader.byte()? {
            tag if tag == string::TYPE.tag => string::Change::decode(reader).map(Change::String),
            tag if tag == hash::TYPE.tag => hash::Change::decode(reader, lists).map(Change::Hash),
            tag if tag == sorted_set::TYPE.tag => sorted_set::Change::decode(reader, lists).map(Change::SortedSet),
            tag if tag == set::TYPE.tag => set::Change::decode(reader, lists).map(Change::Set),
            tag if tag == cell::TYPE.tag => cell::Change::decode(reader).map(Change::Cell),
            tag if tag == run::TYPE.tag => run::Change::decode(reader).map(Change::Run),
            tag if tag == register::TYPE.tag => register::Change::decode(reader).map(Change::Register),
            tag if tag == session::TYPE.tag => session::Change::decode(reader).map(Change::Session),
            tag if tag == list::TYPE.tag => list::Change::decode(reader, lists).map(Change::List),
            tag if tag == stream::TYPE.tag => stream::Change::decode(reader, lists).map(Change::Stream),
            unknown => Err(BadEffect::UnknownChange(unknown, 0)),
        }
    }
}

/// Lists that changes are read into, kept for their memory.
#[derive(Default)]
pub(crate) struct Lists<'l> {
    pub(crate) pairs: Vec<hash::Pair<'l>>,
    pub(crate) names: Vec<&'l [u8]>,
    pub(crate) members: Vec<sorted_set::Scored<'l>>,
    pub(crate) ids: Vec<stream::StreamId>,
    pub(crate) deliveries: Vec<stream::Delivery>,
}

/// A value that came from Redis, as an image. `None` when it is of a type that is not kept here, or nothing is left of it
/// at that instant.
pub fn image_of(
    value: &formats::Value,
    now_ms: u64,
    thresholds: &Thresholds,
) -> Option<(&'static ValueType, Restored)> {
    let mut restored = Restored::default();
    let value_type = match value {
        formats::Value::String(bytes) => {
            string::image_of(bytes, &mut restored.image);
            &string::TYPE
        }
        formats::Value::Hash(fields) => {
            restored.elements_expired = hash::image_of(fields, now_ms, &thresholds.hash, &mut restored.image);
            &hash::TYPE
        }
        formats::Value::SortedSet(members) => {
            sorted_set::image_of(members, &thresholds.sorted_set, &mut restored.image);
            &sorted_set::TYPE
        }
        formats::Value::Set(members) => {
            set::image_of(members, &thresholds.set, &mut restored.image);
            &set::TYPE
        }
        formats::Value::List(elements) => {
            list::image_of(elements, &mut restored.image);
            &list::TYPE
        }
        formats::Value::Stream(from) => {
            stream::image_of(from, &mut restored.image);
            &stream::TYPE
        }
        formats::Value::Own(own) => {
            let value_type = own_type(own)?;
            restored.image.extend_from_slice(&own.image);
            value_type
        }
        formats::Value::Unsupported(_) => return None,
    };
    Some((value_type, restored))
}

/// The type of a value of ours; `None` when there is none of that tag, or the image is none of that type.
pub fn own_type(value: &formats::OwnValue) -> Option<&'static ValueType> {
    let value_type = ValueType::with_tag(value.tag).ok().filter(|value_type| value_type.is_own)?;
    let mut image = Reader::new(&value.image);
    (value_type.check_image)(&mut image).ok().filter(|()| image.is_empty())?;
    Some(value_type)
}

/// A value that came from Redis.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    /// Empty when nothing is left.
    pub image: Vec<u8>,
    /// Elements that had expired.
    pub elements_expired: usize,
}

/// A packed value has no more elements than this, none longer than that, whatever the settings say: every look-up walks over
/// them.
pub(crate) const PACKED_ELEMENTS_MAX: usize = 1024;
pub(crate) const PACKED_BYTES_MAX: usize = 4096;
/// Values with more elements than this are not freed while locks are held.
pub(crate) const FREED_AT_ONCE_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Kind;
    use std::collections::BTreeSet;

    #[test]
    fn tags_and_names_are_given_out_once() {
        let tags: BTreeSet<u8> = TYPES.iter().map(|value_type| value_type.tag).collect();
        let names: BTreeSet<&str> = TYPES.iter().map(|value_type| value_type.name).collect();
        assert_eq!((tags.len(), names.len()), (TYPES.len(), TYPES.len()));
        assert!(TYPES.iter().all(|value_type| ValueType::with_tag(value_type.tag).unwrap().is(value_type)));
    }

    #[test]
    fn kinds_of_inline_bodies_are_given_out_once() {
        let kinds = [
            string::TEXT,
            string::NUMBER,
            hash::PACKED,
            sorted_set::PACKED,
            set::PACKED,
            set::INTSET,
            cell::PACKED,
            register::PACKED,
            list::PACKED,
            Kind::OBJECT,
        ];
        let distinct: BTreeSet<String> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
        assert_eq!(distinct.len(), kinds.len());
    }
}

#[cfg(test)]
mod applied_tests {
    use super::Applied;

    #[test]
    fn what_a_change_came_to_is_one_of_three_things() {
        let plain = Applied::counted(3);
        assert_eq!((plain.count, plain.emptied(), plain.replaced_deadline()), (3, false, None));
        for deadline in [0, 1, 1_763_172_000_000] {
            let replaced = plain.replacing(Some(deadline));
            assert_eq!((replaced.emptied(), replaced.replaced_deadline()), (false, Some(deadline)));
        }
        assert!(!plain.replacing(Some(u64::MAX)).emptied());
        let mut emptied = plain;
        emptied.set_emptied(true);
        assert_eq!((emptied.emptied(), emptied.replaced_deadline()), (true, None));
        emptied.set_emptied(false);
        assert_eq!(emptied, plain);
    }
}
