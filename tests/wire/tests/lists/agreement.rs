//! Random commands: every reply must agree with that of a Redis, if there is one.
//!
//! A failure prints the seed; `HOLDFAST_TEST_SEED` runs the same commands again, `HOLDFAST_TEST_STEPS` runs more.

use wire::own::steps;
use wire::{Connection, History, Random, Redis, Reply, Session};

use crate::commands::{Commands, KEYS};

/// After so many commands, what one server dumps the other restores.
const EXCHANGED_EVERY: usize = 2_000;

#[test]
fn random_commands_agree_with_redis() {
    let Some(redis) = Redis::start() else { return wire::skip("there is no redis-server here") };
    let session = Session::start();
    let (mut connection, mut judge) = (session.connect(), redis.connect());
    let mut commands = Commands::new(Random::from_env());
    let (mut history, mut exchanged) = (History::default(), 0);
    let agree = |_: &str, expected: &Reply, received: &Reply| expected == received;
    while history.len() < steps(15_000) {
        // A key of another type is met now and then.
        let pipeline = match history.len() % 7 {
            0 => vec!["SET text v".to_owned()],
            _ => commands.pipeline(),
        };
        history.compare(&pipeline, judge.pipeline(&pipeline), connection.pipeline(&pipeline), agree);
        if history.len() >= exchanged + EXCHANGED_EVERY {
            exchanged = history.len();
            for key in KEYS {
                exchange(key, &mut judge, &mut connection);
            }
        }
    }
    let readings = Commands::readings();
    history.compare(&readings, judge.pipeline(&readings), connection.pipeline(&readings), agree);
}

/// Each server goes on with what the other has dumped.
fn exchange(key: &str, one: &mut Connection, other: &mut Connection) {
    let dump = format!("DUMP {key}");
    let (Reply::Bulk(first), Reply::Bulk(second)) = (one.run(&dump), other.run(&dump)) else { return };
    for (connection, payload) in [(&mut *other, first), (one, second)] {
        let restored = connection.run_with(&format!("RESTORE {key} 0"), &[&payload, b"REPLACE"]);
        assert_eq!(restored.to_string(), "+OK", "{key}: {payload:?}");
    }
}
