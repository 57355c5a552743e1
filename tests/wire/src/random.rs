//! Repeatable randomness for tests.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

/// A xorshift generator. Same seed, same test.
pub struct Random {
    state: u64,
}

impl Random {
    /// Seeded by `HOLDFAST_TEST_SEED`, otherwise by the clock; prints the seed, which a failing test then shows.
    pub fn from_env() -> Random {
        let seed = match env::var("HOLDFAST_TEST_SEED") {
            Ok(given) => given.parse().expect("HOLDFAST_TEST_SEED is a number"),
            Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_nanos() as u64,
        };
        println!("to run this again: HOLDFAST_TEST_SEED={seed}");
        Random::new(seed)
    }

    pub fn new(seed: u64) -> Random {
        // The multiplication spreads neighbouring seeds apart; zero is the one state xorshift cannot leave.
        Random { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1) }
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// A number from 0 up to, not including, `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next_u64() >> 11) as usize % end
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}
