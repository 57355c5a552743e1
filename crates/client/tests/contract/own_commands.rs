//! What needs an index that the server keeps. A store over a plain Redis says that it cannot.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_client::{
    Claim, Error, Fate, Fields, Filter, IndexDefinition, Indexed, OnDifference, StateStore, Store, Sweep, redis,
};

use crate::places::{Place, everywhere};

/// Makes an index where the server has them. `None` on a plain Redis, after a look at what a store says there.
pub(crate) async fn index_over(place: &Place, prefix: &str, field: &str) -> Option<Store> {
    let store = place.store().await;
    if store.is_holdfast() {
        assert!(store.create_index("idx:test", &IndexDefinition::new([prefix], field)).await.unwrap());
        return Some(store);
    }
    let range = store.range(b"idx:test", "-inf", "5", &[], None).await;
    assert!(matches!(range, Err(Error::NeedsHoldfast("idx.range"))), "{range:?}");
    let create = store.create_index("idx:test", &IndexDefinition::new([prefix], field)).await;
    assert!(matches!(create, Err(Error::NeedsHoldfast("idx.range"))), "{create:?}");
    assert!(matches!(store.drop_index("idx:test").await, Err(Error::NeedsHoldfast("idx.range"))));
    assert!(matches!(store.indexes().await, Err(Error::NeedsHoldfast("idx.range"))));
    let sweep = store.sweep(&Sweep::default()).await;
    assert!(matches!(sweep, Err(Error::NeedsHoldfast("sweep"))), "{sweep:?}");
    for block in [Duration::ZERO, Duration::from_secs(60)] {
        let claim = store.claim(&Claim::new(["idx:test"]).set("state", "running").block(block)).await;
        assert!(matches!(claim, Err(Error::NeedsHoldfast("claim"))), "{claim:?}");
    }
    let info: String = redis::cmd("INFO").arg("server").query_async(&mut store.connection().unwrap()).await.unwrap();
    assert!(place.is_plain() || !info.contains("holdfast_version"), "{} has indexes", place.name);
    None
}

pub(crate) async fn drop_index(store: &Store) {
    assert!(store.drop_index("idx:test").await.unwrap());
}

#[test]
fn a_range_is_ordered_filtered_and_then_limited() {
    everywhere(async |place| {
        let Some(store) = index_over(place, "jobs:", "updated_at").await else { return };
        for (key, state, updated_at) in
            [("a", "completed", 1), ("b", "running", 3), ("c", "running", 2), ("d", "running", 9)]
        {
            let fields = Fields::new().with("state", state).with("updated_at", updated_at);
            store.put(format!("jobs:{key}").as_bytes(), &fields, None).await.unwrap();
        }
        let indexed = |key: &str, score: i64| -> Indexed {
            let fields = Fields::new().with("state", "running").with("updated_at", score);
            (format!("jobs:{key}").into_bytes(), score as f64, fields)
        };
        let open = [Filter::ne("state", "completed")];
        let range = async |min: &str, max: &str, limit| store.range(b"idx:test", min, max, &open, limit).await.unwrap();
        assert_eq!(range("-inf", "(9", None).await, [indexed("c", 2), indexed("b", 3)]);
        assert_eq!(range("-inf", "(9", Some(1)).await, [indexed("c", 2)], "what is filtered out does not count");
        assert_eq!(range("3", "+inf", None).await, [indexed("b", 3), indexed("d", 9)]);
        assert_eq!(store.range(b"idx:test", "-inf", "+inf", &[], None).await.unwrap().len(), 4);
        drop_index(&store).await;
    });
}

#[test]
fn a_sweep_requeues_until_retries_are_used_up() {
    everywhere(async |place| {
        let Some(store) = index_over(place, "jobs:", "timeout_at").await else { return };
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis() as u64;
        let job = |state: &str, attempt: u32, timeout_at: u64| {
            Fields::new().with("state", state).with("attempt", attempt).with("timeout_at", timeout_at)
        };
        let records = [
            ("stuck", job("running", 0, now_ms - 1000)),
            ("worn", job("claimed", 2, now_ms - 900)),
            ("alive", job("running", 0, now_ms + 60_000)),
            ("done", job("completed", 0, now_ms - 1000)),
        ];
        for (key, fields) in &records {
            store.put(format!("jobs:{key}").as_bytes(), fields, None).await.unwrap();
        }
        let exhausted = Fields::new().with("state", "failed").with("error", "timed out");
        let sweep = Sweep {
            index: "idx:test".into(),
            before_ms: now_ms,
            only: Some(("state".into(), vec!["claimed".into(), "running".into()])),
            retry: Some(("attempt".into(), 2, exhausted)),
            set: Fields::new().with("state", "pending").with("updated_at", "NOW"),
            ..Sweep::default()
        };
        let mut swept = store.sweep(&sweep).await.unwrap();
        swept.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(swept, [(b"jobs:stuck".to_vec(), Fate::Requeued), (b"jobs:worn".to_vec(), Fate::Exhausted)]);

        let fields = async |key: &str| store.get(format!("jobs:{key}").as_bytes()).await.unwrap().unwrap().fields;
        let stuck = fields("stuck").await;
        assert_eq!((stuck.text("state"), stuck.number("attempt")), (Some("pending"), Some(1)));
        assert!(stuck.number("updated_at").is_some_and(|at| at >= now_ms as i64), "NOW is a time: {stuck:?}");
        let worn = fields("worn").await;
        assert_eq!((worn.text("state"), worn.number("attempt")), (Some("failed"), Some(2)));
        assert_eq!(fields("alive").await, records[2].1);
        assert_eq!(fields("done").await, records[3].1);
        assert_eq!(store.sweep(&sweep).await.unwrap(), [], "what was swept is not stuck any more");
        drop_index(&store).await;
    });
}

#[test]
fn an_index_is_made_once_and_dropped_once() {
    everywhere(async |place| {
        let Some(store) = index_over(place, "jobs:", "run_at").await else { return };
        let other = IndexDefinition::new(["a:", "b:"], "at").exclude("state", ["done"]).stamp();
        assert!(!store.create_index_with("idx:test", &other, OnDifference::Keep).await.unwrap(), "it is left as it is");
        assert!(store.create_index("idx:other", &other).await.unwrap());
        let mut names = store.indexes().await.unwrap();
        names.sort();
        assert_eq!(names, [&b"idx:other"[..], b"idx:test", b"idx:updated_at"]);
        let refused = store.create_index("idx:none", &IndexDefinition::default()).await;
        assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
        assert!(store.drop_index("idx:other").await.unwrap() && !store.drop_index("idx:other").await.unwrap());
        drop_index(&store).await;
    });
}

#[test]
fn a_claim_and_a_sweep_cannot_remove_fields() {
    everywhere(async |place| {
        let Some(store) = index_over(place, "jobs:", "run_at").await else { return };
        let gone = Fields::new().with("state", "dead").without("worker");
        let claim = Claim { set: gone.clone(), ..Claim::new(["idx:test"]) };
        assert!(matches!(store.claim(&claim).await, Err(Error::CannotRemove)));
        let claim = Claim::new(["idx:test"]).set("state", "x").counter("attempt").up_to(1, gone.clone());
        assert!(matches!(store.claim(&claim).await, Err(Error::CannotRemove)));
        let sweep = Sweep { index: "idx:test".into(), set: gone, ..Sweep::default() };
        assert!(matches!(store.sweep(&sweep).await, Err(Error::CannotRemove)));
        drop_index(&store).await;
    });
}
