//! DUMP and RESTORE payloads: strings, hashes and sorted sets in Redis's RDB encoding.
//! Knows nothing of keys, of the clock (deadlines are absolute), or of RDB files, which wrap the same values:
//! `rdb_file` reads them with the same [`Reader`].
//!
//! ```text
//! type: u8 | value | RDB version: u16 | CRC-64 of all before it: u64        (little endian)
//! ```
//!
//! Read is what Redis 2.6 to 8.0 write for these types. Written is RDB version 10, which Redis 7.0 and everything
//! since restores; only field deadlines need version 12, of Redis 7.4. Payloads come from clients, so nothing in them
//! is trusted: reading allocates in proportion to the payload, and compressed parts no more than the caller allows.

pub(crate) mod hash;
pub(crate) mod reader;
pub(crate) mod sorted_set;
#[cfg(test)]
mod tests;
mod writer;

pub use sorted_set::whole;

use crate::Value;
use crate::packed::Malformed;
use reader::{Reader, Source};
use writer::{STRING, VERSION_FIELD_DEADLINES, VERSION_PLAIN, Writer, encode_string};

/// Why a payload was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPayload {
    /// Redis says: DUMP payload version or checksum are wrong.
    Footer,
    /// Redis says: Bad data format.
    Format,
    /// Its compressed parts would decompress to more than allowed.
    TooLarge,
    /// A type that is not kept here, by Redis's name for it.
    Unsupported(&'static str),
}

impl From<Malformed> for BadPayload {
    fn from(Malformed: Malformed) -> Self {
        Self::Format
    }
}

const VERSION_MAX: u16 = VERSION_FIELD_DEADLINES;

const FOOTER_BYTES: usize = 10;

/// Sixteen tables: 32 KiB for a checksum that runs at memory speed.
pub(crate) static CHECKSUM: crc::Crc<u64, crc::Table<16>> = crc::Crc::<u64, crc::Table<16>>::new(&crc::CRC_64_REDIS);

/// Reads a payload. `bytes_max` limits what all its compressed parts together may decompress to.
pub fn decode(payload: &[u8], bytes_max: usize) -> Result<Value, BadPayload> {
    let body = verify_footer(payload)?;
    let (&kind, rest) = body.split_first().ok_or(BadPayload::Format)?;
    let mut reader = Reader { source: rest, bytes_left: bytes_max };
    let Some(value) = reader.value(kind)? else {
        return Err(type_name(kind).map_or(BadPayload::Format, BadPayload::Unsupported));
    };
    // Redis keeps no empty hash and no empty sorted set.
    if !reader.source.is_empty() || value.has_no_elements() {
        return Err(BadPayload::Format);
    }
    Ok(value)
}

/// Writes a payload; with `packed`, in the compact form of small values. RDB version 10, which Redis 7.0 and everything
/// since restores, unless fields have deadlines.
pub fn encode(value: &Value, packed: bool) -> Vec<u8> {
    match value {
        Value::String(bytes) => encode_string(bytes),
        Value::Hash(fields) => {
            hash::encode_hash(fields.iter().map(|(name, value, deadline)| (&**name, &**value, *deadline)), packed)
        }
        Value::SortedSet(members) => {
            sorted_set::encode_sorted_set(members.iter().map(|(name, score)| (&**name, *score)), packed)
        }
        Value::Unsupported(_) => panic!("what is not kept is not written"),
    }
}

impl<'a, S: Source<'a>> Reader<S> {
    /// A value of the type that its type byte names; `None` for one that is not kept here, of which nothing is read.
    pub(crate) fn value(&mut self, kind: u8) -> Result<Option<Value>, S::Error> {
        Ok(Some(match kind {
            STRING => Value::String(self.string()?.into_owned()),
            _ if hash::KINDS.contains(&kind) => Value::Hash(self.hash(kind)?),
            _ if sorted_set::KINDS.contains(&kind) => Value::SortedSet(self.sorted_set(kind)?),
            _ if type_name(kind).is_some() => return Ok(None),
            _ => return Err(self.source.refusal(BadPayload::Format)),
        }))
    }
}

/// What Redis calls the type that a type byte stands for; `None` for a byte that is not known.
pub(crate) fn type_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        STRING => "string",
        1 | 10 | 14 | 18 => "list",
        2 | 11 | 20 => "set",
        _ if sorted_set::KINDS.contains(&kind) => "sorted set",
        _ if hash::KINDS.contains(&kind) => "hash",
        6 | 7 => "module",
        15 | 19 | 21 => "stream",
        _ => return None,
    })
}

/// The payload without its footer, if that is right.
fn verify_footer(payload: &[u8]) -> Result<&[u8], BadPayload> {
    let (body, footer) = payload.split_last_chunk::<FOOTER_BYTES>().ok_or(BadPayload::Footer)?;
    let [v0, v1, checksum @ ..] = *footer;
    let checked = &payload[..payload.len() - checksum.len()];
    let version = u16::from_le_bytes([v0, v1]);
    if version > VERSION_MAX || CHECKSUM.checksum(checked) != u64::from_le_bytes(checksum) {
        return Err(BadPayload::Footer);
    }
    Ok(body)
}

/// Why a payload of libraries cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFunctions {
    Footer,
    /// Something that is no library.
    NotFunctions,
    /// A library as the release candidates of Redis 7.0 wrote it.
    Candidate,
    Format,
}

impl std::fmt::Display for BadFunctions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            BadFunctions::Footer => "DUMP payload version or checksum are wrong",
            BadFunctions::NotFunctions => "given type is not a function",
            BadFunctions::Candidate => "Pre-release function format not supported",
            BadFunctions::Format => "failed loading the given functions payload",
        })
    }
}

/// In front of the code of a library, in files and in payloads.
pub(crate) const FUNCTION: u8 = 245;
/// The same as the release candidates of Redis 7.0 wrote it.
pub(crate) const FUNCTION_CANDIDATE: u8 = 246;

/// Reads the codes of libraries out of a payload of FUNCTION DUMP. `bytes_max` limits what they may decompress to.
pub fn decode_functions(payload: &[u8], bytes_max: usize) -> Result<Vec<Vec<u8>>, BadFunctions> {
    let body = verify_footer(payload).map_err(|_| BadFunctions::Footer)?;
    let (mut reader, mut codes) = (Reader { source: body, bytes_left: bytes_max }, Vec::new());
    while let Some((&kind, rest)) = reader.source.split_first() {
        match kind {
            FUNCTION => reader.source = rest,
            FUNCTION_CANDIDATE => return Err(BadFunctions::Candidate),
            _ => return Err(BadFunctions::NotFunctions),
        }
        codes.push(reader.string().map_err(|_: BadPayload| BadFunctions::Format)?.into_owned());
    }
    Ok(codes)
}

/// The codes of libraries as a payload for FUNCTION RESTORE.
pub fn encode_functions<'a>(codes: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut writer = Writer { bytes: Vec::new() };
    for code in codes {
        writer.bytes.push(FUNCTION);
        writer.string(code);
    }
    writer.finish(VERSION_PLAIN)
}
