//! Random commands: every reply must agree with that of a plain model, and with that of a Redis if there is one, byte for byte
//! but for times.
//!
//! A failure prints the seed; `HOLDFAST_TEST_SEED` runs the same commands again, `HOLDFAST_TEST_STEPS` runs more.

use std::fmt::Write as _;

use wire::{Connection, Product, Random, Redis, Reply, Session};

use crate::commands::{Commands, KEYS};
use crate::model::Model;

/// Commands that travel together: sometimes one, sometimes many.
const PIPELINE_MAX: usize = 40;
/// How many of the last commands a failure shows.
const HISTORY_SHOWN: usize = 60;
/// After so many commands all there is is compared.
const COMMANDS_BETWEEN_READINGS: usize = 2_000;
/// The year 2001 in unix milliseconds: what is above is a time of now.
const TIMES_FROM_MS: i64 = 1_000_000_000_000;

#[test]
fn random_commands_agree_with_a_plain_model() {
    let session = Session::start();
    if !session.has_redis("8.0") {
        return wire::skip("# needs redis >= 8.0, this is Redis 7.0.* or another that counts lags in another way");
    }
    let mut connection = session.connect();
    let mut commands = Commands::sound(Random::from_env());
    let (mut model, mut history) = (Model::default(), History::default());
    while history.count < steps(6_000) {
        let pipeline = commands.pipeline(PIPELINE_MAX);
        let expected = pipeline.iter().map(|command| model.run(command)).collect();
        let mut received = connection.pipeline(&pipeline);
        received.iter_mut().for_each(hide_nodes);
        history.compare(&pipeline, expected, received);
    }
    let readings = Commands::readings();
    let expected = readings.iter().map(|command| model.run(command)).collect();
    let mut received = connection.pipeline(&readings);
    received.iter_mut().for_each(hide_nodes);
    history.compare(&readings, expected, received);
}

/// Takes the figures away that tell how entries are packed, of which the model knows nothing.
fn hide_nodes(reply: &mut Reply) {
    let Reply::Array(items) = reply else { return };
    for at in 1..items.len() {
        let is_figure = matches!(&items[at - 1], Reply::Bulk(name) if name.starts_with(b"radix-tree-"));
        if is_figure && let Reply::Integer(number) = &mut items[at] {
            *number = 0;
        }
    }
}

#[test]
fn random_commands_agree_with_redis() {
    let Some(redis) = Redis::start() else {
        wire::skip("there is no redis-server");
        return;
    };
    let session = Session::start();
    let (mut connection, mut judge) = (session.connect(), redis.connect());
    let is_old = is_before(&mut judge, &["6.", "7.0."]);
    let counts_otherwise = is_before(&mut judge, &["6.", "7."]);
    let mut commands = match is_old {
        true => Commands::for_redis_7_0(Random::from_env()),
        false => Commands::new(Random::from_env()),
    };
    let ask = |connection: &mut Connection, pipeline: &[String]| {
        let mut replies = connection.pipeline(pipeline);
        if counts_otherwise {
            replies.iter_mut().for_each(hide_news);
        }
        replies
    };
    let mut history = History::default();
    let mut read_at = COMMANDS_BETWEEN_READINGS;
    while history.count < steps(5_000) {
        let pipeline = commands.pipeline(PIPELINE_MAX);
        history.compare(&pipeline, ask(&mut judge, &pipeline), ask(&mut connection, &pipeline));
        if history.count >= read_at {
            let readings = Commands::readings();
            history.compare(&readings, ask(&mut judge, &readings), ask(&mut connection, &readings));
            read_at += COMMANDS_BETWEEN_READINGS;
        }
    }
    let readings = Commands::readings();
    history.compare(&readings, ask(&mut judge, &readings), ask(&mut connection, &readings));
    // The commands have set them; other tests rely on what they are by default.
    connection.run("CONFIG SET stream-node-max-entries 100 stream-node-max-bytes 4096");
    take_over(&mut connection, &mut judge, is_old);
    // Redis 7.0 restores no payload of Redis 7.2.
    if session.product() == Product::Holdfast && !is_old {
        take_over(&mut judge, &mut connection, false);
    }
}

/// Whether the version of a Redis begins in one of these ways.
fn is_before(judge: &mut Connection, versions: &[&str]) -> bool {
    let Reply::Bulk(info) = judge.run("INFO server") else { panic!("INFO tells of the server") };
    let info = String::from_utf8_lossy(&info);
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:")).expect("a version");
    versions.iter().any(|older| version.starts_with(older))
}

