//! DUMP and RESTORE payloads: a value in Redis's RDB encoding with a footer, or libraries of functions. Refuses to know
//! types of values (`values`), keys, the clock (deadlines are absolute), and RDB files, which wrap the same values:
//! `rdb_file` reads them with the same [`Reader`].
//!
//! ```text
//! type: u8 | value | RDB version: u16 | CRC-64 of all before it: u64        (little endian)
//! ```
//!
//! Reads what Redis 2.6 to 8.0 and Valkey up to 9.1 write for these types. Writes RDB version 10, which Redis 7.0 and later restore; only
//! streams need version 11, of Redis 7.2, and field deadlines version 12, of Redis 7.4. Payloads come from clients, so nothing in them is trusted: reading
//! allocates in proportion to the payload, and for compressed parts no more than the caller allows.

#[cfg(test)]
mod tests;

pub use crate::rdb::BadPayload;
use crate::rdb::reader::Reader;
use crate::rdb::writer::{VERSION_PLAIN, Writer};
use crate::rdb::{CHECKSUM, Dialect};
use crate::values::{Value, type_name};

const FOOTER_BYTES: usize = 10;

/// Reads a payload. `bytes_max` limits what all its compressed parts together may decompress to.
pub fn decode(payload: &[u8], bytes_max: usize) -> Result<Value, BadPayload> {
    let (body, dialect) = verify_footer(payload)?;
    let (&kind, rest) = body.split_first().ok_or(BadPayload::Format)?;
    let mut reader = Reader { source: rest, dialect, bytes_left: bytes_max };
    let Some(value) = Value::read(&mut reader, kind)? else {
        return Err(type_name(kind, dialect).map_or(BadPayload::Format, BadPayload::Unsupported));
    };
    // Redis stores no empty hash and no empty sorted set.
    if !reader.source.is_empty() || value.has_no_elements() {
        return Err(BadPayload::Format);
    }
    Ok(value)
}

/// Writes a payload; with `packed`, in the compact form of small values. RDB version 10, which Redis 7.0 and later
/// restore, unless it is a stream or fields have deadlines.
pub fn encode(value: &Value, packed: bool) -> Vec<u8> {
    value.write(packed)
}

/// Returns the payload without its footer, if the footer is right, and whose it is.
fn verify_footer(payload: &[u8]) -> Result<(&[u8], Dialect), BadPayload> {
    let (body, footer) = payload.split_last_chunk::<FOOTER_BYTES>().ok_or(BadPayload::Footer)?;
    let [v0, v1, checksum @ ..] = *footer;
    let checked = &payload[..payload.len() - checksum.len()];
    let dialect = Dialect::of_payload(u16::from_le_bytes([v0, v1])).ok_or(BadPayload::Footer)?;
    if CHECKSUM.checksum(checked) != u64::from_le_bytes(checksum) {
        return Err(BadPayload::Footer);
    }
    Ok((body, dialect))
}

/// Why a payload of libraries cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFunctions {
    Footer,
    /// The payload contains something other than libraries.
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

/// The type byte before a library's code, in files and in payloads.
pub(crate) const FUNCTION: u8 = 245;
/// A function library as the release candidates of Redis 7.0 wrote it.
pub(crate) const FUNCTION_CANDIDATE: u8 = 246;

/// Reads the source codes of libraries from a payload of FUNCTION DUMP. `bytes_max` limits their decompressed size.
pub fn decode_functions(payload: &[u8], bytes_max: usize) -> Result<Vec<Vec<u8>>, BadFunctions> {
    let (body, dialect) = verify_footer(payload).map_err(|_| BadFunctions::Footer)?;
    let (mut reader, mut codes) = (Reader { source: body, dialect, bytes_left: bytes_max }, Vec::new());
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

/// Writes the source codes of libraries as a payload for FUNCTION RESTORE.
pub fn encode_functions<'a>(codes: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut writer = Writer::behind(Vec::new());
    for code in codes {
        writer.bytes.push(FUNCTION);
        writer.string(code);
    }
    writer.finish(VERSION_PLAIN)
}
