//! Runs: appends of events beside the script that a user of Redis has for them, reads of events beside XRANGE, replays, and
//! memory beside a stream for each run. Every reply is checked. Knows nothing of how a server keeps events.

use std::collections::VecDeque;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::data_sets::NOTHING;
use super::workload::{Driver, Needs, OwnFigures, RequestCounts, SCRIPTED, Setup, Workload};
use crate::load::{CLIENTS, Connections, Footprint, Loader, Random, SETTLE, Traffic, expect, reply_len};
use crate::measure::{Bound, Metric, Sample, Target};
use crate::servers::{Persistence, Reply, Server, ServerSpec, write_request};

/// Runs that events are appended to.
const RUNS: u64 = 10_000;
/// Runs that are read, and events of each.
const READ_RUNS: u64 = 2_000;
const READ_EVENTS: u64 = 200;
/// Events of a reply.
const PAGE: u64 = 100;
/// Events of each run of which the memory is measured.
const EVENTS_EACH: u64 = 20;
/// Events of a long run.
const LONG_RUN: u64 = 1_000_000;
const REPLAYED: u64 = 100_000;

const TYPE: &str = "StepCompleted";
const DATA: &str = r#"{"result":"0123456789abcdef0123456789abcdef","took_ms":1234}"#;
const SCRIPT: &str = include_str!("append.lua");

/// Of the replies of RUN.EVENTS and XRANGE, which are long.
const PAGES: RequestCounts = &[(1, 40_000), (8, 40_000)];

fn run(number: u64) -> String {
    format!("gbe:state:run:{number:012}")
}

/// An idempotency key, which looks like a digest: 64 hexadecimal digits.
fn key(number: u64) -> String {
    let mixed = |salt: u64| (number ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ number;
    format!("{:016x}{:016x}{:016x}{:016x}", mixed(1), mixed(2), mixed(3), number)
}

fn step(number: u64) -> String {
    format!("step-{}", number % 7)
}

/// Appends an event where the server has runs, and adds it to a stream elsewhere.
fn load_event(loader: &mut Loader, has_runs: bool, run: &str, number: u64) -> Result<()> {
    let (key, step) = (key(number), step(number));
    match has_runs {
        true => loader.send_unseen(&["RUN.APPEND", run, &key, TYPE, DATA, "STEP", &step]),
        false => loader.send_unseen(&["XADD", run, "*", "key", &key, "type", TYPE, "data", DATA, "step", &step]),
    }
}

/// Runs with as many events as two replies have.
static READ: Setup = Setup { size: READ_RUNS, size_quick: READ_RUNS, load: load_read };

fn load_read(server: &Server, runs: u64) -> Result<()> {
    let has_runs = server.knows("RUN.APPEND")?;
    let mut loader = Loader::new(server)?;
    for number in 0..READ_EVENTS {
        for at in 0..runs {
            load_event(&mut loader, has_runs, &run(at), number)?;
        }
    }
    loader.finish()
}

/// RUN.APPEND to random runs where the server has runs, and the script elsewhere.
fn append(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let mut appends = Appends::new(server)?;
    Connections::new(server)?.senders(CLIENTS as usize)?.run(server, pipeline, operations, &mut appends)
}

/// Each sender has runs of its own, of which it knows the last event.
struct Appends {
    random: Random,
    /// The digest of the script, on a server without runs.
    script: Option<String>,
    last: Vec<u64>,
    /// Of each sender, the numbers that it has asked for and not got yet.
    awaited: Vec<VecDeque<u64>>,
    next_key: u64,
}

impl Appends {
    fn new(server: &Server) -> Result<Appends> {
        let mut control = server.connect()?;
        let script = match server.knows("RUN.APPEND")? {
            true => None,
            false => match control.call(&["SCRIPT", "LOAD", SCRIPT])? {
                Reply::BulkString(sha) => Some(String::from_utf8(sha)?),
                other => bail!("SCRIPT LOAD answered {other:?}"),
            },
        };
        let mut last = Vec::new();
        for number in 0..RUNS {
            let reply = match script {
                None => control.call(&["RUN.INFO", &run(number)])?,
                Some(_) => control.call(&["GET", &format!("{}:last", run(number))])?,
            };
            last.push(match reply {
                Reply::Null => 0,
                Reply::BulkString(last) => String::from_utf8(last)?.parse().context("a sequence number")?,
                Reply::Array(info) => match info.get(5) {
                    Some(Reply::Integer(events)) => *events as u64,
                    _ => bail!("RUN.INFO answered {info:?}"),
                },
                other => bail!("{} has the last event {other:?}", run(number)),
            });
        }
        let next_key = last.iter().sum();
        let awaited = vec![VecDeque::new(); CLIENTS as usize];
        Ok(Appends { random: Random(next_key), script, last, awaited, next_key })
    }
}

impl Traffic for Appends {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let senders = u64::from(CLIENTS);
        let number = self.random.below(RUNS / senders) * senders + sender as u64;
        let (run, key, step) = (run(number), key(self.next_key), step(self.next_key));
        self.next_key += 1;
        match &self.script {
            None => write_request(requests, &["RUN.APPEND", &run, &key, TYPE, DATA, "STEP", &step]),
            Some(script) => {
                let (keys, last) = (format!("{run}:keys"), format!("{run}:last"));
                write_request(requests, &["EVALSHA", script, "3", &keys, &last, &run, &key, TYPE, DATA, &step]);
            }
        }
        self.last[number as usize] += 1;
        self.awaited[sender].push_back(self.last[number as usize]);
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let number = *self.awaited[sender].front().context("a reply without a request")?;
        let begin = match self.script {
            None => format!("*12\r\n$6\r\nrunSeq\r\n:{number}\r\n$10\r\nidempotent\r\n:0\r\n$9\r\npersisted\r\n:1\r\n"),
            Some(_) => format!(":{number}\r\n"),
        };
        if !expect(received, begin.as_bytes())? {
            return Ok(None);
        }
        let whole = reply_len(received)?;
        if whole.is_some() {
            self.awaited[sender].pop_front();
        }
        Ok(whole)
    }
}

