//! Sessions: requests that run once, what becomes of them when connections or the session are lost, and requests to a
//! client. A store over a plain Redis says that it has none.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_client::redis::{Cmd, cmd};
use holdfast_client::{
    Applied, Error, Exchange, Fields, Hook, NewEvent, PushedRequest, Session, SessionConfig, Sessions, StateStore, Swap,
};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::places::{Place, everywhere, on_holdfast};
use crate::proxy::{Proxy, Way};

async fn opened(sessions: &Sessions) -> Session {
    sessions.open(&SessionConfig::default()).await.unwrap()
}

async fn through(place: &Place, proxy: &Proxy) -> Sessions {
    place.store_at(proxy.address).await.sessions()
}

async fn incr(session: &Session, key: &str) -> Result<i64, Error> {
    session.call(&Cmd::incr(key, 1)).await
}

async fn eventually(mut condition: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while !condition().await {
        assert!(tokio::time::Instant::now() < deadline, "waited in vain");
        sleep(Duration::from_millis(2)).await;
    }
}

#[test]
fn requests_are_numbered_and_their_replies_dropped() {
    on_holdfast(async |_, store| {
        let sessions = store.sessions();
        let capabilities = vec![("kind".to_owned(), "worker".to_owned())];
        let session = sessions.open(&SessionConfig { capabilities, ..SessionConfig::default() }).await.unwrap();
        assert!(session.id().starts_with(b"session:"));
        for n in 1..=3 {
            assert_eq!(incr(&session, "n").await.unwrap(), n);
        }
        assert_eq!(session.next_request_id(), 4);
        let info = session.info().await.unwrap().unwrap();
        assert_eq!((info.low, info.replies, info.ttl, info.attached), (3, 1, Duration::from_secs(90), false));
        assert_eq!(info.capabilities["kind"], "worker");
        assert_eq!(sessions.ids().await.unwrap(), [session.id()]);
        let many = (0..20).map(|_| {
            tokio::spawn({
                let session = session.clone();
                async move { incr(&session, "n").await.unwrap() }
            })
        });
        for one in many.collect::<Vec<_>>() {
            one.await.unwrap();
        }
        assert_eq!(session.call::<i64>(&Cmd::get("n")).await.unwrap(), 23);
        assert!(session.close().await.unwrap());
        assert!(!session.close().await.unwrap());
        assert_eq!(sessions.info(session.id()).await.unwrap(), None);
        assert!(matches!(incr(&session, "n").await, Err(Error::Closed)));
    });
}

#[test]
fn errors_are_replies_too() {
    on_holdfast(async |_, store| {
        let sessions = store.sessions();
        let session = opened(&sessions).await;
        session.call::<i64>(&Cmd::hset("h", "f", 1)).await.unwrap();
        let wrong = session.prepare(&Cmd::incr("h", 1));
        for _ in 0..3 {
            assert!(matches!(wrong.send::<i64>().await, Err(Error::WrongType(_))));
        }
        assert!(matches!(session.call::<()>(&cmd("NOSUCHCOMMAND")).await, Err(Error::Refused(_))));
        assert_eq!(session.call::<i64>(&Cmd::hget("h", "f")).await.unwrap(), 1);
        assert!(matches!(wrong.send::<i64>().await, Err(Error::WrongType(_))), "its reply is kept while it is held");
    });
}

#[test]
fn a_lost_answer_is_asked_for_again() {
    on_holdfast(async |place, _| {
        let proxy = Proxy::start(place.address(), None).await;
        let store = place.store_at(proxy.address).await;
        let session = opened(&store.sessions()).await;
        for n in 1..=20 {
            eventually(async || store.ping().await).await; // it has connected again, so that the call is what is cut
            // The server has run it, and its reply does not come, or a part of it.
            proxy.cut_after(Way::Reply, n as usize % 4);
            assert_eq!(incr(&session, "n").await.unwrap(), n);
        }
        for n in 21..=30 {
            eventually(async || store.ping().await).await;
            proxy.cut_after(Way::Request, n as usize); // a part of the request comes
            assert_eq!(incr(&session, "n").await.unwrap(), n);
        }
    });
}

#[test]
fn a_connection_that_ends_in_the_middle_of_a_reply_is_no_answer() {
    everywhere(async |place| {
        let proxy = Proxy::start(place.address(), None).await;
        let store = place.store_at(proxy.address).await;
        store.set_field(b"r", b"f", Some(b"value")).await.unwrap();
        proxy.cut_after(Way::Reply, 6);
        let cut = store.get_field(b"r", b"f").await;
        assert!(matches!(cut, Err(Error::Unavailable(_))), "{cut:?}");
        assert_eq!(store.get_field(b"r", b"f").await.unwrap().as_deref(), Some(&b"value"[..]));
    });
}

