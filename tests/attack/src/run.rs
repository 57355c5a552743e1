//! Round after round: attack with many connections, end the server, compare; attack in special ways and with one connection,
//! end the server, compare.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use wire::{Random, Reply, Server, free_address};

use crate::leash::Leash;
use crate::record::Record;
use crate::session::{Attack, mix};
use crate::state::{State, digests, index_contents, is_without_expired, remove_deadlines};
use crate::table::Table;
use crate::talk::Talk;
use crate::vocabulary::{LISTPACK_ENTRIES_MAX, Vocabulary};
use crate::{Failure, Plan, health, neighbours};

/// Runs the plan. Its directory is removed if all is well, and kept otherwise.
pub fn run(plan: &Plan) -> Result<(), Box<Failure>> {
    let work = std::env::temp_dir().join(format!("holdfast-attack-{}-{}", std::process::id(), plan.seed));
    fs::create_dir_all(&work).expect("cannot create a directory to work in");
    let began = Instant::now();
    let mut totals = Totals::default();
    while totals.rounds == 0 || began.elapsed() < plan.duration {
        totals.rounds += 1;
        // Some ways to attack need two places, whatever the number of connections.
        let record = Record::new(plan.connections.max(2));
        let left = plan.duration.saturating_sub(began.elapsed()).clamp(Duration::from_secs(2), ROUND_MAX);
        let mut round =
            Round { plan, record: &record, work: &work, seed: mix(plan.seed, 0, totals.rounds), server: None };
        let outcome = round.run(left);
        totals.longest_wait = totals.longest_wait.max(record.longest_wait());
        totals.requests += record.requests.load(Ordering::Relaxed);
        for (row, well) in record.take_reached() {
            *totals.reached.entry(row).or_default() |= well;
        }
        if let Err(what) = outcome {
            return Err(Box::new(round.failure(totals.rounds, what)));
        }
    }
    println!(
        "{} rounds, {} requests: the server lived, answered, and kept what it had",
        totals.rounds, totals.requests
    );
    println!("the longest that a new connection waited: {} ms", totals.longest_wait.as_millis());
    println!("{}", totals.reach());
    // What cannot be removed is in nobody's way.
    let _ = fs::remove_dir_all(work);
    Ok(())
}

fn wait_until<T>(limit: Duration, mut happens: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        match happens() {
            None if began.elapsed() < limit => thread::sleep(Duration::from_millis(5)),
            outcome => return outcome,
        }
    }
}

/// A reply may be nested thousands deep, and is read by a function that calls itself.
const STACK_BYTES: usize = 256 << 20;
/// Only tell a slow server from a stuck one.
const START_MAX: Duration = Duration::from_secs(30);
const END_MAX: Duration = Duration::from_secs(30);
const ROUND_MAX: Duration = Duration::from_secs(40);
/// More than the server may use by its `maxmemory`, less than the machine has: growth without bound ends as a crash.
const ADDRESS_SPACE_MAX: u64 = 8 << 30;

#[derive(Default)]
struct Totals {
    rounds: u64,
    requests: u64,
    longest_wait: Duration,
    reached: BTreeMap<String, bool>,
}

impl Totals {
    /// What one connection alone has sent, and which of it was never answered well: whether the attack reaches what it
    /// attacks.
    fn reach(&self) -> String {
        let refused: Vec<_> = self.reached.iter().filter(|(_, well)| !**well).map(|(row, _)| row.as_str()).collect();
        let well = self.reached.len() - refused.len();
        format!(
            "alone: {} commands, {well} of them also without an error; the others: {}",
            self.reached.len(),
            refused.join(", ")
        )
    }
}

