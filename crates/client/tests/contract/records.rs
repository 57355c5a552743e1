//! One record: its fields, its lifetime, and changes that depend on what it holds.

use std::sync::Arc;
use std::time::Duration;

use holdfast_client::{Error, Exchange, Fields, StateStore, Store, redis};

use crate::places::with_store;

const JOB: &[u8] = b"jobs:1";

fn job() -> Fields {
    Fields::new().with("state", "pending").with("attempt", 0)
}

async fn fields(store: &Store) -> Fields {
    store.get(JOB).await.unwrap().unwrap_or_default().fields
}

#[test]
fn a_record_is_what_was_put() {
    with_store(async |store| {
        assert_eq!(store.get(JOB).await.unwrap(), None);
        let any_bytes: Vec<u8> = (0..=255).collect();
        let record = job().with(&any_bytes, &any_bytes[..]).with("", "");
        store.put(JOB, &record, None).await.unwrap();
        let found = store.get(JOB).await.unwrap().unwrap();
        assert_eq!((found.fields, found.ttl), (record, None));
        assert!(store.delete(JOB).await.unwrap());
        assert!(!store.delete(JOB).await.unwrap());
        assert_eq!(store.get(JOB).await.unwrap(), None);
    });
}

#[test]
fn a_put_keeps_other_fields_and_the_lifetime() {
    with_store(async |store| {
        let hour = Duration::from_secs(3600);
        store.put(JOB, &job(), Some(hour)).await.unwrap();
        store.put(JOB, &Fields::new().with("state", "claimed").with("worker", "w"), None).await.unwrap();
        let found = store.get(JOB).await.unwrap().unwrap();
        assert_eq!(found.fields, job().with("state", "claimed").with("worker", "w"));
        assert!(found.ttl.is_some_and(|ttl| ttl <= hour && ttl > hour / 2), "{:?}", found.ttl);
        store.put(JOB, &job(), Some(hour * 4)).await.unwrap();
        assert!(store.get(JOB).await.unwrap().unwrap().ttl.is_some_and(|ttl| ttl > hour * 2));
    });
}

#[test]
fn a_lifetime_ends() {
    with_store(async |store| {
        store.put(JOB, &job(), Some(Duration::from_millis(1))).await.unwrap();
        while store.get(JOB).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(store.get_field(JOB, b"state").await.unwrap(), None);
    });
}

#[test]
fn fields_are_written_one_by_one_and_together() {
    with_store(async |store| {
        assert_eq!(store.get_field(JOB, b"state").await.unwrap(), None);
        store.set_field(JOB, b"state", Some(b"running")).await.unwrap();
        assert_eq!(store.get_field(JOB, b"state").await.unwrap().as_deref(), Some(&b"running"[..]));
        assert_eq!(store.get_field(JOB, b"worker").await.unwrap(), None);
        store.set_fields(JOB, &Fields::new().with("worker", "w").with("attempt", 3)).await.unwrap();
        let expected = Fields::new().with("state", "running").with("worker", "w").with("attempt", 3);
        assert_eq!(fields(&store).await, expected);
    });
}

#[test]
fn a_large_record_is_put_in_one_step() {
    with_store(async |store| {
        let large = (0..20_000).fold(Fields::new(), |fields, i| fields.with(format!("field-{i}"), i));
        store.put(JOB, &large, Some(Duration::from_secs(60))).await.unwrap();
        assert_eq!(fields(&store).await, large);
    });
}

#[test]
fn a_swap_needs_the_expected_value() {
    with_store(async |store| {
        let swap =
            async |expected: &[u8], new: &[u8]| store.compare_and_swap(JOB, b"state", expected, new).await.unwrap();
        assert!(!swap(b"", b"claimed").await, "a field that is absent is not empty");
        assert_eq!(store.get(JOB).await.unwrap(), None, "a refused swap creates nothing");
        store.put(JOB, &job(), Some(Duration::from_secs(60))).await.unwrap();
        assert!(!swap(b"claimed", b"running").await);
        assert!(!swap(b"PENDING", b"running").await);
        assert!(swap(b"pending", b"cl\0aimed\xff").await);
        assert!(!swap(b"pending", b"claimed").await);
        assert!(swap(b"cl\0aimed\xff", b"").await);
        assert!(swap(b"", b"").await);
        let found = store.get(JOB).await.unwrap().unwrap();
        assert_eq!(found.fields, job().with("state", ""));
        assert!(found.ttl.is_some());
    });
}

#[test]
fn a_swap_does_not_read_numbers() {
    with_store(async |store| {
        store.set_field(JOB, b"attempt", Some(b"1")).await.unwrap();
        assert!(!store.compare_and_swap(JOB, b"attempt", b"1.0", b"2").await.unwrap());
        assert!(store.compare_and_swap(JOB, b"attempt", b"1", b"01").await.unwrap());
        assert!(!store.compare_and_swap(JOB, b"attempt", b"1", b"2").await.unwrap());
    });
}

