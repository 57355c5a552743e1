//! Integers and doubles as Redis reads and prints them.
//! Knows nothing of error replies, and nothing of the 80-bit floats of INCRBYFLOAT (see `long_double`).

use super::float_text::{is_infinity, parse_hex, split_sign};
use super::grisu::{DIGITS_MAX, digits_of};
use std::io::Write;

/// Room for any i64 in decimal.
pub const I64_CHARS_MAX: usize = 20;

/// Room for any f64 as [`format_f64`] prints it: 24 digits and a sign, rounded up.
pub const F64_CHARS_MAX: usize = 32;

/// Reads an integer in the one form that Redis prints: no sign but `-`, no leading zeros, no spaces, no `-0`. Redis
/// reads no other text as an integer, so it can store "1" as a number and still return the same bytes.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => {
            let magnitude = parse_digits(digits)?;
            if magnitude == 0 {
                return None;
            }
            0_i64.checked_sub_unsigned(magnitude)
        }
        digits => i64::try_from(parse_digits(digits)?).ok(),
    }
}

/// As [`parse_i64`], for numbers that are never negative and use all 64 bits.
#[inline]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    parse_digits(text)
}

/// Whether these bytes are exactly what [`format_i64`] prints for some number.
#[inline]
pub fn is_canonical_i64(text: &[u8]) -> bool {
    parse_i64(text).is_some()
}

#[inline]
fn parse_digits(digits: &[u8]) -> Option<u64> {
    match digits {
        [] => return None,
        [b'0'] => return Some(0),
        [b'0', ..] => return None,
        // Longer than any u64. Nineteen digits always fit, so only the twentieth needs a check.
        _ if digits.len() > 20 => return None,
        _ => {}
    }
    let mut number = 0_u64;
    let (blocks, rest) = digits.as_chunks::<8>();
    for block in blocks {
        number = number * 100_000_000 + parse_eight_digits(*block)?;
    }
    // The digits after the nineteenth.
    let (rest, last) = if digits.len() == 20 { rest.split_at(3) } else { (rest, &[][..]) };
    for &byte in rest {
        number = number * 10 + digit(byte)?;
    }
    match last {
        [byte] => number.checked_mul(10)?.checked_add(digit(*byte)?),
        _ => Some(number),
    }
}

#[inline]
fn digit(byte: u8) -> Option<u64> {
    let digit = byte.wrapping_sub(b'0');
    (digit <= 9).then_some(u64::from(digit))
}

/// Reads eight digits at once: checks them all, then combines neighbours in three steps, into pairs, fours and eights.
#[inline]
fn parse_eight_digits(block: [u8; 8]) -> Option<u64> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(block);
    // A digit is 0x30 to 0x39: its high half is 3, and stays 3 when 6 is added.
    let high_halves = (word & (ONES * 0xf0)) | ((word.wrapping_add(ONES * 0x06) & (ONES * 0xf0)) >> 4);
    if high_halves != ONES * 0x33 {
        return None;
    }
    let ones = word & (ONES * 0x0f);
    let pairs = (ones * 10 + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

/// Prints an integer at the end of `buffer` and returns that part of it.
#[inline]
pub fn format_i64(number: i64, buffer: &mut [u8; I64_CHARS_MAX]) -> &[u8] {
    let mut at = write_digits(number.unsigned_abs(), buffer);
    if number < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    &buffer[at..]
}

/// The two digits of every number below 100: half as many divisions as one digit at a time.
const DIGIT_PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Prints `number` at the end of `buffer` and returns where it starts.
#[inline]
fn write_digits(mut number: u64, buffer: &mut [u8; I64_CHARS_MAX]) -> usize {
    let mut at = I64_CHARS_MAX;
    while number >= 100 {
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&DIGIT_PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number >= 10 {
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&DIGIT_PAIRS[number as usize]);
    } else {
        at -= 1;
        buffer[at] = b'0' + number as u8;
    }
    at
}

/// Reads a double as Redis's `string2d`: what `strtod` accepts (hexadecimal and the names of infinity included), but
/// the whole text, without leading spaces, no NaN, and neither overflow to infinity nor underflow to zero.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let text_utf8 = str::from_utf8(text).ok()?;
    let Ok(number) = text_utf8.parse::<f64>() else {
        return parse_hex_f64(text);
    };
    if number.is_normal() || number.is_subnormal() {
        return Some(number);
    }
    let (_, unsigned) = split_sign(text);
    let allowed = if number == 0.0 {
        // Zero is accepted only when all digits are zero; otherwise it is an underflow.
        let mut mantissa = unsigned.iter().take_while(|&&byte| !matches!(byte, b'e' | b'E'));
        !mantissa.any(|byte| matches!(byte, b'1'..=b'9'))
    } else {
        is_infinity(unsigned)
    };
    allowed.then_some(number)
}

