//! Random commands: every reply must agree with that of a plain model, and with that of a Redis if there is one.
//!
//! A failure prints the seed; `HOLDFAST_TEST_SEED` runs the same commands again, `HOLDFAST_TEST_STEPS` runs more.

use wire::own::steps;
use wire::{Connection, History, Product, Random, Redis, Reply, Session};

use crate::commands::{Commands, KEYS};
use crate::model::{Model, sort};

#[test]
fn random_commands_agree_with_a_plain_model() {
    let session = Session::start();
    let mut connection = session.connect();
    let mut commands = Commands::for_a_model(Random::from_env());
    let mut model = Model::default();
    let mut history = History::default();
    let agree = |command: &str, expected: &Reply, received: &Reply| *expected == in_order(command, received.clone());
    let mut ask = |history: &mut History, commands: &[String]| {
        let received = connection.pipeline(commands);
        let answer = |(command, received): (&String, &Reply)| model.run(command, &in_order(command, received.clone()));
        let expected = commands.iter().zip(&received).map(answer).collect();
        history.compare(commands, expected, received, agree);
    };
    while history.len() < steps(10_000) {
        ask(&mut history, &commands.pipeline());
    }
    ask(&mut history, &Commands::readings());
}

#[test]
fn random_commands_agree_with_redis() {
    let Some(redis) = Redis::start() else { return wire::skip("there is no redis-server here") };
    let session = Session::start();
    let (mut connection, mut judge) = (session.connect(), redis.connect());
    // A low limit, so that there are integers in tables too.
    let _limit = IntsetLimit::set(&session, 4);
    judge.run("CONFIG SET set-max-intset-entries 4");
    let mut commands = Commands::for_a_judge(Random::from_env(), 5);
    let encodings = encodes_as_redis_7_0(&mut connection) && encodes_as_redis_7_0(&mut judge);
    let mut history = History::default();
    let agree = |command: &str, expected: &Reply, received: &Reply| {
        let is_compared = encodings || !command.starts_with("OBJECT ENCODING");
        !is_compared || in_order(command, expected.clone()) == in_order(command, received.clone())
    };
    while history.len() < steps(10_000) {
        let pipeline = commands.pipeline();
        history.compare(&pipeline, judge.pipeline(&pipeline), connection.pipeline(&pipeline), agree);
    }
    let digests = KEYS.iter().map(|key| format!("DEBUG DIGEST-VALUE {key}"));
    let readings: Vec<String> = Commands::readings().into_iter().chain(digests).collect();
    history.compare(&readings, judge.pipeline(&readings), connection.pipeline(&readings), agree);
    // An older Redis does not restore what a newer one dumps.
    if session.product() == Product::Holdfast || encodings {
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
