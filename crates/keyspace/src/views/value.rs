//! What a key holds, as a reader sees it. Knows the types; refuses to know how they are stored.

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
use crate::types::{Entry, Object, ValueType, sorted_set, string};

/// The value of a key, to be read.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    String(Scalar<'a>),
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

impl Value<'_> {
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
