//! Values as Redis's formats have them: read from payloads and files, and written to them. Refuses to know how either
//! encodes them, and how they are stored.

pub(crate) mod hash;
pub(crate) mod list;
pub(crate) mod own;
pub(crate) mod set;
pub(crate) mod sorted_set;
pub(crate) mod stream;
mod texts;

pub use own::OwnValue;
pub use sorted_set::whole;
pub use stream::{
    EntryId, NodeEntry, NodeField, NodeWriter, Stream, StreamConsumer, StreamCounts, StreamGroup, StreamNode,
    StreamPending,
};
pub use texts::Texts;

use crate::rdb::reader::{Reader, Source};
use crate::rdb::writer::{STRING, encode_string};
use crate::rdb::{BadPayload, Dialect};
use std::fmt;

/// A value of any type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    String(Vec<u8>),
    /// No field twice.
    Hash(Vec<HashEntry>),
    /// No member twice; every score is a number.
    SortedSet(Vec<SortedSetEntry>),
    /// No member twice.
    Set(Texts),
    /// A set that Redis 7.2 kept as a listpack, whatever its members are. No member twice.
    SmallSet(Texts),
    List(Texts),
    Stream(Box<Stream>),
    /// A value of a type that Redis does not have.
    Own(OwnValue),
    /// An unsupported value, which was skipped.
    Unsupported(Kind),
}

/// The supported types: Redis's name and type bytes of each.
const KEPT: &[(&str, &[u8])] = &[
    ("string", &[STRING]),
    ("hash", &hash::KINDS),
    ("sorted set", &sorted_set::KINDS),
    ("set", &set::KINDS),
    ("list", &list::KINDS),
    ("stream", &stream::KINDS),
];

/// The type bytes of module values, which are not supported. The first is an old form whose end cannot be found.
pub(crate) const OLD_MODULE: u8 = 6;
pub(crate) const MODULE: u8 = 7;

/// Redis's name for the type of a type byte; `None` for an unknown byte.
pub(crate) fn type_name(kind: u8, dialect: Dialect) -> Option<&'static str> {
    if !hash::is_of(kind, dialect) {
        return None;
    }
    let kept = KEPT.iter().find(|(_, kinds)| kinds.contains(&kind)).map(|(name, _)| *name);
    kept.or(matches!(kind, OLD_MODULE | MODULE).then_some("module"))
}

/// The longest argument that a server accepts with default settings (`proto-max-bulk-len`).
const ARGUMENT_BYTES_MAX: usize = 512 * 1024 * 1024;

pub(crate) type Emit<'e, E> = &'e mut dyn FnMut(&[&[u8]]) -> Result<(), E>;

impl Value {
    /// Reads a value of the type that its type byte names; `None`, with nothing read, for an unsupported type.
    pub(crate) fn read<'a, S: Source<'a>>(reader: &mut Reader<S>, kind: u8) -> Result<Option<Value>, S::Error> {
        Ok(Some(match kind {
            STRING => Value::String(reader.string()?.into_owned()),
            _ if hash::KINDS.contains(&kind) && hash::is_of(kind, reader.dialect) => Value::Hash(reader.hash(kind)?),
            _ if sorted_set::KINDS.contains(&kind) => Value::SortedSet(reader.sorted_set(kind)?),
            set::kind::SET_LISTPACK => Value::SmallSet(reader.set(kind)?),
            _ if set::KINDS.contains(&kind) => Value::Set(reader.set(kind)?),
            _ if list::KINDS.contains(&kind) => Value::List(reader.list(kind)?),
            _ if stream::KINDS.contains(&kind) => Value::Stream(Box::new(reader.stream(kind)?)),
            own::KIND => Value::Own(reader.own()?),
            OLD_MODULE | MODULE => return Ok(None),
            _ => return Err(reader.source.refusal(BadPayload::Format)),
        }))
    }

    /// The value as a payload; with `packed`, in the compact form of small values.
    pub(crate) fn write(&self, packed: bool) -> Vec<u8> {
        match self {
            Value::String(bytes) => encode_string(bytes),
            Value::Hash(fields) => {
                hash::encode_hash(fields.iter().map(|(name, value, ms)| (&**name, &**value, *ms)), packed)
            }
            Value::SortedSet(members) => {
                sorted_set::encode_sorted_set(members.iter().map(|(name, score)| (&**name, *score)), packed)
            }
            Value::Set(members) | Value::SmallSet(members) => set::encode_set(members, packed),
            Value::List(elements) => list::encode_list(elements),
            Value::Stream(stream) => stream::encode_stream(stream),
            Value::Own(value) => own::encode(value),
            Value::Unsupported(_) => panic!("what is not kept is not written"),
        }
    }