/// One way to attack.
struct Part {
    /// As `--only` names it.
    name: &'static str,
    /// Of the time of a round.
    share: u32,
    /// Whether all connections attack, or one alone.
    is_crowded: bool,
    /// Whether there may be neighbours that pipeline without pause. They would disturb measurements of memory and of changes.
    has_neighbours: bool,
    /// Whether the server is ended and started again after it, and must have kept what it had.
    restarts: bool,
    go: fn(&Attack<'_>, usize, Instant),
}

const PARTS: &[Part] = &[
    Part {
        share: 34,
        is_crowded: true,
        has_neighbours: true,
        restarts: true,
        ..part("crowd", |attack, at, until| attack.run(at, until))
    },
    Part { share: 20, has_neighbours: true, ..part("slices", |attack, _, until| attack.run_slices(until)) },
    Part {
        share: 13,
        is_crowded: true,
        has_neighbours: true,
        ..part("paces", |attack, at, until| attack.run_paces(at, until))
    },
    part("paces", |attack, _, _| attack.end_paces()),
    Part { share: 15, ..part("full", |attack, _, until| attack.run_full(until)) },
    part("accounts", |attack, _, _| attack.run_accounts()),
    Part { share: 18, ..part("alone", |attack, at, until| attack.run_alone(at, until)) },
];

const fn part(name: &'static str, go: fn(&Attack<'_>, usize, Instant)) -> Part {
    Part { name, share: 0, is_crowded: false, has_neighbours: false, restarts: false, go }
}

/// The names of the ways to attack, as `--only` takes them.
pub fn part_names() -> Vec<&'static str> {
    PARTS.iter().map(|part| part.name).collect::<BTreeSet<_>>().into_iter().collect()
}

const NEIGHBOURS_MAX: usize = 4;

struct Round<'a> {
    plan: &'a Plan,
    record: &'a Record,
    work: &'a Path,
    seed: u64,
    /// The leash comes first: it is let go before the server is waited for.
    server: Option<(Leash, Server)>,
}

const CONFIGURED_INDEX: &str = "idx:updated_at";

/// How a server of our own is ended.
#[derive(Clone, Copy)]
enum Ending {
    Terminate,
    Kill,
}

/// What must be the same before and after a start.
#[derive(Clone, PartialEq)]
struct Kept {
    state: State,
    indexes: Vec<String>,
    keys: BTreeMap<String, String>,
}

