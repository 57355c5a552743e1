//! Scripts and transactions: `Script` by digest, in pipelines and from many threads, and the `transaction` helpers with WATCH.

use std::collections::HashMap;
use std::sync::Barrier;
use std::thread;

use futures_util::future::join_all;
use redis::aio::transaction_async;
use redis::{AsyncCommands, Client, Commands, Connection, ErrorKind, Script, ServerErrorKind, Value};
use redis_crate_suite::{COMPARE_AND_SWAP, both, both_async, both_clients};

fn forget_scripts(con: &mut Connection) {
    redis::cmd("SCRIPT").arg("FLUSH").exec(con).unwrap();
}

fn knows(con: &mut Connection, script: &Script) -> bool {
    let known: Vec<bool> = redis::cmd("SCRIPT").arg("EXISTS").arg(script.get_hash()).query(con).unwrap();
    known == [true]
}

#[test]
fn a_script_is_loaded_when_the_server_has_forgotten_it() {
    both(|con| {
        let script = Script::new(COMPARE_AND_SWAP);
        let _: () = con.hset("job", "state", "pending").unwrap();
        for (from, to) in [("pending", "claimed"), ("claimed", "running")] {
            forget_scripts(con);
            assert!(!knows(con, &script));
            let swapped: bool = script.key("job").arg("state").arg(from).arg(to).invoke(con).unwrap();
            assert!(swapped && knows(con, &script));
            let swapped: bool = script.key("job").arg("state").arg(from).arg(to).invoke(con).unwrap();
            assert!(!swapped);
        }
        assert_eq!(script.load(con).unwrap(), script.get_hash());
    });
}

#[test]
fn scripts_in_pipelines() {
    both(|con| {
        forget_scripts(con);
        let script = Script::new(COMPARE_AND_SWAP);
        let mut claim = script.key("job");
        claim.arg("state").arg("pending").arg("claimed");
        for atomic in [false, true] {
            let mut pipe = redis::pipe();
            if atomic {
                pipe.atomic();
            }
            let (first, second, state): (i64, i64, String) = pipe
                .load_script(&script)
                .ignore()
                .hset("job", "state", "pending")
                .ignore()
                .invoke_script(&claim)
                .invoke_script(&claim)
                .hget("job", "state")
                .query(con)
                .unwrap();
            assert_eq!((first, second, state.as_str()), (1, 0, "claimed"));
        }
    });
}

#[test]
fn what_a_script_returns() {
    both_clients(|client, con| {
        let resp3 = client.get_connection_info().redis_settings().protocol() == redis::ProtocolVersion::RESP3;
        let reply: (String, i64, i64, Option<String>) =
            Script::new("return {KEYS[1] .. ARGV[1], 3.99, true, false}").key("k").arg("a").invoke(con).unwrap();
        assert_eq!(reply, ("ka".into(), 3, 1, None));
        let _: () = con.hset("h", "f", "v").unwrap();
        let whole: Value =
            Script::new("redis.setresp(3) return redis.call('HGETALL', KEYS[1])").key("h").invoke(con).unwrap();
        assert_eq!(matches!(whole, Value::Map(_)), resp3);
        assert_eq!(
            redis::from_redis_value::<HashMap<String, String>>(whole).unwrap(),
            HashMap::from([("f".into(), "v".into())])
        );
        let truth: Value = Script::new("redis.setresp(3) return true").invoke(con).unwrap();
        assert_eq!(truth, if resp3 { Value::Boolean(true) } else { Value::Int(1) });
    });
}

#[test]
fn errors_of_a_script() {
    both(|con| {
        let _: () = con.set("text", "abc").unwrap();
        let script = Script::new(COMPARE_AND_SWAP);
        let refusal = script.key("text").arg("f").arg("a").arg("b").invoke::<i64>(con).unwrap_err();
        assert_eq!(refusal.code(), Some("WRONGTYPE"));
        let refusal = Script::new("return redis.error_reply('MY words')").invoke::<()>(con).unwrap_err();
        assert_eq!((refusal.code(), refusal.detail()), (Some("MY"), Some("words")));
        let refusal = redis::cmd("EVALSHA").arg("f".repeat(40)).arg(0).exec(con).unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Server(ServerErrorKind::NoScript));
        assert_eq!(con.get::<_, String>("text").unwrap(), "abc");
    });
}

#[test]
fn every_job_is_claimed_once() {
    both_clients(|client, con| {
        forget_scripts(con);
        let jobs: Vec<String> = (0..200).map(|i| format!("gbe:state:tasks:email-send:job_{i}")).collect();
        for job in &jobs {
            let _: () = con.hset(job, "state", "pending").unwrap();
        }
        let start = Barrier::new(8);
        let work = |worker: usize| {
            let mut con = client.get_connection().unwrap();
            let script = Script::new(COMPARE_AND_SWAP);
            start.wait();
            let mut claim = |job: &&String| -> bool {
                script.key(*job).arg("state").arg("pending").arg(worker).invoke(&mut con).unwrap()
            };
            jobs.iter().filter(|job| claim(job)).collect::<Vec<_>>()
        };
        let wins: Vec<Vec<&String>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|worker| scope.spawn(move || work(worker))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(wins.iter().map(Vec::len).sum::<usize>(), jobs.len());
        for (worker, won) in wins.iter().enumerate() {
            for job in won {
                assert_eq!(con.hget::<_, _, usize>(job, "state").unwrap(), worker);
            }
        }
    });
}

