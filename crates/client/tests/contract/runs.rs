//! Runs: appends, reads, waits and snapshots. A store over a plain Redis says that it cannot.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_client::{Append, Event, Lag, NewEvent, Run, redis};

use crate::places::on_holdfast;
use crate::proxy::Proxy;

const LONG: Duration = Duration::from_secs(60);

fn event(event_type: &str, data: &str) -> NewEvent<String> {
    NewEvent::new(event_type, data.to_owned())
}

async fn seq(run: &Run<String>, event: NewEvent<String>) -> u64 {
    match run.append(&event).await.unwrap() {
        Append::Persisted(receipt) => receipt.run_seq,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_event_is_appended_once_and_comes_back_whole() {
    on_holdfast(async |_, store| {
        let run = store.run::<String>("whole");
        assert_eq!(run.info().await.unwrap(), None);
        assert_eq!(run.snapshot().await.unwrap(), None);
        assert_eq!(run.events(0, 10).await.unwrap(), []);
        let whole = event("StepStarted", "{\"a\": 1}")
            .key("k")
            .event_id("id")
            .step_id("s")
            .engine_attempt_id("1")
            .logical_attempt_id("2")
            .emitted_at("2026-01-01T00:00:00Z")
            .adapter_version("v3")
            .engine_run_ref("ref")
            .caused_by_signal_id("signal")
            .parent_event_id("parent")
            .plan_version("4")
            .attribute("tenant", "\0acme")
            .attribute("region", "eu");
        let Append::Persisted(first) = run.append(&whole).await.unwrap() else { panic!("it is new") };
        assert_eq!((first.run_seq, &*first.event_id), (1, &b"id"[..]));
        let again = run.append(&whole).await.unwrap();
        assert_eq!(again, Append::Known { event: first.clone(), mismatch: false });
        assert_eq!(again.event(), Some(&first));
        let other = run.append(&event("StepStarted", "other").key("k")).await.unwrap();
        assert_eq!(other, Append::Known { event: first.clone(), mismatch: true });
        let text = |text: &str| text.as_bytes().to_vec();
        let expected = Event {
            run_seq: 1,
            event_id: text("id"),
            event_type: text("StepStarted"),
            data: "{\"a\": 1}".to_owned(),
            key: text("k"),
            emitted_at: text("2026-01-01T00:00:00Z"),
            persisted_at_ms: first.persisted_at_ms,
            step_id: Some(text("s")),
            engine_attempt_id: Some(text("1")),
            logical_attempt_id: Some(text("2")),
            adapter_version: Some(text("v3")),
            engine_run_ref: Some(text("ref")),
            caused_by_signal_id: Some(text("signal")),
            parent_event_id: Some(text("parent")),
            plan_version: Some(text("4")),
            attributes: BTreeMap::from([(text("region"), text("eu")), (text("tenant"), text("\0acme"))]),
        };
        assert_eq!(run.events(0, 10).await.unwrap(), [expected]);
        // The computed key: one event of a type for each step, attempt and plan.
        assert_eq!(seq(&run, event("RunStarted", "x")).await, 2);
        assert!(matches!(run.append(&event("RunStarted", "x")).await.unwrap(), Append::Known { .. }));
        assert_eq!(seq(&run, event("RunStarted", "x").plan_version("2")).await, 3);
        let info = run.info().await.unwrap().unwrap();
        assert_eq!((&*info.status, info.events), ("running", 3));
        assert!(info.bytes > 0 && info.first_at_ms <= info.last_at_ms);
        assert!(run.delete().await.unwrap() && !run.delete().await.unwrap());
    });
}

#[test]
fn one_of_two_engines_goes_on() {
    on_holdfast(async |_, store| {
        let run = store.run::<String>("fenced");
        assert_eq!(run.append(&event("a", "").if_last(1)).await.unwrap(), Append::Refused { last: 0 });
        assert_eq!(seq(&run, event("a", "").if_last(0)).await, 1);
        let next = |key: &str| event("b", "").key(key).if_last(1);
        let (one, other) = (next("one"), next("other"));
        let (one, other) = tokio::join!(run.append(&one), run.append(&other));
        let outcomes = [one.unwrap(), other.unwrap()];
        assert_eq!(outcomes.iter().filter(|outcome| matches!(outcome, Append::Persisted(_))).count(), 1);
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Append::Refused { last: 2 }).count(), 1);
    });
}

