//! Transactions: what they read and write, how they end, and that they are tried again. A store over a plain Redis says
//! that it cannot.

use std::time::Duration;

use holdfast_client::redis::{AsyncCommands, Cmd, cmd};
use holdfast_client::{Applied, Error, Exchange, Fields, NewEvent, StateStore, Store, Swap};
use tokio::task::JoinSet;

use crate::places::on_holdfast;

async fn number(store: &Store, key: &str) -> Option<i64> {
    store.connection().unwrap().get(key).await.unwrap()
}

#[test]
fn a_transaction_reads_what_it_writes_and_nobody_else_does_before_its_end() {
    on_holdfast(async |_, store| {
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
    on_holdfast(async |_, store| {
        let mut runs = 0;
        let ended = store
            .transaction(5, |txn| {
                runs += 1;
                async move {
                    txn.ask::<()>(cmd("SET").arg("a").arg(1)).await?;
                    Err::<(), _>(Mine::Enough)
                }
            })
            .await;
        assert!(matches!(ended, Err(Mine::Enough)), "{ended:?}");
        let refused = store
            .transaction(5, |txn| {
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
    on_holdfast(async |_, store| {
        let (mut runs, outside) = (0, &store);
        let sum = store
            .transaction(3, |mut txn| {
                runs += 1;
                let disturbed = runs < 3;
                async move {
                    let a = txn.ask::<Option<i64>>(&Cmd::get("a")).await?.unwrap_or(0);
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
                    let _: Option<i64> = txn.ask(&Cmd::get("a")).await?;
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
    on_holdfast(async |_, store| {
        let endless = store.transaction(1, |mut txn| async move {
            let _: () = txn.set("a", 1).await?;
            std::future::pending::<()>().await;
            Ok::<_, Error>(())
        });
        let ended = tokio::time::timeout(Duration::from_millis(50), endless).await;
        assert!(ended.is_err());
        let alone = store.transaction(1, |txn| async move { txn.ask::<Option<i64>>(&Cmd::get("a")).await }).await;
        assert_eq!(alone.unwrap(), None);
    });
}

#[test]
fn nothing_is_sent_behind_its_end() {
    on_holdfast(async |_, store| {
        let kept = store.transaction(1, async |txn| Ok::<_, Error>(txn)).await.unwrap();
        let refused = kept.ask::<()>(cmd("SET").arg("a").arg(1)).await.unwrap_err();
        assert!(refused.to_string().contains("the transaction has ended"), "{refused}");
        assert_eq!(number(&store, "a").await, None);
    });
}

#[test]
fn transfers_keep_the_sum() {
    on_holdfast(async |_, store| {
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
                            let from: Option<i64> = txn.ask(&Cmd::get(&accounts[0])).await?;
                            let _: () = txn.set(&accounts[0], from.unwrap_or(0) - 7).await?;
                            let to: Option<i64> = txn.ask(&Cmd::get(&accounts[1])).await?;
                            let _: () = txn.set(&accounts[1], to.unwrap_or(0) + 7).await?;
                            let mut sum = 0;
                            for account in 0..ACCOUNTS {
                                let balance: Option<i64> = txn.ask(&Cmd::get(format!("account:{account}"))).await?;
                                sum += balance.unwrap_or(0);
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

#[test]
fn records_cells_and_runs_are_part_of_it() {
    on_holdfast(async |_, store| {
        let outside = &store;
        let kept = store
            .transaction(1, |txn| async move {
                let cell = txn.cell::<u32>("cell");
                assert_eq!((cell.set(&1).await?, cell.cas(1, &2).await?), (1, Swap::Done(2)));
                assert_eq!(txn.get_cells::<u32>(["cell"]).await?[0].as_ref().unwrap().value, 2);
                assert_eq!(outside.cell::<u32>("cell").get().await?, None);
                let waited = cell.wait_after(2, Duration::from_secs(1)).await;
                assert!(matches!(waited, Err(Error::CannotWait)), "{waited:?}");

                let run = txn.run::<String>("run");
                run.append(&NewEvent::new("RunStarted", "{}".to_owned())).await?;
                assert_eq!(run.events(0, 10).await?.len(), 1);
                assert!(matches!(run.follow(1).next().await, Err(Error::CannotWait)));

                let record = Fields::new().with("state", "new").with("old", 1);
                txn.put(b"job", &record, Some(Duration::from_secs(60))).await?;
                txn.set_fields(b"job", &Fields::new().with("step", 1).without("old")).await?;
                txn.set_field(b"job", b"step", None).await?;
                assert_eq!(txn.get_field(b"job", b"state").await?.as_deref(), Some(&b"new"[..]));
                assert!(txn.compare_and_swap(b"job", b"state", b"new", b"old").await?);
                let swap = Exchange::new().expected("state", "old").set("state", "older");
                assert!(txn.exchange(b"job", &swap).await?.applied);
                let record = txn.get(b"job").await?.unwrap();
                assert_eq!((record.fields.text("state"), record.fields.len()), (Some("older"), 1));
                assert!(record.ttl.is_some());
                assert!(!txn.delete(b"none").await?);

                let counts = txn.exactly_once_state::<i64>("counts/");
                assert_eq!(counts.add("n", 1, 5).await?, Applied::Applied);
                Ok::<_, Error>(cell)
            })
            .await
            .unwrap();
        assert_eq!(store.cell::<u32>("cell").get().await.unwrap().unwrap().value, 2);
        assert_eq!(store.get(b"job").await.unwrap().unwrap().fields.text("state"), Some("older"));
        assert_eq!(store.exactly_once_state::<i64>("counts/").get("n").await.unwrap(), Some((5, 1.into())));
        let late = kept.set(&3).await.unwrap_err();
        assert!(late.to_string().contains("the transaction has ended"), "{late}");
    });
}

#[test]
fn one_that_is_dropped_is_rolled_back_even_if_a_cell_of_it_is_held() {
    on_holdfast(async |_, store| {
        let (sender, mut cells) = tokio::sync::mpsc::unbounded_channel();
        let endless = store.transaction(1, |txn| {
            let sender = sender.clone();
            async move {
                let cell = txn.cell::<u32>("held");
                cell.set(&1).await?;
                sender.send(cell).unwrap();
                std::future::pending::<()>().await;
                Ok::<_, Error>(())
            }
        });
        assert!(tokio::time::timeout(Duration::from_millis(50), endless).await.is_err());
        let held = cells.recv().await.unwrap();
        assert!(held.set(&2).await.is_err());
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        loop {
            let clients: String =
                cmd("CLIENT").arg("LIST").query_async(&mut store.connection().unwrap()).await.unwrap();
            if !clients.contains("cmd=cell.set") {
                break;
            }
            assert!(tokio::time::Instant::now() < deadline, "its connection is still open: {clients}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(store.cell::<u32>("held").get().await.unwrap(), None);
    });
}

/// Whether the server has transactions that only read; it is skipped on one that is older.
async fn has_read_transactions(store: &Store) -> bool {
    let begun = store.read_transaction(async |_| Ok::<_, Error>(())).await;
    let is_known = !matches!(&begun, Err(Error::Refused(error)) if error.to_string().contains("number of arguments"));
    if !is_known {
        wire::skip("the server has no TXN.BEGIN READONLY");
    }
    is_known
}

#[test]
fn a_reader_sees_one_instant_beside_writers() {
    on_holdfast(async |_, store| {
        if !has_read_transactions(&store).await {
            return;
        }
        const CELLS: i64 = 10;
        for cell in 0..CELLS {
            store.cell::<i64>(format!("account/{cell}")).set(&100).await.unwrap();
        }
        let mut writers = JoinSet::new();
        for writer in 0..4 {
            let store = store.clone();
            writers.spawn(async move {
                for step in 0.. {
                    let pair = [(writer + step) % CELLS, (writer * 3 + step * 7 + 1) % CELLS];
                    let moved = store.transaction(1000, |txn| async move {
                        let [from, to] = pair.map(|cell| txn.cell::<i64>(format!("account/{cell}")));
                        let balance = from.get().await?.unwrap().value;
                        from.set(&(balance - 1)).await?;
                        let balance = to.get().await?.unwrap().value;
                        to.set(&(balance + 1)).await?;
                        Ok::<_, Error>(())
                    });
                    moved.await.unwrap();
                }
            });
        }
        for _ in 0..60 {
            let sum = store.read_transaction(|txn| async move {
                let mut sum = 0;
                for cell in 0..CELLS {
                    sum += txn.cell::<i64>(format!("account/{cell}")).get().await?.unwrap().value;
                }
                Ok::<_, Error>(sum)
            });
            assert_eq!(sum.await.unwrap(), 100 * CELLS);
        }
        writers.shutdown().await;
        let write = store.read_transaction(|txn| async move { txn.cell::<i64>("account/1").set(&1).await }).await;
        assert!(matches!(write, Err(Error::Refused(_))), "{write:?}");
    });
}