#[test]
fn a_request_without_an_answer_can_be_called_again() {
    on_holdfast(async |place, store| {
        let sessions = store.sessions();
        let proxy = Proxy::start(place.address(), None).await;
        let config = SessionConfig { retry_for: Duration::from_millis(100), ..SessionConfig::default() };
        let session = through(place, &proxy).await.open(&config).await.unwrap();
        let low = async || sessions.info(session.id()).await.unwrap().unwrap().low;
        assert_eq!(incr(&session, "n").await.unwrap(), 1);
        proxy.cut_after(Way::Reply, 0);
        proxy.refuse(true);
        let unanswered = incr(&session, "n").await.unwrap_err();
        assert!(unanswered.is_temporary() && unanswered.to_string().starts_with("request 2: "), "{unanswered}");
        let request = unanswered.request().expect("it can be sent again").clone();
        assert_eq!((request.id(), format!("{request:?}").contains("INCR")), (2, true));
        drop(unanswered);
        proxy.refuse(false);
        insist(&session).await;
        assert_eq!(low().await, 2); // its reply is kept
        for _ in 0..2 {
            assert_eq!(request.send::<i64>().await.unwrap(), 2);
        }
        drop(request);
        let next = session.next_request_id();
        incr(&session, "other").await.unwrap();
        assert_eq!(low().await, next);
    });
}

#[test]
fn a_request_goes_another_way_when_its_connection_has_silently_died() {
    on_holdfast(async |place, _| {
        let proxy = Proxy::start(place.address(), None).await;
        let store = place.hasty_store_at(proxy.address, Duration::from_millis(500)).await;
        let session = opened(&store.sessions()).await;
        assert_eq!(incr(&session, "n").await.unwrap(), 1);
        proxy.freeze();
        assert_eq!(incr(&session, "n").await.unwrap(), 2);
        proxy.freeze();
        assert_eq!(incr(&session, "n").await.unwrap(), 3);
    });
}

#[test]
fn a_call_that_is_dropped_holds_no_replies_back() {
    on_holdfast(async |place, store| {
        let sessions = store.sessions();
        let proxy = Proxy::start(place.address(), None).await;
        let session = opened(&through(place, &proxy).await).await;
        // A store connects once to see whether there is a server.
        eventually(async || proxy.cuts() == 1).await;
        proxy.cut_after(Way::Reply, 0);
        proxy.refuse(true);
        let asking = tokio::spawn({
            let session = session.clone();
            async move { incr(&session, "n").await }
        });
        eventually(async || proxy.cuts() == 2).await;
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        proxy.refuse(false);
        incr(&session, "n").await.unwrap();
        assert_eq!(sessions.info(session.id()).await.unwrap().unwrap().low, 2);
    });
}

/// Calls until there is an answer, while a client with little patience connects again.
async fn insist(session: &Session) {
    while let Err(error) = incr(session, "other").await {
        assert!(matches!(error, Error::Unanswered { .. }), "{error}"); // and dropped, so it is abandoned
    }
}

#[test]
fn a_session_that_is_gone_is_an_error_that_says_so() {
    on_holdfast(async |place, store| {
        let sessions = store.sessions();
        let session = opened(&sessions).await;
        sessions.close(session.id()).await.unwrap();
        let lost = |error: Error| match error {
            Error::SessionLost(lost) => lost,
            other => panic!("{other}"),
        };
        let first = lost(incr(&session, "n").await.unwrap_err());
        assert_eq!(
            (first.session_id.as_slice(), first.request_id, first.maybe_applied),
            (session.id(), Some(1), false)
        );
        assert!(first.to_string().ends_with("its request 1 has not run"), "{first}");
        lost(session.ack(1).await.unwrap_err());
        lost(session.pending(0, 10).await.unwrap_err());
        lost(session.serve(async |_| Err(Error::Closed)).await.unwrap_err());

        // A request that was sent before may have run then, whatever becomes of it now.
        let session = opened(&sessions).await;
        let request = session.prepare(&Cmd::incr("m", 1));
        request.send::<i64>().await.unwrap();
        sessions.close(session.id()).await.unwrap();
        assert!(lost(request.send::<i64>().await.unwrap_err()).maybe_applied);

        // The request ran, its reply was lost, and so was the session: the result is unknown.
        let proxy = Proxy::start(place.address(), None).await;
        let session = opened(&through(place, &proxy).await).await;
        // A store connects once to see whether there is a server.
        eventually(async || proxy.cuts() == 1).await;
        proxy.cut_after(Way::Reply, 0);
        proxy.refuse(true);
        let asking = tokio::spawn({
            let session = session.clone();
            async move { incr(&session, "m").await.unwrap_err() }
        });
        eventually(async || proxy.cuts() == 2).await;
        sessions.close(session.id()).await.unwrap();
        proxy.refuse(false);
        let error = asking.await.unwrap();
        assert!(!error.is_temporary());
        let unknown = lost(error);
        assert!(
            unknown.maybe_applied && unknown.to_string().ends_with("its request 1 may have run, or not"),
            "{unknown}"
        );
    });
}

