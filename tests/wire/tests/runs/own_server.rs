//! A server of a test's own that is killed and started again, and clients that find it again. Knows nothing of runs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use wire::{Connection, Reply, Server, fresh_dir};

/// A holdfast with its data in a directory that goes with it.
pub(crate) struct OwnServer {
    dir: PathBuf,
    args: &'static [&'static str],
    /// `None` while it is started again.
    server: Option<Server>,
    address: Mutex<SocketAddr>,
}

impl OwnServer {
    /// `None`, and the test is skipped, where the server to be tested is given.
    pub(crate) fn start(args: &'static [&'static str]) -> Option<OwnServer> {
        if std::env::var_os("HOLDFAST_TEST_ADDR").is_some() {
            wire::skip("this test starts a server of its own");
            return None;
        }
        let dir = fresh_dir();
        let server = Server::start(&dir, args);
        let address = Mutex::new(server.address());
        Some(OwnServer { dir, args, server: Some(server), address })
    }

    /// Where it is, for the clients, which look there again when they have lost it.
    pub(crate) fn connect(&self) -> Connection {
        loop {
            let address = *self.address.lock().expect("no thread panics with it");
            match Connection::open(address) {
                Ok(connection) => return connection,
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

/// What kills it, which the clients need not be able to do.
pub(crate) struct Killer<'a> {
    server: Option<Server>,
    own: &'a OwnServer,
}

impl OwnServer {
    /// Takes the right to kill it.
    pub(crate) fn killer(&mut self) -> Killer<'_> {
        let server = self.server.take();
        Killer { server, own: self }
    }
}

impl<'a> Killer<'a> {
    pub(crate) fn own(&self) -> &'a OwnServer {
        self.own
    }

    /// Kills it as a crash would, and starts it again.
    pub(crate) fn kill_and_start(&mut self) {
        self.server.take().expect("it is there").kill();
        let server = Server::start(&self.own.dir, self.own.args);
        *self.own.address.lock().expect("no thread panics with it") = server.address();
        self.server = Some(server);
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        drop(self.server.take());
        // A directory that cannot be removed does no harm.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A client that connects again when its server was killed.
pub(crate) struct Steady<'a> {
    own: &'a OwnServer,
    connection: Connection,
}

impl<'a> Steady<'a> {
    pub(crate) fn new(own: &'a OwnServer) -> Steady<'a> {
        Steady { own, connection: own.connect() }
    }

    /// Sends a command; `None` if the server was killed before it replied, and has not begun again for long.
    pub(crate) fn run(&mut self, args: &[impl AsRef<[u8]>]) -> Option<Reply> {
        self.connection.queue(args);
        match self.connection.read_until_killed() {
            Reply::Closed => {}
            Reply::Error(text) if text.starts_with(b"LOADING") => thread::sleep(Duration::from_millis(5)),
            reply => return Some(reply),
        }
        self.connection = self.own.connect();
        None
    }
}
