//! Sorted sets in Redis's RDB encoding: text and binary scores in a table, ziplists and listpacks. Knows how members
//! and scores are encoded; refuses to know in what order they are stored.

use super::{Emit, SortedSetEntry, in_chunks};
use crate::packed::{Element, listpack, ziplist};
use crate::rdb::BadPayload;
use crate::rdb::reader::{Elements, Reader, Source};
use crate::rdb::writer::{LISTPACK_BYTES_MAX, VERSION_PLAIN, Writer};
use numbers::{F64_CHARS_MAX, format_f64_in_17_digits, parse_f64_loosely};

pub(crate) mod kind {
    /// Scores as text: up to Redis 3.
    pub(crate) const SORTED_SET_TEXT: u8 = 3;
    pub(crate) const SORTED_SET: u8 = 5;
    pub(crate) const SORTED_SET_ZIPLIST: u8 = 12;
    pub(crate) const SORTED_SET_LISTPACK: u8 = 17;
}

/// All type bytes of sorted sets.
pub(crate) const KINDS: [u8; 4] =
    [kind::SORTED_SET_TEXT, kind::SORTED_SET, kind::SORTED_SET_ZIPLIST, kind::SORTED_SET_LISTPACK];

/// Lengths of text scores that are not lengths: the scores that they represent.
mod score {
    pub(crate) const NAN: u8 = 253;
    pub(crate) const INFINITE: u8 = 254;
    pub(crate) const NEGATIVE_INFINITE: u8 = 255;
}

impl<'a, S: Source<'a>> Reader<S> {
    /// Reads the members of a sorted set of one of the kinds above. No member occurs twice.
    pub(crate) fn sorted_set(&mut self, kind: u8) -> Result<Vec<SortedSetEntry>, S::Error> {
        let entries = match kind {
            kind::SORTED_SET_TEXT => self.scored(|reader| reader.score_text()),
            kind::SORTED_SET => self.scored(|reader| Ok(f64::from_le_bytes(reader.source.array()?))),
            _ => {
                let packed = self.string()?;
                let entries = match kind {
                    kind::SORTED_SET_ZIPLIST => ziplist::elements(&packed).map_err(BadPayload::from).and_then(pairs),
                    _ => listpack::elements(&packed).map_err(BadPayload::from).and_then(pairs),
                };
                entries.map_err(|why| self.source.refusal(why))
            }
        }?;
        check(&entries).map_err(|why| self.source.refusal(why))?;
        Ok(entries)
    }

    /// Reads a count and that many names, each followed by a score.
    fn scored(
        &mut self,
        mut score: impl FnMut(&mut Self) -> Result<f64, S::Error>,
    ) -> Result<Vec<SortedSetEntry>, S::Error> {
        let count = self.length()?;
        // The count is not trusted; the source limits how many there can be.
        let likely_max = self.source.entries_likely();
        let mut entries = Vec::with_capacity(usize::try_from(count).unwrap_or(usize::MAX).min(likely_max));
        for _ in 0..count {
            let name = self.string()?.into_owned();
            entries.push((name, score(self)?));
        }
        Ok(entries)
    }

    fn score_text(&mut self) -> Result<f64, S::Error> {
        Ok(match self.source.array()? {
            [score::NAN] => f64::NAN,
            [score::INFINITE] => f64::INFINITY,
            [score::NEGATIVE_INFINITE] => f64::NEG_INFINITY,
            [len] => {
                let text = self.source.bytes(len.into())?;
                let score = parse_f64_loosely(&text).filter(|_| !text.is_empty());
                score.ok_or_else(|| self.source.refusal(BadPayload::Format))?
            }
        })
    }
}

/// A packed list of member, score, member, score.
fn pairs<'a>(mut elements: impl Iterator<Item = Elements<'a>>) -> Result<Vec<SortedSetEntry>, BadPayload> {
    let mut entries = Vec::new();
    while let Some(name) = elements.next() {
        let score = match elements.next().ok_or(BadPayload::Format)?? {
            Element::Integer(number) => number as f64,
            Element::Bytes(text) => parse_f64_loosely(text).ok_or(BadPayload::Format)?,
        };
        entries.push((name?.to_vec(), score));
    }
    Ok(entries)
}

/// Refuses a value that has the same member twice, or a score that is NaN: Redis never writes one.
fn check(entries: &[SortedSetEntry]) -> Result<(), BadPayload> {
    let mut names: Vec<&[u8]> = entries.iter().map(|(name, _)| name.as_slice()).collect();
    names.sort_unstable();
    let has_twins = names.windows(2).any(|pair| pair[0] == pair[1]);
    match has_twins || entries.iter().any(|(_, score)| score.is_nan()) {
        true => Err(BadPayload::Format),
        false => Ok(()),
    }
}

/// Writes members with their scores, in order. They should be packed where Redis would: up to 128 members of up to 64
/// bytes (`zset-max-listpack-entries`, `-value`). Redis 7.0 and later restore it.
pub(crate) fn encode_sorted_set<'a, I>(members: I, packed: bool) -> Vec<u8>
where
    I: DoubleEndedIterator<Item = (&'a [u8], f64)> + ExactSizeIterator + Clone,
{
    let listpack = match packed {
        true => pack(members.clone()),
        false => None,
    };
    let writer = match listpack {
        Some(listpack) => {
            let mut writer = Writer::new(kind::SORTED_SET_LISTPACK);
            writer.string(&listpack);
            writer
        }
        None => {
            let mut writer = Writer::new(kind::SORTED_SET);
            writer.length(members.len() as u64);
            // The greatest first, as Redis does: a reader then inserts each before all others.
            for (name, score) in members.rev() {
                writer.string(name);
                writer.bytes.extend(score.to_le_bytes());
            }
            writer
        }
    };
    writer.finish(VERSION_PLAIN)
}

/// Packs the members into a listpack, unless it would be too large.
fn pack<'a>(members: impl Iterator<Item = (&'a [u8], f64)>) -> Option<Vec<u8>> {
    // The most bytes that the two elements add to the name: encodings and lengths, and a full score.
    const OVERHEAD_MAX: usize = (5 + 5) + F64_CHARS_MAX + 2;
    let mut listpack = listpack::Writer::new();
    for (name, score) in members {
        if listpack.len() + name.len() + OVERHEAD_MAX >= LISTPACK_BYTES_MAX {
            return None;
        }
        listpack.push(name);
        match whole(score) {
            Some(number) => listpack.push_integer(number),
            None => listpack.push(format_f64_in_17_digits(score, &mut [0; F64_CHARS_MAX])),
        }
    }
    Some(listpack.finish())
}

/// Emits the commands that create this sorted set at a key that does not exist.
pub(crate) fn commands<E>(name: &[u8], members: &[SortedSetEntry], emit: Emit<'_, E>) -> Result<(), E> {
    let text = |score: f64| format_f64_in_17_digits(score, &mut [0; F64_CHARS_MAX]).to_vec();
    let members: Vec<_> = members.iter().map(|(member, score)| (text(*score), member)).collect();
    in_chunks(&[b"ZADD", name], &members, |(score, member), args| args.extend([&**score, &***member]), emit)
}

/// The integer that Redis packs instead of a score. Negative zero becomes zero, as in Redis.
pub fn whole(score: f64) -> Option<i64> {
    // Redis stops at LLONG_MAX/2, which is this as a double.
    const WHOLE_MAX: f64 = (1_u64 << 62) as f64;
    (score.abs() <= WHOLE_MAX && score.trunc() == score).then_some(score as i64)
}

#[cfg(test)]
mod tests;
