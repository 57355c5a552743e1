//! Redis's RDB files, read from front to back one key at a time. Knows the format; refuses to know paths, the clock and
//! what is done with the keys. `rdb` reads the values, as it does those of DUMP payloads.
//!
//! ```text
//! "REDIS" | version: 4 digits | part ... | 0xff | from version 5: CRC-64 of all before it, or zero: u64
//! part = opcode (243 to 254) | what belongs to it
//!      | type of value (below 243) | key: string | value
//! ```
//!
//! Reads versions 1 to 13. Up to 12, Redis 8.0's, every part is tested with a file that Redis wrote or reads. In 13,
//! Redis 8.6's, module data beside a key is skipped as Redis's source describes it; its new form of streams (type 26)
//! is refused, because there is no file to test with.
//!
//! Valkey up to 8 writes Redis's versions. From 9 on, its files begin with "VALKEY" and three digits, its versions begin with
//! 80, and opcode 243 and type 22 mean something else than in Redis. Version 80, of Valkey 9.0 and 9.1, is read.
//!
//! Values of unsupported types are skipped exactly (`skip`). FREQ and IDLE of a key are skipped too: an import counts
//! as use. A file is not trusted: memory is allocated only for bytes that exist, and for what they decompress to within
//! the caller's limit.

mod skip;
#[cfg(test)]
mod tests;

pub use crate::input::{FileError, Trouble};

use crate::input::Input;
use crate::rdb::Dialect;
use crate::rdb::reader::{Reader, Source};
use crate::values::{Kind, Value, type_name};
use std::io::Read;

/// One item of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Key(Box<KeyItem>),
    /// The code of a library of functions.
    Library(Vec<u8>),
    /// Skipped data that is not a key: module data, an early kind of library.
    Aside(Kind),
}

/// A key and what it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyItem {
    pub db: u64,
    pub key: Vec<u8>,
    /// Unix milliseconds. The caller decides whether they have passed.
    pub deadline: Option<u64>,
    /// Perhaps a collection without elements: see [`Value::has_no_elements`].
    pub value: Value,
}

/// The first bytes of a file of Redis, and of one of Valkey.
const MAGIC: &[u8; 5] = b"REDIS";
const MAGIC_OF_VALKEY: &[u8; 6] = b"VALKEY";

/// True when the input begins as an RDB file does.
pub(super) fn is_next<R: Read>(input: &mut Input<R>) -> Result<bool, FileError> {
    let begins_with = |input: &mut Input<R>, magic: &[u8]| -> Result<bool, FileError> {
        Ok(input.want(magic.len())? && input.unread().starts_with(magic))
    };
    Ok(begins_with(input, MAGIC)? || begins_with(input, MAGIC_OF_VALKEY)?)
}

const VERSION_MAX: u32 = 13;
/// The first version with a checksum at the end.
const VERSION_CHECKSUM: u32 = 5;

mod opcode {
    /// Module data beside a key (Redis 8.6).
    pub(super) const KEY_META: u8 = 243;
    /// A slot that another server of a cluster gives away (Valkey 9).
    pub(super) const SLOT_IMPORT: u8 = 243;
    pub(super) const SLOT_INFO: u8 = 244;
    pub(super) use crate::payload::{FUNCTION, FUNCTION_CANDIDATE};
    pub(super) const MODULE_AUX: u8 = 247;
    pub(super) const IDLE: u8 = 248;
    pub(super) const FREQ: u8 = 249;
    pub(super) const AUX: u8 = 250;
    pub(super) const RESIZE_DB: u8 = 251;
    pub(super) const DEADLINE_MS: u8 = 252;
    pub(super) const DEADLINE_S: u8 = 253;
    pub(super) const SELECT_DB: u8 = 254;
    pub(super) const END: u8 = 255;
}

