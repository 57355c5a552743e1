//! What a key holds, as a reader sees it: any value ([`Value`]), or one of a type that the code names ([`Typed`]).
//! Knows the types; refuses to know how they are stored.

use super::sorted_set_ref::SortedSetRef;
use crate::db::Db;
use crate::storage::Scalar;
use crate::types::cell::{self, CellRef};
use crate::types::hash::{self, HashRef};
use crate::types::list::{self, ListRef};
use crate::types::register::{self, RegisterRef};
use crate::types::run::{self, Run};
use crate::types::session::{self, Session};
use crate::types::set::{self, SetRef};
use crate::types::stream::{self, Stream};
use crate::types::string::{self, StringRef};
use crate::types::{Entry, Object, ValueType, sorted_set};

/// The value of a key, to be read. Other crates cannot list the types: code that is not about one of them asks its row.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Value<'a> {
    String(StringRef<'a>),
    Hash(HashRef<'a>),
    SortedSet(SortedSetRef<'a>),
    Set(SetRef<'a>),
    Cell(CellRef<'a>),
    Run(&'a Run),
    Register(RegisterRef<'a>),
    Session(&'a Session),
    List(ListRef<'a>),
    Stream(&'a Stream),
}

/// A reader's view of the values of one type: [`HashRef`] for hashes, `&Run` for runs.
pub trait Typed {
    /// The same view with the lifetime of the value that it reads.
    type Ref<'a>;

    /// The row of the type.
    const ROW: &'static ValueType;

    /// The view of a value, if the value is of this type.
    fn of(value: Value<'_>) -> Option<Self::Ref<'_>>;
}

impl Typed for StringRef<'_> {
    type Ref<'a> = StringRef<'a>;

    const ROW: &'static ValueType = &string::TYPE;

    #[inline]
    fn of(value: Value<'_>) -> Option<StringRef<'_>> {
        if let Value::String(string) = value { Some(string) } else { None }
    }
}

impl Typed for HashRef<'_> {
    type Ref<'a> = HashRef<'a>;

    const ROW: &'static ValueType = &hash::TYPE;

    #[inline]
    fn of(value: Value<'_>) -> Option<HashRef<'_>> {
        if let Value::Hash(hash) = value { Some(hash) } else { None }
    }
}

impl Typed for SortedSetRef<'_> {
    type Ref<'a> = SortedSetRef<'a>;

    const ROW: &'static ValueType = &sorted_set::TYPE;

    #[inline]
    fn of(value: Value<'_>) -> Option<SortedSetRef<'_>> {
        if let Value::SortedSet(set) = value { Some(set) } else { None }
    }
}

impl Typed for SetRef<'_> {
    type Ref<'a> = SetRef<'a>;

    const ROW: &'static ValueType = &set::TYPE;

    #[inline]
    fn of(value: Value<'_>) -> Option<SetRef<'_>> {
        if let Value::Set(set) = value { Some(set) } else { None }
    }
}

impl Typed for CellRef<'_> {
    type Ref<'a> = CellRef<'a>;

    const ROW: &'static ValueType = &cell::TYPE;

    #[inline]
    fn of(value: Value<'_>) -> Option<CellRef<'_>> {
        if let Value::Cell(cell) = value { Some(cell) } else { None }
    }
}

impl Typed for &Run {
    type Ref<'a> = &'a Run;

    const ROW: &'static ValueType = &run::TYPE;

    #[inline]
    fn of(value: Value<'_>) -> Option<&Run> {
        if let Value::Run(run) = value { Some(run) } else { None }
    }
}

impl Typed for RegisterRef<'_> {
    type Ref<'a> = RegisterRef<'a>;

    const ROW: &'static ValueType = &register::TYPE;

    #[inline]
    fn of(value: Value<'_>) -> Option<RegisterRef<'_>> {
        if let Value::Register(register) = value { Some(register) } else { None }
    }
}

impl Typed for &Session {
    type Ref<'a> = &'a Session;

    const ROW: &'static ValueType = &session::TYPE;

    #[inline]
    fn of(value: Value<'_>) -> Option<&Session> {
        if let Value::Session(session) = value { Some(session) } else { None }
    }
}

impl Typed for ListRef<'_> {
    type Ref<'a> = ListRef<'a>;

    const ROW: &'static ValueType = &list::TYPE;

    #[inline]
    fn of(value: Value<'_>) -> Option<ListRef<'_>> {
        if let Value::List(list) = value { Some(list) } else { None }
    }
}

impl Typed for &Stream {
    type Ref<'a> = &'a Stream;

    const ROW: &'static ValueType = &stream::TYPE;

    #[inline]
    fn of(value: Value<'_>) -> Option<&Stream> {
        if let Value::Stream(stream) = value { Some(stream) } else { None }
    }
}

impl Value<'_> {
    /// True for an index without records. It exists as a key, but no sorted set that is stored is empty.
    #[inline]
    pub fn is_empty_index(&self) -> bool {
        matches!(self, Value::SortedSet(SortedSetRef::Index(index)) if index.is_empty())
    }

    /// Its type.
    pub fn value_type(&self) -> &'static ValueType {
        match self {
            Value::String(_) => &string::TYPE,
            Value::Hash(_) => &hash::TYPE,
            Value::SortedSet(_) => &sorted_set::TYPE,
            Value::Set(_) => &set::TYPE,
            Value::Cell(_) => &cell::TYPE,
            Value::Run(_) => &run::TYPE,
            Value::Register(_) => &register::TYPE,
            Value::Session(_) => &session::TYPE,
            Value::List(_) => &list::TYPE,
            Value::Stream(_) => &stream::TYPE,
        }
    }
}

impl Db {
    /// What an entry of this database holds at an instant, if that is of the type.
    #[inline]
    pub fn typed<'a, T: Typed>(&'a self, entry: &'a Entry, now_ms: u64) -> Option<T::Ref<'a>> {
        T::of(self.value(entry, now_ms))
    }

    /// What an entry of this database holds, at an instant.
    #[inline]
    pub fn value<'a>(&'a self, entry: &'a Entry, now_ms: u64) -> Value<'a> {
        match entry.kind() {
            string::TEXT | string::NUMBER => Value::String(string::scalar(entry)),
            hash::PACKED => Value::Hash(hash::hash(entry, &self.shapes, now_ms)),
            sorted_set::PACKED => Value::SortedSet(SortedSetRef::Stored(sorted_set::stored(entry))),
            set::PACKED | set::INTSET => Value::Set(set::set(entry)),
            cell::PACKED => Value::Cell(cell::cell(entry)),
            register::PACKED => Value::Register(register::register(entry)),
            list::PACKED => Value::List(list::list(entry)),
            _ => match entry.object().expect("an object entry has an object") {
                Object::Bytes(bytes) => Value::String(Scalar::Bytes(bytes)),
                Object::Hash(table) => Value::Hash(HashRef::Table(table, now_ms)),
                Object::SortedSet(_) => Value::SortedSet(SortedSetRef::Stored(sorted_set::stored(entry))),
                Object::Set(table) => Value::Set(SetRef::Table(table)),
                Object::Cell(history) => Value::Cell(CellRef::History(history)),
                Object::Run(run) => Value::Run(run),
                Object::Register(register) => Value::Register(RegisterRef::Whole(register)),
                Object::Session(session) => Value::Session(session),
                Object::List(list) => Value::List(ListRef::Chunked(list)),
                Object::Stream(stream) => Value::Stream(stream),
            },
        }
    }
}
