//! Cells: compare-and-swap by version, beside the script that a user of Redis has for it and beside our own HSET, and their
//! memory. Every reply is checked. Knows nothing of how a server keeps versions.

use std::thread;

use anyhow::{Context, Result, bail, ensure};

use super::data_sets::NOTHING;
use super::in_turns::in_turns;
use super::workload::{Driver, Needs, OwnFigures, SCRIPTED, Setup, Workload};
use crate::load::{CLIENTS, Connections, Footprint, Loader, Random, SETTLE, Traffic, expect};
use crate::measure::{Bound, Metric, Sample, Target};
use crate::servers::{Persistence, Reply, Server, ServerSpec, simple, write_request};

/// Few enough that each has as many versions as are kept by default before the first run.
const CELLS: u64 = 10_000;
const VERSIONS: u64 = 128;
const VALUE: &str = "0123456789abcdef0123456789abcdef";

/// Cells with all the versions that are kept; on a server without cells, hashes of a value and a version.
static VERSIONED: Setup = Setup { size: CELLS, size_quick: CELLS, load: load_versions };

const SCRIPT: &str = include_str!("version_cas.lua");

fn cell(number: u64) -> String {
    format!("gbe:state:cell:{number:012}")
}

fn load_versions(server: &Server, cells: u64) -> Result<()> {
    let mut loader = Loader::new(server)?;
    if !server.knows("CELL.CAS")? {
        for number in 0..cells {
            let fields = ["HSET", &cell(number), "value", VALUE, "version", &VERSIONS.to_string()];
            loader.send(&fields, Reply::Integer(2))?;
        }
        return loader.finish();
    }
    for version in 1..=VERSIONS {
        for number in 0..cells {
            loader.send(&["CELL.SET", &cell(number), VALUE], Reply::Integer(version as i64))?;
        }
    }
    loader.finish()
}

/// CELL.CAS of random cells where the server has cells, and the script elsewhere.
fn cas(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let mut swaps = Swaps::new(server)?;
    Connections::new(server)?.senders(CLIENTS as usize)?.run(server, pipeline, operations, &mut swaps)
}

/// Each sender has cells of its own, of which it knows the versions.
struct Swaps {
    random: Random,
    /// What comes before the name.
    head: Vec<String>,
    versions: Vec<u64>,
    /// Of each sender, the versions that it has asked for and not got yet.
    awaited: Vec<std::collections::VecDeque<u64>>,
}

impl Swaps {
    fn new(server: &Server) -> Result<Swaps> {
        let mut control = server.connect()?;
        let has_cells = server.knows("CELL.CAS")?;
        let head = match has_cells {
            true => vec!["CELL.CAS".to_owned()],
            false => match control.call(&["SCRIPT", "LOAD", SCRIPT])? {
                Reply::BulkString(sha) => vec!["EVALSHA".to_owned(), String::from_utf8(sha)?, "1".to_owned()],
                other => bail!("SCRIPT LOAD answered {other:?}"),
            },
        };
        let mut versions = Vec::new();
        for number in 0..CELLS {
            let name = cell(number);
            let reply = match has_cells {
                true => control.call(&["CELL.GETV", &name])?,
                false => control.call(&["HGET", &name, "version"])?,
            };
            versions.push(match reply {
                Reply::Array(version) if version.len() == 3 => match version[1] {
                    Reply::Integer(version) => version as u64,
                    _ => bail!("CELL.GETV answered {version:?}"),
                },
                Reply::BulkString(version) => String::from_utf8(version)?.parse().context("a version")?,
                other => bail!("{name} has the version {other:?}"),
            });
        }
        let awaited = vec![std::collections::VecDeque::new(); CLIENTS as usize];
        Ok(Swaps { random: Random(0), head, versions, awaited })
    }
}

impl Traffic for Swaps {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let senders = u64::from(CLIENTS);
        let number = self.random.below(CELLS / senders) * senders + sender as u64;
        let version = &mut self.versions[number as usize];
        let (name, expected) = (cell(number), version.to_string());
        let words: Vec<&str> = self.head.iter().map(String::as_str).chain([&*name, &*expected, VALUE]).collect();
        write_request(requests, &words);
        *version += 1;
        self.awaited[sender].push_back(*version);
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let version = *self.awaited[sender].front().context("a reply without a request")?;
        let answer = format!(":{version}\r\n");
        let whole = expect(received, answer.as_bytes())?;
        if whole {
            self.awaited[sender].pop_front();
        }
        Ok(whole.then_some(answer.len()))
    }
}