/// A file being read: an iterator over its items, which ends after the first error.
pub struct RdbFile<R> {
    reader: Reader<Input<R>>,
    /// The limit of the decompressed size of one value.
    bytes_max: usize,
    /// Zero until the header has been read.
    version: u32,
    db: u64,
    /// The deadline of the next key.
    deadline: Option<u64>,
    /// What the file says of the stream of commands behind it.
    stream_db: Option<u64>,
    ended: bool,
}

impl<R: Read> RdbFile<R> {
    /// Starts to read a file. `bytes_max` limits the decompressed size of one value.
    pub fn new(read: R, bytes_max: usize) -> RdbFile<R> {
        RdbFile::from_input(Input::new(read), bytes_max)
    }

    pub(super) fn from_input(input: Input<R>, bytes_max: usize) -> RdbFile<R> {
        let reader = Reader { source: input, dialect: Dialect::Redis, bytes_left: bytes_max };
        RdbFile { reader, bytes_max, version: 0, db: 0, deadline: None, stream_db: None, ended: false }
    }

    /// How many bytes have been read.
    pub fn offset(&self) -> u64 {
        self.reader.source.offset()
    }

    /// The database that is selected where the stream of commands behind this file begins: a replica says that to
    /// replicas of its own, to which it sends what it gets.
    pub fn stream_db(&self) -> Option<u64> {
        self.stream_db
    }

    /// The input after the end of the RDB file.
    pub(super) fn into_input(self) -> Input<R> {
        self.reader.source
    }

    fn read(&mut self) -> Result<Option<Item>, FileError> {
        if self.version == 0 {
            self.header()?;
        }
        loop {
            self.reader.source.begin("what comes next");
            let [byte] = self.reader.source.array()?;
            if byte == opcode::END {
                self.checksum()?;
                return Ok(None);
            }
            let item = match byte {
                opcode::KEY_META..=opcode::SELECT_DB => self.part(byte)?,
                kind => Some(self.key(kind)?),
            };
            if item.is_some() {
                return Ok(item);
            }
        }
    }

    fn header(&mut self) -> Result<(), FileError> {
        let input = &mut self.reader.source;
        input.begin("the first bytes");
        input.start_sum();
        if !is_next(input)? {
            return Err(input.error(Trouble::NotRedis));
        }
        let head = input.array::<9>()?;
        let (dialect, digits) = match head.strip_prefix(MAGIC_OF_VALKEY) {
            Some(digits) => (Dialect::Valkey, digits),
            None => (Dialect::Redis, &head[MAGIC.len()..]),
        };
        let digit = |byte: u8| byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
        let version = digits.iter().try_fold(0, |sum, byte| Some(sum * 10 + digit(*byte)?));
        let Some(version) = version else { return Err(input.error(Trouble::NotRedis)) };
        let is_known = match dialect {
            Dialect::Redis => (1..=VERSION_MAX).contains(&version),
            Dialect::Valkey => Dialect::is_valkey(version),
        };
        if !is_known {
            return Err(input.error(Trouble::Version(version)));
        }
        (self.version, self.reader.dialect) = (version, dialect);
        Ok(())
    }

    fn checksum(&mut self) -> Result<(), FileError> {
        let input = &mut self.reader.source;
        input.now_reading("the checksum");
        let computed = input.end_sum();
        if self.version < VERSION_CHECKSUM {
            return Ok(());
        }
        let stated = u64::from_le_bytes(input.array()?);
        // Zero with `rdbchecksum no` in Redis.
        if stated != 0 && stated != computed {
            return Err(input.error(Trouble::Checksum { stated, computed }));
        }
        Ok(())
    }

