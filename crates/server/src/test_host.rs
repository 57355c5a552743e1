//! The process around an engine in unit tests. It does nothing, and no test may stop it. Refuses to know what is
//! tested.

use engine::host::{CpuTime, Host, MemoryUse, Shutdown};

/// A host that does nothing.
pub(crate) struct IdleHost;

impl Host for IdleHost {
    fn used_memory(&self) -> u64 {
        0
    }
    fn memory(&self) -> MemoryUse {
        MemoryUse::default()
    }
    fn purge_memory(&self) {}
    fn total_memory(&self) -> u64 {
        0
    }
    fn cpu(&self) -> CpuTime {
        CpuTime::default()
    }
    fn process_id(&self) -> u32 {
        1
    }
    fn executable(&self) -> String {
        String::new()
    }
    fn config_file(&self) -> String {
        String::new()
    }
    fn os(&self) -> String {
        String::new()
    }
    fn threads(&self) -> usize {
        1
    }
    fn shutdown(&self, _: Shutdown) {
        panic!("neither an imported file nor a request of a test may stop the server");
    }
    fn rewrite_config(&self, _: &[(&'static str, String)], _: &[(String, String)]) -> Result<(), String> {
        Ok(())
    }
    fn setting_changed(&self, _: &str) {}
}
