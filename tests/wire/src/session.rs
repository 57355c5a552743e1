//! The server for one test alone: tests take turns, and each begins with an empty keyspace.
//!
//! Taking turns is slower than a key prefix per test, and it is what lets a transcript say `SET a 1` and mean it.

use std::fmt;
use std::net::SocketAddr;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::reply::Reply;
use crate::server::shared_address;
use crate::transcript::Transcript;

static TURN: Mutex<()> = Mutex::new(());

pub struct Session {
    address: SocketAddr,
    product: Product,
    _turn: MutexGuard<'static, ()>,
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    Holdfast,
    /// Redis, or one of its descendants, by the `redis_version` it claims.
    Redis(Version),
}

/// 7.0.15 is `Version([7, 0, 15])`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub [u32; 3]);

impl Session {
    /// Waits for its turn, then empties the server.
    #[track_caller]
    pub fn start() -> Session {
        // A failed test has poisoned the lock and nothing else.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let address = shared_address();
        let mut connection = Connection::open(address).unwrap_or_else(|e| panic!("no server at {address}: {e}"));
        assert_eq!(connection.run("FLUSHALL").to_string(), "+OK", "FLUSHALL at the start of a test");
        // What an earlier test left is freed on another thread. A server that is freeing memory takes more.
        let mut memory = || match connection.run("INFO memory") {
            Reply::Bulk(info) => String::from_utf8_lossy(&info).into_owned(),
            _ => String::new(),
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while memory().lines().any(|line| line.starts_with("lazyfree_pending_objects:") && !line.ends_with(":0")) {
            assert!(Instant::now() < deadline, "the server never frees what was removed");
            std::thread::sleep(Duration::from_millis(1));
        }
        let product = Product::ask(&mut connection);
        Session { address, product, _turn: turn }
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address).expect("cannot connect to the server")
    }

    pub fn product(&self) -> Product {
        self.product
    }

    /// Whether the server has what Redis has had since `version`, "7.4" say. Holdfast has it all.
    pub fn has_redis(&self, version: &str) -> bool {
        match self.product {
            Product::Holdfast => true,
            Product::Redis(running) => running >= Version::parse(version),
        }
    }

    /// Runs a transcript on connections of its own, and panics at the first reply that differs.
    /// Keys stay, so that one session may run several.
    #[track_caller]
    pub fn check(&self, transcript: &str) {
        Transcript::parse(transcript, Location::caller()).run(self);
    }
}

impl Product {
    fn ask(connection: &mut Connection) -> Product {
        let info = match connection.run("INFO server") {
            Reply::Bulk(info) => String::from_utf8_lossy(&info).into_owned(),
            _ => String::new(),
        };
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        match (field("holdfast_version"), field("redis_version")) {
            (None, Some(version)) => Product::Redis(Version::parse(version)),
            _ => Product::Holdfast,
        }
    }
}

impl Version {
    #[track_caller]
    fn parse(text: &str) -> Version {
        let mut numbers = [0; 3];
        for (number, part) in numbers.iter_mut().zip(text.trim().split('.')) {
            *number = part.parse().unwrap_or_else(|_| panic!("{text:?} is no version"));
        }
        Version(numbers)
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Product::Holdfast => f.write_str("Holdfast"),
            Product::Redis(Version([major, minor, patch])) => {
                write!(f, "Redis {major}.{minor}.{patch}")
            }
        }
    }
}
