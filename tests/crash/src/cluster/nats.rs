//! The NATS servers under a cluster: their files, processes, and the few requests that an operator could make by hand.
//! Knows NATS; refuses to know what is in the stream.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wire::Random;

use super::hosts::{Host, Hosts};
use super::network::{Network, Party};
use super::process::{Leash, Process, Signal};

/// How many servers there are; each keeps every message.
pub(crate) const SERVERS: usize = 3;
/// The name of the log.
pub(crate) const LOG: &str = "faults";
/// The stream of the log.
pub(crate) const STREAM: &str = "HOLDFAST_faults";
/// Room on the disk of the last server, which can be filled.
const SMALL_DISK: &str = "size=192m";

pub(crate) struct Nats {
    binary: PathBuf,
    leash: Arc<Leash>,
    pub(crate) servers: Vec<NatsServer>,
}

pub(crate) struct NatsServer {
    host: Host,
    pub(crate) address: SocketAddr,
    pub(crate) monitoring: SocketAddr,
    dir: PathBuf,
    /// The store is on a file system of its own.
    small_disk: Option<PathBuf>,
    process: Option<Process>,
}

impl Nats {
    /// Makes the files of the servers, and starts none.
    pub(crate) fn new(
        binary: &Path,
        work: &Path,
        hosts: &mut Hosts,
        network: &mut Network,
        leash: &Arc<Leash>,
    ) -> Result<Nats, String> {
        let places =
            (0..SERVERS).map(|number| hosts.add(Party::Nats(number))).collect::<Result<Vec<Host>, String>>()?;
        let routes: Vec<SocketAddr> = places.iter().map(|host| host.address(6222)).collect();
        let mut servers = Vec::new();
        for number in 0..SERVERS {
            let dir = work.join(format!("nats{number}"));
            fs::create_dir_all(dir.join("store")).expect("cannot create a directory");
            let small_disk = (number == SERVERS - 1).then(|| dir.join("store")).filter(|store| mount(store));
            let host = places[number].clone();
            let (address, monitoring) = (host.address(4222), host.address(8222));
            let server = NatsServer { host, address, monitoring, dir, small_disk, process: None };
            let peers = (0..SERVERS)
                .filter(|peer| *peer != number)
                .map(|peer| format!("nats://{}", network.link(Party::Nats(number), Party::Nats(peer), routes[peer])));
            let peers: Vec<String> = peers.collect();
            // IMPORTANT: an address at which nobody listens is told to others, or they would go around the links.
            let config = format!(
                "server_name: n{number}\nlisten: \"{}\"\nhttp: \"{}\"\n\
                 jetstream {{ store_dir: \"{}\", sync_interval: always, max_file_store: 8GB, max_memory_store: 64MB }}\n\
                 cluster {{ name: c, listen: \"{}\", advertise: \"127.0.0.1:9\", no_advertise: true, routes: [{}] }}\n",
                server.address,
                server.monitoring,
                server.dir.join("store").display(),
                routes[number],
                peers.join(", ")
            );
            fs::write(server.dir.join("nats.conf"), config).expect("cannot write a configuration");
            servers.push(server);
        }
        Ok(Nats { binary: binary.into(), leash: leash.clone(), servers })
    }

