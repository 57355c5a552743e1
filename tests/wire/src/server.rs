//! The server under test: one that is already running, or a `holdfast` started for this process.

use std::env;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::reply::Reply;

const START_DEADLINE: Duration = Duration::from_secs(20);
const END_DEADLINE: Duration = Duration::from_secs(60);

/// Where the server shared by all tests of this process listens; starts it when first asked.
pub(crate) fn shared_address() -> SocketAddr {
    static SHARED: OnceLock<(SocketAddr, Option<Leash>)> = OnceLock::new();
    SHARED
        .get_or_init(|| match env::var("HOLDFAST_TEST_ADDR") {
            Ok(given) => {
                let mine = address_of_slot(&given);
                let address = mine.to_socket_addrs().ok().and_then(|mut found| found.next());
                (address.unwrap_or_else(|| panic!("HOLDFAST_TEST_ADDR={given} is no host:port")), None)
            }
            Err(_) => {
                let (address, leash) = start_on_leash();
                (address, Some(leash))
            }
        })
        .0
}

/// Of several addresses, the one for this process.
fn address_of_slot(addresses: &str) -> &str {
    let addresses: Vec<&str> = addresses.split(',').collect();
    match addresses[..] {
        [only] => only,
        _ => addresses.get(slot().unwrap_or_default()).expect("there is an address for each test that runs at a time"),
    }
}

/// A server of a test's own, for tests that stop, kill or restart one. Killed when dropped.
pub struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts a server on a free port, with its data in `dir`.
    pub fn start(dir: &Path, extra_args: &[&str]) -> Server {
        Server::start_with(dir, |command| {
            command.args(extra_args);
        })
    }

    /// The same, with a say in the whole command: its variables, where its output goes.
    pub fn start_with(dir: &Path, change: impl FnOnce(&mut Command)) -> Server {
        let address = free_address();
        let mut server = Server { process: spawn(address, dir, change), address };
        wait_until_it_answers(address, || server.process.try_wait().expect("cannot ask for the process").is_some());
        server
    }

    /// Starts a server at `address` that is expected to end, with or without ever answering.
    pub fn launch(address: SocketAddr, dir: &Path, change: impl FnOnce(&mut Command)) -> Server {
        Server { process: spawn(address, dir, change), address }
    }

    /// Takes charge of a server that was started otherwise.
    pub fn adopt(process: Child, address: SocketAddr) -> Server {
        Server { process, address }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address).expect("cannot connect to the server")
    }

    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Sends a signal by its name: `TERM`, `INT`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.process_id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "cannot send SIG{name}");
        // Its threads stop a little later, each when it is interrupted.
        let deadline = Instant::now() + END_DEADLINE;
        while name == "STOP" && Instant::now() < deadline && !self.is_stopped() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// True when all threads are stopped, as far as the system tells.
    fn is_stopped(&self) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.process_id())) else { return true };
        threads.flatten().all(|one| {
            let stat = fs::read_to_string(one.path().join("stat")).unwrap_or_default();
            // The state follows the name, which is in parentheses.
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        })
    }

    /// How the process has ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().expect("cannot ask for the process")
    }

    /// Waits for the process to end by itself.
    #[track_caller]
    pub fn wait_for_end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + END_DEADLINE;
        loop {
            if let Some(status) = self.process.try_wait().expect("cannot ask for the process") {
                return status;
            }
            assert!(Instant::now() < deadline, "the server is still there after {END_DEADLINE:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the process at once, as a crash would (SIGKILL).
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // Both fail only if the process has ended already, which is what we want.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// A fresh directory for a server's data. The caller removes it.
pub fn fresh_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = env::temp_dir().join(format!("holdfast-wire-{}-{number}", std::process::id()));
        match fs::create_dir(&dir) {
            Ok(()) => return dir,
            // Another process had the same number, and was killed before it removed its directory.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => panic!("cannot create a data directory: {error}"),
        }
    }
}

/// Holds the shared server's life: when this process ends, however it ends, the pipe closes and the server goes.
///
/// Rust runs no destructors for statics, so a child handle in one would leak the server. A shell waits on our pipe.
struct Leash {
    _pipe: ChildStdin,
}

