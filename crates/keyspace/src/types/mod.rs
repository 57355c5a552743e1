//! The types of values, one folder each, and the one table that lists them. Knows what a value is; refuses to know
//! names, databases, shards and commands.
//!
//! A type is a folder: the memory layout of its values, its changes and how they are applied, and the encodings of
//! both. What the rest of the server needs to know about a type is in its row, a [`ValueType`]. docs/adding-a-type.md
//! lists the places that a new type takes.

pub mod cell;
pub mod hash;
pub mod list;
pub(crate) mod listed;
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

/// A value too large or too rich to lie inline in its entry. Other crates cannot list the types: see
/// [`Value`](crate::Value).
#[derive(Clone)]
#[non_exhaustive]
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

/// The row of a type: what the rest of the server needs to know about it.
pub struct ValueType {
    /// Identifies the type in effects. IMPORTANT: never reused; journals on disk contain it.
    pub tag: u8,
    /// The name that TYPE returns.
    pub name: &'static str,
    /// Redis's number for the type, which DEBUG DIGEST mixes in; for a type that Redis does not have, the tag plus 100.
    pub redis_number: u32,
    /// Its letter in `notify-keyspace-events`.
    pub event_letter: char,
    /// True for a type that Redis does not have. Its values are never evicted, and no command puts another value in
    /// their place: only the commands of their family change them.
    pub is_own: bool,
    /// True for a type whose values stay under their names and have a lifetime of their own: they cannot be renamed,
    /// copied, moved or given a deadline.
    pub is_bound: bool,
    /// Why a key of this name cannot hold such a value, if so.
    pub name_error: fn(&[u8]) -> Option<&'static str>,
    /// The result of OBJECT ENCODING: Redis's name for the form that it would use.
    pub encoding: fn(&Entry) -> &'static str,
    /// How many elements a value has, expired ones included.
    pub elements: fn(&Entry, &Shapes) -> usize,
    /// Heap bytes of an object, estimated from this number of elements.
    pub heap_bytes: fn(&Object, usize) -> usize,
    /// True when freeing an object takes long enough that it is done after the locks are released.
    pub is_freed_later: fn(&Object) -> bool,
    /// Appends a value's image: the whole value as bytes.
    pub write_image: fn(&Entry, &Shapes, &mut Vec<u8>),
    /// Consumes an image from the front of untrusted bytes and checks it.
    pub check_image: fn(&mut Reader<'_>) -> Result<(), BadEffect>,
    /// Creates an entry with this name and deadline from a checked image.
    pub read_image: fn(&[u8], Reader<'_>, &mut Shapes, Option<u64>) -> Entry,
    /// Releases what an entry refers to outside of itself. Called once, before it is dropped or its body replaced.
    /// `None` when entries of the type refer to nothing: then one can be copied byte by byte into another database.
    pub release: Option<fn(&Entry, &mut Shapes)>,
    /// How single elements expire, for a type whose elements have deadlines.
    pub element_expiry: Option<ElementExpiry>,
    /// The value as Redis's formats have it, at an instant.
    pub to_redis: fn(&Entry, &Shapes, u64) -> formats::Value,
    /// Adds a value to a digest, as Redis does.
    pub digest: fn(&Entry, &Shapes, u64, &mut Digest),
}

/// How single elements of a value expire.
pub struct ElementExpiry {
    /// The keyspace event of elements that have expired.
    pub event: &'static str,
    /// When an element of an object expires next; `None` once all have expired.
    pub next: fn(&Object, u64) -> Option<u64>,
    /// The names of elements of an object that have expired by then, at most so many.
    pub names: fn(&Object, u64, usize) -> Vec<Vec<u8>>,
    /// The change that removes these elements.
    pub removal: for<'a> fn(&'a [&'a [u8]]) -> Change<'a>,
}

impl Object {
    /// Takes what the last change has removed of the value, if that takes long to free.
    pub(crate) fn take_removed(&mut self) -> Option<impl Send + 'static + use<>> {
        match self {
            Object::Stream(stream) => stream.take_removed(),
            _ => None,
        }
    }

    /// True when the value has expired, whatever the deadline of its key: each of its elements has, or its lifetime is
    /// over.
    #[inline]
    pub fn is_expired(&self, now_ms: u64) -> bool {
        match self {
            Object::Hash(table) => table.all_expired(now_ms),
            Object::Session(session) => session.is_expired(now_ms),
            Object::Bytes(_)
            | Object::SortedSet(_)
            | Object::Set(_)
            | Object::Cell(_)
            | Object::Run(_)
            | Object::Register(_)
            | Object::List(_)
            | Object::Stream(_) => false,
        }
    }

    /// When the value expires, for a type whose values have a lifetime instead of a deadline.
    pub fn expires_ms(&self, now_ms: u64) -> Option<u64> {
        if let Object::Session(session) = self { Some(session.expires_ms(now_ms)) } else { None }
    }

    /// Prefetches what a write touches behind the object.
    #[inline]
    pub(crate) fn prefetch_write(&self) {
        match self {
            Object::Cell(history) => history.prefetch_end(),
            Object::Run(run) => run.prefetch_append(),
            Object::List(list) => list.prefetch_ends(),
            Object::Bytes(_)
            | Object::Hash(_)
            | Object::SortedSet(_)
            | Object::Set(_)
            | Object::Register(_)
            | Object::Session(_)
            | Object::Stream(_) => {}
        }
    }
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

    /// Its position in [`TYPES`].
    #[inline]
    pub fn position(&self) -> usize {
        usize::from(self.tag) - 1
    }

    /// The type of that tag.
    pub fn with_tag(tag: u8) -> Result<&'static ValueType, BadEffect> {
        let found = TYPES.iter().find(|value_type| value_type.tag == tag);
        found.copied().ok_or(BadEffect::UnknownChange(tag, 0))
    }

    /// Releases what an entry of the type refers to outside of itself.
    pub(crate) fn release_entry(&self, entry: &Entry, shapes: &mut Shapes) {
        if let Some(release) = self.release {
            release(entry, shapes);
        }
    }

    /// True for a value in the compact form of small values, which DUMP preserves.
    pub fn is_packed(&self, entry: &Entry) -> bool {
        !matches!((self.encoding)(entry), "hashtable" | "skiplist")
    }

    /// True when both are the same type.
    #[inline]
    pub fn is(&self, other: &ValueType) -> bool {
        self.tag == other.tag
    }
}

/// When a small value becomes a large one. Only visible through OBJECT ENCODING and memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thresholds {
    pub hash: hash::Thresholds,
    pub sorted_set: sorted_set::Thresholds,
    pub set: set::Thresholds,
    pub list: list::Thresholds,
    pub stream: stream::Thresholds,
}

