//! Random commands: every reply must agree with that of a plain model, and with that of a Redis if there is one.
//!
//! A failure prints the seed; `HOLDFAST_TEST_SEED` runs the same commands again, `HOLDFAST_TEST_STEPS` runs more.

use std::fmt::Write as _;

use wire::{Connection, Product, Random, Redis, Reply, Session};

use crate::commands::{Commands, KEYS};
use crate::model::{Model, sort};

/// Commands that travel together: sometimes one, sometimes many.
const PIPELINE_MAX: usize = 40;
/// How many of the last commands a failure shows.
const HISTORY_SHOWN: usize = 40;

#[test]
fn random_commands_agree_with_a_plain_model() {
    let session = Session::start();
    let mut connection = session.connect();
    let mut commands = Commands::for_a_model(Random::from_env());
    let mut model = Model::default();
    let mut history = History::default();
    while history.lines.len() < steps(20_000) {
        let pipeline = commands.pipeline(PIPELINE_MAX);
        let received = connection.pipeline(&pipeline);
        for (command, received) in pipeline.iter().zip(received) {
            history.compare(command, model.run(command, &received), received);
        }
    }
    for question in Commands::readings() {
        let received = connection.run(&question);
        history.compare(&question, model.run(&question, &received), received);
    }
}

#[test]
fn random_commands_agree_with_redis() {
    let Some(redis) = Redis::start() else {
        return wire::skip("there is no redis-server here");
    };
    let session = Session::start();
    let (mut connection, mut judge) = (session.connect(), redis.connect());
    // A low limit, so that there are integers in tables too.
    let _limit = IntsetLimit::set(&session, 4);
    judge.run("CONFIG SET set-max-intset-entries 4");
    let mut commands = Commands::for_a_judge(Random::from_env(), 5);
    let encodings = encodes_as_redis_7_0(&mut connection) && encodes_as_redis_7_0(&mut judge);
    let mut history = History { encodings, ..History::default() };
    while history.lines.len() < steps(10_000) {
        let pipeline = commands.pipeline(PIPELINE_MAX);
        let (expected, received) = (judge.pipeline(&pipeline), connection.pipeline(&pipeline));
        for ((command, expected), received) in pipeline.iter().zip(expected).zip(received) {
            history.compare(command, expected, received);
        }
    }
    let digests = KEYS.iter().map(|key| format!("DEBUG DIGEST-VALUE {key}"));
    for question in Commands::readings().into_iter().chain(digests) {
        history.compare(&question, judge.run(&question), connection.run(&question));
    }
    // An older Redis does not restore what a newer one dumps.
    if session.product() == Product::Holdfast || history.encodings {
        for key in KEYS {
            take_over(key, &mut judge, &mut connection);
            take_over(key, &mut connection, &mut judge);
        }
    }
}

/// What one server dumps, the other restores.
fn take_over(key: &str, from: &mut Connection, to: &mut Connection) {
    let Reply::Bulk(dump) = from.run(&format!("DUMP {key}")) else { return };
    let restored = to.run_with("RESTORE taken-over 0", &[&dump, b"REPLACE"]);
    assert_eq!(restored.to_string(), "+OK", "{key}: {dump:?}");
    let digest = |connection: &mut Connection, key: &str| {
        connection.run(&format!("PERSIST {key}"));
        connection.run(&format!("DEBUG DIGEST-VALUE {key}"))
    };
    assert_eq!(digest(from, key), digest(to, "taken-over"), "{key}: {dump:?}");
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
    /// Whether encodings must be the same.
    encodings: bool,
}

impl History {
    #[track_caller]
    fn compare(&mut self, command: &str, expected: Reply, received: Reply) {
        let (expected, received) = (in_order(command, expected), in_order(command, received));
        self.lines.push(format!("> {command}\n{expected}"));
        let is_compared = self.encodings || !command.starts_with("OBJECT ENCODING");
        if is_compared && expected != received {
            let mut shown = String::new();
            for line in &self.lines[self.lines.len().saturating_sub(HISTORY_SHOWN)..] {
                let _ = writeln!(shown, "{line}");
            }
            panic!("{shown}received: {received}");
        }
    }
}

/// Whether a server encodes sets as Redis 7.0 does. Since 7.2, and here, there is one encoding more, and which one the result
/// of a union gets depends on the order of the members in a table.
fn encodes_as_redis_7_0(connection: &mut Connection) -> bool {
    let probe = ["SADD probe x", "OBJECT ENCODING probe", "DEL probe"];
    connection.pipeline(&probe)[1].text() == "hashtable"
}

/// The reply with the members of a set in order.
fn in_order(command: &str, mut reply: Reply) -> Reply {
    let name = command.split(' ').next().unwrap_or_default();
    if ["SMEMBERS", "SINTER", "SUNION", "SDIFF", "SPOP", "SRANDMEMBER", "SSCAN"].contains(&name)
        && let Reply::Array(items) = &mut reply
    {
        match items.as_mut_slice() {
            // The members of a step of SSCAN.
            [_, Reply::Array(members)] => sort(members),
            members => sort(members),
        }
    }
    reply
}

/// Sets the limit of intsets on the tested server, and puts it back in the end, even if the test fails.
struct IntsetLimit<'a> {
    session: &'a Session,
}

impl IntsetLimit<'_> {
    fn set(session: &Session, limit: usize) -> IntsetLimit<'_> {
        session.connect().run(&format!("CONFIG SET set-max-intset-entries {limit}"));
        IntsetLimit { session }
    }
}

impl Drop for IntsetLimit<'_> {
    fn drop(&mut self) {
        self.session.connect().run("CONFIG SET set-max-intset-entries 512");
    }
}
