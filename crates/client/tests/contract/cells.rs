//! Cells: versions, swaps, history and watches. A store over a plain Redis says that it cannot.

use std::time::Duration;

use holdfast_client::{Error, Json, NewEvent, Swap, Version, redis};
use tokio::task::JoinSet;

use crate::places::on_holdfast;
use crate::proxy::Proxy;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_cell_is_made_once_and_swapped_by_its_version() {
    on_holdfast(async |_, store| {
        let cell = store.cell::<u32>("limit");
        assert_eq!(cell.get().await.unwrap(), None);
        assert_eq!(cell.cas(7, &1).await.unwrap(), Swap::Refused(None));
        assert_eq!((cell.init(&10).await.unwrap(), cell.init(&99).await.unwrap()), (1, 1));
        let now = cell.get().await.unwrap().unwrap();
        assert_eq!((now.value, now.version), (10, 1));
        assert_eq!(cell.cas(1, &20).await.unwrap(), Swap::Done(2));
        assert_eq!(cell.cas(1, &30).await.unwrap(), Swap::Refused(Some((20, 2))));
        assert_eq!(cell.cas(0, &30).await.unwrap(), Swap::Refused(Some((20, 2))));
        assert_eq!(cell.set(&40).await.unwrap(), 3);
        assert!(!cell.delete_if(2).await.unwrap() && cell.delete_if(3).await.unwrap());
        assert_eq!(cell.cas(0, &50).await.unwrap(), Swap::Done(1));
        assert!(cell.delete().await.unwrap() && !cell.delete().await.unwrap());
    });
}

#[test]
fn the_past_is_found_by_version_by_time_and_in_pages() {
    on_holdfast(async |_, store| {
        let cell = store.cell::<String>("past");
        for number in 1..=5_u64 {
            assert_eq!(cell.set(&format!("value {number}")).await.unwrap(), number);
        }
        let all = cell.history(None, 100).await.unwrap();
        let numbers = |versions: &[Version<String>]| versions.iter().map(|one| one.version).collect::<Vec<_>>();
        assert_eq!(numbers(&all), [5, 4, 3, 2, 1]);
        assert!(all.windows(2).all(|pair| pair[0].updated_at_us > pair[1].updated_at_us), "{all:?}");
        assert_eq!(cell.history(Some(4), 2).await.unwrap(), all[2..4]);
        assert_eq!(cell.get_version(2).await.unwrap().as_ref(), all.get(3));
        assert_eq!(cell.get_as_of(all[3].updated_at_us).await.unwrap().as_ref(), all.get(3));
        assert_eq!(cell.get_as_of(all[4].updated_at_us - 1).await.unwrap(), None);
        assert_eq!(cell.get_version(9).await.unwrap(), None);
    });
}

#[test]
fn a_watch_ends_with_the_next_version_and_with_the_cell() {
    on_holdfast(async |_, store| {
        let cell = store.cell::<String>("watched");
        assert_eq!(cell.wait_after(0, Duration::ZERO).await.unwrap(), None);
        assert_eq!(cell.wait_after(0, Duration::from_millis(1)).await.unwrap(), None);
        for (after, value) in [(0, "first"), (1, "second")] {
            let watch = tokio::spawn({
                let cell = cell.clone();
                async move { cell.wait_after(after, LONG).await.unwrap().unwrap() }
            });
            cell.set(&value.to_owned()).await.unwrap();
            let seen = watch.await.unwrap();
            assert_eq!((seen.value.as_str(), seen.version), (value, after + 1));
        }
        let watch = tokio::spawn({
            let cell = cell.clone();
            async move { cell.wait_after(2, LONG).await.unwrap() }
        });
        cell.delete().await.unwrap();
        assert_eq!(watch.await.unwrap(), None);
    });
}

#[test]
fn a_cell_may_be_a_lease() {
    on_holdfast(async |_, store| {
        let lease = store.cell::<String>("lease");
        assert_eq!(lease.cas_for(0, &"a".to_owned(), LONG).await.unwrap(), Swap::Done(1));
        let mut connection = store.connection().unwrap();
        let left: i64 = redis::cmd("PTTL").arg("lease").query_async(&mut connection).await.unwrap();
        assert!((1..=LONG.as_millis() as i64).contains(&left), "{left}");
        assert_eq!(lease.set_for(&"b".to_owned(), Duration::from_millis(1)).await.unwrap(), 2);
        while lease.get().await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(lease.cas_for(0, &"c".to_owned(), LONG).await.unwrap(), Swap::Done(1));
    });
}

#[test]
fn of_many_that_count_none_is_lost() {
    on_holdfast(async |_, store| {
        const TASKS: u64 = 16;
        const EACH: u64 = 50;
        store.cell::<u64>("count").init(&0).await.unwrap();
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            let cell = store.cell::<u64>("count");
            tasks.spawn(async move {
                for _ in 0..EACH {
                    let Version { mut value, mut version, .. } = cell.get().await.unwrap().unwrap();
                    while let Swap::Refused(current) = cell.cas(version, &(value + 1)).await.unwrap() {
                        (value, version) = current.unwrap();
                    }
                }
            });
        }
        tasks.join_all().await;
        let last = store.cell::<u64>("count").get().await.unwrap().unwrap();
        assert_eq!((last.value, last.version), (TASKS * EACH, TASKS * EACH + 1));
    });
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Limits {
    requests: u32,
    hosts: Vec<String>,
}