#[test]
fn a_snapshot_a_replay_and_a_projection_of_ones_own() {
    on_holdfast(async |_, store| {
        let run = store.run::<String>("projected");
        seq(&run, event("RunStarted", "begin")).await;
        seq(&run, event("StepStarted", "one").step_id("b")).await;
        seq(&run, event("StepStarted", "two").step_id("a")).await;
        seq(&run, event("StepCompleted", "three").step_id("b")).await;
        let after_three = run.project_up_to(3).await.unwrap();
        let now = run.snapshot().await.unwrap().unwrap();
        assert_eq!(run.project().await.unwrap(), now);
        assert_eq!(run.project_up_to(u64::MAX >> 1).await.unwrap(), now);
        let unknown = store.run::<String>("unknown");
        assert_eq!(unknown.snapshot().await.unwrap(), None);
        let nothing = unknown.project().await.unwrap();
        assert_eq!((&*nothing.status, nothing.last_event_seq, nothing.steps.len()), ("pending", 0, 0));
        assert_eq!(unknown.project_up_to(3).await.unwrap(), nothing);
        assert_eq!((now.status.as_str(), now.last_event_seq, now.data.as_deref()), ("running", 4, Some("begin")));
        assert!(now.started_at_ms.is_some() && now.updated_at_ms >= now.started_at_ms);
        let steps = |snapshot: &holdfast_client::Snapshot<String>| -> Vec<String> {
            let shown = snapshot.steps.iter();
            shown
                .map(|(name, step)| format!("{} {} {} {}", name.escape_ascii(), step.status, step.attempts, step.data))
                .collect()
        };
        assert_eq!(steps(&after_three), ["b running 1 one", "a running 1 two"]);
        assert_eq!(steps(&now), ["b completed 1 three", "a running 1 two"]);
        let types = run.fold(Vec::new(), |mut types, event| {
            types.push(String::from_utf8(event.event_type).unwrap());
            types
        });
        assert_eq!(types.await.unwrap(), ["RunStarted", "StepStarted", "StepStarted", "StepCompleted"]);
        let ended = store.run::<String>("projected-too");
        seq(&ended, event("RunFailed", "")).await;
        let listed = |statuses: &'static [&'static str]| {
            let store = store.clone();
            async move {
                let mut names = store.runs("projected", statuses).await.unwrap();
                names.sort();
                names
            }
        };
        assert_eq!(listed(&[]).await, [&b"projected"[..], b"projected-too"]);
        assert_eq!(listed(&["running", "paused"]).await, [b"projected"]);
    });
}

#[test]
fn a_reader_waits_for_the_next_event() {
    on_holdfast(async |_, store| {
        let run = store.run::<String>("followed");
        assert_eq!(run.wait_for_events(0, 10, Duration::from_millis(5)).await.unwrap(), []);
        let reader = tokio::spawn({
            let run = run.clone();
            async move {
                let (mut seen, mut after) = (Vec::new(), 0);
                while seen.len() < 50 {
                    for event in run.wait_for_events(after, 7, LONG).await.unwrap() {
                        after = event.run_seq;
                        seen.push((event.run_seq, event.data));
                    }
                }
                seen
            }
        });
        for number in 1..=50_u64 {
            assert_eq!(seq(&run, event("e", &number.to_string()).key(number.to_string())).await, number);
        }
        let seen = reader.await.unwrap();
        assert!(seen.iter().zip(1..).all(|((seq, data), number)| *seq == number && *data == number.to_string()));
        let error = run.events(51, 1).await.unwrap_err();
        assert!(error.to_string().contains("made anew"), "{error}");
        let mut connection = store.connection().unwrap();
        redis::cmd("SET").arg("plain").arg("text").query_async::<()>(&mut connection).await.unwrap();
        assert!(store.run::<String>("plain").events(0, 1).await.is_err());
    });
}

#[test]
fn a_follower_sees_every_event_once_and_tells_its_lag() {
    on_holdfast(async |place, store| {
        let proxy = Proxy::start(place.address(), None).await;
        let lags = Arc::new(Mutex::new(Vec::new()));
        let run = place.store_at(proxy.address).await.run::<String>("followed");
        let mut events = run.follow(0).page_size(4).on_lag({
            let lags = lags.clone();
            move |lag| lags.lock().unwrap().push(lag)
        });
        let follower = tokio::spawn(async move {
            let mut seen = Vec::new();
            while events.position() < 30 {
                let event = events.next().await.unwrap();
                seen.push((event.run_seq, event.data));
            }
            seen
        });
        let writer = store.run::<String>("followed");
        for number in 1..=30_u64 {
            seq(&writer, event("e", &number.to_string()).key(number.to_string())).await;
            if number % 10 == 0 {
                proxy.cut();
            }
        }
        let seen = follower.await.unwrap();
        assert_eq!(seen, (1..=30).map(|number| (number, number.to_string())).collect::<Vec<_>>());
        assert!(lags.lock().unwrap().len() >= 7, "after each page of at most four");
    });
}

#[test]
fn a_lag_is_the_events_that_are_left_and_the_age_of_the_first() {
    on_holdfast(async |_, store| {
        let run = store.run::<String>("lagging");
        assert_eq!(run.lag(0).await.unwrap(), Lag::default());
        for number in 1..=3 {
            seq(&run, event("e", "").key(number.to_string())).await;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        let lag = run.lag(1).await.unwrap();
        assert_eq!(lag.events, 2);
        assert!(lag.age >= Duration::from_millis(1) && lag.age < Duration::from_secs(60), "{lag:?}");
        assert_eq!(run.lag(3).await.unwrap(), Lag::default());
        assert!(run.lag(4).await.is_err(), "no event has that number");
    });
}
