//! Random commands: every reply must agree with that of a Redis, if there is one.
//!
//! A failure prints the seed; `HOLDFAST_TEST_SEED` runs the same commands again, `HOLDFAST_TEST_STEPS` runs more.

use wire::own::steps;
use wire::{Connection, History, Product, Random, Redis, Reply, Session};

use crate::commands::{Commands, KEYS, LEX_KEY};

#[test]
fn random_commands_agree_with_redis() {
    let Some(redis) = Redis::start() else { return wire::skip("there is no redis-server") };
    let session = Session::start();
    let (mut connection, mut judge) = (session.connect(), redis.connect());
    let mut commands = Commands::new(Random::from_env());
    let mut history = History::default();
    let exact = print_alike(&mut connection, &mut judge);
    let agree = |_: &str, expected: &Reply, received: &Reply| agree(expected, received, exact);
    while history.len() < steps(20_000) {
        let pipeline = commands.pipeline();
        history.compare(&pipeline, judge.pipeline(&pipeline), connection.pipeline(&pipeline), agree);
    }
    let readings = Commands::readings();
    history.compare(&readings, judge.pipeline(&readings), connection.pipeline(&readings), agree);
    // What Redis dumps, this server restores.
    if session.product() == Product::Holdfast {
        for key in KEYS.iter().chain([&LEX_KEY]) {
            let Reply::Bulk(dump) = judge.run(&format!("DUMP {key}")) else { continue };
            let restored = connection.run_with("RESTORE taken-over 0", &[&dump, b"REPLACE"]);
            assert_eq!(restored.to_string(), "+OK", "{key}: {dump:?}");
            let question = ["ZRANGE taken-over 0 -1 WITHSCORES".to_owned()];
            let expected = vec![judge.run(&format!("ZRANGE {key} 0 -1 WITHSCORES"))];
            history.compare(&question, expected, connection.pipeline(&question), agree);
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
