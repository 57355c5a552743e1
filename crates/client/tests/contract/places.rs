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
    let dir = wire::fresh_dir();
    let holdfast = Server::start(&dir, &[]);
    let address = holdfast.address();
    let mut places = vec![
        Place { name: "Holdfast over RESP2", config: Config::new(format!("redis://{address}/?protocol=resp2")) },
        Place { name: "Holdfast over RESP3", config: Config::new(format!("redis://{address}")) },
        Place { name: "Holdfast as a plain Redis", config: plain(format!("redis://{address}/?protocol=resp2")) },
    ];
    let peer = Redis::start();
    match &peer {
        Some(peer) => places.push(Place { name: "Redis", config: Config::new(peer.url.as_str()) }),
        None => wire::skip("there is no redis-server"),
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

/// A server and the way a store uses it.
pub(crate) struct Place {
    pub(crate) name: &'static str,
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