/// Takes away what Redis 7.2 has added to replies, and the counts that Redis 8.0 computes better.
fn hide_news(reply: &mut Reply) {
    if let Reply::Error(text) = reply
        && text.starts_with(b"ERR Unbalanced")
    {
        *text = b"ERR Unbalanced".to_vec();
    }
    let Reply::Array(items) = reply else { return };
    items.iter_mut().for_each(hide_news);
    let place = |items: &[Reply], word: &str| {
        items.iter().position(|item| matches!(item, Reply::Bulk(name) if name == word.as_bytes()))
    };
    let is_row = matches!(items.first(), Some(Reply::Bulk(name)) if name == b"name");
    for added in ["inactive", "active-time", "nacked-count"] {
        if let Some(at) = place(items, added).filter(|_| is_row) {
            items.drain(at..at + 2);
        }
    }
    for counted in ["entries-read", "lag"] {
        if let Some(at) = place(items, counted).filter(|_| is_row) {
            items[at + 1] = Reply::NilBulk;
        }
    }
}

/// What one dumps, the other restores, and, unless the first is too old for it, what that dumps in turn is the same to
/// the first. The bytes in between may be compressed in another way.
fn take_over(to: &mut Connection, from: &mut Connection, from_is_old: bool) {
    for key in KEYS {
        let Reply::Bulk(dump) = from.run(&format!("DUMP {key}")) else { continue };
        let restored = to.run_with("RESTORE taken-over 0", &[&dump, b"REPLACE"]);
        assert_eq!(restored.to_string(), "+OK", "{key}: {dump:?}");
        if !from_is_old {
            let Reply::Bulk(back) = to.run("DUMP taken-over") else { panic!("it was restored") };
            assert_eq!(from.run_with("RESTORE taken-back 0", &[&back, b"REPLACE"]).to_string(), "+OK", "{key}");
            assert_eq!(from.run("DUMP taken-back"), Reply::Bulk(dump), "{key}");
            from.run("DEL taken-back");
        }
        let (expected, found) = (Commands::readings_of(key), Commands::readings_of("taken-over"));
        let (mut expected, mut found) = (from.pipeline(&expected), to.pipeline(&found));
        if from_is_old {
            expected.iter_mut().chain(&mut found).for_each(hide_news);
        }
        assert_eq!(found, expected, "{key}");
        to.run("DEL taken-over");
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
    count: usize,
}

impl History {
    #[track_caller]
    fn compare(&mut self, commands: &[String], expected: Vec<Reply>, received: Vec<Reply>) {
        for ((command, expected), received) in commands.iter().zip(expected).zip(received) {
            self.count += 1;
            let is_fine = agree(&expected, &received, idle_place(command));
            self.lines.push(format!("> {command}\n{expected}"));
            if !is_fine {
                let mut shown = String::new();
                for line in &self.lines[self.lines.len().saturating_sub(HISTORY_SHOWN)..] {
                    let _ = writeln!(shown, "{line}");
                }
                panic!("{shown}received: {received}");
            }
            if self.lines.len() > 2 * HISTORY_SHOWN {
                self.lines.drain(..HISTORY_SHOWN);
            }
        }
    }
}

/// Where in each row of a reply it says for how long something was idle.
fn idle_place(command: &str) -> Option<usize> {
    match command.split(' ').collect::<Vec<_>>()[..] {
        ["XPENDING", _, _, _, ..] => Some(2),
        ["XINFO", "CONSUMERS", ..] => Some(5),
        _ => None,
    }
}

/// Whether two replies are the same, but for the time.
fn agree(expected: &Reply, received: &Reply, idle_at: Option<usize>) -> bool {
    match (expected, received) {
        (Reply::Integer(expected), Reply::Integer(received)) => {
            expected == received || *expected > TIMES_FROM_MS && *received > TIMES_FROM_MS
        }
        (Reply::Array(expected), Reply::Array(received)) => {
            let is_idle = |at: usize| idle_at == Some(at) && expected.len() > 1;
            expected.len() == received.len()
                && expected.iter().zip(received).enumerate().all(|(at, (a, b))| match (a, b) {
                    (Reply::Integer(_), Reply::Integer(_)) if is_idle(at) => true,
                    // For how long a consumer got nothing; below 0 if it never got anything.
                    (Reply::Integer(a), Reply::Integer(b)) if is_idle(5) && at == 7 => (*a < 0) == (*b < 0),
                    _ => agree(a, b, idle_at),
                })
        }
        (expected, received) => expected == received,
    }
}
