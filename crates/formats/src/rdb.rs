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

mod sorted_set;

pub use sorted_set::{SortedSetEntry, SortedSetForm, encode_sorted_set, whole};

use std::borrow::Cow;

use super::packed::{Element, Malformed};
use super::{listpack, lzf, ziplist, zipmap};
use numbers::{I64_CHARS_MAX, format_i64, parse_i64};

/// What a payload holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Dumped {
    String(Vec<u8>),
    /// At least one field, none of them twice.
    Hash(Vec<HashEntry>),
    /// At least one member, none of them twice.
    SortedSet(Vec<SortedSetEntry>),
    /// A type we do not keep, by Redis's name for it.
    Unsupported(&'static str),
}

/// Field, value, and the field's deadline in unix milliseconds if it has one.
pub type HashEntry = (Vec<u8>, Vec<u8>, Option<u64>);

/// Why a payload was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPayload {
    /// Redis says: DUMP payload version or checksum are wrong.
    Footer,
    /// Redis says: Bad data format.
    Format,
    /// Its compressed parts would decompress to more than allowed.
    TooLarge,
}

impl From<Malformed> for BadPayload {
    fn from(Malformed: Malformed) -> Self {
        Self::Format
    }
}

/// Redis 7.0's version, and the first one with field deadlines (Redis 7.4): the newest we read.
const VERSION_PLAIN: u16 = 10;
const VERSION_FIELD_DEADLINES: u16 = 12;
const VERSION_MAX: u16 = VERSION_FIELD_DEADLINES;

const FOOTER_BYTES: usize = 10;

/// Sixteen tables: 32 KiB for a checksum that runs at memory speed.
pub(super) static CHECKSUM: crc::Crc<u64, crc::Table<16>> = crc::Crc::<u64, crc::Table<16>>::new(&crc::CRC_64_REDIS);

/// The largest deadline Redis accepts for a field: 48 bits of milliseconds, the year 10889.
const DEADLINE_MS_MAX: u64 = (1 << 48) - 1;

/// The type bytes of the types we keep.
mod kind {
    pub(super) use super::sorted_set::kind::{SORTED_SET, SORTED_SET_LISTPACK, SORTED_SET_TEXT, SORTED_SET_ZIPLIST};

    pub(super) const STRING: u8 = 0;
    pub(super) const HASH: u8 = 4;
    /// Redis 2.4's small hashes.
    pub(super) const HASH_ZIPMAP: u8 = 9;
    pub(super) const HASH_ZIPLIST: u8 = 13;
    pub(super) const HASH_LISTPACK: u8 = 16;
    /// Field deadlines as the release candidates of Redis 7.4 wrote them: without the earliest one in front.
    pub(super) const HASH_DEADLINES_CANDIDATE: u8 = 22;
    pub(super) const HASH_LISTPACK_DEADLINES_CANDIDATE: u8 = 23;
    pub(super) const HASH_DEADLINES: u8 = 24;
    pub(super) const HASH_LISTPACK_DEADLINES: u8 = 25;
}

// Reading -------------------------------------------------------------------------------------------------------------

/// Reads a payload. `bytes_max` limits what all its compressed parts together may decompress to.
pub fn decode(payload: &[u8], bytes_max: usize) -> Result<Dumped, BadPayload> {
    let body = verify_footer(payload)?;
    let (&kind, rest) = body.split_first().ok_or(BadPayload::Format)?;
    let mut reader = Reader { source: rest, bytes_left: bytes_max };
    let dumped = reader.value(kind)?;
    match &dumped {
        Dumped::Unsupported(_) => {}
        _ if !reader.source.is_empty() => return Err(BadPayload::Format),
        // Redis keeps no empty hash and no empty sorted set.
        Dumped::Hash(entries) if entries.is_empty() => return Err(BadPayload::Format),
        Dumped::SortedSet(entries) if entries.is_empty() => return Err(BadPayload::Format),
        Dumped::String(_) | Dumped::Hash(_) | Dumped::SortedSet(_) => {}
    }
    Ok(dumped)
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
pub(super) const FUNCTION: u8 = 245;
/// The same as the release candidates of Redis 7.0 wrote it.
pub(super) const FUNCTION_CANDIDATE: u8 = 246;

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

/// The same field twice means that somebody made this value up.
fn check_fields(entries: &[HashEntry]) -> Result<(), BadPayload> {
    let mut fields: Vec<&[u8]> = entries.iter().map(|(field, ..)| field.as_slice()).collect();
    // Sorting rather than hashing: the same work whatever fields a client chooses.
    fields.sort_unstable();
    if fields.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(BadPayload::Format);
    }
    Ok(())
}

