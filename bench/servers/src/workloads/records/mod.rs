//! Job records that are found by time, and change as jobs go on: what Holdfast has commands for, and its users' own means
//! elsewhere. Knows nothing of how a server keeps an index.

mod claim_next;
mod index_cost;
mod life_claim;
mod lives;
mod queue;
mod requests;
mod stuck;
mod wakeup;

pub(super) use wakeup::list_wakeup;

use anyhow::Result;

use super::coordination;
use super::data_sets::{JOB_RECORDS, NOTHING};
use super::workload::{Driver, Needs, RequestCounts, SCRIPTED, Workload};
use crate::measure::{Bound, Metric, Sample, Target};
use crate::servers::{Persistence, Server};

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "records-stuck-range",
        about: "IDX.RANGE, SCAN",
        persistence: Persistence::Off,
        setup: &stuck::BACKLOG,
        driver: Driver::Search { run: stuck::range_or_scan },
        targets: &[Target { pipeline: None, metric: Metric::Throughput, bound: Bound::AtLeast(1_000.0) }],
    },
    Workload {
        name: "records-stuck-hfind",
        about: "HFIND, SCAN",
        persistence: Persistence::Off,
        setup: &stuck::BACKLOG,
        driver: Driver::Search { run: stuck::find_or_scan },
        targets: &[],
    },
    Workload {
        name: "records-stuck-by-hand",
        about: "IDX.RANGE, own ZSET",
        persistence: Persistence::Off,
        setup: &stuck::BACKLOG,
        driver: Driver::Search { run: stuck::range_or_by_hand },
        targets: &[Target { pipeline: None, metric: Metric::Throughput, bound: Bound::AtLeast(2.0) }],
    },
    Workload {
        name: "records-life",
        about: "A job's life, indexed",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Clients { run: lives::lives, amounts: LIVES, needs: Needs::Command("EVALSHA") },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) },
        ],
    },
    Workload {
        name: "records-claim",
        about: "HCAS, EVALSHA",
        persistence: Persistence::Off,
        setup: &JOB_RECORDS,
        driver: Driver::Clients { run: coordination::claim, amounts: SCRIPTED, needs: Needs::Command("EVALSHA") },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.1) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(3.0) },
        ],
    },
    Workload {
        name: "records-claim-next",
        about: "Claim the next job",
        persistence: Persistence::Off,
        setup: &claim_next::JOBS,
        driver: Driver::Clients { run: claim_next::claim_next, amounts: CLAIMS, needs: Needs::ClaimOrScript },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.2) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(3.0) },
            Target { pipeline: Some(16), metric: Metric::ServerCpu, bound: Bound::AtMost(0.5) },
        ],
    },
    Workload {
        name: "records-life-claim",
        about: "A job's life, claimed",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Clients { run: life_claim::life_claim, amounts: LIVES, needs: Needs::ClaimOrScript },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(2.0) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(3.0) },
        ],
    },
    Workload {
        name: "records-wakeup-one",
        about: "Wake-up, 1 waits",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: woken(wakeup::one),
        targets: WOKEN,
    },
    Workload {
        name: "records-wakeup-many",
        about: "Wake-up, 50 wait",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: woken(wakeup::many),
        targets: WOKEN,
    },
    Workload {
        name: "records-index",
        about: "HSET, cost of the index",
        persistence: Persistence::EverySecond,
        setup: &NOTHING,
        driver: Driver::Own { run: index_cost::index_cost, amount: 1_000_000, amount_quick: 100_000, program: None },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::IndexLoss, bound: Bound::AtMost(0.10) },
            Target { pipeline: Some(1), metric: Metric::IndexCpu, bound: Bound::AtMost(0.10) },
            Target { pipeline: Some(1), metric: Metric::IndexP99, bound: Bound::AtMost(1.2) },
            Target { pipeline: Some(16), metric: Metric::IndexLoss, bound: Bound::AtMost(0.15) },
            Target { pipeline: Some(16), metric: Metric::IndexCpu, bound: Bound::AtMost(0.15) },
            Target { pipeline: Some(16), metric: Metric::IndexP99, bound: Bound::AtMost(1.2) },
            Target { pipeline: Some(64), metric: Metric::IndexLoss, bound: Bound::AtMost(0.15) },
            Target { pipeline: Some(64), metric: Metric::IndexCpu, bound: Bound::AtMost(0.15) },
            Target { pipeline: Some(64), metric: Metric::IndexP99, bound: Bound::AtMost(1.2) },
            Target { pipeline: None, metric: Metric::IndexRss, bound: Bound::AtMost(48.0) },
            Target { pipeline: None, metric: Metric::IndexUsedMemory, bound: Bound::AtMost(48.0) },
            Target { pipeline: None, metric: Metric::IndexBytes, bound: Bound::AtMost(48.0) },
        ],
    },
];

/// Six of them are one job's life.
const LIVES: RequestCounts = &[(1, 240_000), (8, 480_000), (32, 480_000)];
/// Each is answered with a whole record.
const CLAIMS: RequestCounts = &[(1, 150_000), (8, 240_000), (32, 240_000)];

/// One job at a time: enough of them that a percentile means something.
const fn woken(run: fn(&mut Server, u64) -> Result<Sample>) -> Driver {
    Driver::Custom { run, amount: 4_000, amount_quick: 2_000, needs: Needs::ClaimOrScript }
}

const WOKEN: &[Target] = &[Target { pipeline: None, metric: Metric::LatencyP99, bound: Bound::AtMost(1.0) }];
