//! The redis crate finds the writer by its Sentinels, and follows it: while it hands over, and when it is killed.

use redis::sentinel::{SentinelClient, SentinelServerType};
use redis::{Commands, Connection, RedisResult};
use redis_crate_suite::pair::{NAME, Pair, eventually};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::{scope, sleep};
use std::time::Duration;

const WRITES: u64 = 50;

/// Calls a function when it is dropped.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn client(pair: &Pair, role: SentinelServerType) -> SentinelClient {
    SentinelClient::build(pair.sentinels(), NAME, None, role).expect("addresses")
}

#[test]
fn it_finds_the_writer_and_its_follower() {
    let Some(pair) = Pair::start() else { return };
    let mut master = client(&pair, SentinelServerType::Master).get_connection().expect("the writer");
    let () = master.set("a", 1).expect("it writes");
    let mut replicas = client(&pair, SentinelServerType::Replica);
    eventually("the follower has it", || {
        let read = replicas.get_connection().and_then(|mut replica| replica.get::<_, Option<u64>>("a"));
        read.is_ok_and(|read| read == Some(1))
    });
}

#[test]
fn it_goes_on_through_a_hand_over_and_a_kill() {
    let Some(mut pair) = Pair::start() else { return };
    let mut sentinel = client(&pair, SentinelServerType::Master);
    let (acknowledged, has_to_end) = (AtomicU64::new(0), AtomicBool::new(false));
    scope(|scope| {
        scope.spawn(|| {
            let mut connection: Option<Connection> = None;
            while !has_to_end.load(SeqCst) {
                let number = acknowledged.load(SeqCst);
                // A connection is used as long as it works, as a pool does.
                let mut write = || -> RedisResult<()> {
                    let connected = match &mut connection {
                        Some(connected) => connected,
                        none => none.insert(sentinel.get_connection()?),
                    };
                    connected.set(format!("key:{number}"), number)
                };
                match write() {
                    Ok(()) => drop(acknowledged.fetch_add(1, SeqCst)),
                    Err(_) => {
                        connection = None;
                        sleep(Duration::from_millis(10));
                    }
                }
            }
        });
        // Also when a step fails: the writing thread is waited for.
        let _end = OnDrop(|| has_to_end.store(true, SeqCst));
        let more = || {
            let wanted = acknowledged.load(SeqCst) + WRITES;
            eventually("the client goes on", || acknowledged.load(SeqCst) >= wanted);
        };
        more();
        pair.hand_over();
        more();
        pair.hand_over();
        more();
        pair.kill_writer();
        more();
    });
    let all = 0..acknowledged.load(SeqCst);
    let keys: Vec<String> = all.clone().map(|number| format!("key:{number}")).collect();
    let written: Vec<u64> = pair.writer.connect().expect("connect").mget(&keys).expect("every key");
    assert_eq!(written, all.collect::<Vec<u64>>());
}
