//! The worker of docs/jobs.md, word for word, through a cancelled job and a restart of the server.

use std::fs;
use std::time::Duration;

use crate::places::until_blocked;
use holdfast_client::{Fields, Queue, QueueConfig, StateStore, Store};
use wire::Server;

#[path = "worker_of_the_document.rs"]
mod of_the_document;

#[test]
fn it_outlives_a_cancelled_job_and_a_restart() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/jobs.md");
    let (_, worker) = include_str!("worker_of_the_document.rs").split_once("// From docs/jobs.md.\n").unwrap();
    assert!(fs::read_to_string(document).unwrap().contains(worker.trim()), "docs/jobs.md has another worker");

    let dir = wire::fresh_dir();
    let server = Server::start(&dir, &[]);
    let url = format!("redis://{}", server.address());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = Store::connect(&url).await.unwrap();
        let queue = Queue::new(&store, QueueConfig { attempts_max: Some(5), ..QueueConfig::new(["due"]) });
        queue.create_index("due", "job:").await.unwrap();
        let working = queue.clone();
        let worker = tokio::spawn(async move { of_the_document::run(&working, "w-1").await });
        queue.add(b"job:1", &Fields::new().with("cancelled_by", "itself"), Duration::ZERO).await.unwrap();
        until(&store, b"job:1", "cancelled").await;
        until_blocked(&store, 1).await;
        drop(store);

        let address = server.address();
        server.kill();
        let server = Server::launch(address, &dir, |_| {});
        let store = loop {
            match Store::connect(&url).await {
                Err(error) if error.is_temporary() => tokio::task::yield_now().await,
                store => break store.unwrap(),
            }
        };
        queue.add(b"job:2", &Fields::new().with("image", "cat.png"), Duration::ZERO).await.unwrap();
        until(&store, b"job:2", "completed").await;
        assert!(!worker.is_finished());
        worker.abort();
        drop(server);
    });
    fs::remove_dir_all(dir).unwrap();
}

async fn until(store: &Store, key: &[u8], state: &str) {
    while store.get_field(key, b"state").await.unwrap().as_deref() != Some(state.as_bytes()) {
        tokio::task::yield_now().await;
    }
}
