//! The decimal digits of a double, by Grisu2 (Loitsch, "Printing floating-point numbers quickly and accurately with
//! integers", 2010) in the variant of the fpconv library. Knows nothing of notation: no point, no exponent, no sign.
//!
//! Why not an algorithm that always finds the shortest digits: Redis 7.2 and later print with fpconv. Grisu2 always
//! finds digits that read back as the same double, but for about one random double in two thousand there are shorter or
//! nearer ones (it prints 0.3178709260122419 as 0.31787092601224187). Replies are compared byte for byte, so equal
//! digits matter more than few digits; the same steps with the same roundings give them.

use std::sync::LazyLock;

use super::long_double::LongDouble;

/// Seventeen digits identify any double; Grisu2 never writes more.
pub(super) const DIGITS_MAX: usize = 17;

/// Writes the digits of a positive finite double. Returns how many there are, and the power of ten that scales them:
/// the number is `digits * 10^scale`.
pub(super) fn digits_of(number: f64, digits: &mut [u8; DIGITS_MAX]) -> (usize, i32) {
    let Interval { lower, exact, upper } = Interval::around(number);
    let (power, power_of_ten) = cached_power(upper.exponent);
    let (exact, upper, lower) = (exact.times(power), upper.times(power), lower.times(power));
    // Each product is off by less than one unit, so one unit inside of both borders is safe.
    let upper = Scaled { mantissa: upper.mantissa - 1, ..upper };
    let width = upper.mantissa - (lower.mantissa + 1);
    let (count, kappa) = generate(upper, upper.mantissa - exact.mantissa, width, digits);
    (count, kappa - power_of_ten)
}

/// `mantissa * 2^exponent`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scaled {
    mantissa: u64,
    exponent: i32,
}

impl Scaled {
    /// The high half of the product, rounded.
    fn times(self, other: Self) -> Self {
        let product = u128::from(self.mantissa) * u128::from(other.mantissa);
        Self { mantissa: ((product + (1 << 63)) >> 64) as u64, exponent: self.exponent + other.exponent + 64 }
    }

    fn normalized(self) -> Self {
        let shift = self.mantissa.leading_zeros();
        Self { mantissa: self.mantissa << shift, exponent: self.exponent - shift as i32 }
    }
}

/// A double and the points half-way to its neighbours. Every number inside reads back as the double. All three have the
/// exponent of the upper border, whose top bit is set.
struct Interval {
    lower: Scaled,
    exact: Scaled,
    upper: Scaled,
}

impl Interval {
    fn around(number: f64) -> Self {
        const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
        const HIDDEN: u64 = 1 << FRACTION_BITS;
        let bits = number.to_bits();
        let (fraction, biased) = (bits & (HIDDEN - 1), (bits >> FRACTION_BITS) as i32);
        let (mantissa, exponent) = if biased == 0 { (fraction, -1074) } else { (fraction | HIDDEN, biased - 1075) };
        let upper = Scaled { mantissa: (mantissa << 1) + 1, exponent: exponent - 1 };
        let upper = upper.normalized();
        // Below a power of two the neighbours are twice as close.
        let closer = if mantissa == HIDDEN { 2 } else { 1 };
        let lower = Scaled {
            mantissa: ((mantissa << closer) - 1) << (exponent - closer - upper.exponent),
            exponent: upper.exponent,
        };
        let exact = Scaled { mantissa, exponent }.normalized();
        Self { lower, exact, upper }
    }
}

/// Generates digits of `upper` from the left, until the rest is within the `width` that reads back as the same double;
/// then lowers the last digit towards the exact number, which is `distance` below. Returns the number of digits and the
/// power of ten of the last one.
fn generate(upper: Scaled, distance: u64, mut width: u64, digits: &mut [u8; DIGITS_MAX]) -> (usize, i32) {
    let shift = -upper.exponent; // 32 to 60: the whole part fits 32 bits
    let one = 1_u64 << shift;
    let mut whole = (upper.mantissa >> shift) as u32;
    let mut fraction = upper.mantissa & (one - 1);

    let mut count = 0;
    let first = whole.checked_ilog10().unwrap_or(0);
    for kappa in (0..=first).rev() {
        let unit = 10_u32.pow(kappa);
        let digit = whole / unit;
        whole %= unit;
        if digit != 0 || count != 0 {
            digits[count] = b'0' + digit as u8;
            count += 1;
        }
        let rest = (u64::from(whole) << shift) + fraction;
        if rest <= width {
            step_back(&mut digits[count - 1], width, rest, u64::from(unit) << shift, distance);
            return (count, kappa as i32);
        }
    }
    let (mut distance, mut kappa) = (distance, 0);
    loop {
        fraction *= 10;
        width *= 10;
        distance *= 10;
        kappa -= 1;
        let digit = fraction >> shift;
        if digit != 0 || count != 0 {
            digits[count] = b'0' + digit as u8;
            count += 1;
        }
        fraction &= one - 1;
        if fraction < width {
            step_back(&mut digits[count - 1], width, fraction, one, distance);
            return (count, kappa);
        }
    }
}

