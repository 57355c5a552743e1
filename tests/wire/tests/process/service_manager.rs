//! What systemd is told (`Type=notify`): a socket of the test stands in for it. And the upgrade of a service, by a signal to
//! the process that serves.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use wire::{Connection, Server, free_address};

use crate::support::{Dir, Holdfast, can_start_holdfast, eventually, info, ok};

/// Only has to tell slow from never.
const DEADLINE: Duration = Duration::from_secs(120);

/// Where services say how they fare.
struct Manager {
    socket: UnixDatagram,
    dir: Dir,
}

impl Manager {
    fn new() -> Manager {
        let dir = Dir::fresh();
        let socket = UnixDatagram::bind(dir.path().join("notify")).expect("cannot bind to a path");
        socket.set_read_timeout(Some(DEADLINE)).expect("a time is no trouble");
        Manager { socket, dir }
    }

    fn path(&self) -> String {
        self.dir.path().join("notify").to_str().expect("a plain path").to_owned()
    }

    /// The next message, of those that do not only say what the service does now.
    #[track_caller]
    fn next(&self) -> String {
        loop {
            let mut bytes = [0; 4096];
            let length = self.socket.recv(&mut bytes).expect("no message");
            let message = String::from_utf8(bytes[..length].to_vec()).expect("messages are UTF-8");
            if !message.starts_with("STATUS=") {
                return message;
            }
        }
    }

    /// Nothing more has been sent.
    fn is_silent(&self) -> bool {
        self.socket.set_nonblocking(true).expect("it is a socket");
        matches!(self.socket.recv(&mut [0; 4096]), Err(error) if error.kind() == ErrorKind::WouldBlock)
    }
}

/// Ends a process that no handle of the test is for.
struct Leftover(u32);

impl Drop for Leftover {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-s", "KILL", &self.0.to_string()]).status();
    }
}

#[test]
fn a_service_is_ready_when_its_data_is_read_and_stops_when_it_is_told_to() {
    const KEYS: i64 = 100_000;
    if !can_start_holdfast() {
        return;
    }
    let (manager, data) = (Manager::new(), Dir::fresh());
    let debug = ["--enable-debug-command", "yes"];
    let mut server = Server::start(data.path(), &debug);
    ok(&mut server.connect(), &format!("DEBUG POPULATE {KEYS}"));
    server.signal("TERM");
    assert_eq!(server.wait_for_end().code(), Some(0));
    let address = free_address();
    let mut server = Server::launch(address, data.path(), |command| {
        command.env("NOTIFY_SOCKET", manager.path());
    });
    let ready = manager.next();
    let mut lines = ready.lines();
    assert_eq!(lines.next(), Some("READY=1"));
    assert!(
        lines.next().is_some_and(|line| line.starts_with("STATUS=") && line.contains(&address.to_string())),
        "{ready}"
    );
    // Not refused, and not -LOADING.
    let mut connection = Connection::open(address).expect("it listens");
    assert_eq!(connection.run("DBSIZE").integer(), KEYS);
    server.signal("TERM");
    assert_eq!(manager.next(), "STOPPING=1");
    assert_eq!(server.wait_for_end().code(), Some(0));
    assert!(manager.is_silent());
}

#[test]
fn a_watchdog_hears_of_the_process_that_it_is_for() {
    if !can_start_holdfast() {
        return;
    }
    let manager = Manager::new();
    let path = manager.path();
    let start = |variables: &[(&str, &str)]| {
        Holdfast::start_with(&[], |command| {
            command.env("NOTIFY_SOCKET", &path).envs(variables.iter().copied());
        })
    };
    let server = start(&[("WATCHDOG_USEC", "20000")]);
    let heard = (0..20).filter(|_| manager.next() == "WATCHDOG=1").count();
    assert!(heard >= 18, "of 20 messages one is READY, and {heard} are for the watchdog");
    drop(server);
    // What was sent before the end is still there.
    while !manager.is_silent() {}
    manager.socket.set_nonblocking(false).expect("it is a socket");
    let mut other =
        start(&[("WATCHDOG_USEC", "20000"), ("WATCHDOG_PID", "1")]).expect("the other could be started too");
    assert!(manager.next().starts_with("READY=1\n"));
    other.signal("TERM");
    assert_eq!(manager.next(), "STOPPING=1", "nothing was sent for a watchdog");
    other.wait_for_end();
}

