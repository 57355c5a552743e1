//! Strings as arrays of bits: GETBIT, SETBIT, BITCOUNT, BITPOS, BITOP and BITFIELD, as far as they are arithmetic.
//! Knows nothing of keys, of growing a string, or of how an overflow is reported.
//!
//! Bit 0 is the most significant bit of the first byte. What lies past the end of a string reads as zero.

use numbers::parse_i64;

// Single bits ---------------------------------------------------------------------------------------------------------

/// How many bytes a string must have so that bit `offset` is inside it.
#[inline]
pub fn bytes_to_hold(offset: u64) -> u64 {
    offset / 8 + 1
}

#[inline]
pub fn get_bit(bytes: &[u8], offset: u64) -> bool {
    let byte = usize::try_from(offset / 8).ok().and_then(|at| bytes.get(at));
    byte.is_some_and(|byte| byte & bit_mask(offset) != 0)
}

/// Sets one bit and returns what it was. The string must be long enough.
#[inline]
pub fn set_bit(bytes: &mut [u8], offset: u64, on: bool) -> bool {
    let byte = &mut bytes[(offset / 8) as usize];
    let mask = bit_mask(offset);
    let was = *byte & mask != 0;
    if on {
        *byte |= mask;
    } else {
        *byte &= !mask;
    }
    was
}

#[inline]
fn bit_mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

// Counting and finding ------------------------------------------------------------------------------------------------

/// What the start and end of a range count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Byte,
    Bit,
}

pub fn count_ones(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    let in_rest: u64 = rest.iter().map(|byte| u64::from(byte.count_ones())).sum();
    in_words + in_rest
}

/// BITCOUNT with a range: both ends inclusive, negative ones from the end of the string.
pub fn count_range(bytes: &[u8], start: i64, end: i64, unit: Unit) -> u64 {
    // Redis looks at two negative ends before it clamps them: -1 to -2 of a one-byte string is empty, though both
    // would clamp to 0. BITPOS does not.
    if start < 0 && end < 0 && start > end {
        return 0;
    }
    let Some((first, last)) = bit_range(bytes.len(), start, end, unit) else {
        return 0;
    };
    let (first_byte, last_byte) = ((first / 8) as usize, (last / 8) as usize);
    let before = bytes[first_byte] & !(0xff >> (first % 8));
    let after = bytes[last_byte] & !(0xff << (7 - last % 8));
    count_ones(&bytes[first_byte..=last_byte]) - u64::from(before.count_ones() + after.count_ones())
}

/// BITPOS: where the first bit that is `bit` lies in the range, or -1.
///
/// Without an `end`, a search for a zero in a string of ones returns the first position past the string, as if zeros
/// followed. An empty range holds neither ones nor zeros, and neither does an empty string. (For a key that does not
/// exist, the caller answers: it is all zeros.)
pub fn position(bytes: &[u8], bit: bool, start: i64, end: Option<i64>, unit: Unit) -> i64 {
    let Some((first, last)) = bit_range(bytes.len(), start, end.unwrap_or(-1), unit) else {
        return -1;
    };
    match first_bit(bytes, bit, first, last) {
        Some(found) => found as i64,
        None if !bit && end.is_none() => last as i64 + 1,
        None => -1,
    }
}

/// The first and last bit of a range after Redis's clamping; None when it is empty.
fn bit_range(len: usize, start: i64, end: i64, unit: Unit) -> Option<(u64, u64)> {
    // Wide arithmetic: both ends come from the client, and a string's length in bits fits i64 anyway.
    let total = match unit {
        Unit::Byte => len as i128,
        Unit::Bit => len as i128 * 8,
    };
    let from_end = |index: i64| {
        let index = i128::from(index);
        if index < 0 { (total + index).max(0) } else { index }
    };
    let (start, end) = (from_end(start), from_end(end).min(total - 1));
    if start > end {
        return None;
    }
    let (start, end) = (start as u64, end as u64);
    Some(match unit {
        Unit::Byte => (start * 8, end * 8 + 7),
        Unit::Bit => (start, end),
    })
}

