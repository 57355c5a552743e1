//! The memory of a server, by the kernel's account and by its own. Knows nothing of what fills it.

use std::time::Duration;

use anyhow::Result;

use crate::measure::{Metric, Sample, proc_stat};
use crate::servers::{Connection, Server, info, info_field};

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

/// Time to finish what loading set off, such as freeing the loader's buffers.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);

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
