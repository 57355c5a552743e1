//! Indexes with groups and limits: what they cost, what they take in memory, and what a tenant gets from them. Knows nothing of
//! how a server keeps groups apart; peers have none.

mod beside_beanstalkd;
mod blocked;
mod costs;
mod jobs;
mod memory;
mod neighbour;

use anyhow::Result;

use super::data_sets::NOTHING;
use super::workload::{Driver, OwnFigures, Program, Workload};
use crate::measure::{Bound, Metric, Target};
use crate::servers::{BEANSTALKD, Persistence, ServerSpec};

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "groups-writes",
        about: "Writes that move a record of a group",
        persistence: costs::PERSISTENCE,
        setup: &NOTHING,
        driver: own(costs::writes, 100_000, 100_000, None),
        targets: &cpu_at_most(1.35),
    },
    Workload {
        name: "groups-other-writes",
        about: "Writes of another field of a record of a group",
        persistence: costs::PERSISTENCE,
        setup: &NOTHING,
        driver: own(costs::other_writes, 100_000, 100_000, None),
        targets: &cpu_at_most(1.02),
    },
    Workload {
        name: "groups-claim",
        about: "Claims with groups",
        persistence: costs::PERSISTENCE,
        setup: &NOTHING,
        driver: own(costs::claims, 100_000, 100_000, None),
        targets: &cpu_at_most(1.25),
    },
    Workload {
        name: "groups-blocked",
        about: "Claims beside jobs that may not be taken",
        persistence: costs::PERSISTENCE,
        setup: &NOTHING,
        driver: own(blocked::blocked, 1_000_000, 50_000, None),
        targets: &cpu_at_most(1.3),
    },
    Workload {
        name: "groups-memory",
        about: "Memory of groups",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: own(memory::memory, 1_000_000, 100_000, None),
        targets: &[
            Target { pipeline: None, metric: Metric::GroupedRecordBytes, bound: Bound::AtMost(24.0) },
            Target { pipeline: None, metric: Metric::GroupBytes, bound: Bound::AtMost(256.0) },
            Target { pipeline: None, metric: Metric::GroupLeftBytes, bound: Bound::AtMost(1.0) },
        ],
    },
    Workload {
        name: "groups-life",
        about: "A job's life beside beanstalkd",
        persistence: costs::PERSISTENCE,
        setup: &NOTHING,
        driver: own(beside_beanstalkd::beside_beanstalkd, 40_000, 10_000, Some(BEANSTALKD)),
        targets: &[
            Target { pipeline: Some(1), metric: Metric::OfBeanstalkdCpu, bound: Bound::AtMost(1.0) },
            Target { pipeline: Some(16), metric: Metric::OfBeanstalkd, bound: Bound::AtLeast(1.5) },
        ],
    },
    Workload {
        name: "groups-neighbour",
        about: "Waits beside a large tenant",
        persistence: costs::PERSISTENCE,
        setup: &NOTHING,
        driver: own(neighbour::neighbour, 1_000_000, 50_000, None),
        targets: &[],
    },
];

const fn own(
    run: fn(&ServerSpec, u64) -> Result<Vec<OwnFigures>>,
    amount: u64,
    amount_quick: u64,
    program: Program,
) -> Driver {
    Driver::Own { run, amount, amount_quick, program }
}

/// What groups may make of the CPU time, one request per round trip and pipelined.
const fn cpu_at_most(ratio: f64) -> [Target; 2] {
    [
        Target { pipeline: Some(1), metric: Metric::OfPlainCpu, bound: Bound::AtMost(ratio) },
        Target { pipeline: Some(16), metric: Metric::OfPlainCpu, bound: Bound::AtMost(ratio) },
    ]
}
