//! Values as Redis's formats have them: what is read out of payloads and files, and written into them. Refuses to know how
//! either spells them, and how they are kept.

use std::fmt;

/// A value of any type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    String(Vec<u8>),
    /// No field twice.
    Hash(Vec<HashEntry>),
    /// No member twice; every score is a number.
    SortedSet(Vec<SortedSetEntry>),
    /// Something that is not kept here, and was passed over.
    Unsupported(Kind),
}

/// Field, value, and the field's deadline in unix milliseconds if it has one.
pub type HashEntry = (Vec<u8>, Vec<u8>, Option<u64>);

/// A member's name and its score.
pub type SortedSetEntry = (Vec<u8>, f64);

impl Value {
    /// True for a collection without elements. Redis does not write such a value, but passes over it when it reads one.
    pub fn has_no_elements(&self) -> bool {
        match self {
            Value::String(_) | Value::Unsupported(_) => false,
            Value::Hash(fields) => fields.is_empty(),
            Value::SortedSet(members) => members.is_empty(),
        }
    }

    /// What a value of its type is called.
    pub fn noun(&self) -> Noun {
        let noun = |order, one, many| Noun { order, one, many };
        match self {
            Value::String(_) => noun(0, "string", "strings"),
            Value::Hash(_) => noun(1, "hash", "hashes"),
            Value::SortedSet(_) => noun(2, "sorted set", "sorted sets"),
            Value::Unsupported(_) => noun(u8::MAX, "other value", "other values"),
        }
    }
}

/// What values of one type are called, in the order in which reports list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Noun {
    order: u8,
    one: &'static str,
    many: &'static str,
}

impl Noun {
    /// So many of them, in words.
    pub fn counted(&self, count: u64) -> String {
        format!("{count} {}", if count == 1 { self.one } else { self.many })
    }
}

/// Something that is not kept here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    List,
    Set,
    Stream,
    /// A value of the module type with this name.
    Module(String),
    /// What that module keeps for itself, under no key.
    ModuleData(String),
    FunctionLibrary,
}

impl Kind {
    /// So many of them, in words.
    pub fn counted(&self, count: u64) -> String {
        let s = if count == 1 { "" } else { "s" };
        match self {
            Kind::List => format!("{count} list{s}"),
            Kind::Set => format!("{count} set{s}"),
            Kind::Stream => format!("{count} stream{s}"),
            Kind::Module(name) => format!("{count} value{s} of the module type {name}"),
            Kind::ModuleData(name) => format!("{count} record{s} of the module type {name}"),
            Kind::FunctionLibrary => format!("{count} function librar{}", if count == 1 { "y" } else { "ies" }),
        }
    }
}

/// As Redis's TYPE says it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::List => f.write_str("list"),
            Kind::Set => f.write_str("set"),
            Kind::Stream => f.write_str("stream"),
            Kind::Module(name) => write!(f, "module:{name}"),
            Kind::ModuleData(name) => write!(f, "module data:{name}"),
            Kind::FunctionLibrary => f.write_str("function library"),
        }
    }
}