/// The first bit with that value from `first` to `last`, both inside the string.
fn first_bit(bytes: &[u8], bit: bool, first: u64, last: u64) -> Option<u64> {
    let skip: u8 = if bit { 0x00 } else { 0xff };
    let (first_byte, last_byte) = ((first / 8) as usize, (last / 8) as usize);
    let head = (bytes[first_byte] ^ skip) & (0xff >> (first % 8));
    let (at, byte) = if head != 0 {
        (first_byte, head)
    } else {
        let rest = &bytes[first_byte + 1..=last_byte];
        let (words, _) = rest.as_chunks::<8>();
        let whole = words.iter().take_while(|word| **word == [skip; 8]).count() * 8;
        let single = rest[whole..].iter().position(|&byte| byte != skip)?;
        let at = first_byte + 1 + whole + single;
        (at, bytes[at] ^ skip)
    };
    let found = at as u64 * 8 + u64::from(byte.leading_zeros());
    (found <= last).then_some(found)
}

// Combining -----------------------------------------------------------------------------------------------------------

/// The operations of BITOP. The last four are Redis 8.2's; all of them but `One` combine the first source, x, with the
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    And,
    Or,
    Xor,
    /// Takes one source.
    Not,
    /// In x and in none of the others.
    Diff,
    /// In one of the others, but not in x.
    Diff1,
    /// In x and in one of the others.
    AndOr,
    /// In exactly one source.
    One,
}

/// BITOP: as long as the longest source, the shorter ones continued with zeros.
pub fn combine(operation: Operation, sources: &[&[u8]]) -> Vec<u8> {
    let len = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    let Some((&first, others)) = sources.split_first() else {
        return Vec::new();
    };
    let extended = |source: &[u8]| {
        let mut bytes = Vec::with_capacity(len);
        bytes.extend_from_slice(source);
        bytes.resize(len, 0);
        bytes
    };
    let union_of_others = || {
        let mut union = vec![0; len];
        others.iter().for_each(|source| zip(&mut union, source, |all, byte| all | byte));
        union
    };
    match operation {
        Operation::And => {
            let mut result = extended(first);
            for source in others {
                zip(&mut result, source, |result, byte| result & byte);
                result[source.len()..].fill(0);
            }
            result
        }
        Operation::Or => {
            let mut result = extended(first);
            others.iter().for_each(|source| zip(&mut result, source, |result, byte| result | byte));
            result
        }
        Operation::Xor => {
            let mut result = extended(first);
            others.iter().for_each(|source| zip(&mut result, source, |result, byte| result ^ byte));
            result
        }
        Operation::Not => {
            debug_assert!(others.is_empty(), "BITOP NOT has a single source");
            first.iter().map(|byte| !byte).collect()
        }
        Operation::Diff => {
            let mut result = extended(first);
            zip(&mut result, &union_of_others(), |x, others| x & !others);
            result
        }
        Operation::Diff1 => {
            let mut result = union_of_others();
            zip(&mut result, first, |others, x| others & !x);
            result
        }
        Operation::AndOr => {
            let mut result = extended(first);
            zip(&mut result, &union_of_others(), |x, others| x & others);
            result
        }
        Operation::One => {
            let mut once = extended(first);
            let mut more = vec![0; len];
            for source in others {
                for ((once, more), byte) in once.iter_mut().zip(&mut more).zip(*source) {
                    *more |= *once & byte;
                    *once |= byte;
                }
            }
            zip(&mut once, &more, |once, more| once & !more);
            once
        }
    }
}

/// Byte by byte, as far as both go; simple enough for the compiler to use vector instructions.
#[inline]
fn zip(result: &mut [u8], source: &[u8], with: impl Fn(u8, u8) -> u8) {
    for (result, byte) in result.iter_mut().zip(source) {
        *result = with(*result, *byte);
    }
}

// Bit fields ----------------------------------------------------------------------------------------------------------

/// An integer inside a string: `i1` to `i64`, `u1` to `u63`. Redis's replies are signed, so there is no `u64`; that
/// also lets an i64 hold any field's value here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    pub signed: bool,
    pub bits: u32,
}

/// What to do with a result that does not fit its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

