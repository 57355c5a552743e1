//! Servers to test against, each started for one test and ended with it.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_client::{Config, Store, redis};
use wire::Server;

/// Runs a test against an empty server in every place, one after the other.
pub(crate) fn everywhere(test: impl AsyncFn(&Place)) {
    run(test, true, true);
}

/// The same where the server has Holdfast's own commands: for what `own_commands::a_plain_redis_has_none_of_it` tests of the other places.
pub(crate) fn on_holdfast(test: impl AsyncFn(&Place, Store)) {
    let test = async |place: &Place| {
        let store = place.store().await;
        if !store.is_holdfast() {
            return wire::skip("the server is a plain Redis");
        }
        for index in store.indexes().await.unwrap() {
            // One that the server makes by itself.
            if index != b"idx:updated_at" {
                store.drop_index(index).await.unwrap();
            }
        }
        test(place, store).await;
    };
    run(test, true, false);
}

/// The same where a store can only use what a plain Redis has.
pub(crate) fn on_plain_redis(test: impl AsyncFn(Store)) {
    run(async |place: &Place| test(place.store().await).await, false, true);
}

fn run(test: impl AsyncFn(&Place), with_own_commands: bool, without: bool) {
    let dir = wire::fresh_dir();
    let holdfast = Server::start(&dir, &[]);
    let address = holdfast.address();
    let mut places = Vec::new();
    if with_own_commands {
        for protocol in [2, 3] {
            let config = Config::new(format!("redis://{address}/?protocol=resp{protocol}"));
            places.push(Place { name: format!("Holdfast over RESP{protocol}"), config });
        }
    }
    let peer = without.then(Redis::start).flatten();
    if without {
        let config = plain(format!("redis://{address}/?protocol=resp2"));
        places.push(Place { name: "Holdfast as a plain Redis".into(), config });
        match &peer {
            Some(peer) => places.push(Place { name: "Redis".into(), config: Config::new(peer.url.as_str()) }),
            None => wire::skip("there is no redis-server"),
        }
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        for place in places {
            println!("on {}", place.name); // shown only when the test fails
            let mut connection = place.store().await.connection().unwrap();
            let _: () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
            test(&place).await;
        }
    });
    drop(holdfast);
    fs::remove_dir_all(dir).unwrap();
}

/// The same, for tests that need no more than one connection.
pub(crate) fn with_store(test: impl AsyncFn(Store)) {
    everywhere(async |place| test(place.store().await).await);
}

/// Waits until so many clients wait at the server.
pub(crate) async fn until_blocked(store: &Store, clients: usize) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let expected = format!("blocked_clients:{clients}\r\n");
    loop {
        let mut connection = store.connection().unwrap();
        let info: String = redis::cmd("INFO").arg("clients").query_async(&mut connection).await.unwrap();
        if info.contains(&expected) {
            return;
        }
        assert!(Instant::now() < deadline, "there are not {clients} clients that wait");
        tokio::task::yield_now().await;
    }
}

/// A server and the way a store uses it.
pub(crate) struct Place {
    pub(crate) name: String,
    config: Config,
}

impl Place {
    /// Whether Holdfast is taken for a plain Redis.
    pub(crate) fn is_plain(&self) -> bool {
        self.config.plain
    }

    /// Where the server is.
    pub(crate) fn address(&self) -> SocketAddr {
        let address = self.config.url.trim_start_matches("redis://").split('/').next();
        address.and_then(|address| address.parse().ok()).expect("the URL has an address")
    }

    pub(crate) fn url(&self) -> &str {
        &self.config.url
    }

    /// A store that takes another way to the server.
    pub(crate) async fn store_at(&self, address: SocketAddr) -> Store {
        self.hasty_store_at(address, self.config.response_timeout).await
    }

    /// The same, which waits so long for an answer.
    pub(crate) async fn hasty_store_at(&self, address: SocketAddr, response_timeout: Duration) -> Store {
        let url = self.config.url.replace(&self.address().to_string(), &address.to_string());
        Store::connect_with(&Config { url, response_timeout, ..self.config.clone() }).await.unwrap()
    }

    /// A store with a separate connection.
    pub(crate) async fn store(&self) -> Store {
        Store::connect_with(&self.config).await.unwrap()
    }
}

fn plain(url: String) -> Config {
    Config { plain: true, ..Config::new(url) }
}

struct Redis {
    process: Child,
    url: String,
    dir: PathBuf,
}

impl Redis {
    fn start() -> Option<Redis> {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).find(|dir| dir.join("redis-server").is_file())?;
        let (address, dir) = (wire::free_address(), wire::fresh_dir());
        let process = Command::new("redis-server")
            .args(["--port", &address.port().to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
            .arg(&dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("cannot start redis-server");
        let redis = Redis { process, url: format!("redis://{address}"), dir };
        let deadline = Instant::now() + Duration::from_secs(20);
        while wire::Connection::open(address).is_err() {
            assert!(Instant::now() < deadline, "redis-server does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        Some(redis)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Both fail only if the process has ended already, which is what we want.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}