/// Reads a double as C's `strtod` does, for the places where Redis checks only that all of the text was read. Leading
/// spaces are skipped, an empty text is zero, underflow is zero, overflow is infinity. The text ends at the first NUL.
pub fn parse_f64_loosely(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let start = text.iter().position(|byte| !matches!(byte, b' ' | b'\t'..=b'\r'))?;
    let text = &text[start..];
    let parsed = str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
    parsed.filter(|number| !number.is_nan()).or_else(|| parse_hex_f64_loosely(text))
}

#[cold]
fn parse_hex_f64_loosely(text: &[u8]) -> Option<f64> {
    let (negative, unsigned) = split_sign(text);
    let binary = parse_hex(unsigned)?;
    parse_hex_f64(text).or_else(|| {
        // Overflow or underflow: the position of the top bit decides.
        let width = i64::from(u128::BITS - binary.significand.leading_zeros());
        let magnitude = if binary.exponent + width > 0 { f64::INFINITY } else { 0.0 };
        Some(if negative { -magnitude } else { magnitude })
    })
}

#[cold]
fn parse_hex_f64(text: &[u8]) -> Option<f64> {
    const PRECISION: u32 = f64::MANTISSA_DIGITS;
    const EXPONENT_MIN: i64 = -1074;
    const EXPONENT_MAX: i64 = 971;
    let (negative, unsigned) = split_sign(text);
    let binary = parse_hex(unsigned)?;
    let (significand, exponent) = binary.round(PRECISION, EXPONENT_MIN);
    if exponent > EXPONENT_MAX || (significand == 0 && binary.significand != 0) {
        return None;
    }
    // A subnormal has the smallest exponent and no hidden bit: its biased exponent comes out as zero.
    let hidden = 1_u64 << (PRECISION - 1);
    let biased = if significand < hidden { 0 } else { (exponent - EXPONENT_MIN + 1) as u64 };
    let magnitude = f64::from_bits(biased << (PRECISION - 1) | (significand & (hidden - 1)));
    Some(if negative { -magnitude } else { magnitude })
}

/// Prints a double as Redis 7.2 and later do, in replies and in stored text: whole numbers up to 2^62 in full,
/// everything else as the fpconv library does, in few digits that read back as the same double (`0.000001` but `1e-7`;
/// `1234.5678901234567` but `1.2345678901234567e+4`).
pub fn format_f64(number: f64, buffer: &mut [u8; F64_CHARS_MAX]) -> &[u8] {
    // 2^62; Redis stops at LLONG_MAX/2, which is this as a double.
    const INTEGER_MAX: f64 = (1_u64 << 62) as f64;
    let mut out = Text { buffer, len: 0 };
    if number.is_nan() {
        out.push(b"nan");
    } else if number.is_infinite() {
        out.push(if number > 0.0 { b"inf" } else { b"-inf" });
    } else if number == 0.0 {
        out.push(if number.is_sign_negative() { b"-0" } else { b"0" });
    } else if number.abs() <= INTEGER_MAX && number.trunc() == number {
        out.push(format_i64(number as i64, &mut [0; I64_CHARS_MAX]));
    } else {
        if number < 0.0 {
            out.push(b"-");
        }
        push_fpconv(number.abs(), &mut out);
    }
    let Text { buffer, len } = out;
    &buffer[..len]
}

