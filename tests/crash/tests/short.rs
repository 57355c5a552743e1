//! The short form of the crash test, for every change. `scripts/crash` is the long one.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

use crash::{Plan, Policy};

fn plan() -> Plan {
    let seed = match env::var("HOLDFAST_TEST_SEED") {
        Ok(given) => given.parse().expect("HOLDFAST_TEST_SEED is a number"),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_micros() as u64,
    };
    println!("to run this again: HOLDFAST_TEST_SEED={seed}");
    Plan {
        server: wire::binary(),
        rounds: 12,
        seed,
        clients: 4,
        policy: Policy::Mixed,
        ballast_keys: 3_000,
        ticks_max: 2_000,
        followers: false,
    }
}

fn check(plan: &Plan) {
    if let Err(failure) = crash::run(plan) {
        panic!("HOLDFAST_TEST_SEED={}: {failure}", plan.seed);
    }
}

#[test]
fn nothing_acknowledged_is_lost() {
    check(&plan());
}

#[test]
fn nothing_acknowledged_is_lost_when_a_follower_takes_over() {
    let plan = Plan { followers: true, ..plan() };
    if plan.server.file_name().is_some_and(|name| name.to_string_lossy().contains("redis")) {
        return wire::skip("only Holdfast follows a directory");
    }
    check(&plan);
}
