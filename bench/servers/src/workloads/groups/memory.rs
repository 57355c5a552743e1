//! What groups take in memory: for a record, for a group, and after groups are gone. By the server's own account, since the
//! figures are differences of a few bytes. Knows nothing of throughput.

use std::thread;

use anyhow::{Context, Result};

use super::jobs::{GROUPED, JobIndex, Kind, PLAIN};
use crate::load::{Footprint, SETTLE};
use crate::measure::{Metric, Sample};
use crate::servers::{Persistence, Server, ServerSpec};
use crate::workloads::OwnFigures;

/// Servers that hold the same records: without groups, a thousand in each group, and each in a group of its own.
pub(crate) fn memory(subject: &ServerSpec, records: u64) -> Result<Vec<OwnFigures>> {
    let groups = records / RECORDS_EACH;
    let plain = Held::measure(subject, PLAIN, records, groups)?;
    let grouped = Held::measure(subject, GROUPED, records, groups)?;
    let apart = Held::measure(subject, GROUPED, records, records)?;
    let groups_more = (records - groups) as f64 / records as f64;
    let sample = Sample::from([
        (Metric::GroupedRecordBytes, grouped.full - plain.full),
        (Metric::GroupBytes, (apart.full - grouped.full) / groups_more),
        (Metric::GroupLeftBytes, apart.emptied - plain.emptied),
    ]);
    Ok(vec![OwnFigures::new("Memory of groups", None, sample)])
}

/// Records in a group of which the memory of a record is told.
const RECORDS_EACH: u64 = 1_000;

/// Memory of a server, in bytes for each of its records.
struct Held {
    /// With the records.
    full: f64,
    /// After they were removed.
    emptied: f64,
}

impl Held {
    fn measure(subject: &ServerSpec, index: JobIndex, records: u64, groups: u64) -> Result<Held> {
        let server = Server::start(subject, Persistence::Off)?;
        let mut control = server.connect()?;
        index.create(&mut control)?;
        let before = Footprint::measure(&server, &mut control)?;
        let mut each = || {
            thread::sleep(SETTLE);
            let sample = Footprint::measure(&server, &mut control)?.since(&before, records);
            sample.get(&Metric::UsedMemoryPerItem).copied().context("INFO memory tells no used_memory")
        };
        index.load(&server, Kind::Open, records, groups)?;
        let full = each()?;
        index.remove(&server, Kind::Open, records)?;
        Ok(Held { full, emptied: each()? })
    }
}
