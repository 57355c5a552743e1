//! Code that the two float parsers share: C99 hexadecimal floats, the names of infinity, and rounding to a given
//! precision. Knows nothing of decimal digits, nor of the float format of the result.

/// A number as a C text spells it: `significand * 2^exponent`, plus less than one unit of the significand where
/// `sticky` is set (digits that did not fit; they matter only for rounding).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Binary {
    pub(super) significand: u128,
    pub(super) exponent: i64,
    pub(super) sticky: bool,
}

/// Exponents are clamped here: out of range in every float format, and far enough from i64's limits to add to.
const EXPONENT_LIMIT: i64 = 1 << 40;

impl Binary {
    /// Rounds to nearest, ties to even, keeping at most `precision` bits and none below `2^exponent_min`.
    /// Returns (significand, exponent). The significand is normalised, or the exponent is `exponent_min`.
    ///
    /// A sticky number must have more than `precision` bits; with fewer, the lost digits could change a kept bit.
    pub(super) fn round(self, precision: u32, exponent_min: i64) -> (u64, i64) {
        let Self { significand, exponent, sticky } = self;
        if significand == 0 {
            return (0, exponent_min);
        }
        let width = i64::from(u128::BITS - significand.leading_zeros());
        let drop = (width - i64::from(precision)).max(exponent_min - exponent);
        debug_assert!(drop > 0 || !sticky, "sticky numbers must have bits to spare");
        if drop <= 0 {
            return ((significand << -drop) as u64, exponent + drop);
        }
        if drop > i64::from(u128::BITS) {
            return (0, exponent_min);
        }
        let kept = significand.checked_shr(drop as u32).unwrap_or(0) as u64;
        let half = 1_u128 << (drop - 1);
        let lost = significand & (half | (half - 1));
        let up = lost > half || (lost == half && (sticky || kept & 1 == 1));
        let exponent = exponent + drop;
        match kept.checked_add(up.into()) {
            Some(rounded) if precision == u64::BITS || rounded >> precision == 0 => (rounded, exponent),
            // Rounding carried into one bit more: the significand is now a power of two.
            _ => (1 << (precision - 1), exponent + 1),
        }
    }
}

/// Splits off an optional sign, `-` or `+`; returns whether the number is negative, and the rest.
pub(super) fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// Whether an unsigned text is one of the names `strtod` has for infinity.
pub(super) fn is_infinity(text: &[u8]) -> bool {
    text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity")
}

/// Reads an unsigned `0x1.8p3`. None when the text is anything else or does not end there.
pub(super) fn parse_hex(text: &[u8]) -> Option<Binary> {
    let [b'0', b'x' | b'X', rest @ ..] = text else {
        return None;
    };
    let mut number = Binary { significand: 0, exponent: 0, sticky: false };
    let (mut digits, mut in_fraction, mut at) = (false, false, 0);
    while let Some(&byte) = rest.get(at) {
        match (char::from(byte).to_digit(16), byte) {
            (Some(digit), _) => {
                digits = true;
                if number.significand >> (u128::BITS - 4) == 0 {
                    number.significand = number.significand << 4 | u128::from(digit);
                    number.exponent -= if in_fraction { 4 } else { 0 };
                } else {
                    number.sticky |= digit != 0;
                    number.exponent += if in_fraction { 0 } else { 4 };
                }
            }
            (None, b'.') if !in_fraction => in_fraction = true,
            _ => break,
        }
        at += 1;
    }
    if !digits {
        return None;
    }
    number.exponent += parse_exponent(&rest[at..], b'p')?;
    Some(number)
}

/// Reads the exponent part that ends a number, if there is one: the marker, an optional sign and at least one digit.
/// Exponents beyond [`EXPONENT_LIMIT`] are clamped to it.
pub(super) fn parse_exponent(text: &[u8], marker: u8) -> Option<i64> {
    let [first, rest @ ..] = text else {
        return Some(0);
    };
    if first.to_ascii_lowercase() != marker {
        return None;
    }
    let (negative, digits) = split_sign(rest);
    if digits.is_empty() {
        return None;
    }
    let mut exponent = 0_i64;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        exponent = (exponent * 10 + i64::from(byte - b'0')).min(EXPONENT_LIMIT);
    }
    Some(if negative { -exponent } else { exponent })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(significand: u128, exponent: i64, sticky: bool) -> Binary {
        Binary { significand, exponent, sticky }
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        assert_eq!(binary(0b1011, 0, false).round(3, -10), (0b110, 1));
        assert_eq!(binary(0b1001, 0, false).round(3, -10), (0b100, 1));
        assert_eq!(binary(0b1001, 0, true).round(3, -10), (0b101, 1));
        assert_eq!(binary(0b1111, 0, false).round(3, -10), (0b100, 2));
        assert_eq!(binary(u128::MAX, 0, false).round(64, -10), (1 << 63, 65));
        assert_eq!(binary(1, 0, false).round(64, -16445), (1 << 63, -63));
    }

    #[test]
    fn rounding_stops_at_the_smallest_exponent() {
        assert_eq!(binary(1, -10, false).round(3, -10), (1, -10));
        assert_eq!(binary(1, -11, false).round(3, -10), (0, -10));
        assert_eq!(binary(3, -12, false).round(3, -10), (1, -10));
        assert_eq!(binary(1 << 127, -138, false).round(3, -10), (0, -10));
        assert_eq!(binary(3 << 126, -138, false).round(3, -10), (1, -10));
        assert_eq!(binary(1, -EXPONENT_LIMIT, false).round(64, -16445), (0, -16445));
    }

    #[test]
    fn hex_floats_are_read_as_strtod_reads_them() {
        assert_eq!(parse_hex(b"0x10"), Some(binary(16, 0, false)));
        assert_eq!(parse_hex(b"0X1.8p3"), Some(binary(0x18, -1, false)));
        assert_eq!(parse_hex(b"0x.8"), Some(binary(8, -4, false)));
        assert_eq!(parse_hex(b"0x1.p-2"), Some(binary(1, -2, false)));
        for text in ["0x", "0x.", "0xp1", "0x1p", "0x1p+", "0x1g", "0x1.2.3", "1", "", "0x1p1 "] {
            assert_eq!(parse_hex(text.as_bytes()), None, "{text}");
        }
        let long = parse_hex(format!("0x1{}1", "0".repeat(40)).as_bytes()).unwrap();
        assert_eq!(long, binary(1 << 124, 40, true));
    }
}
