//! Registers: REG.PUT of a next version, beside our own SET of the same value. Every reply is checked. Knows nothing of how a
//! server keeps versions.

use anyhow::{Result, ensure};

use super::data_sets::NOTHING;
use super::in_turns::in_turns;
use super::workload::{Driver, OwnFigures, Workload};
use crate::load::{CLIENTS, Loader, Random, Traffic, expect};
use crate::measure::{Bound, Metric, Sample, Target};
use crate::servers::{Persistence, Server, ServerSpec, simple, write_request};

const VALUE: &str = "0123456789abcdef0123456789abcdef";

fn register(number: u64) -> String {
    format!("gbe:state:reg:{number:012}")
}

fn string(number: u64) -> String {
    format!("gbe:state:str:{number:012}")
}

/// REG.PUT of the next version into random registers. Each sender has registers of its own.
struct Puts {
    random: Random,
    versions: Vec<u64>,
}

impl Traffic for Puts {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let (senders, registers) = (u64::from(CLIENTS), self.versions.len() as u64);
        let number = self.random.below(registers / senders) * senders + sender as u64;
        let version = &mut self.versions[number as usize];
        *version += 1;
        write_request(requests, &["REG.PUT", &register(number), &version.to_string(), VALUE]);
    }

    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        Ok(expect(received, b"+APPLIED\r\n")?.then_some(10))
    }
}

/// SET of random strings, as many as there are registers.
struct Sets {
    random: Random,
    strings: u64,
}

impl Traffic for Sets {
    fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
        write_request(requests, &["SET", &string(self.random.below(self.strings)), VALUE]);
    }

    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        Ok(expect(received, b"+OK\r\n")?.then_some(5))
    }
}

/// Runs of REG.PUT and SET on one server, in turns.
fn beside_set(subject: &ServerSpec, registers: u64) -> Result<Vec<OwnFigures>> {
    let server = Server::start(subject, Persistence::Off)?;
    ensure!(server.knows("REG.PUT")?, "the subject has no registers");
    let mut loader = Loader::new(&server)?;
    for number in 0..registers {
        loader.send(&["REG.PUT", &register(number), "1000", VALUE], simple("APPLIED"))?;
        loader.send(&["SET", &string(number), VALUE], simple("OK"))?;
    }
    loader.finish()?;
    let mut puts = Puts { random: Random(0), versions: vec![1000; registers as usize] };
    let mut sets = Sets { random: Random(1), strings: registers };
    let mut lines = Vec::new();
    for (pipeline, requests) in [(1, 40_000), (16, 240_000)] {
        let turns = in_turns(&server, pipeline, requests, &mut puts, &mut sets)?;
        let sample = Sample::from([
            (Metric::Throughput, turns.one[&Metric::Throughput]),
            (Metric::SetThroughput, turns.other[&Metric::Throughput]),
            (Metric::OfSet, turns.ratio),
            (Metric::ServerCpu, turns.one[&Metric::ServerCpu]),
            (Metric::SetCpu, turns.other[&Metric::ServerCpu]),
        ]);
        lines.push(OwnFigures::new("REG.PUT beside SET", Some(pipeline), sample));
    }
    Ok(lines)
}

pub(crate) const WORKLOADS: &[Workload] = &[Workload {
    name: "registers-own",
    about: "Registers beside our own strings",
    persistence: Persistence::Off,
    setup: &NOTHING,
    driver: Driver::Own { run: beside_set, amount: 100_000, amount_quick: 10_000, program: None },
    targets: &[
        Target { pipeline: Some(1), metric: Metric::OfSet, bound: Bound::AtLeast(0.9) },
        Target { pipeline: Some(16), metric: Metric::OfSet, bound: Bound::AtLeast(0.9) },
    ],
}];
