//! A store with several addresses: it finds the server that writes, and finds it again while writers are replaced,
//! killed and paused.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

use holdfast_client::redis::{self, Cmd, cmd};
use holdfast_client::{
    Append, Claim, Config, Error, Fields, IndexDefinition, NewEvent, Query, SessionConfig, StateStore, Store,
};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::sleep;
use wire::{Connection, Server};

/// An address at which there is no server: a free port might be taken by another test.
const DEAD: &str = "127.0.0.1:1";

/// A writer and a follower of its log.
struct Pair {
    writer: Option<Server>,
    follower: Server,
    addresses: [String; 2],
    /// Behind the servers: they end first.
    dir: DataDir,
}

struct DataDir(PathBuf);

impl Drop for DataDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Pair {
    fn start() -> Option<Pair> {
        let dir = DataDir(wire::fresh_dir());
        let writer = Server::start(&dir.0, &[]);
        if !writer.connect().run("INFO server").text().contains("holdfast_version") {
            wire::skip("the server has no followers of a log");
            return None;
        }
        let follower = follow(&dir.0);
        let addresses = [&writer, &follower].map(|server| server.address().to_string());
        Some(Pair { writer: Some(writer), follower, addresses, dir })
    }

    fn at_writer(&self) -> Connection {
        self.writer.as_ref().expect("it was not killed").connect()
    }

    fn kill_writer(&mut self) {
        self.writer.take().expect("it was not killed").kill();
    }

    fn refuse_reads_at_followers(&self) {
        for mut connection in [self.at_writer(), self.follower.connect()] {
            assert_eq!(connection.run("CONFIG SET follower-reads no").to_string(), "+OK");
        }
    }

    fn promote(&self) {
        assert_eq!(self.follower.connect().run("REPLICAOF NO ONE").to_string(), "+OK");
    }
}

fn follow(dir: &std::path::Path) -> Server {
    Server::start(dir, &["--follow", &format!("file:{}", dir.display())])
}

fn url(addresses: &[impl AsRef<str>]) -> String {
    format!("redis://{}", addresses.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(","))
}

async fn port(store: &Store) -> String {
    // By way of a request of the store, which finds the writer.
    store.get_field(b"none", b"none").await.unwrap();
    let get = cmd("CONFIG").arg("GET").arg("port").take();
    let settings: BTreeMap<String, String> = get.query_async(&mut store.connection().unwrap()).await.unwrap();
    format!("127.0.0.1:{}", settings["port"])
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < Duration::from_secs(60), "in vain: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(test);
}

#[test]
fn the_writer_is_found_behind_a_dead_address_and_behind_a_follower() {
    let Some(pair) = Pair::start() else { return };
    let [writer, follower] = &pair.addresses;
    run(async {
        for addresses in [vec![DEAD, writer, follower], vec![follower, writer], vec![follower, DEAD]] {
            let store = Store::connect(&url(&addresses)).await.unwrap();
            store.put(b"r", &Fields::new().with("a", 1), None).await.unwrap();
            assert_eq!(port(&store).await, *writer);
        }
        // A list in the place of the URL's host.
        let mut config = Config::new("holdfast://nowhere.example:1/0");
        config.addresses = vec![follower.clone(), writer.clone()];
        let store = Store::connect_with(&config).await.unwrap();
        assert_eq!(store.get_field(b"r", b"a").await.unwrap().unwrap(), b"1");
        store.close();
        assert!(matches!(store.get_field(b"r", b"a").await, Err(Error::Closed)));
    });
}