/// The settings that thresholds are read from.
pub const THRESHOLD_SETTINGS: [&str; 10] = [
    "list-max-listpack-size",
    "hash-max-listpack-entries",
    "hash-max-listpack-value",
    "zset-max-listpack-entries",
    "zset-max-listpack-value",
    "set-max-intset-entries",
    "set-max-listpack-entries",
    "set-max-listpack-value",
    "stream-node-max-entries",
    "stream-node-max-bytes",
];

impl Thresholds {
    /// From the values of [`THRESHOLD_SETTINGS`], in order.
    #[inline]
    pub fn of(values: [usize; THRESHOLD_SETTINGS.len()]) -> Thresholds {
        let [list_size_max, hash_entries_max, hash_value_bytes_max, zset_entries_max, zset_value_bytes_max, ..] =
            values;
        let [.., intset_entries_max, small_entries_max, small_value_bytes_max, node_entries_max, node_bytes_max] =
            values;
        Thresholds {
            hash: hash::Thresholds { entries_max: hash_entries_max, value_bytes_max: hash_value_bytes_max },
            sorted_set: sorted_set::Thresholds { entries_max: zset_entries_max, value_bytes_max: zset_value_bytes_max },
            set: set::Thresholds { intset_entries_max, small_entries_max, small_value_bytes_max },
            // A class of bytes is a negative number.
            list: list::Thresholds { small_size_max: list_size_max as i64 },
            stream: stream::Thresholds { entries_max: node_entries_max, bytes_max: node_bytes_max },
        }
    }
}

/// A change of one value, of any type. Other crates cannot list the types: see [`Value`](crate::Value).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
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

/// The result of applying a change, as far as it depends on the state.
///
/// Two words, so that it is returned in registers. In memory, it would be written word by word and read as two words:
/// such a read waits until all earlier writes have reached the cache, including those to the value, which often is not
/// cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Elements created or removed, keys removed, or the length of the string written.
    pub count: usize,
    /// 0 for nothing, a marker for "emptied", or the replaced deadline plus one.
    rest: u64,
}

