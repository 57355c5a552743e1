//! A writer and its follower that tests start, hand over and kill. Both answer as Sentinels. Knows processes; refuses to
//! know what a client does.

use crate::PATIENCE;
use redis::{Client, Commands, Connection, RedisResult};
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub const NAME: &str = "holdfast";

pub struct Member {
    pub port: u16,
    pub sentinel_port: u16,
    process: Child,
}

pub struct Pair {
    pub writer: Member,
    pub follower: Member,
    directory: PathBuf,
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a free port").port()
}

pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        sleep(Duration::from_millis(5));
    }
}

impl Member {
    fn start(program: &str, args: &[&str]) -> Member {
        let (port, sentinel_port) = (free_port(), free_port());
        let process = Command::new(program)
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--sentinel-port", &sentinel_port.to_string()])
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it can be started");
        let member = Member { port, sentinel_port, process };
        eventually("the server answers", || {
            member.connect().and_then(|mut connection| connection.ping::<()>()).is_ok()
        });
        member
    }

    pub fn connect(&self) -> RedisResult<Connection> {
        Client::open(("127.0.0.1", self.port))?.get_connection()
    }

    /// `master` or `slave`, and how many followers there are.
    fn role(&self) -> (String, usize) {
        let role = self.connect().and_then(|mut connection| redis::cmd("ROLE").query(&mut connection));
        match role {
            Ok(redis::Role::Primary { replicas, .. }) => ("master".into(), replicas.len()),
            Ok(redis::Role::Replica { .. }) => ("slave".into(), 0),
            _ => (String::new(), 0),
        }
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Pair {
    /// `None`, and a word about it past the test runner's capture, if the server under test is not a Holdfast that can be
    /// started.
    pub fn start() -> Option<Pair> {
        let program = std::env::var("HOLDFAST_BIN").ok().filter(|program| !program.contains("redis-server"));
        let Some(program) = program else {
            eprintln!("not checked: this test starts a holdfast of its own");
            return None;
        };
        let directory = std::env::temp_dir().join(format!("holdfast-pair-{}-{}", std::process::id(), free_port()));
        fs::create_dir(&directory).expect("a directory");
        let (path, url) = (directory.display().to_string(), format!("file:{}", directory.display()));
        let writer = Member::start(&program, &["--dir", &path]);
        let pair = Pair { writer, follower: Member::start(&program, &["--follow", &url]), directory };
        pair.await_follower();
        Some(pair)
    }

    pub fn sentinels(&self) -> Vec<String> {
        [&self.writer, &self.follower].map(|member| format!("redis://127.0.0.1:{}", member.sentinel_port)).to_vec()
    }

    fn await_follower(&self) {
        eventually("the writer has a follower", || self.writer.role() == ("master".into(), 1));
    }

    pub fn hand_over(&mut self) {
        let mut connection = self.writer.connect().expect("connect");
        redis::cmd("FAILOVER").exec(&mut connection).expect("FAILOVER");
        eventually("the follower writes", || self.follower.role().0 == "master" && self.writer.role().0 == "slave");
        std::mem::swap(&mut self.writer, &mut self.follower);
        self.await_follower();
    }

    /// Kills the writer. The follower takes over, and another process follows it.
    pub fn kill_writer(&mut self) {
        self.writer.kill();
        let mut connection = self.follower.connect().expect("connect");
        redis::cmd("REPLICAOF").arg("NO").arg("ONE").exec(&mut connection).expect("it takes over");
        let program = std::env::var("HOLDFAST_BIN").expect("it was there");
        let next = Member::start(&program, &["--follow", &format!("file:{}", self.directory.display())]);
        self.writer = std::mem::replace(&mut self.follower, next);
        self.await_follower();
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.writer.kill();
        self.follower.kill();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