/// The second half of the events of random runs.
fn events(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let after = match server.knows("RUN.EVENTS")? {
        true => None,
        false => Some(middle_ids(server)?),
    };
    let mut pages = Pages { random: Random(0), after };
    Connections::new(server)?.senders(CLIENTS as usize)?.run(server, pipeline, operations, &mut pages)
}

/// The id behind which the second half of each stream begins.
fn middle_ids(server: &Server) -> Result<Vec<String>> {
    let mut control = server.connect()?;
    let mut ids = Vec::new();
    for number in 0..READ_RUNS {
        let reply = control.call(&["XRANGE", &run(number), "-", "+", "COUNT", &(READ_EVENTS - PAGE).to_string()])?;
        let Reply::Array(entries) = reply else { bail!("XRANGE answered {reply:?}") };
        match entries.last() {
            Some(Reply::Array(entry)) => match entry.first() {
                Some(Reply::BulkString(id)) => ids.push(String::from_utf8(id.clone())?),
                other => bail!("an entry has the id {other:?}"),
            },
            other => bail!("a stream ends with {other:?}"),
        }
    }
    Ok(ids)
}

struct Pages {
    random: Random,
    after: Option<Vec<String>>,
}

impl Traffic for Pages {
    fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
        let number = self.random.below(READ_RUNS);
        let (run, page, after) = (run(number), PAGE.to_string(), (READ_EVENTS - PAGE).to_string());
        match &self.after {
            None => write_request(requests, &["RUN.EVENTS", &run, "AFTER", &after, "LIMIT", &page]),
            Some(ids) => {
                let begin = format!("({}", ids[number as usize]);
                write_request(requests, &["XRANGE", &run, &begin, "+", "COUNT", &page]);
            }
        }
    }

    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        match expect(received, format!("*{PAGE}\r\n").as_bytes())? {
            true => reply_len(received),
            false => Ok(None),
        }
    }
}

/// Memory of a run of a few events, over the empty server; of a stream, on a server without runs.
fn memory(server: &mut Server, runs: u64) -> Result<Sample> {
    let mut control = server.connect()?;
    let before = Footprint::measure(server, &mut control)?;
    let has_runs = server.knows("RUN.APPEND")?;
    let mut loader = Loader::new(server)?;
    // Not one run after the other: as they would come.
    for number in 0..EVENTS_EACH {
        for at in 0..runs {
            load_event(&mut loader, has_runs, &run(at), at * EVENTS_EACH + number)?;
        }
    }
    loader.finish()?;
    thread::sleep(SETTLE);
    Ok(Footprint::measure(server, &mut control)?.since(&before, runs))
}