#[test]
fn what_another_session_is_missing_is_no_loss_of_this_one() {
    on_holdfast(async |_, store| {
        let sessions = store.sessions();
        let (session, other) = (opened(&sessions).await, opened(&sessions).await);
        assert_eq!(session.push(other.id(), "work").await.unwrap(), 1);
        assert!(matches!(session.push("session:none", "work").await, Err(Error::NoSession(_))));
        assert!(matches!(sessions.push("session:none", "work").await, Err(Error::NoSession(_))));
        assert_eq!(incr(&session, "n").await.unwrap(), 1);
        assert_eq!(sessions.pending(other.id(), 0, 10).await.unwrap()[0].payload, b"work");
    });
}

#[test]
fn a_session_is_kept_alive_while_it_asks_nothing() {
    on_holdfast(async |_, store| {
        let sessions = store.sessions();
        let config = SessionConfig { ttl: Duration::from_millis(600), ..SessionConfig::default() };
        let (session, dropped) = (sessions.open(&config).await.unwrap(), sessions.open(&config).await.unwrap());
        let dropped_id = dropped.id().to_vec();
        drop(dropped);
        eventually(async || sessions.info(&dropped_id).await.unwrap().is_none()).await;
        sleep(config.ttl).await;
        assert_eq!(incr(&session, "n").await.unwrap(), 1);
    });
}

#[test]
fn a_program_goes_on_with_its_session_after_a_crash_of_its_own() {
    on_holdfast(async |place, store| {
        let sessions = store.sessions();
        let session = opened(&sessions).await;
        incr(&session, "n").await.unwrap();
        let (id, next) = (session.id().to_vec(), session.next_request_id());
        assert_eq!(incr(&session, "n").await.unwrap(), 2);
        drop(session);
        let resume = async || place.store().await.sessions().resume(&id, next, Duration::from_secs(60)).await;
        let again = resume().await.unwrap();
        assert_eq!(incr(&again, "n").await.unwrap(), 2); // which is the reply that it had
        assert_eq!(incr(&again, "n").await.unwrap(), 3);
        again.close().await.unwrap();
        assert!(matches!(resume().await.map(drop), Err(Error::SessionLost(_))));
    });
}

/// Serves a session in a task, and keeps what comes.
fn serve(session: &Session) -> (Arc<Mutex<Vec<PushedRequest>>>, JoinHandle<()>) {
    let (seen, session) = (Arc::new(Mutex::new(Vec::new())), session.clone());
    let kept = seen.clone();
    let serving = tokio::spawn(async move {
        let keep = |request| {
            kept.lock().unwrap().push(request);
            async { Ok::<_, Error>(()) }
        };
        session.serve(keep).await.unwrap();
    });
    (seen, serving)
}

async fn has_pending(sessions: &Sessions, session: &Session, count: u64) -> bool {
    sessions.info(session.id()).await.unwrap().unwrap().pending == count
}

#[test]
fn pushed_requests_are_served_in_order_and_acknowledged() {
    on_holdfast(async |_, store| {
        let sessions = store.sessions();
        let session = opened(&sessions).await;
        for n in 1..=3 {
            assert_eq!(sessions.push(session.id(), n).await.unwrap(), n);
        }
        assert_eq!(session.pending(1, 1).await.unwrap()[0].id, 2);
        let (seen, serving) = serve(&session);
        eventually(async || seen.lock().unwrap().len() == 3).await;
        for n in 4..=5 {
            sessions.push(session.id(), n).await.unwrap();
        }
        eventually(async || seen.lock().unwrap().len() == 5).await;
        eventually(async || has_pending(&sessions, &session, 0).await).await;
        serving.abort();
        let expected: Vec<_> =
            (1..=5).map(|n: u64| PushedRequest { id: n, payload: n.to_string().into_bytes() }).collect();
        assert_eq!(*seen.lock().unwrap(), expected);
        assert_eq!(session.ack(5).await.unwrap(), 0);
    });
}

