//! The 80-bit floats of INCRBYFLOAT and HINCRBYFLOAT: x87's `long double`, done with integers.
//! Knows nothing of keys or error replies, and only what Redis needs: read, add, print, and seconds in milliseconds.
//!
//! Why not f64: Redis adds with 64 bits of mantissa and prints 17 decimals, so that 0.1 + 0.2 is `0.3`. Stored texts
//! are results of earlier additions; a different last digit would show up in clients and in replicas that mix servers.
//! Everything here is exact integer arithmetic with one rounding at the end, the same on every machine.
//!
//! Why not `rustc_apfloat`: it is right in every recorded case, but to read two short decimals, add and print them it
//! takes 3.5 times the instructions (5,100 for 10.5 + 0.1; ours 1,480), and 8 times when one has 17 decimals (13,300;
//! ours 1,710). It also has no `%.17Lf`: its precision counts significant digits and rounds half up, so printing would
//! stay ours.

use std::cmp::Ordering;

use super::float_text::{Binary, is_infinity, parse_exponent, parse_hex, split_sign};
use super::natural::{CHUNK_DIGITS, FIVES, Natural};

/// Redis copies the text into a buffer of this size, with a NUL, and rejects a longer text.
pub const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;

const PRECISION: u32 = 64;
/// The power of two of the last mantissa bit: of the smallest subnormal, and of the largest number.
const EXPONENT_MIN: i64 = -16_445;
const EXPONENT_MAX: i64 = 16_320;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongDouble {
    negative: bool,
    magnitude: Magnitude,
}

