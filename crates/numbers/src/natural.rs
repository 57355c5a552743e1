//! Natural numbers of any size, with the few operations that exact decimal conversion needs.
//! Knows nothing of floats, and is not a general big-integer library.

use std::cmp::Ordering;

/// The powers of five that fit a u64.
pub(super) const FIVES: [u64; 28] = {
    let mut fives = [1; 28];
    let mut power = 1;
    while power < fives.len() {
        fives[power] = fives[power - 1] * 5;
        power += 1;
    }
    fives
};

/// As many decimal digits as always fit a u64.
pub(super) const CHUNK_DIGITS: usize = 19;
const CHUNK: u64 = 10_u64.pow(CHUNK_DIGITS as u32);

/// A natural number: u64 limbs, least significant first, the last one not zero.
#[derive(Default)]
pub(super) struct Natural {
    limbs: Vec<u64>,
}

impl From<u64> for Natural {
    fn from(number: u64) -> Self {
        let limbs = if number == 0 { vec![] } else { vec![number] };
        Self { limbs }
    }
}

impl Natural {
    pub(super) fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    pub(super) fn bits(&self) -> usize {
        match self.limbs.last() {
            None => 0,
            Some(top) => self.limbs.len() * 64 - top.leading_zeros() as usize,
        }
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }

    /// `self * factor + addend`; the factor is not zero.
    pub(super) fn multiply_add(&mut self, factor: u64, addend: u64) {
        let mut carry = addend;
        for limb in &mut self.limbs {
            let product = u128::from(*limb) * u128::from(factor) + u128::from(carry);
            *limb = product as u64;
            carry = (product >> 64) as u64;
        }
        if carry != 0 {
            self.limbs.push(carry);
        }
    }

    pub(super) fn multiply_by_five_to(&mut self, mut power: usize) {
        while power > 0 {
            let step = power.min(FIVES.len() - 1);
            self.multiply_add(FIVES[step], 0);
            power -= step;
        }
    }

    pub(super) fn shift_left(&mut self, by: usize) {
        let (limbs, bits) = (by / 64, by % 64);
        if self.is_zero() {
            return;
        }
        if bits != 0 {
            let mut carry = 0;
            for limb in &mut self.limbs {
                let shifted = *limb << bits | carry;
                carry = *limb >> (64 - bits);
                *limb = shifted;
            }
            if carry != 0 {
                self.limbs.push(carry);
            }
        }
        if limbs != 0 {
            self.limbs.splice(0..0, std::iter::repeat_n(0, limbs));
        }
    }

    /// The highest 128 bits, how far up they are, and whether anything below them is set.
    pub(super) fn top_bits(&self) -> (u128, usize, bool) {
        let shift = self.bits().saturating_sub(128);
        let (limbs, bits) = (shift / 64, shift % 64);
        let at = |index: usize| u128::from(self.limbs.get(limbs + index).copied().unwrap_or(0));
        let mut top = at(0) >> bits | at(1) << (64 - bits);
        if bits != 0 {
            top |= at(2) << (128 - bits);
        }
        let below = self.limbs.iter().take(limbs).any(|&limb| limb != 0);
        let cut = self.limbs.get(limbs).is_some_and(|limb| limb & ((1 << bits) - 1) != 0);
        (top, shift, below || cut)
    }

    pub(super) fn subtract_if_not_less(&mut self, other: &Self) -> bool {
        let by_length = self.limbs.len().cmp(&other.limbs.len());
        let order = by_length.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()));
        if order == Ordering::Less {
            return false;
        }
        let mut borrow = false;
        for (index, limb) in self.limbs.iter_mut().enumerate() {
            let subtrahend = other.limbs.get(index).copied().unwrap_or(0);
            let (difference, first) = limb.overflowing_sub(subtrahend);
            let (difference, second) = difference.overflowing_sub(borrow.into());
            *limb = difference;
            borrow = first | second;
        }
        self.trim();
        true
    }

    /// Divides by [`CHUNK`] and returns the remainder: the last nineteen digits.
    pub(super) fn divide_by_chunk(&mut self) -> u64 {
        let mut remainder = 0;
        for limb in self.limbs.iter_mut().rev() {
            (*limb, remainder) = divide_two_by_chunk(remainder, *limb);
        }
        self.trim();
        remainder
    }
}

