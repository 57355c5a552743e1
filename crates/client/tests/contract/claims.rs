//! Claims: which records they take, what they write, and how they wait. A store over a plain Redis says that it cannot.

use std::time::Duration;

use holdfast_client::{Claim, Config, Error, Fields, StateStore, Store, redis};
use tokio::task::JoinSet;

use crate::own_commands::{drop_index, index_over};
use crate::places::{on_holdfast, until_blocked};

const LONG: Duration = Duration::from_secs(60);

/// Keys of what a claim took.
async fn taken(store: &Store, claim: &Claim) -> Vec<String> {
    let records = store.claim(claim).await.unwrap();
    records.into_iter().map(|(key, _, _)| String::from_utf8(key).unwrap()).collect()
}

async fn put(store: &Store, key: &str, fields: Fields) {
    store.put(key.as_bytes(), &fields, None).await.unwrap();
}

fn due(run_at: u64) -> Fields {
    Fields::new().with("run_at", run_at)
}

#[test]
fn a_claim_takes_what_qualifies_and_changes_it() {
    on_holdfast(async |_, store| {
        index_over(&store, "jobs:", "run_at").await;
        put(&store, "jobs:b", due(2).with("tenant", "acme")).await;
        put(&store, "jobs:a", due(1).with("tenant", "other")).await;
        put(&store, "jobs:c", due(3).with("tenant", "acme").with("attempt", 7)).await;
        put(&store, "jobs:later", due(u64::pow(10, 15)).with("tenant", "acme")).await;
        put(&store, "jobs:worn", due(2).with("tenant", "acme").with("attempt", 8)).await;
        let claim = Claim::new(["idx:test"])
            .min("(1")
            .max("NOW")
            .only("tenant", ["acme", "beta"])
            .set("state", "running")
            .stamp("run_at", 60_000)
            .counter("attempt")
            .up_to(8, Fields::new().with("state", "dead").with("run_at", "never"))
            .count(10);
        let records = store.claim(&claim).await.unwrap();
        let told: Vec<_> = records.iter().map(|(key, score, _)| (key.as_slice(), *score)).collect();
        assert_eq!(told, [(&b"jobs:b"[..], 2.0), (&b"jobs:c"[..], 3.0)]);
        let c = &records[1].2;
        assert_eq!((c.text("state"), c.number("attempt"), c.text("tenant")), (Some("running"), Some(8), Some("acme")));
        assert!(c.number("run_at").is_some_and(|at| at > 1_700_000_000_000), "{c:?}");
        assert_eq!(store.get(b"jobs:c").await.unwrap().unwrap().fields, *c, "told as it is");
        assert_eq!(store.get_field(b"jobs:worn", b"state").await.unwrap().as_deref(), Some(&b"dead"[..]));
        assert_eq!(taken(&store, &claim).await, [""; 0]);
    });
}

#[test]
fn a_claim_takes_one_record_and_brings_the_fields_that_are_wanted() {
    on_holdfast(async |_, store| {
        index_over(&store, "jobs:", "run_at").await;
        put(&store, "jobs:a", due(1).with("state", "pending")).await;
        put(&store, "jobs:b", due(2).with("state", "pending")).await;
        let claim = Claim::new(["idx:test"]).max("5").stamp("run_at", 0).fields(["state", "missing"]);
        let records = store.claim(&claim).await.unwrap();
        assert_eq!(records, [(b"jobs:a".to_vec(), 1.0, Fields::new().with("state", "pending"))]);
        let none = Claim { indexes: vec![], ..claim };
        assert!(matches!(store.claim(&none).await, Err(Error::Refused(_))));
    });
}

#[test]
fn a_claim_that_waits_holds_up_no_other_request() {
    on_holdfast(async |_, store| {
        index_over(&store, "jobs:", "run_at").await;
        let mut waiting = JoinSet::new();
        for _ in 0..3 {
            let store = store.clone();
            let claim = Claim::new(["idx:test"]).max("NOW").stamp("run_at", 60_000).block(LONG);
            waiting.spawn(async move { taken(&store, &claim).await });
        }
        until_blocked(&store, 3).await;
        assert!(store.ping().await);
        for key in ["jobs:a", "jobs:b", "jobs:c"] {
            put(&store, key, due(1)).await;
        }
        let mut keys: Vec<String> = waiting.join_all().await.concat();
        keys.sort();
        assert_eq!(keys, ["jobs:a", "jobs:b", "jobs:c"]);
    });
}

