//! The short form of the attack, for every change. `scripts/attack` is the long one.

use std::env;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use attack::Plan;

#[test]
fn the_server_lives_and_answers() {
    let seed = match env::var("HOLDFAST_TEST_SEED") {
        Ok(given) => given.parse().expect("HOLDFAST_TEST_SEED is a number"),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_micros() as u64,
    };
    println!("to run this again: HOLDFAST_TEST_SEED={seed}");
    let avoid = env::var("HOLDFAST_TEST_AVOID").unwrap_or_default();
    let plan = Plan {
        address: None,
        seed,
        duration: Duration::from_secs(16),
        connections: 5,
        ping_max: Duration::from_secs(20),
        avoid: avoid.split(',').filter(|glob| !glob.is_empty()).map(String::from).collect(),
        only: Vec::new(),
    };
    if let Err(failure) = attack::run(&plan) {
        panic!("HOLDFAST_TEST_SEED={seed}: {failure}");
    }
}