#[test]
fn an_exchange_is_all_or_nothing() {
    with_store(async |store| {
        store.put(JOB, &job(), None).await.unwrap();
        let claim = Exchange::new()
            .expected("state", "pending")
            .expected("attempt", 0)
            .absent("worker")
            .set("state", "claimed")
            .set("worker", "w-1")
            .remove("attempt");
        let outcome = store.exchange(JOB, &claim).await.unwrap();
        assert!(outcome.applied);
        assert_eq!(outcome.current, Fields::new().with("state", "claimed"), "attempt is gone");
        assert_eq!(fields(&store).await, Fields::new().with("state", "claimed").with("worker", "w-1"));

        let outcome = store.exchange(JOB, &claim).await.unwrap();
        assert!(!outcome.applied);
        assert_eq!(outcome.current, Fields::new().with("state", "claimed"));
        let taken = Exchange::new().expected("state", "claimed").absent("worker").set("worker", "w-2");
        assert!(!store.exchange(JOB, &taken).await.unwrap().applied, "there is a worker");
        assert_eq!(fields(&store).await, Fields::new().with("state", "claimed").with("worker", "w-1"));
    });
}

#[test]
fn an_exchange_without_conditions_creates() {
    with_store(async |store| {
        assert!(store.exchange(JOB, &Exchange::new()).await.unwrap().applied);
        assert_eq!(store.get(JOB).await.unwrap(), None);
        let create = Exchange::new().absent("state").set("state", "pending");
        assert!(store.exchange(JOB, &create).await.unwrap().applied);
        assert!(!store.exchange(JOB, &create).await.unwrap().applied);
        let both = Exchange::new().set("note", "x").remove("note").remove("missing");
        assert!(store.exchange(JOB, &both).await.unwrap().applied);
        assert_eq!(fields(&store).await, Fields::new().with("state", "pending"), "what is set and removed is removed");
        assert!(store.exchange(JOB, &Exchange::new().remove("state")).await.unwrap().applied);
        assert_eq!(store.get(JOB).await.unwrap(), None, "a record without fields is gone");
    });
}

#[test]
fn an_exchange_stamps_the_servers_time() {
    with_store(async |store| {
        store.put(JOB, &job(), None).await.unwrap();
        let time = async |field: &[u8]| -> i64 {
            let value = store.get_field(JOB, field).await.unwrap().expect("it was stamped");
            String::from_utf8(value).unwrap().parse().unwrap()
        };
        let stamp = Exchange::new().expected("state", "pending").stamp("due", 30_000).stamp("seen", -5).set("a", "b");
        assert!(store.exchange(JOB, &stamp).await.unwrap().applied);
        assert_eq!(time(b"due").await - time(b"seen").await, 30_005, "one exchange has one time");
        let seen = time(b"seen").await;
        assert!(seen > 1_700_000_000_000, "{seen}");
        let refused = Exchange::new().expected("state", "running").stamp("seen", 0);
        assert!(!store.exchange(JOB, &refused).await.unwrap().applied);
        for wrong in [
            Exchange::new().stamp("seen", i64::MIN),
            Exchange::new().stamp("seen", i64::MAX),
            Exchange::new().stamp("seen", 0).stamp("seen", 0),
            Exchange::new().stamp("seen", 0).set("seen", 1),
            Exchange::new().stamp("seen", 0).remove("seen"),
        ] {
            assert!(store.exchange(JOB, &wrong).await.is_err(), "{wrong:?}");
        }
        assert_eq!(time(b"seen").await, seen);
    });
}

#[test]
fn an_exchange_changes_the_lifetime() {
    with_store(async |store| {
        store.put(JOB, &job(), None).await.unwrap();
        let live = async |ttl: Option<Duration>, expected: &str| {
            let exchange = Exchange { ttl, ..Exchange::new() }.expected("state", expected);
            assert_eq!(store.exchange(JOB, &exchange).await.unwrap().applied, expected == "pending");
            store.get(JOB).await.unwrap().unwrap().ttl
        };
        let hour = Duration::from_secs(3600);
        assert_eq!(live(Some(hour), "running").await, None, "refused, so nothing changes");
        assert!(live(Some(hour), "pending").await.is_some_and(|ttl| ttl <= hour));
        assert!(live(None, "pending").await.is_some());
        let alone = Exchange { ttl: Some(hour * 4), ..Exchange::new() };
        assert!(store.exchange(JOB, &alone).await.unwrap().applied);
        assert!(store.get(JOB).await.unwrap().unwrap().ttl.is_some_and(|ttl| ttl > hour * 2));
    });
}

#[test]
fn a_key_of_another_type_is_refused_and_left_alone() {
    with_store(async |store| {
        let mut connection = store.connection().unwrap();
        let _: () = redis::cmd("SET").arg(JOB).arg("text").query_async(&mut connection).await.unwrap();
        let hour = Some(Duration::from_secs(3600));
        let lasting = Exchange { ttl: hour, ..Exchange::new() };
        let errors = [
            store.get(JOB).await.err(),
            store.put(JOB, &job(), None).await.err(),
            store.put(JOB, &job(), hour).await.err(),
            store.get_field(JOB, b"state").await.err(),
            store.set_field(JOB, b"state", Some(b"x")).await.err(),
            store.compare_and_swap(JOB, b"state", b"x", b"y").await.err(),
            store.exchange(JOB, &lasting).await.err(),
        ];
        for (i, error) in errors.into_iter().enumerate() {
            assert!(matches!(error, Some(Error::WrongType(_))), "{i}: {error:?}");
        }
        let ttl: i64 = redis::cmd("PTTL").arg(JOB).query_async(&mut connection).await.unwrap();
        assert_eq!(ttl, -1, "it has no lifetime");
    });
}