    /// Reads a part that is not a key. Returns `None` when it yields no item.
    fn part(&mut self, byte: u8) -> Result<Option<Item>, FileError> {
        let reader = &mut self.reader;
        match byte {
            opcode::SELECT_DB => {
                reader.source.now_reading("the number of a database");
                self.db = reader.length()?;
            }
            opcode::DEADLINE_MS => {
                reader.source.now_reading("a deadline");
                self.deadline = deadline(i64::from_le_bytes(reader.source.array()?));
            }
            opcode::DEADLINE_S => {
                reader.source.now_reading("a deadline");
                let seconds = i32::from_le_bytes(reader.source.array()?);
                self.deadline = deadline(i64::from(seconds) * 1000);
            }
            opcode::FREQ => {
                reader.source.now_reading("how often a key was used");
                reader.source.array::<1>()?;
            }
            opcode::IDLE => {
                reader.source.now_reading("when a key was last used");
                reader.length()?;
            }
            opcode::RESIZE_DB => {
                reader.source.now_reading("the size of a database");
                reader.skip_lengths(2)?;
            }
            opcode::SLOT_INFO => {
                reader.source.now_reading("the size of a slot");
                reader.skip_lengths(3)?;
            }
            opcode::AUX => {
                reader.source.now_reading("a note about the file");
                reader.bytes_left = self.bytes_max;
                match &*reader.string()? {
                    b"repl-stream-db" => {
                        let text = reader.string()?;
                        self.stream_db = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
                    }
                    _ => reader.skip_string()?,
                }
            }
            opcode::SLOT_IMPORT if reader.dialect == Dialect::Valkey => {
                reader.source.now_reading("a slot of a cluster");
                reader.skip_slot_import()?;
            }
            opcode::KEY_META => {
                reader.source.now_reading("what modules keep beside a key");
                reader.skip_key_meta()?;
            }
            opcode::MODULE_AUX => {
                reader.source.now_reading("what a module keeps for itself");
                return Ok(Some(Item::Aside(Kind::ModuleData(reader.skip_module_aux()?))));
            }
            opcode::FUNCTION => {
                reader.source.now_reading("a library of functions");
                reader.bytes_left = self.bytes_max;
                return Ok(Some(Item::Library(reader.string()?.into_owned())));
            }
            opcode::FUNCTION_CANDIDATE => {
                reader.source.now_reading("a library of functions");
                reader.skip_function_candidate()?;
                return Ok(Some(Item::Aside(Kind::FunctionLibrary)));
            }
            _ => unreachable!("the caller has told parts from keys"),
        }
        Ok(None)
    }

    fn key(&mut self, kind: u8) -> Result<Item, FileError> {
        let reader = &mut self.reader;
        let Some(name) = value_name(kind, reader.dialect) else {
            return Err(reader.source.error(Trouble::Type(kind)));
        };
        // A key is a string like any other, and may be compressed.
        reader.bytes_left = self.bytes_max;
        reader.source.now_reading("the name of a key");
        let key = reader.string()?.into_owned();
        reader.source.now_reading(name);
        reader.source.now_key(&key);
        let value = match Value::read(reader, kind)? {
            Some(value) => value,
            None => Value::Unsupported(reader.skip_value(kind)?),
        };
        Ok(Item::Key(Box::new(KeyItem { db: self.db, key, deadline: self.deadline.take(), value })))
    }
}

/// The name of a type byte in error texts.
fn value_name(kind: u8, dialect: Dialect) -> Option<&'static str> {
    Some(match type_name(kind, dialect)? {
        "string" => "the string",
        "list" => "the list",
        "set" => "the set",
        "sorted set" => "the sorted set",
        "hash" => "the hash",
        "stream" => "the stream",
        _ => "the module's value",
    })
}

/// Redis writes -1 for "never"; any other instant before 1970 has passed.
fn deadline(ms: i64) -> Option<u64> {
    match ms {
        -1 => None,
        ms => Some(u64::try_from(ms).unwrap_or(0)),
    }
}

impl<R: Read> Iterator for RdbFile<R> {
    type Item = Result<Item, FileError>;

    fn next(&mut self) -> Option<Result<Item, FileError>> {
        if self.ended {
            return None;
        }
        let item = self.read();
        self.ended = !matches!(item, Ok(Some(_)));
        item.transpose()
    }
}