/// Prints a double as C's `%.17g` does, which is how Redis up to 7.0 writes scores: 17 significant digits, even where
/// fewer would read back as the same double (`0.10000000000000001`), without trailing zeros.
pub fn format_f64_in_17_digits(number: f64, buffer: &mut [u8; F64_CHARS_MAX]) -> &[u8] {
    const DIGITS: usize = 17;
    // Larger integers have more than 17 digits.
    const WHOLE_MAX: f64 = 1e17;
    let mut out = Text { buffer, len: 0 };
    if number.is_nan() {
        out.push(b"nan");
    } else if number.is_infinite() {
        out.push(if number > 0.0 { b"inf" } else { b"-inf" });
    } else if number == 0.0 {
        out.push(if number.is_sign_negative() { b"-0" } else { b"0" });
    } else if number.abs() < WHOLE_MAX && number.trunc() == number {
        out.push(format_i64(number as i64, &mut [0; I64_CHARS_MAX]));
    } else {
        // One digit, a point, the other sixteen, and the exponent.
        let mut text = [0; F64_CHARS_MAX];
        let len = {
            let mut rest = text.as_mut_slice();
            write!(rest, "{:.*e}", DIGITS - 1, number.abs()).expect("there is room for any double");
            F64_CHARS_MAX - rest.len()
        };
        let mut digits = [0; DIGITS];
        digits[0] = text[0];
        digits[1..].copy_from_slice(&text[2..DIGITS + 1]);
        let exponent = str::from_utf8(&text[DIGITS + 2..len]).ok().and_then(|text| text.parse::<i32>().ok());
        let exponent = exponent.expect("Rust writes an exponent");
        let count = DIGITS - digits.iter().rev().take_while(|digit| **digit == b'0').count();
        if number < 0.0 {
            out.push(b"-");
        }
        push_general(&digits[..count], exponent, DIGITS as i32, &mut out);
    }
    let Text { buffer, len } = out;
    &buffer[..len]
}

/// Plain or scientific notation, chosen as C's `%g` does. The number is the digits with a point after the first, times
/// `10^exponent`.
fn push_general(digits: &[u8], exponent: i32, precision: i32, out: &mut Text<'_>) {
    if !(-4..precision).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        out.push(first);
        if !rest.is_empty() {
            out.push(b".");
            out.push(rest);
        }
        out.push(if exponent < 0 { b"e-" } else { b"e+" });
        if exponent.abs() < 10 {
            out.push(b"0");
        }
        out.push(format_i64(exponent.unsigned_abs().into(), &mut [0; I64_CHARS_MAX]));
    } else if exponent < 0 {
        out.push(b"0.");
        out.push_zeros(-exponent as usize - 1);
        out.push(digits);
    } else {
        let point = exponent as usize + 1;
        let (whole, fraction) = digits.split_at(point.min(digits.len()));
        out.push(whole);
        out.push_zeros(point - whole.len());
        if !fraction.is_empty() {
            out.push(b".");
            out.push(fraction);
        }
    }
}

/// Plain or scientific notation, chosen as fpconv does.
fn push_fpconv(number: f64, out: &mut Text<'_>) {
    let mut digits = [0; DIGITS_MAX];
    let (count, scale) = digits_of(number, &mut digits);
    let digits = &digits[..count];
    let exponent = scale + count as i32 - 1;
    if scale >= 0 && exponent < count as i32 + 7 {
        out.push(digits);
        out.push_zeros(scale as usize);
    } else if scale < 0 && (scale > -7 || exponent.abs() < 4) {
        let point = count as i32 + scale;
        if point <= 0 {
            out.push(b"0.");
            out.push_zeros(-point as usize);
            out.push(digits);
        } else {
            let (whole, fraction) = digits.split_at(point as usize);
            out.push(whole);
            out.push(b".");
            out.push(fraction);
        }
    } else {
        let (first, rest) = digits.split_at(1);
        out.push(first);
        if !rest.is_empty() {
            out.push(b".");
            out.push(rest);
        }
        out.push(if exponent < 0 { b"e-" } else { b"e+" });
        out.push(format_i64(exponent.unsigned_abs().into(), &mut [0; I64_CHARS_MAX]));
    }
}

/// A fixed buffer that fills from the left.
struct Text<'a> {
    buffer: &'a mut [u8; F64_CHARS_MAX],
    len: usize,
}

impl Text<'_> {
    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        self.buffer[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    #[inline]
    fn push_zeros(&mut self, count: usize) {
        self.buffer[self.len..][..count].fill(b'0');
        self.len += count;
    }
}

#[cfg(test)]
mod tests;
