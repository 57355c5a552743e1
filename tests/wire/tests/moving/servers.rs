//! Servers that are moved: a Redis or a Valkey of a test's own, which can be killed and started again. Knows their flags.

use std::env;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Connection, free_address, skip};

use crate::support::{Dir, can_start_holdfast};

const DEADLINE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    Redis,
    Valkey,
}

impl Product {
    fn program(self) -> Option<String> {
        match self {
            Product::Redis => Some(env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".into())),
            Product::Valkey => env::var("VALKEY_SERVER").ok(),
        }
    }
}

/// A running source.
pub(crate) struct Source {
    process: Child,
    pub(crate) product: Product,
    pub(crate) address: SocketAddr,
    args: Vec<String>,
    dir: Dir,
}

impl Source {
    /// Starts one; `None`, and the test is skipped, where there is none or no Holdfast to move it to.
    pub(crate) fn start(product: Product, args: &[&str]) -> Option<Source> {
        if !can_start_holdfast() {
            return None;
        }
        let Some(program) = product.program() else {
            skip("no Valkey is named by VALKEY_SERVER");
            return None;
        };
        if !Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success()) {
            skip("there is no redis-server on this machine");
            return None;
        }
        let dir = Dir::fresh();
        let address = free_address();
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let process = spawn(product, address, &dir, &args);
        let source = Source { process, product, address, args, dir };
        source.wait();
        Some(source)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.address).expect("cannot connect to the source")
    }

    /// Kills it, and starts it again with its data.
    pub(crate) fn crash(&mut self) {
        self.kill();
        self.process = spawn(self.product, self.address, &self.dir, &self.args);
        self.wait();
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn wait(&self) {
        let deadline = Instant::now() + DEADLINE;
        let answers = || {
            let mut connection = Connection::open(self.address).ok()?;
            connection.queue(&["PING"]);
            // One with a password or that loads answers too.
            let reply = connection.read_until_killed().to_string();
            (reply == "+PONG" || reply.starts_with("-NOAUTH")).then_some(())
        };
        while answers().is_none() {
            assert!(Instant::now() < deadline, "the source does not answer");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            let log = self.dir.read("log");
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("the log of the source ends so:\n{}", lines[lines.len().saturating_sub(60)..].join("\n"));
        }
    }
}

fn spawn(product: Product, address: SocketAddr, dir: &Dir, args: &[String]) -> Child {
    let mut command = Command::new(product.program().expect("looked up before"));
    command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--save", "", "--dir"]).arg(dir.path());
    command.args(["--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"]).args(args);
    command.arg("--logfile").arg(dir.path().join("log"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("cannot start the source")
}