#[test]
fn what_no_server_takes_is_refused_before_it_is_sent() {
    with_store(async |store| {
        assert!(matches!(store.put(JOB, &Fields::new(), None).await, Err(Error::NoFields)));
        assert!(matches!(store.set_fields(JOB, &Fields::new()).await, Err(Error::NoFields)));
        for lifetime in [Duration::ZERO, Duration::from_micros(999), Duration::MAX] {
            assert!(matches!(store.put(JOB, &job(), Some(lifetime)).await, Err(Error::Lifetime(_))));
            let exchange = Exchange { ttl: Some(lifetime), ..Exchange::new() }.set("a", "b");
            assert!(matches!(store.exchange(JOB, &exchange).await, Err(Error::Lifetime(_))));
        }
        assert_eq!(store.get(JOB).await.unwrap(), None);
        let longest = Duration::from_millis(3_093_527_980_800_000);
        store.put(JOB, &job(), Some(longest)).await.unwrap();
        assert!(store.get(JOB).await.unwrap().unwrap().ttl.is_some());
    });
}

#[test]
fn a_refusal_carries_the_servers_code() {
    with_store(async |store| {
        let mut connection = store.connection().unwrap();
        let config = async |connection: &mut redis::aio::ConnectionManager, value: &str| {
            let mut set = redis::cmd("CONFIG");
            set.arg("SET").arg("maxmemory").arg(value).arg("maxmemory-policy").arg("noeviction");
            let _: () = set.query_async(connection).await.unwrap();
        };
        config(&mut connection, "1").await;
        let refused = store.set_field(JOB, b"state", Some(b"pending")).await;
        config(&mut connection, "0").await;
        assert!(matches!(&refused, Err(Error::Refused(error)) if error.code() == Some("OOM")), "{refused:?}");
    });
}

#[test]
fn a_closed_store_says_so() {
    with_store(async |store| {
        let (clone, shared): (Store, Arc<dyn StateStore>) = (store.clone(), Arc::new(store));
        assert!(shared.ping().await);
        shared.close();
        shared.close();
        assert!(!shared.ping().await);
        assert!(matches!(shared.get(JOB).await, Err(Error::Closed)));
        assert!(matches!(clone.set_field(JOB, b"a", Some(b"b")).await, Err(Error::Closed)));
    });
}

#[test]
fn a_server_that_is_gone_is_unavailable() {
    let dir = wire::fresh_dir();
    let server = wire::Server::start(&dir, &[]);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::connect(&format!("redis://{}", server.address())).await.unwrap();
        assert!(store.ping().await);
        server.kill();
        let lost = store.set_field(JOB, b"state", Some(b"pending")).await;
        assert!(matches!(lost, Err(Error::Unavailable(_))), "{lost:?}");
    });
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_field_without_a_value_is_removed() {
    with_store(async |store| {
        let hour = Duration::from_secs(3600);
        store.put(JOB, &job().with("worker", "w").with("timeout_at", 5), None).await.unwrap();
        let done = Fields::new().with("state", "completed").without("timeout_at").with_option("error", None::<&str>);
        store.put(JOB, &done, Some(hour)).await.unwrap();
        assert_eq!(fields(&store).await, job().with("state", "completed").with("worker", "w"));
        assert!(store.get(JOB).await.unwrap().unwrap().ttl.is_some_and(|ttl| ttl <= hour && ttl > hour / 2));

        store.set_fields(JOB, &Fields::new().with("note", "x").without("worker").without("missing")).await.unwrap();
        assert_eq!(fields(&store).await, job().with("state", "completed").with("note", "x"));
        assert!(store.get(JOB).await.unwrap().unwrap().ttl.is_some(), "its lifetime stays");
        store.set_field(JOB, b"note", None).await.unwrap();
        store.set_field(JOB, b"missing", None).await.unwrap();
        assert_eq!(fields(&store).await, job().with("state", "completed"));

        let swap = Exchange::new().expected("state", "completed").set("state", "gone");
        let swap = Exchange { set: swap.set.clone().without("attempt"), ..swap };
        assert!(store.exchange(JOB, &swap).await.unwrap().applied);
        assert_eq!(fields(&store).await, Fields::new().with("state", "gone"));
        store.set_fields(JOB, &Fields::new().without("state")).await.unwrap();
        assert_eq!(store.get(JOB).await.unwrap(), None, "a record without fields is gone");
        store.put(JOB, &Fields::new().without("state"), Some(hour)).await.unwrap();
        assert_eq!(store.get(JOB).await.unwrap(), None);
    });
}