/// Divides `high * 2^64 + low` by [`CHUNK`], `high` below it, with a multiplication by the reciprocal (Möller and
/// Granlund, "Improved division by invariant integers", algorithm 4). Ten times faster than dividing u128s, and a
/// number of 4,933 digits takes thirty thousand of these.
#[inline]
fn divide_two_by_chunk(high: u64, low: u64) -> (u64, u64) {
    const RECIPROCAL: u64 = (u128::MAX / CHUNK as u128 - (1 << 64)) as u64;
    let estimate = u128::from(RECIPROCAL) * u128::from(high) + (u128::from(high) << 64 | u128::from(low));
    let (mut quotient, fraction) = (((estimate >> 64) as u64).wrapping_add(1), estimate as u64);
    let mut remainder = low.wrapping_sub(quotient.wrapping_mul(CHUNK));
    if remainder > fraction {
        quotient = quotient.wrapping_sub(1);
        remainder = remainder.wrapping_add(CHUNK);
    }
    if remainder >= CHUNK {
        quotient += 1;
        remainder -= CHUNK;
    }
    (quotient, remainder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_random::Random;

    fn natural(number: u128) -> Natural {
        let mut natural = Natural { limbs: vec![number as u64, (number >> 64) as u64] };
        natural.trim();
        natural
    }

    fn value(natural: &Natural) -> u128 {
        assert!(natural.limbs.len() <= 2 && natural.limbs.last() != Some(&0));
        natural.limbs.iter().rev().fold(0, |value, &limb| value << 64 | u128::from(limb))
    }

    #[test]
    fn small_numbers_agree_with_u128() {
        let mut random = Random::new();
        for _ in 0..20_000 {
            let wide = (u128::from(random.next()) << 64 | u128::from(random.next())) >> random.below(128);
            let other = (u128::from(random.next()) << 64 | u128::from(random.next())) >> random.below(128);
            let small = (random.next() >> random.below(64)).max(1);

            let mut number = natural(wide);
            assert_eq!(number.bits(), 128 - wide.leading_zeros() as usize);
            assert_eq!(number.top_bits(), (wide, 0, false));
            assert_eq!(u128::from(number.divide_by_chunk()), wide % u128::from(CHUNK));
            assert_eq!(value(&number), wide / u128::from(CHUNK));

            let mut number = natural(wide);
            assert_eq!(number.subtract_if_not_less(&natural(other)), wide >= other);
            assert_eq!(value(&number), wide.checked_sub(other).unwrap_or(wide));

            let mut number = natural(wide >> 64);
            number.multiply_add(small, small);
            assert_eq!(value(&number), (wide >> 64) * u128::from(small) + u128::from(small));
        }
    }

    #[test]
    fn shifts_are_found_again_at_the_top() {
        for shift in [0, 1, 63, 64, 65, 127, 128, 129, 1000] {
            let mut number = Natural::from(0xf000_0000_0000_000f);
            number.shift_left(shift);
            assert_eq!(number.bits(), 64 + shift);
            let (top, below, lost) = number.top_bits();
            assert_eq!((top << (64 - (shift - below)), lost), (0xf000_0000_0000_000f << 64, false), "{shift}");
            number.multiply_add(1, 1);
            assert_eq!(number.top_bits().2, below > 0, "the last bit is below the top ones");
        }
        let mut zero = Natural::default();
        zero.shift_left(100);
        assert!(zero.is_zero() && zero.bits() == 0);
    }

    #[test]
    fn powers_of_five() {
        let mut number = Natural::from(3);
        number.multiply_by_five_to(54);
        assert_eq!(value(&number), 3 * 5_u128.pow(54));
    }
}