const EMPTIED: u64 = u64::MAX;

impl Applied {
    /// A result with only a count.
    #[inline]
    pub fn counted(count: usize) -> Applied {
        Applied { count, rest: 0 }
    }

    /// True when the last element was removed, and the key with it.
    #[inline]
    pub fn emptied(&self) -> bool {
        self.rest == EMPTIED
    }

    #[inline]
    pub(crate) fn set_emptied(&mut self, emptied: bool) {
        self.rest = if emptied { EMPTIED } else { 0 };
    }

    /// The deadline of the value that a string replaced: it may have passed without having been processed.
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

/// Why something was removed. It matters to notifications and invalidations, not to the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Deleted,
    Expired,
    /// Removed to make room.
    Evicted,
}

/// What an effect does to the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The value is read and does not change.
    Read,
    /// The key has a value afterwards, possibly its first; with `replaces`, its old value is gone.
    Gains { replaces: bool },
    /// The value loses elements, and may be gone.
    Loses(Cause),
    /// The value changes in a way that no client waits for, such as the pending entries of a stream's group.
    Amended,
    /// Only what Redis does not call a change of the key: when a consumer was seen, or how often an entry was delivered.
    /// It is journalled; watchers, caches and waiting clients learn nothing of it.
    Noted,
    /// Only the deadline changes.
    Deadline,
    /// The key is deleted.
    Gone(Cause),
}

/// The fields of a record that a change affects: indexes use nothing else.
#[derive(Clone, Copy)]
pub enum RecordFields<'a> {
    /// The value is not a record before or after.
    None,
    /// These fields are set to these values.
    Set(&'a [hash::Pair<'a>]),
    /// These fields.
    Named(&'a [&'a [u8]]),
    /// Possibly any field.
    Any,
}

impl<'a> Change<'a> {
    /// The type that the change belongs to.
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

    /// What the change does to the key.
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

    /// The keyspace event of the simplest command that makes this change; empty when there is none.
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

    /// True when the change replaces a value of any type.
    #[inline]
    pub fn replaces_other_types(&self) -> bool {
        matches!(self, Change::String(string::Change::Set { .. }))
    }

    /// True when it may remove a part of a value that takes long to free: see [`Object::take_removed`].
    #[inline]
    pub(crate) fn removes_parts(&self) -> bool {
        matches!(self, Change::Stream(change) if change.removes_parts())
    }

    /// The fields of a record that it affects.
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

    /// Applies the change to an entry that holds a value of its type.
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
            Change::List(change) => change.apply(entry, &thresholds.list),
            Change::Stream(change) => change.apply(entry, &thresholds.stream),
        }
    }

    /// Creates the entry that the change makes of a missing key; `None` when it makes none.
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
            Change::List(change) => change.create(name, &thresholds.list),
            Change::Stream(change) => change.create(name, &thresholds.stream),
        }
    }

    /// Appends the change: the tag of its type, its own tag, and its data.
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

    /// Reads a change. `lists` owns the lists that it borrows.
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

/// Lists that changes are read into; they keep their memory.
#[derive(Default)]
pub(crate) struct Lists<'l> {
    pub(crate) pairs: Vec<hash::Pair<'l>>,
    pub(crate) names: Vec<&'l [u8]>,
    pub(crate) members: Vec<sorted_set::Scored<'l>>,
    pub(crate) ids: Vec<stream::StreamId>,
    pub(crate) deliveries: Vec<stream::Delivery>,
}

/// Converts a value that came from Redis into an image. `None` when its type is not supported, or nothing of it is left
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
        formats::Value::SmallSet(members) => {
            set::image_of_small(members, &thresholds.set, &mut restored.image);
            &set::TYPE
        }
        formats::Value::List(elements) => {
            list::image_of(elements, &thresholds.list, &mut restored.image);
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

/// The type of a value of our own types; `None` when the tag is unknown or the image is invalid.
pub fn own_type(value: &formats::OwnValue) -> Option<&'static ValueType> {
    let value_type = ValueType::with_tag(value.tag).ok();
    // A stream with released entries has no place in Redis's formats.
    let value_type = value_type.filter(|value_type| value_type.is_own || value_type.is(&stream::TYPE))?;
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

/// The most elements of a packed value, and their greatest length, whatever the settings say: every look-up walks over
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
        assert!(TYPES.iter().all(|value_type| TYPES[value_type.position()].is(value_type)));
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
