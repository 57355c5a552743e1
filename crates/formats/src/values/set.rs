//! Sets in Redis's RDB encoding: tables, intsets, and the listpacks of Redis 7.2. Knows how members are encoded;
//! refuses to know how they are stored.

use super::{Emit, Texts, in_chunks};
use crate::packed::{Element, listpack, little_endian};
use crate::rdb::BadPayload;
use crate::rdb::reader::{Reader, Source};
use crate::rdb::writer::{VERSION_PLAIN, Writer};
use numbers::parse_i64;

/// The type bytes of sets.
pub(crate) mod kind {
    pub(crate) const SET: u8 = 2;
    pub(crate) const SET_INTSET: u8 = 11;
    /// Small sets since Redis 7.2.
    pub(crate) const SET_LISTPACK: u8 = 20;
}

/// All type bytes of sets.
pub(crate) const KINDS: [u8; 3] = [kind::SET, kind::SET_INTSET, kind::SET_LISTPACK];

impl<'a, S: Source<'a>> Reader<S> {
    /// Reads the members of a set of one of the kinds above. No member occurs twice.
    pub(crate) fn set(&mut self, kind: u8) -> Result<Texts, S::Error> {
        let members = match kind {
            kind::SET => self.members()?,
            _ => {
                let packed = self.string()?;
                let members = match kind {
                    kind::SET_INTSET => numbers(&packed),
                    _ => elements(&packed),
                };
                members.map_err(|why| self.source.refusal(why))?
            }
        };
        check(&members).map_err(|why| self.source.refusal(why))?;
        Ok(members)
    }

    /// Reads a count and that many strings.
    fn members(&mut self) -> Result<Texts, S::Error> {
        let count = self.length()?;
        // The count is not trusted; the source limits how many there can be.
        let likely_max = self.source.entries_likely();
        let mut members = Texts::with_capacity(usize::try_from(count).unwrap_or(usize::MAX).min(likely_max), 0);
        for _ in 0..count {
            members.push(&self.string()?);
        }
        Ok(members)
    }
}

/// Reads an intset: the width of a number, the count, and the numbers in ascending order.
fn numbers(intset: &[u8]) -> Result<Texts, BadPayload> {
    let (width, rest) = intset.split_first_chunk::<4>().ok_or(BadPayload::Format)?;
    let (count, rest) = rest.split_first_chunk::<4>().ok_or(BadPayload::Format)?;
    let width @ (2 | 4 | 8) = u32::from_le_bytes(*width) as usize else { return Err(BadPayload::Format) };
    let count = u32::from_le_bytes(*count) as usize;
    if count == 0 || count.checked_mul(width) != Some(rest.len()) {
        return Err(BadPayload::Format);
    }
    let numbers: Vec<i64> = rest.chunks_exact(width).map(little_endian).collect();
    match numbers.is_sorted_by(|a, b| a < b) {
        true => {
            let mut texts = Texts::with_capacity(numbers.len(), 0);
            numbers.iter().for_each(|number| Element::Integer(*number).with_text(|text| texts.push(text)));
            Ok(texts)
        }
        false => Err(BadPayload::Format),
    }
}

fn elements(packed: &[u8]) -> Result<Texts, BadPayload> {
    let mut texts = Texts::default();
    for element in listpack::elements(packed)? {
        element?.with_text(|text| texts.push(text));
    }
    Ok(texts)
}

/// Refuses a value that has the same member twice: Redis never writes one.
fn check(members: &Texts) -> Result<(), BadPayload> {
    let mut names: Vec<&[u8]> = members.iter().collect();
    // Sorting rather than hashing: it costs the same whatever members a client chooses.
    names.sort_unstable();
    match names.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err(BadPayload::Format),
        false => Ok(()),
    }
}

/// Writes the members; with `packed`, as an intset, for which all must be integers. Redis 7.0 and later restore it.
pub(crate) fn encode_set(members: &Texts, packed: bool) -> Vec<u8> {
    let intset = match packed {
        true => intset_of(members),
        false => None,
    };
    let writer = match intset {
        Some(intset) => {
            let mut writer = Writer::new(kind::SET_INTSET);
            writer.string(&intset);
            writer
        }
        None => {
            let mut writer = Writer::with_capacity(kind::SET, members.bytes());
            writer.length(members.len() as u64);
            members.iter().for_each(|member| writer.string(member));
            writer
        }
    };
    writer.finish(VERSION_PLAIN)
}

/// Writes the members as an intset; `None` when one is not an integer, or there are more than an intset can count.
fn intset_of(members: &Texts) -> Option<Vec<u8>> {
    let count = u32::try_from(members.len()).ok()?;
    let mut numbers: Vec<i64> = members.iter().map(parse_i64).collect::<Option<_>>()?;
    numbers.sort_unstable();
    let fit = |min: i64, max: i64| numbers.iter().all(|number| (min..=max).contains(number));
    let width: usize = if fit(i16::MIN.into(), i16::MAX.into()) {
        2
    } else if fit(i32::MIN.into(), i32::MAX.into()) {
        4
    } else {
        8
    };
    let mut intset = Vec::with_capacity(8 + numbers.len() * width);
    intset.extend((width as u32).to_le_bytes());
    intset.extend(count.to_le_bytes());
    numbers.iter().for_each(|number| intset.extend(&number.to_le_bytes()[..width]));
    Some(intset)
}

/// Emits the commands that create this set at a key that does not exist.
pub(crate) fn commands<E>(name: &[u8], members: &Texts, emit: Emit<'_, E>) -> Result<(), E> {
    in_chunks(&[b"SADD", name], members.iter(), |member, args| args.push(member), emit)
}

#[cfg(test)]
mod tests;
