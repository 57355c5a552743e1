//! The Holdfast servers of a cluster: their processes, and which of them says that it writes. Knows ROLE; refuses to know
//! what is written.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use wire::Reply;

use super::hosts::Host;
use super::nats::{LOG, Nats};
use super::network::{Network, Party};
use super::pace::Pace;
use super::process::{Leash, Process, Signal};
use crate::connection::{Connection, Outcome, Trouble};
use crate::observe::server_ms;
use crate::request::now_ms;

/// A server that is not paused answers within this.
const SOON: Duration = Duration::from_millis(700);

pub(crate) struct Members {
    binary: PathBuf,
    leash: Arc<Leash>,
    /// The library that gives a process a clock of its own.
    faketime: Option<PathBuf>,
    servers: Vec<Member>,
}

struct Member {
    host: Host,
    address: SocketAddr,
    dir: PathBuf,
    arguments: Vec<String>,
    process: Option<Process>,
    /// How often it was started.
    starts: usize,
}

/// Where the servers are. Clients ask each of them whether it writes.
#[derive(Clone)]
pub(crate) struct Addresses(pub(crate) Vec<SocketAddr>);

/// What a server says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Writer { position: i64 },
    Follower { position: i64 },
}

impl Members {
    pub(crate) fn new(
        binary: &Path,
        faketime: Option<&Path>,
        places: Vec<Host>,
        work: &Path,
        nats: &Nats,
        network: &mut Network,
        leash: &Arc<Leash>,
    ) -> Members {
        let monitoring: Vec<String> =
            nats.servers.iter().map(|server| format!("http://{}", server.monitoring)).collect();
        let servers = places.into_iter().enumerate().map(|(number, host)| {
            let dir = work.join(format!("holdfast{number}"));
            fs::create_dir_all(&dir).expect("cannot create a directory");
            let address = host.address(6379);
            let links: Vec<String> = (0..nats.servers.len())
                .map(|peer| network.link(Party::Holdfast(number), Party::Nats(peer), nats.servers[peer].address))
                .map(|address| address.to_string())
                .collect();
            let arguments = [
                ("--port", address.port().to_string()),
                ("--bind", address.ip().to_string()),
                ("--dir", dir.display().to_string()),
                ("--log", format!("nats://{}/{LOG}", links.join(","))),
                ("--log-monitoring", monitoring.join(",")),
                ("--enable-debug-command", "yes".into()),
                ("--protected-mode", "no".into()),
                ("--auto-aof-rewrite-percentage", "100".into()),
                ("--auto-aof-rewrite-min-size", "4194304".into()),
                ("--threads", "2".into()),
            ];
            let arguments = arguments.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect();
            Member { host, address, dir, arguments, process: None, starts: 0 }
        });
        let servers = servers.collect();
        Members { binary: binary.into(), leash: leash.clone(), faketime: faketime.map(Into::into), servers }
    }

    pub(crate) fn count(&self) -> usize {
        self.servers.len()
    }

    pub(crate) fn addresses(&self) -> Addresses {
        Addresses(self.servers.iter().map(|server| server.address).collect())
    }

