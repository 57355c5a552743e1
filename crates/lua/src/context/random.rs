//! The generator of `math.random`, that of `lrand48` as in Redis, so that a script sees the same numbers everywhere.

/// A 48-bit linear congruential generator.
#[derive(Clone, Copy)]
pub(crate) struct Random(u64);

/// What `lrand48` starts from without a seed, and where Redis's scripts start. In Redis the sequence goes on from script
/// to script; here every script starts anew, so that what it does depends on nothing but its arguments.
impl Default for Random {
    fn default() -> Self {
        Random(0x1234_ABCD_330E)
    }
}

impl Random {
    pub(crate) fn seeded(seed: i32) -> Self {
        Random((seed as u32 as u64) << 16 | 0x330E)
    }

    /// 31 bits.
    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & 0xFFFF_FFFF_FFFF;
        (self.0 >> 17) as u32
    }
}
