//! Random commands: every reply must agree with that of a plain model, and with that of a Redis if there is one.
//!
//! A failure prints the seed; `HOLDFAST_TEST_SEED` runs the same commands again, `HOLDFAST_TEST_STEPS` runs more.

use std::fmt::Write as _;

use wire::{Connection, Random, Redis, Reply, Session};

use crate::commands::{Commands, KEYS};
use crate::model::Model;

/// Commands that travel together: sometimes one, sometimes many.
const PIPELINE_MAX: usize = 40;
/// How many of the last commands a failure shows.
const HISTORY_SHOWN: usize = 40;
/// After so many commands, what one server dumps the other restores.
const EXCHANGED_EVERY: usize = 2_000;

#[test]
fn random_commands_agree_with_a_plain_model() {
    let session = Session::start();
    let mut connection = session.connect();
    let mut commands = Commands::sound(Random::from_env());
    let mut model = Model::default();
    let mut history = History::default();
    while history.count < steps(20_000) {
        let pipeline = commands.pipeline(PIPELINE_MAX);
        let expected = pipeline.iter().map(|command| model.run(command)).collect();
        history.compare(&pipeline, expected, connection.pipeline(&pipeline));
    }
    let readings = Commands::readings();
    let expected = readings.iter().map(|command| model.run(command)).collect();
    history.compare(&readings, expected, connection.pipeline(&readings));
}

#[test]
fn random_commands_agree_with_redis() {
    let Some(redis) = Redis::start() else {
        return wire::skip("there is no redis-server here");
    };
    let session = Session::start();
    let (mut connection, mut judge) = (session.connect(), redis.connect());
    let mut commands = Commands::with_odd_ones(Random::from_env(), 6);
    let (mut history, mut exchanged) = (History::default(), 0);
    while history.count < steps(10_000) {
        // A key of another type is met now and then.
        let pipeline = match history.count % 7 {
            0 => vec!["SET text v".to_owned()],
            _ => commands.pipeline(PIPELINE_MAX),
        };
        history.compare(&pipeline, judge.pipeline(&pipeline), connection.pipeline(&pipeline));
        if history.count >= exchanged + EXCHANGED_EVERY {
            exchanged = history.count;
            for key in KEYS {
                exchange(key, &mut judge, &mut connection);
            }
        }
    }
    let readings = Commands::readings();
    history.compare(&readings, judge.pipeline(&readings), connection.pipeline(&readings));
    let digest = ["DEBUG DIGEST".to_owned()];
    history.compare(&digest, judge.pipeline(&digest), connection.pipeline(&digest));
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

/// How many commands to run: what `HOLDFAST_TEST_STEPS` says, or so many.
fn steps(default: usize) -> usize {
    match std::env::var("HOLDFAST_TEST_STEPS") {
        Ok(given) => given.parse().expect("HOLDFAST_TEST_STEPS is a number"),
        Err(_) => default,
    }
}

/// The last commands and what they should have answered.
#[derive(Default)]
struct History {
    lines: Vec<String>,
    count: usize,
}

impl History {
    #[track_caller]
    fn compare(&mut self, commands: &[String], expected: Vec<Reply>, received: Vec<Reply>) {
        for ((command, expected), received) in commands.iter().zip(expected).zip(received) {
            if self.lines.len() > 10 * HISTORY_SHOWN {
                self.lines.drain(..9 * HISTORY_SHOWN);
            }
            self.count += 1;
            self.lines.push(format!("> {command}\n{expected}"));
            if expected != received {
                let mut shown = String::new();
                for line in &self.lines[self.lines.len().saturating_sub(HISTORY_SHOWN)..] {
                    let _ = writeln!(shown, "{}", line.chars().take(2_000).collect::<String>());
                }
                panic!("{shown}received: {received}");
            }
        }
    }
}
