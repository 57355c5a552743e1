//! Publish and subscribe, with the blocking and the tokio connection, over RESP2 and as RESP3 pushes.

use std::sync::mpsc;
use std::thread;

use futures_util::StreamExt;
use redis::{
    AsyncCommands, AsyncConnectionConfig, Commands, ControlFlow, ProtocolVersion, PubSubCommands, PushKind, Value,
};
use redis_crate_suite::{PATIENCE, both_async, both_clients, client, turn};
use tokio::time::timeout;

#[test]
fn messages_and_patterns() {
    both_clients(|client, con| {
        let mut subscriber = client.get_connection().unwrap();
        let mut pubsub = subscriber.as_pubsub();
        pubsub.set_read_timeout(Some(PATIENCE)).unwrap();
        pubsub.subscribe(&["news", "weather"]).unwrap();
        pubsub.psubscribe("w*").unwrap();
        for i in 0..100 {
            assert_eq!(con.publish::<_, _, i64>("news", i).unwrap(), 1);
        }
        assert_eq!(con.publish::<_, _, i64>("weather", "rain").unwrap(), 2);
        for i in 0..100 {
            let message = pubsub.get_message().unwrap();
            assert_eq!((message.get_channel_name(), message.get_payload::<i64>().unwrap()), ("news", i));
            assert!(!message.from_pattern());
        }
        let heard: Vec<(String, Option<String>)> = (0..2)
            .map(|_| pubsub.get_message().unwrap())
            .map(|message| (message.get_payload().unwrap(), message.get_pattern().unwrap()))
            .collect();
        assert_eq!(heard, [("rain".into(), None), ("rain".into(), Some("w*".into()))]);
        pubsub.unsubscribe("news").unwrap();
        assert_eq!(con.publish::<_, _, i64>("news", "x").unwrap(), 0);
    });
}

#[test]
fn a_connection_is_of_use_again_after_its_subscriptions() {
    both_clients(|client, con| {
        let mut subscriber = client.get_connection().unwrap();
        {
            let mut pubsub = subscriber.as_pubsub();
            pubsub.subscribe("news").unwrap();
            pubsub.psubscribe("n*").unwrap();
            assert_eq!(con.publish::<_, _, i64>("news", "never read").unwrap(), 2);
        }
        let _: () = subscriber.set("k", "v").unwrap();
        assert_eq!(subscriber.get::<_, String>("k").unwrap(), "v");
        assert_eq!(con.publish::<_, _, i64>("news", "x").unwrap(), 0);
    });
}

#[test]
fn a_loop_over_messages() {
    both_clients(|client, con| {
        let (ready, subscribed) = mpsc::channel();
        let heard = thread::scope(|scope| {
            let listener = scope.spawn(|| {
                let mut subscriber = client.get_connection().unwrap();
                subscriber.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut heard = Vec::new();
                PubSubCommands::subscribe(&mut subscriber, &["work"], |message| {
                    match message.get_payload::<String>().unwrap().as_str() {
                        "ready?" => ready.send(()).unwrap(),
                        "stop" => return ControlFlow::Break(()),
                        other => heard.push(other.to_owned()),
                    }
                    ControlFlow::Continue
                })
                .unwrap();
                heard
            });
            while con.publish::<_, _, i64>("work", "ready?").unwrap() == 0 {
                assert!(!listener.is_finished());
                thread::yield_now();
            }
            subscribed.recv_timeout(PATIENCE).unwrap();
            for word in ["one", "two", "three", "stop"] {
                let _: () = con.publish("work", word).unwrap();
            }
            listener.join().unwrap()
        });
        assert_eq!(heard, ["one", "two", "three"]);
    });
}

#[test]
fn a_stream_of_messages() {
    both_async(async |client, mut con| {
        let (mut sink, mut stream) = client.get_async_pubsub().await.unwrap().split();
        sink.subscribe(&["news"]).await.unwrap();
        sink.psubscribe("w*").await.unwrap();
        for i in 0..100 {
            assert_eq!(con.publish::<_, _, i64>("news", i).await.unwrap(), 1);
        }
        for i in 0..100 {
            let message = timeout(PATIENCE, stream.next()).await.unwrap().unwrap();
            assert_eq!(message.get_payload::<i64>().unwrap(), i);
        }
        let _: i64 = con.publish("weather", "rain").await.unwrap();
        let message = timeout(PATIENCE, stream.next()).await.unwrap().unwrap();
        assert_eq!((message.get_channel_name(), message.get_pattern::<String>().unwrap().as_str()), ("weather", "w*"));
        sink.unsubscribe("news").await.unwrap();
        sink.punsubscribe("w*").await.unwrap();
        assert_eq!(con.publish::<_, _, i64>("news", "x").await.unwrap(), 0);
    });
}

