//! The process under test: started on a data directory, asked whether it is there, signalled, waited for.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use rustix::process::Signal;
use rustix::process::{Pid, kill_process};
use wire::Reply;

use crate::connection::{Connection, Trouble};

/// Only tell a slow server from a stuck one.
const START_DEADLINE: Duration = Duration::from_secs(120);
const END_DEADLINE: Duration = Duration::from_secs(120);

/// How servers are started: all that does not change from one to the next.
pub(crate) struct Launcher {
    pub(crate) binary: PathBuf,
    /// What the servers print, one after the other.
    pub(crate) log: PathBuf,
    leash: Arc<Leash>,
}

/// What may differ from start to start on the same data.
pub(crate) struct Options {
    /// `appendfsync`
    pub(crate) policy: &'static str,
    /// Write snapshots by itself, when the journal is still short.
    pub(crate) compacts: bool,
}

pub(crate) struct Server {
    process: Child,
    pid: Pid,
    address: SocketAddr,
    leash: Arc<Leash>,
}

/// What came of one PING.
#[derive(PartialEq)]
pub(crate) enum Ping {
    Answered,
    /// Not listening yet, or loading.
    NotYet,
}

impl Launcher {
    pub(crate) fn new(binary: &Path, log: PathBuf) -> Launcher {
        Launcher { binary: binary.into(), log, leash: Arc::new(Leash::new()) }
    }

    /// Starts a server and returns at once. Redis takes the same flags.
    pub(crate) fn start(&self, dir: &Path, options: &Options) -> Server {
        self.start_on("--dir", dir, options)
    }

    /// Starts a follower of the server that writes this directory.
    pub(crate) fn start_follower(&self, dir: &Path, options: &Options) -> Server {
        self.start_on("--follow", dir, options)
    }

    fn start_on(&self, flag: &str, dir: &Path, options: &Options) -> Server {
        let address = free_address();
        let log = OpenOptions::new().create(true).append(true).open(&self.log).expect("cannot open the server's log");
        let mut command = Command::new(&self.binary);
        command
            .args(["--port", &address.port().to_string(), "--bind", &address.ip().to_string()])
            .args(["--save", "", "--appendonly", "yes", "--appendfsync", options.policy])
            .args(["--auto-aof-rewrite-percentage", if options.compacts { "50" } else { "0" }])
            .args(["--auto-aof-rewrite-min-size", "1048576"])
            .arg(flag)
            .arg(dir);
        if let Ok(more) = std::env::var("HOLDFAST_TEST_ARGS") {
            command.args(more.split_whitespace());
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("cannot share the log")).stderr(log);
        let process = command.spawn().unwrap_or_else(|e| panic!("cannot start {}: {e}", self.binary.display()));
        self.leash.hold(process.id());
        Server { pid: Pid::from_child(&process), process, address, leash: self.leash.clone() }
    }
}

impl Server {
    pub(crate) fn connect(&self) -> std::io::Result<Connection> {
        Connection::open(self.address)
    }

    /// A handle to signal it by from any thread, as long as this server has not been waited for.
    pub(crate) fn remote(&self) -> Remote {
        Remote { pid: self.pid, address: self.address }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.remote().signal(signal);
    }

    pub(crate) fn ping(&mut self) -> Result<Ping, String> {
        if let Some(status) = self.process.try_wait().expect("cannot ask for the process") {
            return Err(format!("the server ended by itself before it answered: {status}"));
        }
        let Ok(mut connection) = self.connect() else { return Ok(Ping::NotYet) };
        match connection.run(&["PING"]) {
            Ok(Reply::Simple(_)) => Ok(Ping::Answered),
            Ok(Reply::Error(text)) if text.starts_with(b"LOADING") => Ok(Ping::NotYet),
            Ok(other) => Err(format!("PING was answered with {other}")),
            Err(Trouble::Closed | Trouble::ReadOnly) => Ok(Ping::NotYet),
            Err(Trouble::Wrong(what)) => Err(format!("{what}: PING")),
        }
    }

    pub(crate) fn wait_until_it_answers(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + START_DEADLINE;
        while self.ping()? == Ping::NotYet {
            if Instant::now() > deadline {
                return Err(format!("the server does not answer after {START_DEADLINE:?}"));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    pub(crate) fn wait_for_end(mut self) -> Result<ExitStatus, String> {
        let deadline = Instant::now() + END_DEADLINE;
        loop {
            if let Some(status) = self.process.try_wait().expect("cannot ask for the process") {
                return Ok(status);
            }
            if Instant::now() > deadline {
                return Err(format!("the server is still there after {END_DEADLINE:?}"));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // IMPORTANT: let go before the process is reaped; after that its number may belong to another.
        self.leash.let_go();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Remote {
    pid: Pid,
    pub(crate) address: SocketAddr,
}

impl Remote {
    pub(crate) fn signal(self, signal: Signal) {
        // It fails only if the process has ended already, which the caller finds out in another way.
        let _ = kill_process(self.pid, signal);
    }
}

/// Ends the server when this process ends, however it ends: a shell waits on our pipe.
struct Leash {
    shell: Mutex<(Child, Option<ChildStdin>)>,
}

impl Leash {
    fn new() -> Leash {
        const WATCH: &str = r#"trap : INT TERM
server=none
while read -r line; do server=$line; done
[ "$server" = none ] || kill -9 "$server""#;
        let mut shell = Command::new("sh").args(["-c", WATCH]).stdin(Stdio::piped()).spawn().expect("cannot start sh");
        let pipe = shell.stdin.take();
        Leash { shell: Mutex::new((shell, pipe)) }
    }

    fn hold(&self, process_id: u32) {
        self.tell(&process_id.to_string());
    }

    fn let_go(&self) {
        self.tell("none");
    }

    fn tell(&self, line: &str) {
        if let (_, Some(pipe)) = &mut *self.shell.lock().expect("no thread panicked with it") {
            writeln!(pipe, "{line}").expect("the leash is there as long as we are");
        }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let (shell, pipe) = self.shell.get_mut().expect("no thread panicked with it");
        drop(pipe.take());
        let _ = shell.wait();
    }
}

/// A free port, below those that the system gives to outgoing connections: one of the many connections
/// of a test could take it before the server does.
pub(crate) fn free_address() -> SocketAddr {
    const PORTS: std::ops::Range<u16> = 10_000..20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start;
    let offset = (std::process::id() as u16).wrapping_mul(61) % count;
    loop {
        let port = PORTS.start + (offset + NEXT.fetch_add(1, Ordering::Relaxed) % count) % count;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return listener.local_addr().expect("a bound socket has an address");
        }
    }
}
