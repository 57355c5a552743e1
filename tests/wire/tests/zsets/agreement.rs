//! Random commands: every reply must agree with that of a plain model, and with that of a Redis if there is one.
//!
//! A failure prints the seed; `HOLDFAST_TEST_SEED` runs the same commands again, `HOLDFAST_TEST_STEPS` runs more.

use std::fmt::Write as _;

use wire::{Connection, Product, Random, Redis, Reply, Session};

use crate::commands::{Commands, KEYS, LEX_KEY};
use crate::model::Model;

/// Commands that travel together: sometimes one, sometimes many.
const PIPELINE_MAX: usize = 40;
/// How many of the last commands a failure shows.
const HISTORY_SHOWN: usize = 40;

#[test]
fn random_commands_agree_with_a_plain_model() {
    let session = Session::start();
    let mut connection = session.connect();
    let mut commands = Commands::sound(Random::from_env());
    let mut model = Model::default();
    let mut history = History::default();
    while history.len() < steps(30_000) {
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
        wire::skip("there is no redis-server");
        return;
    };
    let session = Session::start();
    let (mut connection, mut judge) = (session.connect(), redis.connect());
    let mut commands = Commands::with_odd_ones(Random::from_env(), 4);
    let mut history = History { exact: print_alike(&mut connection, &mut judge), ..History::default() };
    while history.len() < steps(10_000) {
        let pipeline = commands.pipeline(PIPELINE_MAX);
        history.compare(&pipeline, judge.pipeline(&pipeline), connection.pipeline(&pipeline));
    }
    let readings = Commands::readings();
    history.compare(&readings, judge.pipeline(&readings), connection.pipeline(&readings));
    if session.product() == Product::Holdfast {
        take_over(&mut connection, &mut judge);
    }
}

/// What Redis dumps, this server restores.
fn take_over(connection: &mut Connection, judge: &mut Connection) {
    for key in KEYS.iter().chain([&LEX_KEY]) {
        let Reply::Bulk(dump) = judge.run(&format!("DUMP {key}")) else { continue };
        let restored = connection.run_with("RESTORE taken-over 0", &[&dump, b"REPLACE"]);
        assert_eq!(restored.to_string(), "+OK", "{key}: {dump:?}");
        let question = ["ZRANGE taken-over 0 -1 WITHSCORES".to_owned()];
        let expected = judge.run(&format!("ZRANGE {key} 0 -1 WITHSCORES"));
        History::default().compare(&question, vec![expected], connection.pipeline(&question));
    }
}

/// How many commands to run: what `HOLDFAST_TEST_STEPS` says, or so many.
fn steps(default: usize) -> usize {
    match std::env::var("HOLDFAST_TEST_STEPS") {
        Ok(given) => given.parse().expect("HOLDFAST_TEST_STEPS is a number"),
        Err(_) => default,
    }
}

/// The commands up to now and what they should have answered.
#[derive(Default)]
struct History {
    lines: Vec<String>,
    /// Whether numbers must be printed with the same digits.
    exact: bool,
}

impl History {
    fn len(&self) -> usize {
        self.lines.len()
    }

    #[track_caller]
    fn compare(&mut self, commands: &[String], expected: Vec<Reply>, received: Vec<Reply>) {
        for ((command, expected), received) in commands.iter().zip(expected).zip(received) {
            self.lines.push(format!("> {command}\n{expected}"));
            if !agree(&expected, &received, self.exact) {
                let mut shown = String::new();
                for line in &self.lines[self.lines.len().saturating_sub(HISTORY_SHOWN)..] {
                    let _ = writeln!(shown, "{line}");
                }
                panic!("{shown}received: {received}");
            }
        }
    }
}

/// Whether two replies mean the same. A number may be printed in more than one way where the digits are not `exact`; 0 may
/// always, as Redis drops the sign of a negative one here and there.
fn agree(expected: &Reply, received: &Reply, exact: bool) -> bool {
    match (expected, received) {
        // Up to 7.0 a time that is too large overflows in Redis and is called negative.
        (Reply::Error(expected), Reply::Error(received))
            if expected == b"ERR timeout is negative" && received == b"ERR timeout is out of range" =>
        {
            true
        }
        (Reply::Bulk(expected), Reply::Bulk(received)) if expected != received => {
            let number = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
            let may_differ = |number: &f64| !exact || *number == 0.0;
            number(expected).filter(may_differ).is_some_and(|expected| Some(expected) == number(received))
        }
        (Reply::Array(expected), Reply::Array(received)) => {
            expected.len() == received.len() && expected.iter().zip(received).all(|(a, b)| agree(a, b, exact))
        }
        (expected, received) => expected == received,
    }
}

/// Whether two servers print numbers alike: the digits have changed with Redis 7.2.
fn print_alike(one: &mut Connection, other: &mut Connection) -> bool {
    let probe = ["ZADD probe 0.1 m", "ZSCORE probe m", "DEL probe"];
    one.pipeline(&probe)[1] == other.pipeline(&probe)[1]
}
