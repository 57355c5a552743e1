//! The 80-bit floats of INCRBYFLOAT and HINCRBYFLOAT: x87's `long double`, done with integers.
//! Knows nothing of keys or error replies, and only what Redis needs: read, add, print, and seconds in milliseconds.
//!
//! Why not f64: Redis adds with 64 bits of mantissa and prints 17 decimals, so that 0.1 + 0.2 is `0.3`. Stored texts
//! are results of earlier additions; a different last digit would show up in clients and in replicas that mix servers.
//! Everything here is exact integer arithmetic with one rounding at the end, the same on every machine.

use std::cmp::Ordering;

use super::float_text::{Binary, is_infinity, parse_exponent, parse_hex, split_sign};
use super::natural::{CHUNK_DIGITS, FIVES, Natural};

/// Redis copies the text into a buffer of this size, with a NUL; a longer text is not a float to it.
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

impl LongDouble {
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
        // place; what falls off is noted in the last bit, too far down to change anything but a tie. When many
        // leading bits cancel, the exponents differ by at most one and nothing fell off.
        const SPARE: u32 = 62;
        let high = u128::from(large.1) << SPARE;
        let low = shift_right_sticky(u128::from(small.1) << SPARE, large.0 - small.0);
        let same_sign = large.2 == small.2;
        let significand = if same_sign { high + low } else { high - low };
        // x - x is +0 when rounding to nearest; -0 comes only from -0 + -0.
        let negative = large.2 && (same_sign || significand != 0);
        Self::rounded(negative, Binary { significand, exponent: large.0 - i64::from(SPARE), sticky: false })
    }

    /// A thousand times the number, rounded up to a whole one: how Redis makes milliseconds of a timeout's seconds. `None`
    /// when that is no 64-bit integer.
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
        // Up is towards zero below it.
        let whole = i64::try_from(whole + u64::from(has_rest && !self.negative)).ok()?;
        Some(if self.negative { -whole } else { whole })
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

/// An integer key holds one already; 64 bits of mantissa take any i64 exactly.
impl From<i64> for LongDouble {
    fn from(number: i64) -> Self {
        Self::rounded(number < 0, Binary { significand: number.unsigned_abs().into(), exponent: 0, sticky: false })
    }
}

/// Shifts right; bits that are lost leave the last bit set.
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