type Elements<'a> = Result<Element<'a>, Malformed>;

/// A packed list of field, value, field, value.
fn pairs<'a>(mut elements: impl Iterator<Item = Elements<'a>>) -> Result<Vec<HashEntry>, BadPayload> {
    let mut entries = Vec::new();
    while let Some(field) = elements.next() {
        let value = elements.next().ok_or(BadPayload::Format)?;
        entries.push((field?.to_vec(), value?.to_vec(), None));
    }
    Ok(entries)
}

/// A packed list of field, value, deadline; zero for none.
fn triples<'a>(mut elements: impl Iterator<Item = Elements<'a>>) -> Result<Vec<HashEntry>, BadPayload> {
    let mut entries = Vec::new();
    while let Some(field) = elements.next() {
        let value = elements.next().ok_or(BadPayload::Format)?;
        let deadline = match elements.next().ok_or(BadPayload::Format)?? {
            Element::Integer(0) => None,
            Element::Integer(ms) => Some(deadline(u64::try_from(ms).ok())?),
            Element::Bytes(_) => return Err(BadPayload::Format),
        };
        entries.push((field?.to_vec(), value?.to_vec(), deadline));
    }
    Ok(entries)
}

fn deadline(ms: Option<u64>) -> Result<u64, BadPayload> {
    ms.filter(|&ms| ms <= DEADLINE_MS_MAX).ok_or(BadPayload::Format)
}

/// How a table spells its fields' deadlines.
#[derive(Clone, Copy)]
enum Deadlines {
    None,
    /// In milliseconds; zero for none.
    Absolute,
    /// In milliseconds after the earliest, plus one; zero for none.
    After(u64),
}

/// A length, or one of the special encodings that take its place in front of a string.
pub(super) enum Length {
    Plain(u64),
    Special(u8),
}

/// Where the bytes of a value come from: a payload in memory, or a file that is read piece by piece.
pub(super) trait Source<'a> {
    type Error;

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Self::Error>;

    /// Exactly so many bytes. The number is a claim: memory is taken as bytes turn up, not before.
    fn bytes(&mut self, len: u64) -> Result<Cow<'a, [u8]>, Self::Error>;

    /// How many entries of a table are worth making room for, whatever its count claims.
    fn entries_likely(&self) -> usize;

    /// The error for bytes that are there but wrong.
    fn refusal(&self, why: BadPayload) -> Self::Error;
}

impl<'a> Source<'a> for &'a [u8] {
    type Error = BadPayload;

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadPayload> {
        let (array, rest) = self.split_first_chunk::<N>().ok_or(BadPayload::Format)?;
        *self = rest;
        Ok(*array)
    }

    fn bytes(&mut self, len: u64) -> Result<Cow<'a, [u8]>, BadPayload> {
        let len = usize::try_from(len).map_err(|_| BadPayload::Format)?;
        self.split_off(..len).map(Cow::Borrowed).ok_or(BadPayload::Format)
    }

    fn entries_likely(&self) -> usize {
        self.len() / 4
    }

    fn refusal(&self, why: BadPayload) -> BadPayload {
        why
    }
}

/// Takes values apart from the front.
pub(super) struct Reader<S> {
    pub(super) source: S,
    /// How much may still be decompressed.
    pub(super) bytes_left: usize,
}

