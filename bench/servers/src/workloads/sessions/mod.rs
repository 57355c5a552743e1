//! Sessions: SESSION.CALL of an HSET, beside the script that a user of Redis has for it and beside our own HSET; and the memory of
//! sessions and of their pending requests. Every reply is checked. Knows nothing of how a server keeps replies.

use std::thread;

use anyhow::{Context, Result, bail, ensure};

use super::data_sets::NOTHING;
use super::in_turns::in_turns;
use super::workload::{Driver, Needs, OwnFigures, SCRIPTED, Setup, Workload};
use crate::load::{CLIENTS, Connections, Footprint, Loader, Random, SETTLE, Traffic, expect};
use crate::measure::{Bound, Metric, Sample, Target};
use crate::servers::{Persistence, Reply, Server, ServerSpec, write_request};

const HASHES: u64 = 100_000;
const VALUE: &str = "0123456789abcdef0123456789abcdef";
const SCRIPT: &str = include_str!("once.lua");

static RECORDS: Setup = Setup { size: HASHES, size_quick: HASHES, load: load_hashes };

fn hash(number: u64) -> String {
    format!("gbe:state:hash:{number:012}")
}

fn load_hashes(server: &Server, hashes: u64) -> Result<()> {
    let mut loader = Loader::new(server)?;
    for number in 0..hashes {
        loader.send(&["HSET", &hash(number), "value", VALUE], Reply::Integer(1))?;
    }
    loader.finish()
}

/// SESSION.CALL where the server has sessions, and the script elsewhere.
fn call(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let mut calls = Calls::new(server)?;
    Connections::new(server)?.senders(CLIENTS as usize)?.run(server, pipeline, operations, &mut calls)
}

/// HSET of one field of random hashes, once for each request. Each sender has a session of its own, and says which replies it has.
struct Calls {
    random: Random,
    /// What comes before the keys of the script; empty where there are sessions.
    script: Vec<String>,
    /// Of each sender: its session, the id of its last request, and how many of its replies are there.
    senders: Vec<(String, u64, u64)>,
}

impl Calls {
    fn new(server: &Server) -> Result<Calls> {
        let mut control = server.connect()?;
        let script = match server.knows("SESSION.CALL")? {
            true => Vec::new(),
            false => match control.call(&["SCRIPT", "LOAD", SCRIPT])? {
                Reply::BulkString(sha) => vec!["EVALSHA".to_owned(), String::from_utf8(sha)?, "2".to_owned()],
                other => bail!("SCRIPT LOAD answered {other:?}"),
            },
        };
        let mut senders = Vec::new();
        for number in 0..CLIENTS {
            let name = format!("gbe:session:{number:012}");
            if script.is_empty() {
                // What an earlier run has left of it.
                control.call(&["SESSION.CLOSE", &name])?;
                control.call(&["SESSION.OPEN", "ID", &name, "TTL", "86400000"])?;
            }
            senders.push((name, 0, 0));
        }
        Ok(Calls { random: Random(0), script, senders })
    }
}

impl Traffic for Calls {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let name = hash(self.random.below(HASHES));
        let (session, last, answered) = &mut self.senders[sender];
        *last += 1;
        let (id, low) = (last.to_string(), (*answered + 1).to_string());
        if self.script.is_empty() {
            write_request(requests, &["SESSION.CALL", session, &id, "LOW", &low, "HSET", &name, "value", VALUE]);
        } else {
            let kept = format!("{session}:{id}");
            let words = self.script.iter().map(String::as_str);
            let words: Vec<&str> = words.chain([&*kept, &*name, "value", VALUE]).collect();
            write_request(requests, &words);
        }
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let whole = expect(received, b":0\r\n")?;
        self.senders[sender].2 += u64::from(whole);
        Ok(whole.then_some(4))
    }
}

/// HSET of one field of the same hashes.
struct Writes {
    random: Random,
}

impl Traffic for Writes {
    fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
        write_request(requests, &["HSET", &hash(self.random.below(HASHES)), "value", VALUE]);
    }

    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        Ok(expect(received, b":0\r\n")?.then_some(4))
    }
}