impl Round<'_> {
    fn run(&mut self, duration: Duration) -> Result<(), String> {
        let mut address = match self.plan.address {
            Some(address) => address,
            None => self.start()?,
        };
        let mut talk = self.talk(address)?;
        let table = Table::read(&mut talk)?;
        let vocabulary = Vocabulary::collect(&mut talk)?;
        drop(talk);
        let chosen = |part: &&Part| self.plan.only.is_empty() || self.plan.only.iter().any(|name| name == part.name);
        let parts: Vec<_> = PARTS.iter().filter(chosen).collect();
        let shares: u32 = parts.iter().map(|part| part.share).sum();
        for part in parts {
            let until = Instant::now() + duration * part.share / shares.max(1);
            self.attack(address, part, &table, &vocabulary, until)?;
            if part.restarts {
                let ending = if self.seed.is_multiple_of(2) { Ending::Kill } else { Ending::Terminate };
                address = self.restart(address, ending)?;
            }
        }
        self.restart(address, Ending::Terminate)?;
        Ok(())
    }

    /// Lets the connections attack, and looks whether the server can be reached until they are done. In half of the scenes there
    /// are neighbours that pipeline without pause.
    fn attack(
        &self,
        address: SocketAddr,
        part: &Part,
        table: &Table,
        vocabulary: &Vocabulary,
        until: Instant,
    ) -> Result<(), String> {
        let attack = Attack {
            address,
            process_id: self.server.as_ref().map(|(_, server)| server.process_id()),
            table,
            vocabulary,
            avoid: &self.plan.avoid,
            record: self.record,
            seed: self.seed,
        };
        // A number for each part, so that each has its own neighbours.
        let number = part.name.bytes().fold(0, |number, byte| number * 31 + u64::from(byte));
        let mut random = Random::new(mix(self.seed, 7_000_000, number));
        let neighbours = match part.has_neighbours && random.one_in(2) {
            true => (0..1 + random.below(NEIGHBOURS_MAX)).map(|_| random.one_in(2)).collect(),
            false => Vec::new(),
        };
        let over = AtomicBool::new(false);
        let is_over = || over.load(Ordering::Relaxed);
        thread::scope(|scope| {
            for (at, reads) in neighbours.iter().enumerate() {
                let random = Random::new(mix(self.seed, 7_000_001 + at as u64, number));
                scope.spawn(move || neighbours::flood(address, random, *reads, &is_over));
            }
            let watch = Random::new(mix(self.seed, 8_000_000, number));
            scope.spawn(move || health::watch(address, self.plan.ping_max, watch, self.record, &is_over));
            let connections = if part.is_crowded { self.plan.connections } else { 1 };
            let threads: Vec<_> = (0..connections)
                .map(|connection| {
                    let attack = &attack;
                    let thread = thread::Builder::new().stack_size(STACK_BYTES);
                    let go = move || (part.go)(attack, connection, until);
                    thread.spawn_scoped(scope, go).expect("cannot start a thread")
                })
                .collect();
            let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            over.store(true, Ordering::Relaxed);
            if let Some(panic) = ended.into_iter().find_map(Result::err) {
                std::panic::resume_unwind(panic);
            }
        });
        match self.record.failure() {
            Some(what) if neighbours.is_empty() => Err(what),
            Some(what) => {
                let reading = neighbours.iter().filter(|reads| **reads).count();
                Err(format!("{what} (beside {} clients that pipeline, {reading} of which read)", neighbours.len()))
            }
            None => self.no_panic(),
        }
    }

    /// In a debug build a thread that panics does not end the process. A release build would have ended.
    fn no_panic(&self) -> Result<(), String> {
        match self.log_text().lines().find(|line| line.contains("panicked at")) {
            Some(line) => Err(format!("the server has panicked: {line}")),
            None => Ok(()),
        }
    }

    fn talk(&self, address: SocketAddr) -> Result<Talk, String> {
        Talk::open(address, &Arc::default()).map_err(|error| format!("cannot connect: {error}"))
    }

    /// Ends the server and starts it again, on the same data: it must hold the same. A server that is not ours is left
    /// alone.
    fn restart(&mut self, address: SocketAddr, ending: Ending) -> Result<SocketAddr, String> {
        let Some((leash, mut server)) = self.server.take() else { return Ok(address) };
        let mut talk = self.talk(address)?;
        talk.must(&["CLIENT", "UNPAUSE"])?;
        // Requests of connections that have hung up may still be under way.
        if wait_until(END_MAX, || is_alone(&mut talk).then_some(())).is_none() {
            let list = talk.must(&["CLIENT", "LIST"])?;
            return Err(format!("connections that were closed are still in CLIENT LIST: {list}"));
        }
        remove_deadlines(&mut talk)?;
        if wait_until(END_MAX, || is_without_expired(&mut talk).unwrap_or(false).then_some(())).is_none() {
            return Err("keys that have expired are not removed".into());
        }
        let before = Kept::read(&mut talk)?;
        drop(leash);
        match ending {
            Ending::Kill => server.kill(),
            Ending::Terminate => {
                server.signal("TERM");
                match wait_until(END_MAX, || server.ended()) {
                    Some(status) if status.success() => {}
                    Some(status) => return Err(format!("the server was asked to stop and ended with {status}")),
                    None => return Err(format!("the server was asked to stop and still runs after {END_MAX:?}")),
                }
            }
        }
        self.check_files()?;
        let address = self.start()?;
        let after = Kept::read(&mut self.talk(address)?)?;
        let (before, after) = (before.without_configured(&after), after.without_configured(&before));
        if before != after {
            return Err(format!("after a start the data is not as before:\n{}", before.difference(&after)));
        }
        Ok(address)
    }

    fn start(&mut self) -> Result<SocketAddr, String> {
        let (data, log) = (self.data(), self.log());
        fs::create_dir_all(&data).expect("cannot create a data directory");
        let log = File::options().create(true).append(true).open(log).expect("cannot open the server's log");
        let entries_max = LISTPACK_ENTRIES_MAX.to_string();
        let mut server = Server::launch(free_address(), &data, |command| {
            command.args(["--enable-debug-command", "yes", "--maxmemory", "300mb", "--busy-reply-threshold", "300"]);
            command.args(["--hash-max-listpack-entries", &entries_max, "--zset-max-listpack-entries", &entries_max]);
            command.args(["--set-max-intset-entries", &entries_max]);
            command.args([
                "--proto-max-bulk-len",
                "16mb",
                "--client-output-buffer-limit",
                "normal 256mb 0 0 pubsub 32mb 8mb 60",
            ]);
            // The panic's own line must be near the end of the log.
            command.env("RUST_BACKTRACE", "0");
            command.stdout(log.try_clone().expect("cannot share the log")).stderr(log);
        });
        let leash = Leash::hold(server.process_id());
        let limit = Rlimit { current: Some(ADDRESS_SPACE_MAX), maximum: Some(ADDRESS_SPACE_MAX) };
        let process = i32::try_from(server.process_id()).ok().and_then(Pid::from_raw);
        prlimit(process, Resource::As, limit).map_err(|error| format!("cannot limit the server's memory: {error}"))?;
        let address = server.address();
        let answers = wait_until(START_MAX, || match (server.ended(), self.answers(address)) {
            (Some(status), _) => Some(Err(format!("the server ended at its start: {status}"))),
            (None, answers) => answers.then_some(Ok(())),
        });
        self.server = Some((leash, server));
        answers.unwrap_or_else(|| Err(format!("the server does not answer {START_MAX:?} after its start")))?;
        Ok(address)
    }

    fn answers(&self, address: SocketAddr) -> bool {
        let ping = self.talk(address).and_then(|mut talk| talk.run(&["PING"]));
        ping.is_ok_and(|reply| !reply.is_error())
    }

    /// What the server's own tool says of the files that it has left.
    fn check_files(&self) -> Result<(), String> {
        let mut check = Command::new(wire::binary());
        let output = check.arg("check").arg(self.data()).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("cannot run `holdfast check`: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("`holdfast check`: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn failure(&mut self, round: u64, mut what: String) -> Failure {
        if let Some((_, server)) = &mut self.server {
            // A process that crashes takes a moment to end.
            thread::sleep(Duration::from_millis(300));
            match server.ended() {
                Some(status) => what = format!("the server has ended, {status}; {what}"),
                None => what = format!("{what} (the server still runs, and is ended now)"),
            }
        }
        if let Err(panic) = self.no_panic() {
            what = format!("{panic}; {what}");
        }
        let log = self.log_text();
        let lines: Vec<&str> = log.lines().collect();
        Failure {
            seed: self.plan.seed,
            round,
            what,
            requests: self.record.last_requests(),
            log: lines[lines.len().saturating_sub(40)..].join("\n"),
            dir: self.plan.address.is_none().then(|| self.work.to_path_buf()),
        }
    }

    fn log_text(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log()).unwrap_or_default()).into_owned()
    }

    fn data(&self) -> PathBuf {
        self.work.join("data")
    }

    fn log(&self) -> PathBuf {
        self.work.join("server.log")
    }
}

