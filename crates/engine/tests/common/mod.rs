//! What several tests of the engine share: engines with nothing real around them, random requests, and their state to
//! be compared. Refuses to know what is tested.

#![allow(dead_code, reason = "each test uses some of it")]

pub(crate) mod host;
pub(crate) mod peer;
pub(crate) mod place;
pub(crate) mod requests;
pub(crate) mod state;

/// The seed of a test's random numbers: from HOLDFAST_TEST_SEED, or a new one. Printed, so that a failure can be
/// repeated.
pub(crate) fn seed() -> u64 {
    let seed = match std::env::var("HOLDFAST_TEST_SEED") {
        Ok(text) => text.parse().expect("HOLDFAST_TEST_SEED is a number"),
        Err(_) => fastrand::u64(..),
    };
    println!("HOLDFAST_TEST_SEED={seed}");
    seed
}
