//! The multiplexed tokio connection: many requests in flight over one socket, pipelines and scans.

use std::collections::{HashMap, HashSet};

use futures_util::StreamExt;
use futures_util::future::join_all;
use redis::AsyncCommands;
use redis_crate_suite::both_async;

#[test]
fn commands() {
    both_async(async |_, mut con| {
        let _: () = con.set_ex("k", "v", 100).await.unwrap();
        assert_eq!(con.get::<_, String>("k").await.unwrap(), "v");
        let _: () = con.hset_multiple("h", &[("a", 1), ("b", 2)]).await.unwrap();
        let all: HashMap<String, i64> = con.hgetall("h").await.unwrap();
        assert_eq!(all, HashMap::from([("a".into(), 1), ("b".into(), 2)]));
        assert_eq!(con.hget::<_, _, i64>("k", "f").await.unwrap_err().code(), Some("WRONGTYPE"));
    });
}

#[test]
fn replies_find_their_requests() {
    both_async(async |_, con| {
        let one = async |i: i64| -> i64 {
            let mut con = con.clone();
            let _: () = con.set(format!("k{i}"), i).await.unwrap();
            con.get(format!("k{i}")).await.unwrap()
        };
        let replies = join_all((0..500).map(one)).await;
        assert!(replies.into_iter().eq(0..500));
    });
}

#[test]
fn counting_from_many_tasks() {
    both_async(async |_, con| {
        let tasks = (0..8).map(|_| {
            let mut con = con.clone();
            tokio::spawn(async move {
                for _ in 0..100 {
                    let _: i64 = con.incr("n", 1).await.unwrap();
                }
            })
        });
        for task in join_all(tasks).await {
            task.unwrap();
        }
        assert_eq!(con.clone().get::<_, i64>("n").await.unwrap(), 800);
    });
}

#[test]
fn pipelines() {
    both_async(async |_, mut con| {
        let mut pipe = redis::pipe();
        for i in 0..1000 {
            pipe.hset("h", i, i).ignore();
        }
        let (length,): (usize,) = pipe.hlen("h").query_async(&mut con).await.unwrap();
        assert_eq!(length, 1000);
    });
}

#[test]
fn scans() {
    both_async(async |_, mut con| {
        let keys: HashSet<String> = (0..500).map(|i| format!("key:{i}")).collect();
        let _: () = con.mset(&keys.iter().map(|key| (key, "v")).collect::<Vec<_>>()).await.unwrap();
        let seen: HashSet<String> = con.scan_match("key:*").await.unwrap().map(Result::unwrap).collect().await;
        assert_eq!(seen, keys);
    });
}

#[test]
fn large_values_beside_small_ones() {
    both_async(async |_, con| {
        let big = vec![b'x'; 10 << 20];
        let (mut one, mut two) = (con.clone(), con.clone());
        let large = async {
            let _: () = one.set("big", &big).await.unwrap();
            one.get::<_, Vec<u8>>("big").await.unwrap()
        };
        let small = async {
            for i in 0..100 {
                assert_eq!(two.incr::<_, _, i64>("n", 1).await.unwrap(), i + 1);
            }
        };
        let (back, ()) = tokio::join!(large, small);
        assert!(back == big);
    });
}