#[test]
fn a_request_whose_handler_fails_comes_again() {
    on_holdfast(async |_, store| {
        let sessions = store.sessions();
        let session = opened(&sessions).await;
        for n in 1..=2 {
            sessions.push(session.id(), n).await.unwrap();
        }
        let fail = async |request: PushedRequest| if request.id == 2 { Err(Error::NoFields) } else { Ok(()) };
        assert!(matches!(session.serve(fail).await, Err(Error::NoFields)));
        assert_eq!(session.pending(0, 10).await.unwrap().len(), 1);
        let (seen, serving) = serve(&session);
        eventually(async || has_pending(&sessions, &session, 0).await).await;
        serving.abort();
        assert_eq!(seen.lock().unwrap()[0].id, 2);
    });
}

#[test]
fn requests_are_served_once_over_lost_connections() {
    on_holdfast(async |place, store| {
        let sessions = store.sessions();
        let proxy = Proxy::start(place.address(), None).await;
        let (session, pusher) = (opened(&through(place, &proxy).await).await, opened(&sessions).await);
        let (seen, serving) = serve(&session);
        for n in 1..=100 {
            assert_eq!(pusher.push(session.id(), n).await.unwrap(), n);
            if n % 10 == 0 {
                proxy.cut();
            }
        }
        eventually(async || has_pending(&sessions, &session, 0).await).await;
        proxy.cut(); // while it waits
        pusher.push(session.id(), 101).await.unwrap();
        eventually(async || has_pending(&sessions, &session, 0).await).await;
        serving.abort();
        let ids: Vec<_> = seen.lock().unwrap().iter().map(|request| request.id).collect();
        assert_eq!(ids, (1..=101).collect::<Vec<_>>());
    });
}

#[test]
fn requests_that_were_not_acknowledged_are_found() {
    on_holdfast(async |_, store| {
        let sessions = store.sessions();
        let (one, other) = (opened(&sessions).await, opened(&sessions).await);
        sessions.push(one.id(), "a").await.unwrap();
        sessions.push(other.id(), "b").await.unwrap();
        assert!(!sessions.has_retry(1).await.unwrap());
        let later = one.pending(0, 1).await.unwrap()[0].last_sent_ms + 60_000;
        assert!(sessions.has_retry(later).await.unwrap());
        let mut found = sessions.retry(later, 1).await.unwrap();
        assert_eq!(found.len(), 1);
        found.extend(sessions.retry(later, 10).await.unwrap());
        let mut found: Vec<_> = found.into_iter().map(|request| request.payload).collect();
        found.sort();
        found.dedup();
        assert_eq!(found, [b"a", b"b"]);
    });
}

#[test]
fn hooks() {
    on_holdfast(async |_, store| {
        let sessions = store.sessions();
        let library = "#!lua name=hooks\nredis.register_function('expired', function(keys, args) redis.call('SET', 'expired', keys[1]) end)";
        let mut connection = store.connection().unwrap();
        let load = cmd("FUNCTION").arg("LOAD").arg("REPLACE").arg(library).exec_async(&mut connection).await;
        load.unwrap();
        assert_eq!(sessions.hook(Hook::Expired).await.unwrap(), None);
        sessions.set_hook(Hook::Expired, Some("expired")).await.unwrap();
        assert_eq!(sessions.hook(Hook::Expired).await.unwrap().as_deref(), Some("expired"));
        assert_eq!(sessions.hook(Hook::Created).await.unwrap(), None);
        let session = opened(&sessions).await;
        session.close().await.unwrap();
        let expired: Vec<u8> = cmd("GET").arg("expired").query_async(&mut connection).await.unwrap();
        assert_eq!(expired, session.id());
        sessions.set_hook(Hook::Expired, None).await.unwrap();
        assert_eq!(sessions.hook(Hook::Expired).await.unwrap(), None);
    });
}