#[test]
fn a_stream_ends_with_its_connection() {
    both_async(async |client, mut con| {
        let mut pubsub = client.get_async_pubsub().await.unwrap();
        pubsub.subscribe("news").await.unwrap();
        let killed: i64 =
            redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub").query_async(&mut con).await.unwrap();
        assert_eq!(killed, 1);
        assert!(timeout(PATIENCE, pubsub.on_message().next()).await.unwrap().is_none());
    });
}

/// The text of one element of a push.
fn text(value: &Value) -> String {
    redis::from_redis_value_ref(value).unwrap()
}

#[test]
fn pushes_come_between_the_replies_of_a_blocking_connection() {
    let _turn = turn();
    let mut con = client(ProtocolVersion::RESP3, 0).get_connection().unwrap();
    let (sender, pushes) = mpsc::channel();
    con.set_push_sender(sender);
    redis::cmd("FLUSHALL").exec(&mut con).unwrap();
    con.set_read_timeout(Some(PATIENCE)).unwrap();
    con.subscribe_resp3("news").unwrap();
    // The crate has no method for shard channels; their confirmation is a push, so there is no reply to wait for.
    redis::cmd("SSUBSCRIBE").arg("orders").set_no_response(true).exec(&mut con).unwrap();
    for i in 0..20 {
        assert_eq!(con.publish::<_, _, i64>("news", i).unwrap(), 1);
        assert_eq!(con.incr::<_, _, i64>("n", 1).unwrap(), i + 1);
    }
    let heard: i64 = redis::cmd("SPUBLISH").arg("orders").arg("last").query(&mut con).unwrap();
    assert_eq!(heard, 1);
    // A message to the publisher itself comes before the reply, or right after it: one more reply makes sure of it.
    let _: String = con.ping().unwrap();
    let pushes: Vec<_> = pushes.try_iter().map(|push| (push.kind, push.data)).collect();
    let kinds: Vec<PushKind> = pushes.iter().map(|(kind, _)| kind.clone()).collect();
    assert_eq!(kinds[..2], [PushKind::Subscribe, PushKind::SSubscribe]);
    assert!(kinds[2..22].iter().all(|kind| *kind == PushKind::Message));
    assert_eq!(kinds[22..], [PushKind::SMessage]);
    for (i, (_, data)) in pushes[2..22].iter().enumerate() {
        assert_eq!((text(&data[0]), text(&data[1])), ("news".into(), i.to_string()));
    }
}

#[test]
fn pushes_of_a_multiplexed_connection() {
    let _turn = turn();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let client = client(ProtocolVersion::RESP3, 0);
        let (sender, mut pushes) = tokio::sync::mpsc::unbounded_channel();
        let config = AsyncConnectionConfig::new().set_push_sender(sender);
        let mut con = client.get_multiplexed_async_connection_with_config(&config).await.unwrap();
        let () = redis::cmd("FLUSHALL").query_async(&mut con).await.unwrap();
        con.subscribe("news").await.unwrap();
        con.psubscribe("n*").await.unwrap();
        let mut expected = vec![PushKind::Subscribe, PushKind::PSubscribe];
        for i in 0..20 {
            assert_eq!(con.publish::<_, _, i64>("news", i).await.unwrap(), 2);
            assert_eq!(con.incr::<_, _, i64>("n", 1).await.unwrap(), i + 1);
            expected.extend([PushKind::Message, PushKind::PMessage]);
        }
        con.unsubscribe("news").await.unwrap();
        con.punsubscribe("n*").await.unwrap();
        expected.extend([PushKind::Unsubscribe, PushKind::PUnsubscribe]);
        let mut kinds = Vec::new();
        for _ in &expected {
            kinds.push(timeout(PATIENCE, pushes.recv()).await.unwrap().unwrap().kind);
        }
        assert_eq!(kinds, expected);
        let mine: i64 = redis::cmd("CLIENT").arg("ID").query_async(&mut con).await.unwrap();
        let mut other = client.get_multiplexed_async_connection().await.unwrap();
        let () = redis::cmd("CLIENT").arg("KILL").arg("ID").arg(mine).query_async(&mut other).await.unwrap();
        assert_eq!(timeout(PATIENCE, pushes.recv()).await.unwrap().unwrap().kind, PushKind::Disconnection);
    });
}