#[test]
fn every_job_is_claimed_once_by_tasks() {
    both_async(async |client, mut con| {
        let () = redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut con).await.unwrap();
        for job in 0..100 {
            let () = con.hset(job, "state", "pending").await.unwrap();
        }
        let work = async |worker: usize| {
            let mut con = client.get_multiplexed_async_connection().await.unwrap();
            let script = Script::new(COMPARE_AND_SWAP);
            let mut won = Vec::new();
            for job in 0..100 {
                let mut claim = script.key(job);
                if claim.arg("state").arg("pending").arg(worker).invoke_async(&mut con).await.unwrap() {
                    won.push(job);
                }
            }
            won
        };
        let wins = join_all((0..8).map(work)).await;
        let mut all: Vec<i32> = wins.iter().flatten().copied().collect();
        all.sort();
        assert!(all.into_iter().eq(0..100));
        for (worker, won) in wins.iter().enumerate() {
            for &job in won {
                assert_eq!(con.hget::<_, _, usize>(job, "state").await.unwrap(), worker);
            }
        }
    });
}

#[test]
fn atomic_pipelines() {
    both(|con| {
        let (n, hash, absent): (i64, HashMap<String, i64>, Option<String>) = redis::pipe()
            .atomic()
            .set("n", 41)
            .ignore()
            .incr("n", 1)
            .hset("h", "f", 7)
            .ignore()
            .hgetall("h")
            .get("absent")
            .query(con)
            .unwrap();
        assert_eq!((n, hash, absent), (42, HashMap::from([("f".into(), 7)]), None));
        let failed = redis::pipe().atomic().set("text", "abc").incr("text", 1).set("after", "x").exec(con);
        assert!(failed.unwrap_err().to_string().contains("value is not an integer or out of range"));
        assert_eq!(con.get::<_, String>("after").unwrap(), "x");
        let aborted = redis::pipe().atomic().set("aborted", "x").cmd("NOSUCH").exec(con).unwrap_err();
        assert!(aborted.to_string().contains("NOSUCH") || aborted.code() == Some("EXECABORT"), "{aborted}");
        assert!(!con.exists::<_, bool>("aborted").unwrap());
    });
}

#[test]
fn a_transaction_tries_again() {
    both_clients(|client, con| {
        let mut other = client.get_connection().unwrap();
        let _: () = con.set("k", 1).unwrap();
        let mut attempts = Vec::new();
        let (doubled,): (i64,) = redis::transaction(con, &["k"], |con, pipe| {
            let value: i64 = con.get("k")?;
            attempts.push(value);
            if attempts.len() < 3 {
                let _: () = other.incr("k", 1)?;
            }
            pipe.set("k", value * 2).ignore().get("k").query(con)
        })
        .unwrap();
        assert_eq!((attempts, doubled), (vec![1, 2, 3], 6));
    });
}

/// Adds one to `total` and to the worker's own counter, as often as it takes.
fn add_once(con: &mut Connection, worker: usize) {
    let _: () = redis::transaction(con, &["total", "by-worker"], |con, pipe| {
        let total: Option<i64> = con.get("total")?;
        let own: Option<i64> = con.hget("by-worker", worker)?;
        pipe.set("total", total.unwrap_or(0) + 1).ignore();
        pipe.hset("by-worker", worker, own.unwrap_or(0) + 1).ignore().query(con)
    })
    .unwrap();
}

#[test]
fn transactions_of_many_threads_lose_nothing() {
    both_clients(|client: &Client, con| {
        let start = Barrier::new(6);
        thread::scope(|scope| {
            for worker in 0..6 {
                let start = &start;
                scope.spawn(move || {
                    let mut con = client.get_connection().unwrap();
                    start.wait();
                    (0..50).for_each(|_| add_once(&mut con, worker));
                });
            }
        });
        assert_eq!(con.get::<_, i64>("total").unwrap(), 300);
        let own: HashMap<usize, i64> = con.hgetall("by-worker").unwrap();
        assert_eq!(own, (0..6).map(|worker| (worker, 50)).collect());
    });
}

#[test]
fn transactions_of_many_tasks_lose_nothing() {
    both_async(async |client, mut con| {
        let work = async |_| {
            let con = client.get_multiplexed_async_connection().await.unwrap();
            for _ in 0..20 {
                let () = transaction_async(con.clone(), &["total"], async |mut con, mut pipe| {
                    let total: Option<i64> = con.get("total").await?;
                    pipe.set("total", total.unwrap_or(0) + 1).ignore().query_async(&mut con).await
                })
                .await
                .unwrap();
            }
        };
        join_all((0..6).map(work)).await;
        assert_eq!(con.get::<_, i64>("total").await.unwrap(), 120);
    });
}
