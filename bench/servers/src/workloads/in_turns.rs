//! Two kinds of requests to one server, in turns, so that what the machine does meanwhile touches both alike. Knows nothing of what
//! they ask.

use anyhow::Result;

use crate::load::{CLIENTS, Connections, Traffic};
use crate::measure::{Metric, Sample, ServerFigures};
use crate::servers::Server;

/// Short runs of each, of which the median counts.
const TURNS: usize = 11;

/// The medians of both.
pub(super) struct InTurns {
    pub(super) one: Sample,
    pub(super) other: Sample,
    /// The throughput of the one over that of the other, by the median of the turns.
    pub(super) ratio: f64,
    /// The server's CPU time for the one over that for the other, likewise.
    pub(super) cpu_ratio: f64,
}

/// Runs of so many requests of each.
pub(super) fn in_turns(
    server: &Server,
    pipeline: u32,
    requests: u64,
    one: &mut impl Traffic,
    other: &mut impl Traffic,
) -> Result<InTurns> {
    in_turns_of(TURNS, server, pipeline, requests, one, other)
}

/// The same in so many turns.
pub(super) fn in_turns_of(
    turns: usize,
    server: &Server,
    pipeline: u32,
    requests: u64,
    one: &mut impl Traffic,
    other: &mut impl Traffic,
) -> Result<InTurns> {
    let mut runs = [Vec::new(), Vec::new()];
    for turn in 0..turns {
        for at in [turn % 2, (turn + 1) % 2] {
            let connections = Connections::new(server)?.senders(CLIENTS as usize)?;
            runs[at].push(match at {
                0 => connections.run(server, pipeline, requests, one)?,
                _ => connections.run(server, pipeline, requests, other)?,
            });
        }
    }
    Ok(InTurns::of(runs))
}

impl InTurns {
    /// Of the runs of the one and of the other, which make pairs.
    pub(super) fn of(runs: [Vec<Sample>; 2]) -> Self {
        let ratio = |metric: Metric| {
            let pairs = runs[0].iter().zip(&runs[1]);
            let mut ratios: Vec<f64> = pairs.map(|(one, other)| one[&metric] / other[&metric]).collect();
            ratios.sort_by(f64::total_cmp);
            ratios[ratios.len() / 2]
        };
        let (ratio, cpu_ratio) = (ratio(Metric::Throughput), ratio(Metric::ServerCpu));
        let [one, other] = runs.map(|runs| ServerFigures::new("either", runs).median);
        InTurns { one, other, ratio, cpu_ratio }
    }
}
