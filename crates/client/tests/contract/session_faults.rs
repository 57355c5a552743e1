//! The proof of sessions: many clients count through connections that are cut at random bytes, while the server is
//! killed and started again. At the end every counter is the number of increments that were asked for.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use holdfast_client::redis::{Cmd, Script};
use holdfast_client::{Config, Error, Session, SessionConfig, Store, redis};
use tokio::task::JoinSet;
use tokio::time::sleep;
use wire::{Random, Server};

use crate::proxy::Proxy;

const CLIENTS: usize = 16;
const INCREMENTS: usize = 100;
const KILLS: usize = 3;
const SCRIPT: &str = "return redis.call('INCR', KEYS[1])";

#[test]
fn every_increment_counts_once() {
    let mut random = Random::from_env();
    let dir = wire::fresh_dir();
    tokio::runtime::Runtime::new().unwrap().block_on(count_and_kill(&dir, &mut random));
    fs::remove_dir_all(dir).unwrap();
}

async fn count_and_kill(dir: &Path, random: &mut Random) {
    let mut server = Server::start(dir, &[]);
    let address = server.address();
    let store = Store::connect(&format!("redis://{address}")).await.unwrap();
    if !store.is_holdfast() {
        return wire::skip("the server has no sessions");
    }
    let proxy = Arc::new(Proxy::start(address, Some(Random::new(random.next_u64()))).await);
    let done = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (address, done, random) = (proxy.address, done.clone(), Random::new(random.next_u64()));
        clients.spawn(async move { count(client, &format!("redis://{address}"), random, &done).await });
    }
    for kill in 1..=KILLS {
        let deadline = Instant::now() + Duration::from_secs(60);
        while done.load(SeqCst) < CLIENTS * INCREMENTS * kill / (KILLS + 1) {
            assert!(Instant::now() < deadline, "no increment is answered");
            clients.try_join_next().iter().for_each(|ended| assert!(ended.is_ok(), "a client has failed"));
            sleep(Duration::from_millis(1)).await;
        }
        server.kill();
        server = Server::launch(address, dir, |_| {});
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    assert!(proxy.cuts() > CLIENTS, "connections were cut");

    let get = async |command: Cmd| -> usize {
        let connection = &mut connected(address).await;
        command.query_async::<Option<usize>>(connection).await.unwrap().unwrap_or(0)
    };
    let shared = get(Cmd::get("plain")).await + get(Cmd::get("script")).await + get(Cmd::hget("hash", "field")).await;
    assert_eq!(shared, CLIENTS / 2 * INCREMENTS * (1 + 3));
    for client in 0..CLIENTS {
        assert_eq!(get(Cmd::get(format!("own:{client}"))).await, INCREMENTS);
    }
}

async fn connected(address: std::net::SocketAddr) -> redis::aio::MultiplexedConnection {
    let client = redis::Client::open(format!("redis://{address}")).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

async fn count(client: usize, url: &str, mut random: Random, done: &AtomicUsize) {
    let protocol = random.pick(&["resp2", "resp3"]);
    let config = Config::new(format!("{url}/?protocol={protocol}"));
    let store = loop {
        match Store::connect_with(&config).await {
            Ok(store) => break store,
            Err(error) => assert!(error.is_temporary(), "{error}"),
        }
    };
    let session = store.sessions().open(&SessionConfig::default()).await.unwrap();
    for n in 1..=INCREMENTS {
        // Half of the clients have several requests under way.
        let mut others = JoinSet::new();
        for _ in 0..if client.is_multiple_of(2) { 1 } else { 3 } {
            let (session, kind) = (session.clone(), random.below(4));
            others.spawn(async move { increment(&session, kind).await.unwrap() });
        }
        // A client knows every reply of a counter that only it uses.
        assert_eq!(session.call::<usize>(&Cmd::incr(format!("own:{client}"), 1)).await.unwrap(), n);
        while let Some(other) = others.join_next().await {
            other.unwrap();
        }
        done.fetch_add(1, SeqCst);
    }
    _ = session.close().await; // or it expires
}

async fn increment(session: &Session, kind: usize) -> Result<usize, Error> {
    let eval = |name: &str, script: &str| {
        let mut eval = redis::cmd(name);
        eval.arg(script).arg(1).arg("script");
        eval
    };
    match kind {
        0 => session.call(&Cmd::incr("plain", 1)).await,
        1 => session.call(&Cmd::hincr("hash", "field", 1)).await,
        2 => session.call(&eval("EVAL", SCRIPT)).await,
        _ => match session.call(&eval("EVALSHA", Script::new(SCRIPT).get_hash())).await {
            // Which is a reply: nothing has run.
            Err(Error::Refused(error)) if error.code() == Some("NOSCRIPT") => session.call(&eval("EVAL", SCRIPT)).await,
            answer => answer,
        },
    }
}
