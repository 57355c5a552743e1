//! A holdfast for one test, what it printed, and how to wait for what it does by itself.

use std::env;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use wire::{Connection, Server, binary, free_address, fresh_dir, skip};

/// Only has to tell slow from never.
const DEADLINE: Duration = Duration::from_secs(120);

/// False, and the test is skipped, when the tests are aimed at a server that they cannot start, or at another product.
pub(crate) fn can_start_holdfast() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    let can = *CAN.get_or_init(|| {
        let version = || Command::new(binary()).arg("--version").output().expect("cannot start the server's binary");
        env::var_os("HOLDFAST_TEST_ADDR").is_none() && version().stdout.starts_with(b"holdfast ")
    });
    if !can {
        skip("this test starts a holdfast of its own");
    }
    can
}

/// A running server of this test's own. What it prints goes to files.
pub(crate) struct Holdfast {
    server: Server,
    dir: Dir,
}

impl Holdfast {
    /// Starts one with these flags; `None` where there is no holdfast to start.
    pub(crate) fn start(args: &[&str]) -> Option<Holdfast> {
        Holdfast::start_with(args, |_| {})
    }

    /// The same, with a client.
    pub(crate) fn start_with_client(args: &[&str]) -> Option<(Holdfast, Connection)> {
        let server = Holdfast::start(args)?;
        let client = server.connect();
        Some((server, client))
    }

    pub(crate) fn start_with(args: &[&str], change: impl FnOnce(&mut Command)) -> Option<Holdfast> {
        can_start_holdfast().then(|| {
            let dir = Dir::fresh();
            let server = Server::start_with(dir.path(), |command| {
                dir.keep_output(command.args(args));
                change(command);
            });
            Holdfast { server, dir }
        })
    }

    pub(crate) fn stdout(&self) -> String {
        self.dir.read("stdout")
    }

    pub(crate) fn stderr(&self) -> String {
        self.dir.read("stderr")
    }
}

impl Deref for Holdfast {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DerefMut for Holdfast {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}

/// A server that did not start.
pub(crate) struct Failure {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
}

/// Starts a server that cannot run and waits for its end.
#[track_caller]
pub(crate) fn fail_to_start(args: &[&str], variables: &[(&str, &str)]) -> Failure {
    fail_to_start_at(free_address(), args, variables)
}

#[track_caller]
pub(crate) fn fail_to_start_at(address: SocketAddr, args: &[&str], variables: &[(&str, &str)]) -> Failure {
    let dir = Dir::fresh();
    let mut server = Server::launch(address, dir.path(), |command| {
        dir.keep_output(command.args(args).envs(variables.iter().copied()));
    });
    let code = server.wait_for_end().code();
    assert_eq!(dir.read("stdout"), "", "what goes wrong is told on stderr");
    Failure { code, stderr: dir.read("stderr") }
}

/// A directory that goes with the test.
pub(crate) struct Dir(PathBuf);

impl Dir {
    /// One that is empty: a process that was killed may have left one of that name, with data.
    pub(crate) fn fresh() -> Dir {
        loop {
            let dir = fresh_dir();
            if fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_none()) {
                return Dir(dir);
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).expect("cannot write a file");
        path.to_str().expect("the temporary directory has a plain name").into()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect("cannot read what the server printed")
    }

    pub(crate) fn keep_output(&self, command: &mut Command) {
        let create = |name| File::create(self.0.join(name)).expect("cannot create a file");
        command.stdout(create("stdout")).stderr(create("stderr"));
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A figure of INFO.
#[track_caller]
pub(crate) fn info<T: FromStr>(connection: &mut Connection, name: &str) -> T {
    let info = connection.run("INFO");
    let value = info.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("INFO has no proper {name}: {value:?}"))
}

/// Asks until the answer is yes.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command that must succeed.
#[track_caller]
pub(crate) fn ok(connection: &mut Connection, line: &str) {
    assert_eq!(connection.run(line).to_string(), "+OK", "{line}");
}

/// The server's clock.
pub(crate) fn unix_ms(connection: &mut Connection) -> u64 {
    let time = connection.run("TIME");
    let part = |at: usize| -> u64 { time.items()[at].text().parse().expect("TIME gives numbers") };
    part(0) * 1000 + part(1) / 1000
}