#[test]
fn without_a_writer_the_error_names_what_each_address_said() {
    let Some(mut pair) = Pair::start() else { return };
    let [writer, follower] = pair.addresses.clone();
    let port = writer.rsplit_once(':').unwrap().1;
    let mut at_follower = pair.follower.connect();
    run(async {
        eventually("it knows its writer", async || at_follower.run("ROLE").to_string().contains(port)).await;
        pair.kill_writer();
        let mut config = Config::new(url(&[DEAD, &follower]));
        (config.writer_timeout, config.response_timeout) = (Duration::from_millis(300), Duration::from_millis(100));
        let error = Store::connect_with(&config).await.err().unwrap();
        assert!(error.is_temporary());
        let shown = error.to_string();
        let Error::NoWriter(no_writer) = error else { panic!("{error}") };
        let says = |address: &str| no_writer.answers.iter().find(|(each, _)| each == address).unwrap().1.as_str();
        assert!(says(DEAD).starts_with("does not answer"), "{shown}");
        assert_eq!(says(&follower), format!("follows {writer}"));
        assert!(shown.contains(DEAD) && shown.contains(&format!("{follower} follows {writer}")), "{shown}");
    });
}

#[test]
fn a_wrong_password_is_said_at_once() {
    let Some(pair) = Pair::start() else { return };
    for mut connection in [pair.at_writer(), pair.follower.connect()] {
        assert_eq!(connection.run("CONFIG SET requirepass secret").to_string(), "+OK");
    }
    let hosts = pair.addresses.join(",");
    run(async {
        let mut config = Config::new(format!("redis://:wrong@{DEAD},{hosts}"));
        config.writer_timeout = Duration::from_secs(3600);
        let error = Store::connect_with(&config).await.err().unwrap();
        assert!(!error.is_temporary(), "{error}");
        let store = Store::connect(&format!("redis://:secret@{hosts}/0")).await.unwrap();
        store.put(b"r", &Fields::new().with("a", 1), None).await.unwrap();
    });
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    HandedOver,
    Killed,
    Paused,
}

#[test]
fn every_acknowledged_write_is_there_after_a_hand_over() {
    take_over(End::HandedOver);
}

#[test]
fn every_acknowledged_write_is_there_after_a_kill() {
    take_over(End::Killed);
}

#[test]
fn every_acknowledged_write_is_there_after_a_writer_was_fenced() {
    take_over(End::Paused);
}

