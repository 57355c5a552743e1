//! Scans: what they find, page by page.

use std::collections::BTreeMap;

use std::time::Duration;

use holdfast_client::{Fields, Filter, Query, Record, StateStore, Store, redis};

use crate::places::with_store;

const RECORDS: usize = 1300; // several pages

async fn fill(store: &Store) {
    for i in 0..RECORDS {
        let state = ["pending", "running", "completed"][i % 3];
        let fields = Fields::new().with("state", state).with("updated_at", i).with("note", "x");
        store.put(format!("jobs:{i}").as_bytes(), &fields, None).await.unwrap();
    }
    store.put(b"job", &Fields::new().with("state", "pending"), None).await.unwrap();
    let mut connection = store.connection().unwrap();
    let _: () = redis::cmd("SET").arg("jobs:text").arg("x").query_async(&mut connection).await.unwrap();
}

async fn found(store: &Store, query: Query) -> BTreeMap<String, Fields> {
    let records = store.scan(query).collect().await.unwrap();
    records.into_iter().map(|(key, record)| (String::from_utf8(key).unwrap(), record.fields)).collect()
}

#[test]
fn a_scan_finds_every_record_under_the_prefix() {
    with_store(async |store| {
        assert!(found(&store, Query::prefix("")).await.is_empty());
        fill(&store).await;
        let all = found(&store, Query::prefix("jobs:")).await;
        assert_eq!(all.len(), RECORDS);
        let expected = Fields::new().with("state", "running").with("updated_at", 7).with("note", "x");
        assert_eq!(all["jobs:7"], expected);
        assert_eq!(found(&store, Query::prefix("")).await.len(), RECORDS + 1, "records alone, no text");
        assert!(found(&store, Query::prefix("jobs:text")).await.is_empty());
    });
}

#[test]
fn filters_are_joined() {
    with_store(async |store| {
        fill(&store).await;
        let stuck = Query::prefix("jobs:")
            .filter(Filter::lt("updated_at", 10))
            .filter(Filter::not_in("state", ["completed", "failed"]));
        let keys: Vec<String> = found(&store, stuck).await.into_keys().collect();
        assert_eq!(keys, ["jobs:0", "jobs:1", "jobs:3", "jobs:4", "jobs:6", "jobs:7", "jobs:9"]);
    });
}

#[test]
fn a_scan_brings_the_fields_that_are_wanted() {
    with_store(async |store| {
        fill(&store).await;
        let query = Query::prefix("jobs:").filter(Filter::eq("updated_at", 5));
        let some = found(&store, query.clone().fields(["state", "missing"])).await;
        assert_eq!(some, BTreeMap::from([("jobs:5".into(), Fields::new().with("state", "completed"))]));
        let keys = found(&store, query.fields::<&str>([])).await;
        assert_eq!(keys, BTreeMap::from([("jobs:5".into(), Fields::new())]));
    });
}

#[test]
fn a_scan_stops_at_its_limit() {
    with_store(async |store| {
        fill(&store).await;
        let running = Query::prefix("jobs:").filter(Filter::eq("state", "running"));
        for limit in [0, 1, 17, 400] {
            let records = store.scan(running.clone().limit(limit)).collect().await.unwrap();
            assert_eq!(records.len(), limit);
            assert!(records.iter().all(|(_, record)| record.fields.text("state") == Some("running")));
        }
        assert_eq!(found(&store, running.limit(RECORDS)).await.len(), RECORDS / 3);
    });
}

#[test]
fn a_prefix_is_no_pattern() {
    with_store(async |store| {
        let hostile = ["*", "?", "[a]", "[^a]", "\\", "a*", "a?b", "a\\*", "]", "{a}", "a", "aab"];
        for name in hostile {
            store.set_field(format!("{name}:1").as_bytes(), b"name", Some(name.as_bytes())).await.unwrap();
        }
        for name in hostile {
            let keys: Vec<String> = found(&store, Query::prefix(format!("{name}:"))).await.into_keys().collect();
            assert_eq!(keys, [format!("{name}:1")]);
        }
        store.set_field(b"\xff\0\xfe:1", b"a", Some(b"b")).await.unwrap();
        let records = store.scan(Query::prefix(b"\xff\0")).collect().await.unwrap();
        let record = Record { fields: Fields::new().with("a", "b"), ttl: None };
        assert_eq!(records, [(b"\xff\0\xfe:1".to_vec(), record)]);
    });
}

#[test]
fn a_scan_brings_lifetimes() {
    with_store(async |store| {
        let hour = Duration::from_secs(3600);
        store.put(b"jobs:brief", &Fields::new().with("a", 1), Some(hour)).await.unwrap();
        store.put(b"jobs:lasting", &Fields::new().with("a", 1), None).await.unwrap();
        let mut records = store.scan(Query::prefix("jobs:").fields::<&str>([])).collect().await.unwrap();
        records.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(records.iter().map(|(key, _)| &key[..]).collect::<Vec<_>>(), [&b"jobs:brief"[..], b"jobs:lasting"]);
        assert!(records[0].1.ttl.is_some_and(|ttl| ttl <= hour && ttl > hour / 2), "{records:?}");
        assert_eq!(records[1].1.ttl, None);
    });
}
