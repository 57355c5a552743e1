//! What the server reports about itself: counters, latencies, slow commands, MONITOR. Refuses to know how commands run.

pub mod hot_keys;
mod key_counts;
pub mod latency;
pub mod monitor;
pub mod slowlog;
pub mod statistics;
pub mod stats;
