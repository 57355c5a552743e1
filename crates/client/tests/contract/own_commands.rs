//! What needs commands that only Holdfast has: a store over a plain Redis says so. And ranges and sweeps of indexes that the server keeps.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_client::{
    Claim, Error, Fate, Fields, Filter, IndexDefinition, Indexed, Limits, OnDifference, Queue, QueueConfig, Scope,
    SessionConfig, StateStore, Store, Sweep, redis,
};

use crate::places::{everywhere, on_holdfast, on_plain_redis};

pub(crate) async fn index_over(store: &Store, prefix: &str, field: &str) {
    assert!(store.create_index("idx:test", &IndexDefinition::new([prefix], field)).await.unwrap());
}

pub(crate) async fn drop_index(store: &Store) {
    assert!(store.drop_index("idx:test").await.unwrap());
}

/// Jobs can be added there, and have a group.
#[test]
fn a_plain_redis_has_none_of_it() {
    on_plain_redis(async |store| {
        let (no_wait, config) = (Duration::ZERO, SessionConfig::default());
        let cell = store.cell::<String>("c");
        let branch = store.branch("main").unwrap();
        let state = store.exactly_once_state::<String>("s/");
        let index = IndexDefinition::new(["due:"], "run_at");
        let claim = |block| Claim::new(["due"]).set("state", "running").block(block);
        let queue = Queue::new(&store, QueueConfig { group_by: Some("tenant".into()), ..QueueConfig::new(["due"]) });
        assert!(queue.add(b"due:1", &Fields::new(), no_wait).await.unwrap());
        assert!(!queue.add(b"due:1", &Fields::new(), no_wait).await.unwrap());
        assert!(queue.add_to("acme", b"due:2", &Fields::new(), no_wait).await.unwrap());
        for (command, refused) in [
            ("cell.cas", cell.get().await.map(drop)),
            ("cell.cas", branch.cells().await.map(drop)),
            ("cell.cas", branch.fork("b").await.map(drop)),
            ("cell.cas", branch.drop_cells().await.map(drop)),
            ("reg.put", state.get("k").await.map(drop)),
            ("reg.put", state.snapshot(None).await.map(drop)),
            ("run.append", store.run::<String>("r").info().await.map(drop)),
            ("session.call", store.sessions().open(&config).await.map(drop)),
            ("txn.begin", store.transaction(1, async |_| Ok::<_, Error>(())).await),
            ("txn.begin", store.read_transaction(async |_| Ok::<_, Error>(())).await),
            ("idx.range", store.range(b"due", "-inf", "5", &[], None).await.map(drop)),
            ("idx.range", store.create_index("due", &index).await.map(drop)),
            ("idx.range", store.drop_index("due").await.map(drop)),
            ("idx.range", store.indexes().await.map(drop)),
            ("sweep", store.sweep(&Sweep::default()).await.map(drop)),
            ("claim", store.claim(&claim(no_wait)).await.map(drop)),
            ("claim", store.claim(&claim(Duration::from_secs(60))).await.map(drop)),
            ("claim", queue.next("w", no_wait).await.map(drop)),
            ("claim", queue.next("w", Duration::from_secs(60)).await.map(drop)),
            ("*", queue.create_index("due", "due:").await.map(drop)),
            ("*", queue.limit(&Scope::Each, &Limits::new().held(1)).await),
            ("*", queue.reset_limits(None).await),
            ("*", queue.limits().await.map(drop)),
            ("*", queue.groups().unwrap().next().await.map(drop)),
        ] {
            let Err(Error::NeedsHoldfast(name)) = refused else { panic!("{command}: {refused:?}") };
            assert!(command == "*" || command == name, "{command}: {name}");
        }
    });
}

/// What knows its server's commands is no plain Redis.
#[test]
fn holdfast_is_taken_for_what_it_is() {
    everywhere(async |place| {
        let store = place.store().await;
        let mut connection = store.connection().unwrap();
        let info: String = redis::cmd("INFO").arg("server").query_async(&mut connection).await.unwrap();
        assert_eq!(store.is_holdfast(), info.contains("holdfast_version") && !place.is_plain(), "{}", place.name);
    });
}

#[test]
fn a_range_is_ordered_filtered_and_then_limited() {
    on_holdfast(async |_, store| {
        index_over(&store, "jobs:", "updated_at").await;
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
    });
}

#[test]
fn a_sweep_requeues_until_retries_are_used_up() {
    on_holdfast(async |_, store| {
        index_over(&store, "jobs:", "timeout_at").await;
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
    });
}

#[test]
fn an_index_is_made_once_and_dropped_once() {
    on_holdfast(async |_, store| {
        index_over(&store, "jobs:", "run_at").await;
        let other = IndexDefinition::new(["a:", "b:"], "at").exclude("state", ["done"]).stamp();
        assert!(!store.create_index_with("idx:test", &other, OnDifference::Keep).await.unwrap(), "it is left as it is");
        assert!(store.create_index("idx:other", &other).await.unwrap());
        let mut names = store.indexes().await.unwrap();
        names.sort();
        assert_eq!(names, [&b"idx:other"[..], b"idx:test", b"idx:updated_at"]);
        let refused = store.create_index("idx:none", &IndexDefinition::default()).await;
        assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
        assert!(store.drop_index("idx:other").await.unwrap() && !store.drop_index("idx:other").await.unwrap());
    });
}

#[test]
fn a_claim_and_a_sweep_cannot_remove_fields() {
    on_holdfast(async |_, store| {
        index_over(&store, "jobs:", "run_at").await;
        let gone = Fields::new().with("state", "dead").without("worker");
        let claim = Claim { set: gone.clone(), ..Claim::new(["idx:test"]) };
        assert!(matches!(store.claim(&claim).await, Err(Error::CannotRemove)));
        let claim = Claim::new(["idx:test"]).set("state", "x").counter("attempt").up_to(1, gone.clone());
        assert!(matches!(store.claim(&claim).await, Err(Error::CannotRemove)));
        let sweep = Sweep { index: "idx:test".into(), set: gone, ..Sweep::default() };
        assert!(matches!(store.sweep(&sweep).await, Err(Error::CannotRemove)));
    });
}
