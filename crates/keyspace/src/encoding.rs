//! The encoding of numbers and bytes inside effects. Knows lengths and ranges; refuses to know what an effect is.
//! docs/effect-format.md describes it.

use crate::storage::Scalar;

/// Kinds of an encoded scalar: a length and bytes, or a number.
const SCALAR_BYTES: u8 = 0;
const SCALAR_NUMBER: u8 = 1;

/// Zigzag: small negative numbers are short too.
#[inline]
pub(crate) fn put_signed(number: i64, out: &mut Vec<u8>) {
    put_number((number << 1 ^ number >> 63) as u64, out);
}

/// Seven bits a byte, the lowest first; the top bit marks that more follow.
#[inline]
pub(crate) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[inline]
pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Encodes an optional deadline: zero for none, else its milliseconds plus one.
#[inline]
pub(crate) fn put_deadline(deadline: Option<u64>, out: &mut Vec<u8>) {
    put_number(deadline.map_or(0, |deadline| deadline.saturating_add(1)), out);
}

/// Encodes a scalar, with flag `bits` of the caller in its kind byte.
#[inline]
pub(crate) fn put_scalar(value: Scalar<'_>, bits: u8, out: &mut Vec<u8>) {
    match value {
        Scalar::Bytes(bytes) => {
            out.push(SCALAR_BYTES | bits);
            put_bytes(bytes, out);
        }
        Scalar::Number(number) => {
            out.push(SCALAR_NUMBER | bits);
            put_signed(number, out);
        }
    }
}

/// Why bytes are not valid effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadEffect {
    /// The bytes end in the middle of an effect.
    CutShort,
    /// An unknown effect tag: a newer version may have written it.
    UnknownTag(u8),
    /// An unknown type tag, or an unknown change tag of the type.
    UnknownChange(u8, u8),
    /// A number is out of its range.
    OutOfRange,
    /// The effect cannot be applied to the key's value.
    WrongType,
}

impl std::fmt::Display for BadEffect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BadEffect::CutShort => f.write_str("an effect is cut short"),
            BadEffect::UnknownTag(tag) => write!(f, "unknown effect {tag}: was it written by a newer version?"),
            BadEffect::UnknownChange(value_type, change) => {
                write!(f, "unknown change {change} of type {value_type}: was it written by a newer version?")
            }
            BadEffect::OutOfRange => f.write_str("an effect has a number that is out of range"),
            BadEffect::WrongType => f.write_str("an effect does not fit the value that its key holds"),
        }
    }
}

impl std::error::Error for BadEffect {}

/// Reads encoded bytes from the front.
#[derive(Clone, Copy, Default)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// True when nothing is left.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the bytes that `read` consumes.
    pub(crate) fn taken_by(
        &mut self,
        read: impl FnOnce(&mut Reader<'a>) -> Result<(), BadEffect>,
    ) -> Result<&'a [u8], BadEffect> {
        let before = self.rest;
        read(self)?;
        Ok(&before[..before.len() - self.rest.len()])
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, BadEffect> {
        let (first, rest) = self.rest.split_first().ok_or(BadEffect::CutShort)?;
        self.rest = rest;
        Ok(*first)
    }

    /// Returns the rest.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads `len` bytes.
    #[inline]
    pub(crate) fn slice(&mut self, len: usize) -> Result<&'a [u8], BadEffect> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(BadEffect::CutShort)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], BadEffect> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(BadEffect::CutShort)?;
        self.rest = rest;
        Ok(*bytes)
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Result<u64, BadEffect> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return Err(BadEffect::OutOfRange);
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BadEffect::OutOfRange)
    }

    pub(crate) fn signed(&mut self) -> Result<i64, BadEffect> {
        let zigzag = self.number()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    pub(crate) fn count(&mut self) -> Result<usize, BadEffect> {
        usize::try_from(self.number()?).map_err(|_| BadEffect::OutOfRange)
    }

    /// Reads the number of elements of a value. Zero is refused: commands rely on values having elements.
    pub(crate) fn count_of_elements(&mut self) -> Result<usize, BadEffect> {
        match self.count()? {
            0 => Err(BadEffect::OutOfRange),
            count => Ok(count),
        }
    }

    #[inline]
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], BadEffect> {
        let len = self.count()?;
        self.slice(len)
    }

    pub(crate) fn deadline(&mut self) -> Result<Option<u64>, BadEffect> {
        Ok(self.number()?.checked_sub(1))
    }

    /// Reads names into a list, which is cleared first.
    pub(crate) fn names(&mut self, out: &mut Vec<&'a [u8]>) -> Result<(), BadEffect> {
        let count = self.count()?;
        out.clear();
        for _ in 0..count {
            out.push(self.bytes()?);
        }
        Ok(())
    }

    /// Reads a scalar, and which of the `known` flag bits in its kind byte are set.
    pub(crate) fn scalar(&mut self, known: u8) -> Result<(Scalar<'a>, u8), BadEffect> {
        let byte = self.byte()?;
        if byte & !(SCALAR_NUMBER | known) != 0 {
            return Err(BadEffect::OutOfRange);
        }
        let value = match byte & SCALAR_NUMBER {
            SCALAR_BYTES => Scalar::Bytes(self.bytes()?),
            _ => Scalar::Number(self.signed()?),
        };
        Ok((value, byte & known))
    }
}

/// Encodes names as a list.
pub(crate) fn put_names(names: &[&[u8]], out: &mut Vec<u8>) {
    put_number(names.len() as u64, out);
    names.iter().for_each(|name| put_bytes(name, out));
}
