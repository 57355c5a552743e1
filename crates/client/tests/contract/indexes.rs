//! An index that exists with another definition, and a job that is in no index: each is an error that says what is wrong.

use std::time::Duration;

use holdfast_client::{Error, Fields, IndexDefinition, Limits, OnDifference, Queue, QueueConfig, Scope, StateStore};

use crate::places::{on_holdfast, until_blocked};

const AT_ONCE: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(60);

async fn add(queue: &Queue, key: &[u8]) -> Result<bool, Error> {
    queue.add(key, &Fields::new(), AT_ONCE).await
}

#[test]
fn another_definition_is_an_error_or_kept_or_replaced() {
    on_holdfast(async |_, store| {
        let there = IndexDefinition::new(["a:"], "at").only("state", ["pending", "running"]);
        let same = IndexDefinition::new(["a:"], "at").only("state", ["running", "pending"]);
        let wanted = IndexDefinition::new(["b:"], "at").stamp();
        assert!(store.create_index("due", &there).await.unwrap());
        assert!(!store.create_index("due", &same).await.unwrap());
        let Err(Error::IndexDiffers(differs)) = store.create_index("due", &wanted).await else { panic!("it differs") };
        assert_eq!(
            differs.differences,
            [
                "PREFIX is a: there, and b: here",
                "ONLY is state pending running there, and not given here",
                "STAMP is not given there, and yes here",
            ]
        );
        assert!(!store.create_index_with("due", &wanted, OnDifference::Keep).await.unwrap());
        assert!(matches!(store.create_index("due", &wanted).await, Err(Error::IndexDiffers(_))));
        assert!(store.create_index_with("due", &wanted, OnDifference::Replace).await.unwrap());
        assert!(!store.create_index("due", &wanted).await.unwrap());

        let wrong = IndexDefinition::default();
        let refused = store.create_index_with("due", &wrong, OnDifference::Replace).await;
        assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
        assert!(!store.create_index("due", &wanted).await.unwrap(), "it is left as it is");
    });
}

#[test]
fn a_worker_that_waits_goes_on_while_its_index_is_replaced() {
    on_holdfast(async |_, store| {
        let queue = Queue::new(&store, QueueConfig { group_by: Some("tenant".into()), ..QueueConfig::new(["due"]) });
        assert!(queue.create_index("due", "a:").await.unwrap());
        queue.limit(&Scope::Each, &Limits::new().held(2)).await.unwrap();
        let limits = queue.limits().await.unwrap();
        let worker = queue.clone();
        let waiting = tokio::spawn(async move { worker.next("w", LONG).await });
        until_blocked(&store, 1).await;
        assert!(queue.create_index_with("due", "b:", OnDifference::Replace).await.unwrap());
        assert!(add(&queue, b"b:1").await.unwrap());
        assert_eq!(waiting.await.unwrap().unwrap().unwrap().key, b"b:1");
        assert_eq!(queue.limits().await.unwrap(), limits);
    });
}

#[test]
fn a_job_outside_of_the_index_is_refused() {
    on_holdfast(async |_, store| {
        let queue = Queue::new(&store, QueueConfig::new(["due:high", "due"]));
        assert!(queue.create_index("due", "job:").await.unwrap());
        assert!(add(&queue, b"zzz:0").await.unwrap(), "the other index may have it");
        assert!(queue.create_index("due:high", "urgent:").await.unwrap());
        for key in [&b"zzz:1"[..], b"job"] {
            let Err(Error::OutsideIndex(outside)) = add(&queue, key).await else { panic!("it is in no index") };
            assert_eq!((&outside.key[..], outside.prefixes.len()), (key, 2));
            assert_eq!(store.get(key).await.unwrap(), None);
        }
        assert!(add(&queue, b"job:1").await.unwrap());
        assert!(add(&queue, b"urgent:1").await.unwrap());
    });
}