#[test]
fn a_wait_may_be_longer_than_other_answers_may_take() {
    let dir = wire::fresh_dir();
    let server = wire::Server::start(&dir, &[]);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let url = format!("redis://{}", server.address());
        let quick = Config { response_timeout: Duration::from_millis(500), ..Config::new(url) };
        let store = Store::connect_with(&quick).await.unwrap();
        let claim = Claim::new(["idx:updated_at"]).set("state", "running");
        let none = claim.clone().block(Duration::from_millis(1500));
        assert_eq!(store.claim(&none).await.unwrap(), [], "an empty answer, and no error");
        // The shortest wait is not the longest.
        assert_eq!(store.claim(&claim.clone().block(Duration::from_nanos(1))).await.unwrap(), []);
        put(&store, "job", Fields::new().with("updated_at", 1)).await;
        assert_eq!(taken(&store, &claim.block(LONG)).await, ["job"]);
    });
    drop(server);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_claim_that_is_dropped_takes_nothing() {
    on_holdfast(async |_, store| {
        index_over(&store, "jobs:", "run_at").await;
        let claim = Claim::new(["idx:test"]).max("NOW").set("state", "running").stamp("run_at", 60_000);
        let waiting = tokio::spawn({
            let (store, claim) = (store.clone(), claim.clone().block(LONG));
            async move { store.claim(&claim).await }
        });
        until_blocked(&store, 1).await;
        waiting.abort();
        until_blocked(&store, 0).await;
        put(&store, "jobs:a", due(1)).await;
        assert_eq!(taken(&store, &claim).await, ["jobs:a"]);
    });
}

#[test]
fn waiting_claims_end_with_their_index_and_their_server() {
    let dir = wire::fresh_dir();
    let server = wire::Server::start(&dir, &[]);
    let address = server.address();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::connect(&format!("redis://{address}")).await.unwrap();
        let create = async || {
            let mut create = redis::cmd("IDX.CREATE");
            create.arg("idx:test").arg("PREFIX").arg(1).arg("jobs:").arg("FIELD").arg("run_at");
            let _: () = create.query_async(&mut store.connection().unwrap()).await.unwrap();
        };
        let wait = || {
            let (store, claim) = (store.clone(), Claim::new(["idx:test"]).set("state", "running").block(LONG));
            tokio::spawn(async move { store.claim(&claim).await })
        };
        create().await;
        let waiting = wait();
        until_blocked(&store, 1).await;
        drop_index(&store).await;
        let dropped = waiting.await.unwrap();
        assert!(matches!(&dropped, Err(error @ Error::Refused(_)) if !error.is_temporary()), "{dropped:?}");

        create().await;
        let waiting = wait();
        until_blocked(&store, 1).await;
        server.kill();
        let lost = waiting.await.unwrap();
        assert!(matches!(&lost, Err(error @ Error::Unavailable(_)) if error.is_temporary()), "{lost:?}");

        // One that begins while the server is away waits for it.
        let waiting = wait();
        let server = wire::Server::launch(address, &dir, |_| {});
        let url = format!("redis://{address}");
        let writer = loop {
            match Store::connect(&url).await {
                Ok(store) => break store,
                Err(error) => assert!(error.is_temporary(), "{error:?}"),
            }
        };
        until_blocked(&writer, 1).await;
        put(&writer, "jobs:a", due(1)).await;
        assert_eq!(waiting.await.unwrap().unwrap().len(), 1);
        store.close();
        let claim = Claim::new(["idx:test"]).set("state", "running");
        assert!(matches!(store.claim(&claim).await, Err(Error::Closed)));
        assert!(matches!(store.claim(&claim.block(LONG)).await, Err(Error::Closed)));
        drop(server);
    });
    std::fs::remove_dir_all(dir).unwrap();
}
