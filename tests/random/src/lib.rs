//! Randomness for unit tests: a small generator that prints its seed, so that a failure can be replayed with
//! `HOLDFAST_SEED=… cargo test`. Knows nothing of what is being tested; never compiled into the server.

#![forbid(unsafe_code)]

pub struct Random(u64);

impl Random {
    #[allow(clippy::new_without_default, reason = "it prints its seed, which a default should not do")]
    pub fn new() -> Self {
        let seed = match std::env::var("HOLDFAST_SEED") {
            Ok(text) => text.parse().expect("HOLDFAST_SEED is a number"),
            Err(_) => 0x9e37_79b9_7f4a_7c15,
        };
        println!("HOLDFAST_SEED={seed}");
        Self(seed.max(1))
    }

    /// xorshift64*: enough spread for tests, and one line.
    #[allow(clippy::should_implement_trait, reason = "it never ends, and tests call it by hand")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Fewer than `limit` bytes, each one of `alphabet`.
    pub fn bytes(&mut self, limit: usize, alphabet: &[u8]) -> Vec<u8> {
        (0..self.below(limit)).map(|_| *self.pick(alphabet)).collect()
    }
}