    pub(crate) fn start(&mut self, number: usize) {
        let server = &mut self.servers[number];
        if server.process.is_some() {
            return;
        }
        let mut command = server.host.command(&self.binary);
        command.args(&server.arguments);
        if let Some(library) = &self.faketime {
            let clock = server.dir.join("clock");
            if !clock.exists() {
                fs::write(&clock, "+0").expect("cannot write a file");
            }
            command
                .env("LD_PRELOAD", library)
                .env("FAKETIME_TIMESTAMP_FILE", clock)
                .env("FAKETIME_NO_CACHE", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        if let Ok(more) = std::env::var("HOLDFAST_TEST_ARGS") {
            command.args(more.split_whitespace());
        }
        server.starts += 1;
        server.process = Some(Process::start(command, &server.dir.join("server.log"), &self.leash));
    }

    /// Sets the clock of a server, as libfaketime is told: `+60` or `+0 x1.5`.
    pub(crate) fn set_clock(&self, number: usize, clock: &str) {
        let dir = &self.servers[number].dir;
        // The file is there as a whole, or as it was.
        fs::write(dir.join("clock.new"), clock).expect("cannot write a file");
        fs::rename(dir.join("clock.new"), dir.join("clock")).expect("cannot replace a file");
    }

    pub(crate) fn kill(&mut self, number: usize) {
        if let Some(process) = self.servers[number].process.take() {
            process.kill();
        }
    }

    /// Lets it end by itself.
    pub(crate) fn stop(&mut self, number: usize) -> Result<(), String> {
        let Some(mut process) = self.servers[number].process.take() else { return Ok(()) };
        process.signal(Signal::TERM);
        match process.ends_within(Duration::from_secs(60)) {
            Some(_) => Ok(()),
            None => Err(format!("server {number} is still there a minute after SIGTERM")),
        }
    }

    pub(crate) fn signal(&self, number: usize, signal: Signal) {
        if let Some(process) = &self.servers[number].process {
            process.signal(signal);
        }
    }

    pub(crate) fn starts(&self, number: usize) -> usize {
        self.servers[number].starts
    }

    /// How a server ended that was not told to.
    pub(crate) fn ended(&mut self, number: usize) -> Option<ExitStatus> {
        self.servers[number].process.as_mut().and_then(Process::ended)
    }

    /// What a server has printed so far.
    pub(crate) fn output(&self, number: usize) -> String {
        let bytes = fs::read(self.servers[number].dir.join("server.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Addresses {
    /// The server that says that it writes, if one does.
    pub(crate) fn writer(&self) -> Option<usize> {
        (0..self.0.len()).find(|number| matches!(self.role(*number), Some(Role::Writer { .. })))
    }

    /// The server on which clients write now, if there is one.
    pub(crate) fn writer_for(&self, pace: &Pace) -> Option<usize> {
        let writes = |number: &usize| matches!(self.role(*number), Some(Role::Writer { .. }));
        (0..self.0.len()).filter(|number| !pace.is_avoided(*number)).find(writes)
    }

    /// Another server than this one says that it writes.
    pub(crate) fn other_writes(&self, than: usize) -> bool {
        (0..self.0.len()).any(|number| number != than && matches!(self.role(number), Some(Role::Writer { .. })))
    }

    /// What a server says of itself, if it answers soon.
    pub(crate) fn role(&self, number: usize) -> Option<Role> {
        let mut connection = Connection::open_within(self.0[number], SOON).ok()?;
        match connection.run(&["ROLE"]).ok()? {
            Reply::Array(parts) => match parts.first()? {
                Reply::Bulk(role) if role == b"master" => match parts.get(1)? {
                    Reply::Integer(position) => Some(Role::Writer { position: *position }),
                    _ => None,
                },
                Reply::Bulk(role) if role == b"slave" => match parts.get(4)? {
                    Reply::Integer(position) => Some(Role::Follower { position: *position }),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// How far the time of a server is ahead of ours.
    pub(crate) fn clock_ahead_ms(&self, number: usize) -> Option<i64> {
        let mut connection = Connection::open_within(self.0[number], SOON).ok()?;
        server_ms(&mut connection).ok().map(|ms| ms - now_ms())
    }

    pub(crate) fn connect(&self, number: usize) -> Outcome<Connection> {
        Connection::open(self.0[number]).map_err(|_| Trouble::Closed)
    }

    /// Waits until one server writes and all others of `running` follow it and have all it has.
    pub(crate) fn wait_until_agreed(&self, running: &[usize], within: Duration) -> Result<usize, String> {
        let deadline = Instant::now() + within;
        loop {
            let roles: Vec<Option<Role>> = running.iter().map(|number| self.role(*number)).collect();
            let writers: Vec<(usize, i64)> = running
                .iter()
                .zip(&roles)
                .filter_map(|(number, role)| match role {
                    Some(Role::Writer { position }) => Some((*number, *position)),
                    _ => None,
                })
                .collect();
            if let [(writer, end)] = writers.as_slice()
                && roles.iter().all(|role| match role {
                    Some(Role::Writer { .. }) => true,
                    Some(Role::Follower { position }) => position >= end,
                    None => false,
                })
            {
                return Ok(*writer);
            }
            if Instant::now() > deadline {
                return Err(format!("after {within:?}, the servers {running:?} say that they are {roles:?}"));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}