#[test]
fn a_manager_that_is_gone_is_no_reason_to_stop() {
    let started = Holdfast::start_with(&[], |command| {
        command.env("NOTIFY_SOCKET", "/nowhere/notify");
    });
    let Some(server) = started else { return };
    assert_eq!(server.connect().run("PING").to_string(), "+PONG");
    eventually("it warns", || server.stderr().contains("/nowhere/notify"));
}

/// SIGUSR2: the service goes on in another process, and its manager follows without a moment in which there is no main process.
#[test]
fn a_service_is_upgraded_by_a_signal() {
    if !can_start_holdfast() {
        return;
    }
    let (manager, data) = (Manager::new(), Dir::fresh());
    let mut server = Server::start_with(data.path(), |command| {
        command.args(["--maxclients", "77"]).env("NOTIFY_SOCKET", manager.path());
    });
    assert!(manager.next().starts_with("READY=1\n"));
    let address = server.address();
    ok(&mut server.connect(), "SET counter 1");
    let mut process = server.process_id();
    let mut leftovers = Vec::new();
    for _ in 0..2 {
        Command::new("kill").args(["-s", "USR2", &process.to_string()]).status().expect("cannot send a signal");
        let told = manager.next();
        let old = process;
        process = told.strip_prefix("MAINPID=").and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("{told}"));
        leftovers.push(Leftover(process));
        // systemd watches and restarts only its own children: with another parent than the old process, it will be one.
        assert_ne!(parent(process), old);
        // From the new process. The old one says nothing at its end, which is not that of the service.
        assert!(manager.next().starts_with("READY=1\n"));
        let mut connection = Connection::open(address).expect("somebody listens");
        assert_eq!(info::<u32>(&mut connection, "process_id"), process);
        assert_eq!(connection.run("INCR counter").integer(), leftovers.len() as i64 + 1);
        assert_eq!(connection.run("CONFIG GET maxclients").items()[1].text(), "77");
    }
    assert_eq!(server.wait_for_end().code(), Some(0));
    assert!(manager.is_silent());
}

/// The process that has started a process, or has taken it over.
fn parent(process: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    // The name is in parentheses; the state and the parent follow.
    let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
    parent.and_then(|parent| parent.parse().ok()).expect("it has a parent")
}

#[test]
fn a_service_goes_on_when_the_process_that_should_take_its_place_cannot() {
    if !can_start_holdfast() {
        return;
    }
    let dir = Dir::fresh();
    let file = dir.write("h.toml", "timeout = 0\n");
    let manager = Manager::new();
    let started = Holdfast::start_with(&["--config", &file], |command| {
        command.env("NOTIFY_SOCKET", manager.path());
    });
    let Some(server) = started else { return };
    assert!(manager.next().starts_with("READY=1\n"));
    let (mut connection, process) = (server.connect(), server.process_id());
    dir.write("h.toml", "timeout = -1\n");
    server.signal("USR2");
    eventually("it says so", || server.stderr().contains("this one goes on"));
    assert!(server.stderr().contains("timeout"), "{}", server.stderr());
    assert_eq!(info::<u32>(&mut connection, "process_id"), process);
    assert!(manager.is_silent());
}

#[test]
fn a_follower_does_not_take_the_place_of_its_writer_by_a_signal() {
    if !can_start_holdfast() {
        return;
    }
    let data = Dir::fresh();
    let writer = Server::start(data.path(), &[]);
    let process = writer.process_id();
    let path = data.path().to_str().expect("a plain path");
    let follower = Holdfast::start(&["--follow", path, "--dir", path]).expect("the writer could be started");
    follower.signal("USR2");
    eventually("it says so", || follower.stderr().contains("cannot be replaced"));
    assert_eq!(info::<u32>(&mut writer.connect(), "process_id"), process);
    assert_eq!(follower.connect().run("ROLE").items()[0].text(), "slave");
}
