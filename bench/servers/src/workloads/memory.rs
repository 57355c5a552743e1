//! What job records and idle connections cost a server in memory. Knows nothing of throughput.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::data_sets::{NOTHING, fill_with_job_records};
use super::workload::{Driver, Needs, Workload};
use crate::load::{Footprint, SETTLE};
use crate::measure::{Bound, Metric, Sample, Target};
use crate::servers::{Persistence, Server, simple};

/// Memory per job record, over the empty server.
fn job_records(server: &mut Server, records: u64) -> Result<Sample> {
    let mut control = server.connect()?;
    let before = Footprint::measure(server, &mut control)?;
    fill_with_job_records(server, records)?;
    thread::sleep(SETTLE);
    let after = Footprint::measure(server, &mut control)?;
    Ok(after.since(&before, records))
}

/// Memory per connection that has been used once and then left idle.
fn idle_connections(server: &mut Server, connections: u64) -> Result<Sample> {
    let mut control = server.connect()?;
    let before = Footprint::measure(server, &mut control)?;
    let mut idle = Vec::new();
    for number in 0..connections {
        let mut connection = server.connect().with_context(|| format!("connection {number} (is `ulimit -n` low?)"))?;
        let reply = connection.call(&["PING"])?;
        ensure!(reply == simple("PONG"), "PING on connection {number} answered {reply:?}");
        idle.push(connection);
    }
    thread::sleep(IDLE);
    let after = Footprint::measure(server, &mut control)?;
    Ok(after.since(&before, connections))
}

/// Redis takes back the buffers of a client that has been idle for two seconds; give every server that chance.
const IDLE: Duration = Duration::from_secs(3);

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "memory-records",
        about: "Memory per job record",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Custom { run: job_records, amount: 1_000_000, amount_quick: 100_000, needs: Needs::Nothing },
        targets: &[Target { pipeline: None, metric: Metric::RssPerItem, bound: Bound::AtMost(0.55) }],
    },
    Workload {
        name: "memory-idle",
        about: "Memory per idle connection",
        persistence: Persistence::Off,
        setup: &NOTHING,
        driver: Driver::Custom { run: idle_connections, amount: 1_000, amount_quick: 1_000, needs: Needs::Nothing },
        targets: &[Target { pipeline: None, metric: Metric::RssPerItem, bound: Bound::AtMost(0.5) }],
    },
];
