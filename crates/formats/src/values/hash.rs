//! Hashes in Redis's RDB encoding: tables, zipmaps, ziplists and listpacks, with field deadlines or without. Knows how
//! fields are encoded; refuses to know how they are stored.

use super::{Emit, HashEntry, in_chunks};
use crate::packed::{Element, listpack, ziplist, zipmap};
use crate::rdb::reader::{Elements, Reader, Source};
use crate::rdb::writer::{LISTPACK_BYTES_MAX, VERSION_FIELD_DEADLINES, VERSION_PLAIN, Writer};
use crate::rdb::{BadPayload, Dialect};

/// The largest deadline Redis accepts for a field: 48 bits of milliseconds, the year 10889.
pub(crate) const DEADLINE_MS_MAX: u64 = (1 << 48) - 1;

/// The type bytes of hashes, where nothing else is said those of Redis and Valkey.
pub(crate) mod kind {
    pub(crate) const HASH: u8 = 4;
    /// Redis 2.4's small hashes.
    pub(crate) const HASH_ZIPMAP: u8 = 9;
    pub(crate) const HASH_ZIPLIST: u8 = 13;
    pub(crate) const HASH_LISTPACK: u8 = 16;
    /// Field deadlines as the release candidates of Redis 7.4 wrote them: without the earliest one at the front. Valkey 9
    /// gives this number to hashes of its own form: each deadline follows its field and value.
    pub(crate) const HASH_DEADLINES_CANDIDATE: u8 = 22;
    pub(crate) const HASH_LISTPACK_DEADLINES_CANDIDATE: u8 = 23;
    pub(crate) const HASH_DEADLINES: u8 = 24;
    pub(crate) const HASH_LISTPACK_DEADLINES: u8 = 25;
}

/// All type bytes of hashes.
pub(crate) const KINDS: [u8; 8] = [
    kind::HASH,
    kind::HASH_ZIPMAP,
    kind::HASH_ZIPLIST,
    kind::HASH_LISTPACK,
    kind::HASH_DEADLINES_CANDIDATE,
    kind::HASH_LISTPACK_DEADLINES_CANDIDATE,
    kind::HASH_DEADLINES,
    kind::HASH_LISTPACK_DEADLINES,
];

/// False for a form of hashes that the dialect does not have.
pub(crate) fn is_of(kind: u8, dialect: Dialect) -> bool {
    let is_of_redis_alone = (kind::HASH_LISTPACK_DEADLINES_CANDIDATE..=kind::HASH_LISTPACK_DEADLINES).contains(&kind);
    !(dialect == Dialect::Valkey && is_of_redis_alone)
}

impl<'a, S: Source<'a>> Reader<S> {
    /// Reads the fields of a hash of one of the kinds above. No field occurs twice.
    pub(crate) fn hash(&mut self, kind: u8) -> Result<Vec<HashEntry>, S::Error> {
        let entries = match kind {
            kind::HASH => self.table(Deadlines::None)?,
            kind::HASH_DEADLINES_CANDIDATE if self.dialect == Dialect::Valkey => self.table(Deadlines::Behind)?,
            kind::HASH_DEADLINES_CANDIDATE => self.table(Deadlines::Absolute)?,
            kind::HASH_DEADLINES => {
                let earliest = self.u64()?;
                self.table(Deadlines::After(earliest))?
            }
            kind::HASH_ZIPMAP => self.packed(|zipmap| pairs(zipmap::elements(zipmap)?))?,
            kind::HASH_ZIPLIST => self.packed(|ziplist| pairs(ziplist::elements(ziplist)?))?,
            kind::HASH_LISTPACK => self.packed(|listpack| pairs(listpack::elements(listpack)?))?,
            _ => {
                if kind == kind::HASH_LISTPACK_DEADLINES {
                    self.u64()?; // the earliest deadline; the listpack has them all in full
                }
                self.packed(|listpack| triples(listpack::elements(listpack)?))?
            }
        };
        check_fields(&entries).map_err(|why| self.source.refusal(why))?;
        Ok(entries)
    }

    /// Reads a hash that is packed inside a string.
    fn packed(
        &mut self,
        unpack: impl FnOnce(&[u8]) -> Result<Vec<HashEntry>, BadPayload>,
    ) -> Result<Vec<HashEntry>, S::Error> {
        let packed = self.string()?;
        unpack(&packed).map_err(|why| self.source.refusal(why))
    }

