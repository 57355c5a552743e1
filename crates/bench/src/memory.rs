//! What job records and idle connections cost a server in memory. Knows nothing of throughput.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::figures::{Metric, Sample};
use crate::load;
use crate::proc_stat;
use crate::servers::{Server, info, info_field};
use crate::wire::{Connection, simple};

/// Memory per job record, over the empty server.
pub(crate) fn job_records(server: &mut Server, records: u64) -> Result<Sample> {
    let mut control = server.connect()?;
    let before = Footprint::measure(server, &mut control)?;
    load::fill_with_job_records(server, records)?;
    thread::sleep(SETTLE);
    let after = Footprint::measure(server, &mut control)?;
    Ok(after.since(&before, records))
}

/// Memory per connection that has been used once and then left idle.
pub(crate) fn idle_connections(server: &mut Server, connections: u64) -> Result<Sample> {
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

/// Time to finish what loading set off, such as freeing the loader's buffers.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);

/// Redis takes back the buffers of a client that has been idle for two seconds; give every server that chance.
const IDLE: Duration = Duration::from_secs(3);

pub(crate) struct Footprint {
    resident_bytes: u64,
    /// By the server's own account; not every server gives one.
    used_memory_bytes: Option<u64>,
}

impl Footprint {
    pub(crate) fn measure(server: &Server, control: &mut Connection) -> Result<Self> {
        let info = info(control, "memory")?;
        Ok(Footprint {
            resident_bytes: proc_stat::resident_bytes(server.pid)?,
            used_memory_bytes: info_field(&info, "used_memory").and_then(|text| text.parse().ok()),
        })
    }

    pub(crate) fn since(&self, before: &Footprint, items: u64) -> Sample {
        let each = |after: u64, before: u64| (after as f64 - before as f64) / items as f64;
        let mut sample = Sample::from([(Metric::RssPerItem, each(self.resident_bytes, before.resident_bytes))]);
        if let (Some(after), Some(before)) = (self.used_memory_bytes, before.used_memory_bytes) {
            sample.insert(Metric::UsedMemoryPerItem, each(after, before));
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_divided_by_the_items_and_may_be_negative() {
        let footprint = |resident_bytes, used_memory_bytes| Footprint { resident_bytes, used_memory_bytes };
        let sample = footprint(5_000, Some(900)).since(&footprint(1_000, Some(1_000)), 10);
        assert_eq!(sample, Sample::from([(Metric::RssPerItem, 400.0), (Metric::UsedMemoryPerItem, -10.0)]));
    }

    #[test]
    fn a_server_without_an_account_of_its_own_is_judged_by_the_kernel_alone() {
        let footprint = |resident_bytes| Footprint { resident_bytes, used_memory_bytes: None };
        let sample = footprint(2_000).since(&footprint(1_000), 10);
        assert_eq!(sample, Sample::from([(Metric::RssPerItem, 100.0)]));
    }
}