/// A decimal text taken apart: its digits, read as one whole number, times `10^scale`.
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

    /// The same number in binary, exact or sticky; None when it is out of range by its size in decimal alone, which
    /// also bounds the work below.
    fn to_binary(&self) -> Option<Binary> {
        let count = self.whole.len() + self.fraction.len();
        // The number is less than ten to this power, and at least a tenth of that.
        let power = count as i64 + self.scale;
        if count == 0 {
            Some(self.to_binary_short(0)?)
        } else if !(-4_950..=4_933).contains(&power) {
            None // above 1.19e4932, or below half of 3.6e-4951
        } else {
            let short = if count <= 38 { self.to_binary_short(self.number()) } else { None };
            Some(short.unwrap_or_else(|| self.to_binary_long()))
        }
    }

    fn digits(&self) -> impl Iterator<Item = u64> {
        self.whole.iter().chain(self.fraction).map(|&byte| u64::from(byte - b'0'))
    }

    /// All digits as one number; they must be 38 at most.
    fn number(&self) -> u128 {
        let mut number = 0_u128;
        for part in [self.whole, self.fraction] {
            // u64 steps are several times cheaper than u128 ones.
            for chunk in part.chunks(CHUNK_DIGITS) {
                let (value, scale) = chunk
                    .iter()
                    .fold((0_u64, 1_u64), |(value, scale), &byte| (value * 10 + u64::from(byte - b'0'), scale * 10));
                number = number * u128::from(scale) + u128::from(value);
            }
        }
        number
    }

    /// Nearly every number people count with: it fits 128 bits, and so does its power of five.
    fn to_binary_short(&self, number: u128) -> Option<Binary> {
        if number == 0 {
            return Some(Binary { significand: 0, exponent: 0, sticky: false });
        }
        let five = *FIVES.get(usize::try_from(self.scale.unsigned_abs()).ok()?)?;
        if self.scale >= 0 {
            let significand = number.checked_mul(five.into())?;
            return Some(Binary { significand, exponent: self.scale, sticky: false });
        }
        // With its top bit at 2^127 the number holds any u64 divisor below 2^63 more than 2^64 times: enough bits.
        let shift = number.leading_zeros();
        let dividend = number << shift;
        let (quotient, remainder) = (dividend / u128::from(five), dividend % u128::from(five));
        Some(Binary { significand: quotient, exponent: self.scale - i64::from(shift), sticky: remainder != 0 })
    }

    /// Any number, with as many bits as it takes.
    fn to_binary_long(&self) -> Binary {
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
        // Bring both to the same length; then long division, a bit at a time, for as many bits as rounding needs.
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
mod tests {
    use super::*;
    use test_random::Random;

    fn sum(a: &str, b: &str) -> String {
        let [a, b] = [a, b].map(|text| LongDouble::parse(text.as_bytes()).expect(text));
        String::from_utf8(a.add(b).format_human()).unwrap()
    }

    #[test]
    fn seconds_in_milliseconds() {
        for (seconds, ms) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("1", Some(1000)),
            ("0.1", Some(100)),
            ("0.0001", Some(1)),
            ("1e-400", Some(1)),
            ("1.0001", Some(1001)),
            ("-0.0001", Some(0)),
            ("-0.0015", Some(-1)),
            ("-2.5", Some(-2500)),
            ("0x0.01p0", Some(4)),
            ("9223372036854775", Some(9_223_372_036_854_775_000)),
            ("9223372036854776", None),
            ("1e300", None),
            ("-1e300", None),
            ("inf", None),
        ] {
            let number = LongDouble::parse(seconds.as_bytes()).expect(seconds);
            assert_eq!(number.thousandfold_rounded_up(), ms, "{seconds}");
        }
    }

    /// SET the first, INCRBYFLOAT by the second: collected from Redis 7.0.15 and 8.0.2, which agree.
    const SUMS: &[(&str, &str, &str)] = &[
        ("0.1", "0.2", "0.3"),
        ("10.50", "0.1", "10.6"),
        ("5.0e3", "2.0e2", "5200"),
        ("3", "1.1", "4.1"),
        ("1", "-1.1", "-0.1"),
        ("0", "0", "0"),
        ("-0", "-0", "0"),
        ("-0.0", "0", "0"),
        ("1e-17", "0", "0.00000000000000001"),
        ("5e-18", "0", "0"),
        ("4.9e-18", "0", "0"),
        ("-1e-30", "0", "0"),
        ("1.5", "-1.5", "0"),
        ("0.1", "-0.1", "0"),
        ("1e18", "0.1", "1000000000000000000.125"),
        ("1e19", "0.1", "10000000000000000000"),
        ("18446744073709551615", "0", "18446744073709551615"),
        ("18446744073709551615", "1", "18446744073709551616"),
        ("18446744073709551617", "0", "18446744073709551616"),
        ("36893488147419103233", "0", "36893488147419103232"),
        ("36893488147419103235", "0", "36893488147419103236"),
        ("9223372036854775807", "1", "9223372036854775808"),
        ("-9223372036854775808", "-1", "-9223372036854775809"),
        ("1e20", "1", "100000000000000000000"),
        ("1e22", "0", "10000000000000000000000"),
        ("1e30", "0", "1000000000000000000024696061952"),
        ("123456789012345678901234567890", "0.5", "123456789012345678899921813504"),
        ("3.14159265358979323846", "2.71828182845904523536", "5.85987448204883847"),
        ("0x1.8p3", "0x10", "28"),
        ("0x.1", "-0x1p-4", "0"),
        (
            "1e100",
            "1",
            "9999999999999999999669353532207342619498699019828496079271391541752018669482644324418977840117055488",
        ),
        (
            "1.7976931348623157e308",
            "0",
            "179769313486231569995921046774104434048386446944329178485314420765176628523124396354701868608387085564428793419425520689308708363451136055357897278026477617073498977686288394835618163294045594434929537447290627480669417384648879122776218333598953852832103282504751611691208117720159985926376802466863339536384",
        ),
        ("1.", "0", "1"),
        (".5", "+.5", "1"),
        ("00012.50", "0", "12.5"),
        ("1E3", "1e+3", "2000"),
        ("99999999999999999.999999999999999999", "0", "100000000000000000"),
        ("0.99999999999999999999", "0", "1"),
        ("0.000000000000000005", "0", "0"),
        ("0.000000000000000015", "0", "0.00000000000000002"),
        ("12345.678901234567890123", "0", "12345.6789012345678902"),
        ("1e-400", "1", "1"),
        ("3.6e-4951", "0", "0"),
        ("0x1p-16445", "0x1p-16445", "0"),
        ("1000000.1", "-0.1", "1000000"),
        ("33.3333333333333333", "66.6666666666666666", "99.9999999999999999"),
        ("0.30000000000000004", "0", "0.30000000000000004"),
        ("1e16", "0.0005", "10000000000000000.0009765625"),
        ("17179869184.00001", "0", "17179869184.00001000054180622"),
        ("2.5", "0.00000000000000000", "2.5"),
        ("-5", "4.999999999999999999", "0"),
        ("-5", "4.9999999999999999999", "0"),
    ];

    #[test]
    fn redis_agrees_on_fixed_sums() {
        for &(a, b, expected) in SUMS {
            assert_eq!(sum(a, b), expected, "{a} + {b}");
        }
    }

    #[test]
    fn what_redis_refuses_is_refused() {
        for text in [
            "",
            " ",
            " 1",
            "1 ",
            "-",
            "+",
            ".",
            "1e",
            "1e+",
            "e5",
            ".e1",
            "0x",
            "0x.p1",
            "0x1p",
            "nan",
            "nan(12)",
            "infinit",
            "1..2",
            "++1",
            "1e5x",
            "1\0",
            "1e4933",
            "-1e4933",
            "0x1p16384",
            "1e-4951",
            "1.8e-4951",
            "0x1p-16446",
            "1e99999999999999999999",
            "1e-99999999999999999999",
            "1.18973149535723176509e4932",
        ] {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(LongDouble::parse(&[b'9'; TEXT_BYTES_MAX]), None, "overflow");
        assert!(LongDouble::parse(&[b'0'; TEXT_BYTES_MAX]).is_some());
        assert_eq!(LongDouble::parse(&[b'0'; TEXT_BYTES_MAX + 1]), None, "too long");
    }

    #[test]
    fn the_edges_of_the_range_are_exact() {
        let bits = |text: &str| match LongDouble::parse(text.as_bytes()).expect(text).magnitude {
            Magnitude::Finite { exponent, mantissa } => (exponent, mantissa),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(bits("1.18973149535723176502e4932"), (EXPONENT_MAX, u64::MAX));
        assert_eq!(bits("3.6451995318824746025e-4951"), (EXPONENT_MIN, 1));
        assert_eq!(bits("1.9e-4951"), (EXPONENT_MIN, 1));
        assert_eq!(bits("0x1.8p-16446"), (EXPONENT_MIN, 1));
        assert_eq!(bits("3.3621031431120935063e-4932"), (EXPONENT_MIN, 1 << 63));
        assert_eq!(bits("0x1p-16382"), (EXPONENT_MIN, 1 << 63));
        assert_eq!(bits("0"), (EXPONENT_MIN, 0));
        assert_eq!(bits("1"), (-63, 1 << 63));
        assert_eq!(sum("1.18973149535723176502e4932", "1e4900").len(), 4_933);
    }

    #[test]
    fn infinity_and_nan_are_noticed() {
        let parse = |text: &str| LongDouble::parse(text.as_bytes()).unwrap();
        let (infinite, largest) = (parse("Infinity"), parse("1.18973149535723176502e4932"));
        assert!(infinite.is_nan_or_infinite());
        assert!(infinite.add(parse("1")).is_nan_or_infinite());
        assert!(infinite.add(parse("-inf")).is_nan_or_infinite());
        assert!(largest.add(largest).is_nan_or_infinite());
        assert!(!largest.add(parse("1")).is_nan_or_infinite());
        assert_eq!(parse("1").add(parse("-inf")).format_human(), b"-inf");
        assert_eq!(infinite.add(parse("-inf")).format_human(), b"nan");
    }

    #[test]
    fn integers_convert_exactly() {
        for number in [0, 1, -1, i64::MAX, i64::MIN, 1 << 53 | 1] {
            let text = number.to_string();
            assert_eq!(LongDouble::from(number), LongDouble::parse(text.as_bytes()).unwrap());
            assert_eq!(LongDouble::from(number).format_human(), text.as_bytes());
        }
    }

    /// The two ways to read a decimal must agree wherever both apply.
    #[test]
    fn the_short_way_and_the_long_way_agree() {
        let mut random = Random::new();
        for _ in 0..20_000 {
            let text = format!(
                "{}.{:0width$}e{}",
                random.next() >> random.below(64),
                random.next() >> random.below(64),
                random.below(9) as i32 - 4,
                width = random.below(20),
            );
            let decimal = Decimal::parse(text.as_bytes()).unwrap();
            if decimal.whole.len() + decimal.fraction.len() > 38 || decimal.number() == 0 {
                continue;
            }
            if let Some(short) = decimal.to_binary_short(decimal.number()) {
                let long = decimal.to_binary_long();
                assert_eq!(short.round(PRECISION, EXPONENT_MIN), long.round(PRECISION, EXPONENT_MIN), "{text}");
            }
        }
    }

    #[test]
    fn no_text_panics() {
        let mut random = Random::new();
        for _ in 0..50_000 {
            let text = random.bytes(12, b"0123456789.eE+-xXpPinfa \0\xff");
            if let Some(number) = LongDouble::parse(&text) {
                let printed = number.format_human();
                let again = LongDouble::parse(&printed).expect("what we print we can read");
                assert_eq!(again.format_human(), printed);
            }
        }
    }
}