    /// Emits the commands that give a key this value, whatever it held before: what an append-only file without a
    /// preamble holds. Returns how many pending entries of a stream they leave out: those of deleted entries, if the
    /// stream is too long for one argument.
    pub fn commands<E>(&self, name: &[u8], mut emit: impl FnMut(&[&[u8]]) -> Result<(), E>) -> Result<u64, E> {
        if let Value::String(bytes) = self {
            return emit(&[b"SET", name, bytes]).map(|()| 0);
        }
        if let Value::Own(value) = self {
            return emit(&[b"RESTORE", name, b"0", &own::encode(value), b"REPLACE"]).map(|()| 0);
        }
        // Otherwise old elements would remain.
        emit(&[b"DEL", name])?;
        match self {
            Value::String(_) | Value::Own(_) | Value::Unsupported(_) => {}
            Value::Hash(fields) => hash::commands(name, fields, &mut emit)?,
            Value::SortedSet(members) => sorted_set::commands(name, members, &mut emit)?,
            Value::Set(members) | Value::SmallSet(members) => set::commands(name, members, &mut emit)?,
            Value::List(elements) => list::commands(name, elements, &mut emit)?,
            Value::Stream(stream) => return stream::commands(name, stream, ARGUMENT_BYTES_MAX, &mut emit),
        }
        Ok(0)
    }
}

/// The most elements of one command, and their bytes, of which the last element may bring more: servers limit the length of
/// a request.
const ELEMENTS_PER_COMMAND: usize = 500;
const BYTES_PER_COMMAND: usize = 16 << 20;

/// Emits commands that begin with `head`, each with some of the elements.
fn in_chunks<'a, T, E>(
    head: &[&'a [u8]],
    elements: impl IntoIterator<Item = T>,
    push: impl Fn(T, &mut Vec<&'a [u8]>),
    emit: Emit<'_, E>,
) -> Result<(), E> {
    let mut elements = elements.into_iter().peekable();
    while elements.peek().is_some() {
        let mut args = head.to_vec();
        let mut bytes = 0;
        for element in elements.by_ref().take(ELEMENTS_PER_COMMAND) {
            let before = args.len();
            push(element, &mut args);
            bytes += args[before..].iter().map(|arg| arg.len()).sum::<usize>();
            if bytes >= BYTES_PER_COMMAND {
                break;
            }
        }
        emit(&args)?;
    }
    Ok(())
}

/// Field, value, and the field's deadline in unix milliseconds if it has one.
pub type HashEntry = (Vec<u8>, Vec<u8>, Option<u64>);

/// A member's name and its score.
pub type SortedSetEntry = (Vec<u8>, f64);

impl Value {
    /// True for a collection without elements. Redis never writes one, but skips it when it reads one. A stream may be
    /// empty.
    pub fn has_no_elements(&self) -> bool {
        match self {
            Value::String(_) | Value::Stream(_) | Value::Own(_) | Value::Unsupported(_) => false,
            Value::Hash(fields) => fields.is_empty(),
            Value::SortedSet(members) => members.is_empty(),
            Value::Set(members) | Value::SmallSet(members) => members.is_empty(),
            Value::List(elements) => elements.is_empty(),
        }
    }

    /// The noun for values of this type, in reports.
    pub fn noun(&self) -> Noun {
        let noun = |order, one, many| Noun { order, one, many };
        match self {
            Value::String(_) => noun(0, "string", "strings"),
            Value::Hash(_) => noun(1, "hash", "hashes"),
            Value::SortedSet(_) => noun(2, "sorted set", "sorted sets"),
            Value::Set(_) | Value::SmallSet(_) => noun(3, "set", "sets"),
            Value::List(_) => noun(4, "list", "lists"),
            Value::Stream(_) => noun(5, "stream", "streams"),
            Value::Own(_) => noun(200, "value that Redis has no type for", "values that Redis has no type for"),
            Value::Unsupported(_) => noun(u8::MAX, "other value", "other values"),
        }
    }
}

/// The noun for values of one type. Reports list values in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Noun {
    order: u8,
    one: &'static str,
    many: &'static str,
}

impl Noun {
    /// For one value.
    pub fn one(&self) -> &'static str {
        self.one
    }

    /// The count and the noun, in words.
    pub fn counted(&self, count: u64) -> String {
        format!("{count} {}", if count == 1 { self.one } else { self.many })
    }
}

/// A kind of unsupported data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A value of the module type with this name.
    Module(String),
    /// Data of a module that belongs to no key.
    ModuleData(String),
    FunctionLibrary,
}

impl Kind {
    /// The count and the noun, in words.
    pub fn counted(&self, count: u64) -> String {
        let s = if count == 1 { "" } else { "s" };
        match self {
            Kind::Module(name) => format!("{count} value{s} of the module type {name}"),
            Kind::ModuleData(name) => format!("{count} record{s} of the module type {name}"),
            Kind::FunctionLibrary => format!("{count} function librar{}", if count == 1 { "y" } else { "ies" }),
        }
    }
}

/// Redis's name, as TYPE returns it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Module(name) => write!(f, "module:{name}"),
            Kind::ModuleData(name) => write!(f, "module data:{name}"),
            Kind::FunctionLibrary => f.write_str("function library"),
        }
    }
}
