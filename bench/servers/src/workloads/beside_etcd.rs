//! An uncontended transaction of two reads and two writes beside the same on a single etcd, with syncs and without. Knows
//! nothing of how either keeps transactions apart.

use anyhow::{Context, Result};

use super::coordination::interactive;
use super::data_sets::{STRING_KEY, STRINGS};
use super::durability;
use super::workload::OwnFigures;
use crate::load::{EtcdTransactions, KEYS, load_etcd, numbered};
use crate::measure::{Metric, Sample, ServerFigures, flush_disk};
use crate::servers::{Persistence, Server, ServerSpec, data_root, start_etcd};

/// Each pairing promises the same: everything that was answered survives the process, or the machine.
const PAIRINGS: [(&str, Persistence, bool); 2] = [
    ("everysec; etcd --unsafe-no-fsync", Persistence::EverySecond, false),
    ("always; etcd with fsync", Persistence::Always, true),
];

const PIPELINES: [u32; 2] = [1, 16];

/// Runs of each, of which the median counts.
const TURNS: usize = 5;

/// Runs of both servers in turns; `transactions` are those of a run of etcd.
pub(crate) fn beside_etcd(subject: &ServerSpec, transactions: u64) -> Result<Vec<OwnFigures>> {
    let mut lines = Vec::new();
    for (about, persistence, syncs) in PAIRINGS {
        let ours = Server::start(subject, persistence)?;
        (STRINGS.load)(&ours, KEYS)?;
        let etcd = start_etcd(syncs)?;
        println!("\netcd {}, {}", etcd.version, if syncs { "with fsync" } else { "without fsync" });
        load_etcd(&etcd, key)?;
        durability::settle();
        for pipeline in PIPELINES {
            let mut runs = [Vec::new(), Vec::new()];
            for turn in 0..TURNS {
                for at in [turn % 2, (turn + 1) % 2] {
                    runs[at].push(match at {
                        0 => run_ours(&ours, pipeline, transactions * OURS_PER_ETCD)?,
                        _ => run_etcd(&etcd, pipeline, transactions)?,
                    });
                    flush_disk(&data_root())?;
                }
            }
            lines.push(OwnFigures::new(about, Some(pipeline), compared(runs)?));
        }
    }
    Ok(lines)
}

/// So many more transactions on our side: the runs should take about as long as etcd's.
const OURS_PER_ETCD: u64 = 10;

fn key(number: u64) -> String {
    numbered(STRING_KEY, number)
}

/// In whole transactions, of which the load counts the halves. Of a pipeline of 16 halves, 8 transactions are in flight.
fn run_ours(server: &Server, pipeline: u32, transactions: u64) -> Result<Sample> {
    let run = || interactive(server, pipeline, 2 * transactions);
    let mut sample = durability::journaled(server, transactions, run)?;
    sample.entry(Metric::Throughput).and_modify(|per_s| *per_s /= 2.0);
    sample.entry(Metric::ServerCpu).and_modify(|us| *us *= 2.0);
    Ok(sample)
}

/// With as many transactions in flight on each connection as we have halves of them.
fn run_etcd(server: &Server, pipeline: u32, transactions: u64) -> Result<Sample> {
    durability::journaled(server, transactions, || {
        EtcdTransactions { key, in_flight: pipeline, transactions }.run(server)
    })
}

fn compared(runs: [Vec<Sample>; 2]) -> Result<Sample> {
    let ratios = |metric: Metric| {
        let mut ratios: Vec<f64> =
            runs[0].iter().zip(&runs[1]).map(|(ours, etcd)| ours[&metric] / etcd[&metric]).collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().context("there were no turns")
    };
    let of_etcd = ratios(Metric::Throughput)?;
    let [ours, etcd] = runs.map(|runs| ServerFigures::new("either", runs).median);
    Ok(Sample::from([
        (Metric::Throughput, ours[&Metric::Throughput]),
        (Metric::LatencyP99, ours[&Metric::LatencyP99]),
        (Metric::ServerCpu, ours[&Metric::ServerCpu]),
        (Metric::EtcdThroughput, etcd[&Metric::Throughput]),
        (Metric::EtcdP99, etcd[&Metric::LatencyP99]),
        (Metric::EtcdCpu, etcd[&Metric::ServerCpu]),
        (Metric::EtcdLoadBusy, etcd[&Metric::LoadBusy]),
        (Metric::OfEtcd, of_etcd),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_the_median_of_the_turns() {
        let sample = |per_s| {
            Sample::from([
                (Metric::Throughput, per_s),
                (Metric::LatencyP99, 1.0),
                (Metric::ServerCpu, 2.0),
                (Metric::LoadBusy, 0.5),
            ])
        };
        let runs = [vec![100.0, 10.0, 90.0], vec![10.0, 2.0, 3.0]].map(|runs| runs.into_iter().map(sample).collect());
        let compared = compared(runs).unwrap();
        assert_eq!((compared[&Metric::OfEtcd], compared[&Metric::EtcdThroughput]), (10.0, 3.0));
    }
}
