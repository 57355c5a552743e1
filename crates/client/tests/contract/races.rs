//! Many workers and few records: each is won once.

use std::collections::BTreeMap;
use std::pin::Pin;

use holdfast_client::{Exchange, Fields, Query, StateStore, Store};
use tokio::task::JoinSet;

use crate::places::{Place, everywhere};

const TASKS: usize = 64;
const CONNECTIONS: usize = 8;

fn key(record: usize) -> Vec<u8> {
    format!("jobs:{record}").into_bytes()
}

/// One worker's try at one record.
type Claim = for<'a> fn(&'a Store, &'a [u8], usize) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// Lets all tasks try to claim all records, each beginning elsewhere, and expects every record to be won by one task,
/// which is returned.
async fn winners(place: &Place, records: usize, claim: Claim) -> BTreeMap<usize, usize> {
    let mut stores = Vec::new();
    for _ in 0..CONNECTIONS {
        stores.push(place.store().await);
    }
    for record in 0..records {
        stores[0].put(&key(record), &Fields::new().with("state", "pending"), None).await.unwrap();
    }
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let store = stores[task % CONNECTIONS].clone();
        tasks.spawn(async move {
            let mut won = Vec::new();
            for i in 0..records {
                let record = (i + task * 7) % records;
                if claim(&store, &key(record), task).await {
                    won.push((record, task));
                }
            }
            won
        });
    }
    let won: Vec<(usize, usize)> = tasks.join_all().await.into_iter().flatten().collect();
    let winners: BTreeMap<usize, usize> = won.iter().copied().collect();
    assert_eq!((won.len(), winners.len()), (records, records), "each record is won, and once");
    winners
}

#[test]
fn a_swap_has_one_winner() {
    everywhere(async |place| {
        winners(place, 100, |store, key, _| {
            Box::pin(async { store.compare_and_swap(key, b"state", b"pending", b"claimed").await.unwrap() })
        })
        .await;
        let records = place.store().await.scan(Query::prefix("jobs:")).collect().await.unwrap();
        assert!(records.iter().all(|(_, record)| record.fields.text("state") == Some("claimed")));
    });
}

#[test]
fn an_exchange_has_one_winner_whose_name_is_in_the_record() {
    everywhere(async |place| {
        let winners = winners(place, 100, |store, key, task| {
            Box::pin(async move {
                let claim = Exchange::new().expected("state", "pending").set("state", "claimed").set("worker", task);
                store.exchange(key, &claim).await.unwrap().applied
            })
        })
        .await;
        let store = place.store().await;
        for (record, task) in winners {
            let worker = store.get_field(&key(record), b"worker").await.unwrap();
            assert_eq!(worker, Some(task.to_string().into_bytes()));
        }
    });
}
