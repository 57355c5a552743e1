//! Transactions: what they read and write, how they end, and that they are tried again. A store over a plain Redis says
//! that it cannot.

use holdfast_client::redis::{AsyncCommands, cmd};
use holdfast_client::{Error, StateStore, Store};
use tokio::task::JoinSet;

use crate::places::{Place, everywhere};

/// A store that has transactions, unless the place has none, which must say so.
async fn store_with_transactions(place: &Place) -> Option<Store> {
    let store = place.store().await;
    if store.is_holdfast() {
        return Some(store);
    }
    let refused = store.transaction(1, async |_| Ok::<_, Error>(())).await.unwrap_err();
    assert!(matches!(refused, Error::NeedsHoldfast("txn.begin")), "{refused}");
    None
}

async fn number(store: &Store, key: &str) -> Option<i64> {
    store.connection().unwrap().get(key).await.unwrap()
}

#[test]
fn a_transaction_reads_what_it_writes_and_nobody_else_does_before_its_end() {
    everywhere(async |place| {
        let Some(store) = store_with_transactions(place).await else { return };
        let outside = &store;
        let seen = store
            .transaction(1, |mut txn| async move {
                let _: () = txn.set("a", 5).await?;
                let own: i64 = txn.incr("a", 1).await?;
                let _: i64 = txn.hset("record", "state", "new").await?;
                let swapped: i64 = txn.ask(cmd("HCAS").arg("record").arg("state").arg("new").arg("old")).await?;
                Ok::<_, Error>((own, swapped, number(outside, "a").await))
            })
            .await
            .unwrap();
        assert_eq!(seen, (6, 1, None));
        assert_eq!(number(&store, "a").await, Some(6));
        assert_eq!(store.get_field(b"record", b"state").await.unwrap().as_deref(), Some(&b"old"[..]));
    });
}

#[test]
fn an_error_rolls_back() {
    #[derive(Debug)]
    enum Mine {
        Enough,
        Store(Error),
    }
    impl From<Error> for Mine {
        fn from(error: Error) -> Mine {
            Mine::Store(error)
        }
    }
    everywhere(async |place| {
        let Some(store) = store_with_transactions(place).await else { return };
        let mut runs = 0;
        let ended = store
            .transaction(5, |mut txn| {
                runs += 1;
                async move {
                    txn.ask::<()>(cmd("SET").arg("a").arg(1)).await?;
                    Err::<(), _>(Mine::Enough)
                }
            })
            .await;
        assert!(matches!(ended, Err(Mine::Enough)), "{ended:?}");
        let refused = store
            .transaction(5, |mut txn| {
                runs += 1;
                async move {
                    txn.ask::<()>(cmd("SET").arg("a").arg(1)).await?;
                    txn.ask::<()>(cmd("KEYS").arg("*")).await?; // not within a transaction
                    Ok::<_, Mine>(())
                }
            })
            .await;
        assert!(matches!(refused, Err(Mine::Store(Error::Refused(_)))), "{refused:?}");
        assert_eq!((runs, number(&store, "a").await), (2, None));
    });
}

#[test]
fn a_conflict_is_tried_again_and_not_for_ever() {
    everywhere(async |place| {
        let Some(store) = store_with_transactions(place).await else { return };
        let (mut runs, outside) = (0, &store);
        let sum = store
            .transaction(3, |mut txn| {
                runs += 1;
                let disturbed = runs < 3;
                async move {
                    let a = txn.get::<_, Option<i64>>("a").await?.unwrap_or(0);
                    if disturbed {
                        let _: i64 = outside.connection()?.incr("a", 10).await?;
                    }
                    let _: () = txn.set("b", a).await?;
                    Ok::<_, Error>(a)
                }
            })
            .await
            .unwrap();
        assert_eq!((runs, sum, number(&store, "b").await), (3, 20, Some(20)));
        let never = store
            .transaction(2, |mut txn| {
                runs += 1;
                async move {
                    let _: Option<i64> = txn.get("a").await?;
                    let _: i64 = outside.connection()?.incr("a", 1).await?;
                    // A conflict that the body does not look at is one all the same.
                    let _: Result<(), _> = txn.set("b", "never").await;
                    Ok::<_, Error>(())
                }
            })
            .await;
        assert!(matches!(never, Err(Error::Conflict(2))), "{never:?}");
        assert_eq!((runs, number(&store, "b").await), (5, Some(20)));
    });
}

#[test]
fn one_that_is_dropped_leaves_nothing() {
    everywhere(async |place| {
        let Some(store) = store_with_transactions(place).await else { return };
        let endless = store.transaction(1, |mut txn| async move {
            let _: () = txn.set("a", 1).await?;
            std::future::pending::<()>().await;
            Ok::<_, Error>(())
        });
        let ended = tokio::time::timeout(std::time::Duration::from_millis(50), endless).await;
        assert!(ended.is_err());
        let alone = store.transaction(1, |mut txn| async move { Ok::<Option<i64>, Error>(txn.get("a").await?) }).await;
        assert_eq!(alone.unwrap(), None);
    });
}

#[test]
fn nothing_is_sent_behind_its_end() {
    everywhere(async |place| {
        let Some(store) = store_with_transactions(place).await else { return };
        let mut kept = store.transaction(1, async |txn| Ok::<_, Error>(txn)).await.unwrap();
        let refused = kept.ask::<()>(cmd("SET").arg("a").arg(1)).await.unwrap_err();
        assert!(refused.to_string().contains("the transaction has ended"), "{refused}");
        assert_eq!(number(&store, "a").await, None);
    });
}

#[test]
fn transfers_keep_the_sum() {
    everywhere(async |place| {
        let Some(store) = store_with_transactions(place).await else { return };
        const ACCOUNTS: usize = 4;
        let mut tasks = JoinSet::new();
        for task in 0..8_usize {
            let store = store.clone();
            tasks.spawn(async move {
                for i in 0..40 {
                    let accounts = [
                        format!("account:{}", (task + i) % ACCOUNTS),
                        format!("account:{}", (i + 1 + task * 3) % ACCOUNTS),
                    ];
                    let accounts = &accounts;
                    let sum: i64 = store
                        .transaction(1000, |mut txn| async move {
                            let from: Option<i64> = txn.get(&accounts[0]).await?;
                            let _: () = txn.set(&accounts[0], from.unwrap_or(0) - 7).await?;
                            let to: Option<i64> = txn.get(&accounts[1]).await?;
                            let _: () = txn.set(&accounts[1], to.unwrap_or(0) + 7).await?;
                            let mut sum = 0;
                            for account in 0..ACCOUNTS {
                                sum += txn.get::<_, Option<i64>>(format!("account:{account}")).await?.unwrap_or(0);
                            }
                            Ok::<_, Error>(sum)
                        })
                        .await
                        .unwrap();
                    assert_eq!(sum, 0);
                }
            });
        }
        tasks.join_all().await;
    });
}
