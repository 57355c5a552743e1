//! Values of types that Redis does not have, such as cells, in DUMP payloads. Knows how they are framed; refuses to
//! know their contents.
//!
//! ```text
//! 200: u8 | tag of the type: u8 | image, as a string
//! ```
//!
//! Redis refuses a payload with that type byte. No file of Redis contains one, so `rdb_file` refuses it too.

use crate::rdb::reader::{Reader, Source};
use crate::rdb::writer::{VERSION_PLAIN, Writer};

/// The type byte. Redis uses small numbers, and those from 244 on are opcodes of its files.
pub(crate) const KIND: u8 = 200;

/// A value of a type that Redis does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnValue {
    /// The tag of its type.
    pub tag: u8,
    /// The whole value; not checked here.
    pub image: Vec<u8>,
}

impl<'a, S: Source<'a>> Reader<S> {
    /// Reads a value of our own types.
    pub(crate) fn own(&mut self) -> Result<OwnValue, S::Error> {
        let [tag] = self.source.array()?;
        Ok(OwnValue { tag, image: self.string()?.into_owned() })
    }
}

/// The value as a payload.
pub(crate) fn encode(value: &OwnValue) -> Vec<u8> {
    let mut writer = Writer::new(KIND);
    writer.bytes.push(value.tag);
    writer.string(&value.image);
    writer.finish(VERSION_PLAIN)
}