/// Lowers the last digit as long as that stays inside and comes nearer to the exact number.
fn step_back(digit: &mut u8, width: u64, mut rest: u64, unit: u64, distance: u64) {
    while rest < distance
        && width - rest >= unit
        && (rest + unit < distance || distance - rest > rest + unit - distance)
    {
        *digit -= 1;
        rest += unit;
    }
}

/// Powers of ten with 64 bits, every eighth from 10^-348 to 10^340: any double times one of them has its exponent in
/// the range that `generate` needs.
static POWERS: LazyLock<[Scaled; POWER_COUNT]> = LazyLock::new(|| {
    std::array::from_fn(|index| {
        let text = format!("1e{}", POWER_FIRST + POWER_STEP * index as i32);
        let power = LongDouble::parse(text.as_bytes()).expect("a long double reaches much further");
        let (mantissa, exponent) = power.parts().expect("finite");
        Scaled { mantissa, exponent: exponent as i32 }
    })
});
const POWER_FIRST: i32 = -348;
const POWER_STEP: i32 = 8;
const POWER_COUNT: usize = 87;

/// The power that scales `exponent` to between -60 and -32, and its power of ten. Where two powers would do, fpconv's
/// first guess decides; hence its odd arithmetic.
fn cached_power(exponent: i32) -> (Scaled, i32) {
    const LOG10_OF_2: f64 = 0.301_029_995_663_981_14;
    let guess = (f64::from(-(exponent + POWER_COUNT as i32)) * LOG10_OF_2) as i32;
    let mut index = (guess - POWER_FIRST) / POWER_STEP;
    loop {
        let power = POWERS[index as usize];
        match exponent + power.exponent + 64 {
            ..-60 => index += 1,
            -60..=-32 => return (power, POWER_FIRST + index * POWER_STEP),
            _ => index -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    fn digits(number: f64) -> (String, i32) {
        let mut digits = [0; DIGITS_MAX];
        let (count, scale) = digits_of(number, &mut digits);
        (String::from_utf8(digits[..count].to_vec()).unwrap(), scale)
    }

    /// The ends of the table, as published with the algorithm.
    #[test]
    fn the_powers_are_the_published_ones() {
        let power = |mantissa, exponent| Scaled { mantissa, exponent };
        assert_eq!(POWERS[0], power(0xfa8f_d5a0_081c_0288, -1220));
        assert_eq!(POWERS[86], power(0xaf87_023b_9bf0_ee6b, 1066));
    }

    /// From Redis 8.0.2; the last three are where Grisu2 misses the shortest or nearest digits.
    #[test]
    fn fpconv_agrees() {
        for (number, expected, scale) in [
            (0.1, "1", -1),
            (0.3, "3", -1),
            (123.456, "123456", -3),
            (5e-324, "5", -324),
            (f64::MAX, "17976931348623157", 292),
            (f64::MIN_POSITIVE, "22250738585072014", -324),
            (0.3178709260122419, "31787092601224187", -17),
            (808750.2257978762, "8087502257978763", -10),
            (2.14e22, "21400000000000002", 6),
        ] {
            assert_eq!(digits(number), (expected.to_owned(), scale));
        }
    }

    #[test]
    fn every_double_reads_back() {
        let mut random = Random::new();
        for _ in 0..50_000 {
            let number = f64::from_bits(random.next() >> 1);
            if number.is_finite() && number != 0.0 {
                let (digits, scale) = digits(number);
                assert_eq!(format!("{digits}e{scale}").parse(), Ok(number));
            }
        }
        // Powers of two have uneven neighbours.
        let subnormal = (0..52).map(|bit| 1_u64 << bit);
        let normal = (1..2047_u64).map(|exponent| exponent << 52);
        for number in subnormal.chain(normal).map(f64::from_bits) {
            let (digits, scale) = digits(number);
            assert_eq!(format!("{digits}e{scale}").parse(), Ok(number));
        }
    }
}
