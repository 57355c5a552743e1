//! A NATS server of a test's own, and as much of its protocol as it takes to meddle with a log by hand.

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Deref;
use std::process::{Child, Command, Stdio};

use wire::{Connection, Reply, Server, free_address, skip};

use crate::process::{Dir, Failure, Holdfast, can_start_holdfast, eventually, fail_to_start};
pub(crate) use crate::support::{position, role, same_digest};

/// The name of the log in all tests.
pub(crate) const NAME: &str = "orders";
/// Its stream.
pub(crate) const STREAM: &str = "HOLDFAST_orders";

/// A NATS server. Killed when dropped.
pub(crate) struct Nats {
    process: Child,
    dir: Dir,
    address: SocketAddr,
    monitoring: SocketAddr,
}

impl Nats {
    /// `None`, and the test is skipped, where there is no holdfast or no NATS to start.
    pub(crate) fn start() -> Option<Nats> {
        Nats::start_named("lonely")
    }

    pub(crate) fn start_named(name: &str) -> Option<Nats> {
        Nats::launch(name, "sync_interval: always")
    }

    /// With these settings of JetStream.
    pub(crate) fn start_with(jetstream: &str) -> Option<Nats> {
        Nats::launch("lonely", jetstream)
    }

    fn launch(name: &str, jetstream: &str) -> Option<Nats> {
        let nats = Nats::launch_with(name, jetstream, |_| String::new())?;
        nats.wait();
        Some(nats)
    }

    /// With TLS and rights: more settings, which may need files in its directory. It is not asked anything here.
    pub(crate) fn start_secured(settings: impl FnOnce(&Dir) -> String) -> Option<Nats> {
        let nats = Nats::launch_with("lonely", "sync_interval: always", settings)?;
        let listens = |address: SocketAddr| TcpStream::connect(address).is_ok();
        eventually("NATS listens", || listens(nats.address) && listens(nats.monitoring));
        Some(nats)
    }

    fn launch_with(name: &str, jetstream: &str, more: impl FnOnce(&Dir) -> String) -> Option<Nats> {
        if !can_start_holdfast() {
            return None;
        }
        if env::var_os("HOLDFAST_NATS_SERVER").is_none() {
            skip("no NATS server: HOLDFAST_NATS_SERVER is not set");
            return None;
        }
        let (dir, address, monitoring) = (Dir::fresh(), free_address(), free_address());
        let (store, more) = (dir.path().join("store"), more(&dir));
        dir.write(
            "nats.conf",
            &format!(
                "listen: \"{address}\"\nhttp: \"{monitoring}\"\nserver_name: {name}\n\
                 jetstream {{ store_dir: \"{}\", {jetstream} }}\n{more}",
                store.display()
            ),
        );
        Some(Nats { process: spawn(&dir), dir, address, monitoring })
    }

    fn wait(&self) {
        eventually("NATS answers", || TcpStream::connect(self.address).is_ok());
        eventually("JetStream answers", || self.ask("$JS.API.INFO", "").contains("\"limits\""));
    }

    /// Kills it and starts it again on the same data.
    pub(crate) fn restart(&mut self) {
        self.end();
        self.process = spawn(&self.dir);
        self.wait();
    }

