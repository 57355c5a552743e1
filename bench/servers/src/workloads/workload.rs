//! What a workload is: what a server holds before it, what drives the server, and what we promise. Knows none of them.

use anyhow::Result;

use crate::measure::{Bound, Metric, Sample, Target};
use crate::servers::{Persistence, Server, ServerSpec};

pub(crate) struct Workload {
    /// What `--only` and results.json call it.
    pub(crate) name: &'static str,
    /// What the tables and the chart call it.
    pub(crate) about: &'static str,
    pub(crate) persistence: Persistence,
    /// What each server holds before the first round.
    pub(crate) setup: &'static Setup,
    pub(crate) driver: Driver,
    /// Promises, judged against the peer named `redis` or, where the metric makes no ratio, by themselves.
    pub(crate) targets: &'static [Target],
}

/// What each server holds before the first round.
pub(crate) struct Setup {
    /// How many items there are.
    pub(crate) size: u64,
    pub(crate) size_quick: u64,
    /// Loads so many items into an empty server.
    pub(crate) load: fn(&Server, u64) -> Result<()>,
}

/// How much of its work a workload does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Length {
    Full,
    /// A third of the requests, on the whole data set: for three times as many rounds.
    Third,
    /// Runs of about half a second and smaller data sets.
    Quick,
}

pub(crate) enum Driver {
    /// redis-benchmark sends this command at each pipeline depth; the servers run side by side and take turns.
    RedisBenchmark { command: &'static [&'static str], requests: RequestCounts },
    /// Our own clients send `amounts` operations at each pipeline depth and check the replies; the servers take turns
    /// likewise. A server that lacks what it `needs` is left out, with a note.
    Clients { run: fn(&Server, u32, u64) -> Result<Sample>, amounts: RequestCounts, needs: Needs },
    /// Anything else. A fresh server for each round, alone on the machine; `run` receives the server and the amount
    /// of work (records, connections, messages), which is smaller with `--quick`. A server that lacks
    /// what it `needs` is left out, with a note.
    Custom { run: fn(&mut Server, u64) -> Result<Sample>, amount: u64, amount_quick: u64, needs: Needs },
    /// Reads from a large data set; the servers take turns. They are kept, with what they hold, for the next workload
    /// of this kind.
    Search { run: fn(&Server, u64) -> Result<Sample> },
    /// Many things one after the other on a server that `run` starts, alone on the machine. Each has a line of its own, in
    /// the same order for every server; one that a server does not know has no figures.
    Rows { run: fn(&ServerSpec, u64) -> Result<Vec<RowFigures>>, amount: u64, amount_quick: u64 },
    /// Compares the subject with itself, started otherwise, or with a server that speaks another protocol; `run` starts
    /// them, takes its own medians, and returns a line for each thing that it measured. Peers have no figures.
    Own { run: fn(&ServerSpec, u64) -> Result<Vec<OwnFigures>>, amount: u64, amount_quick: u64, program: Program },
}

/// A program that must be installed besides the servers, if any; without it there are no lines but a note.
pub(crate) type Program = Option<&'static str>;

/// A line of a comparison of the subject with itself.
pub(crate) struct OwnFigures {
    pub(crate) about: &'static str,
    pub(crate) pipeline: Option<u32>,
    pub(crate) sample: Sample,
    /// Of a workload that is about waits, what 0, 1, … 100 percent of them did not exceed, in milliseconds.
    pub(crate) waits_ms: Vec<f64>,
}

impl OwnFigures {
    pub(crate) fn new(about: &'static str, pipeline: Option<u32>, sample: Sample) -> Self {
        OwnFigures { about, pipeline, sample, waits_ms: Vec::new() }
    }
}

/// What a server must know for a workload.
#[derive(Clone, Copy)]
pub(crate) enum Needs {
    Nothing,
    Command(&'static str),
    /// CLAIM where the server keeps indexes, and elsewhere scripts, which do the same with a sorted set. A Holdfast
    /// without CLAIM could run the scripts too, but then the line would not say what it seems to say.
    ClaimOrScript,
}

impl Needs {
    /// The command that the server does not know, if any.
    pub(crate) fn missing(self, server: &Server) -> Result<Option<&'static str>> {
        let command = match self {
            Needs::Nothing => return Ok(None),
            Needs::Command(command) => command,
            Needs::ClaimOrScript if server.knows("IDX.CREATE")? => "CLAIM",
            Needs::ClaimOrScript => "EVALSHA",
        };
        Ok((!server.knows(command)?).then_some(command))
    }
}

/// What one row gave, if the server knows it, and its name.
pub(crate) type RowFigures = (&'static str, Option<Sample>);

/// Requests in a run, by the least pipeline depth they are meant for. Fixed work rather than fixed time: about three
/// seconds at the speed of Redis 7 on a small machine.
pub(crate) type RequestCounts = &'static [(u32, u64)];

impl Workload {
    /// Requests, operations, records or connections in one round.
    pub(crate) fn amount(&self, pipeline: Option<u32>, length: Length) -> u64 {
        match self.driver {
            Driver::RedisBenchmark { requests, .. } | Driver::Clients { amounts: requests, .. } => {
                let depth = pipeline.unwrap_or(1);
                let (_, count) = requests.iter().rev().find(|(least, _)| *least <= depth).unwrap_or(&requests[0]);
                match length {
                    Length::Full => *count,
                    Length::Third => count / 3,
                    Length::Quick => count / 6,
                }
            }
            Driver::Search { .. } => self.setup.size(length),
            Driver::Custom { amount, amount_quick, .. }
            | Driver::Rows { amount, amount_quick, .. }
            | Driver::Own { amount, amount_quick, .. } => {
                if length == Length::Quick {
                    amount_quick
                } else {
                    amount
                }
            }
        }
    }
}

impl Setup {
    /// How many items there are.
    pub(crate) fn size(&self, length: Length) -> u64 {
        if length == Length::Quick { self.size_quick } else { self.size }
    }
}

/// What is promised of a command that Redis has too, on both without a journal.
pub(crate) const COMMAND_TARGETS: &[Target] = &[
    Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.0) },
    Target { pipeline: Some(1), metric: Metric::ServerCpu, bound: Bound::AtMost(0.9) },
    Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) },
    Target { pipeline: Some(16), metric: Metric::ServerCpu, bound: Bound::AtMost(0.7) },
    Target { pipeline: Some(64), metric: Metric::Throughput, bound: Bound::AtLeast(2.0) },
    Target { pipeline: Some(64), metric: Metric::ServerCpu, bound: Bound::AtMost(0.6) },
];

pub(crate) const LIGHT: RequestCounts = &[(1, 300_000), (8, 1_500_000), (32, 2_000_000)];
pub(crate) const MEDIUM: RequestCounts = &[(1, 300_000), (8, 1_000_000), (32, 1_200_000)];
pub(crate) const HEAVY: RequestCounts = &[(1, 250_000), (8, 500_000), (32, 500_000)];
/// Each makes one or two calls.
pub(crate) const SCRIPTED: RequestCounts = &[(1, 250_000), (8, 600_000), (32, 600_000)];