impl FieldType {
    /// Reads `i8`, `u63`: lower case, as Redis insists.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (signed, bits) = match text {
            [b'i', bits @ ..] => (true, bits),
            [b'u', bits @ ..] => (false, bits),
            _ => return None,
        };
        let bits = u32::try_from(parse_i64(bits)?).ok()?;
        let bits_max = if signed { 64 } else { 63 };
        (1..=bits_max).contains(&bits).then_some(Self { signed, bits })
    }

    fn min(self) -> i128 {
        if self.signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    fn max(self) -> i128 {
        let value_bits = if self.signed { self.bits - 1 } else { self.bits };
        (1 << value_bits) - 1
    }

    /// The low bits of `raw`, read as this type.
    fn truncate(self, raw: u64) -> i64 {
        let unused = 64 - self.bits;
        if self.signed { ((raw << unused) as i64) >> unused } else { (raw << unused >> unused) as i64 }
    }

    fn fit(self, exact: i128, overflow: Overflow) -> Option<i64> {
        if (self.min()..=self.max()).contains(&exact) {
            return Some(exact as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.truncate(exact as u64)),
            Overflow::Saturate if exact < self.min() => Some(self.min() as i64),
            Overflow::Saturate => Some(self.max() as i64),
            Overflow::Fail => None,
        }
    }

    /// What SET stores for `value`; None when it must fail.
    ///
    /// Two quirks of Redis show when a value saturates. For an unsigned field it takes the value as unsigned first, so
    /// a negative one is too *large*: `SET u8 0 -1` ends at 255. For a signed field it tests
    /// `max - value < 0`, in 64 bits; where that difference wraps, the most negative values end at the maximum, too.
    pub fn to_store(self, value: i64, overflow: Overflow) -> Option<i64> {
        let wraps = self.max() - i128::from(value) > i128::from(i64::MAX);
        if self.signed && self.bits < 64 && wraps && overflow == Overflow::Saturate {
            return Some(self.max() as i64);
        }
        let exact = if self.signed { i128::from(value) } else { i128::from(value as u64) };
        self.fit(exact, overflow)
    }

    /// What INCRBY makes of a field that holds `current`; None when it must fail.
    pub fn add(self, current: i64, by: i64, overflow: Overflow) -> Option<i64> {
        self.fit(i128::from(current) + i128::from(by), overflow)
    }

    /// The last bit of a field at `offset`.
    pub fn last_bit(self, offset: u64) -> u64 {
        offset + u64::from(self.bits) - 1
    }

    /// Reads the field that starts at bit `offset`.
    pub fn get(self, bytes: &[u8], offset: u64) -> i64 {
        let tail = usize::try_from(offset / 8).ok().and_then(|at| bytes.get(at..)).unwrap_or(&[]);
        self.truncate((load(tail) >> self.shift(offset)) as u64)
    }

    /// Writes the low bits of `value` there. The string must be long enough already.
    pub fn set(self, bytes: &mut [u8], offset: u64, value: i64) {
        let first = (offset / 8) as usize;
        let last = (self.last_bit(offset) / 8) as usize;
        let window = &mut bytes[first..=last];
        let mask = u128::from(u64::MAX >> (64 - self.bits)) << self.shift(offset);
        let new = (load(window) & !mask) | (u128::from(value as u64) << self.shift(offset) & mask);
        window.copy_from_slice(&new.to_be_bytes()[..window.len()]);
    }

    /// How far a field's last bit is from the end of the 16 bytes that [`load`] returns. A field spans nine at most.
    fn shift(self, offset: u64) -> u32 {
        128 - (offset % 8) as u32 - self.bits
    }
}

/// The first bytes as one big-endian number, continued with zeros.
#[inline]
fn load(bytes: &[u8]) -> u128 {
    let mut window = [0; 16];
    let len = bytes.len().min(16);
    window[..len].copy_from_slice(&bytes[..len]);
    u128::from_be_bytes(window)
}

