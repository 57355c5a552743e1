//! A claim whose future is dropped leaves no job to a worker that does not exist: what had come is given back, and its
//! attempt does not count.

use std::time::Duration;

use holdfast_client::{Error, Fields, Queue, QueueConfig, StateStore, Store, redis};
use tokio::runtime::Builder;
use tokio::task::yield_now;

use crate::places::{on_holdfast, until_blocked};

const AT_ONCE: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(60);

/// Runs a test with a queue that tries each job once.
fn with_queue(test: impl AsyncFn(&Queue, &Store, &str)) {
    on_holdfast(async |place, store| {
        let queue = Queue::new(&store, config());
        queue.create_index("due", "job:").await.unwrap();
        test(&queue, &store, place.url()).await;
    });
}

fn config() -> QueueConfig {
    QueueConfig { attempts_max: Some(1), ..QueueConfig::new(["due"]) }
}

/// The job is pending, as if it had never been claimed, and its first attempt is the first that a handler sees.
async fn assert_can_be_done(queue: &Queue, store: &Store, key: &str) {
    // What was dropped is given back by a thread of the store's own.
    until_blocked(store, 0).await;
    let pending = Some(b"pending".to_vec());
    while store.get_field(key.as_bytes(), b"state").await.unwrap() != pending {
        yield_now().await;
    }
    let fields = store.get(key.as_bytes()).await.unwrap().expect("it exists").fields;
    assert_eq!(fields.len(), 2, "state and run_at alone: {fields:?}");
    let job = queue.next("w-2", AT_ONCE).await.unwrap().expect("it is due");
    assert_eq!((job.key.as_slice(), job.token), (key.as_bytes(), 1));
    job.complete(&Fields::new()).await.unwrap();
}

#[test]
fn dropped_around_the_moment_of_an_add() {
    with_queue(async |queue, store, _| {
        let mut dropped = 0;
        for number in 0..200_u32 {
            let key = format!("job:{number}");
            let worker = queue.clone();
            let waiting = tokio::spawn(async move { worker.next("w-1", LONG).await });
            if number % 4 != 0 {
                until_blocked(store, 1).await;
            }
            let (producer, added) = (queue.clone(), key.clone());
            let adding =
                tokio::spawn(async move { producer.add(added.as_bytes(), &Fields::new(), AT_ONCE).await.unwrap() });
            for _ in 0..(number * 7 % 40) {
                yield_now().await;
            }
            waiting.abort();
            assert!(adding.await.unwrap());
            match waiting.await {
                Ok(job) => job.unwrap().expect("it waits for longer").complete(&Fields::new()).await.unwrap(),
                Err(_) => {
                    dropped += 1;
                    assert_can_be_done(queue, store, &key).await;
                }
            }
        }
        assert!(dropped > 0);
    });
}

#[test]
fn dropped_between_the_reply_and_the_next_poll() {
    with_queue(async |queue, store, _| {
        queue.add(b"job:1", &Fields::new(), AT_ONCE).await.unwrap();
        let mut claim = Box::pin(queue.next("w-1", AT_ONCE));
        let first = std::future::poll_fn(|cx| std::task::Poll::Ready(claim.as_mut().poll(cx).is_pending())).await;
        assert!(first, "it needs the server");
        while store.get_field(b"job:1", b"state").await.unwrap().as_deref() != Some(b"running") {
            yield_now().await;
        }
        drop(claim);
        assert_can_be_done(queue, store, "job:1").await;
    });
}

#[test]
fn a_runtime_that_ends_gives_back() {
    with_queue(async |queue, store, url| {
        for number in 0..20_u32 {
            let (key, url) = (format!("job:{number}"), url.to_owned());
            let ending = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let worker = ending.spawn(async move {
                let store = Store::connect(&url).await.unwrap();
                Queue::new(&store, config()).next("w-1", LONG).await.map(|job| job.is_some())
            });
            until_blocked(store, 1).await;
            let (producer, added) = (queue.clone(), key.clone());
            let adding =
                tokio::spawn(async move { producer.add(added.as_bytes(), &Fields::new(), AT_ONCE).await.unwrap() });
            for _ in 0..(number * 7 % 40) {
                yield_now().await;
            }
            // Drops the worker's future, and its store with it.
            tokio::task::spawn_blocking(|| drop(ending)).await.unwrap();
            assert!(adding.await.unwrap());
            match worker.await {
                Ok(got) => {
                    assert!(got.unwrap());
                    store.set_field(key.as_bytes(), b"state", Some(b"completed")).await.unwrap();
                }
                Err(_) => assert_can_be_done(queue, store, &key).await,
            }
        }
    });
}

#[test]
fn a_user_without_client_unblock_ends_the_connection() {
    with_queue(async |_, store, url| {
        let mut connection = store.connection().unwrap();
        let rules = ["on", ">secret", "~*", "&*", "+@all", "-client|unblock"];
        let _: () =
            redis::cmd("ACL").arg("SETUSER").arg("narrow").arg(&rules).query_async(&mut connection).await.unwrap();
        let narrow = Store::connect(&url.replace("redis://", "redis://narrow:secret@")).await.unwrap();
        let queue = Queue::new(&narrow, config());
        let waiting = tokio::spawn(async move { queue.next("w-1", LONG).await });
        until_blocked(store, 1).await;
        waiting.abort();
        assert!(waiting.await.is_err());
        until_blocked(store, 0).await;
        let _: i64 = redis::cmd("ACL").arg("DELUSER").arg("narrow").query_async(&mut connection).await.unwrap();
    });
}

#[test]
fn an_error_reaches_the_caller() {
    with_queue(async |_, store, _| {
        let none = Queue::new(store, QueueConfig::new(["none"])).next("w-1", LONG).await;
        assert!(matches!(none, Err(Error::Refused(_))), "{:?}", none.err());
    });
}
