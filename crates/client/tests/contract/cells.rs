//! Cells: versions, swaps, history and watches. A store over a plain Redis says that it cannot.

use std::time::Duration;

use holdfast_client::{Error, Store, Swap, Version, redis};
use tokio::task::JoinSet;

use crate::places::{Place, everywhere};

const LONG: Duration = Duration::from_secs(60);

/// A store that has cells, unless the place has none, which must say so.
async fn store_with_cells(place: &Place) -> Option<Store> {
    let store = place.store().await;
    if store.is_holdfast() {
        return Some(store);
    }
    let refused = store.cell::<String>("c").get().await.unwrap_err();
    assert!(matches!(refused, Error::NeedsHoldfast("cell.cas")), "{refused}");
    None
}

#[test]
fn a_cell_is_made_once_and_swapped_by_its_version() {
    everywhere(async |place| {
        let Some(store) = store_with_cells(place).await else { return };
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
    everywhere(async |place| {
        let Some(store) = store_with_cells(place).await else { return };
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
    everywhere(async |place| {
        let Some(store) = store_with_cells(place).await else { return };
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
    everywhere(async |place| {
        let Some(store) = store_with_cells(place).await else { return };
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
    everywhere(async |place| {
        let Some(store) = store_with_cells(place).await else { return };
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
