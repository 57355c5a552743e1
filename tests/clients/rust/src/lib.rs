//! What the suites share: where the server is, and one empty server at a time for both protocols.
//! Knows nothing of which server answers. It is aimed by HOLDFAST_TEST_ADDR=host:port, and emptied.

#![forbid(unsafe_code)]

pub mod pair;

use std::env;
use std::io::{Write, stderr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, Connection, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

pub const PROTOCOLS: [ProtocolVersion; 2] = [ProtocolVersion::RESP2, ProtocolVersion::RESP3];

/// The first second of the year 2100.
pub const FAR: u64 = 4_102_444_800;

/// How a worker claims a job: KEYS[1] is the job's hash; ARGV: field, expected value, new value. Replies with 1 or 0.
pub const COMPARE_AND_SWAP: &str = include_str!("../../compare_and_swap.lua");

/// How long to wait for what is bound to come, before the test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a test over RESP2, then over RESP3, each time in front of an empty server.
pub fn both(test: impl Fn(&mut Connection)) {
    both_clients(|_, connection| test(connection));
}

/// The same for tests that open more than one connection.
pub fn both_clients(test: impl Fn(&Client, &mut Connection)) {
    let _turn = turn();
    for protocol in PROTOCOLS {
        println!("over {protocol:?}"); // shown only when the test fails
        let client = client(protocol, 0);
        let mut connection = client.get_connection().expect("connect");
        redis::cmd("FLUSHALL").exec(&mut connection).expect("empty the server");
        test(&client, &mut connection);
    }
}

/// The same with the multiplexed tokio connection.
pub fn both_async(test: impl AsyncFn(Client, MultiplexedConnection)) {
    let _turn = turn();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        for protocol in PROTOCOLS {
            println!("over {protocol:?}"); // shown only when the test fails
            let client = client(protocol, 0);
            let mut connection = client.get_multiplexed_async_connection().await.expect("connect");
            let () = redis::cmd("FLUSHALL").query_async(&mut connection).await.expect("empty the server");
            test(client, connection).await;
        }
    });
}

/// Tests share one server: each holds its turn while it runs.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn client(protocol: ProtocolVersion, db: i64) -> Client {
    Client::open(connection_info(protocol, db)).expect("a valid address")
}

pub fn connection_info(protocol: ProtocolVersion, db: i64) -> ConnectionInfo {
    let address = env::var("HOLDFAST_TEST_ADDR").expect("HOLDFAST_TEST_ADDR=host:port");
    let info = format!("redis://{address}").into_connection_info().expect("host:port");
    let settings = info.redis_settings().clone().set_protocol(protocol).set_db(db);
    info.set_redis_settings(settings)
}

/// Whether the server is older than the command; says so past the test runner's capture, as the test then checks nothing.
pub fn lacks(connection: &mut Connection, command: &str) -> bool {
    let known: Vec<redis::Value> =
        redis::cmd("COMMAND").arg("INFO").arg(command).query(connection).expect("COMMAND INFO");
    let missing = known == [redis::Value::Nil];
    if missing {
        let _ = writeln!(stderr(), "not checked: the server has no {command}");
    }
    missing
}