/// HSET of one field of random hashes, as many as there are cells.
struct Writes {
    random: Random,
}

impl Traffic for Writes {
    fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
        let name = format!("gbe:state:hash:{:012}", self.random.below(CELLS));
        write_request(requests, &["HSET", &name, "value", VALUE]);
    }

    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        Ok(expect(received, b":0\r\n")?.then_some(4))
    }
}

/// Runs of CELL.CAS and HSET on one server, in turns; and what a cell takes beside a string.
fn beside_hset(subject: &ServerSpec, cells: u64) -> Result<Vec<OwnFigures>> {
    let server = Server::start(subject, Persistence::Off)?;
    ensure!(server.knows("CELL.CAS")?, "the subject has no cells");
    load_versions(&server, CELLS)?;
    let mut loader = Loader::new(&server)?;
    for number in 0..CELLS {
        loader.send(&["HSET", &format!("gbe:state:hash:{number:012}"), "value", VALUE], Reply::Integer(1))?;
    }
    loader.finish()?;
    let (mut swaps, mut writes) = (Swaps::new(&server)?, Writes { random: Random(1) });
    let mut lines = Vec::new();
    for (pipeline, requests) in [(1, 40_000), (16, 160_000)] {
        let turns = in_turns(&server, pipeline, requests, &mut swaps, &mut writes)?;
        let sample = Sample::from([
            (Metric::Throughput, turns.one[&Metric::Throughput]),
            (Metric::HsetThroughput, turns.other[&Metric::Throughput]),
            (Metric::OfHset, turns.ratio),
            (Metric::ServerCpu, turns.one[&Metric::ServerCpu]),
            (Metric::HsetCpu, turns.other[&Metric::ServerCpu]),
        ]);
        lines.push(OwnFigures::new("CELL.CAS beside HSET", Some(pipeline), sample));
    }
    drop(server);
    let memory_of = |command: &str| -> Result<f64> {
        let mut server = Server::start(subject, Persistence::Off)?;
        let sample = memory_with(&mut server, cells, command)?;
        sample.get(&Metric::RssPerItem).copied().context("the system tells no memory")
    };
    let (cell, string) = (memory_of("CELL.SET")?, memory_of("SET")?);
    let sample = Sample::from([(Metric::RssPerItem, cell), (Metric::OfString, cell / string)]);
    lines.push(OwnFigures::new("a cell beside a string", None, sample));
    Ok(lines)
}

/// Memory of a cell without past versions, over the empty server; of a string, on a server without cells.
fn memory(server: &mut Server, cells: u64) -> Result<Sample> {
    let command = if server.knows("CELL.SET")? { "CELL.SET" } else { "SET" };
    memory_with(server, cells, command)
}

fn memory_with(server: &mut Server, cells: u64, command: &str) -> Result<Sample> {
    let mut control = server.connect()?;
    let before = Footprint::measure(server, &mut control)?;
    let mut loader = Loader::new(server)?;
    for number in 0..cells {
        let reply = if command == "SET" { simple("OK") } else { Reply::Integer(1) };
        loader.send(&[command, &cell(number), VALUE], reply)?;
    }
    loader.finish()?;
    thread::sleep(SETTLE);
    Ok(Footprint::measure(server, &mut control)?.since(&before, cells))
}

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "cells-cas",
        about: "CELL.CAS, 128 versions",
        persistence: Persistence::Off,
        setup: &VERSIONED,
        driver: Driver::Clients { run: cas, amounts: SCRIPTED, needs: Needs::Command("EVALSHA") },
        targets: &[Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(3.0) }],
    },
    Workload {
        name: "cells-own",
        about: "Cells beside our own types",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Own { run: beside_hset, amount: 1_000_000, amount_quick: 100_000, program: None },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::OfHset, bound: Bound::AtLeast(0.9) },
            Target { pipeline: Some(16), metric: Metric::OfHset, bound: Bound::AtLeast(0.9) },
            Target { pipeline: None, metric: Metric::OfString, bound: Bound::AtMost(1.3) },
        ],
    },
    Workload {
        name: "cells-memory",
        about: "Memory per cell",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Custom { run: memory, amount: 1_000_000, amount_quick: 100_000, needs: Needs::Nothing },
        targets: &[Target { pipeline: None, metric: Metric::RssPerItem, bound: Bound::AtMost(1.0) }],
    },
];
