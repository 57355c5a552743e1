//! Reads values in Redis's RDB encoding, from memory or from a file. Knows lengths and strings; refuses to know types.

use super::{BadPayload, Dialect};
use crate::packed::{Element, Malformed, lzf};
use numbers::{I64_CHARS_MAX, format_i64};
use std::borrow::Cow;

/// An element of a packed list, if it is one.
pub(crate) type Elements<'a> = Result<Element<'a>, Malformed>;

/// A length, or one of the special encodings of a string that replace it.
pub(crate) enum Length {
    Plain(u64),
    Special(u8),
}

/// Where the bytes of a value come from: a payload in memory, or a file that is read piece by piece.
pub(crate) trait Source<'a> {
    type Error;

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Self::Error>;

    /// Returns exactly `len` bytes. The number is not trusted: memory is allocated as bytes arrive, not before.
    fn bytes(&mut self, len: u64) -> Result<Cow<'a, [u8]>, Self::Error>;

    /// The number of entries of a table to allocate ahead, whatever its count claims.
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

/// Reads values from the front.
pub(crate) struct Reader<S> {
    pub(crate) source: S,
    pub(crate) dialect: Dialect,
    /// How much may still be decompressed.
    pub(crate) bytes_left: usize,
}

impl<'a, S: Source<'a>> Reader<S> {
    pub(crate) fn u64(&mut self) -> Result<u64, S::Error> {
        Ok(u64::from_le_bytes(self.source.array()?))
    }

    pub(crate) fn length_or_special(&mut self) -> Result<Length, S::Error> {
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

    pub(crate) fn length(&mut self) -> Result<u64, S::Error> {
        match self.length_or_special()? {
            Length::Plain(length) => Ok(length),
            Length::Special(_) => Err(self.source.refusal(BadPayload::Format)),
        }
    }

    pub(crate) fn string(&mut self) -> Result<Cow<'a, [u8]>, S::Error> {
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
}