    pub(crate) fn start(&mut self, number: usize) {
        let server = &mut self.servers[number];
        if server.process.is_none() {
            let mut command = server.host.command(&self.binary);
            command.arg("-c").arg(server.dir.join("nats.conf"));
            server.process = Some(Process::start(command, &server.dir.join("nats.log"), &self.leash));
        }
    }

    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(process) = self.servers[number].process.take() {
            process.kill();
        }
    }

    /// Lets it end by itself.
    pub(crate) fn stop(&mut self, number: usize) {
        if let Some(mut process) = self.servers[number].process.take() {
            process.signal(Signal::TERM);
            process.ends_within(Duration::from_secs(20));
        }
    }

    pub(crate) fn signal(&self, number: usize, signal: Signal) {
        if let Some(process) = &self.servers[number].process {
            process.signal(signal);
        }
    }

    /// Starts those that are not running, and wakes those that are stopped.
    pub(crate) fn heal(&mut self) {
        for number in 0..SERVERS {
            self.servers[number].empty_disk();
            self.signal(number, Signal::CONT);
            if self.servers[number].process.as_mut().is_some_and(|process| process.ended().is_some()) {
                self.kill(number);
            }
            self.start(number);
        }
    }

    /// Asks JetStream something.
    pub(crate) fn ask(&self, what: &str, payload: &str) -> io::Result<String> {
        let mut failure = io::Error::from(io::ErrorKind::NotConnected);
        for server in self.servers.iter().filter(|server| server.process.is_some()) {
            match ask(server.address, what, payload) {
                Ok(answer) => return Ok(answer),
                Err(e) => failure = e,
            }
        }
        Err(failure)
    }

    /// The server that leads the stream of the log.
    pub(crate) fn leader(&self) -> Option<usize> {
        let info = self.ask(&format!("STREAM.INFO.{STREAM}"), "").ok()?;
        let (_, leader) = info.split_once("\"leader\":\"n")?;
        leader.split('"').next()?.parse().ok()
    }

    /// Waits until the servers can keep a stream: they have chosen one of them.
    pub(crate) fn wait_until_ready(&self, within: Duration) -> Result<(), String> {
        let deadline = Instant::now() + within;
        loop {
            // A majority answers only if there is a leader.
            if self.ask("STREAM.NAMES", "").is_ok_and(|names| names.contains("\"streams\"")) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("the NATS servers have no leader after {within:?}"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Flips bits in the files of the stream on one server, which must not run. Returns how many.
    pub(crate) fn damage(&self, number: usize, random: &mut Random) -> usize {
        let mut files = Vec::new();
        find_files(&self.servers[number].dir.join("store"), &mut files);
        // Those of the stream, and of the servers' own logs, from which NATS could mend it.
        let is_meant = |path: &PathBuf| {
            let name = path.to_string_lossy();
            name.ends_with(".blk") && (name.contains(&format!("/{STREAM}/")) || name.contains("/_js_/S-"))
        };
        files.retain(is_meant);
        files.sort();
        let mut flipped = 0;
        for path in files {
            let mut bytes = fs::read(&path).unwrap_or_default();
            if bytes.is_empty() {
                continue;
            }
            for _ in 0..1 + random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
                flipped += 1;
            }
            fs::write(&path, bytes).expect("the file was just read");
        }
        flipped
    }
}

impl NatsServer {
    pub(crate) fn has_small_disk(&self) -> bool {
        self.small_disk.is_some()
    }

    /// Leaves no room on its disk.
    pub(crate) fn fill_disk(&self) {
        let Some(disk) = &self.small_disk else { return };
        if let Ok(mut filler) = fs::File::create(disk.join("filler")) {
            while filler.write_all(&[0; 4096]).is_ok() {}
        }
    }

    fn empty_disk(&self) {
        if let Some(disk) = &self.small_disk {
            let _ = fs::remove_file(disk.join("filler"));
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.process = None;
        if let Some(disk) = &self.small_disk {
            let _ = Command::new("umount").arg(disk).status();
        }
    }
}

/// Mounts a small file system. False where that is not allowed.
fn mount(at: &Path) -> bool {
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", SMALL_DISK, "none"]).arg(at).output();
    mounted.is_ok_and(|output| output.status.success())
}

fn find_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => find_files(&entry.path(), found),
            _ => found.push(entry.path()),
        }
    }
}

/// One request to JetStream and its answer.
fn ask(address: SocketAddr, what: &str, payload: &str) -> io::Result<String> {
    const WITHIN: Duration = Duration::from_secs(2);
    let mut socket = TcpStream::connect_timeout(&address, WITHIN)?;
    socket.set_read_timeout(Some(WITHIN))?;
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let inbox = format!("faults.answer.{}", ASKED.fetch_add(1, Ordering::Relaxed));
    let request = format!(
        "CONNECT {{\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}}\r\n\
         SUB {inbox} 1\r\nPUB $JS.API.{what} {inbox} {}\r\n{payload}\r\n",
        payload.len()
    );
    socket.write_all(request.as_bytes())?;
    let mut socket = BufReader::new(socket);
    loop {
        let mut line = String::new();
        if socket.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line.starts_with("PING") {
            socket.get_mut().write_all(b"PONG\r\n")?;
        }
        if line.starts_with("HMSG ") {
            return Err(io::Error::other("nobody answers"));
        }
        if line.starts_with("MSG ") {
            let len = line.trim().rsplit(' ').next().and_then(|len| len.parse().ok()).unwrap_or(0);
            let mut answer = vec![0; len];
            socket.read_exact(&mut answer)?;
            return Ok(String::from_utf8_lossy(&answer).into_owned());
        }
    }
}