impl<'a, S: Source<'a>> Reader<S> {
    /// A value of the type that its type byte names. Of one that we do not keep nothing is read.
    pub(super) fn value(&mut self, kind: u8) -> Result<Dumped, S::Error> {
        let entries = match kind {
            kind::STRING => return Ok(Dumped::String(self.string()?.into_owned())),
            kind::HASH => self.table(Deadlines::None)?,
            kind::HASH_DEADLINES_CANDIDATE => self.table(Deadlines::Absolute)?,
            kind::HASH_DEADLINES => {
                let earliest = self.u64()?;
                self.table(Deadlines::After(earliest))?
            }
            kind::HASH_ZIPMAP => self.packed(|zipmap| pairs(zipmap::elements(zipmap)?))?,
            kind::HASH_ZIPLIST => self.packed(|ziplist| pairs(ziplist::elements(ziplist)?))?,
            kind::HASH_LISTPACK => self.packed(|listpack| pairs(listpack::elements(listpack)?))?,
            kind::HASH_LISTPACK_DEADLINES | kind::HASH_LISTPACK_DEADLINES_CANDIDATE => {
                if kind == kind::HASH_LISTPACK_DEADLINES {
                    self.u64()?; // the earliest deadline; the listpack has them all in full
                }
                self.packed(|listpack| triples(listpack::elements(listpack)?))?
            }
            1 | 10 | 14 | 18 => return Ok(Dumped::Unsupported("list")),
            2 | 11 | 20 => return Ok(Dumped::Unsupported("set")),
            kind::SORTED_SET | kind::SORTED_SET_TEXT | kind::SORTED_SET_ZIPLIST | kind::SORTED_SET_LISTPACK => {
                return Ok(Dumped::SortedSet(self.sorted_set(kind)?));
            }
            6 | 7 => return Ok(Dumped::Unsupported("module")),
            15 | 19 | 21 => return Ok(Dumped::Unsupported("stream")),
            _ => return Err(self.source.refusal(BadPayload::Format)),
        };
        check_fields(&entries).map_err(|why| self.source.refusal(why))?;
        Ok(Dumped::Hash(entries))
    }

    /// A hash that lies packed inside a string.
    fn packed(
        &mut self,
        unpack: impl FnOnce(&[u8]) -> Result<Vec<HashEntry>, BadPayload>,
    ) -> Result<Vec<HashEntry>, S::Error> {
        let packed = self.string()?;
        unpack(&packed).map_err(|why| self.source.refusal(why))
    }

    fn u64(&mut self) -> Result<u64, S::Error> {
        Ok(u64::from_le_bytes(self.source.array()?))
    }

    pub(super) fn length_or_special(&mut self) -> Result<Length, S::Error> {
        let [first] = self.source.array()?;
        let low = first & 0x3f;
        Ok(match first >> 6 {
            0 => Length::Plain(low.into()),
            1 => {
                let [second] = self.source.array()?;
                Length::Plain(u64::from(low) << 8 | u64::from(second))
            }
            2 if low == 0 => Length::Plain(u32::from_be_bytes(self.source.array()?).into()),
            2 if low == 1 => Length::Plain(u64::from_be_bytes(self.source.array()?)),
            3 => Length::Special(low),
            _ => return Err(self.source.refusal(BadPayload::Format)),
        })
    }

    pub(super) fn length(&mut self) -> Result<u64, S::Error> {
        match self.length_or_special()? {
            Length::Plain(length) => Ok(length),
            Length::Special(_) => Err(self.source.refusal(BadPayload::Format)),
        }
    }

    pub(super) fn string(&mut self) -> Result<Cow<'a, [u8]>, S::Error> {
        let number = match self.length_or_special()? {
            Length::Plain(len) => return self.source.bytes(len),
            Length::Special(0) => i8::from_le_bytes(self.source.array()?).into(),
            Length::Special(1) => i16::from_le_bytes(self.source.array()?).into(),
            Length::Special(2) => i32::from_le_bytes(self.source.array()?).into(),
            Length::Special(3) => return self.compressed(),
            Length::Special(_) => return Err(self.source.refusal(BadPayload::Format)),
        };
        Ok(format_i64(number, &mut [0; I64_CHARS_MAX]).to_vec().into())
    }

    fn compressed(&mut self) -> Result<Cow<'a, [u8]>, S::Error> {
        let packed_len = self.length()?;
        let len = self.length()?;
        let packed = self.source.bytes(packed_len)?;
        let left = usize::try_from(len).ok().and_then(|len| self.bytes_left.checked_sub(len));
        self.bytes_left = left.ok_or_else(|| self.source.refusal(BadPayload::TooLarge))?;
        let bytes = lzf::decompress(&packed, len as usize).ok_or_else(|| self.source.refusal(BadPayload::Format))?;
        Ok(bytes.into())
    }

    fn table(&mut self, deadlines: Deadlines) -> Result<Vec<HashEntry>, S::Error> {
        let count = self.length()?;
        // The count is a claim; the source says how many there can be.
        let likely_max = self.source.entries_likely();
        let mut entries = Vec::with_capacity(usize::try_from(count).unwrap_or(usize::MAX).min(likely_max));
        for _ in 0..count {
            let spelled = match deadlines {
                Deadlines::None => 0,
                Deadlines::Absolute | Deadlines::After(_) => self.length()?,
            };
            let deadline = match (spelled, deadlines) {
                (0, _) => Ok(None),
                (after, Deadlines::After(earliest)) => deadline(earliest.checked_add(after - 1)).map(Some),
                (ms, _) => deadline(Some(ms)).map(Some),
            };
            let deadline = deadline.map_err(|why| self.source.refusal(why))?;
            let field = self.string()?.into_owned();
            let value = self.string()?.into_owned();
            entries.push((field, value, deadline));
        }
        Ok(entries)
    }
}