#[test]
fn a_request_is_prepared_again_after_a_crash_of_the_program() {
    on_holdfast(async |_, store| {
        let sessions = store.sessions();
        let session = opened(&sessions).await;
        let request = session.prepare(&Cmd::incr("n", 1));
        let stored = (session.id().to_vec(), request.id()); // before it is sent
        assert_eq!(request.send::<i64>().await.unwrap(), 1);
        assert!(matches!(session.prepare_as(stored.1, &Cmd::incr("n", 1)), Err(Error::RequestIdUsed(1))));
        std::mem::forget(request); // the program ends without a word
        drop(session);

        let again = sessions.resume(&stored.0, stored.1 + 1, Duration::from_secs(60)).await.unwrap();
        let request = again.prepare_as(stored.1, &Cmd::incr("n", 1)).unwrap();
        assert!(matches!(again.prepare_as(stored.1, &Cmd::incr("m", 1)), Err(Error::RequestIdUsed(1))));
        assert_eq!(incr(&again, "n").await.unwrap(), 2);
        assert_eq!(request.send::<i64>().await.unwrap(), 1, "it had run");

        let next = sessions.resume(&stored.0, stored.1, Duration::from_secs(60)).await.unwrap();
        let repeated = next.prepare_as(stored.1, &Cmd::incr("n", 1)).unwrap();
        assert_eq!(repeated.send::<i64>().await.unwrap(), 1, "the number that was next");

        let other = sessions.resume(&stored.0, 9, Duration::from_secs(60)).await.unwrap();
        let mismatch = other.prepare_as(stored.1, &Cmd::incr("m", 1)).unwrap().send::<i64>().await;
        assert!(matches!(mismatch, Err(Error::Mismatch(_))), "{mismatch:?}");
        drop(request);
        incr(&again, "n").await.unwrap();
        let dropped = other.prepare_as(2, &Cmd::incr("n", 1)).unwrap().send::<i64>().await;
        assert!(matches!(dropped, Err(Error::Evicted(_))), "{dropped:?}");
    });
}

#[test]
fn typed_calls_run_once_over_lost_answers() {
    on_holdfast(async |place, _| {
        let proxy = Proxy::start(place.address(), None).await;
        let store = place.store_at(proxy.address).await;
        let session = opened(&store.sessions()).await;
        let cut = async || {
            eventually(async || store.ping().await).await;
            proxy.cut_after(Way::Reply, 0);
        };
        let cell = session.cell::<u32>("cell");
        for version in 1..=3 {
            cut().await;
            assert_eq!(cell.set(&7).await.unwrap(), version);
        }
        cut().await;
        assert_eq!(cell.cas(3, &8).await.unwrap(), Swap::Done(4), "not refused by its own success");
        assert_eq!(session.get_cells::<u32>(["cell", "none"]).await.unwrap()[0].as_ref().unwrap().value, 8);
        assert!(matches!(cell.wait_after(4, Duration::from_secs(1)).await, Err(Error::CannotWait)));

        let run = session.run::<String>("run");
        for _ in 0..3 {
            cut().await;
            let appended = run.append(&NewEvent::new("RunStarted", "{}".to_owned())).await.unwrap();
            assert_eq!(appended.event().unwrap().run_seq, 1);
        }
        assert_eq!(run.snapshot().await.unwrap().unwrap().status, "running");

        cut().await;
        session
            .put(b"job", &Fields::new().with("state", "new").with("old", 1), Some(Duration::from_secs(60)))
            .await
            .unwrap();
        session.set_fields(b"job", &Fields::new().with("step", 1).without("old")).await.unwrap();
        session.set_field(b"job", b"step", Some(b"2")).await.unwrap();
        cut().await;
        assert!(session.compare_and_swap(b"job", b"state", b"new", b"old").await.unwrap());
        assert_eq!(session.get_field(b"job", b"step").await.unwrap().as_deref(), Some(&b"2"[..]));
        cut().await;
        let swap = Exchange::new().expected("state", "old").set("state", "older");
        assert!(session.exchange(b"job", &swap).await.unwrap().applied);
        let record = session.get(b"job").await.unwrap().unwrap();
        assert_eq!(record.fields, Fields::new().with("state", "older").with("step", 2));
        assert!(record.ttl.is_some());
        cut().await;
        assert!(session.delete(b"job").await.unwrap());
        assert_eq!(session.get(b"job").await.unwrap(), None);

        let counts = session.exactly_once_state::<i64>("counts/");
        cut().await;
        assert_eq!(counts.add("n", 1, 5).await.unwrap(), Applied::Applied);
        assert_eq!(counts.get("n").await.unwrap(), Some((5, 1.into())));
    });
}