/// Runs of SESSION.CALL and HSET on one server, in turns; and what sessions and pending requests take.
fn beside_hset(subject: &ServerSpec, sessions: u64) -> Result<Vec<OwnFigures>> {
    let mut lines = Vec::new();
    {
        let server = Server::start(subject, Persistence::Off)?;
        ensure!(server.knows("SESSION.CALL")?, "the subject has no sessions");
        load_hashes(&server, HASHES)?;
        let (mut calls, mut writes) = (Calls::new(&server)?, Writes { random: Random(1) });
        for (pipeline, requests) in [(1, 40_000), (16, 240_000)] {
            let turns = in_turns(&server, pipeline, requests, &mut calls, &mut writes)?;
            let sample = Sample::from([
                (Metric::Throughput, turns.one[&Metric::Throughput]),
                (Metric::HsetThroughput, turns.other[&Metric::Throughput]),
                (Metric::OfHset, turns.ratio),
                (Metric::ServerCpu, turns.one[&Metric::ServerCpu]),
                (Metric::HsetCpu, turns.other[&Metric::ServerCpu]),
            ]);
            lines.push(OwnFigures::new("SESSION.CALL of HSET beside HSET", Some(pipeline), sample));
        }
    }
    let sample = Sample::from([(Metric::SessionBytes, memory_of_sessions(subject, sessions)?)]);
    lines.push(OwnFigures::new("a session", None, sample));
    let sample = Sample::from([(Metric::BesideBytes, memory_of_requests(subject, sessions)?)]);
    lines.push(OwnFigures::new("a pending request beyond its payload", None, sample));
    Ok(lines)
}

/// Resident bytes of a session with an id that the server has made up.
fn memory_of_sessions(subject: &ServerSpec, sessions: u64) -> Result<f64> {
    let server = Server::start(subject, Persistence::Off)?;
    let mut control = server.connect()?;
    let before = Footprint::measure(&server, &mut control)?;
    for _ in 0..sessions {
        let Reply::BulkString(_) = control.call(&["SESSION.OPEN", "TTL", "86400000"])? else {
            bail!("SESSION.OPEN answered something else than an id")
        };
    }
    per_item(&server, &before, sessions)
}

const PAYLOAD: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const PER_SESSION: u64 = 100;

/// Resident bytes of a pending request, without its payload.
fn memory_of_requests(subject: &ServerSpec, requests: u64) -> Result<f64> {
    let server = Server::start(subject, Persistence::Off)?;
    let mut control = server.connect()?;
    let sessions = requests / PER_SESSION;
    let name = |number: u64| format!("gbe:session:{number:012}");
    for number in 0..sessions {
        control.call(&["SESSION.OPEN", "ID", &name(number), "TTL", "86400000"])?;
    }
    thread::sleep(SETTLE);
    let before = Footprint::measure(&server, &mut control)?;
    let mut loader = Loader::new(&server)?;
    for id in 1..=PER_SESSION {
        for number in 0..sessions {
            loader.send(&["SESSION.PUSH", &name(number), PAYLOAD], Reply::Integer(id as i64))?;
        }
    }
    loader.finish()?;
    Ok(per_item(&server, &before, sessions * PER_SESSION)? - PAYLOAD.len() as f64)
}

fn per_item(server: &Server, before: &Footprint, items: u64) -> Result<f64> {
    thread::sleep(SETTLE);
    let since = Footprint::measure(server, &mut server.connect()?)?.since(before, items);
    since.get(&Metric::RssPerItem).copied().context("the system tells no memory")
}

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "sessions-call",
        about: "SESSION.CALL of HSET",
        persistence: Persistence::Off,
        setup: &RECORDS,
        driver: Driver::Clients { run: call, amounts: SCRIPTED, needs: Needs::Command("EVALSHA") },
        targets: &[Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(2.0) }],
    },
    Workload {
        name: "sessions-own",
        about: "Sessions beside our own hashes",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Own { run: beside_hset, amount: 200_000, amount_quick: 20_000, program: None },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::OfHset, bound: Bound::AtLeast(0.6) },
            Target { pipeline: Some(16), metric: Metric::OfHset, bound: Bound::AtLeast(0.6) },
            Target { pipeline: None, metric: Metric::SessionBytes, bound: Bound::AtMost(300.0) },
            Target { pipeline: None, metric: Metric::BesideBytes, bound: Bound::AtMost(96.0) },
        ],
    },
];
