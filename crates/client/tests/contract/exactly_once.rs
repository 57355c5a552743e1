//! State that takes each update once. A store over a plain Redis says that it cannot.

use holdfast_client::{Applied, Error, Restored, StateVersion, redis};

use crate::places::on_holdfast;

#[test]
fn an_update_is_applied_once_and_never_goes_back() {
    on_holdfast(async |_, store| {
        let state = store.exactly_once_state::<String>("s/");
        assert_eq!(state.get("k").await.unwrap(), None);
        assert_eq!(state.put("k", "three".into(), 3).await.unwrap(), Applied::Applied);
        assert_eq!(state.put("k", "three".into(), 3).await.unwrap(), Applied::Duplicate);
        assert_eq!(state.put("k", "other".into(), 3).await.unwrap(), Applied::Mismatch);
        assert_eq!(state.put("k", "two".into(), 2).await.unwrap(), Applied::Stale);
        assert_eq!(state.get("k").await.unwrap(), Some(("three".into(), StateVersion::from(3))));
        assert_eq!(state.put("k", "epoch".into(), (1, 0)).await.unwrap(), Applied::Applied);
        assert_eq!(state.get("k").await.unwrap(), Some(("epoch".into(), StateVersion { epoch: 1, round: 0 })));
        assert_eq!(state.mget(["none", "k"]).await.unwrap(), [None, Some(("epoch".into(), (1, 0).into()))]);
        assert_eq!(state.mget([""; 0]).await.unwrap(), []);
    });
}

#[test]
fn ordered_updates_wait_for_those_before_them() {
    on_holdfast(async |_, store| {
        let counts = store.exactly_once_state::<i64>("c/");
        assert_eq!(counts.add_ordered("n", 3, 100).await.unwrap(), Applied::Buffered);
        assert_eq!(counts.add_ordered("n", 1, 1).await.unwrap(), Applied::Applied);
        assert_eq!(counts.put_ordered("n", 10, 2).await.unwrap(), Applied::Applied);
        assert_eq!(counts.get("n").await.unwrap(), Some((110, 3.into())));
        assert_eq!(counts.add_ordered("n", 6, 1).await.unwrap(), Applied::Buffered);
        assert_eq!(counts.seal("n", 6).await.unwrap(), 1);
        assert_eq!(counts.add("n", 7, -11).await.unwrap(), Applied::Applied);
        assert_eq!(counts.get("n").await.unwrap(), Some((100, 7.into())));
    });
}

#[test]
fn a_checkpoint_brings_the_state_back_with_its_position() {
    on_holdfast(async |_, store| {
        let (state, others) = (store.exactly_once_state::<i64>("s/"), store.exactly_once_state::<i64>("t/"));
        state.put("a", 1, 1).await.unwrap();
        state.put("b", 2, 1).await.unwrap();
        others.put("a", 9, 1).await.unwrap();
        let checkpoint = state.snapshot(Some(b"offset 2")).await.unwrap();
        state.put("a", 5, 5).await.unwrap();
        state.put("c", 5, 5).await.unwrap();
        others.put("a", 10, 2).await.unwrap();
        assert_eq!(state.merge(&checkpoint).await.unwrap(), Some(b"offset 2".to_vec()));
        assert_eq!(state.get("a").await.unwrap(), Some((5, 5.into())));
        assert_eq!(state.restore(&checkpoint).await.unwrap(), Some(b"offset 2".to_vec()));
        assert_eq!(state.get("a").await.unwrap(), Some((1, 1.into())));
        assert_eq!(state.get("b").await.unwrap(), Some((2, 1.into())));
        assert_eq!(state.get("c").await.unwrap(), None);
        assert_eq!(others.get("a").await.unwrap(), Some((10, 2.into())));
        let damaged = &checkpoint[..checkpoint.len() - 1];
        assert!(matches!(state.restore(damaged).await.unwrap_err(), Error::Refused(_)));
        assert_eq!(state.restore(&state.snapshot(None).await.unwrap()).await.unwrap(), None);
    });
}

#[test]
fn a_checkpoint_is_kept_at_the_server() {
    on_holdfast(async |_, store| {
        let state = store.exactly_once_state::<i64>("s/");
        let restored = |position: Option<&[u8]>| Some(Restored { position: position.map(<[u8]>::to_vec) });
        assert_eq!(state.restore_checkpoint("check").await.unwrap(), None);
        assert_eq!(state.merge_checkpoint("check").await.unwrap(), None);
        state.put("a", 1, 1).await.unwrap();
        assert_eq!(state.checkpoint("check", Some(b"\0offset")).await.unwrap(), 1);
        state.put("a", 2, 2).await.unwrap();
        assert_eq!(state.merge_checkpoint("check").await.unwrap(), restored(Some(b"\0offset")));
        assert_eq!(state.get("a").await.unwrap(), Some((2, 2.into())));
        assert_eq!(state.restore_checkpoint("check").await.unwrap(), restored(Some(b"\0offset")));
        assert_eq!(state.get("a").await.unwrap(), Some((1, 1.into())));
        assert_eq!(state.checkpoint("check", None).await.unwrap(), 1);
        assert_eq!(
            state.restore_checkpoint("check").await.unwrap(),
            restored(None),
            "there is one, without a position"
        );
        assert_eq!(state.merge_checkpoint("check").await.unwrap(), restored(None));
        let mut connection = store.connection().unwrap();
        redis::cmd("SET").arg("check").arg("damaged").exec_async(&mut connection).await.unwrap();
        assert!(matches!(state.restore_checkpoint("check").await, Err(Error::Refused(_))));
    });
}

#[test]
fn a_restore_fills_the_state_it_is_called_on() {
    on_holdfast(async |_, store| {
        let (a, b) = (store.exactly_once_state::<i64>("a/"), store.exactly_once_state::<i64>("b/"));
        a.put("x", 1, 1).await.unwrap();
        let snapshot = a.snapshot(Some(b"1")).await.unwrap();
        assert_eq!(a.checkpoint("check", None).await.unwrap(), 1);
        a.put("x", 2, 2).await.unwrap();
        b.put("y", 7, 7).await.unwrap();
        assert_eq!(b.restore(&snapshot).await.unwrap(), Some(b"1".to_vec()));
        assert_eq!(a.get("x").await.unwrap(), Some((2, 2.into())), "a is as it was");
        assert_eq!((b.get("x").await.unwrap(), b.get("y").await.unwrap()), (Some((1, 1.into())), None));
        b.put("y", 7, 7).await.unwrap();
        b.merge_checkpoint("check").await.unwrap();
        assert_eq!((b.get("x").await.unwrap(), b.get("y").await.unwrap()), (Some((1, 1.into())), Some((7, 7.into()))));
        b.restore_checkpoint("check").await.unwrap();
        assert_eq!((b.get("y").await.unwrap(), a.get("x").await.unwrap()), (None, Some((2, 2.into()))));
    });
}
