//! Random commands on the server under test and on a Redis beside it: every reply must be the same. Knows how the two are
//! compared; refuses to know what is asked, which a family of commands chooses.
//!
//! A failure prints the seed and the last commands; `HOLDFAST_TEST_SEED` runs the same again, `HOLDFAST_TEST_STEPS` runs more.

use std::fmt::Write as _;

use crate::connection::Connection;
use crate::random::Random;
use crate::redis::Redis;
use crate::session::{Product, Session};
use crate::skip::skip;
use crate::text::{quote, split_args};

/// Commands that travel together: sometimes one, sometimes many.
const PIPELINE_MAX: usize = 40;
/// How many of the last commands a failure shows.
const HISTORY_SHOWN: usize = 40;

/// Runs so many random commands on both servers, then the readings. Skips the test when there is no Redis, or when the
/// server under test is another version of Redis.
#[track_caller]
pub fn agree_with_redis(steps: usize, mut command: impl FnMut(&mut Random) -> String, readings: &[String]) {
    let Some(redis) = Redis::start() else { return skip("there is no redis-server") };
    let session = Session::start();
    if session.product() != Product::Holdfast {
        return skip("Redis agrees with itself");
    }
    let mut agreement = Agreement { ours: session.connect(), judge: redis.connect(), lines: Vec::new() };
    let mut random = Random::from_env();
    let steps = std::env::var("HOLDFAST_TEST_STEPS")
        .map_or(steps, |given| given.parse().expect("HOLDFAST_TEST_STEPS is a number"));
    let mut done = 0;
    while done < steps {
        let pipeline: Vec<String> = (0..1 + random.below(PIPELINE_MAX)).map(|_| command(&mut random)).collect();
        agreement.ask(&pipeline);
        done += pipeline.len();
    }
    for reading in readings {
        agreement.ask(std::slice::from_ref(reading));
    }
}

struct Agreement {
    ours: Connection,
    judge: Connection,
    /// The last commands and what they should have answered.
    lines: Vec<String>,
}

impl Agreement {
    #[track_caller]
    fn ask(&mut self, commands: &[String]) {
        let (expected, received) = (self.judge.pipeline(commands), self.ours.pipeline(commands));
        for ((command, expected), received) in commands.iter().zip(expected).zip(received) {
            if self.lines.len() >= 2 * HISTORY_SHOWN {
                self.lines.drain(..HISTORY_SHOWN);
            }
            self.lines.push(format!("> {command}\n{expected}"));
            if expected != received {
                let mut shown = String::new();
                for line in &self.lines[self.lines.len().saturating_sub(HISTORY_SHOWN)..] {
                    let _ = writeln!(shown, "{line}");
                }
                panic!("{shown}received: {received}");
            }
        }
    }
}

/// Leaves a word of a command out, says it twice, or puts an odd one in its place.
pub fn spoil(random: &mut Random, command: &str, odd_words: &[&str]) -> String {
    let words = split_args(command).expect("the command is well quoted");
    let mut words: Vec<String> = words.iter().map(|word| quote(word)).collect();
    let at = 1 + random.below(words.len().max(2) - 1);
    match random.below(4) {
        0 if at < words.len() => drop(words.remove(at)),
        1 if at < words.len() => words.insert(at, words[at].clone()),
        2 => words.insert(at.min(words.len()), random.pick(odd_words).to_owned()),
        _ if at < words.len() => words[at] = random.pick(odd_words).to_owned(),
        _ => {}
    }
    words.join(" ")
}
