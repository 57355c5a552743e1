//! The short form of the crash test, for every change. `scripts/crash` is the long one.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

use crash::{Plan, Policy};

#[test]
fn nothing_acknowledged_is_lost() {
    let seed = match env::var("HOLDFAST_TEST_SEED") {
        Ok(given) => given.parse().expect("HOLDFAST_TEST_SEED is a number"),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_micros() as u64,
    };
    println!("to run this again: HOLDFAST_TEST_SEED={seed}");
    let plan = Plan {
        server: wire::binary(),
        rounds: 12,
        seed,
        clients: 4,
        policy: Policy::Mixed,
        ballast_keys: 3_000,
        ticks_max: 2_000,
    };
    if let Err(failure) = crash::run(&plan) {
        panic!("HOLDFAST_TEST_SEED={seed}: {failure}");
    }
}