fn is_alone(talk: &mut Talk) -> bool {
    let list = talk.must(&["CLIENT", "LIST"]).unwrap_or(Reply::Closed);
    matches!(list, Reply::Bulk(list) if list.iter().filter(|byte| **byte == b'\n').count() == 1)
}

impl Kept {
    fn difference(&self, after: &Kept) -> String {
        let mut text = self.state.difference(&after.state);
        for (before, after) in self.indexes.iter().zip(&after.indexes).filter(|(before, after)| before != after) {
            text += &format!("before: {before}\nafter:  {after}\n");
        }
        for key in self.keys.keys().chain(after.keys.keys()).collect::<BTreeSet<_>>() {
            let (before, after) = (self.keys.get(key), after.keys.get(key));
            if before != after {
                text += &format!("key {key}: before {before:?}, after {after:?}\n");
            }
        }
        text
    }

    /// Without the index that the configuration asks for where only one of the two has it: one that was dropped, or
    /// whose name was taken by a key, comes back with the next start.
    fn without_configured(&self, other: &Kept) -> Kept {
        let mut kept = self.clone();
        if self.state.has_index(CONFIGURED_INDEX) != other.state.has_index(CONFIGURED_INDEX) {
            kept.state.forget_index(CONFIGURED_INDEX);
            kept.indexes.retain(|contents| !contents.starts_with(CONFIGURED_INDEX));
        }
        kept
    }

    fn read(talk: &mut Talk) -> Result<Kept, String> {
        Ok(Kept { state: State::read(talk)?.without_digest(), indexes: index_contents(talk)?, keys: digests(talk)? })
    }
}
