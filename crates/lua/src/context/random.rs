//! The generator of `math.random`, that of `lrand48` as in Redis: a seed gives a script the same numbers everywhere.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A 48-bit linear congruential generator.
#[derive(Clone, Copy)]
pub(crate) struct Random(u64);

const BITS: u64 = 0xFFFF_FFFF_FFFF;

impl Random {
    /// Starts anywhere. In Redis the first script after a start always gets the same numbers; here there are several
    /// states, which would all give out the same ones.
    pub(crate) fn anywhere() -> Self {
        Random(RandomState::new().build_hasher().finish() & BITS)
    }

    pub(crate) fn seeded(seed: i32) -> Self {
        Random((seed as u32 as u64) << 16 | 0x330E)
    }

    /// 31 bits.
    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & BITS;
        (self.0 >> 17) as u32
    }
}
