//! Starts servers on free loopback ports in directories of their own, and ends those and no others. Knows nothing of
//! workloads.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::connection::{Connection, Reply, simple};

/// How to start a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerSpec {
    pub(crate) name: String,
    /// A shell command in which `{port}`, `{dir}` and `{persistence}` are filled in.
    pub(crate) command: String,
}

/// What a server does for its data to outlive it. No server snapshots or rewrites its journal by itself: that
/// would fall into one server's round and not into the other's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Persistence {
    Off,
    /// A journal, synced once a second.
    EverySecond,
    /// A journal, synced before a write is answered.
    Always,
    /// A journal, synced once a second, against peers without any: what a server does by default, against peers at their
    /// quickest.
    AgainstNone,
}

impl Persistence {
    /// What the peers of a server do that does this.
    pub(crate) fn of_peers(self) -> Self {
        if self == Persistence::AgainstNone { Persistence::Off } else { self }
    }

    /// As command-line settings, which Redis, Valkey and Holdfast share.
    fn settings(self) -> &'static str {
        match self {
            Persistence::Off => "--appendonly no --save ''",
            Persistence::EverySecond | Persistence::AgainstNone => {
                "--appendonly yes --appendfsync everysec --auto-aof-rewrite-percentage 0 --save ''"
            }
            Persistence::Always => "--appendonly yes --appendfsync always --auto-aof-rewrite-percentage 0 --save ''",
        }
    }
}

/// A server we started; dropping it ends it and removes its directory.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) pid: u32,
    /// What it says of itself.
    pub(crate) version: String,
}

/// How long an empty server may take until it serves.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a server may take to end when asked to, and to load its data when started again.
const RESTART_TIMEOUT: Duration = Duration::from_secs(120);

/// Between two looks at a server that is starting or ending: a small part of the times we report, and yet rare enough
/// that a server which serves while it loads is not slowed by it.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl ServerSpec {
    pub(crate) fn new(name: &str, command: &str) -> Result<Self> {
        ensure!(!name.is_empty(), "a server needs a name");
        ensure!(command.contains("{port}"), "the command for `{name}` has no {{port}} in it: {command}");
        Ok(ServerSpec { name: name.to_string(), command: command.to_string() })
    }

    /// The same server under another name, which keeps to this persistence whatever a workload asks for.
    pub(crate) fn with_persistence(&self, name: &str, persistence: Persistence) -> Self {
        let command = self.command.replace("{persistence}", persistence.settings());
        ServerSpec { name: name.to_string(), command }
    }

    /// Whether its persistence is ours to choose.
    pub(crate) fn is_told_persistence(&self) -> bool {
        self.command.contains("{persistence}")
    }

    fn shell_line(&self, persistence: Persistence, port: u16, dir: &str) -> String {
        let command = self.command.replace("{persistence}", persistence.settings());
        let command = command.replace("{port}", &port.to_string()).replace("{dir}", &shell_quoted(dir));
        // With `exec` the pid we hold is the server's, not a shell's.
        format!("exec {command}")
    }
}

impl Server {
    pub(crate) fn start(spec: &ServerSpec, persistence: Persistence) -> Result<Server> {
        let mut server = Server::launch(spec, persistence)?;
        server.wait_until(START_TIMEOUT, answers_ping)?;
        server.learn_identity()?;
        Ok(server)
    }

    /// Starts one that speaks another protocol; `version` tells what it says of itself as soon as it serves.
    pub(super) fn start_foreign(spec: &ServerSpec, version: impl Fn(u16) -> Option<String>) -> Result<Server> {
        let mut server = Server::launch(spec, Persistence::Off)?;
        server.wait_until(START_TIMEOUT, |port| version(port).is_some())?;
        server.version = version(server.port).unwrap_or_default();
        Ok(server)
    }

    /// A process that may not serve yet. It ends when this is dropped, also by an early return.
    fn launch(spec: &ServerSpec, persistence: Persistence) -> Result<Server> {
        let port = free_port()?;
        let pid = spawn(spec, persistence, port).with_context(|| format!("cannot start `{}`", spec.name))?;
        Ok(Server { name: spec.name.clone(), port, pid, version: String::new() })
    }

    /// Ends the server as an operator would and starts it again on the same data. Returns the time from its start
    /// until it answered PING, which a server that is still loading does not.
    pub(crate) fn restart(&mut self) -> Result<Duration> {
        self.terminate()?;
        let started = Instant::now();
        self.pid = respawn(self.pid).with_context(|| format!("cannot start `{}` again", self.name))?;
        self.wait_until(RESTART_TIMEOUT, answers_ping)?;
        Ok(started.elapsed())
    }