    fn table(&mut self, deadlines: Deadlines) -> Result<Vec<HashEntry>, S::Error> {
        let count = self.length()?;
        // The count is not trusted; the source limits how many there can be.
        let likely_max = self.source.entries_likely();
        let mut entries = Vec::with_capacity(usize::try_from(count).unwrap_or(usize::MAX).min(likely_max));
        for _ in 0..count {
            let spelled = match deadlines {
                Deadlines::None | Deadlines::Behind => 0,
                Deadlines::Absolute | Deadlines::After(_) => self.length()?,
            };
            let ahead = match (spelled, deadlines) {
                (0, _) => Ok(None),
                (after, Deadlines::After(earliest)) => deadline(earliest.checked_add(after - 1)).map(Some),
                (ms, _) => deadline(Some(ms)).map(Some),
            };
            let ahead = ahead.map_err(|why| self.source.refusal(why))?;
            let field = self.string()?.into_owned();
            let value = self.string()?.into_owned();
            let deadline = match deadlines {
                Deadlines::Behind => signed_deadline(i64::from_le_bytes(self.source.array()?)),
                _ => Ok(ahead),
            };
            let deadline = deadline.map_err(|why| self.source.refusal(why))?;
            entries.push((field, value, deadline));
        }
        Ok(entries)
    }
}

/// Refuses a value that has the same field twice: Redis never writes one.
fn check_fields(entries: &[HashEntry]) -> Result<(), BadPayload> {
    let mut fields: Vec<&[u8]> = entries.iter().map(|(field, ..)| field.as_slice()).collect();
    // Sorting rather than hashing: it costs the same whatever fields a client chooses.
    fields.sort_unstable();
    if fields.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(BadPayload::Format);
    }
    Ok(())
}

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

/// Valkey writes -1 for none. It allows later instants than Redis does.
fn signed_deadline(ms: i64) -> Result<Option<u64>, BadPayload> {
    match ms {
        -1 => Ok(None),
        _ => deadline(u64::try_from(ms).ok().map(|ms| ms.min(DEADLINE_MS_MAX))).map(Some),
    }
}

/// How a table encodes its fields' deadlines.
#[derive(Clone, Copy)]
enum Deadlines {
    None,
    /// In milliseconds; zero for none.
    Absolute,
    /// In milliseconds after the earliest, plus one; zero for none.
    After(u64),
    /// In milliseconds behind each value; -1 for none.
    Behind,
}

/// Writes fields with their values and deadlines in unix milliseconds. Without deadlines Redis 7.0 restores the
/// payload; with deadlines Redis 7.4. Redis restores a packed payload as a packed value and a table as a table, so the
/// caller should choose as Redis would. Deadlines beyond Redis's maximum become that maximum.
pub(crate) fn encode_hash<'a, I>(fields: I, packed: bool) -> Vec<u8>
where
    I: Iterator<Item = (&'a [u8], &'a [u8], Option<u64>)> + Clone,
{
    // A deadline of zero would read as none.
    let fields = fields.map(|(field, value, ms)| (field, value, ms.map(|ms| ms.clamp(1, DEADLINE_MS_MAX))));
    let earliest = fields.clone().filter_map(|(.., ms)| ms).min();
    let listpack = match (packed, earliest) {
        (false, _) => None,
        (true, None) => pack(fields.clone(), false),
        (true, Some(_)) => {
            // Redis orders fields by their deadlines, fields without one last, and relies on it.
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

/// Packs the fields into a listpack, unless it would be too large.
fn pack<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8], Option<u64>)>, with_deadlines: bool) -> Option<Vec<u8>> {
    // The most bytes that the three elements add to their texts: encoding and length, twice; nine bytes and a length
    // for a deadline.
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

/// Emits the commands that create this hash at a key that does not exist.
pub(crate) fn commands<E>(name: &[u8], fields: &[HashEntry], emit: Emit<'_, E>) -> Result<(), E> {
    in_chunks(&[b"HSET", name], fields, |(field, value, _), args| args.extend([&**field, &**value]), emit)?;
    for (field, _, deadline) in fields {
        if let Some(deadline) = deadline {
            emit(&[b"HPEXPIREAT", name, deadline.to_string().as_bytes(), b"FIELDS", b"1", field])?;
        }
    }
    Ok(())
}