// Writing -------------------------------------------------------------------------------------------------------------

/// A hash's shape in the payload. Redis keeps what it restores in the same shape, so the caller should choose as Redis
/// would: packed up to 128 fields of up to 64 bytes (`hash-max-listpack-entries`, `-value`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashForm {
    Listpack,
    Table,
}

/// Redis refuses to let a listpack grow past this; a larger hash becomes a table whatever the caller asked for.
const LISTPACK_BYTES_MAX: usize = 1 << 30;

pub fn encode_string(bytes: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(kind::STRING);
    writer.string(bytes);
    writer.finish(VERSION_PLAIN)
}

/// Fields with their values and deadlines in unix milliseconds. Without any deadline the payload is one that Redis 7.0
/// restores; with one it takes Redis 7.4. Deadlines past what Redis can hold become the last one it can.
pub fn encode_hash<'a, I>(fields: I, form: HashForm) -> Vec<u8>
where
    I: Iterator<Item = (&'a [u8], &'a [u8], Option<u64>)> + Clone,
{
    // A deadline of zero would read as none.
    let fields = fields.map(|(field, value, ms)| (field, value, ms.map(|ms| ms.clamp(1, DEADLINE_MS_MAX))));
    let earliest = fields.clone().filter_map(|(.., ms)| ms).min();
    let listpack = match (form, earliest) {
        (HashForm::Table, _) => None,
        (HashForm::Listpack, None) => pack(fields.clone(), false),
        (HashForm::Listpack, Some(_)) => {
            // Redis keeps these in order of their deadlines, those without at the end, and relies on it.
            let mut ordered: Vec<_> = fields.clone().collect();
            ordered.sort_by_key(|(.., ms)| ms.unwrap_or(u64::MAX));
            pack(ordered.into_iter(), true)
        }
    };
    let kind = match (&listpack, earliest) {
        (Some(_), None) => kind::HASH_LISTPACK,
        (Some(_), Some(_)) => kind::HASH_LISTPACK_DEADLINES,
        (None, None) => kind::HASH,
        (None, Some(_)) => kind::HASH_DEADLINES,
    };
    let mut writer = Writer::new(kind);
    if let Some(earliest) = earliest {
        writer.bytes.extend(earliest.to_le_bytes());
    }
    match listpack {
        Some(listpack) => writer.string(&listpack),
        None => {
            writer.length(fields.clone().count() as u64);
            for (field, value, ms) in fields {
                if let Some(earliest) = earliest {
                    writer.length(ms.map_or(0, |ms| ms - earliest + 1));
                }
                writer.string(field);
                writer.string(value);
            }
        }
    }
    writer.finish(match earliest {
        None => VERSION_PLAIN,
        Some(_) => VERSION_FIELD_DEADLINES,
    })
}

/// The fields as a listpack, unless it would be too large.
fn pack<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8], Option<u64>)>, with_deadlines: bool) -> Option<Vec<u8>> {
    // What the three elements add to their texts: encoding and length, twice; nine bytes and a length for a deadline.
    const OVERHEAD_MAX: usize = 2 * (5 + 5) + 9 + 1;
    let mut listpack = listpack::Writer::new();
    for (field, value, ms) in fields {
        let len = [listpack.len(), field.len(), value.len(), OVERHEAD_MAX].into_iter().sum::<usize>();
        if len >= LISTPACK_BYTES_MAX {
            return None;
        }
        listpack.push(field);
        listpack.push(value);
        if with_deadlines {
            listpack.push_integer(ms.unwrap_or(0) as i64);
        }
    }
    Some(listpack.finish())
}

struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn new(kind: u8) -> Self {
        Self { bytes: vec![kind] }
    }

    fn length(&mut self, length: u64) {
        match length {
            0..0x40 => self.bytes.push(length as u8),
            0x40..0x4000 => self.bytes.extend((length as u16 | 0x4000).to_be_bytes()),
            0x4000..=0xffff_ffff => {
                self.bytes.push(0x80);
                self.bytes.extend((length as u32).to_be_bytes());
            }
            _ => {
                self.bytes.push(0x81);
                self.bytes.extend(length.to_be_bytes());
            }
        }
    }

    /// As Redis does: short numbers as numbers, longer texts compressed where that saves something.
    fn string(&mut self, bytes: &[u8]) {
        const NUMBER_CHARS_MAX: usize = 11;
        const COMPRESS_ABOVE: usize = 20;
        const SAVED_MIN: usize = 4;
        if bytes.len() <= NUMBER_CHARS_MAX
            && let Some(number) = parse_i64(bytes)
            && self.number(number)
        {
            return;
        }
        if bytes.len() > COMPRESS_ABOVE
            && let Some(packed) = lzf::compress(bytes, bytes.len() - SAVED_MIN)
        {
            self.bytes.push(0xc3);
            self.length(packed.len() as u64);
            self.length(bytes.len() as u64);
            self.bytes.extend(packed);
            return;
        }
        self.length(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn number(&mut self, number: i64) -> bool {
        if let Ok(number) = i8::try_from(number) {
            self.bytes.push(0xc0);
            self.bytes.extend(number.to_le_bytes());
        } else if let Ok(number) = i16::try_from(number) {
            self.bytes.push(0xc1);
            self.bytes.extend(number.to_le_bytes());
        } else if let Ok(number) = i32::try_from(number) {
            self.bytes.push(0xc2);
            self.bytes.extend(number.to_le_bytes());
        } else {
            return false;
        }
        true
    }

    fn finish(mut self, version: u16) -> Vec<u8> {
        self.bytes.extend(version.to_le_bytes());
        let checksum = CHECKSUM.checksum(&self.bytes);
        self.bytes.extend(checksum.to_le_bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    const BYTES_MAX: usize = 1 << 20;

    fn unhex(hex: &str) -> Vec<u8> {
        let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
        digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
    }

    /// A footer for a body that was made by hand.
    fn sealed(body: &[u8], version: u16) -> Vec<u8> {
        let writer = Writer { bytes: body.to_vec() };
        writer.finish(version)
    }

    fn entry(field: &str, value: &str, deadline: Option<u64>) -> HashEntry {
        (field.into(), value.into(), deadline)
    }

    fn borrowed(entries: &[HashEntry]) -> impl Iterator<Item = (&[u8], &[u8], Option<u64>)> + Clone {
        entries.iter().map(|(field, value, ms)| (&field[..], &value[..], *ms))
    }

    /// DUMPs of Redis 7.0.15 (version 10) and 8.0.2 (version 12).
    #[test]
    fn redis_s_strings_are_read() {
        for (hex, expected) in [
            ("00000a005d9b5c400f7fa2da", b"".to_vec()),
            ("00000c0096ed6880f5553c93", b"".to_vec()),
            ("00c0050a00632f5f66832fb351", b"5".to_vec()),
            ("00c0050c00a8596ba679052d18", b"5".to_vec()),
            ("00c17fff0a001760822854808480", b"-129".to_vec()),
            ("00c17fff0c00dc16b6e8aeaa1ac9", b"-129".to_vec()),
            ("00c12c010a00954261f265825c10", b"300".to_vec()),
            ("00c12c010c005e3455329fa8c259", b"300".to_vec()),
            ("00c2701101000a0001a408fe953095a5", b"70000".to_vec()),
            ("00c2701101000c00cad23c3e6f1a0bec", b"70000".to_vec()),
            ("00c2000000800a00c74f873e33558187", b"-2147483648".to_vec()),
            ("00c2000000800c000c39b3fec97f1fce", b"-2147483648".to_vec()),
            ("000a323134373438333634380a00e7b129a34c1d76ee", b"2147483648".to_vec()),
            ("000a323134373438333634380c002cc71d63b637e8a7", b"2147483648".to_vec()),
            ("00033030370a007258e27b4c69bad9", b"007".to_vec()),
            ("00033030370c00b92ed6bbb6432490", b"007".to_vec()),
            ("00036162630a00d9ac303d4172a2e2", b"abc".to_vec()),
            ("00036162630c0012da04fdbb583cab", b"abc".to_vec()),
            ("00156162636465666768696a6b6c6d6e6f7071727374750a00ad1c23029a10e306", b"abcdefghijklmnopqrstu".to_vec()),
            ("00156162636465666768696a6b6c6d6e6f7071727374750c00666a17c2603a7d4f", b"abcdefghijklmnopqrstu".to_vec()),
            ("00c30615016161e00a000a00fd0cb36807413f68", vec![b'a'; 21]),
            ("00c30615016161e00a000c00367a87a8fd6ba121", vec![b'a'; 21]),
            ("00c31240640a6162636465666768696a61e04e0901696a0a00d485292a1f2eff66", b"abcdefghij".repeat(10)),
            ("00c31240640a6162636465666768696a61e04e0901696a0c001ff31deae504612f", b"abcdefghij".repeat(10)),
        ] {
            assert_eq!(decode(&unhex(hex), BYTES_MAX), Ok(Dumped::String(expected)), "{hex}");
        }
    }

    #[test]
    fn redis_s_hashes_are_read() {
        for (hex, expected) in [
            (
                "101c1c000000060081610201018162028378797a04816302f270110104ff0a00ea8f983ea6f82035",
                vec![entry("a", "1", None), entry("b", "xyz", None), entry("c", "70000", None)],
            ),
            (
                "040401620378797a03626967c3094064017676e057000176760161c0010163c2701101000a00ba5ca37436e2b825",
                vec![
                    entry("a", "1", None),
                    entry("b", "xyz", None),
                    entry("big", &"v".repeat(100), None),
                    entry("c", "70000", None),
                ],
            ),
            (
                "101c1c000000060081610201018162028378797a04816302f270110104ff0c0021f9acfe5cd2be7c",
                vec![entry("a", "1", None), entry("b", "xyz", None), entry("c", "70000", None)],
            ),
            (
                "040403626967c3094064017676e057000176760163c2701101000161c00101620378797a0c003113baec739c25c5",
                vec![
                    entry("a", "1", None),
                    entry("b", "xyz", None),
                    entry("big", &"v".repeat(100), None),
                    entry("c", "70000", None),
                ],
            ),
            (
                "197b204aa9d101000032320000000900816302f270110104f464204aa9d1010000098162028378797a04f47b204aa9d10100000981610201010001ff0c00bfb633c62a2e4205",
                vec![
                    entry("a", "1", None),
                    entry("b", "xyz", Some(2000000000123)),
                    entry("c", "70000", Some(2000000000100)),
                ],
            ),
            (
                "1864204aa9d1010000040003626967c3094064017676e05700017676010163c270110100000161c0011801620378797a0c001a927d2e5d64e506",
                vec![
                    entry("a", "1", None),
                    entry("b", "xyz", Some(2000000000123)),
                    entry("big", &"v".repeat(100), None),
                    entry("c", "70000", Some(2000000000100)),
                ],
            ),
            // A ziplist, made by hand (RDB version 9, Redis 6); Redis 7.0.15 restores it to the same hash.
            (
                "0d20200000001a000000060000016103f2020162030378797a05016303f0701101ff0900af22f30574344c66",
                vec![entry("a", "1", None), entry("b", "xyz", None), entry("c", "70000", None)],
            ),
        ] {
            let Ok(Dumped::Hash(mut entries)) = decode(&unhex(hex), BYTES_MAX) else {
                panic!("{hex}");
            };
            entries.sort();
            assert_eq!(entries, expected, "{hex}");
        }
    }

    #[test]
    fn what_is_written_for_small_values_is_what_redis_writes() {
        for (bytes, hex) in [
            (&b""[..], "00000a005d9b5c400f7fa2da"),
            (&b"5"[..], "00c0050a00632f5f66832fb351"),
            (&b"-129"[..], "00c17fff0a001760822854808480"),
            (&b"300"[..], "00c12c010a00954261f265825c10"),
            (&b"70000"[..], "00c2701101000a0001a408fe953095a5"),
            (&b"2147483648"[..], "000a323134373438333634380a00e7b129a34c1d76ee"),
            (&b"007"[..], "00033030370a007258e27b4c69bad9"),
            (&b"abc"[..], "00036162630a00d9ac303d4172a2e2"),
        ] {
            assert_eq!(encode_string(bytes), unhex(hex));
        }
    }

    #[test]
    fn strings_round_trip() {
        let mut random = Random::new();
        for _ in 0..1_000 {
            let limit = *random.pick(&[2, 12, 30, 70, 20_000]);
            let alphabet = *random.pick(&[&b"0123456789"[..], b"-0123456789", b"ab", b"abcdefghijkl\0\xff"]);
            let bytes = random.bytes(limit, alphabet);
            assert_eq!(decode(&encode_string(&bytes), BYTES_MAX), Ok(Dumped::String(bytes)));
        }
    }

    #[test]
    fn hashes_round_trip() {
        let mut random = Random::new();
        for _ in 0..300 {
            let mut entries: Vec<HashEntry> = Vec::new();
            let with_deadlines = random.below(2) == 1;
            let count = *random.pick(&[1, 2, 30, 600]);
            for number in 0..count {
                let mut field = random.bytes(8, b"abc-019");
                field.extend(format!("#{number}").bytes());
                let limit = *random.pick(&[3, 30, 200]);
                let value = random.bytes(limit, b"xyz0123456789");
                let ms = (with_deadlines && random.below(3) > 0).then(|| 1_900_000_000_000 + random.next() % 100_000);
                entries.push((field, value, ms));
            }
            entries.sort();
            for form in [HashForm::Listpack, HashForm::Table] {
                let payload = encode_hash(borrowed(&entries), form);
                let Ok(Dumped::Hash(mut read)) = decode(&payload, BYTES_MAX) else {
                    panic!("{entries:?}");
                };
                read.sort();
                assert_eq!(read, entries);
            }
        }
    }

    #[test]
    fn only_deadlines_need_the_newer_version() {
        let version = |payload: &[u8]| payload[payload.len() - FOOTER_BYTES];
        for form in [HashForm::Listpack, HashForm::Table] {
            assert_eq!(version(&encode_hash(borrowed(&[entry("f", "v", None)]), form)), 10);
            assert_eq!(version(&encode_hash(borrowed(&[entry("f", "v", Some(5))]), form)), 12);
        }
        assert_eq!(version(&encode_string(b"x")), 10);
    }

    #[test]
    fn deadlines_at_the_edges_stay_deadlines() {
        for form in [HashForm::Listpack, HashForm::Table] {
            let entries = [entry("a", "", Some(0)), entry("b", "", Some(u64::MAX)), entry("c", "", None)];
            let Ok(Dumped::Hash(mut read)) = decode(&encode_hash(borrowed(&entries), form), BYTES_MAX) else {
                panic!();
            };
            read.sort();
            let expected = [Some(1), Some(DEADLINE_MS_MAX), None];
            assert_eq!(read.iter().map(|(.., ms)| *ms).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn the_footer_is_checked() {
        let good = encode_string(b"hello");
        assert!(decode(&good, 0).is_ok());
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(decode(&bad, 0), Err(BadPayload::Footer), "byte {at}");
        }
        for len in 0..good.len() {
            assert_eq!(decode(&good[..len], 0), Err(BadPayload::Footer), "{len} bytes");
        }
        assert!(decode(&sealed(b"\0\x01x", 1), 0).is_ok(), "any older version");
        assert_eq!(decode(&sealed(b"\0\x01x", 13), 0), Err(BadPayload::Footer));
        assert_eq!(decode(&sealed(b"", 10), 0), Err(BadPayload::Format));
    }

    #[test]
    fn other_types_are_named() {
        for (kind, name) in [(1, "list"), (18, "list"), (11, "set"), (7, "module"), (21, "stream")] {
            assert_eq!(decode(&sealed(&[kind, 0], 10), 0), Ok(Dumped::Unsupported(name)));
        }
        assert_eq!(decode(&sealed(&[8, 0], 10), 0), Err(BadPayload::Format));
        assert_eq!(decode(&sealed(&[200, 0], 10), 0), Err(BadPayload::Format));
    }

    #[test]
    fn lies_are_refused() {
        let refused =
            |body: &[u8]| assert_eq!(decode(&sealed(body, 12), BYTES_MAX), Err(BadPayload::Format), "{body:?}");
        refused(b"\0");
        refused(b"\0\x05abc");
        refused(b"\0\x01xx");
        refused(b"\0\x81\xff\xff\xff\xff\xff\xff\xff\xff");
        refused(b"\0\x82\0\0\0\x01x");
        refused(b"\0\xc4x");
        refused(b"\0\xc3\x02\x03\0x");
        refused(b"\x04\0");
        refused(b"\x04\x01\x01a");
        refused(b"\x04\x81\xff\xff\xff\xff\xff\xff\xff\xff\x01a\x01b");
        refused(b"\x04\x02\x01a\x01b\x01a\x01c");
        refused(b"\x10\x09\x09\0\0\0\x01\0\x01\x01\xff");
        refused(b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x01a\x01b");
        refused(b"\x16\x01\x81\xff\0\0\0\0\0\0\0\x01a\x01b");
    }

    #[test]
    fn decompression_has_a_limit() {
        let payload = encode_string(&vec![b'a'; 10_000]);
        assert!(payload.len() < 300);
        assert!(decode(&payload, 10_000).is_ok());
        assert_eq!(decode(&payload, 9_999), Err(BadPayload::TooLarge));
        let long = "a".repeat(1_000);
        let entries = [entry("f", &long, None), entry("g", &long, None)];
        let payload = encode_hash(borrowed(&entries), HashForm::Table);
        assert!(decode(&payload, 2_000).is_ok());
        assert_eq!(decode(&payload, 1_999), Err(BadPayload::TooLarge), "the limit is on the sum");
        // A few bytes that claim half a gigabyte are not even tried.
        assert_eq!(decode(&sealed(b"\0\xc3\x02\x80\x20\0\0\0\0x", 10), usize::MAX), Err(BadPayload::Format));
    }

    #[test]
    fn no_payload_panics() {
        let mut random = Random::new();
        let entries = [entry("field", "12", Some(1_900_000_000_000)), entry("x", &"long".repeat(30), None)];
        let plain = [entry("field", "12", None), entry("7", "-70000", None)];
        let mut bodies =
            vec![encode_string(b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbb"), encode_string(b"123")];
        for form in [HashForm::Listpack, HashForm::Table] {
            bodies.push(encode_hash(borrowed(&entries), form));
            bodies.push(encode_hash(borrowed(&plain), form));
        }
        let members = [(&b"a"[..], -1.5), (&b"12"[..], 3.0), (&b"member"[..], f64::INFINITY)];
        for form in [SortedSetForm::Listpack, SortedSetForm::Table] {
            bodies.push(encode_sorted_set(members.iter().copied(), form));
        }
        for body in &mut bodies {
            body.truncate(body.len() - FOOTER_BYTES);
        }
        let interesting = [
            0, 1, 2, 3, 4, 5, 12, 13, 16, 17, 22, 23, 24, 25, 0x3f, 0x40, 0x7f, 0x80, 0x81, 0xc0, 0xc3, 0xf0, 0xfe,
            0xff,
        ];
        for _ in 0..50_000 {
            let mut body = match random.below(4) {
                0 => random.bytes(40, &interesting),
                _ => random.pick(&bodies).clone(),
            };
            for _ in 0..random.below(4) {
                if body.is_empty() {
                    break;
                }
                let at = random.below(body.len());
                match random.below(4) {
                    0 => body[at] = random.next() as u8,
                    1 => body[at] = *random.pick(&interesting),
                    2 => body.insert(at, *random.pick(&interesting)),
                    _ => body.truncate(at),
                }
            }
            let _ = decode(&sealed(&body, 12), BYTES_MAX);
        }
    }
}
