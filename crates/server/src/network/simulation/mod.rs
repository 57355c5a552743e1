//! Connections under simulation: a scheduler chooses the next event by random numbers, and splits sent bytes anywhere.
//! Requests, turns, the journal and the engine are real; streams, timers and the clock are simulated, all on one
//! thread. So a seed gives the same simulation each time. `HOLDFAST_TEST_SEED` runs one of them again.
//!
//! What must hold: replies are complete, in order, and one for each request that was executed; nothing is executed
//! after a close; requests that arrived before a half-close or a stop are answered; no client waits for ever; no state
//! of a connection is left.

mod client;
mod stream;
mod world;

use client::SCRIPT;
use engine::Settings;
use engine::clients::pause::PauseMode;
use std::sync::Arc;
use world::World;

/// So many simulations, each time with other seeds, or `HOLDFAST_TEST_ROUNDS`.
const SIMULATIONS: u64 = 600;

struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("run it again with HOLDFAST_TEST_SEED={}", self.0);
        }
    }
}

fn simulate(seed: u64, settings: &Arc<Settings>) {
    let _named = SeedOnPanic(seed);
    World::new(seed, settings).run();
}

#[test]
fn connections_keep_their_promises_whatever_happens() {
    // Creating settings takes longer than a simulation: all share these, and each sets what it needs.
    let settings = Arc::new(Settings::new());
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("it is a number"));
    if let Some(seed) = number("HOLDFAST_TEST_SEED") {
        return simulate(seed, &settings);
    }
    let (first, count) = (fastrand::u64(..1 << 32), number("HOLDFAST_TEST_ROUNDS").unwrap_or(SIMULATIONS));
    (first..first + count).for_each(|seed| simulate(seed, &settings));
}

/// Regression: clients whose connections ended during a pause were remembered until it ended.
#[test]
fn a_client_that_disconnects_during_a_pause_is_removed() {
    let mut world = World::still(0, &[&[(&["PING"], "+PONG\r\n")]]);
    let now_ms = world.engine.clock.monotonic_ms();
    world.engine.pause.begin(now_ms, now_ms + 60_000, PauseMode::All);
    world.clients[0].send_all();
    world.run_woken();
    assert!(world.engine.clients.all()[0].is_paused());
    world.clients[0].half_close();
    // Checks that nothing refers to a client whose connection has ended.
    world.run_woken();
    assert_eq!(world.engine.clients.len(), 0);
}

/// The second wait begins in a turn in which nothing is read.
#[test]
fn a_wait_times_out_wherever_it_begins() {
    let wait: (&[&str], &str) = (&["BLPOP", "queue", "0.1"], "*-1\r\n");
    let mut world = World::still(0, &[&[wait, wait, wait]]);
    world.settle();
    assert_eq!(world.clients[0].replies, 3);
}

/// The client is woken for another reason while it waits, cannot execute its request because its output is held, and is
/// then killed.
#[test]
fn a_client_that_disconnects_while_it_waits_for_a_script_is_removed() {
    let slow: &[(&[&str], &str)] = &[(&["EVAL", SCRIPT, "0", "done"], "$4\r\ndone\r\n")];
    let other: &[(&[&str], &str)] =
        &[(&["INCR", "n"], ":1\r\n"), (&["GET", "n"], "$1\r\n1\r\n"), (&["PING"], "+PONG\r\n")];
    let mut world = World::still(300_000, &[slow, other]);
    world.log.set_syncs(false);
    world.run_connections();
    world.clients[1].send_request();
    world.run_connections();
    world.clients[0].send_request();
    world.run_connections();
    assert!(world.engine.scripting.long.kind().is_some(), "the script has left its worker");
    world.clients[1].send_request();
    world.run_connections();
    // The reply to INCR is held, and GET waits for the script.
    world.end_tick();
    world.clients[1].send_request();
    world.run_connections();
    world.kill(1);
    // Checks that nothing refers to a client whose connection has ended.
    world.run_connections();
    assert_eq!(world.engine.clients.len(), 1);
    world.log.set_syncs(true);
    world.settle();
    assert_eq!(world.clients[0].replies, 1);
}

/// The server waits for a script that will end.
#[test]
fn a_stop_waits_for_a_script() {
    let slow: &[(&[&str], &str)] = &[(&["EVAL", SCRIPT, "0", "done"], "$4\r\ndone\r\n")];
    let mut world = World::still(300_000, &[slow]);
    world.run_connections();
    world.clients[0].send_request();
    world.run_connections();
    assert!(world.engine.scripting.long.kind().is_some(), "the script has left its worker");
    world.stop();
    world.run_woken();
    world.settle();
    assert_eq!(world.clients[0].replies, 1);
}