    /// Kills it.
    pub(crate) fn stop(&mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}/{NAME}", self.address)
    }

    /// With TLS. The certificate is for this name.
    pub(crate) fn secured_url(&self) -> String {
        format!("tls://localhost:{}/{NAME}", self.address.port())
    }

    /// The path of one of its files.
    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// The monitoring port.
    pub(crate) fn monitoring(&self) -> String {
        format!("http://{}", self.monitoring)
    }

    /// Flags of a server that shares the log.
    fn flags(&self, more: &[&str]) -> Vec<String> {
        let (url, monitoring) = (self.url(), self.monitoring());
        let flags = ["--log", &url, "--log-monitoring", &monitoring, "--log-replicas", "1"];
        flags.iter().chain(&["--enable-debug-command", "yes"]).chain(more).map(|flag| (*flag).to_owned()).collect()
    }

    /// Starts a server that shares the log, and waits until it has read it.
    pub(crate) fn member(&self, more: &[&str]) -> Holdfast {
        let flags = self.flags(more);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        Holdfast::start(&flags).expect("it was asked before")
    }

    /// Starts a server that shares the log, and does not wait for it. Its data directory is `data` in the other, where its
    /// output is, and does not exist yet.
    pub(crate) fn begin(&self, more: &[&str]) -> (Server, Dir) {
        let dir = Dir::fresh();
        (self.begin_in(&dir, more), dir)
    }

    /// The same, in a directory that may have been used before.
    pub(crate) fn begin_in(&self, dir: &Dir, more: &[&str]) -> Server {
        self.begin_beside(dir, dir, more)
    }

    /// The same, with its output in another directory.
    pub(crate) fn begin_beside(&self, dir: &Dir, output: &Dir, more: &[&str]) -> Server {
        let (flags, data) = (self.flags(more), dir.path().join("data"));
        Server::launch(free_address(), &data, |command| output.keep_output(command.args(flags)))
    }

    /// Starts a server that asks for a password.
    pub(crate) fn member_with_password(&self, password: &str) -> Locked {
        let (dir, address, flags) = (Dir::fresh(), free_address(), self.flags(&["--requirepass", password]));
        let server = Server::launch(address, dir.path(), |command| dir.keep_output(command.args(flags)));
        let is_up = || {
            let login = |mut fresh: Connection| fresh.run(&format!("AUTH {password}")).to_string() == "+OK";
            Connection::open(address).is_ok_and(login)
        };
        eventually("it answers", is_up);
        Locked { server, _dir: dir }
    }

    /// The first server: it writes.
    pub(crate) fn writer(&self, more: &[&str]) -> Holdfast {
        let member = self.member(more);
        let mut connection = member.connect();
        eventually("it writes", || role(&mut connection) == "master");
        member
    }

    /// NATS with a writer, and a client of that.
    pub(crate) fn with_writer() -> Option<(Nats, Holdfast, Connection)> {
        let nats = Nats::start()?;
        let writer = nats.writer(&[]);
        let client = writer.connect();
        Some((nats, writer, client))
    }

    /// NATS with a writer and its follower.
    pub(crate) fn with_pair() -> Option<(Nats, Holdfast, Holdfast)> {
        let nats = Nats::start()?;
        let writer = nats.writer(&[]);
        let follower = nats.follower(&writer, &[]);
        Some((nats, writer, follower))
    }

    /// Another server: it follows, and the writer knows of it.
    pub(crate) fn follower(&self, writer: &Holdfast, more: &[&str]) -> Holdfast {
        let member = self.member(more);
        let (mut at_writer, port) = (writer.connect(), member.address().port().to_string());
        eventually("the writer knows of it", || {
            let known = at_writer.run("ROLE");
            known.items()[2].items().iter().any(|follower| follower.items()[1].text() == port)
        });
        let mut connection = member.connect();
        eventually("it knows of the writer", || link(&mut connection) == "connected");
        member
    }

    /// Starts a server that cannot share the log, and waits for its end.
    #[track_caller]
    pub(crate) fn refuse(&self, more: &[&str]) -> Failure {
        let flags = self.flags(more);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let failure = fail_to_start(&flags, &[]);
        assert_eq!(failure.code, Some(1), "{}", failure.stderr);
        failure
    }

    /// Asks something and returns the answer.
    pub(crate) fn ask(&self, subject: &str, payload: &str) -> String {
        let mut socket = TcpStream::connect(self.address).expect("NATS listens");
        let hello = "CONNECT {\"verbose\":false,\"pedantic\":false}\r\nSUB _INBOX.t 1\r\n";
        let request = format!("{hello}PUB {subject} _INBOX.t {}\r\n{payload}\r\n", payload.len());
        socket.write_all(request.as_bytes()).expect("NATS reads");
        let mut answer = BufReader::new(socket);
        loop {
            let mut line = String::new();
            let count = answer.read_line(&mut line).expect("NATS answers");
            assert!(count > 0, "NATS has closed the connection after {request:?}");
            if line.starts_with("PING") {
                answer.get_mut().write_all(b"PONG\r\n").expect("NATS reads");
            }
            if let Some(head) = line.strip_prefix("MSG ") {
                let length: usize =
                    head.trim().rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a length");
                let mut payload = vec![0; length];
                answer.read_exact(&mut payload).expect("NATS sends all of it");
                return String::from_utf8(payload).expect("answers are text");
            }
        }
    }

    /// Sends a message, and waits until NATS has read it.
    pub(crate) fn tell(&self, subject: &str, payload: &str) {
        let mut socket = TcpStream::connect(self.address).expect("NATS listens");
        let hello = "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n";
        let message = format!("{hello}PUB {subject} {}\r\n{payload}\r\nPING\r\n", payload.len());
        socket.write_all(message.as_bytes()).expect("NATS reads");
        let answers = BufReader::new(socket).lines().map(|line| line.expect("NATS answers"));
        assert!(answers.take_while(|line| line != "PONG").all(|line| !line.starts_with("-ERR")));
    }

    /// The id of the log.
    pub(crate) fn log_id(&self) -> String {
        let info = self.ask(&format!("$JS.API.STREAM.INFO.{STREAM}"), "");
        let (_, id) = info.split_once("\"holdfast-log\":\"").unwrap_or_else(|| panic!("no id in {info}"));
        id[..16].to_owned()
    }

    /// The subject of its frames.
    pub(crate) fn subject(&self) -> String {
        format!("holdfast.{NAME}.log.{}", self.log_id())
    }

    /// A number in what JetStream says of the stream.
    pub(crate) fn state(&self, name: &str) -> u64 {
        let info = self.ask(&format!("$JS.API.STREAM.INFO.{STREAM}"), "");
        let (_, rest) = info.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("no {name} in {info}"));
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    }

    /// The kinds of the frames of the log: `e` an epoch, `r` a release, `.` batches.
    pub(crate) fn kinds(&self) -> String {
        // What "HFL1" and each kind are in base64.
        let kinds = [("SEZMMQEA", '.'), ("SEZMMQIA", 'e'), ("SEZMMQMA", 'r')];
        let of = |position: u64| {
            let asked = format!("{{\"seq\":{position}}}");
            let message = self.ask(&format!("$JS.API.STREAM.MSG.GET.{STREAM}"), &asked);
            kinds
                .iter()
                .find(|(begin, _)| message.contains(&format!("\"data\":\"{begin}")))
                .map_or('?', |(_, kind)| *kind)
        };
        (self.state("first_seq")..=self.state("last_seq")).map(of).collect()
    }
}

/// A server that asks for a password.
pub(crate) struct Locked {
    server: Server,
    _dir: Dir,
}

impl Deref for Locked {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.end();
    }
}

fn spawn(dir: &Dir) -> Child {
    let output = File::options().create(true).append(true).open(dir.path().join("nats.log")).expect("a log file");
    let mut command = Command::new(env::var_os("HOLDFAST_NATS_SERVER").expect("it was looked for before"));
    command.arg("-c").arg(dir.path().join("nats.conf")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
    command.spawn().expect("the NATS server can be started")
}

/// What a follower says of its link to the writer.
pub(crate) fn link(connection: &mut Connection) -> String {
    match connection.run("ROLE") {
        Reply::Array(parts) if parts.len() == 5 => parts[3].text().to_owned(),
        other => other.to_string(),
    }
}