/// What depends on the length of a run: a replay, a duplicate, the memory of an event.
fn of_long_runs(subject: &ServerSpec, _: u64) -> Result<Vec<OwnFigures>> {
    let server = Server::start(subject, Persistence::Off)?;
    ensure!(server.knows("RUN.APPEND")?, "the subject has no runs");
    let mut control = server.connect()?;
    let mut lines = Vec::new();
    let load = |run: &str, events: u64| -> Result<()> {
        let mut loader = Loader::new(&server)?;
        for number in 0..events {
            load_event(&mut loader, true, run, number)?;
        }
        loader.finish()
    };
    load("replayed", REPLAYED)?;
    let mut times = Vec::new();
    for _ in 0..TURNS {
        let started = Instant::now();
        let reply = control.call(&["RUN.PROJECT", "replayed"])?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
        ensure!(matches!(reply, Reply::Array(_)), "RUN.PROJECT answered {reply:?}");
    }
    times.sort_by(f64::total_cmp);
    let sample = Sample::from([(Metric::ReplayTime, times[TURNS / 2])]);
    lines.push(OwnFigures::new("RUN.PROJECT of 100,000 events", None, sample));

    load("short", 10)?;
    let before = Footprint::measure(&server, &mut control)?;
    load("long", LONG_RUN)?;
    thread::sleep(SETTLE);
    let memory = Footprint::measure(&server, &mut control)?.since(&before, LONG_RUN);
    let own = (key(0).len() + TYPE.len() + DATA.len() + step(0).len()) as f64;
    let each = memory.get(&Metric::RssPerItem).copied().context("the system tells no memory")?;
    let sample = Sample::from([(Metric::RssPerItem, each), (Metric::BesideBytes, each - own)]);
    lines.push(OwnFigures::new("An event among 1,000,000", None, sample));

    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (at, (run, events)) in [("short", 10), ("long", LONG_RUN)].into_iter().enumerate() {
            let mut duplicates =
                Duplicates { random: Random(at as u64), run, events, asked: vec![VecDeque::new(); CLIENTS as usize] };
            let connections = Connections::new(&server)?.senders(CLIENTS as usize)?;
            runs[at].push(connections.run(&server, 16, 160_000, &mut duplicates)?);
        }
    }
    let median = |metric: Metric, at: usize| {
        let mut values: Vec<f64> = runs[at].iter().map(|sample: &Sample| sample[&metric]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (few, many) = (median(Metric::Throughput, 0), median(Metric::Throughput, 1));
    let sample = Sample::from([
        (Metric::Throughput, many),
        (Metric::ServerCpu, median(Metric::ServerCpu, 1)),
        (Metric::OfFew, many / few),
    ]);
    lines.push(OwnFigures::new("A duplicate among 1,000,000 events", Some(16), sample));
    Ok(lines)
}

/// Short runs of each, of which the median counts.
const TURNS: usize = 7;

/// Appends of events that are there.
struct Duplicates {
    random: Random,
    run: &'static str,
    events: u64,
    asked: Vec<VecDeque<u64>>,
}

impl Traffic for Duplicates {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let number = self.random.below(self.events);
        write_request(requests, &["RUN.APPEND", self.run, &key(number), TYPE, DATA, "STEP", &step(number)]);
        self.asked[sender].push_back(number + 1);
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let number = *self.asked[sender].front().context("a reply without a request")?;
        let begin = format!("*12\r\n$6\r\nrunSeq\r\n:{number}\r\n$10\r\nidempotent\r\n:1\r\n$9\r\npersisted\r\n:0\r\n");
        if !expect(received, begin.as_bytes())? {
            return Ok(None);
        }
        let whole = reply_len(received)?;
        if whole.is_some() {
            self.asked[sender].pop_front();
        }
        Ok(whole)
    }
}

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "runs-append",
        about: "RUN.APPEND",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Clients { run: append, amounts: SCRIPTED, needs: Needs::Command("EVALSHA") },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.1) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(3.0) },
        ],
    },
    Workload {
        name: "runs-events",
        about: "RUN.EVENTS of 100",
        persistence: Persistence::Off,
        setup: &READ,
        driver: Driver::Clients { run: events, amounts: PAGES, needs: Needs::Nothing },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) },
        ],
    },
    Workload {
        name: "runs-long",
        about: "Long runs",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Own { run: of_long_runs, amount: LONG_RUN, amount_quick: LONG_RUN, program: None },
        targets: &[
            Target { pipeline: None, metric: Metric::ReplayTime, bound: Bound::AtMost(100.0) },
            Target { pipeline: None, metric: Metric::BesideBytes, bound: Bound::AtMost(64.0) },
            Target { pipeline: Some(16), metric: Metric::OfFew, bound: Bound::AtLeast(0.8) },
        ],
    },
    Workload {
        name: "runs-memory",
        about: "Memory per run of 20 events",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Custom { run: memory, amount: 1_000_000, amount_quick: 50_000, needs: Needs::Nothing },
        targets: &[Target { pipeline: None, metric: Metric::RssPerItem, bound: Bound::AtMost(1.2) }],
    },
];
