//! The process around an engine in tests: it does nothing, and what it tells is always the same. Knows nothing of the
//! tests and fuzz targets that share it.

use engine::Host;
use engine::host::{CpuTime, MemoryUse, Shutdown};

/// A host that does nothing.
pub(crate) struct IdleHost;

impl Host for IdleHost {
    fn used_memory(&self) -> u64 {
        8 << 20
    }

    fn memory(&self) -> MemoryUse {
        let used = self.used_memory();
        MemoryUse { used, resident: used * 2, allocated: used, active: used, allocator_resident: used }
    }

    fn purge_memory(&self) {}

    fn total_memory(&self) -> u64 {
        8 << 30
    }

    fn cpu(&self) -> CpuTime {
        CpuTime::default()
    }

    fn process_id(&self) -> u32 {
        1
    }

    fn executable(&self) -> String {
        "holdfast".into()
    }

    fn config_file(&self) -> String {
        "holdfast.toml".into()
    }

    fn os(&self) -> String {
        "Linux 6.1.0 x86_64".into()
    }

    fn threads(&self) -> usize {
        1
    }

    fn shutdown(&self, _: Shutdown) {}

    fn rewrite_config(&self, _: &[(&'static str, String)], _: &[(String, String)]) -> Result<(), String> {
        Ok(())
    }

    fn setting_changed(&self, _: &str) {}
}