#[test]
fn values_may_be_of_any_type_of_serde() {
    on_holdfast(async |_, store| {
        let limits = Json(Limits { requests: 7, hosts: vec!["a".into()] });
        let cell = store.cell::<Json<Limits>>("limits");
        assert_eq!(cell.set(&limits).await.unwrap(), 1);
        assert_eq!(cell.get().await.unwrap().unwrap().value, limits);
        let text = store.cell::<String>("limits").get().await.unwrap().unwrap().value;
        assert_eq!(text, r#"{"requests":7,"hosts":["a"]}"#);
        store.cell::<String>("limits").set(&"{}".to_owned()).await.unwrap();
        assert!(matches!(cell.get().await, Err(Error::Reply(_))));
        let unfit = Json(std::collections::HashMap::from([(vec![1], 2)]));
        let refused = store.cell::<Json<_>>("limits").set(&unfit).await;
        assert!(matches!(refused, Err(Error::Encode(_))), "{refused:?}");
        let state = store.exactly_once_state::<Json<Limits>>("s/");
        state.put("k", limits.clone(), 1).await.unwrap();
        assert_eq!(state.get("k").await.unwrap(), Some((limits.clone(), 1.into())));
        let run = store.run::<Json<Limits>>("r");
        run.append(&NewEvent::new("e", limits.clone())).await.unwrap();
        assert_eq!(run.events(0, 1).await.unwrap()[0].data, limits);
    });
}

#[test]
fn several_cells_are_read_at_once() {
    on_holdfast(async |_, store| {
        assert_eq!(store.get_cells::<u32>([""; 0]).await.unwrap(), []);
        store.cell::<u32>("a").set(&1).await.unwrap();
        store.cell::<u32>("b").set(&2).await.unwrap();
        let cells = store.get_cells::<u32>(["b", "none", "a"]).await.unwrap();
        let values: Vec<_> = cells.iter().map(|cell| cell.as_ref().map(|cell| (cell.value, cell.version))).collect();
        assert_eq!(values, [Some((2, 1)), None, Some((1, 1))]);
    });
}

#[test]
fn a_watch_sees_changes_the_end_and_a_new_beginning() {
    on_holdfast(async |place, store| {
        let proxy = Proxy::start(place.address(), None).await;
        let cell = store.cell::<u32>("watched");
        cell.set(&1).await.unwrap();
        let mut watch = place.store_at(proxy.address).await.cell::<u32>("watched").watch().await.unwrap();
        let mut next = async || watch.next().await.unwrap().map(|change| (change.value, change.version));
        cell.set(&2).await.unwrap();
        assert_eq!(next().await, Some((2, 2)));
        proxy.cut();
        for version in 3..=7 {
            cell.set(&version).await.unwrap();
        }
        for version in 3..=7 {
            assert_eq!(next().await, Some((version, u64::from(version))), "each in order");
        }
        cell.delete().await.unwrap();
        assert_eq!(next().await, None);
        let (change, made) = tokio::join!(next(), cell.set(&4));
        assert_eq!((change, made.unwrap()), (Some((4, 1)), 1));
        // Made anew between two looks, with the same version.
        cell.delete().await.unwrap();
        cell.set(&6).await.unwrap();
        assert_eq!(next().await, Some((6, 1)));
        assert!(tokio::time::timeout(Duration::from_millis(20), next()).await.is_err(), "nothing changes");
    });
}

#[test]
fn a_branch_is_copied_listed_and_dropped() {
    on_holdfast(async |_, store| {
        let main = store.branch("main").unwrap();
        let limit = main.cell::<u32>("limit").unwrap();
        assert_eq!(limit.name(), b"main/limit");
        limit.set(&1).await.unwrap();
        limit.set(&2).await.unwrap();
        let deep = main.cell::<u32>("a/b:c").unwrap();
        deep.set(&3).await.unwrap();
        store.cell::<u32>("maintenance/limit").set(&9).await.unwrap();
        assert_eq!(main.fork("trial").await.unwrap(), 2);
        let trial = store.branch("trial").unwrap();
        let mut names = trial.cells().await.unwrap();
        names.sort();
        assert_eq!(names, [&b"a/b:c"[..], b"limit"]);
        assert_eq!(
            trial.cell::<u32>("limit").unwrap().history(None, 9).await.unwrap(),
            limit.history(None, 9).await.unwrap()
        );
        trial.cell::<u32>("limit").unwrap().set(&99).await.unwrap();
        assert_eq!(limit.get().await.unwrap().unwrap().value, 2);
        assert!(matches!(main.fork("trial").await.map(drop), Err(Error::Refused(_))), "it is not empty");
        assert_eq!((trial.drop_cells().await.unwrap(), trial.drop_cells().await.unwrap()), (2, 0));
        assert_eq!(main.drop_cells().await.unwrap(), 2);
        assert_eq!(store.cell::<u32>("maintenance/limit").get().await.unwrap().unwrap().value, 9);
    });
}

#[test]
fn names_of_branches_and_cells_are_checked() {
    on_holdfast(async |_, store| {
        for name in ["", "a/b", "a:b", "a\0b", "/"] {
            assert!(matches!(store.branch(name).map(drop), Err(Error::Name(_))), "{name:?}");
        }
        let branch = store.branch("main").unwrap();
        assert!(matches!(branch.fork("a/b").await.map(drop), Err(Error::Name(_))));
        for name in ["", "a\0b", "_strata/x", &"x".repeat(1025)] {
            assert!(matches!(branch.cell::<u32>(name).map(drop), Err(Error::Name(_))), "{name:?}");
        }
        for name in ["_strata", "x/_strata/", "a/b:c"] {
            branch.cell::<u32>(name).unwrap().set(&1).await.unwrap();
        }
        let longest = branch.cell::<u32>("x".repeat(1024)).unwrap();
        assert_eq!(longest.name().len(), "main/".len() + 1024);
    });
}