/// Reads a bit offset: a number, or `#n` for the nth field of a type where `counted_in` names one. A string has at
/// most `bytes_max` bytes, so offsets past that are refused.
pub fn parse_bit_offset(text: &[u8], counted_in: Option<FieldType>, bytes_max: u64) -> Option<u64> {
    let offset = match (text, counted_in) {
        ([b'#', index @ ..], Some(field)) => parse_i64(index)?.checked_mul(field.bits.into())?,
        _ => parse_i64(text)?,
    };
    let offset = u64::try_from(offset).ok()?;
    (offset / 8 < bytes_max).then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    #[test]
    fn single_bits() {
        let mut bytes = vec![0b0100_0000, 0];
        assert!(!get_bit(&bytes, 0) && get_bit(&bytes, 1) && !get_bit(&bytes, 16) && !get_bit(&bytes, u64::MAX));
        assert!(!set_bit(&mut bytes, 15, true) && set_bit(&mut bytes, 1, false));
        assert_eq!(bytes, [0, 1]);
        assert_eq!([0, 7, 8, u64::MAX].map(bytes_to_hold), [1, 1, 2, 1 << 61]);
    }

    /// Redis's documentation, and rows collected from Redis 7.0.15 and 8.0.2.
    #[test]
    fn counting_in_a_range() {
        let count = |text: &[u8], start, end, unit| count_range(text, start, end, unit);
        assert_eq!(count_ones(b"foobar"), 26);
        assert_eq!(count(b"foobar", 0, 0, Unit::Byte), 4);
        assert_eq!(count(b"foobar", 1, 1, Unit::Byte), 6);
        assert_eq!(count(b"foobar", 5, 30, Unit::Bit), 17);
        assert_eq!(count(b"foobar", -6, -7, Unit::Byte), 0);
        assert_eq!(count(b"foobar", i64::MIN, i64::MAX, Unit::Bit), 26);
        assert_eq!(count(b"f", -1, -2, Unit::Byte), 0, "not clamped to one byte");
        assert_eq!(count(b"f", -2, -2, Unit::Byte), 4, "clamped");
        assert_eq!(count(b"", 0, -1, Unit::Byte), 0);
    }

    #[test]
    fn finding_in_a_range() {
        let ones: &[u8] = b"\xff\xff\xff";
        assert_eq!(position(b"\xff\xf0\x00", false, 0, None, Unit::Byte), 12);
        assert_eq!(position(b"\x00\xff\xf0", true, 2, None, Unit::Byte), 16);
        assert_eq!(position(b"\x00\xff\xf0", true, 7, Some(15), Unit::Bit), 8);
        assert_eq!(position(b"\x00\xff\xf0", true, 7, Some(-3), Unit::Bit), 8);
        assert_eq!(position(b"\x00\x00", true, 0, None, Unit::Byte), -1);
        assert_eq!(position(ones, false, 0, None, Unit::Byte), 24, "zeros follow");
        assert_eq!(position(ones, false, 0, Some(-1), Unit::Byte), -1, "not inside");
        assert_eq!(position(b"", false, 0, None, Unit::Byte), -1);
        assert_eq!(position(b"\x80", true, -1, Some(-2), Unit::Byte), 0, "clamped, unlike BITCOUNT");
    }

    /// Ranges against a plain walk over the bits.
    #[test]
    fn ranges_agree_with_a_plain_model() {
        let mut random = Random::new();
        for _ in 0..30_000 {
            let bytes = random.bytes(30, &[0, 0xff, 0xff, 0xff, 0x10]);
            let total = bytes.len() as i64 * 8;
            if total == 0 {
                continue;
            }
            let (start, end) = (random.below(total as usize) as i64, random.below(total as usize) as i64);
            let in_range = || (start..=end).map(|at| (at, get_bit(&bytes, at as u64)));
            let ones = in_range().filter(|(_, on)| *on).count() as u64;
            assert_eq!(count_range(&bytes, start, end, Unit::Bit), ones);
            assert_eq!(count_range(&bytes, start - total, end - total, Unit::Bit), ones);
            for bit in [false, true] {
                let first = in_range().find(|(_, on)| *on == bit).map_or(-1, |(at, _)| at);
                assert_eq!(position(&bytes, bit, start, Some(end), Unit::Bit), first);
            }
        }
    }

    #[test]
    fn combining_agrees_with_a_plain_model() {
        use Operation::{And, AndOr, Diff, Diff1, Not, One, Or, Xor};
        let mut random = Random::new();
        let all: Vec<u8> = (0..=255).collect();
        for _ in 0..3_000 {
            let operation = *random.pick(&[And, Or, Xor, Not, Diff, Diff1, AndOr, One]);
            let count = if operation == Not { 1 } else { 1 + random.below(4) };
            let sources: Vec<Vec<u8>> = (0..count).map(|_| random.bytes(40, &all)).collect();
            let slices: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
            let result = combine(operation, &slices);
            assert_eq!(result.len(), sources.iter().map(Vec::len).max().unwrap());
            for at in 0..result.len() as u64 * 8 {
                let x = get_bit(&sources[0], at);
                let others = sources[1..].iter().filter(|source| get_bit(source, at)).count();
                let set = others + usize::from(x);
                let expected = match operation {
                    And => set == count,
                    Or => set > 0,
                    Xor => set % 2 == 1,
                    Not => !x,
                    Diff => x && others == 0,
                    Diff1 => !x && others > 0,
                    AndOr => x && others > 0,
                    One => set == 1,
                };
                assert_eq!(get_bit(&result, at), expected, "{operation:?}, bit {at}");
            }
        }
        assert_eq!(combine(Or, &[]), b"");
    }

    fn field(name: &str) -> FieldType {
        FieldType::parse(name.as_bytes()).expect(name)
    }

    #[test]
    fn field_types_and_offsets_are_read() {
        assert_eq!(field("i64"), FieldType { signed: true, bits: 64 });
        assert_eq!(field("u63"), FieldType { signed: false, bits: 63 });
        for name in ["", "i", "u", "i0", "u0", "i65", "u64", "I8", "i08", "i-1", "i8 ", "x8", "i99999999999999999999"] {
            assert_eq!(FieldType::parse(name.as_bytes()), None, "{name}");
        }
        let offset = |text: &str| parse_bit_offset(text.as_bytes(), Some(field("u8")), 512 << 20);
        assert_eq!(offset("100"), Some(100));
        assert_eq!(offset("#3"), Some(24));
        assert_eq!(offset("4294967295"), Some((1 << 32) - 1));
        for text in ["", "#", "-1", "#-1", "4294967296", "#536870912", "#9223372036854775807", "01", "##1", "1 "] {
            assert_eq!(offset(text), None, "{text}");
        }
        assert_eq!(parse_bit_offset(b"#1", None, 512 << 20), None, "SETBIT has no fields");
    }

    #[test]
    fn fields_read_back_what_was_written() {
        let mut random = Random::new();
        for _ in 0..50_000 {
            let signed = random.below(2) == 1;
            let bits = 1 + random.below(if signed { 64 } else { 63 }) as u32;
            let (field, offset) = (FieldType { signed, bits }, random.below(70) as u64);
            let mut bytes: Vec<u8> = (0..20).map(|_| random.next() as u8).collect();
            let before = bytes.clone();
            let value = field.truncate(random.next());
            field.set(&mut bytes, offset, value);
            assert_eq!(field.get(&bytes, offset), value, "{field:?} at {offset}");
            for at in (0..160).filter(|at| !(offset..=field.last_bit(offset)).contains(at)) {
                assert_eq!(get_bit(&bytes, at), get_bit(&before, at), "bit {at} of {field:?} at {offset}");
            }
        }
        assert_eq!(field("u8").get(b"\xff", 4), 0xf0, "zeros follow");
        assert_eq!(field("i64").get(b"", u64::MAX), 0);
        let mut exact = [0; 1];
        field("u8").set(&mut exact, 0, 200);
        assert_eq!(exact, [200]);
    }

    /// Rows collected from Redis 7.0.15 and 8.0.2.
    #[test]
    fn overflow_goes_redis_s_way() {
        use Overflow::{Fail, Saturate, Wrap};
        let u2 = field("u2");
        assert_eq!([Wrap, Saturate, Fail].map(|way| u2.add(3, 1, way)), [Some(0), Some(3), None]);
        assert_eq!([Wrap, Saturate, Fail].map(|way| u2.add(0, -1, way)), [Some(3), Some(0), None]);
        assert_eq!([Wrap, Saturate, Fail].map(|way| u2.to_store(-1, way)), [Some(3), Some(3), None]);
        let i8 = field("i8");
        assert_eq!([Wrap, Saturate, Fail].map(|way| i8.add(127, 1, way)), [Some(-128), Some(127), None]);
        assert_eq!([Wrap, Saturate, Fail].map(|way| i8.add(-128, -1, way)), [Some(127), Some(-128), None]);
        assert_eq!([Wrap, Saturate, Fail].map(|way| i8.to_store(200, way)), [Some(-56), Some(127), None]);
        assert_eq!([Wrap, Saturate, Fail].map(|way| i8.to_store(-200, way)), [Some(56), Some(-128), None]);
        let i64 = field("i64");
        assert_eq!(i64.add(i64::MAX, 1, Wrap), Some(i64::MIN));
        assert_eq!(i64.add(i64::MAX, i64::MAX, Saturate), Some(i64::MAX));
        assert_eq!(i64.add(i64::MIN, i64::MIN, Saturate), Some(i64::MIN));
        assert_eq!(i64.add(i64::MIN, i64::MAX, Fail), Some(-1));
        assert_eq!(i64.to_store(i64::MIN, Saturate), Some(i64::MIN));
        let u63 = field("u63");
        assert_eq!(u63.add(i64::MAX, 1, Wrap), Some(0));
        assert_eq!(u63.add(i64::MAX, 1, Saturate), Some(i64::MAX));
        assert_eq!(u63.add(5, i64::MIN, Saturate), Some(0));
        assert_eq!(field("i33").to_store(i64::MIN, Saturate), Some((1 << 32) - 1), "Redis's wrap");
    }
}
