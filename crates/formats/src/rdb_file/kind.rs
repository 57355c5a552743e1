//! What Redis keeps and we do not, by name.

use std::fmt;

/// Something that was passed over.
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

/// What a type byte stands for, as errors call it; `None` for one that is not known.
pub(super) fn name(byte: u8) -> Option<&'static str> {
    Some(match byte {
        0 => "the string",
        1 | 10 | 14 | 18 => "the list",
        2 | 11 | 20 => "the set",
        3 | 5 | 12 | 17 => "the sorted set",
        4 | 9 | 13 | 16 | 22..=25 => "the hash",
        6 | 7 => "the module's value",
        15 | 19 | 21 => "the stream",
        _ => return None,
    })
}
