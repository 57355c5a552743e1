//! What the figures were measured on. Knows nothing of the figures.

use std::fs;

use serde::Serialize;

#[derive(Serialize, Debug)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
    /// Over the last minute, before the first run: a busy machine explains odd figures.
    pub(crate) load_average: String,
}

impl Machine {
    /// This machine; what cannot be learned is `unknown`, since no figure depends on it.
    pub(crate) fn describe() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let known = |text: Option<&str>| text.filter(|text| !text.is_empty()).unwrap_or("unknown").to_string();
        let memory_kib =
            field(&read("/proc/meminfo"), "MemTotal").and_then(|text| text.strip_suffix(" kB")?.parse().ok());
        Machine {
            cpu: known(field(&read("/proc/cpuinfo"), "model name")),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_mib: memory_kib.unwrap_or(0u64) / 1024,
            kernel: known(Some(read("/proc/sys/kernel/osrelease").trim())),
            load_average: known(read("/proc/loadavg").split(' ').next()),
        }
    }
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.into_iter().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_processor_names_the_machine() {
        let text = "processor\t: 0\nmodel name\t: Abacus 9\nflags\t\t: a b\n\nprocessor\t: 1\nmodel name\t: Other\n";
        assert_eq!(field(text, "model name"), Some("Abacus 9"));
        assert_eq!(field(text, "model"), None);
    }
}