    /// SIGTERM rather than SHUTDOWN NOSAVE: it means the same to Redis without save points, and every server knows it.
    fn terminate(&self) -> Result<()> {
        let kill = format!("kill -TERM {}", self.pid);
        let status = Command::new("sh").args(["-c", &kill]).status().context("cannot run kill")?;
        ensure!(status.success(), "`{kill}` for `{}`: {status}", self.name);
        let asked = Instant::now();
        while exit_of(self.pid).is_none() {
            ensure!(asked.elapsed() < RESTART_TIMEOUT, "`{}` does not end on SIGTERM", self.name);
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    pub(crate) fn connect(&self) -> Result<Connection> {
        Connection::open(self.port).with_context(|| format!("cannot connect to `{}` on port {}", self.name, self.port))
    }

    /// Whether it has a command of this name, which must need arguments or do no harm without them.
    pub(crate) fn knows(&self, command: &str) -> Result<bool> {
        let reply = self.connect()?.call(&[command])?;
        Ok(!matches!(reply, Reply::Error(text) if text.starts_with("ERR unknown command")))
    }

    fn wait_until(&self, timeout: Duration, serves: impl Fn(u16) -> bool) -> Result<()> {
        let started = Instant::now();
        loop {
            if serves(self.port) {
                return Ok(());
            }
            if let Some(end) = exit_of(self.pid) {
                bail!("`{}` ended at once ({end}); it said:\n{}", self.name, last_words(self.pid));
            }
            if started.elapsed() > timeout {
                bail!("`{}` does not serve on port {}; it said:\n{}", self.name, self.port, last_words(self.pid));
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn learn_identity(&mut self) -> Result<()> {
        let mut connection = self.connect()?;
        let info = info(&mut connection, "server")?;
        let version = ["holdfast_version", "valkey_version", "redis_version"];
        self.version = version.iter().find_map(|name| info_field(&info, name)).unwrap_or("unknown").to_string();
        // A wrapper that does not exec would have its own CPU time measured, and the server would outlive us.
        if let Some(pid) = info_field(&info, "process_id")
            && pid != self.pid.to_string()
        {
            let _ = connection.call(&["SHUTDOWN", "NOSAVE"]);
            bail!("the command for `{}` must exec the server: it started one with pid {pid}", self.name);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut started = started();
        if let Some(position) = started.iter().position(|process| process.child.id() == self.pid) {
            started.swap_remove(position).end();
        }
    }
}

fn answers_ping(port: u16) -> bool {
    let answer = Connection::open(port).ok().and_then(|mut connection| connection.call(&["PING"]).ok());
    answer == Some(simple("PONG"))
}

/// One section of INFO.
pub(crate) fn info(connection: &mut Connection, section: &str) -> Result<String> {
    match connection.call(&["INFO", section])? {
        Reply::BulkString(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        other => bail!("INFO {section} answered {other:?}"),
    }
}

pub(crate) fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

/// Ends everything we started when we are interrupted, terminated, or panic (a release build aborts on panic, and
/// nothing is dropped then).
pub(crate) fn stop_all_on_interrupt_or_panic() -> Result<()> {
    ctrlc::set_handler(|| {
        // IMPORTANT: keep the lock until the exit; otherwise the main thread could start another server in between.
        let mut started = started();
        started.drain(..).for_each(Started::end);
        std::process::exit(130);
    })
    .context("cannot install the interrupt handler")?;

    let report_panic = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report_panic(panic);
        // Not `lock`: the panicking thread may be the one that holds it.
        if let Ok(mut started) = STARTED.try_lock() {
            started.drain(..).for_each(Started::end);
        }
    }));
    Ok(())
}

/// Every process of ours that is running. Global because the interrupt handler must reach it.
static STARTED: Mutex<Vec<Started>> = Mutex::new(Vec::new());

struct Started {
    child: Child,
    dir: PathBuf,
    /// What started it, with everything filled in.
    shell_line: String,
}

impl Started {
    /// Best effort: this also runs on the way out, where errors can no longer be reported.
    fn end(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn started() -> MutexGuard<'static, Vec<Started>> {
    STARTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Starts the process, with its output in a file of its directory, and returns its pid.
fn spawn(spec: &ServerSpec, persistence: Persistence, port: u16) -> Result<u32> {
    // IMPORTANT: hold the lock from before the start; an interrupt in between would miss the new process.
    let mut started = started();
    let dir = data_root().join(format!("holdfast-bench-{}-{}-{port}", std::process::id(), spec.name));
    fs::create_dir(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let shell_line = spec.shell_line(persistence, port, &dir.to_string_lossy());
    match spawn_in(&dir, &shell_line) {
        Ok(child) => {
            let pid = child.id();
            started.push(Started { child, dir, shell_line });
            Ok(pid)
        }
        Err(error) => {
            let _ = fs::remove_dir_all(&dir);
            Err(error)
        }
    }
}

/// Starts a process that has ended once more, in the same directory, and returns its new pid.
fn respawn(pid: u32) -> Result<u32> {
    // IMPORTANT: hold the lock from before the start, as in `spawn`.
    let mut started = started();
    let process = started.iter_mut().find(|process| process.child.id() == pid).context("it was never started")?;
    process.child = spawn_in(&process.dir, &process.shell_line)?;
    Ok(process.child.id())
}

/// Where the directories of all servers are made: one place, so that they share a disk.
pub(crate) fn data_root() -> PathBuf {
    std::env::temp_dir()
}

fn spawn_in(dir: &std::path::Path, shell_line: &str) -> Result<Child> {
    let output = File::create(dir.join(OUTPUT_FILE))?;
    let child = Command::new("sh")
        .args(["-c", shell_line])
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()?;
    Ok(child)
}

const OUTPUT_FILE: &str = "server.out";

/// How the process ended, if it has.
fn exit_of(pid: u32) -> Option<String> {
    let mut started = started();
    let process = started.iter_mut().find(|process| process.child.id() == pid)?;
    process.child.try_wait().ok().flatten().map(|status| status.to_string())
}

fn last_words(pid: u32) -> String {
    let started = started();
    let Some(process) = started.iter().find(|process| process.child.id() == pid) else {
        return String::new();
    };
    let output = fs::read(process.dir.join(OUTPUT_FILE)).unwrap_or_default();
    let output = String::from_utf8_lossy(&output);
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

/// A free port. Another process may take it before the server does; then the start fails and says so.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free loopback port")?;
    Ok(listener.local_addr()?.port())
}

/// Text as one word of a shell command.
pub(crate) fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_its_port_and_directory() {
        let spec = ServerSpec::new("redis", "redis-server --port {port} --dir {dir} {persistence}").unwrap();
        assert_eq!(
            spec.shell_line(Persistence::Off, 7001, "/tmp/it's here"),
            r"exec redis-server --port 7001 --dir '/tmp/it'\''s here' --appendonly no --save ''"
        );
        let always = spec.shell_line(Persistence::Always, 7001, "/tmp");
        assert!(always.contains("--appendonly yes --appendfsync always "), "{always}");
    }

    #[test]
    fn a_server_with_a_persistence_of_its_own_keeps_it() {
        let spec = ServerSpec::new("redis", "redis-server --port {port} {persistence}").unwrap();
        let aof = spec.with_persistence("redis-aof", Persistence::EverySecond);
        assert_eq!((&*aof.name, aof.is_told_persistence()), ("redis-aof", false));
        assert!(aof.shell_line(Persistence::Off, 7001, "/tmp").contains("--appendonly yes --appendfsync everysec "));
    }

    #[test]
    fn a_command_without_a_port_is_refused() {
        let error = ServerSpec::new("valkey", "valkey-server").unwrap_err();
        assert_eq!(error.to_string(), "the command for `valkey` has no {port} in it: valkey-server");
    }

    #[test]
    fn info_fields_are_found_by_their_whole_name() {
        let info = "# Memory\r\nused_memory_rss:9\r\nused_memory:7\r\n";
        assert_eq!(info_field(info, "used_memory"), Some("7"));
        assert_eq!(info_field(info, "used"), None);
    }

    #[test]
    fn a_server_that_ends_at_once_is_reported_with_its_last_words_and_leaves_nothing_behind() {
        let spec = ServerSpec::new("stub", "sh -c 'echo cannot bind {port}; echo {dir}; exit 3'").unwrap();
        let error = Server::start(&spec, Persistence::Off).err().unwrap().to_string();
        assert!(error.starts_with("`stub` ended at once (exit status: 3); it said:\ncannot bind "), "{error}");
        let dir = error.lines().last().unwrap();
        assert!(dir.contains("holdfast-bench-") && !std::path::Path::new(dir).exists(), "{dir}");
    }
}