fn start_on_leash() -> (SocketAddr, Leash) {
    const WATCH: &str = r#"trap : INT TERM; dir=$1; shift
"$@" >/dev/null & server=$!
read _
kill -9 $server; wait $server 2>/dev/null; rm -rf "$dir""#;

    let address = free_address();
    let dir = fresh_dir();
    let mut shell = Command::new("sh");
    if env::var_os("HOLDFAST_TEST_SHIPPED").is_none() {
        // Settings that small queues reach, as variables, which Redis ignores.
        shell.env("HOLDFAST_CLAIM_REJECT_MAX", "2");
    }
    let mut shell = shell
        .args(["-c", WATCH, "sh"])
        .arg(&dir)
        .arg(binary())
        .args(arguments(address, &dir))
        .args(["--enable-debug-command", "yes"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("cannot start sh");
    let pipe = shell.stdin.take().expect("stdin is piped");
    wait_until_it_answers(address, || shell.try_wait().expect("cannot ask for sh").is_some());
    (address, Leash { _pipe: pipe })
}

fn spawn(address: SocketAddr, dir: &Path, change: impl FnOnce(&mut Command)) -> Child {
    let mut command = Command::new(binary());
    command.args(arguments(address, dir)).stdin(Stdio::null()).stdout(Stdio::null());
    change(&mut command);
    command.spawn().unwrap_or_else(|e| panic!("cannot start {}: {e}", binary().display()))
}

/// Real Redis takes the same arguments, so `HOLDFAST_BIN` may name it.
fn arguments(address: SocketAddr, dir: &Path) -> Vec<String> {
    let mut args: Vec<String> = ["--port", &address.port().to_string(), "--bind", &address.ip().to_string(), "--dir"]
        .map(String::from)
        .to_vec();
    args.push(dir.to_str().expect("the temporary directory has a plain name").into());
    if let Ok(more) = env::var("HOLDFAST_TEST_ARGS") {
        args.extend(more.split_whitespace().map(String::from));
    }
    args
}

/// The server's binary: `HOLDFAST_BIN`, or the newest that was built.
pub fn binary() -> PathBuf {
    if let Some(given) = env::var_os("HOLDFAST_BIN") {
        return given.into();
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("we live in tests/wire");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    let built = ["debug", "release"].map(|profile| target.join(profile).join("holdfast"));
    let modified = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
    built.into_iter().filter(|path| modified(path).is_some()).max_by_key(modified).unwrap_or_else(|| {
        panic!(
            "no holdfast in {}: run `cargo build -p holdfast`, or set HOLDFAST_BIN or HOLDFAST_TEST_ADDR",
            target.display()
        )
    })
}

/// A free address on this machine.
///
/// The port is free until another process takes it. So each test that nextest runs at a time has ports of its own,
/// below those that the system gives out.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let Some(slot) = slot() else {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("cannot bind to a free port");
        return listener.local_addr().expect("a bound socket has an address");
    };
    let first = FIRST_PORT + slot as u32 % SLOTS * PORTS_OF_SLOT;
    // The test before this one in the slot may have used some of the ports: another one begins elsewhere.
    let ports = (0..PORTS_OF_SLOT).map(|_| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(std::process::id().wrapping_mul(29));
        (first + number % PORTS_OF_SLOT) as u16
    });
    let mut addresses = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    addresses.find(|address| TcpListener::bind(address).is_ok()).expect("a test uses few ports")
}

const FIRST_PORT: u32 = 10_000;
const PORTS_OF_SLOT: u32 = 600;
/// Below the ports that the scripts choose from.
const SLOTS: u32 = 16;

/// The number of this test among those that nextest runs at a time.
fn slot() -> Option<usize> {
    env::var("NEXTEST_TEST_GLOBAL_SLOT").ok().map(|slot| slot.parse().expect("a slot is a number"))
}

fn wait_until_it_answers(address: SocketAddr, mut has_ended: impl FnMut() -> bool) {
    let deadline = Instant::now() + START_DEADLINE;
    while !answers(address).unwrap_or(false) {
        assert!(!has_ended(), "{} ended before it answered", binary().display());
        assert!(Instant::now() < deadline, "{} did not answer within {START_DEADLINE:?}", binary().display());
        thread::sleep(Duration::from_millis(5));
    }
}

fn answers(address: SocketAddr) -> io::Result<bool> {
    Ok(Connection::open(address)?.run("PING") == Reply::Simple(b"PONG".to_vec()))
}