/// As numbers: -0 equals 0, and NaN has no order.
impl PartialOrd for LongDouble {
    fn partial_cmp(&self, other: &LongDouble) -> Option<Ordering> {
        let (mine, theirs) = (self.magnitude.size()?, other.magnitude.size()?);
        if self.is_zero() && other.is_zero() {
            return Some(Ordering::Equal);
        }
        Some(match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => mine.cmp(&theirs),
            (true, true) => theirs.cmp(&mine),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Magnitude {
    /// `mantissa * 2^exponent`. The mantissa's top bit is set or the exponent is [`EXPONENT_MIN`], so two magnitudes
    /// compare as (exponent, mantissa).
    Finite {
        exponent: i64,
        mantissa: u64,
    },
    Infinite,
    NotANumber,
}

impl Magnitude {
    /// What magnitudes are compared by; `None` for NaN.
    fn size(self) -> Option<(bool, i64, u64)> {
        match self {
            Magnitude::Finite { exponent, mantissa } => Some((false, exponent, mantissa)),
            Magnitude::Infinite => Some((true, 0, 0)),
            Magnitude::NotANumber => None,
        }
    }
}

impl LongDouble {
    pub const ZERO: LongDouble =
        LongDouble { negative: false, magnitude: Magnitude::Finite { exponent: EXPONENT_MIN, mantissa: 0 } };
    pub const ONE: LongDouble =
        LongDouble { negative: false, magnitude: Magnitude::Finite { exponent: -63, mantissa: 1 << 63 } };
    /// The largest number that is not infinite.
    pub const MAX: LongDouble =
        LongDouble { negative: false, magnitude: Magnitude::Finite { exponent: EXPONENT_MAX, mantissa: u64::MAX } };
    /// The lowest number that is not infinite.
    pub const MIN: LongDouble = LongDouble { negative: true, ..LongDouble::MAX };

    /// Reads what Redis's `string2ld` accepts: all that `strtold` does (exponents, hexadecimal, infinity), but the
    /// whole text, at most [`TEXT_BYTES_MAX`] of it, no leading spaces, no NaN, no overflow and no underflow to zero.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (negative, unsigned) = split_sign(text);
        let binary = match unsigned {
            [b'0', b'x' | b'X', ..] => parse_hex(unsigned)?,
            [b'0'..=b'9' | b'.', ..] => Decimal::parse(unsigned)?.to_binary()?,
            _ => {
                return is_infinity(unsigned).then_some(Self { negative, magnitude: Magnitude::Infinite });
            }
        };
        let rounded = Self::rounded(negative, binary);
        let underflowed = rounded.is_zero() && binary.significand != 0;
        (!rounded.is_nan_or_infinite() && !underflowed).then_some(rounded)
    }

    /// The sum, rounded to nearest, ties to even.
    #[allow(clippy::should_implement_trait)] // `a + b` would suggest a full number type; this is one step of one command
    pub fn add(self, other: Self) -> Self {
        use Magnitude::{Finite, Infinite, NotANumber};
        let (a, b) = match (self.magnitude, other.magnitude) {
            (Finite { exponent, mantissa }, Finite { exponent: e, mantissa: m }) => {
                ((exponent, mantissa, self.negative), (e, m, other.negative))
            }
            (Infinite, Infinite) if self.negative == other.negative => return self,
            (Infinite, Finite { .. }) => return self,
            (Finite { .. }, Infinite) => return other,
            _ => {
                return Self { negative: false, magnitude: NotANumber };
            }
        };
        let (large, small) = if a >= b { (a, b) } else { (b, a) };

        // The larger mantissa gets 62 bits below it and one above for the carry. The smaller one is shifted into
        // place; lost bits set the last bit, which is too low to change anything but a tie. When many leading bits
        // cancel, the exponents differ by at most one and no bit is lost.
        const SPARE: u32 = 62;
        let high = u128::from(large.1) << SPARE;
        let low = shift_right_sticky(u128::from(small.1) << SPARE, large.0 - small.0);
        let same_sign = large.2 == small.2;
        let significand = if same_sign { high + low } else { high - low };
        // x - x is +0 when rounding to nearest; -0 comes only from -0 + -0.
        let negative = large.2 && (same_sign || significand != 0);
        Self::rounded(negative, Binary { significand, exponent: large.0 - i64::from(SPARE), sticky: false })
    }

    /// Converts a timeout in seconds to milliseconds as Redis does: times 1,000, rounded up to an integer. `None` when
    /// the result does not fit 64 bits.
    pub fn thousandfold_rounded_up(self) -> Option<i64> {
        let (mantissa, exponent) = self.parts()?;
        let significand = u128::from(mantissa) * 1000;
        let (mantissa, exponent) =
            Self::rounded(self.negative, Binary { significand, exponent, sticky: false }).parts()?;
        if exponent >= 0 {
            return None;
        }
        let by = u32::try_from(-exponent).ok()?;
        let whole = mantissa.checked_shr(by).unwrap_or(0);
        let has_rest = whole.checked_shl(by).unwrap_or(0) != mantissa;
        // For negative numbers, up is towards zero.
        let whole = i64::try_from(whole + u64::from(has_rest && !self.negative)).ok()?;
        Some(if self.negative { -whole } else { whole })
    }

    /// The number with the other sign.
    pub fn negated(self) -> LongDouble {
        LongDouble { negative: !self.negative, ..self }
    }

    pub fn is_negative(&self) -> bool {
        self.negative
    }

    pub fn is_nan_or_infinite(&self) -> bool {
        !matches!(self.magnitude, Magnitude::Finite { .. })
    }

    /// Mantissa and exponent of a finite number's magnitude.
    pub(super) fn parts(&self) -> Option<(u64, i64)> {
        match self.magnitude {
            Magnitude::Finite { exponent, mantissa } => Some((mantissa, exponent)),
            Magnitude::Infinite | Magnitude::NotANumber => None,
        }
    }

    fn is_zero(&self) -> bool {
        matches!(self.magnitude, Magnitude::Finite { mantissa: 0, .. })
    }

    /// Prints the number as Redis stores it: `%.17Lf`, without the zeros that end the fraction, and never `-0`.
    pub fn format_human(&self) -> Vec<u8> {
        let (exponent, mantissa) = match self.magnitude {
            Magnitude::Finite { exponent, mantissa } => (exponent, mantissa),
            Magnitude::Infinite if self.negative => return b"-inf".to_vec(),
            Magnitude::Infinite => return b"inf".to_vec(),
            Magnitude::NotANumber => return b"nan".to_vec(),
        };
        let mut text = Vec::with_capacity(40);
        if self.negative {
            text.push(b'-');
        }
        if exponent >= 0 {
            push_whole(mantissa, exponent as u32, &mut text);
        } else {
            push_fixed(mantissa, exponent.unsigned_abs(), &mut text);
        }
        if text == b"-0" {
            text.remove(0);
        }
        text
    }

    fn rounded(negative: bool, binary: Binary) -> Self {
        let (mantissa, exponent) = binary.round(PRECISION, EXPONENT_MIN);
        let magnitude =
            if exponent > EXPONENT_MAX { Magnitude::Infinite } else { Magnitude::Finite { exponent, mantissa } };
        Self { negative, magnitude }
    }
}

/// Exact: the mantissa has 64 bits.
impl From<i64> for LongDouble {
    fn from(number: i64) -> Self {
        Self::rounded(number < 0, Binary { significand: number.unsigned_abs().into(), exponent: 0, sticky: false })
    }
}

/// Exact: a double has fewer bits in either part.
impl From<f64> for LongDouble {
    fn from(number: f64) -> Self {
        let negative = number.is_sign_negative();
        let (bits, fraction_bits) = (number.abs().to_bits(), f64::MANTISSA_DIGITS - 1);
        let (biased, fraction) = (bits >> fraction_bits, bits & ((1 << fraction_bits) - 1));
        const LEAST: i64 = f64::MIN_EXP as i64 - f64::MANTISSA_DIGITS as i64;
        let (significand, exponent) = match biased {
            0 => (fraction, LEAST),
            0x7ff if fraction == 0 => return Self { negative, magnitude: Magnitude::Infinite },
            0x7ff => return Self { negative: false, magnitude: Magnitude::NotANumber },
            _ => (fraction | 1 << fraction_bits, LEAST + biased as i64 - 1),
        };
        Self::rounded(negative, Binary { significand: significand.into(), exponent, sticky: false })
    }
}

/// Shifts right. Any lost bit sets the last bit.
fn shift_right_sticky(bits: u128, by: i64) -> u128 {
    if by >= 128 {
        return u128::from(bits != 0);
    }
    let lost = bits & ((1_u128 << by) - 1) != 0;
    bits >> by | u128::from(lost)
}

// Printing ------------------------------------------------------------------------------------------------------------

const DECIMALS: u32 = 17;
const FRACTION_SCALE: u64 = 10_u64.pow(DECIMALS);

/// Prints `mantissa / 2^shift`, `shift` at least 1, rounded to [`DECIMALS`] decimals.
fn push_fixed(mantissa: u64, shift: u64, text: &mut Vec<u8>) {
    let (mut whole, fraction) = match mantissa.checked_shr(shift.min(64) as u32) {
        Some(whole) => (whole, mantissa & ((1 << shift) - 1)),
        None => (0, mantissa),
    };
    // fraction < 2^64 and the scale < 2^57, so the product is exact. From a shift of 122 on it is below one half.
    let scaled = u128::from(fraction) * u128::from(FRACTION_SCALE);
    let mut decimals = 0;
    if shift < 122 {
        decimals = (scaled >> shift) as u64;
        let lost = scaled & ((1_u128 << shift) - 1);
        let up = match lost.cmp(&(1_u128 << (shift - 1))) {
            Ordering::Less => false,
            Ordering::Equal => decimals % 2 == 1,
            Ordering::Greater => true,
        };
        decimals += u64::from(up);
        if decimals == FRACTION_SCALE {
            decimals = 0;
            whole += 1; // cannot overflow: a fraction means that the whole part lost at least one bit
        }
    }
    push_u64(whole, text);
    if decimals != 0 {
        text.push(b'.');
        push_padded(decimals, DECIMALS as usize, text);
        while text.last() == Some(&b'0') {
            text.pop();
        }
    }
}

/// Prints `mantissa * 2^shift`: up to 4,933 digits.
fn push_whole(mantissa: u64, shift: u32, text: &mut Vec<u8>) {
    if shift == 0 {
        return push_u64(mantissa, text);
    }
    let mut number = Natural::from(mantissa);
    number.shift_left(shift as usize);
    let mut chunks = Vec::with_capacity(number.bits() / 63 + 1);
    while !number.is_zero() {
        chunks.push(number.divide_by_chunk());
    }
    push_u64(chunks.pop().unwrap_or(0), text);
    text.reserve(chunks.len() * CHUNK_DIGITS);
    for &chunk in chunks.iter().rev() {
        push_padded(chunk, CHUNK_DIGITS, text);
    }
}

fn push_u64(number: u64, text: &mut Vec<u8>) {
    let width = number.checked_ilog10().map_or(1, |log| log as usize + 1);
    push_padded(number, width, text);
}

fn push_padded(mut number: u64, width: usize, text: &mut Vec<u8>) {
    let start = text.len();
    text.resize(start + width, b'0');
    for digit in text[start..].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

// Reading -------------------------------------------------------------------------------------------------------------

/// A parsed decimal text: its digits, read as one integer, times `10^scale`.
struct Decimal<'a> {
    /// The digits before and after the point, leading zeros removed.
    whole: &'a [u8],
    fraction: &'a [u8],
    scale: i64,
}

impl<'a> Decimal<'a> {
    fn parse(text: &'a [u8]) -> Option<Self> {
        let (whole, rest) = split_digits(text);
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => split_digits(rest),
            _ => (&[][..], rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let scale = parse_exponent(rest, b'e')? - fraction.len() as i64;
        let whole = without_leading_zeros(whole);
        let fraction = if whole.is_empty() { without_leading_zeros(fraction) } else { fraction };
        Some(Self { whole, fraction, scale })
    }

    /// Converts to binary. `None` when the decimal exponent alone shows that the number is out of range; this also
    /// bounds the work of the general conversion.
    fn to_binary(&self) -> Option<Binary> {
        let count = self.whole.len() + self.fraction.len();
        // The number is less than ten to this power, and at least a tenth of that.
        let power = count as i64 + self.scale;
        if count == 0 {
            Some(self.to_binary_fast(0)?)
        } else if !(-4_950..=4_933).contains(&power) {
            None // above 1.19e4932, or below half of 3.6e-4951
        } else {
            let fast = if count <= 38 { self.to_binary_fast(self.number()) } else { None };
            Some(fast.unwrap_or_else(|| self.to_binary_general()))
        }
    }

    fn digits(&self) -> impl Iterator<Item = u64> {
        self.whole.iter().chain(self.fraction).map(|&byte| u64::from(byte - b'0'))
    }

    /// All digits as one number; they must be 38 at most.
    fn number(&self) -> u128 {
        let mut number = 0_u128;
        for part in [self.whole, self.fraction] {
            // Steps in u64 are several times cheaper than in u128.
            for chunk in part.chunks(CHUNK_DIGITS) {
                let (value, scale) = chunk
                    .iter()
                    .fold((0_u64, 1_u64), |(value, scale), &byte| (value * 10 + u64::from(byte - b'0'), scale * 10));
                number = number * u128::from(scale) + u128::from(value);
            }
        }
        number
    }

    /// The common case: the digits fit 128 bits, and the power of five fits 64.
    fn to_binary_fast(&self, number: u128) -> Option<Binary> {
        if number == 0 {
            return Some(Binary { significand: 0, exponent: 0, sticky: false });
        }
        let five = *FIVES.get(usize::try_from(self.scale.unsigned_abs()).ok()?)?;
        if self.scale >= 0 {
            let significand = number.checked_mul(five.into())?;
            return Some(Binary { significand, exponent: self.scale, sticky: false });
        }
        // The dividend is at least 2^127 and the divisor below 2^63, so the quotient has more than 64 bits.
        let shift = number.leading_zeros();
        let dividend = number << shift;
        let (quotient, remainder) = (dividend / u128::from(five), dividend % u128::from(five));
        Some(Binary { significand: quotient, exponent: self.scale - i64::from(shift), sticky: remainder != 0 })
    }

    /// Any number, with big-integer arithmetic.
    fn to_binary_general(&self) -> Binary {
        let mut number = Natural::default();
        let mut digits = self.digits();
        loop {
            let (mut chunk, mut scale) = (0, 1);
            for digit in digits.by_ref().take(CHUNK_DIGITS) {
                chunk = chunk * 10 + digit;
                scale *= 10;
            }
            if scale == 1 {
                break;
            }
            number.multiply_add(scale, chunk);
        }
        if self.scale >= 0 {
            number.multiply_by_five_to(self.scale as usize);
            let (significand, shift, sticky) = number.top_bits();
            return Binary { significand, exponent: self.scale + shift as i64, sticky };
        }
        let mut divisor = Natural::from(1);
        divisor.multiply_by_five_to(self.scale.unsigned_abs() as usize);
        // Align both to the same length, then divide bit by bit, for as many bits as rounding needs.
        let shift = divisor.bits() as i64 - number.bits() as i64;
        if shift >= 0 {
            number.shift_left(shift as usize);
        } else {
            divisor.shift_left(-shift as usize);
        }
        const QUOTIENT_BITS: u32 = PRECISION + 4;
        let mut quotient = 0_u128;
        for _ in 0..QUOTIENT_BITS {
            quotient <<= 1;
            if number.subtract_if_not_less(&divisor) {
                quotient |= 1;
            }
            number.shift_left(1);
        }
        Binary {
            significand: quotient,
            exponent: self.scale - shift - i64::from(QUOTIENT_BITS - 1),
            sticky: !number.is_zero(),
        }
    }
}

fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    &digits[digits.iter().take_while(|&&byte| byte == b'0').count()..]
}

#[cfg(test)]
mod tests;
