//! What a client has read and another one changed: invalidation pushes, and the cache that the crate builds on them.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::caching::CacheConfig;
use redis::{AsyncCommands, AsyncConnectionConfig, Commands, ProtocolVersion, PushKind};
use redis_crate_suite::{PATIENCE, client, turn};

#[test]
fn pushes_name_what_has_changed() {
    let _turn = turn();
    let client = client(ProtocolVersion::RESP3, 0);
    let mut other = client.get_connection().unwrap();
    redis::cmd("FLUSHALL").exec(&mut other).unwrap();
    let mut con = client.get_connection().unwrap();
    let (sender, pushes) = mpsc::channel();
    con.set_push_sender(sender);
    redis::cmd("CLIENT").arg("TRACKING").arg("ON").exec(&mut con).unwrap();
    let _: Vec<Option<String>> = con.mget(&["a", "b", "c"]).unwrap();
    let _: Option<String> = con.hget("h", "f").unwrap();
    let _: () = other.set("a", 1).unwrap();
    let _: () = other.hset("h", "f", 1).unwrap();
    let _: () = other.set("untracked", 1).unwrap();
    let _: () = other.set("a", 2).unwrap();
    redis::pipe().atomic().set("b", 1).set("untracked", 2).exec(&mut other).unwrap();
    let mut told: Vec<Vec<String>> = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while told.len() < 3 && Instant::now() < deadline {
        let _: String = con.ping().unwrap(); // a blocking connection takes pushes when it reads
        told.extend(pushes.try_iter().filter(|push| push.kind == PushKind::Invalidate).map(|push| {
            let [keys] = <[_; 1]>::try_from(push.data).unwrap();
            redis::from_redis_value(keys).unwrap()
        }));
    }
    assert_eq!(told, [["a"], ["h"], ["b"]]);
}

async fn caching() -> (MultiplexedConnection, MultiplexedConnection) {
    let client = client(ProtocolVersion::RESP3, 0);
    let mut other = client.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("FLUSHALL").query_async(&mut other).await.unwrap();
    let config = AsyncConnectionConfig::new().set_cache_config(CacheConfig::new());
    (client.get_multiplexed_async_connection_with_config(&config).await.unwrap(), other)
}

/// The push travels beside the reply to whoever made the change: it may arrive a moment later.
async fn becomes(cached: &mut MultiplexedConnection, value: Option<&str>) {
    let read = async {
        while cached.hget::<_, _, Option<String>>("h", "f").await.unwrap().as_deref() != value {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, read).await.expect("the cache hears of the change");
}

#[test]
fn a_second_read_stays_in_the_process() {
    let _turn = turn();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (mut cached, mut other) = caching().await;
        let () = other.set("k", "v").await.unwrap();
        for _ in 0..10 {
            assert_eq!(cached.get::<_, String>("k").await.unwrap(), "v");
        }
        let statistics = cached.get_cache_statistics().unwrap();
        assert_eq!((statistics.hit, statistics.miss), (9, 1));
        let () = other.set("k", "w").await.unwrap();
        let hear = async {
            while cached.get_cache_statistics().unwrap().invalidate == 0 {
                let _: String = cached.ping().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, hear).await.expect("the cache hears of the change");
        assert_eq!(cached.get::<_, String>("k").await.unwrap(), "w");
    });
}

#[test]
fn every_kind_of_change_reaches_the_cache() {
    let _turn = turn();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let (mut cached, mut other) = caching().await;
        for (change, value) in [
            ("HSET h f new", Some("new")),
            ("HINCRBY h f 41", Some("42")),
            ("HDEL h f", None),
            ("DEL h", None),
            ("RENAME h elsewhere", None),
            ("PEXPIRE h 1", None),
            ("FLUSHALL", None),
        ] {
            let () = other.hset_multiple("h", &[("f", "1"), ("g", "2")]).await.unwrap();
            becomes(&mut cached, Some("1")).await;
            becomes(&mut cached, Some("1")).await;
            let mut words = change.split(' ');
            let mut cmd = redis::cmd(words.next().unwrap());
            words.for_each(|word| {
                cmd.arg(word);
            });
            let _: redis::Value = cmd.query_async(&mut other).await.unwrap();
            println!("{change}"); // shown only when the test fails
            becomes(&mut cached, value).await;
        }
        assert!(cached.get_cache_statistics().unwrap().hit >= 7);
    });
}