fn take_over(end: End) {
    let Some(mut pair) = Pair::start() else { return };
    run(async {
        let mut config = Config::new(url(&pair.addresses));
        config.response_timeout = Duration::from_secs(3);
        let store = Store::connect_with(&config).await.unwrap();
        let session = store.sessions().open(&SessionConfig::default()).await.unwrap();
        let stop = Arc::new(AtomicBool::new(false));

        // Sees no error: each request runs once.
        let counting = tokio::spawn({
            let (session, stop) = (session.clone(), stop.clone());
            async move {
                let mut n = 0;
                while !stop.load(SeqCst) {
                    n += 1;
                    assert_eq!(session.call::<i64>(&Cmd::incr("in-session", 1)).await.unwrap(), n);
                }
                n
            }
        });
        // A request whose answer is lost with its connection is an error. What a follower refuses is not.
        let (sender, mut results) = unbounded_channel();
        let putting = tokio::spawn({
            let (store, stop) = (store.clone(), stop.clone());
            async move {
                for n in 1.. {
                    if stop.load(SeqCst) {
                        return;
                    }
                    let put = store.put(format!("r:{n}").as_bytes(), &Fields::new().with("n", n), None).await;
                    match put {
                        Ok(()) => sender.send(Some(n)).unwrap(),
                        Err(Error::Unavailable(_)) => sender.send(None).unwrap(),
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        });
        let transferring = tokio::spawn({
            let (store, stop) = (store.clone(), stop.clone());
            async move {
                let mut done = 0;
                while !stop.load(SeqCst) {
                    let transfer = store.transaction(1, |txn| async move {
                        let counter = txn.cell::<i64>("counter");
                        let held = counter.get().await?.map_or(0, |now| now.value);
                        counter.set(&(held + 1)).await
                    });
                    match transfer.await {
                        Ok(_) => done += 1,
                        Err(Error::Unavailable(_)) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                done
            }
        });

        let mut acknowledged: Vec<i64> = Vec::new();
        let mut unknown = 0;
        let mut more = async || {
            let wanted = acknowledged.len() + 20;
            while acknowledged.len() < wanted {
                match results.recv().await.expect("the puts go on") {
                    Some(n) => acknowledged.push(n),
                    None => unknown += 1,
                }
            }
        };
        more().await;
        match end {
            End::HandedOver => {}
            End::Killed => pair.kill_writer(),
            End::Paused => pair.writer.as_ref().unwrap().signal("STOP"),
        }
        tokio::task::block_in_place(|| pair.promote());
        more().await;
        if end == End::HandedOver {
            pair.kill_writer();
            more().await;
        }
        more().await;
        stop.store(true, SeqCst);
        putting.await.unwrap();
        let (counted, transferred) = (counting.await.unwrap(), transferring.await.unwrap());

        if end == End::HandedOver {
            assert_eq!(unknown, 0, "what a follower refuses is sent to the writer");
        }
        assert_eq!(port(&store).await, pair.addresses[1]);
        assert_eq!(pair.follower.connect().run("GET in-session").text(), counted.to_string());
        for n in acknowledged {
            let held = store.get_field(format!("r:{n}").as_bytes(), b"n").await.unwrap();
            assert_eq!(held.unwrap(), n.to_string().as_bytes());
        }
        let held = store.cell::<i64>("counter").get().await.unwrap().unwrap().value;
        assert!(held >= transferred && transferred > 0, "{held} of {transferred}");
        session.close().await.unwrap();
    });
}

#[test]
fn waits_and_readers_move_to_the_new_writer() {
    let Some(mut pair) = Pair::start() else { return };
    run(async {
        let store = Store::connect(&url(&pair.addresses)).await.unwrap();
        store.create_index("due", &IndexDefinition::new(["job:"], "run_at")).await.unwrap();
        let session = store.sessions().open(&SessionConfig::default()).await.unwrap();
        let mut claim = Claim::new(["due"]).set("state", "running");
        claim.block = Duration::from_secs(30);
        let claiming = tokio::spawn({
            let store = store.clone();
            async move { store.claim(&claim).await.unwrap() }
        });
        let mut follow = store.run::<String>("r").follow(0);
        let following = tokio::spawn(async move { follow.next().await.unwrap() });
        let mut watch = store.cell::<String>("c").watch().await.unwrap();
        let watching = tokio::spawn(async move { watch.next().await.unwrap().unwrap() });
        let (sender, mut pushed) = unbounded_channel();
        let serving = tokio::spawn({
            let session = session.clone();
            async move {
                let handle = |request: holdfast_client::PushedRequest| {
                    sender.send(request.payload).unwrap();
                    async { Ok::<_, Error>(()) }
                };
                session.serve(handle).await
            }
        });
        let mut at_writer = pair.at_writer();
        eventually("three clients wait", async || at_writer.run("INFO clients").text().contains("blocked_clients:3"))
            .await;
        tokio::task::block_in_place(|| pair.promote());
        pair.kill_writer();
        store.put(b"job:1", &Fields::new().with("state", "pending").with("run_at", 1), None).await.unwrap();
        let event = NewEvent::new("Began", "now".to_owned()).key("began");
        assert!(matches!(store.run::<String>("r").append(&event).await.unwrap(), Append::Persisted(_)));
        store.cell::<String>("c").set(&"new".to_owned()).await.unwrap();
        store.sessions().push(session.id(), "hello").await.unwrap();
        assert_eq!(claiming.await.unwrap()[0].0, b"job:1");
        assert_eq!(following.await.unwrap().event_type, b"Began");
        assert_eq!(watching.await.unwrap().value, "new");
        assert_eq!(pushed.recv().await.unwrap(), b"hello");
        serving.abort();
        session.close().await.unwrap();
    });
}

#[test]
fn a_program_that_only_reads_moves_too() {
    let Some(pair) = Pair::start() else { return };
    run(async {
        let store = Store::connect(&url(&pair.addresses)).await.unwrap();
        assert_eq!(port(&store).await, pair.addresses[0]);
        tokio::task::block_in_place(|| pair.promote()); // the old writer answers reads, and follows
        eventually("it reads at the new writer", async || port(&store).await == pair.addresses[1]).await;
    });
}

#[test]
fn what_a_follower_refuses_to_read_is_read_at_the_new_writer() {
    let Some(pair) = Pair::start() else { return };
    pair.refuse_reads_at_followers();
    run(async {
        let stop = Arc::new(AtomicBool::new(false));
        let mut readers = Vec::new();
        for plain in [false, true] {
            let config = Config { plain, ..Config::new(url(&pair.addresses)) };
            let store = Store::connect_with(&config).await.unwrap();
            store.put(b"r", &Fields::new().with("a", 1), None).await.unwrap();
            let (stop, (sender, read)) = (stop.clone(), unbounded_channel());
            let reading = tokio::spawn(async move {
                while !stop.load(SeqCst) {
                    assert!(store.get(b"r").await.unwrap().is_some());
                    assert_eq!(store.scan(Query::prefix("r")).collect().await.unwrap().len(), 1);
                    sender.send(()).unwrap();
                }
                store
            });
            readers.push((reading, read));
        }
        let mut all_read = async || {
            for (_, read) in &mut readers {
                while read.try_recv().is_ok() {} // what was read before
                read.recv().await.expect("a reader sees no error");
                read.recv().await.expect("a reader sees no error");
            }
        };
        all_read().await;
        tokio::task::block_in_place(|| pair.promote());
        all_read().await;
        stop.store(true, SeqCst);
        for (reading, _) in readers {
            assert_eq!(port(&reading.await.unwrap()).await, pair.addresses[1]);
        }
    });
}

/// When the writer hands over in a read transaction, in relation to what is read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum HandOver {
    BetweenReads,
    /// The same, with a body that does not return the error.
    BetweenReadsUnnoticed,
    BeforeCommit,
}

#[test]
fn a_read_transaction_runs_again_at_the_new_writer() {
    for at in [HandOver::BetweenReads, HandOver::BetweenReadsUnnoticed, HandOver::BeforeCommit] {
        let Some(pair) = Pair::start() else { return };
        pair.refuse_reads_at_followers();
        run(async {
            let store = Store::connect(&url(&pair.addresses)).await.unwrap();
            store.cell::<i64>("a").set(&1).await.unwrap();
            store.cell::<i64>("b").set(&2).await.unwrap();
            let (pair, runs) = (&pair, &AtomicUsize::new(0));
            let sum = store.read_transaction(async |txn| {
                let is_first = runs.fetch_add(1, SeqCst) == 0;
                let a = txn.cell::<i64>("a").get().await?.unwrap().value;
                if is_first && at != HandOver::BeforeCommit {
                    tokio::task::block_in_place(|| pair.promote());
                }
                let b = match txn.cell::<i64>("b").get().await {
                    Ok(now) => now.unwrap().value,
                    Err(_) if at == HandOver::BetweenReadsUnnoticed => 0,
                    Err(error) => return Err(error),
                };
                if is_first && at == HandOver::BeforeCommit {
                    tokio::task::block_in_place(|| pair.promote());
                }
                Ok::<_, Error>(a + b)
            });
            assert_eq!(sum.await.unwrap(), 3, "{at:?}");
            assert_eq!(runs.load(SeqCst), 2, "{at:?}");
            assert_eq!(port(&store).await, pair.addresses[1]);
        });
    }
}

#[test]
fn an_error_of_a_body_is_returned_although_the_writer_has_handed_over() {
    let Some(pair) = Pair::start() else { return };
    pair.refuse_reads_at_followers();
    run(async {
        let store = Store::connect(&url(&pair.addresses)).await.unwrap();
        let (pair, runs) = (&pair, &AtomicUsize::new(0));
        let given_up = store.read_transaction(async |_| {
            if runs.fetch_add(1, SeqCst) == 0 {
                tokio::task::block_in_place(|| pair.promote());
            }
            Err::<(), _>(Error::Name("of the test's own"))
        });
        assert!(matches!(given_up.await, Err(Error::Name("of the test's own"))));
        assert_eq!(runs.load(SeqCst), 1);
    });
}

#[test]
fn a_follower_that_joins_later_is_found() {
    let Some(mut pair) = Pair::start() else { return };
    run(async {
        let store = Store::connect(&url(&[DEAD, &pair.addresses[0]])).await.unwrap();
        let third = follow(&pair.dir.0);
        let mut at_writer = pair.at_writer();
        let name = third.address().port().to_string();
        eventually("the writer names it", async || at_writer.run("ROLE").to_string().contains(&name)).await;
        let mut roles_asked = || {
            let stats = at_writer.run("INFO commandstats").text().to_owned();
            let after = stats.split("cmdstat_role:calls=").nth(1).expect("ROLE was asked").to_owned();
            after.split(',').next().unwrap().parse::<u64>().unwrap()
        };
        let before = roles_asked();
        eventually("the store asks again", async || {
            store.get_field(b"r", b"a").await.unwrap();
            roles_asked() > before
        })
        .await;
        pair.kill_writer();
        tokio::task::block_in_place(|| assert_eq!(third.connect().run("REPLICAOF NO ONE").to_string(), "+OK"));
        eventually("a write is made", async || store.put(b"r", &Fields::new().with("a", 1), None).await.is_ok()).await;
        assert_eq!(port(&store).await, third.address().to_string());
    });
}

#[test]
fn with_one_address_what_a_follower_refuses_is_the_answer() {
    let Some(pair) = Pair::start() else { return };
    run(async {
        let store = Store::connect(&url(&[&pair.addresses[1]])).await.unwrap();
        let refused = store.put(b"r", &Fields::new().with("a", 1), None).await;
        assert!(matches!(&refused, Err(Error::Refused(error)) if error.code() == Some("READONLY")), "{refused:?}");
        assert!(!refused.unwrap_err().is_temporary());
    });
}

/// A redis-server of this test's own.
struct Redis {
    process: Child,
    address: String,
}

impl Redis {
    fn start(more: &[&str]) -> Option<Redis> {
        let address = wire::free_address();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--port", &address.port().to_string()]);
        let process = command.args(more).stdout(Stdio::null()).spawn().ok()?;
        let began = Instant::now();
        while Connection::open(address).is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "Redis does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(Redis { process, address: address.to_string() })
    }

    fn run(&self, line: &str) -> String {
        Connection::open(self.address.parse().unwrap()).unwrap().run(line).to_string()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_same_over_a_plain_redis() {
    let Some(writer) = Redis::start(&[]) else { return wire::skip("there is no redis-server") };
    let port_of_writer = writer.address.rsplit_once(':').unwrap().1.to_owned();
    let follower = Redis::start(&["--replicaof", "127.0.0.1", &port_of_writer]).unwrap();
    run(async {
        let mut last = None;
        for addresses in [[follower.address.as_str(), DEAD], [&follower.address, &writer.address]] {
            let store = Store::connect(&url(&addresses)).await.unwrap();
            assert!(!store.is_holdfast());
            store.put(b"r", &Fields::new().with("a", 1), Some(Duration::from_secs(60))).await.unwrap();
            assert_eq!(port(&store).await, writer.address);
            last = Some(store);
        }
        let store = last.unwrap();
        assert_eq!(follower.run("REPLICAOF NO ONE"), "+OK");
        let port_of_follower = follower.address.rsplit_once(':').unwrap().1;
        assert_eq!(writer.run(&format!("REPLICAOF 127.0.0.1 {port_of_follower}")), "+OK");
        // Which the old one refuses.
        store.put(b"s", &Fields::new().with("a", 1), Some(Duration::from_secs(60))).await.unwrap();
        assert_eq!(port(&store).await, follower.address);
        let held: redis::RedisResult<i64> = cmd("EXISTS").arg("s").query_async(&mut store.connection().unwrap()).await;
        assert_eq!(held.unwrap(), 1);
    });
}
